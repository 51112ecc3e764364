// SPDX-License-Identifier: GPL-2.0-or-later
/* Trace mode's model: requests that pass through threads, and timers. */
#include "model/trace_internal.h"
#include "record_fixture.h"
#include "unit.h"

#include <string.h>

/* The thread is told of a request's arrival. */
static void told(struct trace *trace, uint32_t tid, uint64_t ts, uint64_t sid)
{
	struct wl_wakeup_record record = {.ts = ts,
					  .arrived_sid = sid,
					  .pid = 1,
					  .tid = tid,
					  .waker_pid = 9,
					  .waker_tid = 9,
					  .context = WL_CONTEXT_SOFTIRQ,
					  .waker_sysno = -1};

	record.header.kind = WL_RECORD_WAKEUP;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

static uint64_t sid_of(const struct record_rows *rows, uint32_t tid, uint64_t begin_ts)
{
	for (uint32_t i = 0; i < rows->cnt[SHARD_TABLE_SEGMENT] && i < 64; i++)
		if (rows->tids[i] == tid && rows->begin_ts[i] == begin_ts)
			return rows->sids[i];
	return UINT64_MAX;
}

/* 10 is told of the request at 100 ms and wakes worker 20 for it, which answers. */
static void a_listener_hands_over_what_it_was_told_of(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_segment(trace, 10, 50 * MS, 100 * MS, WL_STATE_BLOCKED_POLL, 0);
	told(trace, 10, 100 * MS, 7);
	record_segment(trace, 10, 100 * MS, 102 * MS, WL_STATE_RUNQ_WAKEUP, 0);
	record_segment(trace, 10, 102 * MS, 103 * MS, WL_STATE_RUNNING, 0);
	record_futex_wait(trace, 20, 60 * MS, 103 * MS, 0);
	record_wakeup(trace, 20, 103 * MS, 10, WL_CONTEXT_TASK, 0);
	record_segment(trace, 10, 103 * MS, 104 * MS, WL_STATE_RUNNING, 0);
	/* The queue's own mutex: whoever lets go of that has handed over nothing. */
	record_segment(trace, 20, 103 * MS, 104 * MS, WL_STATE_RUNQ_WAKEUP, 0);
	record_futex_wait(trace, 20, 104 * MS, 105 * MS, 30);
	record_wakeup(trace, 20, 105 * MS, 30, WL_CONTEXT_TASK, 0);
	record_segment(trace, 20, 105 * MS, 106 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, 106 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	record_request(trace, 7, 20, 100 * MS - 5 * US, 106 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "queue");
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, "inferred");
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 20);
	CU_ASSERT(rows.handoff_from_ts == 103 * MS && rows.handoff_to_ts == 103 * MS);
	CU_ASSERT_EQUAL(sid_of(&rows, 10, 100 * MS), 7);
	CU_ASSERT_EQUAL(sid_of(&rows, 10, 102 * MS), 7);
	CU_ASSERT_EQUAL(sid_of(&rows, 20, 103 * MS), 7);
	CU_ASSERT_EQUAL(sid_of(&rows, 20, 105 * MS), 7);
	trace__free(trace);
	thread_names__free(names);
}

/* Worker 20 is at request 6 when 10 is told of request 7, and comes for it by itself. */
static void a_busy_worker_comes_for_it(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	told(trace, 10, 100 * MS, 7);
	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 10, 101 * MS, 120 * MS, WL_STATE_BLOCKED_POLL, 0);
	record_segment(trace, 20, 90 * MS, 108 * MS, WL_STATE_RUNNING, 6);
	record_segment(trace, 20, 108 * MS, 109 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, 109 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	record_request(trace, 7, 20, 100 * MS - 5 * US, 109 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 20);
	CU_ASSERT(rows.handoff_from_ts == 101 * MS && rows.handoff_to_ts == 108 * MS);
	trace__free(trace);
	thread_names__free(names);
}

/* Who was told of it and had not even run when another one read it has handed over nothing. */
static void who_never_ran_handed_over_nothing(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	told(trace, 10, 100 * MS, 7);
	record_segment(trace, 10, 100 * MS, 120 * MS, WL_STATE_RUNQ_WAKEUP, 0);
	record_segment(trace, 20, 90 * MS, 105 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, 105 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	record_request(trace, 7, 20, 100 * MS - 5 * US, 105 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_HANDOFF], 0);
	trace__free(trace);
	thread_names__free(names);
}

/* Two threads woke the reader, and nobody is known to have been told. */
static void two_wakers_are_ambiguous(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_futex_wait(trace, 20, 90 * MS, 101 * MS, 0);
	record_wakeup(trace, 20, 101 * MS, 10, WL_CONTEXT_TASK, 0);
	record_futex_wait(trace, 20, 101 * MS + US, 103 * MS, 0);
	record_wakeup(trace, 20, 103 * MS, 11, WL_CONTEXT_TASK, 0);
	record_segment(trace, 20, 103 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	record_request(trace, 7, 20, 100 * MS, 103 * MS + US, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, "ambiguous");
	CU_ASSERT_EQUAL(rows.handoff_from, 11);
	trace__free(trace);
	thread_names__free(names);
}

/* Loop 10 waits for a CPU for longer than worker 20 is at its request: the worker's part is written all the same. */
static void what_a_worker_did_beside_the_path_is_kept(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	const struct wl_queue_record given = {.header = {.kind = WL_RECORD_QUEUE, .sz = sizeof(given)},
					      .from_ts = 102 * MS,
					      .to_ts = 103 * MS,
					      .sid = 7,
					      .from_pid = 1,
					      .from_tid = 10,
					      .to_pid = 1,
					      .to_tid = 20};

	record_segment(trace, 10, 100 * MS, 102 * MS, WL_STATE_RUNNING, 7);
	record_segment(trace, 10, 102 * MS, 108 * MS, WL_STATE_RUNQ_PREEMPT, 7);
	record_segment(trace, 10, 108 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	record_segment(trace, 20, 100 * MS, 103 * MS, WL_STATE_RUNNING, 6);
	CU_ASSERT_EQUAL(trace__take(trace, &given.header), 0);
	record_segment(trace, 20, 103 * MS, 105 * MS, WL_STATE_RUNNING, 7);
	record_segment(trace, 20, 105 * MS, 109 * MS, WL_STATE_RUNNING, 8);
	record_request(trace, 7, 10, 100 * MS, 100 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, "observed");
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 20);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 4);
	CU_ASSERT_EQUAL(sid_of(&rows, 20, 103 * MS), 7);
	trace__free(trace);
	thread_names__free(names);
}

static void timer(struct trace *trace, uint32_t tid, uint64_t ts, uint64_t armed_ts, uint32_t armed_tid, bool own)
{
	struct wl_timer_record record = {.ts = ts,
					 .expire_ts = ts - 2 * US,
					 .timer = 0x7000,
					 .armed_ts = armed_ts,
					 .pid = 1,
					 .tid = tid,
					 .armed_pid = armed_tid ? 1 : 0,
					 .armed_tid = armed_tid,
					 .own = own};

	record.header.kind = WL_RECORD_TIMER;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

/* By 30, which armed it, or by the call's own timeout. */
static void timer_case(uint32_t armed_tid, bool own, uint32_t from_tid, const char *certainty)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 10, 101 * MS, 106 * MS, WL_STATE_BLOCKED_POLL, 1);
	record_wakeup(trace, 10, 106 * MS, 99, WL_CONTEXT_TIMER, 0);
	timer(trace, 10, 106 * MS, armed_tid ? 60 * MS : 0, armed_tid, own);
	record_segment(trace, 10, 106 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "timer");
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, certainty);
	CU_ASSERT_EQUAL(rows.handoff_from, from_tid);
	CU_ASSERT_EQUAL(rows.handoff_to, 10);
	trace__free(trace);
	thread_names__free(names);
}

static void a_timer_is_a_handoff_from_who_armed_it(void)
{
	timer_case(30, true, 30, "observed");
	timer_case(0, true, 10, "inferred");
}

static void segments_say_of_which_type_their_interval_is(void)
{
	struct wl_segment_record record = {.begin_ts = 100 * MS,
					   .end_ts = 110 * MS,
					   .sid = 7,
					   .pid = 1,
					   .tid = 20,
					   .state = WL_STATE_RUNNING,
					   .sysno = -1,
					   .type = WL_SOURCE_TCP << 16 | 80};
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record.header.kind = WL_RECORD_SEGMENT;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
	record_request(trace, 7, 20, 100 * MS, 100 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_SEGMENT], 1);
	CU_ASSERT_STRING_EQUAL(rows.types[0], "tcp:80");
	trace__free(trace);
	thread_names__free(names);
}

int suite_trace_queues(void)
{
	static const struct unit_test tests[] = {
		{"a listener hands over what it was told of", a_listener_hands_over_what_it_was_told_of},
		{"a busy worker comes for it", a_busy_worker_comes_for_it},
		{"who never ran handed over nothing", who_never_ran_handed_over_nothing},
		{"two wakers are ambiguous", two_wakers_are_ambiguous},
		{"what a worker did beside the path is kept", what_a_worker_did_beside_the_path_is_kept},
		{"a timer is a hand-off from who armed it", a_timer_is_a_handoff_from_who_armed_it},
		{"segments say of which type their interval is", segments_say_of_which_type_their_interval_is},
	};

	return unit_suite("trace queues", tests, sizeof(tests) / sizeof(tests[0]));
}
