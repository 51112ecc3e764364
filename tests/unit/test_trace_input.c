// SPDX-License-Identifier: GPL-2.0-or-later
/* Trace mode's model: input that nobody wishes for. */
#include "model/trace_internal.h"
#include "record_fixture.h"
#include "unit.h"

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
	struct trace_counts counts;
	size_t most = 0;

	for (uint64_t round = 0; round < 10; round++) {
		uint64_t at = (100 + round * 10) * MS;

		for (uint32_t tid = 2; tid < 10002; tid++) {
			record_task(trace, WL_TASK_SEEN, 1, tid, at, 1);
			record_segment(trace, tid, at, at + MS, WL_STATE_RUNQ_WAKEUP, 0);
			record_segment(trace, tid, at + MS, at + 2 * MS, WL_STATE_RUNNING, 0);
			record_task(trace, WL_TASK_EXIT, 1, tid, at + 2 * MS, 0);
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
	const struct wl_interval_record lossy = {.header = {.kind = WL_RECORD_INTERVAL, .sz = sizeof(lossy)},
						 .sid = 1,
						 .begin_ts = 100 * MS,
						 .pickup_ts = 100 * MS,
						 .end_ts = 107 * MS,
						 .pid = 1,
						 .tid = 10,
						 .end_tid = 10,
						 .flags = WL_INTERVAL_LOSSY};
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	struct trace_counts counts;

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 10, 105 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	CU_ASSERT_EQUAL(trace__take_interval(trace, &lossy), 0);
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
	record_futex_wait(trace, 10, 101 * MS, 103 * MS, 0);
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

/* The server was at a request when the recording began, and is at another one when it ends. */
/* A goroutine's wait that is told 8 ms after its end. */
static void what_is_late_depends_on_the_window(void)
{
	static const uint64_t windows_ns[] = {0, TRACE_GO_WINDOW_NS};

	for (size_t i = 0; i < sizeof(windows_ns) / sizeof(windows_ns[0]); i++) {
		struct trace *trace = trace__new(&(struct trace_opts){.memory = 4 << 20, .window_ns = windows_ns[i]});
		struct trace_counts counts;

		CU_ASSERT_PTR_NOT_NULL_FATAL(trace);
		record_segment(trace, 1, 100 * MS, 101 * MS, WL_STATE_RUNNING, 0);
		CU_ASSERT_EQUAL(trace__advance(trace, 110 * MS, NULL), 0);
		record_segment(trace, 2, 100 * MS, 102 * MS, WL_STATE_BLOCKED_NET, 0);
		CU_ASSERT_EQUAL(trace__advance(trace, 200 * MS, NULL), 0);
		trace__counts(trace, &counts);
		CU_ASSERT_EQUAL(counts.late, windows_ns[i] ? 0 : 1);
		trace__free(trace);
	}
}

static void a_recording_begins_and_ends_meanwhile(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	struct trace_counts counts;

	/* Only its arrival lies before the first that is known of the thread. */
	record_segment(trace, 10, 104 * MS, 105 * MS, WL_STATE_BLOCKED_NET, 1);
	record_segment(trace, 10, 105 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	/* This one is never said to have ended, and this wait goes on. */
	record_segment(trace, 10, 107 * MS, 108 * MS, WL_STATE_RUNNING, 2);
	record_wakeup(trace, 10, 108 * MS, 20, WL_CONTEXT_TASK, 0);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT(counts.kept == 1 && !counts.impossible && !counts.lossy && !counts.late);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 2);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_WAKEUP], 0);
	CU_ASSERT(trace->path.flags & PATH_GAP);
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

/* Which threads the path of the interval that was kept last leads through between the two. */
static bool path_passes(const struct trace *trace, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	for (size_t i = 0; i < trace->path.steps.cnt; i++) {
		const struct path_step *step = &trace->path.steps.items[i];

		if (step->tid == tid && step->begin_ts < to_ts && step->end_ts > from_ts)
			return true;
	}
	return false;
}

/* 30 is the child for a request, and then, at the same tick of the clock, the tid of the child for the next one. */
static void a_child_has_the_tid_of_the_one_before(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_task(trace, WL_TASK_SEEN, 1, 30, 100 * MS, 10);
	record_segment(trace, 30, 100 * MS, 105 * MS, WL_STATE_RUNNING, 1);
	record_interval(trace, 1, 30, 30, 100 * MS, 105 * MS, true);
	record_segment(trace, 30, 105 * MS, 106 * MS, WL_STATE_RUNNING, 0);
	record_task(trace, WL_TASK_EXIT, 1, 30, 106 * MS, 0);
	/* The second request is there from 103 ms on; its child is made when the first one has ended. */
	record_segment(trace, 10, 100 * MS, 106 * MS, WL_STATE_RUNNING, 0);
	record_task(trace, WL_TASK_SEEN, 1, 30, 106 * MS, 10);
	record_segment(trace, 30, 106 * MS, 109 * MS, WL_STATE_RUNNING, 2);
	record_request(trace, 2, 30, 103 * MS, 107 * MS, 109 * MS);
	record_task(trace, WL_TASK_EXIT, 1, 30, 109 * MS, 0);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL(trace->path.sid, 2);
	CU_ASSERT(path_passes(trace, 30, 106 * MS, 109 * MS));
	CU_ASSERT_FALSE(path_passes(trace, 30, 103 * MS, 106 * MS));
	CU_ASSERT(path_passes(trace, 10, 103 * MS, 106 * MS));
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

#define FORKS 5000

/* A child for each request, five thousand of them, within 4 MiB; all that is kept is written, with its creation. */
static void thousands_of_forks_stay_within_memory(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 4 << 20);
	struct trace_counts counts;
	size_t most = 0;

	for (uint32_t i = 0; i < FORKS; i++) {
		uint32_t child = 100 + i;
		uint64_t at = 100 * MS + i * MS, sid = i + 1;

		record_segment(trace, 10, at, at + 200 * US, WL_STATE_RUNNING, 0);
		record_task(trace, WL_TASK_SEEN, child, child, at + 200 * US, 10);
		record_segment(trace, 10, at + 200 * US, at + MS, WL_STATE_BLOCKED_POLL, 0);
		record_segment(trace, child, at + 200 * US, at + 300 * US, WL_STATE_RUNQ_WAKEUP, sid);
		/* What it writes to is copied for it. */
		for (uint64_t k = 0; k < 20; k++)
			record_segment(trace, child, at + (300 + 10 * k) * US, at + (310 + 10 * k) * US,
				       k % 2 ? WL_STATE_FAULT_MINOR : WL_STATE_RUNNING, sid);
		record_interval(trace, sid, child, child, at + 100 * US, at + 500 * US, true);
		record_task(trace, WL_TASK_EXIT, child, child, at + 600 * US, 0);
		CU_ASSERT_EQUAL_FATAL(trace__advance(trace, at + MS, NULL), 0);
		most = graph__bytes(trace->graph) > most ? graph__bytes(trace->graph) : most;
	}
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT(most <= (4 << 20) * 3 / 4);
	trace__counts(trace, &counts);
	CU_ASSERT(counts.kept == FORKS && !counts.cut_short && !counts.impossible && !counts.late);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_HANDOFF], FORKS);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "fork");
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 100 + FORKS - 1);
	CU_ASSERT(rows.cnt[SHARD_TABLE_SEGMENT] >= FORKS * 21);
	balance(trace, &rows);
	trace__free(trace);
	thread_names__free(names);
}

int suite_trace_input(void)
{
	static const struct unit_test tests[] = {
		{"what is late depends on the window", what_is_late_depends_on_the_window},
		{"a recording begins and ends meanwhile", a_recording_begins_and_ends_meanwhile},
		{"a child has the tid of the one before", a_child_has_the_tid_of_the_one_before},
		{"thousands of forks stay within memory", thousands_of_forks_stay_within_memory},
		{"ten thousand threads stay within memory", ten_thousand_threads_stay_within_memory},
		{"a loss in the middle is told", a_loss_in_the_middle_is_told},
		{"ties of the clock lose nothing", ties_of_the_clock_lose_nothing},
		{"minutes of idleness are survived", minutes_of_idleness_are_survived},
		{"any order is put right", any_order_is_put_right},
	};

	return unit_suite("trace input", tests, sizeof(tests) / sizeof(tests[0]));
}
