// SPDX-License-Identifier: GPL-2.0-or-later
/* Two sides as a page: the verdict, then figures, categories, roots and events with their intervals around 0. */
#include "view/html.h"

#include "analysis/compare.h"
#include "view/format.h"
#include "view/text.h"

#include <math.h>
#include <stdio.h>

/* --- one difference --------------------------------------------------------------------------------------------------
 */

enum unit { CHANGE, TIME };

static void put_change(struct html *html, const struct compare_difference *difference, enum unit unit)
{
	char value[FORMAT_SZ], ci[FORMAT_CI_SZ];

	html__put(html, difference->differs
				? difference->value > 0 ? "<td class=\"number worse\">" : "<td class=\"number better\">"
				: "<td class=\"number\">");
	html__text(html, unit == TIME ? format_time_change(value, difference->value)
				      : format_change(value, difference->value));
	html__put(html, "</td>");
	html__element(html, "td", "number faint extra",
		      unit == TIME ? format_time_change_ci(ci, difference->ci) : format_change_ci(ci, difference->ci));
}

/* Where in the bar a difference lies: 0 is in the middle, `most` at its right end. */
static double place(double value, double most)
{
	return 50 + 50 * fmin(fmax(value / most, -1), 1);
}

static void put_bar(struct html *html, const struct compare_difference *difference, double most)
{
	html__put(html, "<td><svg class=\"around\" role=\"presentation\" width=\"160\" height=\"12\">"
			"<rect class=\"zero\" x=\"50%\" width=\"1\" height=\"12\"/>");
	if (most > 0 && isfinite(difference->ci.lo) && isfinite(difference->ci.hi)) {
		double lo = place(difference->ci.lo, most), hi = place(difference->ci.hi, most);

		fprintf(html->out, "<rect class=\"%s\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"3\" height=\"6\"/>",
			!difference->differs    ? "same"
			: difference->value > 0 ? "worse"
						: "better",
			lo, fmax(hi - lo, 0.5));
	}
	html__put(html, "</svg></td>");
}

/*
 * The largest bound of a difference, so that the bars of a table have one scale.  Of changes it is the double at most:
 * one that is not known better than by factors would leave nothing of the others.
 */
static void widen(double *most, const struct compare_difference *difference, enum unit unit)
{
	if (isfinite(difference->ci.lo) && isfinite(difference->ci.hi))
		*most = fmax(*most, fmax(fabs(difference->ci.lo), fabs(difference->ci.hi)));
	if (unit == CHANGE)
		*most = fmin(*most, 1);
}

/* --- the parts -------------------------------------------------------------------------------------------------------
 */

static void put_sides(struct html *html, const struct compare_facts *facts)
{
	char text[FORMAT_SZ];

	html__put(html, "<table><thead><tr><th></th><th>recording</th><th>program</th><th>for</th><th>requests</"
			"th><th>kept</th>"
			"<th>records lost</th></tr></thead><tbody>\n");
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		const struct compare_facts *side = &facts[s];

		html__put(html, s == COMPARE_A ? "<tr><th>A</th>" : "<tr><th>B</th>");
		html__element(html, "td", NULL, side->label);
		html__put(html, "<td>");
		html__text(html, side->comm ? side->comm : "");
		if (side->host_cnt > 1)
			html__printf(html, " on %zu hosts", side->host_cnt);
		else if (side->host && *side->host)
			html__printf(html, " on %s", side->host);
		html__put(html, "</td>");
		html__number(html,
			     view_duration(text, sizeof(text), side->duration_s > 0 ? side->duration_s * 1e9 : NAN));
		html__put(html, "<td class=\"number\">");
		html__printf(html, "%s%s", side->windowed ? "about " : "", format_count(text, side->intervals_seen));
		html__put(html, "</td>");
		html__number(html, format_count(text, side->intervals_kept));
		html__number(html, format_count(text, side->records_lost));
		html__put(html, "</tr>\n");
	}
	html__put(html, "</tbody></table>\n");
}

static void put_metrics(struct html *html, const struct comparison *comparison, bool like)
{
	double most = 0;
	char text[FORMAT_SZ];

	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		widen(&most, like ? &comparison->metrics[m].like : &comparison->metrics[m].all, CHANGE);
	html__put(html, "<table><thead><tr><th></th><th>A</th><th>B</th><th>change</th><th class=\"extra\">95 "
			"%</th><th></th></tr></thead>"
			"<tbody>\n");
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++) {
		const struct compare_metric *metric = &comparison->metrics[m];
		const struct compare_difference *difference = like ? &metric->like : &metric->all;

		html__put(html, "<tr>");
		html__element(html, "th", NULL, metric->name);
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			html__number(html,
				     view_duration(text, sizeof(text), like ? metric->like_ns[s] : metric->ns[s]));
		put_change(html, difference, CHANGE);
		put_bar(html, difference, most);
		html__put(html, "</tr>\n");
	}
	html__put(html, "</tbody></table>\n");
}

static void put_line(struct html *html, const struct compare_line *line, bool late, double most)
{
	const struct compare_difference *difference = late ? &line->late_diff : &line->mean_diff;
	char text[FORMAT_SZ];

	html__put(html, late ? "<td class=\"whole\">per late request</td>" : "<td class=\"whole\">per request</td>");
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		html__number(html, view_duration(text, sizeof(text), late ? line->late[s] : line->mean[s]));
	put_change(html, difference, TIME);
	put_bar(html, difference, most);
	html__put(html, "</tr>\n");
}

static bool has_gain(const struct compare_line *line, const struct cause_gain *whole)
{
	return whole && !isnan(line->gain[COMPARE_A].p99_ns) && !isnan(line->gain[COMPARE_B].p99_ns);
}

/* What each side's p99 is without the root, and with it. */
static void put_gain(struct html *html, const struct compare_line *line, const struct cause_gain *whole)
{
	char text[FORMAT_SZ], b[FORMAT_SZ];

	html__put(html, "<tr><td class=\"whole\">p99 without it</td>");
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		html__number(html, view_duration(text, sizeof(text), line->gain[s].p99_ns));
	html__put(html, "<td class=\"faint whole\" colspan=\"3\">");
	html__printf(html, "instead of %s and %s", view_duration(text, sizeof(text), whole[COMPARE_A].p99_ns),
		     view_duration(b, sizeof(b), whole[COMPARE_B].p99_ns));
	html__put(html, "</td></tr>\n");
}

/*
 * Roots, categories or functions that clearly differ.  Late requests and all of them have a scale each.  whole: of
 * roots, NULL of the others.
 */
static void put_parts(struct html *html, const char *heading, const struct compare_list *list,
		      const struct cause_gain *whole, uint32_t top)
{
	double most_late = 0, most_mean = 0;
	size_t cnt = 0, shown = 0;

	if (!list->cnt)
		return;
	for (size_t i = 0; i < list->cnt; i++) {
		if (!compare_line_differs(&list->lines[i]))
			continue;
		cnt++;
		widen(&most_late, &list->lines[i].late_diff, TIME);
		widen(&most_mean, &list->lines[i].mean_diff, TIME);
	}
	html__put(html, "<section>");
	html__element(html, "h2", NULL, heading);
	html__put(html, "<table><thead><tr><th></th><th>A</th><th>B</th><th>B − A</th>"
			"<th class=\"extra\">95 %</th><th></th></tr></thead><tbody>\n");
	for (size_t i = 0; i < list->cnt && shown < text_limit(cnt, top); i++) {
		if (!compare_line_differs(&list->lines[i]))
			continue;
		html__put(html, "<tr><th class=\"part\" colspan=\"6\">");
		html__text(html, list->lines[i].name);
		html__put(html, "</th></tr>\n<tr>");
		put_line(html, &list->lines[i], true, most_late);
		html__put(html, "<tr>");
		put_line(html, &list->lines[i], false, most_mean);
		if (has_gain(&list->lines[i], whole))
			put_gain(html, &list->lines[i], whole);
		shown++;
	}
	html__put(html, "</tbody></table>\n<p class=\"faint\">");
	if (shown < cnt)
		html__printf(html, "%zu more are clearly different (--top 0 lists them).", cnt - shown);
	else if (cnt)
		html__printf(html, "%zu others are not clearly different.", list->cnt - cnt);
	else
		html__printf(html, "None of %zu is clearly different.", list->cnt);
	html__put(html, "</p></section>\n");
}

struct whole {
	const struct comparison *comparison;
	const struct compare_facts *facts;
	uint32_t top;
};

static void fill_verdict(struct page *page, const void *ctx)
{
	text_compare_verdict(page, ((const struct whole *)ctx)->comparison);
}

static void fill_whole(struct page *page, const void *ctx)
{
	const struct whole *whole = ctx;

	text_compare(page, whole->comparison, whole->facts, whole->top);
}

int view_compare_html(FILE *out, const struct comparison *comparison, const struct compare_facts *facts,
		      const struct view_opts *opts)
{
	const struct whole whole = {comparison, facts, opts->top};
	struct html html;

	html__open(&html, out, "whylate: B against A");
	html__put(&html, "<header><h1>B against A</h1>\n");
	put_sides(&html, facts);
	html__put(&html, "</header>\n<section id=\"verdict\"><h2>The verdict</h2>\n");
	html__preformatted(&html, fill_verdict, &whole);
	html__put(&html, comparison->mixed ? "</section>\n<section><h2>Latency, B with A's mix of request types</h2>\n"
					   : "</section>\n<section><h2>Latency</h2>\n");
	put_metrics(&html, comparison, true);
	if (comparison->mixed) {
		html__put(&html, "<h3>Each side with its own mix</h3>\n");
		put_metrics(&html, comparison, false);
	}
	html__put(&html, "</section>\n");
	put_parts(&html, "By root", &comparison->roots, comparison->whole, opts->top);
	put_parts(&html, "By category", &comparison->categories, NULL, opts->top);
	put_parts(&html, "By function", &comparison->functions, NULL, opts->top);
	html__details(&html, "The whole comparison as text", fill_whole, &whole);
	return html__close(&html);
}
