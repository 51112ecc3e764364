// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/timeline.h"
#include "base/utf8.h"
#include "test_analysis_fixture.h"
#include "unit.h"
#include "view/top.h"
#include "view_fixture.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ULL

/* --- curves --------------------------------------------------------------------------------------------------------
 */

static int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* A timeline's buckets against each row looked at one by one. */
static void buckets_hold_what_ended_in_them(void)
{
	enum { ROWS = 2000, BUCKETS = 12 };
	static uint64_t row_ns[ROWS], latencies[ROWS], begin_ts[ROWS];
	static bool ranked[ROWS];
	int64_t clock_ns = 5000 * (int64_t)SECOND_NS;
	uint64_t state = 3, begin_ns = (uint64_t)clock_ns + 10 * SECOND_NS, span_ns = 60 * SECOND_NS;
	struct cause cause = {.row_ns = row_ns};
	struct analysis_fixture fixture;
	struct timeline timeline;
	struct report report;

	analysis_fixture_init(&fixture, ROWS);
	fixture.dataset.session_clock_ns = &clock_ns;
	fixture.dataset.begin_ts = begin_ts;
	for (size_t row = 0; row < ROWS; row++) {
		begin_ts[row] = (uint64_t)(fixture_uniform(&state) * 80e9);
		fixture_add(&fixture, row, WL_CATEGORY_ONCPU, (uint64_t)(1e6 * fixture_exponential(&state)));
		row_ns[row] = row % 3 ? 0 : fixture.dataset.latency_ns[row] / 2;
		ranked[row] = row % 7 != 0;
	}
	report = (struct report){.dataset = &fixture.dataset, .causes = &cause, .cause_cnt = 1, .ranked = ranked};
	CU_ASSERT_EQUAL_FATAL(timeline_make(&timeline, &report, begin_ns, begin_ns + span_ns, BUCKETS), 0);
	for (size_t b = 0; b < BUCKETS; b++) {
		uint64_t from = begin_ns + b * span_ns / BUCKETS, to = begin_ns + (b + 1) * span_ns / BUCKETS;
		size_t cnt = 0, ranked_cnt = 0;
		double sum = 0;

		for (size_t row = 0; row < ROWS; row++) {
			uint64_t end_ns = begin_ts[row] + fixture.dataset.latency_ns[row] + (uint64_t)clock_ns;

			if (end_ns < from || end_ns >= to)
				continue;
			latencies[cnt++] = fixture.dataset.latency_ns[row];
			ranked_cnt += ranked[row];
			sum += ranked[row] ? (double)row_ns[row] : 0;
		}
		qsort(latencies, cnt, sizeof(*latencies), compare_u64);
		CU_ASSERT_EQUAL(timeline.buckets[b].count, (double)cnt);
		CU_ASSERT_EQUAL(timeline.buckets[b].p50_ns, (double)latencies[(size_t)ceil(0.50 * cnt) - 1]);
		CU_ASSERT_EQUAL(timeline.buckets[b].p99_ns, (double)latencies[(size_t)ceil(0.99 * cnt) - 1]);
		CU_ASSERT_DOUBLE_EQUAL(timeline.causes[0].mean_ns[b], sum / ranked_cnt, 1e-3);
	}
	timeline_free(&timeline);
	fixture.dataset.begin_ts = NULL;
	analysis_fixture_free(&fixture);
}

/* A cause that takes `factor` times as long in the last quarter; with so many intervals that meet it. */
static double trend_with(double factor, size_t met_each)
{
	enum { ROWS = 400 };
	static uint64_t row_ns[ROWS], begin_ts[ROWS];
	int64_t clock_ns = (int64_t)SECOND_NS;
	struct cause cause = {.row_ns = row_ns};
	struct analysis_fixture fixture;
	struct timeline timeline;
	struct report report;
	double trend;

	analysis_fixture_init(&fixture, ROWS);
	fixture.dataset.session_clock_ns = &clock_ns;
	fixture.dataset.begin_ts = begin_ts;
	for (size_t row = 0; row < ROWS; row++) {
		begin_ts[row] = row * SECOND_NS / 10;
		fixture_add(&fixture, row, WL_CATEGORY_LOCK, 1000);
		row_ns[row] = row % met_each ? 0 : (uint64_t)(1000 * (row >= ROWS * 3 / 4 ? factor : 1));
	}
	report = (struct report){.dataset = &fixture.dataset, .causes = &cause, .cause_cnt = 1};
	CU_ASSERT_EQUAL(timeline_make(&timeline, &report, (uint64_t)clock_ns, (uint64_t)clock_ns + 40 * SECOND_NS, 40),
			0);
	trend = timeline.causes[0].trend;
	timeline_free(&timeline);
	fixture.dataset.begin_ts = NULL;
	analysis_fixture_free(&fixture);
	return trend;
}

static void trends_compare_the_last_quarter(void)
{
	CU_ASSERT_DOUBLE_EQUAL(trend_with(1, 4), 1, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(trend_with(5, 4), 5, 0.2);
	CU_ASSERT_DOUBLE_EQUAL(trend_with(0.1, 4), 0.1, 0.02);
	CU_ASSERT_EQUAL(trend_with(0, 4), 0);
	/* Too few that met it. */
	CU_ASSERT(isnan(trend_with(5, 80)));
}

static void without_an_interval_there_is_no_value(void)
{
	struct analysis_fixture fixture;
	struct timeline timeline;
	struct report report;
	uint64_t begin_ts[1] = {0};
	int64_t clock_ns = 0;

	/* This one's time of day is not known. */
	analysis_fixture_init(&fixture, 1);
	fixture.dataset.session_clock_ns = &clock_ns;
	fixture.dataset.begin_ts = begin_ts;
	report = (struct report){.dataset = &fixture.dataset};
	CU_ASSERT_EQUAL(timeline_make(&timeline, &report, 0, 10 * SECOND_NS, 4), 0);
	for (size_t b = 0; b < 4; b++) {
		CU_ASSERT_EQUAL(timeline.buckets[b].count, 0);
		CU_ASSERT(isnan(timeline.buckets[b].p50_ns) && isnan(timeline.buckets[b].p99_ns));
	}
	timeline_free(&timeline);
	fixture.dataset.begin_ts = NULL;
	analysis_fixture_free(&fixture);
}

/* --- frames --------------------------------------------------------------------------------------------------------
 */

struct frame_fixture {
	struct fixture fixture;
	struct findings *findings;
	struct timeline timeline;
	struct timeline_bucket buckets[8];
	struct timeline_cause causes[3];
	double means[8];
};

static void frame_init(struct frame_fixture *frame)
{
	fixture_init(&frame->fixture);
	frame->findings = calloc(1, sizeof(*frame->findings));
	CU_ASSERT_FATAL(frame->findings != NULL);
	frame->findings->report = frame->fixture.report;
	frame->findings->dataset = frame->fixture.dataset;
	frame->findings->report.dataset = &frame->findings->dataset;
	frame->findings->dataset.cost_share = 0.012;
	for (size_t b = 0; b < 8; b++) {
		frame->buckets[b] =
			(struct timeline_bucket){100, b == 3 ? NAN : 1e5, b == 3 ? NAN : 1e6 * (double)(b + 1)};
		frame->means[b] = b == 3 ? NAN : (double)b;
	}
	for (size_t c = 0; c < 3; c++)
		frame->causes[c] = (struct timeline_cause){frame->means, c ? NAN : 3};
	frame->timeline = (struct timeline){0, 8 * SECOND_NS, 8, frame->buckets, frame->causes, 3};
}

static char *frame_of(struct frame_fixture *frame, struct top_view *view)
{
	char *text = NULL;
	size_t sz;
	FILE *out = open_memstream(&text, &sz);

	view->findings = frame->findings;
	view->timeline = &frame->timeline;
	view->window_s = 60;
	CU_ASSERT_EQUAL(view_top(out, view), 0);
	fclose(out);
	return text;
}

/*
 * No more lines than the screen has, no character acts on the terminal; on one that is not tiny no line is wider than
 * it (elsewhere the painter cuts them).
 */
static void check_fits(const char *text, const struct top_view *view)
{
	size_t lines = 0;

	for (const char *at = text; *at; lines++) {
		size_t len = strcspn(at, "\n");
		char *line = strndup(at, len);
		const char *rest = line;
		uint32_t codepoint;

		CU_ASSERT(view->columns < 80 || utf8_width(line) <= view->columns);
		while (*rest) {
			CU_ASSERT(utf8_next(&rest, &codepoint));
			CU_ASSERT(!utf8_acts(codepoint));
		}
		free(line);
		at += len + (at[len] == '\n');
	}
	CU_ASSERT(lines <= view->rows);
}

static void frames_fit_and_are_harmless(void)
{
	static const size_t sizes[][2] = {{24, 80}, {60, 200}, {16, 80}, {10, 60}, {24, 60}};
	static const char *const names[] = {HOSTILE,
					    "a name that is longer than any line of a terminal, by far: it goes "
					    "on and on and on, and then some more, until nobody reads it"};
	static const char *const locales[] = {"C", "C.UTF-8"};

	for (size_t i = 0; i < 5 * 2 * 2 * 3; i++) {
		const char *name = names[i % 2];
		const char *path[] = {name, name};
		struct frame_fixture frame;
		struct top_view view = {
			.rows = sizes[i / 12][0],
			.columns = sizes[i / 12][1],
			.screen = (enum top_screen)(i / 4 % 3),
			.type = name,
			.message = name,
		};
		char *text;

		setlocale(LC_CTYPE, locales[i / 2 % 2]);
		frame_init(&frame);
		frame.findings->dataset.comm = frame.findings->dataset.host = name;
		for (size_t c = 0; c < frame.findings->report.cause_cnt; c++)
			frame.fixture.causes[c].what = name;
		frame.fixture.causes[0].root.call_path = path;
		frame.fixture.causes[0].root.call_path_cnt = 2;
		frame.fixture.types[0].type = name;
		text = frame_of(&frame, &view);
		check_fits(text, &view);
		free(text);
		view.typing = name;
		text = frame_of(&frame, &view);
		check_fits(text, &view);
		free(text);
		free(frame.findings);
		setlocale(LC_CTYPE, "C");
	}
}

static void a_frame_tells_verdict_trend_loss_and_cost(void)
{
	struct top_view view = {.rows = 24, .columns = 80, .is_live = true};
	struct frame_fixture frame;
	char *text;

	frame_init(&frame);
	text = frame_of(&frame, &view);
	CU_ASSERT(strstr(text, "because: 41 % ^ waiting for a CPU; `backup` (pid 901)") != NULL);
	CU_ASSERT(strstr(text, "loss none") != NULL);
	CU_ASSERT(strstr(text, "cost 1 % of its CPU") != NULL);
	CU_ASSERT(strstr(text, "redis-server (pid 812) on host7") != NULL);
	free(text);
	frame.findings->dataset.loss[WL_LOSS_INTERVAL].lost = frame.findings->dataset.records_lost = 7;
	frame.findings->report.records_lost_share = 0.03;
	frame.findings->dataset.cost_share = NAN;
	text = frame_of(&frame, &view);
	CU_ASSERT(strstr(text, "loss 3 %") != NULL);
	CU_ASSERT(strstr(text, "cost not known") != NULL);
	free(text);
	free(frame.findings);
}

/* Rows that lie can add up to no number: of a bar without end the share is not one. */
static void a_bar_without_end_fits(void)
{
	struct top_view view = {.rows = 40, .columns = 80};
	struct frame_fixture frame;
	char *text;

	frame_init(&frame);
	for (size_t i = 0; i < WL_CATEGORY_CNT; i++) {
		struct breakdown_line *line = &frame.findings->report.breakdown[i];

		line->category = (enum wl_category)i;
		line->measured = true;
		line->late_ns = INFINITY;
		line->typical_ns = 1000;
	}
	text = frame_of(&frame, &view);
	CU_ASSERT(strstr(text, "where time goes") != NULL);
	check_fits(text, &view);
	free(text);
	free(frame.findings);
}

/* Shares as a small budget has them: the line becomes shorter before anything of it is cut off. */
static void what_was_observed_fits(void)
{
	static const struct {
		size_t columns;
		const char *text;
	} cases[] = {
		{100, "observed below 0.1 % of the time"},
		{80, "own below 0.1 %  observed below 0.1 %  only"},
		{60, "cost below 0.1 %  observed below 0.1 %"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct top_view view = {.rows = 24, .columns = cases[i].columns, .type = i ? HOSTILE : NULL};
		struct frame_fixture frame;
		char *text;

		frame_init(&frame);
		frame.findings->dataset.cost_share = 0.0004;
		frame.findings->dataset.window_cnt = 12;
		frame.findings->dataset.duration_s = 60;
		frame.findings->dataset.window_selecting_s = 0.02;
		frame.findings->report.our_own.known = true;
		frame.findings->report.our_own.share = 0.0004;
		text = frame_of(&frame, &view);
		CU_ASSERT(strstr(text, cases[i].text) != NULL);
		check_fits(text, &view);
		free(text);
		free(frame.findings);
	}
}

static void roots_are_sorted(void)
{
	struct top_view view = {.rows = 24, .columns = 80};
	struct frame_fixture frame;
	uint32_t order[3];

	frame_init(&frame);
	view.findings = frame.findings;
	view.timeline = &frame.timeline;
	CU_ASSERT_EQUAL_FATAL(frame.findings->report.cause_cnt, 3);
	frame.fixture.causes[0].gain.p99_ns = 3e6;
	frame.fixture.causes[1].gain.p99_ns = 1e6;
	frame.fixture.causes[2].gain.p99_ns = NAN;
	frame.causes[0].trend = 0.5;
	frame.causes[2].trend = 4;
	view_top_order(&view, order);
	CU_ASSERT(order[0] == 0 && order[1] == 1 && order[2] == 2);
	view.sort = TOP_BY_GAIN;
	view_top_order(&view, order);
	CU_ASSERT(order[0] == 1 && order[1] == 0 && order[2] == 2);
	view.sort = TOP_BY_TREND;
	view_top_order(&view, order);
	CU_ASSERT(order[0] == 2 && order[1] == 0 && order[2] == 1);
	free(frame.findings);
}

int suite_top(void)
{
	static const struct unit_test tests[] = {
		{"buckets hold what ended in them", buckets_hold_what_ended_in_them},
		{"trends compare the last quarter", trends_compare_the_last_quarter},
		{"without an interval there is no value", without_an_interval_there_is_no_value},
		{"frames fit and are harmless", frames_fit_and_are_harmless},
		{"a frame tells verdict, trend, loss and cost", a_frame_tells_verdict_trend_loss_and_cost},
		{"what was observed fits", what_was_observed_fits},
		{"a bar without end fits", a_bar_without_end_fits},
		{"roots are sorted", roots_are_sorted},
	};

	return unit_suite("top", tests, sizeof(tests) / sizeof(tests[0]));
}
