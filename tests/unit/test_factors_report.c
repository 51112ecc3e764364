// SPDX-License-Identifier: GPL-2.0-or-later
/* From shards with calls of probed functions to what a report says of them. */
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "trace_fixture.h"
#include "unit.h"

#include "analysis/findings.h"
#include "model/session.h"
#include "view/view.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CNT 2000

/* A recording, all the way to its report; in counters mode without its paths. */
struct whole {
	struct test_dir dir;
	struct shard_reader *reader;
	struct dataset dataset;
	struct traces traces;
	struct paths paths;
	struct invocations invocations;
	struct factor_analysis analysis, unreduced;
	struct report report;
	bool by_path;
};

static factor_names understood;

static void whole_analyse(struct whole *whole, bool by_path)
{
	const struct dataset_filter filter = {.type = "tcp:80"};
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct report_opts opts = {.tail = 0.95, .seed = 1, .bootstrap_cnt = 200, .factors = &whole->analysis};

	rule.understood = &understood;

	whole->by_path = by_path;
	whole->reader = test_reader__open(whole->dir.path);
	CU_ASSERT_EQUAL_FATAL(dataset_load(&whole->dataset, whole->reader, &filter), 0);
	if (by_path) {
		CU_ASSERT_EQUAL_FATAL(traces_load(&whole->traces, whole->reader), 1);
		CU_ASSERT_EQUAL_FATAL(paths_make(&whole->paths, &whole->traces, &whole->dataset, NULL), 0);
		opts.paths = &whole->paths;
	}
	CU_ASSERT_EQUAL_FATAL(invocations_load(&whole->invocations, whole->reader, &whole->dataset, by_path), 1);
	CU_ASSERT_EQUAL_FATAL(factor_analysis_make(&whole->analysis, &whole->invocations, &whole->dataset, opts.paths,
						   WALK_LAST_ROUND, &rule, NULL),
			      0);
	if (understood.cnt) {
		whole->unreduced = whole->analysis;
		CU_ASSERT_EQUAL_FATAL(factor_analysis_make(&whole->analysis, &whole->invocations, &whole->dataset,
							   opts.paths, WALK_LAST_ROUND, &rule, &whole->unreduced),
				      0);
	}
	CU_ASSERT_EQUAL_FATAL(report_make(&whole->report, &whole->dataset, &opts), 0);
}

/* The fixture's recording, and a writer for what a test adds to its session. */
static struct shard_writer *whole_begin(struct whole *whole)
{
	struct shard_writer_opts opts = {.host = "host", .session_id = TRACE_SESSION};
	struct shard_writer *writer;

	test_dir__make(&whole->dir);
	trace_fixture_write_calls(whole->dir.path, CNT);
	opts.dir = whole->dir.path;
	writer = shard_writer__new(&opts);
	CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
	return writer;
}

static void whole_make(struct whole *whole, bool by_path)
{
	*whole = (struct whole){.by_path = by_path};
	test_dir__make(&whole->dir);
	trace_fixture_write_calls(whole->dir.path, CNT);
	whole_analyse(whole, by_path);
}

static void whole_free(struct whole *whole)
{
	report_free(&whole->report);
	factor_analysis_free(&whole->analysis);
	factor_analysis_free(&whole->unreduced);
	invocations_free(&whole->invocations);
	if (whole->by_path) {
		paths_free(&whole->paths);
		traces_free(&whole->traces);
	}
	dataset_free(&whole->dataset);
	shard_reader__free(whole->reader);
	test_dir__remove(&whole->dir);
}

static const struct factor_line *line_of(const struct whole *whole, const char *function, bool body)
{
	for (size_t i = 0; i < whole->report.factors->line_cnt; i++) {
		const struct factor_line *line = &whole->report.factors->lines[i];

		if (!line->functions[1] && !strcmp(line->functions[0], function) && line->body[0] == body)
			return line;
	}
	return NULL;
}

static bool says(const struct cause *cause, const char *part)
{
	for (size_t i = 0; i < cause->evidence_cnt; i++)
		if (strstr(cause->evidence[i], part))
			return true;
	return false;
}

static char *printed(const struct whole *whole, bool json)
{
	const struct view_opts view = {.top = 0};
	char *text = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&text, &sz);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(json ? view_json(out, &whole->report) : view_text(out, &whole->report, &view), 0);
	fclose(out);
	return text;
}

/* Interval 5 is lossy and does not take part: 199 of 1999 are late, half of them from either call site. */
static void waits_are_found_by_counters(void)
{
	const double p = 199. / 1999, half = 100. / 1999, other = 99. / 1999, of_l = p * (1 - p);
	const struct factor_line *lock, *handle;
	const struct cause *cause;
	struct whole whole;
	char *text;

	whole_make(&whole, false);
	CU_ASSERT_EQUAL(whole.report.factors->intervals, 1999);
	CU_ASSERT_EQUAL(whole.report.factors->lossy, 1);
	CU_ASSERT_EQUAL(whole.report.factors->orphans, 2 * 200);
	CU_ASSERT_EQUAL(whole.report.factors->bad_rows, 0);
	CU_ASSERT_EQUAL(whole.report.factors->graph_height, 4);
	ASSERT_NEAR(whole.report.factors->body_share, 0);
	lock = line_of(&whole, "get_lock", false);
	handle = line_of(&whole, "handle", false);
	CU_ASSERT_FATAL(lock && handle);
	CU_ASSERT_EQUAL(lock, &whole.report.factors->lines[0]);
	CU_ASSERT_EQUAL(lock->rank, 1);
	CU_ASSERT_EQUAL(lock->call_sites, 2);
	CU_ASSERT_EQUAL_FATAL(lock->site_cnt, 2);
	ASSERT_NEAR(lock->sites[0].contribution, half * (1 - half) / of_l);
	ASSERT_NEAR(lock->sites[1].contribution, other * (1 - other) / of_l);
	CU_ASSERT_EQUAL(lock->sites[0].call_addr + lock->sites[1].call_addr, 0x3000);
	CU_ASSERT_STRING_EQUAL(lock->sites[0].caller, "handle");
	ASSERT_NEAR(lock->contribution, (half * (1 - half) + other * (1 - other)) / of_l);
	ASSERT_NEAR(lock->variance_share, 1);
	ASSERT_NEAR(lock->tail_share, 1);
	ASSERT_NEAR(lock->score, 16 * lock->contribution);
	ASSERT_NEAR(lock->calls, p);
	ASSERT_NEAR(lock->doing_contribution[FACTOR_BLOCKED], 1);
	CU_ASSERT_EQUAL(lock->late_ns, 500000);
	CU_ASSERT_EQUAL(lock->typical_ns, 0);
	CU_ASSERT(lock->contribution_ci.lo <= lock->contribution && lock->contribution_ci.hi >= lock->contribution);
	CU_ASSERT(lock->contribution_ci.hi - lock->contribution_ci.lo < 0.1);
	CU_ASSERT_STRING_EQUAL(lock->caller, "handle");
	CU_ASSERT_EQUAL(lock->wait, WL_CATEGORY_LOCK);
	ASSERT_NEAR(lock->wait_share, 1);
	ASSERT_NEAR(handle->contribution, 1);
	CU_ASSERT(handle->opened && !handle->caller && handle->height == 3);
	ASSERT_NEAR(handle->contribution_ci.lo, 1);
	/* And the cause by category names the function. */
	CU_ASSERT_FATAL(whole.report.cause_cnt >= 1);
	cause = &whole.report.causes[0];
	CU_ASSERT_EQUAL(cause->category, WL_CATEGORY_LOCK);
	CU_ASSERT_STRING_EQUAL(cause->function, "get_lock");
	CU_ASSERT_PTR_NULL(cause->culprit_function);
	CU_ASSERT(says(cause, "spent in: 100 % `get_lock`"));
	CU_ASSERT(says(cause, "`get_lock`: 100 % of the variance, 100 % of that blocked"));
	/* Samples give sites no addresses: those of one caller are told as one. */
	lock->sites[0].call_addr = lock->sites[1].call_addr = 0;
	text = printed(&whole, false);
	CU_ASSERT(strstr(text, "called: 106 % by `handle`\n") != NULL);
	free(text);
	whole_free(&whole);
}

/* One call of a function, split as the recording tells; `split`: by what it waited for, too. */
static void put_waiting(struct row_writer *to, uint64_t sid, uint32_t func, uint64_t begin_ts, uint64_t end_ts,
			uint64_t lock_ns, uint64_t disk_ns, bool split)
{
	row_begin(to, SHARD_TABLE_INVOCATION);
	row_set_u64(to, INVOCATION_SID, sid);
	row_set_u64(to, INVOCATION_PID, TRACE_PID);
	row_set_u64(to, INVOCATION_TID, 101);
	row_set_u64(to, INVOCATION_FUNC, func);
	row_set_u64(to, INVOCATION_SEQ, func);
	row_set_u64(to, INVOCATION_BEGIN_TS, begin_ts);
	row_set_u64(to, INVOCATION_END_TS, end_ts);
	row_set_u64(to, INVOCATION_RUNNING_NS, end_ts - begin_ts - lock_ns - disk_ns);
	row_set_u64(to, INVOCATION_BLOCKED_NS, lock_ns + disk_ns);
	if (split) {
		row_set_u64(to, INVOCATION_LOCK_NS, lock_ns);
		row_set_u64(to, INVOCATION_DISK_NS, disk_ns);
		row_set_u64(to, INVOCATION_NET_NS, 0);
		row_set_u64(to, INVOCATION_SLEEP_NS, 0);
		row_set_u64(to, INVOCATION_FAULT_NS, 0);
	}
	row_end(to, SHARD_TABLE_INVOCATION);
}

/* Every tenth interval waits 3 ms for a lock in take(), and then 1 ms for a disk in sync(), both called by handle(). */
static void whole_of_two_waits(struct whole *whole, bool split)
{
	static const char *const names[] = {"handle", "take", "sync"};
	struct row_writer to;

	*whole = (struct whole){0};
	test_dir__make(&whole->dir);
	row_writer_open(&to, whole->dir.path, "host", TRACE_SESSION, TRACE_PID);
	row_put_session(&to, "comm", "web");
	for (uint32_t func = 0; func < 3; func++) {
		row_begin(&to, SHARD_TABLE_SYMBOL);
		row_set_u64(&to, SYMBOL_ID, func);
		row_set_str(&to, SYMBOL_MODULE, "web");
		row_set_str(&to, SYMBOL_NAME, names[func]);
		row_set_str(&to, SYMBOL_KIND, "function");
		row_end(&to, SHARD_TABLE_SYMBOL);
	}
	for (uint64_t k = 1; k <= CNT; k++) {
		uint64_t begin_ts = k * 10000000, lock_ns = k % 10 ? 0 : 3000000, disk_ns = lock_ns / 3;
		uint64_t lock_ts = begin_ts + 50000, disk_ts = lock_ts + lock_ns, end_ts = disk_ts + disk_ns + 50000;

		if (lock_ns) {
			put_waiting(&to, k, 1, lock_ts, disk_ts, lock_ns, 0, split);
			put_waiting(&to, k, 2, disk_ts, disk_ts + disk_ns, 0, disk_ns, split);
		}
		put_waiting(&to, k, 0, begin_ts, end_ts, lock_ns, disk_ns, split);
		row_begin_interval(&to, k, 101, "tcp:80", begin_ts, end_ts, lock_ns, 0);
		row_set_u64(&to, interval_column_length(WL_STATE_RUNNING), 100000);
		row_set_u64(&to, interval_column_length(WL_STATE_BLOCKED_DISK), disk_ns);
		row_end(&to, SHARD_TABLE_INTERVAL);
	}
	row_writer_close(&to);
	whole_analyse(whole, false);
}

static void expect_late_by(const struct whole *whole, const char *function, enum wl_category wait, double share)
{
	const struct factor_line *line = line_of(whole, function, false);

	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	CU_ASSERT_EQUAL(line->wait, wait);
	ASSERT_NEAR(line->wait_share, share);
}

static const struct cause *cause_of(const struct whole *whole, enum wl_category category)
{
	for (size_t i = 0; i < whole->report.cause_cnt; i++)
		if (whole->report.causes[i].category == category)
			return &whole->report.causes[i];
	return NULL;
}

static void each_call_waits_for_its_own(void)
{
	struct whole whole;

	whole_of_two_waits(&whole, true);
	expect_late_by(&whole, "take", WL_CATEGORY_LOCK, 1);
	expect_late_by(&whole, "sync", WL_CATEGORY_IO_DISK, 1);
	expect_late_by(&whole, "handle", WL_CATEGORY_LOCK, 0.75);
	CU_ASSERT_FATAL(cause_of(&whole, WL_CATEGORY_LOCK) && cause_of(&whole, WL_CATEGORY_IO_DISK));
	CU_ASSERT(says(cause_of(&whole, WL_CATEGORY_LOCK), "spent in: 100 % `take`"));
	CU_ASSERT(says(cause_of(&whole, WL_CATEGORY_IO_DISK), "spent in: 100 % `sync`"));
	whole_free(&whole);
	/* An older recording tells of the whole interval only what it waited for. */
	whole_of_two_waits(&whole, false);
	expect_late_by(&whole, "take", WL_CATEGORY_LOCK, 0.75);
	expect_late_by(&whole, "sync", WL_CATEGORY_LOCK, 0.75);
	CU_ASSERT(says(cause_of(&whole, WL_CATEGORY_IO_DISK), "spent in: 75 % `take`"));
	whole_free(&whole);
}

/* The root of the call graph is as high as the highest function that is known of, whatever was called. */
static void height_does_not_depend_on_what_is_probed(void)
{
	struct shard_writer *writer;
	struct shard_row row = {0};
	struct whole whole = {0};

	writer = whole_begin(&whole);
	row.values[SYMBOL_ID].u64 = 99;
	row.values[SYMBOL_MODULE].str = "web";
	row.values[SYMBOL_NAME].str = "main_loop";
	row.values[SYMBOL_KIND].str = "function";
	row.values[SYMBOL_HEIGHT].u64 = 9;
	row.values[SYMBOL_ROLE].str = row.values[SYMBOL_COST].str = "";
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SYMBOL, &row), 0);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	whole_analyse(&whole, false);
	CU_ASSERT_EQUAL(whole.report.factors->graph_height, 10);
	ASSERT_NEAR(line_of(&whole, "get_lock", false)->score, 100 * line_of(&whole, "get_lock", false)->contribution);
	whole_free(&whole);
	whole = (struct whole){0};
	writer = whole_begin(&whole);
	memset(&row, 0, sizeof(row));
	row.values[SESSION_KEY].str = SESSION_GRAPH_HEIGHT;
	row.values[SESSION_VALUE].str = "12";
	CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	whole_analyse(&whole, false);
	CU_ASSERT_EQUAL(whole.report.factors->graph_height, 13);
	whole_free(&whole);
}

/* Of the 4 ms that late intervals take longer, take() has 3: without them 1/16 of the variance is left, all in sync().
 */
static void what_is_understood_goes(void)
{
	const struct factor_report *factors;
	struct whole whole;
	char *text;

	CU_ASSERT_EQUAL(factor_names_add(&understood, "take"), 0);
	CU_ASSERT_EQUAL(factor_names_add(&understood, "no_such"), 0);
	whole_of_two_waits(&whole, true);
	factors = whole.report.factors;
	ASSERT_NEAR(factors->left_share, 1. / 16);
	CU_ASSERT_EQUAL_FATAL(factors->understood_cnt, 2);
	ASSERT_NEAR(factors->understood[0].contribution, 9. / 16);
	CU_ASSERT_EQUAL(factors->understood[0].call_sites, 1);
	CU_ASSERT(isnan(factors->understood[1].contribution));
	CU_ASSERT_PTR_NULL(line_of(&whole, "take", false));
	CU_ASSERT_PTR_NOT_NULL_FATAL(line_of(&whole, "sync", false));
	ASSERT_NEAR(line_of(&whole, "sync", false)->contribution, 1);
	ASSERT_NEAR(line_of(&whole, "handle", false)->contribution, 1);
	CU_ASSERT_EQUAL(line_of(&whole, "handle", false)->late_ns, 1100000);
	expect_late_by(&whole, "handle", WL_CATEGORY_IO_DISK, 1);
	/* Causes are those of whole requests. */
	CU_ASSERT_PTR_NOT_NULL_FATAL(cause_of(&whole, WL_CATEGORY_LOCK));
	CU_ASSERT(says(cause_of(&whole, WL_CATEGORY_LOCK), "spent in: 100 % `take`"));
	text = printed(&whole, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "take: understood, taken out"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "no_such: no such function was called"));
	free(text);
	free(printed(&whole, true));
	whole_free(&whole);
	factor_names_free(&understood);
	/* What it does itself is nothing but the same 0.1 ms. */
	CU_ASSERT_EQUAL(factor_names_add(&understood, "handle itself"), 0);
	whole_of_two_waits(&whole, true);
	ASSERT_NEAR(whole.report.factors->left_share, 1);
	CU_ASSERT_EQUAL(line_of(&whole, "handle", false)->typical_ns, 0);
	CU_ASSERT_EQUAL(line_of(&whole, "handle", false)->late_ns, 4000000);
	whole_free(&whole);
	factor_names_free(&understood);
	CU_ASSERT_EQUAL(factor_names_add(&understood, "handle"), 0);
	whole_of_two_waits(&whole, true);
	ASSERT_NEAR(whole.report.factors->left_share, 0);
	CU_ASSERT_EQUAL(whole.report.factors->line_cnt, 0);
	whole_free(&whole);
	factor_names_free(&understood);
	/* Across threads, too: with sync() gone flush() waits for the CPU only. */
	CU_ASSERT_EQUAL(factor_names_add(&understood, "sync"), 0);
	whole_make(&whole, true);
	CU_ASSERT_PTR_NULL(line_of(&whole, "sync", false));
	CU_ASSERT_EQUAL(line_of(&whole, "get_lock", false)->late_ns, 201000);
	CU_ASSERT_EQUAL(line_of(&whole, "flush", false)->late_ns, 201000);
	whole_free(&whole);
	factor_names_free(&understood);
}

/* On the critical path the wait is what `flusher` did meanwhile: 200 µs without a CPU, then sync(). */
static void paths_lead_into_the_other_thread(void)
{
	const struct factor_line *lock, *flush, *sync;
	const struct cause *cause = NULL;
	struct whole whole;

	whole_make(&whole, true);
	lock = line_of(&whole, "get_lock", false);
	flush = line_of(&whole, "flush", false);
	sync = line_of(&whole, "sync", false);
	CU_ASSERT_FATAL(lock && flush && sync);
	/* Of an interval of tcp:81, which was not asked for. */
	CU_ASSERT_STRING_EQUAL(flush->caller, "get_lock");
	CU_ASSERT_STRING_EQUAL(sync->caller, "flush");
	CU_ASSERT_EQUAL(lock->late_ns, 500000);
	CU_ASSERT_EQUAL(flush->late_ns, 500000);
	CU_ASSERT_EQUAL(sync->late_ns, 299000);
	ASSERT_NEAR(flush->calls, lock->calls);
	CU_ASSERT_EQUAL(lock->wait, WL_CATEGORY_LOCK);
	CU_ASSERT_STRING_EQUAL(lock->object, "web+0x40");
	CU_ASSERT_STRING_EQUAL(lock->culprit_comm, "flusher");
	for (size_t i = 0; i < whole.report.cause_cnt && !cause; i++)
		if (whole.report.causes[i].category == WL_CATEGORY_LOCK)
			cause = &whole.report.causes[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(cause);
	CU_ASSERT_STRING_EQUAL(cause->function, "get_lock");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cause->culprit_function);
	CU_ASSERT_STRING_EQUAL(cause->culprit_function, "sync");
	whole_free(&whole);
}

/* Only what both rounds' last one saw counts. */
static void only_the_last_round_counts(void)
{
	static const char *const keys[][2] = {
		{"round.0", "0 100000000"},
		{"round.0.intervals_per_s", "1000"},
		{"round.1", "100000000 300000000"},
		{"round.1.intervals_per_s", "970"},
		{"round.1.probes", "3"},
		{"round.1.cost_share", "0.012"},
		{"round.2", "400000000 500000000"},
		{"round.3", "none"},
		{"round.x", "1 2"},
		{"round.2.probes", "nan"},
	};
	struct shard_writer *writer;
	struct whole whole = {0};

	writer = whole_begin(&whole);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct shard_row row = {0};

		row.values[SESSION_KEY].str = keys[i][0];
		row.values[SESSION_VALUE].str = keys[i][1];
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SESSION, &row), 0);
	}
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	whole_analyse(&whole, false);
	CU_ASSERT_EQUAL(whole.report.factors->intervals, 100);
	CU_ASSERT_EQUAL(whole.report.factors->round, 2);
	CU_ASSERT_EQUAL_FATAL(whole.report.factors->round_cnt, 3);
	CU_ASSERT_EQUAL(whole.report.factors->rounds[1].intervals_per_s, 970);
	CU_ASSERT_EQUAL(whole.report.factors->rounds[1].probes, 3);
	ASSERT_NEAR(whole.report.factors->rounds[1].duration_s, 0.2);
	CU_ASSERT(isnan(whole.report.factors->rounds[2].probes));
	whole_free(&whole);
}

/*
 * Events of probes in the order in which they come: a function that is attached again meanwhile was probed since the
 * first time, one that only rests between rounds is not let go, and of what was never attached nothing is known.
 */
static void what_is_let_go_is_told(void)
{
	static const struct {
		uint64_t ts, func;
		const char *event, *why;
	} events[] = {
		{1000000000, 7, "attached", NULL},
		{1000000000, 8, "attached", NULL},
		{2000000000, 7, "detached", "for the next round"},
		{3000000000, 7, "attached", NULL},
		{3000000000, 8, "detached", "for the next round"},
		{4500000000, 7, "detached", PROBE_OVER_BUDGET},
		{5000000000, 9, "detached", PROBE_UNSAFE},
	};
	const struct factor_report *factors;
	struct shard_writer *writer;
	struct whole whole = {0};

	writer = whole_begin(&whole);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct shard_row row = {0};

		row.values[PROBE_TS].u64 = events[i].ts;
		row.values[PROBE_FUNC].u64 = events[i].func;
		row.values[PROBE_EVENT].str = events[i].event;
		row.values[PROBE_WHY].str = events[i].why ? events[i].why : "";
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_PROBE, &row), 0);
	}
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	whole_analyse(&whole, false);
	factors = whole.report.factors;
	CU_ASSERT_EQUAL_FATAL(factors->unmeasured_cnt, 2);
	CU_ASSERT_STRING_EQUAL(factors->unmeasured[0].why, PROBE_OVER_BUDGET);
	ASSERT_NEAR(factors->unmeasured[0].after_s, 3.5);
	CU_ASSERT_STRING_EQUAL(factors->unmeasured[1].why, PROBE_UNSAFE);
	ASSERT_NEAR(factors->unmeasured[1].after_s, 0);
	whole_free(&whole);
}

static void views_tell_of_factors(void)
{
	struct json_object *root, *factors, *factor, *value;
	struct whole whole;
	char *text;

	whole_make(&whole, false);
	text = printed(&whole, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Functions that make requests vary (1,999 requests)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "get_lock"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "100 % blocked; called 0.0995 times a request, mostly by `handle`"));
	free(text);
	text = printed(&whole, true);
	root = json_tokener_parse(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_FATAL(json_object_object_get_ex(root, "factors", &factors));
	CU_ASSERT_FATAL(json_object_array_length(factors) >= 2);
	factor = json_object_array_get_idx(factors, 0);
	CU_ASSERT_FATAL(json_object_object_get_ex(factor, "functions", &value));
	CU_ASSERT_EQUAL(json_object_array_length(value), 1);
	CU_ASSERT_STRING_EQUAL(json_object_get_string(json_object_array_get_idx(value, 0)), "get_lock");
	CU_ASSERT(json_object_object_get_ex(factor, "contribution", &value));
	CU_ASSERT(json_object_object_get_ex(factor, "height", &value) && json_object_get_int(value) == 0);
	CU_ASSERT(json_object_object_get_ex(factor, "score", &value) && json_object_get_double(value) > 16);
	CU_ASSERT(json_object_object_get_ex(factor, "call_sites", &value) && json_object_get_int(value) == 2);
	CU_ASSERT(json_object_object_get_ex(root, "factor_tree", &value) && value);
	json_object_put(root);
	free(text);
	whole_free(&whole);
}

/* Calls that end before they begin, of no thread, of unknown functions, of no interval, and far too many deep. */
static void impossible_calls_do_no_harm(void)
{
	const struct shard_table *table = &shard_tables[SHARD_TABLE_INVOCATION];
	struct test_rng rng = {.state = 9};
	struct shard_writer *writer;
	struct whole whole = {0};
	struct shard_row row;

	writer = whole_begin(&whole);
	for (int i = 0; i < 3000; i++) {
		test_row__fill(&row, table, &rng);
		row.values[INVOCATION_SID].u64 = test_rng__below(&rng, CNT);
		if (i % 2) {
			uint64_t begin_ts = row.values[INVOCATION_SID].u64 * TRACE_PERIOD;

			row.values[INVOCATION_TID].u64 = 101;
			row.values[INVOCATION_BEGIN_TS].u64 = begin_ts - test_rng__below(&rng, 300000);
			row.values[INVOCATION_END_TS].u64 = begin_ts + test_rng__below(&rng, 300000);
		}
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INVOCATION, &row), 0);
	}
	for (int i = 0; i < 500; i++) {
		memset(&row, 0, sizeof(row));
		row.values[INVOCATION_SID].u64 = 1;
		row.values[INVOCATION_TID].u64 = 101;
		row.values[INVOCATION_FUNC].u64 = 7;
		row.values[INVOCATION_SEQ].u64 = (uint64_t)i;
		row.values[INVOCATION_END_TS].u64 = TRACE_TYPICAL_NS;
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_INVOCATION, &row), 0);
	}
	for (int i = 0; i < 1000; i++) {
		test_row__fill(&row, &shard_tables[SHARD_TABLE_SYMBOL], &rng);
		CU_ASSERT_EQUAL(shard_writer__append(writer, SHARD_TABLE_SYMBOL, &row), 0);
	}
	CU_ASSERT_EQUAL(shard_writer__free(writer), 0);
	whole_analyse(&whole, true);
	CU_ASSERT(whole.report.factors->bad_rows > 0);
	CU_ASSERT(whole.report.factors->intervals > 1900);
	free(printed(&whole, false));
	free(printed(&whole, true));
	whole_free(&whole);
}

/* What was probed is told by its calls; what was not, by its samples. */
static void probes_win_where_there_are_both(void)
{
	const struct findings_opts opts = {.tail = 0.95, .bootstrap_cnt = 100, .rule = FACTOR_RULE_DEFAULT};
	struct findings findings;
	size_t handle = 0, parse = 0;
	struct shard_reader *reader;
	struct row_writer to;
	struct test_dir dir;

	test_dir__make(&dir);
	trace_fixture_write_calls(dir.path, CNT);
	row_writer_open(&to, dir.path, "host", TRACE_SESSION, TRACE_PID);
	for (uint64_t k = 5; k < CNT; k += 10) {
		row_begin(&to, SHARD_TABLE_STACK);
		row_set_ts(&to, STACK_TS, k * TRACE_PERIOD + TRACE_LATE_NS - 1000);
		row_set_u64(&to, STACK_PID, TRACE_PID);
		row_set_u64(&to, STACK_TID, 101);
		row_set_str(&to, STACK_STATE, "running");
		row_set_str(&to, STACK_FRAMES, "main;handle;parse");
		row_set_u64(&to, STACK_PERIOD_NS, 0);
		to.row.values[STACK_PERIOD_NS].f64 = 100000;
		row_end(&to, SHARD_TABLE_STACK);
	}
	row_writer_close(&to);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL_FATAL(findings_make(&findings, reader, &opts), 0);
	CU_ASSERT_FATAL(findings.report.factors && !findings.report.factors->sampled);
	CU_ASSERT(findings.report.factors->ticks > 0);
	for (size_t i = 0; i < findings.report.factors->line_cnt; i++) {
		const struct factor_line *line = &findings.report.factors->lines[i];

		if (!strcmp(line->functions[0], "handle")) {
			handle++;
			CU_ASSERT(!line->sampled && !isnan(line->calls));
		} else if (!strcmp(line->functions[0], "parse")) {
			parse++;
			CU_ASSERT(line->sampled && isnan(line->calls) && !line->rank);
		}
	}
	CU_ASSERT(handle > 0);
	CU_ASSERT_EQUAL(parse, 1);
	findings_free(&findings);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

int suite_factors_report(void)
{
	static const struct unit_test tests[] = {
		{"waits are found by counters", waits_are_found_by_counters},
		{"each call waits for its own", each_call_waits_for_its_own},
		{"height does not depend on what is probed", height_does_not_depend_on_what_is_probed},
		{"what is understood goes", what_is_understood_goes},
		{"paths lead into the other thread", paths_lead_into_the_other_thread},
		{"only the last round counts", only_the_last_round_counts},
		{"what is let go is told", what_is_let_go_is_told},
		{"views tell of factors", views_tell_of_factors},
		{"impossible calls do no harm", impossible_calls_do_no_harm},
		{"probes win where there are both", probes_win_where_there_are_both},
	};

	return unit_suite("analysis: report of factors", tests, sizeof(tests) / sizeof(tests[0]));
}
