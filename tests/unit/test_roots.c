// SPDX-License-Identifier: GPL-2.0-or-later
/* Recordings with planted roots, and what is found of them. */
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"
#include "wire_fields.h"

#include "analysis/compare.h"
#include "analysis/findings.h"
#include "fleet/causes.h"
#include "view/export.h"
#include "view/view.h"
#include "view/words.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MS 1000000ULL
#define US 1000ULL

/* --- a server with an event loop: two kinds of requests hold up themselves and those behind them -------------------
 */

#define SERVER   200 /* pid and tid */
#define PERIODS  1500
#define QUEUED   4 /* requests behind a slow one */
#define SERVE_NS (100 * US)

enum { ASKED = 5, ASKED_AGAIN = 6 }; /* contexts */

enum { REBUILD, REPORT, SERVE, PLANT_CNT };

/* What was planted in one request. */
struct planted {
	uint64_t ns[PLANT_CNT], latency_ns;
};

struct loop {
	struct row_writer to;
	struct planted requests[PERIODS * (QUEUED + 1)];
	size_t cnt;
	uint64_t state, next_tick_ts, tick_ns;
	bool without_report;
	bool in_context; /* what rebuilds was handed on */
};

static void put_tick(struct loop *loop, uint64_t ts, const char *frames)
{
	row_begin(&loop->to, SHARD_TABLE_STACK);
	row_set_ts(&loop->to, STACK_TS, ts);
	row_set_u64(&loop->to, STACK_PID, SERVER);
	row_set_u64(&loop->to, STACK_TID, SERVER);
	row_set_str(&loop->to, STACK_STATE, "running");
	row_set_str(&loop->to, STACK_FRAMES, frames);
	loop->to.row.nulls[STACK_PERIOD_NS / 64] &= ~(1ULL << STACK_PERIOD_NS % 64);
	loop->to.row.values[STACK_PERIOD_NS].f64 = (double)loop->tick_ns;
	row_end(&loop->to, SHARD_TABLE_STACK);
}

/* The thread runs; jittered ticks meet two functions beneath `function`. */
static void run(struct loop *loop, uint64_t begin_ts, uint64_t end_ts, uint64_t sid, const char *function)
{
	char frames[128];

	row_put_segment(&loop->to, SERVER, begin_ts, end_ts, "running", sid);
	while (loop->tick_ns && loop->next_tick_ts < end_ts) {
		snprintf(frames, sizeof(frames), "_start;main;loop;%s;%s", function,
			 fixture_uniform(&loop->state) < 0.6 ? "copy" : "compare");
		if (loop->next_tick_ts >= begin_ts)
			put_tick(loop, loop->next_tick_ts, frames);
		loop->next_tick_ts += (uint64_t)((double)loop->tick_ns * (0.5 + fixture_uniform(&loop->state)));
	}
}

static void put_request(struct loop *loop, uint64_t begin_ts, uint64_t end_ts, const struct planted *planted)
{
	struct planted *to = &loop->requests[loop->cnt++];

	*to = *planted;
	to->latency_ns = end_ts - begin_ts;
	row_begin_interval(&loop->to, loop->cnt, SERVER, "tcp:80", begin_ts, end_ts, 0, 0);
	if (loop->in_context && planted->ns[REBUILD] && !planted->ns[SERVE])
		row_set_u64(&loop->to, INTERVAL_CONTEXT, ASKED_AGAIN);
	row_end(&loop->to, SHARD_TABLE_INTERVAL);
}

static void put_context(struct loop *loop, uint64_t id, uint64_t parent, const char *frames)
{
	row_begin(&loop->to, SHARD_TABLE_CONTEXT);
	row_set_ts(&loop->to, CONTEXT_TS, 1000);
	row_set_u64(&loop->to, CONTEXT_ID, id);
	if (parent)
		row_set_u64(&loop->to, CONTEXT_PARENT, parent);
	row_set_str(&loop->to, CONTEXT_KIND, "socket");
	row_set_u64(&loop->to, CONTEXT_PATH, id * 77);
	row_set_u64(&loop->to, CONTEXT_PID, SERVER);
	row_set_u64(&loop->to, CONTEXT_TID, SERVER);
	row_set_str(&loop->to, CONTEXT_FRAMES, frames);
	row_end(&loop->to, SHARD_TABLE_CONTEXT);
}

/* A slow request, and some that arrive meanwhile. */
static void put_slow(struct loop *loop, uint64_t begin_ts, uint64_t ns, int plant, const char *function)
{
	uint64_t sid = loop->cnt + 1, end_ts = begin_ts + ns;
	struct planted planted = {.latency_ns = 0};

	planted.ns[plant] = ns;
	run(loop, begin_ts, end_ts, sid, function);
	put_request(loop, begin_ts, end_ts, &planted);
	for (uint64_t q = 1; q <= QUEUED; q++) {
		uint64_t arrival_ts = begin_ts + q * (ns / (QUEUED + 1));

		planted = (struct planted){.ns = {[SERVE] = q * SERVE_NS}};
		planted.ns[plant] = begin_ts + ns - arrival_ts;
		run(loop, end_ts, end_ts + SERVE_NS, loop->cnt + 1, "serve");
		end_ts += SERVE_NS;
		put_request(loop, arrival_ts, end_ts, &planted);
	}
}

static void loop_write_session(struct loop *loop, const char *dir, uint64_t session_id)
{
	row_writer_open(&loop->to, dir, "host", session_id, SERVER);
	row_put_session(&loop->to, "pid", "200");
	row_put_thread(&loop->to, SERVER, SERVER, "server");
	if (loop->in_context) {
		put_context(loop, ASKED, 0, "main;loop;ask");
		put_context(loop, ASKED_AGAIN, ASKED, "main;loop;again");
	}
	for (uint64_t k = 0; k < PERIODS; k++) {
		uint64_t begin_ts = (k + 1) * 20 * MS;
		const struct planted typical = {.ns = {[SERVE] = SERVE_NS}};

		if (k % 50 == 10) {
			put_slow(loop, begin_ts, 10 * MS, REBUILD, "rebuild");
		} else if (k % 50 == 35 && !loop->without_report) {
			put_slow(loop, begin_ts, 6 * MS, REPORT, "report");
		} else {
			run(loop, begin_ts, begin_ts + SERVE_NS, loop->cnt + 1, "serve");
			put_request(loop, begin_ts, begin_ts + SERVE_NS, &typical);
		}
	}
	row_writer_close(&loop->to);
}

static void loop_write(struct loop *loop, const char *dir, uint64_t tick_ns)
{
	*loop = (struct loop){.state = 7, .tick_ns = tick_ns};
	loop_write_session(loop, dir, 0x99);
}

struct found {
	struct test_dir dir;
	struct shard_reader *reader;
	struct findings findings;
};

static void found_make(struct found *found, double tail)
{
	const struct findings_opts opts = {.tail = tail, .bootstrap_cnt = 100};

	found->reader = test_reader__open(found->dir.path);
	CU_ASSERT_EQUAL_FATAL(findings_make(&found->findings, found->reader, &opts), 0);
}

static void found_free(struct found *found)
{
	findings_free(&found->findings);
	shard_reader__free(found->reader);
	test_dir__remove(&found->dir);
}

/* --- what a database is told of it ---------------------------------------------------------------------------------
 */

struct told {
	const struct loop *loop;
	size_t causes, late;
	uint64_t first_sid, last_sid;
	double late_weight, tail_weight;
};

static int take_cause(void *owner, const struct project_cause *cause)
{
	struct told *told = owner;

	CU_ASSERT_EQUAL(cause->rank, told->causes++);
	if (!cause->rank) {
		told->tail_weight = cause->tail_weight;
	} else if (cause->rank == 1) {
		CU_ASSERT_STRING_EQUAL(cause->function, "rebuild");
		CU_ASSERT_EQUAL_FATAL(cause->late_sid > 0 && cause->late_sid <= told->loop->cnt, true);
		CU_ASSERT_EQUAL(told->loop->requests[cause->late_sid - 1].ns[REBUILD], 10 * MS);
	}
	return 0;
}

static int take_late(void *owner, const struct project_late *late)
{
	struct told *told = owner;
	const struct planted *planted = &told->loop->requests[late->sid - 1];

	CU_ASSERT_EQUAL(late->rank, 1);
	CU_ASSERT_EQUAL(late->latency_ns, planted->latency_ns);
	CU_ASSERT_EQUAL(late->ns, planted->ns[REBUILD]);
	told->late++;
	told->late_weight += late->weight;
	told->first_sid = late->sid < told->first_sid ? late->sid : told->first_sid;
	told->last_sid = late->sid > told->last_sid ? late->sid : told->last_sid;
	return 0;
}

/* Of the segment alone: its causes, and which of them held up each of its late requests. */
static void late_requests_are_told_by_their_root(void)
{
	static const uint64_t ends[] = {PERIODS * 30 * MS, PERIODS * 10 * MS};
	static struct loop loop;
	struct test_dir dir;
	const char *path = dir.path;

	test_dir__make(&dir);
	loop_write(&loop, dir.path, MS);
	for (size_t half = 0; half < 2; half++) {
		struct told told = {.loop = &loop, .first_sid = UINT64_MAX};
		const struct project_sink sink = {.cause = take_cause, .late = take_late, .owner = &told};
		struct project_segment segment = {0, ends[half], &path, 1};

		CU_ASSERT_EQUAL(project_causes(NULL, &segment, &sink), 0);
		CU_ASSERT(told.causes > 1 && told.late > 0);
		CU_ASSERT_DOUBLE_EQUAL(told.tail_weight, (double)loop.cnt / 100 / (double)(1 + half), 1);
		CU_ASSERT_DOUBLE_EQUAL(told.late_weight, (double)told.late, 1e-9);
		CU_ASSERT_EQUAL(told.late, PERIODS / 50 / (1 + half));
		CU_ASSERT(half ? told.last_sid <= loop.cnt / 2 : told.last_sid > loop.cnt / 2);
	}
	test_dir__remove(&dir);
}

static int take_lock_cause(void *owner, const struct project_cause *cause)
{
	*(uint64_t *)owner = cause->rank == 1 ? cause->late_sid : 0;
	return 0;
}

static int take_lock_late(void *owner, const struct project_late *late)
{
	CU_ASSERT(late->sid == *(uint64_t *)owner && late->rank == 1 && late->ns == 8 * MS);
	return 0;
}

/* Without chains of who waited for whom, a cause is a category. */
static void late_requests_are_told_by_their_category(void)
{
	uint64_t sid = 0;
	const struct project_sink sink = {.cause = take_lock_cause, .late = take_lock_late, .owner = &sid};
	struct project_segment segment = {.until_ts = PROJECT_HOUR_NS, .path_cnt = 1};
	struct row_writer to;
	struct test_dir dir;
	const char *path = dir.path;

	test_dir__make(&dir);
	row_writer_open(&to, dir.path, "host", 0x99, SERVER);
	for (uint64_t i = 1; i <= 100; i++)
		row_put_interval(&to, i, SERVER, "tcp:80", i * 20 * MS, i * 20 * MS + (i == 77 ? 9 : 1) * MS,
				 i == 77 ? 8 * MS : 0, 0);
	row_writer_close(&to);
	segment.paths = &path;
	CU_ASSERT_EQUAL(project_causes(NULL, &segment, &sink), 0);
	CU_ASSERT_EQUAL(sid, 77);
	test_dir__remove(&dir);
}

/* --- two recordings, of which one has a cause that the other has not ------------------------------------------------
 */

#define SESSION_A 0x99
#define SESSION_B 0x9a

static bool on_call_path(const struct cause *cause, const char *function)
{
	for (size_t f = 0; f < cause->root.call_path_cnt; f++)
		if (!strcmp(cause->root.call_path[f], function))
			return true;
	return false;
}

static bool on_path(const struct compare_line *line, const char *function)
{
	return line->root && on_call_path(line->root, function);
}

static void check_lines(const struct comparison *comparison)
{
	double mean = 0, late = 0, reports = 0;
	size_t others = 0;

	for (size_t l = 0; l < comparison->roots.cnt; l++) {
		const struct compare_line *line = &comparison->roots.lines[l];

		mean += line->mean_diff.value;
		late += line->late_diff.value;
		if (on_path(line, "report") && line->mean_diff.differs)
			reports += line->mean_diff.value;
		else if (line->mean_diff.differs || line->late_diff.differs)
			others += !on_path(line, "serve");
	}
	CU_ASSERT_DOUBLE_EQUAL(
		mean, comparison->metrics[0].like_ns[COMPARE_B] - comparison->metrics[0].like_ns[COMPARE_A], 5);
	CU_ASSERT(reports > 0.8 * mean && reports < 1.2 * mean);
	CU_ASSERT_EQUAL(others, 0);
	CU_ASSERT(isfinite(late));
}

static void what_is_new_is_the_root_that_differs(void)
{
	static struct loop loop;
	const struct compare_opts none = {.tail = 0.9, .bootstrap_cnt = 200, .limits = {0, NAN, NAN, 0, NAN}};
	const struct dataset_filter filter = {.without_events = true};
	struct compare_opts opts = none;
	struct comparison comparison;
	struct findings *findings;
	struct found found;
	uint8_t *sides;

	test_dir__make(&found.dir);
	loop = (struct loop){.state = 7, .tick_ns = MS, .without_report = true};
	loop_write_session(&loop, found.dir.path, SESSION_A);
	loop.without_report = false;
	loop.cnt = 0;
	loop.next_tick_ts = 0;
	loop_write_session(&loop, found.dir.path, SESSION_B);
	found.reader = test_reader__open(found.dir.path);
	findings = &found.findings;
	CU_ASSERT_EQUAL_FATAL(dataset_load(&findings->dataset, found.reader, &filter), 0);
	CU_ASSERT_EQUAL_FATAL(findings_follow(findings, found.reader, false), 1);
	sides = calloc(findings->dataset.row_cnt, 1);
	CU_ASSERT_FATAL(sides != NULL);
	for (size_t row = 0; row < findings->dataset.row_cnt; row++)
		sides[row] = findings->dataset.session_ids[findings->dataset.session[row]] == SESSION_A ? COMPARE_IN_A
													: COMPARE_IN_B;
	opts.paths = &findings->paths;
	opts.roots = &findings->roots;
	CU_ASSERT_EQUAL_FATAL(comparison_make(&comparison, &findings->dataset, sides, &opts), 0);
	CU_ASSERT_EQUAL(comparison.verdict, COMPARE_WORSE);
	CU_ASSERT_TRUE(comparison.exceeds);
	check_lines(&comparison);
	comparison_free(&comparison);
	free(sides);
	findings_unfollow(findings);
	dataset_free(&findings->dataset);
	shard_reader__free(found.reader);
	test_dir__remove(&found.dir);
}

/* --- for pprof ------------------------------------------------------------------------------------------------------
 */

/* What the samples of a profile sum to. */
struct pprof_sums {
	int64_t values[3];
	size_t samples, labels, strings, functions, bad;
	size_t handed_on; /* strings that are that context */
};

#define HANDED_ON "after socket asked by ask; then socket asked by again"

static void see_sample(struct pprof_sums *sums, const struct field *sample)
{
	const uint8_t *at = sample->bytes, *end = at + sample->value;
	struct field field;

	sums->samples++;
	while (next_field(&at, end, &field)) {
		const uint8_t *value = field.bytes, *value_end = value ? value + field.value : NULL;
		uint64_t number;
		size_t i = 0;

		sums->labels += field.number == 3;
		while (field.number == 2 && value && next_varint(&value, value_end, &number))
			sums->values[i++ % 3] += (int64_t)number;
		sums->bad += field.number == 2 && i != 3;
	}
	sums->bad += at != end;
}

static void read_profile(struct pprof_sums *sums, uint8_t *gzip, size_t sz)
{
	static uint8_t profile[1 << 20];
	z_stream stream = {.next_in = gzip, .avail_in = (uInt)sz, .next_out = profile, .avail_out = sizeof(profile)};
	const uint8_t *at = profile, *end;
	struct field field;

	*sums = (struct pprof_sums){0};
	CU_ASSERT_EQUAL_FATAL(inflateInit2(&stream, 15 + 16), Z_OK);
	CU_ASSERT_EQUAL_FATAL(inflate(&stream, Z_FINISH), Z_STREAM_END);
	end = profile + stream.total_out;
	inflateEnd(&stream);
	while (next_field(&at, end, &field)) {
		sums->strings += field.number == 6;
		sums->functions += field.number == 5;
		sums->handed_on += field.number == 6 && field.value == strlen(HANDED_ON) &&
				   !memcmp(field.bytes, HANDED_ON, strlen(HANDED_ON));
		if (field.number == 2)
			see_sample(sums, &field);
	}
	CU_ASSERT_PTR_EQUAL(at, end);
}

static void a_profile_for_pprof_sums_to_the_latency(void)
{
	static struct loop loop;
	struct pprof_sums sums;
	struct found found;
	char *bytes = NULL;
	double late_ns = 0, typical_ns = 0, late_cnt = 0, typical_cnt = 0;
	size_t sz;
	FILE *out;

	test_dir__make(&found.dir);
	loop_write(&loop, found.dir.path, MS);
	found_make(&found, 0.9);
	out = open_memstream(&bytes, &sz);
	CU_ASSERT_EQUAL(export_pprof(out, &found.findings.dataset, &found.findings.paths, &found.findings.roots, 0.9),
			0);
	fclose(out);
	read_profile(&sums, (uint8_t *)bytes, sz);
	for (size_t i = 0; i < loop.cnt; i++) {
		double ns = (double)loop.requests[i].latency_ns;

		late_ns += ns >= found.findings.report.tail_threshold_ns ? ns : 0;
		late_cnt += ns >= found.findings.report.tail_threshold_ns;
		typical_ns += ns <= found.findings.report.typical_ns ? ns : 0;
		typical_cnt += ns <= found.findings.report.typical_ns;
	}
	CU_ASSERT_EQUAL(sums.bad, 0);
	CU_ASSERT(sums.samples > 5 && sums.labels >= 3 * sums.samples && sums.functions > 4);
	/* Each sample is rounded. */
	CU_ASSERT_DOUBLE_EQUAL((double)sums.values[0], late_ns / late_cnt, (double)sums.samples);
	CU_ASSERT_DOUBLE_EQUAL((double)sums.values[1], typical_ns / typical_cnt, (double)sums.samples);
	CU_ASSERT_EQUAL(sums.values[2], sums.values[0] - sums.values[1]);
	free(bytes);
	found_free(&found);
}

/* Late minus typical of what was planted, as a share of all of it. */
static double planted_share(const struct loop *loop, const struct report *report, int plant)
{
	double late[PLANT_CNT] = {0}, typical[PLANT_CNT] = {0}, late_cnt = 0, typical_cnt = 0, all = 0;

	for (size_t i = 0; i < loop->cnt; i++) {
		double latency_ns = (double)loop->requests[i].latency_ns;

		late_cnt += latency_ns >= report->tail_threshold_ns;
		typical_cnt += latency_ns <= report->latency.p50_ns;
		for (int p = 0; p < PLANT_CNT; p++) {
			late[p] += latency_ns >= report->tail_threshold_ns ? (double)loop->requests[i].ns[p] : 0;
			typical[p] += latency_ns <= report->latency.p50_ns ? (double)loop->requests[i].ns[p] : 0;
		}
	}
	for (int p = 0; p < PLANT_CNT; p++)
		all += late[p] / late_cnt - typical[p] / typical_cnt;
	return (late[plant] / late_cnt - typical[plant] / typical_cnt) / all;
}

/* The p99 that the same requests have without that plant. */
static double p99_without(const struct loop *loop, int plant)
{
	static uint64_t left_ns[PERIODS * (QUEUED + 1)];

	for (size_t i = 0; i < loop->cnt; i++)
		left_ns[i] = loop->requests[i].latency_ns - loop->requests[i].ns[plant];
	return fixture_p99(left_ns, loop->cnt);
}

static const struct cause *cause_in(const struct report *report, const char *function)
{
	for (size_t i = 0; i < report->cause_cnt; i++)
		for (size_t f = 0; f < report->causes[i].root.call_path_cnt; f++)
			if (!strcmp(report->causes[i].root.call_path[f], function))
				return &report->causes[i];
	return NULL;
}

/* Roots, with what has none and what is too small for a line, are the tail. */
static void check_account(const struct report *report)
{
	const struct root_account *account = report->roots;
	double sum_ns = account->not_attributed_ns + account->left_out_ns;

	CU_ASSERT_DOUBLE_EQUAL(account->roots_ns + account->not_attributed_ns, account->tail_ns, 0.5);
	for (size_t i = 0; i < report->cause_cnt; i++) {
		const struct cause *cause = &report->causes[i];
		double ways = 0;

		sum_ns += cause->root.kind == ROOT_UNKNOWN ? 0 : cause->late_ns - cause->typical_ns;
		for (size_t w = 0; w < cause->way_cnt; w++)
			ways += cause->ways[w].share;
		CU_ASSERT_DOUBLE_EQUAL(ways, cause->share, 0.02);
	}
	CU_ASSERT_DOUBLE_EQUAL(sum_ns, account->tail_ns, 0.5);
}

static void two_causes_at_once_are_two_roots(void)
{
	static const char *const names[] = {"rebuild", "report"};
	static struct loop loop;
	struct found found;

	test_dir__make(&found.dir);
	loop_write(&loop, found.dir.path, MS);
	found_make(&found, 0.9);
	check_account(&found.findings.report);
	for (int p = REBUILD; p <= REPORT; p++) {
		const struct cause *cause = cause_in(&found.findings.report, names[p]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(cause);
		CU_ASSERT_DOUBLE_EQUAL(cause->share, planted_share(&loop, &found.findings.report, p), 0.05);
		CU_ASSERT_EQUAL(cause->root.kind, ROOT_CODE);
		/* The function that is at it, not the leaves that it calls. */
		CU_ASSERT_STRING_EQUAL(cause->function, names[p]);
		CU_ASSERT_STRING_EQUAL(cause->root.role, "server");
		CU_ASSERT(cause->way_cnt == 2 && cause->ways[0].own != cause->ways[1].own);
		CU_ASSERT_EQUAL(cause->category, cause->ways[0].own ? WL_CATEGORY_ONCPU : WL_CATEGORY_QUEUE);
		CU_ASSERT_DOUBLE_EQUAL(cause->gain.p99_ns / p99_without(&loop, p), 1, 0.1);
		CU_ASSERT(cause->gain.p99_ci.lo <= cause->gain.p99_ns && cause->gain.p99_ns <= cause->gain.p99_ci.hi);
		CU_ASSERT(cause->gain.mean_ci.lo < cause->gain.mean_ns && cause->gain.mean_ns < cause->gain.mean_ci.hi);
		/* 0.1 % of so many rows is more than five. */
		CU_ASSERT(loop.cnt / 1000 > 5 ? !isnan(cause->gain.p999_ci.lo) : isnan(cause->gain.p999_ci.lo));
	}
	CU_ASSERT(found.findings.report.causes[0].root.call_path_cnt == 1);
	found_free(&found);
}

static const struct factor_line *factor_line(const struct report *report, const char *function, bool body)
{
	for (size_t i = 0; i < report->factors->line_cnt; i++)
		if (!report->factors->lines[i].functions[1] && report->factors->lines[i].body[0] == body &&
		    !strcmp(report->factors->lines[i].functions[0], function))
			return &report->factors->lines[i];
	return NULL;
}

/* The variance of the exact time that a plant's own requests have, as a share of the latency's. */
static double planted_variance(const struct loop *loop, int plant)
{
	double n = (double)loop->cnt, x = 0, xx = 0, l = 0, ll = 0;

	for (size_t i = 0; i < loop->cnt; i++) {
		const struct planted *request = &loop->requests[i];
		double latency_ns = (double)request->latency_ns;
		double own_ns = request->ns[plant] == request->latency_ns ? latency_ns : 0;

		x += own_ns / n;
		xx += own_ns * own_ns / n;
		l += latency_ns / n;
		ll += latency_ns * latency_ns / n;
	}
	return (xx - x * x) / (ll - l * l);
}

/* What waits in the queue is no function's time: functions are those of the requests that execute them. */
static void functions_vary_as_their_samples_tell(void)
{
	static const char *const names[] = {"rebuild", "report"};
	static struct loop loop;
	struct found found;

	test_dir__make(&found.dir);
	loop_write(&loop, found.dir.path, MS);
	found_make(&found, 0.9);
	CU_ASSERT_PTR_NOT_NULL_FATAL(found.findings.report.factors);
	CU_ASSERT(found.findings.report.factors->sampled);
	CU_ASSERT_EQUAL(found.findings.report.factors->intervals, loop.cnt);
	for (int p = REBUILD; p <= REPORT; p++) {
		const struct factor_line *line = factor_line(&found.findings.report, names[p], false);

		CU_ASSERT_PTR_NOT_NULL_FATAL(line);
		CU_ASSERT(isnan(line->calls) && isnan(line->late_met) && line->opened);
		CU_ASSERT_DOUBLE_EQUAL(line->contribution, planted_variance(&loop, p), 0.02);
		CU_ASSERT(line->contribution_ci.lo <= line->contribution &&
			  line->contribution <= line->contribution_ci.hi);
		CU_ASSERT(line->doing_contribution[FACTOR_RUNNING] > 0.99);
		CU_ASSERT(factor_line(&found.findings.report, "copy", false) != NULL);
	}
	CU_ASSERT_DOUBLE_EQUAL(found.findings.report.factors->queue_share, 0.4, 0.3);
	found_free(&found);
}

/* What no sample was taken of stays with the thread. */
static void without_samples_the_thread_is_the_root(void)
{
	static struct loop loop;
	struct found found;
	const struct cause *first;

	test_dir__make(&found.dir);
	loop_write(&loop, found.dir.path, 0);
	found_make(&found, 0.95);
	first = &found.findings.report.causes[0];
	check_account(&found.findings.report);
	CU_ASSERT_EQUAL(found.findings.report.cause_cnt, 1);
	CU_ASSERT_DOUBLE_EQUAL(first->share, 1, 1e-9);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
	CU_ASSERT_EQUAL(first->root.call_path_cnt, 0);
	CU_ASSERT_STRING_EQUAL(first->root.type, "tcp:80");
	found_free(&found);
}

/* A tick is an interrupt: its thread's segment then is not `running`. */
static void a_tick_belongs_to_what_it_interrupted(void)
{
	struct row_writer to;
	struct found found;
	char frames[] = "main;work";

	test_dir__make(&found.dir);
	row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
	row_put_thread(&to, SERVER, SERVER, "server");
	for (uint64_t k = 1; k <= 100; k++) {
		uint64_t begin_ts = k * MS, ns = k % 10 ? 10 * US : 500 * US;

		row_put_segment(&to, SERVER, begin_ts, begin_ts + ns / 2, "running", k);
		row_put_segment(&to, SERVER, begin_ts + ns / 2, begin_ts + ns / 2 + US, "irq.timer", k);
		row_put_segment(&to, SERVER, begin_ts + ns / 2 + US, begin_ts + ns, "running", k);
		row_begin(&to, SHARD_TABLE_STACK);
		row_set_ts(&to, STACK_TS, begin_ts + ns / 2 + 300);
		row_set_u64(&to, STACK_PID, SERVER);
		row_set_u64(&to, STACK_TID, SERVER);
		row_set_str(&to, STACK_STATE, "running");
		row_set_str(&to, STACK_FRAMES, frames);
		row_set_str(&to, STACK_KERNEL_FRAMES, "asm_exc_page_fault;do_wp_page");
		row_end(&to, SHARD_TABLE_STACK);
		row_put_interval(&to, k, SERVER, "tcp:80", begin_ts, begin_ts + ns, 0, 0);
	}
	row_writer_close(&to);
	found_make(&found, 0.95);
	CU_ASSERT_EQUAL(found.findings.report.roots->samples, 100);
	/* And what the kernel does for a function is that function's. */
	CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 1);
	CU_ASSERT_STRING_EQUAL(found.findings.report.causes[0].function, "work");
	check_account(&found.findings.report);
	found_free(&found);
}

/* --- chains --------------------------------------------------------------------------------------------------------
 */

/* A lock's holder waits for a disk, and before that for a CPU that a third one has: those are the roots. */
static void what_the_holder_waits_for_is_the_root(void)
{
	const struct cause *disk, *hog;
	struct found found;

	test_dir__make(&found.dir);
	trace_fixture_write(found.dir.path, 2000);
	found_make(&found, 0.95);
	check_account(&found.findings.report);
	CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 2);
	disk = &found.findings.report.causes[0];
	hog = &found.findings.report.causes[1];
	CU_ASSERT_EQUAL(disk->root.kind, ROOT_DISK);
	CU_ASSERT_DOUBLE_EQUAL(disk->share, 0.598, 0.01);
	CU_ASSERT_STRING_EQUAL(disk->root.role, "flusher");
	CU_ASSERT_EQUAL(disk->category, WL_CATEGORY_LOCK);
	CU_ASSERT_STRING_EQUAL(disk->object, "web+0x40");
	CU_ASSERT_EQUAL(disk->culprit_tid, TRACE_FLUSHER);
	CU_ASSERT_EQUAL(hog->root.kind, ROOT_CODE);
	CU_ASSERT_STRING_EQUAL(hog->root.role, "hog");
	CU_ASSERT_PTR_NULL(hog->root.type);
	CU_ASSERT_EQUAL(hog->category, WL_CATEGORY_RUNQ);
	CU_ASSERT_EQUAL(hog->culprit_pid, TRACE_HOG);
	CU_ASSERT_DOUBLE_EQUAL(hog->share, 0.4, 0.01);
	CU_ASSERT_FATAL(hog->way_cnt >= 1 && hog->ways[0].hop_cnt == 1);
	CU_ASSERT_STRING_EQUAL(hog->ways[0].hops[0], "flusher");
	CU_ASSERT_EQUAL(hog->ways[0].wait, WL_CATEGORY_LOCK);
	found_free(&found);
}

/* --- waits that run into a timeout ---------------------------------------------------------------------------------
 */

#define HOLDER 201 /* thread of the server */

static void put_woken_by_timer(struct row_writer *to, uint64_t ts)
{
	row_begin(to, SHARD_TABLE_WAKEUP);
	row_set_ts(to, WAKEUP_TS, ts);
	row_set_u64(to, WAKEUP_TID, SERVER);
	row_set_str(to, WAKEUP_CONTEXT, "timer");
	row_set_str(to, WAKEUP_CERTAINTY, "observed");
	row_end(to, SHARD_TABLE_WAKEUP);
}

/* What every tenth request waits 10 ms for, in two waits. */
enum waited {
	FOR_TIMER,   /* in its event loop */
	IN_LOOP,     /* likewise, and the first wait ends with another request */
	IN_BUSY,     /* likewise, and the second wait does; the loop is busy when the timer comes */
	FOR_TIMEOUT, /* a goroutine's select, with time.After() */
	FOR_PAGES,   /* of a file */
	FOR_LOCK,    /* 5 ms at a time, until its holder wakes it */
	FOR_SIGNALS, /* of two condition variables, each until its timeout */
	FOR_OWNER,   /* of a lock: a timeout, another try, and nobody known ends that */
	FOR_CLIENT,  /* the rest of the request */
	FOR_BYTES,   /* that the holder has sent long before they arrive */
	FOR_GC,      /* a goroutine that the collector ends the wait of */
	WAITED_CNT,
};

static const char *const waited_states[WAITED_CNT] = {
	[FOR_TIMER] = "blocked.poll",    [IN_LOOP] = "blocked.poll",    [IN_BUSY] = "blocked.poll",
	[FOR_TIMEOUT] = "blocked.futex", [FOR_PAGES] = "fault.major",   [FOR_LOCK] = "blocked.futex",
	[FOR_SIGNALS] = "blocked.futex", [FOR_OWNER] = "blocked.futex", [FOR_CLIENT] = "blocked.net",
	[FOR_BYTES] = "blocked.net",     [FOR_GC] = "blocked.other",
};

/* The server goes on with another request after that wait. */
static bool ends_with_another(enum waited what, bool last)
{
	return (what == IN_LOOP && !last) || (what == IN_BUSY && last);
}

/* From the holder to the server. */
static void put_bytes(struct row_writer *to, const char *from_addr, uint64_t from_ts, uint64_t to_ts)
{
	row_begin(to, SHARD_TABLE_HANDOFF);
	row_set_str(to, HANDOFF_KIND, "socket");
	row_set_str(to, HANDOFF_CERTAINTY, "observed");
	row_set_str(to, HANDOFF_FROM_ADDR, from_addr);
	row_set_str(to, HANDOFF_TO_ADDR, "192.0.2.2:40000");
	row_set_u64(to, HANDOFF_SEQ, from_ts);
	row_set_u64(to, HANDOFF_BYTES, 8);
	row_set_u64(to, HANDOFF_FROM_PID, SERVER);
	row_set_u64(to, HANDOFF_FROM_TID, HOLDER);
	row_set_ts(to, HANDOFF_FROM_TS, from_ts);
	row_set_u64(to, HANDOFF_TO_PID, SERVER);
	row_set_u64(to, HANDOFF_TO_TID, SERVER);
	row_set_ts(to, HANDOFF_TO_TS, to_ts);
	row_end(to, SHARD_TABLE_HANDOFF);
}

static void put_wake_up(struct row_writer *to, enum waited what, bool last, uint64_t ts)
{
	if (what == FOR_BYTES)
		put_bytes(to, "192.0.2.1:80", ts - 5 * MS + 20 * US, ts + 5 * US);
	if (what == FOR_CLIENT || what == FOR_BYTES || (what == FOR_OWNER && last) || ends_with_another(what, last))
		row_put_wakeup(to, SERVER, ts, 0, NULL);
	else if (what == FOR_LOCK && last)
		row_put_wakeup(to, SERVER, ts, HOLDER, "holder");
	else
		put_woken_by_timer(to, ts);
}

/* resent: of the replies that are held, as the session says it; NULL: none is held. */
static void waiting_server(const char *dir, enum waited what, const char *resent)
{
	static const uint64_t go_waits[WAITED_CNT] = {
		[FOR_TIMEOUT] = WL_GO_WAIT | WL_GO_WAIT_SELECT,
		[FOR_GC] = WL_GO_WAIT | WL_GO_WAIT_GC_CYCLE,
	};
	struct row_writer to;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	if (resent) {
		row_put_session(&to, "replies_resent", resent);
		row_put_session(&to, "replies", "200");
		row_put_session(&to, "replies_held", "36000000:1 40000000:3");
		row_put_session(&to, "replies_held_window", "0");
	}
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, SERVER, HOLDER, "holder");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, wait_ns = k % 10 ? 0 : 10 * MS, end_ts = ts + wait_ns + 100 * US;

		row_put_segment(&to, SERVER, ts, ts + 50 * US, "running", k);
		if (wait_ns) {
			uint64_t from_ts = ts + 50 * US, middle_ts = from_ts + 5 * MS, to_ts = from_ts + wait_ns;

			row_begin_segment(&to, SERVER, from_ts, middle_ts, waited_states[what], k);
			row_set_u64(&to, SEGMENT_OBJECT, go_waits[what] ?: 0x4000);
			row_end(&to, SHARD_TABLE_SEGMENT);
			put_wake_up(&to, what, false, middle_ts);
			row_put_segment(&to, SERVER, middle_ts, middle_ts + 10 * US, "running",
					what == IN_LOOP || what == IN_BUSY ? 100000 + k : k);
			row_begin_segment(&to, SERVER, middle_ts + 10 * US, to_ts, waited_states[what], k);
			row_set_u64(&to, SEGMENT_OBJECT, go_waits[what] ?: what == FOR_SIGNALS ? 0x5000 : 0x4008);
			row_end(&to, SHARD_TABLE_SEGMENT);
			if (what == FOR_LOCK)
				row_put_segment(&to, HOLDER, ts, to_ts + 10 * US, "running", 0);
			put_wake_up(&to, what, true, to_ts);
			if (what == IN_BUSY)
				row_put_segment(&to, SERVER, to_ts, to_ts + 10 * US, "running", 200000 + k);
		}
		row_put_segment(&to, SERVER, end_ts - (wait_ns && what == IN_BUSY ? 40 : 50) * US, end_ts, "running",
				k);
		row_put_interval(&to, k, SERVER, "tcp:80", ts, end_ts, 0, 0);
	}
	row_writer_close(&to);
}

static void what_ends_a_wait_is_its_root(void)
{
	static const enum root_kind kinds[WAITED_CNT] = {
		[FOR_TIMER] = ROOT_TIMER,   [IN_LOOP] = ROOT_TIMER,     [IN_BUSY] = ROOT_TIMER,
		[FOR_TIMEOUT] = ROOT_TIMER, [FOR_PAGES] = ROOT_DISK,    [FOR_LOCK] = ROOT_CODE,
		[FOR_SIGNALS] = ROOT_TIMER, [FOR_OWNER] = ROOT_UNKNOWN, [FOR_CLIENT] = ROOT_PEER,
		[FOR_BYTES] = ROOT_PEER,    [FOR_GC] = ROOT_CODE,
	};
	static const char *const ways[WAITED_CNT] = {
		[FOR_TIMER] = "while requests waited for a socket or in their event loop",
		[IN_LOOP] = "while requests waited for a socket or in their event loop",
		[IN_BUSY] = "while requests waited for a socket or in their event loop",
		[FOR_TIMEOUT] = "while requests waited for a lock or a channel themselves",
		[FOR_PAGES] = "as page faults of the request's own work",
		[FOR_LOCK] = "while requests waited for a lock that it held",
		[FOR_SIGNALS] = "while requests waited for a lock or a channel themselves",
		[FOR_OWNER] = "while requests waited for a lock or a channel themselves",
		[FOR_CLIENT] = "while requests waited for its reply",
		[FOR_BYTES] = "while requests waited for bytes that were under way",
		[FOR_GC] = "in waits of another kind",
	};

	for (enum waited what = 0; what < WAITED_CNT; what++) {
		const struct cause *first;
		struct found found;

		test_dir__make(&found.dir);
		waiting_server(found.dir.path, what, NULL);
		found_make(&found, 0.95);
		check_account(&found.findings.report);
		CU_ASSERT_FALSE(found.findings.report.delivery.known);
		CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 1);
		first = &found.findings.report.causes[0];
		CU_ASSERT_EQUAL(first->root.kind, kinds[what]);
		CU_ASSERT_STRING_EQUAL(words_way(first, &first->ways[0]), ways[what]);
		if (what == FOR_PAGES)
			CU_ASSERT_PTR_NOT_NULL(strstr(words_advice(&found.findings.report, first), "page cache"));
		if (what == FOR_CLIENT) {
			CU_ASSERT_STRING_EQUAL(first->root.object, "the client");
		} else if (what == FOR_BYTES) {
			CU_ASSERT_STRING_EQUAL(first->root.object, ROOT_NETWORK);
			CU_ASSERT_EQUAL(first->culprit_pid, -1);
		} else if (what != FOR_OWNER) {
			CU_ASSERT_STRING_EQUAL(first->root.role, what == FOR_LOCK ? "holder"
								 : what == FOR_GC ? "go:runtime"
										  : "server");
		}
		CU_ASSERT(first->share > 0.95);
		found_free(&found);
	}
}

/* Of 200 replies 4 are held for 39 ms on average: 15.6 ms of the mean of the longest 10, beside a tail of 10 ms. */
static void replies_that_are_held_are_ranked(void)
{
	const struct report_delivery *delivery;
	const struct report *report;
	struct found found;

	test_dir__make(&found.dir);
	waiting_server(found.dir.path, FOR_TIMER, "1");
	found_make(&found, 0.95);
	report = &found.findings.report;
	check_account(report);
	delivery = &report->delivery;
	CU_ASSERT(delivery->known && delivery->replies == 200 && delivery->held == 4 && !delivery->by_window);
	CU_ASSERT_DOUBLE_EQUAL(delivery->mean_ns, 780e3, 1);
	CU_ASSERT_DOUBLE_EQUAL(delivery->held_mean_ns, 39e6, 1);
	CU_ASSERT_DOUBLE_EQUAL(delivery->p99_ns, 40e6, 1);
	CU_ASSERT_DOUBLE_EQUAL(delivery->late_ns, 15.6e6, 1);
	CU_ASSERT_FATAL(report->cause_cnt >= 2);
	CU_ASSERT_EQUAL(report->causes[0].root.kind, ROOT_PEER);
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].share, 15.6 / 25.6, 0.01);
	CU_ASSERT_EQUAL(report->causes[1].root.kind, ROOT_TIMER);
	CU_ASSERT(report->causes[0].rank == 1 && report->causes[1].rank == 2);
	CU_ASSERT(delivery->resent_known && delivery->resent == 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(report->causes[0].what, "Nagle"));
	found_free(&found);
}

static void lost_replies_are_told_from_held_ones(void)
{
	struct found found;

	test_dir__make(&found.dir);
	waiting_server(found.dir.path, FOR_TIMER, "3");
	found_make(&found, 0.95);
	CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 1);
	CU_ASSERT_EQUAL(found.findings.report.delivery.resent, 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(found.findings.report.causes[0].what, "lost on its way to the client"));
	found_free(&found);
}

/* The request that rebuilds has been handed on twice, whoever waits for it; the one that reports has not. */
static void a_root_says_the_context_of_its_request(void)
{
	static struct loop loop;
	const struct cause *rebuild, *report;
	struct json_object *root, *causes, *context = NULL, *handed_on = NULL;
	struct pprof_sums sums;
	struct found found;
	char *bytes = NULL, id[32];
	size_t sz;
	FILE *out;

	test_dir__make(&found.dir);
	loop = (struct loop){.state = 7, .tick_ns = MS, .in_context = true};
	loop_write_session(&loop, found.dir.path, SESSION_A);
	found_make(&found, 0.9);
	check_account(&found.findings.report);
	rebuild = cause_in(&found.findings.report, "rebuild");
	report = cause_in(&found.findings.report, "report");
	CU_ASSERT_FATAL(rebuild && report);
	CU_ASSERT_EQUAL(report->root.context_id, 0);
	CU_ASSERT_EQUAL(report->root.handoff_cnt, 0);
	CU_ASSERT_NOT_EQUAL(rebuild->root.context_id, 0);
	/* Contexts tell no roots apart. */
	CU_ASSERT_EQUAL(rebuild->way_cnt, 2);
	CU_ASSERT_DOUBLE_EQUAL(rebuild->share, planted_share(&loop, &found.findings.report, REBUILD), 0.05);
	CU_ASSERT_EQUAL_FATAL(rebuild->root.handoff_cnt, 2);
	CU_ASSERT_STRING_EQUAL(rebuild->root.handoffs[0].kind, "socket");
	CU_ASSERT_STRING_EQUAL(rebuild->root.handoffs[0].frames, "main;loop;ask");
	CU_ASSERT_STRING_EQUAL(rebuild->root.handoffs[1].frames, "main;loop;again");
	out = open_memstream(&bytes, &sz);
	CU_ASSERT_EQUAL(view_json(out, &found.findings.report), 0);
	fclose(out);
	root = json_tokener_parse(bytes);
	free(bytes);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "causes", &causes));
	snprintf(id, sizeof(id), "%016lx", rebuild->root.context_id);
	for (size_t i = 0; i < json_object_array_length(causes); i++) {
		struct json_object *cause = json_object_object_get(json_object_array_get_idx(causes, i), "root"), *its;

		CU_ASSERT_FATAL(json_object_object_get_ex(cause, "context", &its));
		context = &found.findings.report.causes[i] == rebuild ? its : context;
		CU_ASSERT(&found.findings.report.causes[i] == rebuild || !its);
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	CU_ASSERT_STRING_EQUAL(json_object_get_string(json_object_object_get(context, "id")), id);
	CU_ASSERT_FATAL(json_object_object_get_ex(context, "handed_on", &handed_on));
	CU_ASSERT_EQUAL(json_object_array_length(handed_on), 2);
	json_object_put(root);
	out = open_memstream(&bytes, &sz);
	CU_ASSERT_EQUAL(export_pprof(out, &found.findings.dataset, &found.findings.paths, &found.findings.roots, 0.9),
			0);
	fclose(out);
	read_profile(&sums, (uint8_t *)bytes, sz);
	CU_ASSERT_EQUAL(sums.bad, 0);
	CU_ASSERT_EQUAL(sums.handed_on, 1);
	CU_ASSERT_EQUAL(sums.values[2], sums.values[0] - sums.values[1]);
	free(bytes);
	found_free(&found);
}

/* --- spin locks ----------------------------------------------------------------------------------------------------
 */

#define SPIN_NS (10 * MS)

#define SHARER 202 /* another process, which shares the lock's memory */

enum spun { SPINS, SPINS_FOR_SHARER, COMPUTES, OWNER_ELSEWHERE, SPUN_CNT };

static void put_spin_ticks(struct row_writer *to, uint64_t from_ts, uint64_t to_ts, bool spins)
{
	for (uint64_t ts = from_ts + 500 * US; ts < to_ts - 100 * US; ts += MS) {
		row_begin(to, SHARD_TABLE_STACK);
		row_set_ts(to, STACK_TS, ts);
		row_set_u64(to, STACK_PID, SERVER);
		row_set_u64(to, STACK_TID, SERVER);
		row_set_str(to, STACK_STATE, "running");
		row_set_str(to, STACK_FRAMES, spins ? "main;serve;spin_acquire;[spin]" : "main;serve;spin_acquire");
		row_end(to, SHARD_TABLE_STACK);
	}
}

/* Every tenth request spins for 10 ms; the owner sleeps meanwhile, and lets go right before the end. */
static void spinning_server(const char *dir, enum spun what)
{
	uint32_t owner_pid = what == SPINS_FOR_SHARER ? SHARER : SERVER;
	uint32_t owner = what == SPINS_FOR_SHARER ? SHARER : HOLDER;
	struct row_writer to;
	uint64_t slept_ts = MS;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, owner_pid, owner, "holder");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, spin_ns = k % 10 ? 0 : SPIN_NS, end_ts = ts + spin_ns + 100 * US;

		row_put_segment(&to, SERVER, ts, end_ts, "running", k);
		if (spin_ns) {
			uint64_t wakes_ts = end_ts - 80 * US - (what == OWNER_ELSEWHERE ? k * 50 * US : 0);

			put_spin_ticks(&to, ts, end_ts, what != COMPUTES);
			to.pid = owner_pid;
			row_put_segment(&to, owner, slept_ts, wakes_ts, "blocked.sleep", 0);
			row_put_segment(&to, owner, wakes_ts, wakes_ts + 20 * US, "running", 0);
			to.pid = SERVER;
			slept_ts = wakes_ts + 20 * US;
		}
		row_put_interval(&to, k, SERVER, "tcp:80", ts, end_ts, 0, 0);
	}
	row_writer_close(&to);
}

static void what_keeps_the_owner_of_a_spin_lock_is_the_root(void)
{
	for (enum spun what = 0; what < SPUN_CNT; what++) {
		const struct cause *first;
		struct found found;

		test_dir__make(&found.dir);
		spinning_server(found.dir.path, what);
		found_make(&found, 0.95);
		first = &found.findings.report.causes[0];
		check_account(&found.findings.report);
		CU_ASSERT_EQUAL(first->category, WL_CATEGORY_ONCPU);
		CU_ASSERT(first->share > 0.98);
		if (what <= SPINS_FOR_SHARER) {
			CU_ASSERT_EQUAL(first->root.kind, ROOT_TIMER);
			CU_ASSERT_STRING_EQUAL(first->root.role, "holder");
			CU_ASSERT_EQUAL(first->culprit_tid, what == SPINS ? HOLDER : SHARER);
			CU_ASSERT(first->ways[0].hop_cnt == 1 && !strcmp(first->ways[0].hops[0], "server"));
		} else {
			CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
			CU_ASSERT_STRING_EQUAL(first->root.role, "server");
			CU_ASSERT_STRING_EQUAL(first->function, "spin_acquire");
		}
		found_free(&found);
	}
}

#define TURNS        4 /* threads, each of which owns the lock in turn while the others spin */
#define TURN_NS      (16 * MS)
#define TURN_SLICE   (3 * MS)
#define TURN_PERIODS 60

static void put_turn_segment(struct row_writer *to, uint32_t tid, uint64_t from_ts, uint64_t to_ts, const char *state,
			     uint64_t sid, uint32_t by_tid)
{
	row_begin_segment(to, tid, from_ts, to_ts, state, sid);
	if (by_tid) {
		row_set_u64(to, SEGMENT_BY_PID, SERVER);
		row_set_u64(to, SEGMENT_BY_TID, by_tid);
		row_set_str(to, SEGMENT_BY_COMM, "conn");
	}
	row_end(to, SHARD_TABLE_SEGMENT);
}

static void put_turn_tick(struct row_writer *to, uint32_t tid, uint64_t ts, uint64_t end_ts, uint64_t sid,
			  const char *frames)
{
	row_begin(to, SHARD_TABLE_STACK);
	row_set_ts(to, STACK_TS, ts);
	if (end_ts)
		row_set_ts(to, STACK_END_TS, end_ts);
	row_set_u64(to, STACK_PID, SERVER);
	row_set_u64(to, STACK_TID, tid);
	row_set_u64(to, STACK_SID, sid);
	row_set_str(to, STACK_STATE, end_ts ? "blocked.sleep" : "running");
	row_set_str(to, STACK_FRAMES, frames);
	row_end(to, SHARD_TABLE_STACK);
}

/* The owner sleeps; the others have one CPU, slice by slice, until each gets the lock right after the one before. */
static void put_turn(struct row_writer *to, uint64_t ts, uint32_t owner, uint64_t *sid)
{
	uint64_t first_ts = ts + MS, free_ts = ts + 50 * US + TURN_NS, own_sid = ++*sid, sids[TURNS];

	put_turn_segment(to, owner, ts, ts + 50 * US, "running", own_sid, 0);
	put_turn_segment(to, owner, ts + 50 * US, free_ts, "blocked.sleep", own_sid, 0);
	put_turn_segment(to, owner, free_ts, free_ts + 20 * US, "running", own_sid, 0);
	put_turn_tick(to, owner, ts + 50 * US, free_ts, own_sid, "main;conn;serve;retry_backoff;nanosleep");
	row_put_interval(to, own_sid, owner, "tcp:80", ts, free_ts + 20 * US, 0, 0);
	for (uint32_t i = 0; i < TURNS; i++)
		sids[i] = ++*sid;
	for (uint64_t slice = 0, at = first_ts; at < free_ts; slice++, at += TURN_SLICE) {
		uint64_t end_ts = at + TURN_SLICE < free_ts ? at + TURN_SLICE : free_ts;

		for (uint32_t i = 1; i < TURNS; i++) {
			uint32_t tid = SERVER + (owner - SERVER + i) % TURNS;
			bool runs = slice % (TURNS - 1) == i - 1;

			put_turn_segment(to, tid, at, end_ts, runs ? "running" : "runq.preempt", sids[i],
					 runs ? 0
					      : SERVER + (owner - SERVER + 1 + (uint32_t)slice % (TURNS - 1)) % TURNS);
			for (uint64_t tick = at + 500 * US; runs && tick < end_ts; tick += MS)
				put_turn_tick(to, tid, tick, 0, sids[i], "main;conn;serve;spin_acquire;[spin]");
		}
	}
	for (uint32_t i = 1; i < TURNS; i++) {
		uint32_t tid = SERVER + (owner - SERVER + i) % TURNS;
		uint64_t at = free_ts + 20 * US * i;

		put_turn_segment(to, tid, free_ts, at, "runq.preempt", sids[i], 0);
		put_turn_segment(to, tid, at, at + 20 * US, "running", sids[i], 0);
		put_turn_segment(to, tid, at + 20 * US, at + MS, "blocked.net", 0, 0);
		row_put_interval(to, sids[i], tid, "tcp:80", first_ts, at + 20 * US, 0, 0);
	}
}

/* All have one name, and each of them is the owner at times: the request that sleeps with the lock is the root. */
static void the_owner_of_a_spin_lock_may_change(void)
{
	const struct cause *first;
	struct row_writer to;
	struct found found;
	uint64_t sid = 0;

	test_dir__make(&found.dir);
	row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
	for (uint32_t i = 0; i < TURNS; i++)
		row_put_thread(&to, SERVER, SERVER + i, "conn");
	for (uint64_t k = 1; k <= TURN_PERIODS; k++) {
		put_turn(&to, k * 60 * MS, SERVER + (uint32_t)k % TURNS, &sid);
		for (uint64_t i = 0; i < 80; i++) {
			uint32_t tid = SERVER + (uint32_t)i % TURNS;
			uint64_t ts = k * 60 * MS + 20 * MS + i / TURNS * 2 * MS;

			put_turn_segment(&to, tid, ts, ts + 100 * US, "running", ++sid, 0);
			put_turn_segment(&to, tid, ts + 100 * US, ts + 2 * MS, "blocked.net", 0, 0);
			row_put_interval(&to, sid, tid, "tcp:80", ts, ts + 100 * US, 0, 0);
		}
	}
	row_writer_close(&to);
	found_make(&found, 0.96);
	first = &found.findings.report.causes[0];
	check_account(&found.findings.report);
	CU_ASSERT(first->share > 0.9);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_TIMER);
	CU_ASSERT_STRING_EQUAL(first->root.role, "conn");
	CU_ASSERT(on_call_path(first, "retry_backoff"));
	found_free(&found);
}

/*
 * Every tenth round all threads but the first spin for a lock whose owner is of another program: for 10 ms each has the
 * CPU in turn for 1 ms, and waits for it in one wait.
 */
static void who_spins_for_a_stranger_is_no_full_machine(void)
{
	const struct cause *first;
	struct row_writer to;
	struct found found;
	uint64_t sid = 0;

	test_dir__make(&found.dir);
	row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
	for (uint32_t i = 0; i < TURNS; i++)
		row_put_thread(&to, SERVER, SERVER + i, "conn");
	for (uint64_t k = 1; k <= TURN_PERIODS * 10; k++) {
		for (uint32_t i = 0; i < TURNS; i++) {
			uint32_t tid = SERVER + i, next = SERVER + i % (TURNS - 1) + 1;
			uint64_t ts = k * 20 * MS, own_ts = ts + i * MS,
				 end_ts = k % 10 || !i ? ts + 50 * US : ts + 10 * MS;

			sid++;
			if (end_ts == ts + 10 * MS) {
				put_turn_segment(&to, tid, ts, own_ts, "runq.preempt", sid, next);
				put_turn_segment(&to, tid, own_ts, own_ts + MS, "running", sid, 0);
				put_turn_tick(&to, tid, own_ts + 500 * US, 0, sid,
					      "main;conn;serve;spin_acquire;[spin]");
				put_turn_segment(&to, tid, own_ts + MS, end_ts - 100 * US, "runq.preempt", sid, next);
				put_turn_segment(&to, tid, end_ts - 100 * US, end_ts, "running", sid, 0);
				put_turn_tick(&to, tid, end_ts - 50 * US, 0, sid,
					      "main;conn;serve;spin_acquire;[spin]");
			} else {
				put_turn_segment(&to, tid, ts, end_ts, "running", sid, 0);
			}
			row_put_interval(&to, sid, tid, "tcp:80", ts, end_ts, 0, 0);
		}
	}
	row_writer_close(&to);
	found_make(&found, 0.95);
	first = &found.findings.report.causes[0];
	check_account(&found.findings.report);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(first->root.role);
	CU_ASSERT_STRING_EQUAL(first->root.role, "conn");
	CU_ASSERT(on_call_path(first, "spin_acquire"));
	CU_ASSERT(first->share > 0.6);
	for (size_t c = 0; c < found.findings.report.cause_cnt; c++)
		CU_ASSERT_NOT_EQUAL(found.findings.report.causes[c].root.kind, ROOT_FULL_MACHINE);
	found_free(&found);
}

/* --- a worker of an event loop -------------------------------------------------------------------------------------
 */

#define SECOND 202 /* worker */

static void put_pool(struct row_writer *to, uint64_t from_ts, uint64_t done_ts, uint64_t k)
{
	uint64_t told_ts = from_ts + MS, woken_ts = done_ts - 50 * US;

	row_put_segment(to, HOLDER, from_ts, told_ts + 10 * US, "running", 0);
	row_put_segment(to, HOLDER, told_ts + 10 * US, done_ts + 50 * US, "blocked.futex", 0);
	row_put_segment(to, SECOND, from_ts - 100 * US, done_ts + 50 * US, "running", 0);
	row_put_wakeup(to, SERVER, from_ts - 60 * US, SECOND, "worker");
	row_put_segment(to, SERVER, from_ts, told_ts, "blocked.poll", 0);
	row_put_wakeup(to, SERVER, told_ts, HOLDER, "worker");
	row_put_segment(to, SERVER, told_ts, told_ts + 50 * US, "running", 100000 + k);
	row_put_segment(to, SERVER, told_ts + 50 * US, woken_ts, "blocked.poll", 0);
	row_put_wakeup(to, SERVER, woken_ts, 0, NULL);
	row_put_segment(to, SERVER, woken_ts, done_ts, "running", 200000 + k);
}

/*
 * Every tenth request is handed to a worker, which wakes the loop when it is done.  `shared`: to a pool of two.  The
 * worker wakes the loop for another request first and waits then; the other one, which had told the loop of requests
 * before, is done with this one while the loop is busy.
 */
static void offloading_server(const char *dir, bool shared)
{
	struct row_writer to;
	uint64_t idle_ts = MS;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_session(&to, "pid", "200");
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, SERVER, HOLDER, "worker");
	row_put_thread(&to, SERVER, SECOND, "worker");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, given_ts = ts + 50 * US, done_ts = k % 10 ? given_ts : given_ts + 10 * MS;

		row_put_segment(&to, SERVER, ts, given_ts, "running", k);
		if (shared && done_ts > given_ts) {
			put_pool(&to, given_ts, done_ts, k);
		} else if (done_ts > given_ts) {
			row_put_segment(&to, HOLDER, idle_ts, given_ts, "blocked.futex", 0);
			row_put_wakeup(&to, HOLDER, given_ts, SERVER, "server");
			row_put_segment(&to, HOLDER, given_ts, done_ts + 10 * US, "running", 0);
			row_put_segment(&to, SERVER, given_ts, done_ts, "blocked.poll", 0);
			row_put_wakeup(&to, SERVER, done_ts, HOLDER, "worker");
			idle_ts = done_ts + 10 * US;
		}
		for (uint64_t tick = given_ts + 500 * US; tick < done_ts; tick += MS)
			put_turn_tick(&to, shared ? SECOND : HOLDER, tick, 0, 0, "main;worker;encode_frame");
		row_put_segment(&to, SERVER, done_ts, done_ts + 20 * US, "running", k);
		row_put_interval(&to, k, SERVER, "tcp:80", ts, done_ts + 20 * US, 0, 0);
	}
	row_writer_close(&to);
}

static void a_worker_works_for_the_requests_that_wait_for_it(void)
{
	for (int shared = 0; shared < 2; shared++) {
		const struct cause *first;
		struct found found;

		test_dir__make(&found.dir);
		offloading_server(found.dir.path, shared);
		found_make(&found, 0.95);
		first = &found.findings.report.causes[0];
		check_account(&found.findings.report);
		CU_ASSERT(first->share > (shared ? 0.85 : 0.98));
		CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
		CU_ASSERT_STRING_EQUAL(
			first->what,
			shared ? "`encode_frame`: code of thread `worker`, for requests that waited for it"
			       : "`encode_frame`: code of thread `worker` (tid 201), for requests that waited for it");
		found_free(&found);
	}
}

/* --- a client that does not read -----------------------------------------------------------------------------------
 */

/*
 * Every tenth request waits for room in its client's socket, and another one is queued behind it.  The thread, which
 * was made as "loader", is called "server" since.
 */
static void server_of_a_slow_reader(const char *dir)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_begin(&to, SHARD_TABLE_THREAD);
	row_set_ts(&to, THREAD_TS, 2 * MS);
	row_set_str(&to, THREAD_EVENT, "named");
	row_set_u64(&to, THREAD_PID, SERVER);
	row_set_u64(&to, THREAD_TID, SERVER);
	row_set_str(&to, THREAD_COMM, "server");
	row_end(&to, SHARD_TABLE_THREAD);
	row_begin_segment(&to, HOLDER, MS, 2 * MS, "runq.wakeup", 0);
	row_set_u64(&to, SEGMENT_BY_PID, SERVER);
	row_set_u64(&to, SEGMENT_BY_TID, SERVER);
	row_set_str(&to, SEGMENT_BY_COMM, "loader");
	row_end(&to, SHARD_TABLE_SEGMENT);
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, sid = 2 * k, end_ts = ts + 100 * US;

		row_put_segment(&to, SERVER, ts, ts + 50 * US, "running", sid);
		if (!(k % 10)) {
			row_put_segment(&to, SERVER, ts + 50 * US, ts + 10 * MS, "blocked.net", sid);
			row_put_segment(&to, SERVER, ts + 10 * MS, ts + 10 * MS + 50 * US, "running", sid);
			end_ts = ts + 10 * MS + 50 * US;
			row_put_segment(&to, SERVER, end_ts, end_ts + 50 * US, "running", sid + 1);
			row_put_interval(&to, sid + 1, SERVER, "tcp:80", ts + MS, end_ts + 50 * US, 0, 0);
		} else {
			row_put_segment(&to, SERVER, ts + 50 * US, end_ts, "running", sid);
		}
		row_put_interval(&to, sid, SERVER, "tcp:80", ts, end_ts, 0, 0);
	}
	row_writer_close(&to);
}

static void a_client_that_does_not_read_delays_those_behind_it(void)
{
	double by_category[WL_CATEGORY_CNT] = {0};
	const struct cause *first;
	struct found found;

	test_dir__make(&found.dir);
	server_of_a_slow_reader(found.dir.path);
	found_make(&found, 0.9);
	first = &found.findings.report.causes[0];
	check_account(&found.findings.report);
	CU_ASSERT(first->share > 0.95);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_PEER);
	CU_ASSERT_STRING_EQUAL(first->root.object, "the client");
	for (size_t w = 0; w < first->way_cnt; w++)
		by_category[first->ways[w].category] += first->ways[w].share;
	CU_ASSERT(by_category[WL_CATEGORY_QUEUE] > 0.3 && by_category[WL_CATEGORY_IO_NET] > 0.3);
	CU_ASSERT(found.findings.report.cause_cnt < 2 || !strcmp(found.findings.report.causes[1].root.role, "server"));
	found_free(&found);
}

/* Every tenth request waits for bytes that a thread of this host sent 0.9 ms before, each on a connection of its own.
 */
static void a_peer_of_this_host_is_one_root(void)
{
	const struct cause *first;
	struct row_writer to;
	struct found found;
	char address[32];

	test_dir__make(&found.dir);
	row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, SERVER, HOLDER, "backend");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, sent_ts = ts + 50 * US, got_ts = sent_ts + (k % 10 ? 0 : 900 * US);

		row_put_segment(&to, SERVER, ts, sent_ts, "running", k);
		if (got_ts > sent_ts) {
			row_put_segment(&to, SERVER, sent_ts, got_ts, "blocked.net", k);
			row_put_wakeup(&to, SERVER, got_ts, 0, NULL);
			snprintf(address, sizeof(address), "127.0.0.1:%u", 40000 + (unsigned int)k);
			put_bytes(&to, address, sent_ts, got_ts);
		}
		row_put_segment(&to, SERVER, got_ts, got_ts + 50 * US, "running", k);
		row_put_interval(&to, k, SERVER, "tcp:80", ts, got_ts + 50 * US, 0, 0);
	}
	row_writer_close(&to);
	found_make(&found, 0.95);
	check_account(&found.findings.report);
	CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 1);
	first = &found.findings.report.causes[0];
	CU_ASSERT(first->share > 0.95);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_PEER);
	CU_ASSERT_STRING_EQUAL(first->root.role, "backend");
	CU_ASSERT_PTR_NULL(first->root.object);
	found_free(&found);
}

/* --- stopped by a signal -------------------------------------------------------------------------------------------
 */

/* Every tenth request arrives while the server is stopped, or is stopped itself. */
static void a_stopped_thread_waits_for_who_continues_it(void)
{
	const struct cause *first;
	struct row_writer to;
	struct found found;

	test_dir__make(&found.dir);
	row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
	row_put_session(&to, "pid", "200");
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, HOLDER, HOLDER, "freezer");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, stop_ns = k % 10 ? 0 : 10 * MS, begin_ts = k % 20 ? ts : ts - 10 * US;
		uint64_t end_ts = ts + stop_ns + 50 * US;

		row_put_segment(&to, SERVER, ts - 15 * US, ts, "running", k % 20 ? 0 : k);
		if (stop_ns) {
			row_put_segment(&to, SERVER, ts, ts + stop_ns, "blocked.stopped", k % 20 ? 0 : k);
			row_put_wakeup(&to, SERVER, ts + stop_ns, HOLDER, "freezer");
		}
		row_put_segment(&to, SERVER, ts + stop_ns, end_ts, "running", k);
		row_begin_interval(&to, k, SERVER, "tcp:80", begin_ts, end_ts, 0, 0);
		row_set_ts(&to, INTERVAL_PICKUP_TS, k % 20 ? ts + stop_ns : begin_ts);
		row_end(&to, SHARD_TABLE_INTERVAL);
	}
	row_writer_close(&to);
	found_make(&found, 0.95);
	first = &found.findings.report.causes[0];
	check_account(&found.findings.report);
	CU_ASSERT(first->share > 0.98);
	CU_ASSERT_EQUAL(first->category, WL_CATEGORY_OTHER);
	CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
	CU_ASSERT_STRING_EQUAL(first->root.role, "freezer");
	CU_ASSERT_STRING_EQUAL(first->what,
			       "stopped by a signal or a debugger, until thread `freezer` (tid 201) continued it");
	found_free(&found);
}

/* --- what the kernel makes a thread wait for -----------------------------------------------------------------------
 */

static void put_kernel_wait(struct row_writer *to, uint64_t from_ts, uint64_t to_ts, const char *state,
			    const char *kernel_frames)
{
	row_begin(to, SHARD_TABLE_STACK);
	row_set_ts(to, STACK_TS, from_ts);
	row_set_u64(to, STACK_END_TS, to_ts);
	row_set_u64(to, STACK_PID, SERVER);
	row_set_u64(to, STACK_TID, SERVER);
	row_set_str(to, STACK_STATE, state);
	row_set_str(to, STACK_FRAMES, "main;append;write");
	row_set_str(to, STACK_KERNEL_FRAMES, kernel_frames);
	row_end(to, SHARD_TABLE_STACK);
}

static void what_the_kernel_throttles_is_told(void)
{
	static const struct {
		const char *state, *frames, *object, *what;
		enum root_kind kind;
	} waits[] = {
		{"blocked.disk", "ext4_file_write_iter;balance_dirty_pages;io_schedule_timeout", ROOT_DIRTY_PAGES,
		 "writes faster than the disk", ROOT_DISK},
		{"blocked.other", "do_try_to_free_pages;reclaim_throttle;schedule_timeout", ROOT_RECLAIM,
		 "waits for memory to be freed", ROOT_DISK},
		{"blocked.other", "resume_user_mode_work;mem_cgroup_handle_over_high;schedule_timeout_killable",
		 ROOT_MEMORY_HIGH, "memory.high of the cgroup", ROOT_QUOTA},
		{"blocked.disk", "ext4_sync_file;jbd2_log_wait_commit;schedule", NULL, "I/O of thread", ROOT_DISK},
	};

	for (size_t w = 0; w < sizeof(waits) / sizeof(waits[0]); w++) {
		const struct cause *first;
		struct row_writer to;
		struct found found;

		test_dir__make(&found.dir);
		row_writer_open(&to, found.dir.path, "host", 0x99, SERVER);
		row_put_thread(&to, SERVER, SERVER, "server");
		for (uint64_t k = 1; k <= 200; k++) {
			uint64_t ts = k * 20 * MS, wait_ns = k % 10 ? 0 : 5 * MS, end_ts = ts + wait_ns + 100 * US;

			if (wait_ns) {
				row_put_segment(&to, SERVER, ts, ts + wait_ns, waits[w].state, k);
				put_kernel_wait(&to, ts, ts + wait_ns, waits[w].state, waits[w].frames);
			}
			row_put_segment(&to, SERVER, ts + wait_ns, end_ts, "running", k);
			row_put_interval(&to, k, SERVER, "tcp:80", ts, end_ts, 0, 0);
		}
		row_writer_close(&to);
		found_make(&found, 0.95);
		check_account(&found.findings.report);
		CU_ASSERT_FATAL(found.findings.report.cause_cnt >= 1);
		first = &found.findings.report.causes[0];
		CU_ASSERT_EQUAL(first->root.kind, waits[w].kind);
		CU_ASSERT(waits[w].object ? first->root.object && !strcmp(first->root.object, waits[w].object)
					  : !first->root.object);
		CU_ASSERT_STRING_EQUAL(first->root.role, "server");
		CU_ASSERT_PTR_NOT_NULL(strstr(first->what, waits[w].what));
		found_free(&found);
	}
}

/* --- a full machine ------------------------------------------------------------------------------------------------
 */

/* Every tenth request waits 5 ms for the CPU, which one of `cnt` programs has, each in its turn. */
static void crowded_server(const char *dir, uint32_t cnt)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_thread(&to, SERVER, SERVER, "server");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, wait_ns = k % 10 ? 0 : 5 * MS;
		uint32_t pid = 300 + (uint32_t)(k / 10) % cnt;
		char comm[16];

		snprintf(comm, sizeof(comm), "program-%c", 'a' + (char)(pid - 300));
		if (wait_ns) {
			row_begin_segment(&to, SERVER, ts, ts + wait_ns, "runq.wakeup", k);
			row_set_u64(&to, SEGMENT_BY_PID, pid);
			row_set_u64(&to, SEGMENT_BY_TID, pid);
			row_set_str(&to, SEGMENT_BY_COMM, comm);
			row_end(&to, SHARD_TABLE_SEGMENT);
		}
		row_put_segment(&to, SERVER, ts + wait_ns, ts + wait_ns + 100 * US, "running", k);
		row_put_interval(&to, k, SERVER, "tcp:80", ts, ts + wait_ns + 100 * US, 0, 0);
	}
	row_writer_close(&to);
}

/* Of a crowd none is made up to be the one; two programs are named. */
static void a_crowd_is_a_full_machine(void)
{
	for (uint32_t cnt = 2; cnt <= 5; cnt += 3) {
		const struct cause *first;
		struct found found;

		test_dir__make(&found.dir);
		crowded_server(found.dir.path, cnt);
		found_make(&found, 0.95);
		first = &found.findings.report.causes[0];
		check_account(&found.findings.report);
		CU_ASSERT_EQUAL(first->category, WL_CATEGORY_RUNQ);
		if (cnt == 2) {
			CU_ASSERT_EQUAL(found.findings.report.cause_cnt, 2);
			CU_ASSERT_EQUAL(first->root.kind, ROOT_CODE);
			CU_ASSERT_DOUBLE_EQUAL(first->share, 0.5, 0.1);
		} else {
			CU_ASSERT_EQUAL(found.findings.report.cause_cnt, 1);
			CU_ASSERT_EQUAL(first->root.kind, ROOT_FULL_MACHINE);
			CU_ASSERT_DOUBLE_EQUAL(first->share, 1, 1e-9);
			CU_ASSERT_EQUAL(first->way_cnt, 5);
			CU_ASSERT(first->ways[0].hop_cnt == 1 && !strncmp(first->ways[0].hops[0], "program-", 8));
			CU_ASSERT_PTR_NOT_NULL(strstr(first->what, "most of it `program-"));
			CU_ASSERT_PTR_NULL(first->culprit_comm);
		}
		found_free(&found);
	}
}

/* --- what goes with a root ------------------------------------------------------------------------------------------
 */

#define NEIGHBOUR 300

static void put_runnable(struct row_writer *to, uint64_t from_ts, uint64_t to_ts, const char *state, uint64_t sid)
{
	row_begin_segment(to, SERVER, from_ts, to_ts, state, sid);
	row_set_u64(to, SEGMENT_BY_PID, NEIGHBOUR);
	row_set_u64(to, SEGMENT_BY_TID, NEIGHBOUR);
	row_set_str(to, SEGMENT_BY_COMM, "neighbour");
	row_end(to, SHARD_TABLE_SEGMENT);
}

/*
 * Every tenth request is late: it runs for 8 ms and is preempted for 2 ms (of others, 100 µs), or it waits 5 ms for the
 * holder of a lock and 1 ms for a CPU after that.
 */
static void disturbed_server(const char *dir, bool waits)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_thread(&to, SERVER, SERVER, "server");
	row_put_thread(&to, SERVER, HOLDER, "holder");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, at_ts = ts;

		if (!(k % 10) && waits) {
			row_put_segment(&to, SERVER, ts, ts + 5 * MS, "blocked.futex", k);
			row_put_segment(&to, HOLDER, ts - MS, ts + 5 * MS + US, "running", 0);
			row_put_wakeup(&to, SERVER, ts + 5 * MS, HOLDER, "holder");
			put_runnable(&to, ts + 5 * MS, ts + 6 * MS, "runq.wakeup", k);
			at_ts = ts + 6 * MS;
		} else if (!(k % 10)) {
			row_put_segment(&to, SERVER, ts, ts + 4 * MS, "running", k);
			put_runnable(&to, ts + 4 * MS, ts + 6 * MS, "runq.preempt", k);
			row_put_segment(&to, SERVER, ts + 6 * MS, ts + 9900 * US, "running", k);
			at_ts = ts + 9900 * US;
		}
		row_put_segment(&to, SERVER, at_ts, at_ts + 100 * US, "running", k);
		row_put_interval(&to, k, SERVER, "tcp:80", ts, at_ts + 100 * US, 0, 0);
	}
	row_writer_close(&to);
}

/* Without the code nothing preempts it; without the lock's holder nobody sleeps, and is runnable after that. */
static void what_goes_with_a_root_is_of_its_gain(void)
{
	const struct report *report;
	struct found found;

	test_dir__make(&found.dir);
	disturbed_server(found.dir.path, false);
	found_make(&found, 0.95);
	report = &found.findings.report;
	CU_ASSERT_EQUAL_FATAL(report->cause_cnt, 2);
	CU_ASSERT_STRING_EQUAL(report->causes[0].root.role, "server");
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].share, 0.8, 0.01);
	/* What it computes in the median request stays. */
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].gain.p99_ns, (double)(100 * US), 1);
	CU_ASSERT_STRING_EQUAL(report->causes[1].root.role, "neighbour");
	CU_ASSERT_DOUBLE_EQUAL(report->causes[1].gain.p99_ns, (double)(8 * MS), 1);
	found_free(&found);

	test_dir__make(&found.dir);
	disturbed_server(found.dir.path, true);
	found_make(&found, 0.95);
	report = &found.findings.report;
	CU_ASSERT_EQUAL_FATAL(report->cause_cnt, 2);
	CU_ASSERT_STRING_EQUAL(report->causes[0].root.role, "holder");
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].share, 5. / 6, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].gain.p99_ns, (double)(100 * US), 1);
	CU_ASSERT_DOUBLE_EQUAL(report->causes[1].gain.p99_ns, (double)(5100 * US), 1);
	found_free(&found);
}

/* Late requests compute, each tick of five in one of these. */
static void expect_merge_of(const char *const frames[5])
{
	struct loop *loop = calloc(1, sizeof(*loop));
	const struct report *report;
	struct found found;

	CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
	loop->tick_ns = MS;
	test_dir__make(&found.dir);
	row_writer_open(&loop->to, found.dir.path, "host", 0x99, SERVER);
	row_put_thread(&loop->to, SERVER, SERVER, "server");
	for (uint64_t k = 1; k <= 400; k++) {
		uint64_t ts = k * 20 * MS, ns = k % 10 ? 100 * US : 10 * MS;

		row_put_segment(&loop->to, SERVER, ts, ts + ns, "running", k);
		for (uint64_t at = 500 * US; at < ns; at += MS)
			put_tick(loop, ts + at, frames[at / MS % 5]);
		row_put_interval(&loop->to, k, SERVER, "tcp:80", ts, ts + ns, 0, 0);
	}
	row_writer_close(&loop->to);
	found_make(&found, 0.95);
	report = &found.findings.report;
	check_account(report);
	CU_ASSERT_EQUAL_FATAL(report->cause_cnt, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(report->causes[0].function);
	CU_ASSERT_STRING_EQUAL(report->causes[0].function, "merge");
	CU_ASSERT_DOUBLE_EQUAL(report->causes[0].share, 1, 0.01);
	found_free(&found);
	free(loop);
}

/* A late function computes by itself, or is at something else at two ticks of five. */
static void expect_merge(const char *else_frames)
{
	const char *merge = "_start;main;merge";

	expect_merge_of((const char *const[]){merge, merge, merge, else_frames, else_frames});
}

/* One that it calls from time to time is one cause with it. */
static void a_function_and_what_it_calls_are_one_root(void)
{
	expect_merge("_start;main;merge;copy");
}

/* So is what a runtime does for it on a stack of its own; most of the time tells. */
static void what_begins_in_two_places_is_one_root(void)
{
	expect_merge("systemstack;scan");
}

/* Stacks of generated code cannot be unwound: callers that are guessed differ, the function that computes does not. */
static void what_is_called_from_anywhere_is_one_root(void)
{
	expect_merge_of((const char *const[]){"clone3;?guess_a;merge", "clone3;?guess_b;merge", "clone3;?guess_c;merge",
					      "clone3;?guess_d;merge", "clone3;[jit]+0x1000"});
}

/*
 * A program for each late request; the stacks of every fifth program have a guessed caller of main().  Those are a
 * cause of their own; the stacks of the others have a function as well, though the same requests load the program.
 */
static void put_program(struct loop *loop, uint64_t ts, uint64_t ns, bool is_guessed)
{
	for (uint64_t at = 500 * US; at < ns; at += MS)
		put_tick(loop, ts + at,
			 is_guessed        ? "?_start;main;merge"
			 : at / MS % 5 > 0 ? "_start;main;merge"
					   : "[kernel];load");
}

static void most_of_what_is_left_has_a_name(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	const struct report *report;
	struct found found;

	CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
	loop->tick_ns = MS;
	test_dir__make(&found.dir);
	row_writer_open(&loop->to, found.dir.path, "host", 0x99, SERVER);
	row_put_thread(&loop->to, SERVER, SERVER, "server");
	for (uint64_t k = 1; k <= 400; k++) {
		uint64_t ts = k * 20 * MS, ns = k % 10 ? 100 * US : 10 * MS;

		row_put_segment(&loop->to, SERVER, ts, ts + ns, "running", k);
		put_program(loop, ts, ns, k % 50 == 0);
		row_put_interval(&loop->to, k, SERVER, "tcp:80", ts, ts + ns, 0, 0);
	}
	row_writer_close(&loop->to);
	found_make(&found, 0.95);
	report = &found.findings.report;
	check_account(report);
	CU_ASSERT_PTR_NOT_NULL_FATAL(report->causes[0].function);
	CU_ASSERT_STRING_EQUAL(report->causes[0].function, "merge");
	CU_ASSERT(report->causes[0].share > 0.6);
	found_free(&found);
	free(loop);
}

/* A third of the late requests began before they could be read: with the same call path as the others they are of one
 * root. */
static void requests_whose_type_was_not_seen_share_a_line(void)
{
	static const char *const untold_frames[] = {"_start;main;merge", "_start;main;sort"};
	struct loop *loop = calloc(1, sizeof(*loop));

	CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
	for (size_t other = 0; other < 2; other++) {
		const struct report *report;
		struct found found;

		test_dir__make(&found.dir);
		row_writer_open(&loop->to, found.dir.path, "host", 0x99, SERVER);
		row_put_thread(&loop->to, SERVER, SERVER, "server");
		for (uint64_t k = 1; k <= 600; k++) {
			uint64_t ts = k * 20 * MS, ns = k % 10 ? 100 * US : 10 * MS;
			const char *late = k % 30 ? "tcp:80 GET /report" : "tcp:80";

			row_put_segment(&loop->to, SERVER, ts, ts + ns, "running", k);
			for (uint64_t at = 500 * US; at < ns; at += MS)
				put_tick(loop, ts + at, untold_frames[k % 30 ? 0 : other]);
			row_put_interval(&loop->to, k, SERVER, k % 10 ? "tcp:80 GET /" : late, ts, ts + ns, 0, 0);
		}
		row_writer_close(&loop->to);
		found_make(&found, 0.95);
		report = &found.findings.report;
		check_account(report);
		CU_ASSERT_EQUAL_FATAL(report->cause_cnt, 1 + other);
		CU_ASSERT_STRING_EQUAL(report->causes[0].root.type, "tcp:80 GET /report");
		CU_ASSERT_STRING_EQUAL(report->causes[0].function, "merge");
		CU_ASSERT_DOUBLE_EQUAL(report->causes[0].share, other ? 2. / 3 : 1, 0.02);
		if (other)
			CU_ASSERT_STRING_EQUAL(report->causes[1].root.type, "tcp:80");
		found_free(&found);
	}
	free(loop);
}

/* Code whose functions could not be read is the thread's, and no function of that name is made up. */
static void a_function_that_is_not_known_has_no_name(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	const struct cause *first;
	struct found found;

	CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
	loop->tick_ns = MS;
	test_dir__make(&found.dir);
	row_writer_open(&loop->to, found.dir.path, "host", 0x99, SERVER);
	row_put_thread(&loop->to, SERVER, SERVER, "server");
	for (uint64_t k = 1; k <= 200; k++) {
		uint64_t ts = k * 20 * MS, ns = k % 10 ? 100 * US : 10 * MS;

		row_put_segment(&loop->to, SERVER, ts, ts + ns, "running", k);
		for (uint64_t at = 500 * US; at < ns; at += MS)
			put_tick(loop, ts + at, "[unknown]");
		row_put_interval(&loop->to, k, SERVER, "tcp:80", ts, ts + ns, 0, 0);
	}
	row_writer_close(&loop->to);
	found_make(&found, 0.95);
	CU_ASSERT_EQUAL_FATAL(found.findings.report.cause_cnt, 1);
	first = &found.findings.report.causes[0];
	CU_ASSERT_PTR_NULL(first->function);
	CU_ASSERT_PTR_NULL(strstr(first->what, "[unknown]"));
	CU_ASSERT_PTR_NOT_NULL(strstr(first->what, "its functions are not known"));
	found_free(&found);
	free(loop);
}

int suite_roots(void)
{
	static const struct unit_test tests[] = {
		{"what is new is the root that differs", what_is_new_is_the_root_that_differs},
		{"late requests are told by their root", late_requests_are_told_by_their_root},
		{"late requests are told by their category", late_requests_are_told_by_their_category},
		{"a profile for pprof sums to the latency", a_profile_for_pprof_sums_to_the_latency},
		{"two causes at once are two roots", two_causes_at_once_are_two_roots},
		{"functions vary as their samples tell", functions_vary_as_their_samples_tell},
		{"a root says the context of its request", a_root_says_the_context_of_its_request},
		{"without samples the thread is the root", without_samples_the_thread_is_the_root},
		{"a tick belongs to what it interrupted", a_tick_belongs_to_what_it_interrupted},
		{"what the holder waits for is the root", what_the_holder_waits_for_is_the_root},
		{"what ends a wait is its root", what_ends_a_wait_is_its_root},
		{"replies that are held are ranked", replies_that_are_held_are_ranked},
		{"lost replies are told from held ones", lost_replies_are_told_from_held_ones},
		{"a crowd is a full machine", a_crowd_is_a_full_machine},
		{"requests whose type was not seen share a line", requests_whose_type_was_not_seen_share_a_line},
		{"a function that is not known has no name", a_function_that_is_not_known_has_no_name},
		{"a function and what it calls are one root", a_function_and_what_it_calls_are_one_root},
		{"what begins in two places is one root", what_begins_in_two_places_is_one_root},
		{"what is called from anywhere is one root", what_is_called_from_anywhere_is_one_root},
		{"most of what is left has a name", most_of_what_is_left_has_a_name},
		{"what goes with a root is of its gain", what_goes_with_a_root_is_of_its_gain},
		{"what the kernel throttles is told", what_the_kernel_throttles_is_told},
		{"what keeps the owner of a spin lock is the root", what_keeps_the_owner_of_a_spin_lock_is_the_root},
		{"the owner of a spin lock may change", the_owner_of_a_spin_lock_may_change},
		{"who spins for a stranger is no full machine", who_spins_for_a_stranger_is_no_full_machine},
		{"a client that does not read delays those behind it",
		 a_client_that_does_not_read_delays_those_behind_it},
		{"a peer of this host is one root", a_peer_of_this_host_is_one_root},
		{"a stopped thread waits for who continues it", a_stopped_thread_waits_for_who_continues_it},
		{"a worker works for the requests that wait for it", a_worker_works_for_the_requests_that_wait_for_it},
	};

	return unit_suite("roots", tests, sizeof(tests) / sizeof(tests[0]));
}
