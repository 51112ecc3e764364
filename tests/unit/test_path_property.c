// SPDX-License-Identifier: GPL-2.0-or-later
/* Whatever the schedule: the path partitions the interval to the nanosecond, and the walk ends. */
#include "graph_fixture.h"
#include "unit.h"

#include "test_shard_util.h"

#define THREAD_CNT 8
#define SPAN       2000

static enum wl_state random_state(struct test_rng *rng)
{
	static const enum wl_state states[] = {
		WL_STATE_RUNNING,      WL_STATE_RUNNING,      WL_STATE_RUNQ_WAKEUP,   WL_STATE_RUNQ_PREEMPT,
		WL_STATE_IRQ_TIMER,    WL_STATE_FAULT_MAJOR,  WL_STATE_BLOCKED_NET,   WL_STATE_BLOCKED_FUTEX,
		WL_STATE_BLOCKED_DISK, WL_STATE_BLOCKED_PIPE, WL_STATE_BLOCKED_POLL,  WL_STATE_BLOCKED_SLEEP,
		WL_STATE_THROTTLED,    WL_STATE_UNKNOWN,      WL_STATE_BLOCKED_OTHER,
	};

	return states[test_rng__below(rng, sizeof(states) / sizeof(states[0]))];
}

/*
 * A schedule as a kernel makes it: every thread is always in one state, what is blocked is woken by one that is not, or
 * by an interrupt, and becomes runnable.
 */
static void make_schedule(struct graph *graph, struct test_rng *rng)
{
	for (uint32_t tid = 1; tid <= THREAD_CNT; tid++) {
		uint64_t ts = 0, sid = 0;

		while (ts < SPAN) {
			uint64_t end_ts = ts + 1 + test_rng__below(rng, 120);
			enum wl_state state = random_state(rng);

			if (!test_rng__below(rng, 4))
				sid = test_rng__below(rng, 5);
			fixture_segment(graph, tid, ts, end_ts, state, sid);
			if (state >= WL_STATE_BLOCKED_FUTEX && state <= WL_STATE_BLOCKED_OTHER)
				fixture_wakeup(graph, tid, end_ts, (uint32_t)test_rng__below(rng, THREAD_CNT + 1));
			ts = end_ts;
		}
	}
}

/* What a thread of another process did, which had the tid before or after. */
static void make_stranger(struct graph *graph, struct test_rng *rng, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	const struct graph_segment segment = {
		.begin_ts = from_ts, .end_ts = to_ts, .pid = FIXTURE_PID + 1, .state = random_state(rng)};

	CU_ASSERT_EQUAL(graph__add_segment(graph, tid, &segment), 0);
}

/* Everything that damage, loss and hostility may add to it. */
static void make_noise(struct graph *graph, struct test_rng *rng)
{
	for (int i = 0; i < 60; i++) {
		uint32_t tid = 1 + (uint32_t)test_rng__below(rng, THREAD_CNT);
		uint64_t from_ts = test_rng__below(rng, SPAN), to_ts = from_ts + test_rng__below(rng, 300);
		uint32_t from_tid = 1 + (uint32_t)test_rng__below(rng, THREAD_CNT + 2);

		switch (test_rng__below(rng, 5)) {
		case 0:
			fixture_segment(graph, tid, from_ts, to_ts, random_state(rng), test_rng__below(rng, 5));
			break;
		case 1:
			fixture_wakeup(graph, tid, from_ts, from_tid);
			break;
		case 2:
			fixture_handoff(graph, (enum wl_handoff)test_rng__below(rng, WL_HANDOFF_CNT), from_tid, from_ts,
					tid, test_rng__below(rng, 3) ? to_ts : from_ts, test_rng__below(rng, 5));
			break;
		case 3:
			CU_ASSERT_EQUAL(graph__add_exit(graph, tid, from_ts), 0);
			break;
		case 4:
			make_stranger(graph, rng, tid, from_ts, to_ts);
			break;
		}
	}
}

static struct graph_interval random_interval(struct test_rng *rng)
{
	uint64_t begin_ts = test_rng__below(rng, SPAN), length_ns = test_rng__below(rng, SPAN);
	struct graph_interval interval =
		fixture_interval(1 + test_rng__below(rng, 4), begin_ts, begin_ts + test_rng__below(rng, length_ns + 1),
				 begin_ts + length_ns, 1 + (uint32_t)test_rng__below(rng, THREAD_CNT));

	if (!test_rng__below(rng, 3))
		interval.end_tid = 1 + (uint32_t)test_rng__below(rng, THREAD_CNT + 1);
	return interval;
}

static void try_schedules(bool with_noise)
{
	struct test_rng rng = {with_noise ? 17 : 4};
	struct path path = {0};
	size_t step_cnt = 0, deep_cnt = 0;

	for (int round = 0; round < 150; round++) {
		struct graph *graph = graph__new();

		make_schedule(graph, &rng);
		if (with_noise)
			make_noise(graph, &rng);
		for (int i = 0; i < 40; i++) {
			struct graph_interval interval = random_interval(&rng);

			CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
			fixture_partitions(&path, &interval);
			step_cnt += path.steps.cnt;
			for (size_t s = 0; s < path.steps.cnt; s++)
				deep_cnt += path.steps.items[s].depth > 1;
		}
		graph__free(graph);
	}
	/* The schedules are such that there is something to follow. */
	CU_ASSERT(step_cnt > 150 * 40 * 4 && deep_cnt > step_cnt / 50);
	path__clear(&path);
}

static void schedules_are_partitioned(void)
{
	try_schedules(false);
}

static void damaged_schedules_are_partitioned(void)
{
	try_schedules(true);
}

/* What was forgotten is missing, and what is left is still a partition. */
static void forgotten_schedules_are_partitioned(void)
{
	struct test_rng rng = {23};
	struct path path = {0};

	for (int round = 0; round < 100; round++) {
		struct graph *graph = graph__new();

		make_schedule(graph, &rng);
		for (uint64_t ts = 0; ts < SPAN; ts += SPAN / 10) {
			struct graph_interval interval = random_interval(&rng);

			graph__forget(graph, ts);
			CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
			fixture_partitions(&path, &interval);
		}
		graph__free(graph);
	}
	path__clear(&path);
}

/* Thousands of threads, each of which waits for the next: the walk takes what the path has, not what there is. */
static void ten_thousand_threads(void)
{
	struct graph *graph = graph__new();
	struct graph_interval interval = fixture_interval(1, 0, 0, 1000, 1);
	struct path path = {0};

	for (uint32_t tid = 1; tid <= 10000; tid++) {
		fixture_segment(graph, tid, 0, 100, WL_STATE_RUNNING, tid);
		fixture_segment(graph, tid, 100, 500, WL_STATE_BLOCKED_FUTEX, tid);
		fixture_wakeup(graph, tid, 500, tid % 10 ? tid + 1 : 0);
		fixture_segment(graph, tid, 500, 1000, WL_STATE_RUNNING, tid);
	}
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		interval.sid = tid;
		interval.tid = interval.end_tid = tid;
		CU_ASSERT_EQUAL(path_walk(&path, graph, &interval), 0);
		fixture_partitions(&path, &interval);
		CU_ASSERT(path.steps.cnt <= 12);
	}
	path__clear(&path);
	graph__free(graph);
}

int suite_path_property(void)
{
	static const struct unit_test tests[] = {
		{"schedules are partitioned", schedules_are_partitioned},
		{"damaged schedules are partitioned", damaged_schedules_are_partitioned},
		{"forgotten schedules are partitioned", forgotten_schedules_are_partitioned},
		{"ten thousand threads", ten_thousand_threads},
	};

	return unit_suite("path_property", tests, sizeof(tests) / sizeof(tests[0]));
}
