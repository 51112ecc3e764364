// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gain of a root, against the same server without it: one thread, requests in order of arrival, of which some take
 * far longer than others.  Both servers are computed from the same arrivals; only the one with the slow requests is
 * recorded.
 */
#include "row_writer.h"
#include "test_analysis_fixture.h"
#include "test_shard_util.h"
#include "unit.h"

#include "analysis/findings.h"

#include <stdlib.h>

#define MS 1000000ULL
#define US 1000ULL

#define SERVER      200
#define REQUEST_CNT 20000
#define ALL_KEPT    3000 /* of the first ones */
#define ONE_OF      8

struct queue {
	double gap_ns; /* between arrivals, on average */
	double slow_share;
	uint64_t slow_ns;
	uint64_t late_ns; /* of requests that take less, one of ONE_OF is kept after the first ones; 0: all are */
	uint64_t away_ns; /* after a slow one the thread waits for a CPU, and the recording does not show who has it */
};

static void put_request(struct row_writer *to, const struct queue *queue, uint64_t k, const char *type,
			uint64_t arrival_ts, uint64_t end_ts, uint64_t *state)
{
	bool all = k < ALL_KEPT || end_ts - arrival_ts >= queue->late_ns;

	if (!all && fixture_uniform(state) >= 1.0 / ONE_OF)
		return;
	row_begin_interval(to, k + 1, SERVER, type, arrival_ts, end_ts, 0, 0);
	to->row.values[INTERVAL_WEIGHT].f64 = all ? 1 : ONE_OF;
	row_end(to, SHARD_TABLE_INTERVAL);
}

/* Records the queue; the p99 that it has without its slow requests. */
static double queue_write(const struct queue *queue, const char *dir)
{
	uint64_t *without_ns = malloc(REQUEST_CNT * sizeof(*without_ns));
	uint64_t arrival_ts = MS, free_ts = 0, free_without_ts = 0, state = 11;
	struct row_writer to;
	double p99;

	CU_ASSERT_PTR_NOT_NULL_FATAL(without_ns);
	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_session(&to, "pid", "200");
	row_put_thread(&to, SERVER, SERVER, "server");
	for (uint64_t k = 0; k < REQUEST_CNT; k++) {
		uint64_t ns = 50 * US + (uint64_t)(fixture_uniform(&state) * (double)(100 * US)), slow_ns;
		bool slow = fixture_uniform(&state) < queue->slow_share;

		arrival_ts += (uint64_t)(fixture_exponential(&state) * queue->gap_ns) + 1;
		slow_ns = slow ? queue->slow_ns : 0;
		free_ts = free_ts > arrival_ts ? free_ts : arrival_ts;
		free_without_ts = free_without_ts > arrival_ts ? free_without_ts : arrival_ts;
		row_put_segment(&to, SERVER, free_ts, free_ts + ns + slow_ns, "running", k + 1);
		free_ts += ns + slow_ns;
		free_without_ts += ns;
		without_ns[k] = free_without_ts - arrival_ts;
		put_request(&to, queue, k, slow ? "tcp:80 REBUILD" : "tcp:80 GET", arrival_ts, free_ts, &state);
		if (slow && queue->away_ns) {
			row_put_segment(&to, SERVER, free_ts, free_ts + queue->away_ns, "runq.preempt", 0);
			free_ts += queue->away_ns;
		}
	}
	row_writer_close(&to);
	p99 = fixture_p99(without_ns, REQUEST_CNT);
	free(without_ns);
	return p99;
}

static void what_queues_behind_a_root_goes_with_it(void)
{
	static const struct queue queues[] = {
		{.gap_ns = 200 * US, .slow_share = 0.002, .slow_ns = 20 * MS},
		{.gap_ns = 200 * US, .slow_share = 0.01, .slow_ns = 2 * MS},
		{.gap_ns = 150 * US, .slow_share = 0.002, .slow_ns = 10 * MS},
		{.gap_ns = 400 * US, .slow_share = 0.02, .slow_ns = 5 * MS},
		{.gap_ns = 400 * US, .slow_share = 0.005, .slow_ns = 10 * MS, .away_ns = 6 * MS},
		{.gap_ns = 400 * US, .slow_share = 0.02, .slow_ns = 5 * MS, .late_ns = 6 * MS},
	};

	for (size_t q = 0; q < sizeof(queues) / sizeof(queues[0]); q++) {
		const struct findings_opts opts = {.tail = 0.99, .bootstrap_cnt = 100};
		struct findings findings;
		struct shard_reader *reader;
		struct test_dir dir;
		double without_ns;
		const struct cause *first;

		test_dir__make(&dir);
		without_ns = queue_write(&queues[q], dir.path);
		reader = test_reader__open(dir.path);
		CU_ASSERT_EQUAL_FATAL(findings_make(&findings, reader, &opts), 0);
		CU_ASSERT_FATAL(findings.report.cause_cnt > 0);
		first = &findings.report.causes[0];
		CU_ASSERT_STRING_EQUAL(first->root.type, "tcp:80 REBUILD");
		CU_ASSERT_DOUBLE_EQUAL(first->gain.p99_ns, without_ns, 0.2 * without_ns);
		CU_ASSERT(first->gain.p99_ci.lo <= without_ns && without_ns <= first->gain.p99_ci.hi);
		findings_free(&findings);
		shard_reader__free(reader);
		test_dir__remove(&dir);
	}
}

/* Ticks of about every millisecond that the thread runs. */
static void put_ticks(struct row_writer *to, uint64_t *state, uint64_t *next_ts, uint64_t end_ts, const char *frames)
{
	for (; *next_ts < end_ts; *next_ts += (uint64_t)((0.5 + fixture_uniform(state)) * (double)MS)) {
		row_begin(to, SHARD_TABLE_STACK);
		row_set_ts(to, STACK_TS, *next_ts);
		row_set_u64(to, STACK_PID, SERVER);
		row_set_u64(to, STACK_TID, SERVER);
		row_set_str(to, STACK_STATE, "running");
		row_set_str(to, STACK_FRAMES, frames);
		to->row.nulls[STACK_PERIOD_NS / 64] &= ~(1ULL << STACK_PERIOD_NS % 64);
		to->row.values[STACK_PERIOD_NS].f64 = (double)MS;
		row_end(to, SHARD_TABLE_STACK);
	}
}

/*
 * One request in thirty rebuilds an index for 16 ms; the others take a tenth of a millisecond, and few have a sample.
 * The p99 that they all have without the index.
 */
static double rebuilds_write(const char *dir)
{
	uint64_t *without_ns = malloc(REQUEST_CNT * sizeof(*without_ns)), ts = MS, next_ts = 0, state = 5;
	struct row_writer to;
	double p99;

	CU_ASSERT_PTR_NOT_NULL_FATAL(without_ns);
	row_writer_open(&to, dir, "host", 0x99, SERVER);
	row_put_session(&to, "pid", "200");
	row_put_thread(&to, SERVER, SERVER, "server");
	for (uint64_t k = 0; k < REQUEST_CNT; k++) {
		uint64_t end_ts = ts + 50 * US + (uint64_t)(fixture_exponential(&state) * (double)(50 * US)),
			 begin_ts = ts;

		without_ns[k] = end_ts - ts;
		put_ticks(&to, &state, &next_ts, end_ts, "_start;main;serve;answer");
		if (!(k % 30)) {
			put_ticks(&to, &state, &next_ts, end_ts + 16 * MS, "_start;main;serve;rebuild");
			end_ts += 16 * MS;
		}
		row_put_segment(&to, SERVER, begin_ts, end_ts, "running", k + 1);
		row_put_interval(&to, k + 1, SERVER, "tcp:80", begin_ts, end_ts, 0, 0);
		ts = end_ts + 20 * US;
		next_ts = next_ts > ts ? next_ts : ts;
	}
	row_writer_close(&to);
	p99 = fixture_p99(without_ns, REQUEST_CNT);
	free(without_ns);
	return p99;
}

static void what_no_sample_fell_into_is_as_others_of_its_length(void)
{
	const struct findings_opts opts = {.tail = 0.99, .bootstrap_cnt = 100};
	struct findings findings;
	struct shard_reader *reader;
	struct test_dir dir;
	const struct cause *first;
	double without_ns;

	test_dir__make(&dir);
	without_ns = rebuilds_write(dir.path);
	reader = test_reader__open(dir.path);
	CU_ASSERT_EQUAL_FATAL(findings_make(&findings, reader, &opts), 0);
	CU_ASSERT_FATAL(findings.report.cause_cnt > 0);
	first = &findings.report.causes[0];
	CU_ASSERT_STRING_EQUAL(first->function, "rebuild");
	CU_ASSERT_DOUBLE_EQUAL(first->gain.p99_ns, without_ns, 0.05 * without_ns);
	findings_free(&findings);
	shard_reader__free(reader);
	test_dir__remove(&dir);
}

/* A thread with little time to spare: the next slow request comes before the backlog of the one before is gone. */
static void a_gain_is_a_lower_bound_where_backlogs_meet(void)
{
	static const struct queue queues[] = {
		{.gap_ns = 400 * US, .slow_share = 0.005, .slow_ns = 10 * MS},
		{.gap_ns = 150 * US, .slow_share = 0.005, .slow_ns = 9 * MS},
	};

	for (size_t q = 0; q < sizeof(queues) / sizeof(queues[0]); q++) {
		const struct findings_opts opts = {.tail = 0.99, .bootstrap_cnt = 100};
		struct findings findings;
		struct shard_reader *reader;
		struct test_dir dir;

		test_dir__make(&dir);
		queue_write(&queues[q], dir.path);
		reader = test_reader__open(dir.path);
		CU_ASSERT_EQUAL_FATAL(findings_make(&findings, reader, &opts), 0);
		CU_ASSERT_FATAL(findings.report.cause_cnt > 0);
		CU_ASSERT_STRING_EQUAL(findings.report.causes[0].root.type, "tcp:80 REBUILD");
		CU_ASSERT_EQUAL(findings.report.causes[0].gain.lower_bound, q == 1);
		findings_free(&findings);
		shard_reader__free(reader);
		test_dir__remove(&dir);
	}
}

int suite_root_gain(void)
{
	static const struct unit_test tests[] = {
		{"what queues behind a root goes with it", what_queues_behind_a_root_goes_with_it},
		{"what no sample fell into is as others of its length",
		 what_no_sample_fell_into_is_as_others_of_its_length},
		{"a gain is a lower bound where backlogs meet", a_gain_is_a_lower_bound_where_backlogs_meet},
	};

	return unit_suite("root gain", tests, sizeof(tests) / sizeof(tests[0]));
}
