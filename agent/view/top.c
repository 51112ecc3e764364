// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/top.h"

#include "base/names.h"
#include "view/format.h"
#include "view/top_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_COLUMNS  20
#define BARS_MAX      6
#define TYPES_MAX     4
#define ROWS_LEAST    16 /* below it, only the roots */
#define CURVE_COLUMNS 8
#define BAR_MIN       0.005 /* of the longest */

static double trend_of(const struct top_view *view, size_t cause)
{
	const struct timeline_cause *line = top_cause_line(view, cause);

	return line ? line->trend : NAN;
}

/* The larger, the further up. */
static double sort_key(const struct top_view *view, size_t cause)
{
	const struct cause *line = &view->findings->report.causes[cause];
	double key = view->sort == TOP_BY_GAIN    ? -line->gain.p99_ns
		     : view->sort == TOP_BY_TREND ? trend_of(view, cause)
						  : -(double)line->rank;

	return isnan(key) ? -INFINITY : key;
}

void view_top_order(const struct top_view *view, uint32_t *order)
{
	size_t cnt = view->findings ? view->findings->report.cause_cnt : 0;

	/* Few, and equal ones stay in the report's order. */
	for (uint32_t i = 0; i < cnt; i++) {
		size_t at = i;

		for (; at && sort_key(view, order[at - 1]) < sort_key(view, i); at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

/* --- always in sight -----------------------------------------------------------------------------------------------
 */

static void put_clock(struct page *page, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	char text[16];
	struct tm tm;

	if (!wall_ns || !localtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%H:%M:%S", &tm))
		return;
	page__right(page, text, page->columns);
}

static void print_title(struct page *page, const struct top_view *view)
{
	const struct dataset *dataset = view->findings ? &view->findings->dataset : NULL;

	page__style(page, PAGE_BOLD);
	page__put(page, "whylate top");
	if (dataset && dataset->comm) {
		page__put(page, "  ");
		page__name(page, dataset->comm, NAME_COLUMNS);
	}
	if (dataset && dataset->pid >= 0)
		page__printf(page, " (pid %lld)", (long long)dataset->pid);
	page__style(page, PAGE_PLAIN);
	if (dataset && dataset->host && *dataset->host && page->column + strlen(dataset->host) + 40 <= page->columns) {
		page__put(page, " on ");
		page__name(page, dataset->host, 14);
	}
	page__printf(page, "  last %.0f s", view->window_s);
	if (view->paused)
		page__put(page, view->is_live ? "  paused" : "  replay, paused");
	else if (!view->is_live)
		page__printf(page, "  replay %gx", view->speed);
	put_clock(page, view->shown_wall_ns);
	page__end_line(page);
}

static void print_loss(struct page *page, const struct report *report)
{
	const struct dataset *dataset = report->dataset;
	uint64_t any = dataset->records_lost;
	char text[FORMAT_SZ];

	for (int i = 0; i < WL_LOSS_CNT; i++)
		any |= dataset->loss[i].lost;
	page__put(page, "loss ");
	page__style(page, any ? PAGE_BAD : PAGE_PLAIN);
	if (!any)
		page__put(page, dataset->row_cnt && !dataset->loss[WL_LOSS_INTERVAL].emitted ? "not known" : "none");
	else if (report->records_lost_share > 0)
		page__put(page, format_share(text, report->records_lost_share));
	else
		page__put(page, "of detail only");
	page__style(page, PAGE_PLAIN);
}

#define TYPE_COLUMNS 12 /* "  only " and some of a name */

/* What it takes from the target, and how much of the time it saw; brief 1: without words; 2: without our own. */
static void put_costs(char *text, size_t text_sz, const struct report *report, int brief)
{
	const struct dataset *dataset = report->dataset;
	char share[FORMAT_SZ];
	size_t len;

	if (isnan(dataset->cost_share))
		snprintf(text, text_sz, "  cost not known");
	else
		snprintf(text, text_sz, "  cost %s%s", format_part(share, dataset->cost_share),
			 brief ? "" : " of its CPU");
	len = strlen(text);
	if (report->our_own.known && brief < 2)
		snprintf(text + len, text_sz - len, "  %s %s", brief ? "own" : "our own",
			 format_part(share, report->our_own.share));
	len = strlen(text);
	if (dataset->window_cnt && dataset->duration_s > 0)
		snprintf(text + len, text_sz - len, "  observed %s%s",
			 format_part(share, dataset->window_selecting_s / dataset->duration_s),
			 brief ? "" : " of the time");
}

static void print_trust(struct page *page, const struct top_view *view)
{
	const struct report *report = &view->findings->report;
	char text[4 * FORMAT_SZ];

	print_loss(page, report);
	for (int brief = 0; brief < 3; brief++) {
		put_costs(text, sizeof(text), report, brief);
		if (page->column + strlen(text) + (view->type ? TYPE_COLUMNS : 0) <= page->columns)
			break;
	}
	page__put(page, text);
	if (view->type) {
		page__put(page, "  only ");
		top_rest(page, view->type);
	}
	page__end_line(page);
}

static void print_figures(struct page *page, const struct top_view *view)
{
	const struct latency_summary *latency = &view->findings->report.latency;
	const struct {
		const char *name;
		double ns;
	} figures[] = {
		{"mean", latency->mean_ns}, {"p50", latency->p50_ns},    {"p90", latency->p90_ns},
		{"p99", latency->p99_ns},   {"p99.9", latency->p999_ns}, {"max", latency->max_ns},
	};
	double span_s = view->timeline ? (double)(view->timeline->end_wall_ns - view->timeline->begin_wall_ns) / 1e9
				       : view->window_s;
	char text[FORMAT_SZ];

	page__printf(page, "%s/s", format_weighted(text, span_s > 0 ? latency->count / span_s : NAN));
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (page->column + 14 > page->columns)
			break;
		page__printf(page, "  %s %s", figures[i].name, view_duration(text, sizeof(text), figures[i].ns));
	}
	page__end_line(page);
}

static void print_curves(struct page *page, const struct top_view *view)
{
	const struct timeline *timeline = view->timeline;
	size_t columns = page->columns > 40 ? page->columns - 30 : 10;
	double *values = timeline ? calloc(timeline->bucket_cnt, sizeof(*values)) : NULL;
	char lo_text[FORMAT_SZ], hi_text[FORMAT_SZ];

	for (int curve = 0; values && curve < 2; curve++) {
		double lo = NAN, hi = NAN;

		for (size_t b = 0; b < timeline->bucket_cnt; b++) {
			const struct timeline_bucket *bucket = &timeline->buckets[b];

			/* Latencies span decades. */
			values[b] = curve ? bucket->p50_ns : bucket->p99_ns;
			lo = isnan(lo) ? values[b] : fmin(lo, values[b]);
			hi = isnan(hi) ? values[b] : fmax(hi, values[b]);
			values[b] = isnan(values[b]) ? NAN : log(fmax(values[b], 1));
		}
		page__put(page, curve ? "p50" : "p99");
		page__to(page, 4);
		top_curve(page, values, timeline->bucket_cnt, columns);
		page__to(page, 4 + columns);
		page__line(page, "  %s to %s", view_duration(lo_text, sizeof(lo_text), lo),
			   view_duration(hi_text, sizeof(hi_text), hi));
	}
	free(values);
}

static void print_verdict(struct page *page, const struct top_view *view)
{
	const struct report *report = &view->findings->report;
	const struct cause *first = report->cause_cnt ? &report->causes[0] : NULL;
	char text[FORMAT_SZ];

	page__style(page, PAGE_BOLD);
	if (!report->dataset->row_cnt)
		top_rest(page, "No request ended in this time.");
	else if (!first)
		top_rest(page, "Nothing that was measured sets late requests apart from typical ones.");
	if (first) {
		page__printf(page, "late (%s %s) because: ", page->utf8 ? "≥" : ">=",
			     view_duration(text, sizeof(text), report->tail_threshold_ns));
		page__printf(page, "%s %s ", format_share(text, first->share), top_trend(page, trend_of(view, 0)));
		top_rest(page, first->what ? first->what : category_label(first->category));
	}
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

/* --- the lists -----------------------------------------------------------------------------------------------------
 */

/* Of the longest bar; NAN where that has no end. */
static size_t bar_cells(double share, size_t columns)
{
	return share > 0 ? (size_t)lround(fmin(share, 1) * (double)columns) : 0;
}

static void print_bar(struct page *page, double typical, double late, size_t columns)
{
	size_t full = bar_cells(fmin(typical, late), columns), all = bar_cells(late, columns);

	for (size_t i = 0; i < all; i++)
		page__put(page, i < full ? (page->utf8 ? "█" : "#") : (page->utf8 ? "░" : "+"));
}

static void print_bars(struct page *page, const struct report *report, size_t max)
{
	size_t columns = page->columns > 60 ? page->columns - 46 : 14, shown = 0;
	double longest = 0;
	char text[FORMAT_SZ];

	for (size_t i = 0; i < WL_CATEGORY_CNT; i++)
		if (report->breakdown[i].measured && report->breakdown[i].late_ns > longest)
			longest = report->breakdown[i].late_ns;
	page__heads(page, PAGE_FAINT, {"where time goes", 0}, {"typical", -28}, {"late", -40},
		    {page->utf8 ? "█ typical ░ more when late" : "# typical + more when late", 42});
	for (size_t i = 0; i < WL_CATEGORY_CNT && shown < max; i++) {
		const struct breakdown_line *line = &report->breakdown[i];

		if (!line->measured || !(fmax(line->late_ns, line->typical_ns) > BAR_MIN * longest))
			continue;
		page__to(page, 2);
		page__put(page, category_name(line->category));
		page__right(page, view_duration(text, sizeof(text), line->typical_ns), 28);
		page__right(page, view_duration(text, sizeof(text), line->late_ns), 40);
		page__to(page, 42);
		print_bar(page, line->typical_ns / longest, line->late_ns / longest, columns);
		page__end_line(page);
		shown++;
	}
}

static void print_root_line(struct page *page, const struct top_view *view, size_t number, size_t cause)
{
	const struct cause *line = &view->findings->report.causes[cause];
	const struct timeline_cause *over_time = top_cause_line(view, cause);
	bool chosen = number == view->chosen;
	char text[FORMAT_SZ];

	page__style(page, chosen ? PAGE_CHOSEN : PAGE_PLAIN);
	page__put(page, chosen ? ">" : " ");
	page__right(page, format_share(text, line->share), 7);
	page__put(page, " ");
	page__put(page, top_trend(page, trend_of(view, cause)));
	page__put(page, " ");
	page__to(page, 10);
	if (over_time)
		top_curve(page, over_time->mean_ns, view->timeline->bucket_cnt, CURVE_COLUMNS);
	page__right(page, view_duration(text, sizeof(text), line->gain.p99_ns), 29);
	page__to(page, 31);
	top_rest(page, line->what ? line->what : category_label(line->category));
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

static void print_roots(struct page *page, struct top_view *view, size_t rows)
{
	static const char *const sorts[] = {"share", "what is won", "trend"};
	const struct report *report = &view->findings->report;
	uint32_t *order = calloc(report->cause_cnt + 1, sizeof(*order));
	size_t first;

	if (!order) {
		page->err = -ENOMEM;
		return;
	}
	view_top_order(view, order);
	view->chosen = report->cause_cnt && view->chosen >= report->cause_cnt ? report->cause_cnt - 1 : view->chosen;
	first = view->chosen >= rows ? view->chosen + 1 - rows : 0;
	page__style(page, PAGE_FAINT);
	page__put(page, "  share   over time p99 without  ");
	page__printf(page, "root (by %s", sorts[view->sort]);
	page__printf(page, report->cause_cnt > rows ? ", %zu of %zu)" : ")", rows, report->cause_cnt);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
	for (size_t i = first; i < report->cause_cnt && i < first + rows; i++)
		print_root_line(page, view, i, order[i]);
	free(order);
}

/* The type that has the most late requests but for those before it in that order, SIZE_MAX: the first. */
static size_t next_type(const struct report *report, size_t last)
{
	size_t next = SIZE_MAX;

	for (size_t t = 0; t < report->type_cnt; t++) {
		double share = report->types[t].late_share;
		bool is_after = last == SIZE_MAX || share < report->types[last].late_share ||
				(t > last && !(share > report->types[last].late_share));

		if (t != last && is_after && (next == SIZE_MAX || share > report->types[next].late_share))
			next = t;
	}
	return next;
}

static void print_types(struct page *page, const struct report *report, size_t max)
{
	size_t type = next_type(report, SIZE_MAX);
	char text[FORMAT_SZ];

	page__style(page, PAGE_FAINT);
	page__put(page, "type of request");
	page__right(page, "requests", page->columns - 36);
	page__right(page, "mean", page->columns - 24);
	page__right(page, "p99", page->columns - 12);
	page__right(page, "of late", page->columns);
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
	for (; max && type != SIZE_MAX; max--, type = next_type(report, type)) {
		const struct type_line *line = &report->types[type];

		page__to(page, 2);
		page__name(page, *line->type ? line->type : "(no name)", page->columns - 48);
		page__right(page, format_weighted(text, line->count), page->columns - 36);
		page__right(page, view_duration(text, sizeof(text), line->mean_ns), page->columns - 24);
		page__right(page, view_duration(text, sizeof(text), line->p99_ns), page->columns - 12);
		page__right(page, format_share(text, line->late_share), page->columns);
		page__end_line(page);
	}
}

static size_t bars_wanted(const struct report *report)
{
	size_t cnt = 0;

	for (size_t i = 0; i < WL_CATEGORY_CNT; i++)
		cnt += report->breakdown[i].measured && report->breakdown[i].late_ns > 0;
	return cnt < BARS_MAX ? cnt : BARS_MAX;
}

/* In `rows` rows: bars and types have room first, the roots what is left, which is most of it on a tall terminal. */
static void print_main(struct page *page, struct top_view *view, size_t rows)
{
	const struct report *report = &view->findings->report;
	size_t bars = bars_wanted(report), types = report->type_cnt < TYPES_MAX ? report->type_cnt : TYPES_MAX;

	if (rows < ROWS_LEAST) {
		bars = types = 0;
	} else if (rows < 20) {
		bars = bars < 4 ? bars : 4;
		types = types < 2 ? types : 2;
	}
	if (bars) {
		print_bars(page, report, bars);
		rows -= bars + 1;
	}
	rows -= types ? types + 1 : 0;
	print_roots(page, view, rows > 1 ? rows - 1 : 1);
	for (size_t i = report->cause_cnt + 1; i < rows; i++)
		page__end_line(page);
	if (types)
		print_types(page, report, types);
}

/* --- the frame -----------------------------------------------------------------------------------------------------
 */

/* Copies `rows` lines from the one that is scrolled to, which is clamped to what there is. */
static void put_scrolled(struct page *page, const char *text, struct top_view *view, size_t rows)
{
	size_t lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	if (view->scroll + rows > lines)
		view->scroll = lines > rows ? lines - rows : 0;
	for (size_t line = 0; *text && line < view->scroll + rows; line++) {
		size_t len = strcspn(text, "\n");

		if (line >= view->scroll)
			fprintf(page->out, "%.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
	for (size_t line = lines; line < rows; line++)
		page__end_line(page);
}

static void print_scrolled(struct page *page, struct top_view *view, size_t rows)
{
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);
	struct page body;

	if (!out) {
		page->err = -ENOMEM;
		return;
	}
	page__open(&body, out, page->colour);
	body.columns = page->columns;
	if (view->screen == TOP_HELP)
		top_help(&body);
	else
		top_root(&body, view);
	if (page__close(&body) || fclose(out)) {
		page->err = -ENOMEM;
		free(text);
		return;
	}
	put_scrolled(page, text, view, rows);
	free(text);
}

static void print_footer(struct page *page, const struct top_view *view)
{
	page__style(page, PAGE_FAINT);
	if (view->typing) {
		page__style(page, PAGE_PLAIN);
		page__put(page, "only requests of type (a glob): ");
		page->columns--;
		top_rest(page, view->typing);
		page->columns++;
		page__put(page, "_");
	} else if (view->message) {
		page__style(page, PAGE_PLAIN);
		top_rest(page, view->message);
	} else if (view->screen != TOP_MAIN) {
		page__put(page, "Esc back  j k scroll  n next root  q quit");
	} else if (view->is_live) {
		page__put(page, "q quit  p pause  / type  Enter root  s sort  e page  ? help");
	} else {
		page__put(page, "q quit  p pause  + - speed  . , step  / type  Enter root  s sort  e page  ? help");
	}
	page__style(page, PAGE_PLAIN);
	page__end_line(page);
}

int view_top(FILE *out, struct top_view *view)
{
	struct page page;
	size_t head = 6, rows = view->rows > head + 3 ? view->rows - head - 1 : 3;

	page__open(&page, out, view->colour);
	page.columns = view->columns > 40 ? view->columns : 40;
	print_title(&page, view);
	if (view->screen == TOP_HELP) {
		print_scrolled(&page, view, view->rows > 3 ? view->rows - 2 : 1);
	} else if (!view->findings) {
		page__end_line(&page);
		page__put(&page,
			  view->shown_wall_ns ? "Nothing was recorded in this time." : "Nothing was recorded yet.");
		for (size_t i = 3; i == 3 || i < view->rows; i++)
			page__end_line(&page);
	} else {
		print_trust(&page, view);
		print_figures(&page, view);
		print_curves(&page, view);
		print_verdict(&page, view);
		if (view->screen == TOP_ROOT)
			print_scrolled(&page, view, rows);
		else
			print_main(&page, view, rows);
	}
	print_footer(&page, view);
	return page__close(&page);
}

/* --- lines for a pipe ----------------------------------------------------------------------------------------------
 */

int view_top_heading(FILE *out)
{
	struct page page;

	page__open(&page, out, false);
	page__put(&page, "time");
	page__right(&page, "requests/s", 21);
	page__right(&page, "p50", 32);
	page__right(&page, "p99", 43);
	page__right(&page, "loss", 50);
	page__right(&page, "cost", 57);
	page__to(&page, 59);
	page__put(&page, "late because");
	page__end_line(&page);
	return page__close(&page);
}

int view_top_line(FILE *out, const struct top_view *view)
{
	const struct report *report = &view->findings->report;
	const struct timeline *timeline = view->timeline;
	const struct timeline_bucket *last = &timeline->buckets[timeline->bucket_cnt - 1];
	double bucket_s =
		(double)(timeline->end_wall_ns - timeline->begin_wall_ns) / 1e9 / (double)timeline->bucket_cnt;
	time_t seconds = (time_t)(view->shown_wall_ns / 1000000000);
	char text[FORMAT_SZ], clock[16] = "";
	struct page page;
	struct tm tm;

	page__open(&page, out, false);
	page.columns = SIZE_MAX;
	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	page__put(&page, clock);
	page__right(&page, format_weighted(text, last->count / bucket_s), 21);
	page__right(&page, view_duration(text, sizeof(text), last->p50_ns), 32);
	page__right(&page, view_duration(text, sizeof(text), last->p99_ns), 43);
	page__right(&page, report->records_lost_share > 0 ? format_share(text, report->records_lost_share) : "none",
		    50);
	page__right(&page, format_share(text, report->dataset->cost_share), 57);
	page__to(&page, 59);
	if (report->cause_cnt) {
		const struct cause *first = &report->causes[0];

		page__printf(&page, "%s %s ", format_share(text, first->share), top_trend(&page, trend_of(view, 0)));
		top_rest(&page, first->what ? first->what : category_label(first->category));
	} else {
		page__put(&page, format_dash());
	}
	page__end_line(&page);
	return page__close(&page);
}
