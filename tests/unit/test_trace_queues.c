// SPDX-License-Identifier: GPL-2.0-only
/* Trace mode's model: requests that pass through threads, timers, and input that nobody wishes for. */
#include "model/trace_internal.h"
#include "record_fixture.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* A request of type tcp:80, read at pickup_ts. */
static void request(struct trace *trace, uint64_t sid, uint32_t tid, uint64_t begin_ts, uint64_t pickup_ts,
		    uint64_t end_ts)
{
	struct wl_interval_record *record = calloc(1, sizeof(*record));

	record->header.kind = WL_RECORD_INTERVAL;
	record->header.sz = sizeof(*record);
	record->sid = sid;
	record->begin_ts = begin_ts;
	record->pickup_ts = pickup_ts;
	record->end_ts = end_ts;
	record->pid = 1;
	record->tid = record->end_tid = tid;
	record->type = WL_SOURCE_TCP << 16 | 80;
	CU_ASSERT_EQUAL(trace__take_interval(trace, record), 0);
	free(record);
}

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

/* Waits for a futex that `owner_tid` owns, 0: nobody. */
static void futex_wait(struct trace *trace, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint32_t owner_tid)
{
	struct wl_segment_record record = {.begin_ts = begin_ts,
					   .end_ts = end_ts,
					   .object = 0x5000,
					   .pid = 1,
					   .tid = tid,
					   .state = WL_STATE_BLOCKED_FUTEX,
					   .sysno = -1,
					   .other_tid = owner_tid};

	record.header.kind = WL_RECORD_SEGMENT;
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
	futex_wait(trace, 20, 60 * MS, 103 * MS, 0);
	record_wakeup(trace, 20, 103 * MS, 10, WL_CONTEXT_TASK, 0);
	record_segment(trace, 10, 103 * MS, 104 * MS, WL_STATE_RUNNING, 0);
	/* The queue's own mutex: whoever lets go of that has handed over nothing. */
	record_segment(trace, 20, 103 * MS, 104 * MS, WL_STATE_RUNQ_WAKEUP, 0);
	futex_wait(trace, 20, 104 * MS, 105 * MS, 30);
	record_wakeup(trace, 20, 105 * MS, 30, WL_CONTEXT_TASK, 0);
	record_segment(trace, 20, 105 * MS, 106 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, 106 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	request(trace, 7, 20, 100 * MS - 5 * US, 106 * MS, 110 * MS);
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
	request(trace, 7, 20, 100 * MS - 5 * US, 109 * MS, 110 * MS);
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
	request(trace, 7, 20, 100 * MS - 5 * US, 105 * MS, 110 * MS);
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

	futex_wait(trace, 20, 90 * MS, 101 * MS, 0);
	record_wakeup(trace, 20, 101 * MS, 10, WL_CONTEXT_TASK, 0);
	futex_wait(trace, 20, 101 * MS + US, 103 * MS, 0);
	record_wakeup(trace, 20, 103 * MS, 11, WL_CONTEXT_TASK, 0);
	record_segment(trace, 20, 103 * MS, 110 * MS, WL_STATE_RUNNING, 7);
	request(trace, 7, 20, 100 * MS, 103 * MS + US, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, "ambiguous");
	CU_ASSERT_EQUAL(rows.handoff_from, 11);
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
	request(trace, 7, 20, 100 * MS, 100 * MS, 110 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_SEGMENT], 1);
	CU_ASSERT_STRING_EQUAL(rows.types[0], "tcp:80");
	trace__free(trace);
	thread_names__free(names);
}

/* --- bad input ---------------------------------------------------------------------------------------------------- */

static void balance(struct trace *trace, const struct record_rows *rows)
{
	struct trace_counts counts;
	uint64_t received, written;

	trace__counts(trace, &counts);
	received = counts.received[SHARD_TABLE_SEGMENT] + counts.received[SHARD_TABLE_WAKEUP] +
		   counts.received[SHARD_TABLE_HANDOFF];
	written = rows->cnt[SHARD_TABLE_SEGMENT] + rows->cnt[SHARD_TABLE_WAKEUP] + rows->cnt[SHARD_TABLE_HANDOFF];
	CU_ASSERT_EQUAL(received, written + counts.forgotten);
}

/* Ten thousand threads that come and go, and whose tids are used again, within 4 MiB. */
static void ten_thousand_threads_stay_within_memory(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 4 << 20);
	struct wl_task_record task = {.event = WL_TASK_SEEN, .pid = 1, .parent_pid = 1, .creator_tid = 1};
	struct trace_counts counts;
	size_t most = 0;

	task.header.kind = WL_RECORD_TASK;
	task.header.sz = sizeof(task);
	for (uint64_t round = 0; round < 10; round++) {
		uint64_t at = (100 + round * 10) * MS;

		for (uint32_t tid = 2; tid < 10002; tid++) {
			task.ts = at;
			task.event = WL_TASK_SEEN;
			task.tid = tid;
			CU_ASSERT_EQUAL_FATAL(trace__take(trace, &task.header), 0);
			record_segment(trace, tid, at, at + MS, WL_STATE_RUNQ_WAKEUP, 0);
			record_segment(trace, tid, at + MS, at + 2 * MS, WL_STATE_RUNNING, 0);
			task.ts = at + 2 * MS;
			task.event = WL_TASK_EXIT;
			CU_ASSERT_EQUAL_FATAL(trace__take(trace, &task.header), 0);
		}
		record_segment(trace, 1, at, at + 2 * MS, WL_STATE_RUNNING, round + 1);
		record_interval(trace, round + 1, 1, 1, at, at + 2 * MS, true);
		CU_ASSERT_EQUAL_FATAL(trace__advance(trace, at + 10 * MS, NULL), 0);
		most = graph__bytes(trace->graph) > most ? graph__bytes(trace->graph) : most;
	}
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT(most <= (4 << 20) * 3 / 4);
	trace__counts(trace, &counts);
	CU_ASSERT_EQUAL(counts.kept, 10);
	CU_ASSERT_EQUAL(counts.impossible, 0);
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

/* Records were lost while it was open: it is written, counted, and said to be uncertain. */
static void a_loss_in_the_middle_is_told(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	struct trace_counts counts;

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	/* From 101 to 105 ms nobody knows. */
	CU_ASSERT_EQUAL(trace__lost(trace, 101 * MS, 105 * MS), 0);
	record_segment(trace, 10, 105 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	record_segment(trace, 10, 200 * MS, 207 * MS, WL_STATE_RUNNING, 2);
	record_interval(trace, 2, 10, 10, 200 * MS, 207 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT_EQUAL(counts.kept, 2);
	CU_ASSERT_EQUAL(counts.lossy, 1);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 3);
	trace__free(trace);
	thread_names__free(names);
}

/* Everything at one moment: who woke whom is found all the same, and nothing is counted twice. */
static void ties_of_the_clock_lose_nothing(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	struct trace_counts counts;

	record_interval(trace, 1, 10, 10, 100 * MS, 103 * MS, true);
	record_wakeup(trace, 10, 103 * MS, 20, WL_CONTEXT_TASK, 0);
	record_segment(trace, 20, 100 * MS, 103 * MS, WL_STATE_RUNNING, 0);
	futex_wait(trace, 10, 101 * MS, 103 * MS, 0);
	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT_EQUAL(counts.impossible, 0);
	CU_ASSERT_EQUAL(counts.late, 0);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_WAKEUP], 1);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 3);
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

/* The server is idle for five minutes while others fill the memory. */
static void minutes_of_idleness_are_survived(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 2 << 20);
	struct trace_counts counts;
	uint64_t end = 100 * MS + 300000 * MS;

	for (uint64_t at = 100 * MS; at < end; at += 30 * MS) {
		record_segment(trace, 20, at, at + 10 * MS, WL_STATE_RUNNING, 0);
		record_segment(trace, 20, at + 10 * MS, at + 30 * MS, WL_STATE_BLOCKED_SLEEP, 0);
		CU_ASSERT_EQUAL_FATAL(trace__advance(trace, at + 30 * MS, NULL), 0);
	}
	record_segment(trace, 10, 100 * MS, end, WL_STATE_BLOCKED_POLL, 0);
	record_segment(trace, 10, end, end + MS, WL_STATE_RUNNING, 1);
	record_interval(trace, 1, 10, 10, end, end + MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT(counts.kept == 1 && counts.late == 0);
	CU_ASSERT(rows.cnt[SHARD_TABLE_SEGMENT] >= 1);
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

/* However they come out of the rings, they are put in order. */
static void any_order_is_put_right(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t k = i * 1999 % 3000;

		record_segment(trace, 10, 100 * MS + k * US, 100 * MS + (k + 1) * US, WL_STATE_RUNNING, 1);
	}
	record_interval(trace, 1, 10, 10, 100 * MS, 103 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 3000);
	for (uint32_t i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(rows.begin_ts[i], 100 * MS + i * US);
	balance(trace, &rows);
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
		{"a timer is a hand-off from who armed it", a_timer_is_a_handoff_from_who_armed_it},
		{"segments say of which type their interval is", segments_say_of_which_type_their_interval_is},
		{"ten thousand threads stay within memory", ten_thousand_threads_stay_within_memory},
		{"a loss in the middle is told", a_loss_in_the_middle_is_told},
		{"ties of the clock lose nothing", ties_of_the_clock_lose_nothing},
		{"minutes of idleness are survived", minutes_of_idleness_are_survived},
		{"any order is put right", any_order_is_put_right},
	};

	return unit_suite("trace queues", tests, sizeof(tests) / sizeof(tests[0]));
}
