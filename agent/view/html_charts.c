// SPDX-License-Identifier: GPL-2.0-or-later
/* Hosts, events and values as bars beside their figures; they read without the script. */
#include "view/format.h"
#include "view/html.h"
#include "view/text.h"

#include <math.h>
#include <stdio.h>

static void open_chart(struct html *html, const char *id, const char *heading, const char *columns)
{
	fprintf(html->out, "<section id=\"%s\"><h3>", id);
	html__text(html, heading);
	html__put(html, "</h3>\n<table class=\"chart\"><thead><tr>");
	html__put(html, columns);
	html__put(html, "</tr></thead><tbody>\n");
}

static void close_chart(struct html *html, size_t left_out)
{
	html__put(html, "</tbody></table>\n");
	if (left_out)
		html__printf(html, "… %zu more (--top 0 lists all)", left_out);
	html__put(html, "</section>\n");
}

static void put_hosts(struct html *html, const struct report *report, uint32_t top)
{
	size_t shown = text_limit(report->host_cnt, top);
	char heading[FORMAT_SZ + 32], text[FORMAT_SZ];
	double most = 0;

	if (report->host_cnt < 2)
		return;
	for (size_t i = 0; i < report->host_cnt; i++) {
		most = fmax(most, report->hosts[i].tail_ns);
		most = fmax(most, report->hosts[i].tail_ci.hi);
	}
	snprintf(heading, sizeof(heading), "Hosts by their %s", format_percentile(text, report->tail));
	open_chart(html, "hosts", heading,
		   "<th>host</th><th>requests</th><th>p50</th><th>tail</th><th>of its peers'</th><th></th>");
	for (size_t i = 0; i < shown; i++) {
		const struct host_line *line = &report->hosts[i];
		struct ci ci = {line->tail_ci.lo / most, line->tail_ci.hi / most};

		html__put(html, "<tr>");
		html__element(html, "th", line->stands_out ? "bad" : NULL, line->host->name);
		html__number(html, format_weighted(text, line->latency.count));
		html__number(html, view_duration(text, sizeof(text), line->latency.p50_ns));
		html__number(html, view_duration(text, sizeof(text), line->tail_ns));
		html__number(html, format_share(text, line->tail_ns / line->peers_tail_ns));
		html__put(html, "<td class=\"plot\">");
		html__bar(html, line->tail_ns / most, ci);
		html__put(html, "</td></tr>\n");
	}
	close_chart(html, report->host_cnt - shown);
}

#define GAIN_SHOWN 0.001

static void put_events(struct html *html, const struct report *report, uint32_t top)
{
	char heading[FORMAT_SZ + 64], text[FORMAT_SZ];
	size_t cnt = 0, put = 0;

	for (size_t i = 0; i < report->event_cnt; i++)
		cnt += !report->events[i].dropped_for && report->events[i].gain >= GAIN_SHOWN;
	if (!cnt)
		return;
	snprintf(heading, sizeof(heading), "Events: how much %s falls without each",
		 format_percentile(text, report->tail));
	open_chart(html, "events", heading, "<th>event</th><th>gain</th><th>impact</th><th></th>");
	for (size_t i = 0; i < report->event_cnt && put < text_limit(cnt, top); i++) {
		const struct event_line *line = &report->events[i];

		if (line->dropped_for || !(line->gain >= GAIN_SHOWN))
			continue;
		html__put(html, "<tr>");
		html__element(html, "th", NULL, line->event);
		html__number(html, format_share(text, line->gain));
		html__number(html, format_share(text, line->impact));
		html__put(html, "<td class=\"plot\">");
		html__bar(html, line->gain, line->gain_ci);
		html__put(html, "</td></tr>\n");
		put++;
	}
	close_chart(html, cnt - put);
}

/* What typical requests have as a bar, the median of late ones as a mark, both on a scale from the least to the most.
 */
static void put_range(struct html *html, const struct value_line *line)
{
	double least = fmin(line->typical_lo, line->late_median), most = fmax(line->typical_hi, line->late_median);
	double span = most > least ? most - least : 1;
	double from = 96 * (line->typical_lo - least) / span, to = 96 * (line->typical_hi - least) / span;

	fprintf(html->out,
		"<svg class=\"bar range\" role=\"presentation\" width=\"100%%\" height=\"10\">"
		"<rect class=\"typical\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"3\" height=\"4\"/>"
		"<rect class=\"share\" x=\"%.2f%%\" width=\"2%%\" height=\"10\"/></svg>\n",
		from, fmax(to - from, 1) + 2, 96 * (line->late_median - least) / span);
}

static bool is_plotted(const struct value_line *line)
{
	return isfinite(line->typical_lo) && isfinite(line->typical_hi) && isfinite(line->late_median);
}

static void put_values(struct html *html, const struct report *report, uint32_t top)
{
	const struct value_report *values = report->values;
	char lo[FORMAT_SZ], hi[FORMAT_SZ], text[FORMAT_SZ];
	size_t cnt = 0, put = 0;

	for (size_t i = 0; values && i < values->variable_cnt; i++)
		cnt += is_plotted(&values->variables[i]);
	if (!cnt)
		return;
	open_chart(html, "values", "Values: late requests against typical ones",
		   "<th>variable</th><th>in</th><th>typical</th><th>late</th><th>beyond</th><th></th>");
	for (size_t i = 0; i < values->variable_cnt && put < text_limit(cnt, top); i++) {
		const struct value_line *line = &values->variables[i];

		if (!is_plotted(line))
			continue;
		html__put(html, "<tr>");
		html__element(html, "th", NULL, line->variable);
		html__element(html, "td", "label", line->function ? line->function : line->module ? line->module : "");
		format_number(lo, line->typical_lo);
		format_number(hi, line->typical_hi);
		html__put(html, "<td class=\"number\">");
		html__printf(html, "%s to %s", lo, hi);
		html__put(html, "</td>");
		html__number(html, format_number(text, line->late_median));
		html__number(html, format_share(text, line->beyond_share));
		html__put(html, "<td class=\"plot\">");
		put_range(html, line);
		html__put(html, "</td></tr>\n");
		put++;
	}
	close_chart(html, cnt - put);
}

void html__charts(struct html *html, const struct report *report, uint32_t top)
{
	put_values(html, report, top);
	put_hosts(html, report, top);
	put_events(html, report, top);
}
