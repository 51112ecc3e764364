// SPDX-License-Identifier: GPL-2.0-or-later
/* Two sides for a person: first whether B is worse, then in which figure, in which requests, and by what. */
#include "analysis/compare.h"
#include "base/text.h"
#include "view/format.h"
#include "view/text.h"
#include "view/values.h"

#include <math.h>

#define LABEL_COLUMNS  40
#define NAME_COLUMNS   30
#define LOSS_SHOWN     0.0005
#define DETECTABLE_MAX 5.0 /* beyond it, a number says nothing */

static void print_side(struct page *page, char letter, const struct compare_facts *facts)
{
	char text[FORMAT_SZ];

	page__printf(page, "%c  ", letter);
	page__style(page, PAGE_BOLD);
	page__name(page, facts->label, LABEL_COLUMNS);
	page__style(page, PAGE_PLAIN);
	page__put(page, "  ");
	if (facts->comm && *facts->comm)
		page__name(page, facts->comm, NAME_COLUMNS);
	if (facts->pid >= 0)
		page__printf(page, " (pid %lld)", (long long)facts->pid);
	if (facts->host_cnt > 1) {
		page__printf(page, " on %zu hosts", facts->host_cnt);
	} else if (facts->host && *facts->host) {
		page__put(page, " on ");
		page__name(page, facts->host, NAME_COLUMNS);
	}
	page__printf(page, ", %s", view_duration(text, sizeof(text), facts->duration_s * 1e9));
	if (facts->session_cnt > 1)
		page__printf(page, " in %zu recordings", facts->session_cnt);
	page__put(page, ": ");
	page__chunk(page, facts->windowed ? "about " : "", 3);
	page__printf(page, "%s requests", format_count(text, facts->intervals_seen));
	page__printf(page, ", %s kept", format_count(text, facts->intervals_kept));
	if (facts->lost_share >= LOSS_SHOWN)
		page__printf(page, ", %s of the records lost", format_share(text, facts->lost_share));
	else
		page__printf(page, ", %s record%s lost", format_count(text, facts->records_lost),
			     facts->records_lost == 1 ? "" : "s");
	page__end_line(page);
}

/* Of a metric whose difference is clear. */
static void print_change(struct page *page, const struct compare_metric *metric)
{
	char change[FORMAT_SZ], ci[FORMAT_CI_SZ], a[FORMAT_SZ], b[FORMAT_SZ];

	page__style(page, metric->like.value > 0 ? PAGE_BAD : PAGE_BOLD);
	page__printf(page, "%s: %s is %s %s, %s instead of %s", metric->like.value > 0 ? "B is worse" : "B is better",
		     metric->name, format_change(change, metric->like.value), format_change_ci(ci, metric->like.ci),
		     view_duration(b, sizeof(b), metric->like_ns[COMPARE_B]),
		     view_duration(a, sizeof(a), metric->like_ns[COMPARE_A]));
	page__style(page, PAGE_PLAIN);
	if (metric->limit > 0)
		page__printf(page,
			     metric->exceeds ? ", beyond the limit of %s" : ", not clearly beyond the limit of %s",
			     format_share(change, metric->limit));
	else if (isnan(metric->limit))
		page__put(page, ", without a limit");
	page__end_line(page);
}

/* With the size that would have been seen: where it is large, too little was observed to tell. */
static void print_same(struct page *page, const struct comparison *comparison)
{
	char change[FORMAT_SZ];
	bool first = true;

	page__style(page, PAGE_BOLD);
	page__put(page, "No clear difference.");
	page__style(page, PAGE_PLAIN);
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++) {
		const struct compare_metric *metric = &comparison->metrics[m];

		if (isnan(metric->limit) || isnan(metric->like.detectable))
			continue;
		page__printf(page, "%s %s rises by ", first ? " It is seen (4 times in 5) if" : ", or if",
			     metric->name);
		if (metric->like.detectable < DETECTABLE_MAX)
			page__printf(page, "%s or more", format_share(change, metric->like.detectable));
		else
			page__put(page, "far more than its double");
		first = false;
	}
	page__put(page, first ? "" : ".");
	page__end_line(page);
}

void text_compare_verdict(struct page *page, const struct comparison *comparison)
{
	for (size_t m = COMPARE_METRIC_CNT; m-- > 0;)
		if (comparison->metrics[m].like.differs)
			print_change(page, &comparison->metrics[m]);
	if (comparison->verdict == COMPARE_UNKNOWN)
		page__line(page, "Too few requests to tell whether B differs from A.");
	if (comparison->verdict == COMPARE_SAME)
		print_same(page, comparison);
}

static void print_row(struct page *page, const char *name, const double ns[COMPARE_SIDE_CNT],
		      const struct compare_difference *difference)
{
	char text[FORMAT_SZ], ci[FORMAT_CI_SZ];

	page__to(page, 2);
	page__name(page, name, NAME_COLUMNS);
	page__right(page, view_duration(text, sizeof(text), ns[COMPARE_A]), 46);
	page__right(page, view_duration(text, sizeof(text), ns[COMPARE_B]), 58);
	page__style(page, difference->differs ? difference->value > 0 ? PAGE_BAD : PAGE_BOLD : PAGE_PLAIN);
	page__right(page, format_change(text, difference->value), 68);
	page__style(page, PAGE_PLAIN);
	page__to(page, 70);
	page__put(page, format_change_ci(ci, difference->ci));
	page__end_line(page);
}

static void print_head(struct page *page, const char *heading)
{
	page__end_line(page);
	page__style(page, PAGE_BOLD);
	page__put(page, heading);
	page__right(page, "A", 46);
	page__right(page, "B", 58);
	page__style(page, PAGE_PLAIN);
	page__right(page, "change", 68);
	page__to(page, 70);
	page__put(page, "95 %");
	page__end_line(page);
}

static void print_metrics(struct page *page, const struct comparison *comparison)
{
	print_head(page, comparison->mixed ? "Latency, B with A's mix of request types" : "Latency");
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		print_row(page, comparison->metrics[m].name, comparison->metrics[m].like_ns,
			  &comparison->metrics[m].like);
	if (!comparison->mixed)
		return;
	print_head(page, "Latency, each side with its own mix");
	for (size_t m = 0; m < COMPARE_METRIC_CNT; m++)
		print_row(page, comparison->metrics[m].name, comparison->metrics[m].ns, &comparison->metrics[m].all);
}

static void print_types(struct page *page, const struct comparison *comparison, uint32_t top)
{
	size_t shown = text_limit(comparison->type_cnt, top);
	char text[FORMAT_SZ], name[2 * FORMAT_SZ];

	if (comparison->type_cnt < 2)
		return;
	page__end_line(page);
	page__style(page, PAGE_BOLD);
	page__put(page, "Request types");
	page__style(page, PAGE_PLAIN);
	page__right(page, "share in A", 46);
	page__right(page, "in B", 58);
	page__right(page, "mean", 68);
	page__to(page, 70);
	page__put(page, "95 %");
	page__right(page, format_percentile(name, comparison->tail), 99);
	page__end_line(page);
	for (size_t t = 0; t < shown; t++) {
		const struct compare_type *type = &comparison->types[t];
		char ci[FORMAT_CI_SZ];

		page__to(page, 2);
		page__name(page, type->type, NAME_COLUMNS);
		page__right(page, format_share(text, type->share[COMPARE_A]), 46);
		page__right(page, format_share(text, type->share[COMPARE_B]), 58);
		if (type->in_both) {
			page__right(page, format_change(text, type->mean.value), 68);
			page__to(page, 70);
			page__put(page, format_change_ci(ci, type->mean.ci));
			page__right(page, format_change(text, type->tail.value), 99);
		} else {
			page__to(page, 60);
			page__put(page, "too few on one side to compare");
		}
		page__end_line(page);
	}
	text_more(page, comparison->type_cnt, top);
}

/* What each side's p99 is without the root. */
static void print_gain(struct page *page, const struct compare_line *line, const struct cause_gain *whole)
{
	char text[FORMAT_SZ], b[FORMAT_SZ];

	if (isnan(line->gain[COMPARE_A].p99_ns) || isnan(line->gain[COMPARE_B].p99_ns))
		return;
	page__to(page, 6);
	page__put(page, "p99 without it");
	page__right(page, view_duration(text, sizeof(text), line->gain[COMPARE_A].p99_ns), 46);
	page__right(page, view_duration(text, sizeof(text), line->gain[COMPARE_B].p99_ns), 58);
	page__line(page, "  instead of %s and %s", view_duration(text, sizeof(text), whole[COMPARE_A].p99_ns),
		   view_duration(b, sizeof(b), whole[COMPARE_B].p99_ns));
}

/* whole: of roots, NULL of the other parts. */
static void print_part(struct page *page, const struct compare_line *line, const struct cause_gain *whole)
{
	char text[FORMAT_SZ], ci[FORMAT_CI_SZ], *printable = text;
	const struct compare_difference *differences[] = {&line->late_diff, &line->mean_diff};

	page__paragraph(page, 2, line->name, 4);
	for (int d = 0; d < 2; d++) {
		const double *ns = d ? line->mean : line->late;

		page__to(page, 6);
		page__put(page, d ? "per request" : "per late request");
		page__right(page, view_duration(printable, FORMAT_SZ, ns[COMPARE_A]), 46);
		page__right(page, view_duration(printable, FORMAT_SZ, ns[COMPARE_B]), 58);
		page__style(page,
			    differences[d]->differs ? differences[d]->value > 0 ? PAGE_BAD : PAGE_BOLD : PAGE_PLAIN);
		page__right(page, format_time_change(text, differences[d]->value), 70);
		page__style(page, PAGE_PLAIN);
		page__to(page, 72);
		page__put(page, format_time_change_ci(ci, differences[d]->ci));
		page__end_line(page);
	}
	if (whole)
		print_gain(page, line, whole);
}

/* Those that are clearly different, then a word on the others. */
static void print_parts(struct page *page, const char *heading, const struct compare_list *list,
			const struct cause_gain *whole, uint32_t top)
{
	size_t differ = 0, shown = 0;

	if (!list->cnt)
		return;
	for (size_t i = 0; i < list->cnt; i++)
		differ += compare_line_differs(&list->lines[i]);
	text_section(page, heading);
	for (size_t i = 0; i < list->cnt && shown < text_limit(differ, top); i++)
		if (compare_line_differs(&list->lines[i])) {
			print_part(page, &list->lines[i], whole);
			shown++;
		}
	page__style(page, PAGE_FAINT);
	if (shown < differ)
		page__printf(page, "  %zu more are clearly different (--top 0 lists them)", differ - shown);
	else if (differ)
		page__printf(page, "  %zu others are not clearly different", list->cnt - differ);
	else
		page__printf(page, "  none of %zu is clearly different", list->cnt);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

static void print_events(struct page *page, const struct comparison *comparison, uint32_t top)
{
	const struct compare_list *events = &comparison->events;
	size_t differ = 0, shown = 0;

	for (size_t i = 0; i < events->cnt; i++)
		differ += events->lines[i].mean_diff.differs;
	if (!differ)
		return;
	text_section(page, "Events per request that are clearly different");
	for (size_t i = 0; i < events->cnt && shown < text_limit(differ, top); i++) {
		const struct compare_line *line = &events->lines[i];
		char text[FORMAT_SZ], ci[FORMAT_CI_SZ];
		bool is_length = text_ends(line->name, EVENT_LENGTH);

		if (!line->mean_diff.differs)
			continue;
		shown++;
		page__to(page, 2);
		page__name(page, line->name, NAME_COLUMNS);
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			page__right(page,
				    is_length ? view_duration(text, sizeof(text), line->mean[s])
					      : format_number(text, line->mean[s]),
				    s ? 58 : 46);
		page__right(page, format_change(text, line->mean_diff.value), 68);
		page__to(page, 70);
		page__put(page, format_change_ci(ci, line->mean_diff.ci));
		page__end_line(page);
	}
	text_more(page, differ, top);
}

static void print_trust(struct page *page, const struct comparison *comparison)
{
	char text[FORMAT_SZ];

	page__end_line(page);
	page__style(page, PAGE_FAINT);
	page__words(page,
		    "The intervals of a list hold together, and cover what varies within the recordings. What "
		    "varies from one start of the program to the next shows only where a side has several "
		    "recordings.",
		    0);
	page__end_line(page);
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		if (!(comparison->like_share[s] < 1 - LOSS_SHOWN))
			continue;
		page__line(page, "%s of the requests of %c are of types that the other side has too few of.",
			   format_share(text, 1 - comparison->like_share[s]), s ? 'B' : 'A');
	}
	if (comparison->both_cnt)
		page__line(page, "%s requests are on both sides.", format_count(text, comparison->both_cnt));
	page__style(page, PAGE_PLAIN);
}

void text_compare_parts(struct page *page, const struct comparison *comparison, uint32_t top)
{
	char heading[128], late[FORMAT_SZ];

	snprintf(heading, sizeof(heading), "Roots whose time differs (late: from each side's own %s up)",
		 format_percentile(late, comparison->tail));
	print_parts(page, heading, &comparison->roots, comparison->whole, top);
	snprintf(heading, sizeof(heading), "Categories whose time differs%s%s%s",
		 comparison->roots.cnt ? "" : " (late: from each side's own ", comparison->roots.cnt ? "" : late,
		 comparison->roots.cnt ? "" : " up)");
	print_parts(page, heading, &comparison->categories, NULL, top);
	print_parts(page, "Functions whose own time differs, on critical paths", &comparison->functions, NULL, top);
	print_events(page, comparison, top);
}

void text_compare(struct page *page, const struct comparison *comparison, const struct compare_facts *facts,
		  uint32_t top)
{
	print_side(page, 'A', &facts[COMPARE_A]);
	print_side(page, 'B', &facts[COMPARE_B]);
	page__end_line(page);
	text_compare_verdict(page, comparison);
	print_metrics(page, comparison);
	print_types(page, comparison, top);
	text_compare_parts(page, comparison, top);
	if (comparison->values)
		text_value_report(page, comparison->values, top);
	print_trust(page, comparison);
}

int view_compare_text(FILE *out, const struct comparison *comparison, const struct compare_facts *facts,
		      const struct view_opts *opts)
{
	struct page page;

	page__open(&page, out, opts->colour);
	text_compare(&page, comparison, facts, opts->top);
	return page__close(&page);
}
