// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/text.h"
#include "view/text.h"

#include "base/names.h"
#include "view/format.h"

/* A share ends before `column`, its confidence interval begins one after. */
static void put_share(struct page *page, double share, const struct ci *ci, size_t column)
{
	char text[FORMAT_SZ];

	page__right(page, format_share(text, share), column);
	if (!ci)
		return;
	page__to(page, column + 1);
	page__put(page, format_ci(text, *ci));
}

/* A category that no request met is worth a word and not a line. */
static bool is_met(const struct breakdown_line *line)
{
	return known(line->mean_ns) != 0 || known(line->late_ns) != 0;
}

static void print_unmet(struct page *page, const struct report *report)
{
	bool any = false;

	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		const struct breakdown_line *line = &report->breakdown[i];

		if (!line->measured || is_met(line))
			continue;
		page__put(page, any ? ", " : "  no time in: ");
		page__chunk(page, category_name(line->category), 4);
		any = true;
	}
	if (any)
		page__end_line(page);
}

void text_breakdown(struct page *page, const struct report *report)
{
	struct breakdown_line total = {.measured = true};

	page__end_line(page);
	page__heads(page, PAGE_BOLD, {"Where the time goes", 0}, {"mean", -30}, {"typical", -41}, {"late", -52},
		    {"of the tail", 57}, {"of the variance", 79});
	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		const struct breakdown_line *line = &report->breakdown[i];

		if (!line->measured || !is_met(line))
			continue;
		page__to(page, 2);
		page__put(page, category_name(line->category));
		text_duration(page, line->mean_ns, 30);
		text_duration(page, line->typical_ns, 41);
		text_duration(page, line->late_ns, 52);
		put_share(page, line->tail_share, &line->tail_share_ci, 62);
		put_share(page, line->variance_share, &line->variance_share_ci, 84);
		page__end_line(page);
		total.mean_ns += known(line->mean_ns);
		total.typical_ns += known(line->typical_ns);
		total.late_ns += known(line->late_ns);
	}
	page__to(page, 2);
	page__put(page, "all of it");
	text_duration(page, total.mean_ns, 30);
	text_duration(page, total.typical_ns, 41);
	text_duration(page, total.late_ns, 52);
	page__end_line(page);
	print_unmet(page, report);
}

/* Below a tenth of a percent nobody gains anything by avoiding it. */
static bool has_impact(const struct event_line *event)
{
	return !event->dropped_for && (known(event->gain) >= 0.001 || known(event->impact_adjusted) >= 0.001);
}

static void print_event(struct page *page, const struct event_line *event)
{
	bool is_length = text_ends(event->event, EVENT_LENGTH);
	char text[FORMAT_SZ], threshold[FORMAT_SZ + 4] = "";

	page__to(page, 2);
	page__name(page, event->event, 24);
	put_share(page, event->gain, &event->gain_ci, 33);
	put_share(page, event->impact, NULL, 48);
	put_share(page, event->impact_adjusted, NULL, 59);
	if (is_length)
		view_duration(text, sizeof(text), event->threshold);
	else
		format_number(text, event->threshold);
	snprintf(threshold, sizeof(threshold), "> %s", text);
	page__right(page, threshold, 69);
	page__right(page, format_percentile(text, event->threshold_percentile), 75);
	if (event->explained_by || event->correlated_with) {
		page__to(page, 77);
		page__name(page, event->explained_by ? event->explained_by : event->correlated_with, 16);
		page__printf(page, " %s",
			     format_share(text, event->explained_by ? event->explained_overlap : event->correlation));
	}
	page__end_line(page);
}

void text_events(struct page *page, const struct report *report, uint32_t top)
{
	char percentile[FORMAT_SZ], heading[4 * FORMAT_SZ];
	size_t cnt = 0, printed = 0;

	for (size_t i = 0; i < report->event_cnt; i++)
		cnt += has_impact(&report->events[i]);
	if (!report->event_cnt)
		return;
	page__end_line(page);
	snprintf(heading, sizeof(heading),
		 "Events that make requests late (gain: how much %s falls if no request spends time on it)",
		 format_percentile(percentile, report->tail));
	text_heading(page, heading);
	if (!cnt) {
		page__line(page, "  none has any impact");
		return;
	}
	page__heads(page, PAGE_FAINT, {"  event", 0}, {"gain", -33}, {"impact", -48}, {"of its own", -59},
		    {"much is", -69}, {"above", -75}, {"comes with (overlap)", 77});
	for (size_t i = 0; i < report->event_cnt && printed < text_limit(cnt, top); i++) {
		if (!has_impact(&report->events[i]))
			continue;
		print_event(page, &report->events[i]);
		printed++;
	}
	text_more(page, cnt, top);
}

#define TYPE_COLUMN 51

void text_types(struct page *page, const struct report *report, uint32_t top)
{
	char text[FORMAT_SZ];

	if (report->type_cnt < 2)
		return;
	page__end_line(page);
	page__heads(page, PAGE_BOLD, {"Types", 0}, {"requests", -14}, {"mean", -25}, {"p99", -36},
		    {"of the late", -49});
	for (size_t i = 0; i < text_limit(report->type_cnt, top); i++) {
		const struct type_line *line = &report->types[i];

		page__right(page, format_weighted(text, line->count), 14);
		text_duration(page, line->mean_ns, 25);
		text_duration(page, line->p99_ns, 36);
		page__right(page, format_share(text, line->late_share), 49);
		page__paragraph(page, TYPE_COLUMN, *line->type ? line->type : "(no name)", TYPE_COLUMN);
	}
	text_more(page, report->type_cnt, top);
}
