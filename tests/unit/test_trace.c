// SPDX-License-Identifier: GPL-2.0-or-later
/* Trace mode's model: records in, rows of kept intervals out. */
#include "base/names.h"
#include "model/trace.h"
#include "model/trace_order.h"
#include "model/trace_sockets.h"
#include "record_fixture.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --- order ----------------------------------------------------------------------------------------------------------
 */

struct released {
	uint64_t ts[64];
	uint16_t kind[64];
	uint32_t cnt;
	int err;
};

static int note_item(void *owner, const struct trace_item *item)
{
	struct released *released = owner;

	released->ts[released->cnt] = item->ts;
	released->kind[released->cnt++] = item->kind;
	return released->err;
}

static void add_item(struct trace_order *order, uint64_t ts, uint16_t kind)
{
	struct trace_item item = {.ts = ts, .kind = kind};

	CU_ASSERT_EQUAL(trace_order__add(order, &item), 0);
}

static void items_come_out_in_order_of_time(void)
{
	struct trace_order *order = trace_order__new();
	struct released released = {0};

	add_item(order, 30, WL_RECORD_SEGMENT);
	add_item(order, 10, WL_RECORD_WAKEUP);
	add_item(order, 20, WL_RECORD_SEGMENT);
	add_item(order, 50, WL_RECORD_SEGMENT);
	CU_ASSERT_EQUAL(trace_order__release(order, 30, note_item, &released), 0);
	CU_ASSERT_EQUAL_FATAL(released.cnt, 3);
	CU_ASSERT(released.ts[0] == 10 && released.ts[1] == 20 && released.ts[2] == 30);
	add_item(order, 40, WL_RECORD_WAKEUP);
	CU_ASSERT_EQUAL(trace_order__late_cnt(order), 0);
	CU_ASSERT_EQUAL(trace_order__release(order, UINT64_MAX, note_item, &released), 0);
	CU_ASSERT_EQUAL_FATAL(released.cnt, 5);
	CU_ASSERT(released.ts[3] == 40 && released.ts[4] == 50);
	trace_order__free(order);
}

static void ties_put_segments_before_edges_and_intervals_last(void)
{
	static const uint16_t kinds[] = {WL_RECORD_INTERVAL, WL_RECORD_WAKEUP, WL_RECORD_BLOCK, WL_RECORD_SEGMENT,
					 WL_RECORD_TASK};
	static const uint16_t expected[] = {WL_RECORD_TASK, WL_RECORD_SEGMENT, WL_RECORD_BLOCK, WL_RECORD_WAKEUP,
					    WL_RECORD_INTERVAL};
	struct trace_order *order = trace_order__new();
	struct released released = {0};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		add_item(order, 7, kinds[i]);
	CU_ASSERT_EQUAL(trace_order__release(order, 7, note_item, &released), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CU_ASSERT_EQUAL(released.kind[i], expected[i]);
	trace_order__free(order);
}

static void what_comes_too_late_is_counted_and_handed_over(void)
{
	struct trace_order *order = trace_order__new();
	struct released released = {0};

	add_item(order, 100, WL_RECORD_SEGMENT);
	trace_order__release(order, 200, note_item, &released);
	add_item(order, 150, WL_RECORD_SEGMENT);
	CU_ASSERT_EQUAL(trace_order__late_cnt(order), 1);
	trace_order__release(order, 200, note_item, &released);
	CU_ASSERT(released.cnt == 2 && released.ts[1] == 150);
	trace_order__free(order);
}

static void an_error_stops_and_loses_only_what_was_handed_over(void)
{
	struct trace_order *order = trace_order__new();
	struct released released = {.err = -ENOSPC};

	for (uint64_t ts = 1; ts <= 5; ts++)
		add_item(order, 6 - ts, WL_RECORD_SEGMENT);
	CU_ASSERT_EQUAL(trace_order__release(order, 10, note_item, &released), -ENOSPC);
	released.err = 0;
	CU_ASSERT_EQUAL(trace_order__release(order, 10, note_item, &released), 0);
	CU_ASSERT_EQUAL_FATAL(released.cnt, 5);
	for (uint64_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(released.ts[i], i + 1);
	trace_order__free(order);
}

/* --- sockets --------------------------------------------------------------------------------------------------------
 */

struct matches {
	uint32_t cnt;
	struct {
		uint32_t from_tid, to_tid;
		bool mixed;
	} items[32];
};

static int note_match(void *owner, const struct wl_socket_record *sent, const struct wl_socket_record *received,
		      bool mixed)
{
	struct matches *matches = owner;

	matches->items[matches->cnt].mixed = mixed;
	matches->items[matches->cnt].from_tid = sent ? sent->tid : 0;
	matches->items[matches->cnt++].to_tid = received->tid;
	return 0;
}

/* Between port 1000 of one end and port 2000 of the other. */
static struct wl_socket_record socket_record(uint64_t ts, uint32_t tid, bool sent, bool from_1000, uint64_t pos,
					     uint32_t len)
{
	struct wl_socket_record record = {
		.ts = ts,
		.pos = pos,
		.len = len,
		.tid = tid,
		.pid = tid,
		.family = AF_INET,
		.direction = sent ? WL_SENT : WL_RECEIVED,
		.local_port = sent == from_1000 ? 1000 : 2000,
		.remote_port = sent == from_1000 ? 2000 : 1000,
	};

	record.header.kind = WL_RECORD_SOCKET;
	record.header.sz = sizeof(record);
	record.local_addr[0] = record.remote_addr[0] = 127;
	return record;
}

static void take_socket(struct trace_sockets *sockets, struct wl_socket_record record, struct matches *matches)
{
	CU_ASSERT_EQUAL(trace_sockets__take(sockets, &record, note_match, matches), 0);
}

static void a_receive_is_matched_by_byte_position(void)
{
	struct trace_sockets *sockets = trace_sockets__new();
	struct matches matches = {0};

	take_socket(sockets, socket_record(1, 11, true, true, 100, 50), &matches);
	take_socket(sockets, socket_record(2, 12, true, true, 150, 50), &matches);
	take_socket(sockets, socket_record(3, 13, true, false, 100, 100), &matches);
	take_socket(sockets, socket_record(4, 20, false, true, 150, 50), &matches);
	take_socket(sockets, socket_record(5, 21, false, true, 149, 51), &matches);
	take_socket(sockets, socket_record(6, 22, false, false, 120, 10), &matches);
	CU_ASSERT_EQUAL_FATAL(matches.cnt, 3);
	CU_ASSERT(matches.items[0].from_tid == 12 && matches.items[0].to_tid == 20);
	CU_ASSERT(matches.items[1].from_tid == 11 && matches.items[1].to_tid == 21);
	CU_ASSERT(matches.items[2].from_tid == 13 && matches.items[2].to_tid == 22);
	trace_sockets__free(sockets);
}

static void sequence_numbers_wrap_around(void)
{
	struct trace_sockets *sockets = trace_sockets__new();
	struct matches matches = {0};

	take_socket(sockets, socket_record(1, 11, true, true, 0xfffffff0, 32), &matches);
	take_socket(sockets, socket_record(2, 20, false, true, 4, 12), &matches);
	CU_ASSERT(matches.cnt == 1 && matches.items[0].from_tid == 11);
	trace_sockets__free(sockets);
}

static void a_receive_waits_for_a_send_that_returns_late(void)
{
	struct trace_sockets *sockets = trace_sockets__new();
	struct matches matches = {0};

	take_socket(sockets, socket_record(1, 20, false, true, 100, 10), &matches);
	CU_ASSERT_EQUAL(matches.cnt, 0);
	take_socket(sockets, socket_record(2, 11, true, true, 100, 10), &matches);
	CU_ASSERT(matches.cnt == 1 && matches.items[0].from_tid == 11 && matches.items[0].to_tid == 20);
	/* From another host: nobody ever says to have sent it. */
	take_socket(sockets, socket_record(3, 21, false, true, 500, 10), &matches);
	CU_ASSERT_EQUAL(trace_sockets__settle(sockets, 3, note_match, &matches), 0);
	CU_ASSERT_EQUAL(matches.cnt, 1);
	CU_ASSERT_EQUAL(trace_sockets__settle(sockets, 4, note_match, &matches), 0);
	CU_ASSERT(matches.cnt == 2 && !matches.items[1].from_tid && matches.items[1].to_tid == 21);
	trace_sockets__free(sockets);
}

/* As a connection that several requests share has it. */
static void bytes_for_several_intervals_are_mixed(void)
{
	struct wl_socket_record first = socket_record(1, 11, true, true, 100, 50),
				second = socket_record(2, 11, true, true, 150, 50),
				third = socket_record(3, 11, true, true, 200, 50);
	struct trace_sockets *sockets = trace_sockets__new();
	struct matches matches = {0};

	first.sid = second.sid = 7;
	third.sid = 8;
	take_socket(sockets, first, &matches);
	take_socket(sockets, second, &matches);
	take_socket(sockets, third, &matches);
	take_socket(sockets, socket_record(4, 20, false, true, 100, 50), &matches);
	take_socket(sockets, socket_record(5, 20, false, true, 100, 100), &matches);
	take_socket(sockets, socket_record(6, 20, false, true, 100, 101), &matches);
	take_socket(sockets, socket_record(7, 20, false, true, 200, 50), &matches);
	/* Who sent the last ten bytes is not known. */
	take_socket(sockets, socket_record(8, 20, false, true, 200, 60), &matches);
	/* The send of this one comes after it. */
	take_socket(sockets, socket_record(9, 20, false, true, 250, 10), &matches);
	take_socket(sockets, socket_record(10, 11, true, true, 250, 10), &matches);
	CU_ASSERT_EQUAL_FATAL(matches.cnt, 6);
	CU_ASSERT(!matches.items[0].mixed && !matches.items[1].mixed && matches.items[2].mixed);
	CU_ASSERT(!matches.items[3].mixed && matches.items[4].mixed && !matches.items[5].mixed);
	trace_sockets__free(sockets);
}

static void addresses_are_written_as_people_do(void)
{
	struct wl_socket_record record = socket_record(1, 1, true, true, 0, 1);
	char text[64];

	trace_socket_address(&record, true, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "127.0.0.0:2000");
	record.family = AF_INET6;
	memset(record.local_addr, 0, 16);
	record.local_addr[15] = 1;
	trace_socket_address(&record, false, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "[::1]:1000");
	record.family = AF_UNIX;
	trace_socket_address(&record, false, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
}

/* --- the whole ------------------------------------------------------------------------------------------------------
 */

/* Thread 10 waits for a lock that 20 holds while it sleeps; 30 has nothing to do with it.  All moved by `at`. */
static void lock_wait(struct trace *trace, uint64_t at, uint64_t sid, bool keep)
{
	record_segment(trace, 20, at, at + 5 * MS, WL_STATE_BLOCKED_SLEEP, 0);
	record_segment(trace, 10, at, at + 1 * MS, WL_STATE_RUNNING, sid);
	record_segment(trace, 30, at, at + 2 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 10, at + 1 * MS, at + 6 * MS, WL_STATE_BLOCKED_FUTEX, sid);
	record_segment(trace, 20, at + 5 * MS, at + 6 * MS, WL_STATE_RUNNING, 0);
	record_wakeup(trace, 10, at + 6 * MS, 20, WL_CONTEXT_TASK, 0);
	record_segment(trace, 10, at + 6 * MS, at + 7 * MS, WL_STATE_RUNNING, sid);
	record_interval(trace, sid, 10, 10, at, at + 7 * MS, keep);
}

static void a_kept_interval_takes_its_chain_along(void)
{
	struct thread_names *names = thread_names__new();
	struct trace_counts counts;
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	uint32_t of_20 = 0, of_30 = 0;

	lock_wait(trace, 100 * MS, 1, true);
	lock_wait(trace, 200 * MS, 2, false);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	for (uint32_t i = 0; i < rows.cnt[SHARD_TABLE_SEGMENT]; i++) {
		of_20 += rows.tids[i] == 20;
		of_30 += rows.tids[i] == 30;
	}
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 5);
	CU_ASSERT_EQUAL(of_20, 2);
	CU_ASSERT_EQUAL(of_30, 0);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_WAKEUP], 1);
	CU_ASSERT_EQUAL(counts.kept, 1);
	CU_ASSERT_EQUAL(counts.received[SHARD_TABLE_SEGMENT], 12);
	CU_ASSERT_EQUAL(counts.written[SHARD_TABLE_SEGMENT], 5);
	CU_ASSERT_EQUAL(counts.forgotten, 12 + 2 - 5 - 1);
	CU_ASSERT_EQUAL(counts.taken[WL_RECORD_SEGMENT], 12);
	trace__free(trace);
	thread_names__free(names);
}

/* Thread 10 spins until 20 has slept; 30 comes back from a wait at another time, 40 has its CPU all the time. */
static void spin(struct trace *trace, uint64_t at, uint64_t sid)
{
	record_segment(trace, 20, at - 20 * MS, at + 6 * MS, WL_STATE_BLOCKED_SLEEP, 0);
	record_segment(trace, 30, at - 20 * MS, at - 10 * MS, WL_STATE_BLOCKED_SLEEP, 0);
	record_segment(trace, 30, at - 10 * MS, at - 9 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 30, at - 9 * MS, at + 20 * MS, WL_STATE_BLOCKED_SLEEP, 0);
	record_segment(trace, 10, at, at + 7 * MS, WL_STATE_RUNNING, sid);
	record_segment(trace, 40, at, at + 7 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, at + 6 * MS, at + 7 * MS, WL_STATE_RUNNING, 0);
	record_interval(trace, sid, 10, 10, at, at + 7 * MS, true);
}

static void who_may_own_a_spin_lock_is_kept_along(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	uint32_t of_20 = 0;

	spin(trace, 100 * MS, 1);
	trace__spun(trace, 1, 201 * MS);
	trace__spun(trace, 2, 101 * MS);
	spin(trace, 200 * MS, 2);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	for (uint32_t i = 0; i < rows.cnt[SHARD_TABLE_SEGMENT]; i++)
		of_20 += rows.tids[i] == 20 && rows.begin_ts[i] >= 180 * MS;
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 2 + 2);
	CU_ASSERT_EQUAL(of_20, 2);
	trace__free(trace);
	thread_names__free(names);
}

/* As 20, but a process that shares the lock's memory. */
static void who_may_own_a_shared_spin_lock_is_kept_along(void)
{
	struct wl_segment_record record = {.header = {.kind = WL_RECORD_SEGMENT, .sz = sizeof(record)},
					   .pid = 2,
					   .tid = 2,
					   .state = WL_STATE_BLOCKED_SLEEP,
					   .sysno = -1};
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	uint32_t of_2 = 0;

	record.begin_ts = 80 * MS;
	record.end_ts = 106 * MS;
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
	record_segment(trace, 10, 100 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	record.begin_ts = 106 * MS;
	record.end_ts = 107 * MS;
	record.state = WL_STATE_RUNNING;
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	trace__spun(trace, 1, 101 * MS);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	for (uint32_t i = 0; i < rows.cnt[SHARD_TABLE_SEGMENT]; i++)
		of_2 += rows.tids[i] == 2;
	CU_ASSERT_EQUAL(of_2, 2);
	trace__free(trace);
	thread_names__free(names);
}

static void no_row_is_written_twice(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	lock_wait(trace, 100 * MS, 1, true);
	/* Another interval that waits for the same thread at the same time. */
	record_segment(trace, 11, 100 * MS, 101 * MS, WL_STATE_RUNNING, 3);
	record_segment(trace, 11, 101 * MS, 106 * MS, WL_STATE_BLOCKED_FUTEX, 3);
	record_wakeup(trace, 11, 106 * MS, 20, WL_CONTEXT_TASK, 0);
	record_segment(trace, 11, 106 * MS, 107 * MS, WL_STATE_RUNNING, 3);
	record_interval(trace, 3, 11, 11, 100 * MS, 107 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 3 + 2 + 3);
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_WAKEUP], 2);
	trace__free(trace);
	thread_names__free(names);
}

static void a_full_memory_forgets_and_says_so(void)
{
	struct thread_names *names = thread_names__new();
	struct trace_counts counts;
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 1 << 20);

	record_segment(trace, 10, 1 * MS, 2 * MS, WL_STATE_RUNNING, 1);
	for (uint64_t i = 0; i < 40000; i++) {
		record_segment(trace, 30, (2 + i) * MS, (3 + i) * MS, i % 2 ? WL_STATE_RUNNING : WL_STATE_RUNQ_PREEMPT,
			       0);
		if (i % 1000 == 0)
			CU_ASSERT_EQUAL(trace__advance(trace, (3 + i) * MS, NULL), 0);
	}
	record_segment(trace, 10, 2 * MS, 40003 * MS, WL_STATE_BLOCKED_NET, 1);
	record_interval(trace, 1, 10, 10, 1 * MS, 40003 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT_EQUAL(counts.kept, 1);
	CU_ASSERT_EQUAL(counts.cut_short, 1);
	CU_ASSERT_EQUAL(counts.received[SHARD_TABLE_SEGMENT], 40002);
	CU_ASSERT_EQUAL(counts.forgotten + counts.written[SHARD_TABLE_SEGMENT], 40002);
	CU_ASSERT(trace__bytes(trace) < 8 << 20);
	trace__free(trace);
	thread_names__free(names);
}

static void impossible_records_are_counted(void)
{
	struct thread_names *names = thread_names__new();
	struct trace_counts counts;
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);
	struct wl_record_header foreign = {.kind = 99, .sz = sizeof(foreign)};

	record_segment(trace, 10, 5 * MS, 4 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 10, 5 * MS, 6 * MS, 77, 0);
	record_segment(trace, 0, 5 * MS, 6 * MS, WL_STATE_RUNNING, 0);
	CU_ASSERT_EQUAL(trace__take(trace, &foreign), -EBADMSG);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, &counts);
	CU_ASSERT_EQUAL(counts.impossible, 3);
	CU_ASSERT_EQUAL(counts.received[SHARD_TABLE_SEGMENT], 0);
	trace__free(trace);
	thread_names__free(names);
}

/* What thread 10 waits for thread 40 has sent: how sure that is. */
static void data_from_40(enum wl_direction received_as, const char *certainty)
{
	struct thread_names *names = thread_names__new();
	struct wl_socket_record sent = socket_record(106 * MS + 20 * US, 40, true, true, 0, 8);
	struct wl_socket_record received = socket_record(106 * MS + 10 * US, 10, false, true, 0, 8);
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	received.direction = received_as;
	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 10, 101 * MS, 106 * MS, WL_STATE_BLOCKED_NET, 1);
	record_wakeup(trace, 10, 106 * MS, 40, WL_CONTEXT_SOFTIRQ, 0);
	record_segment(trace, 10, 106 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 40, 101 * MS, 106 * MS + 20 * US, WL_STATE_RUNNING, 0);
	/* The receiver has its data before the sender's call returns. */
	CU_ASSERT_EQUAL(trace__take(trace, &received.header), 0);
	CU_ASSERT_EQUAL(trace__take(trace, &sent.header), 0);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "socket");
	CU_ASSERT_STRING_EQUAL(rows.handoff_certainty, certainty);
	CU_ASSERT(rows.handoff_from == 40 && rows.handoff_to == 10 && rows.has_seq);
	CU_ASSERT_STRING_EQUAL(rows.handoff_from_addr, "127.0.0.0:1000");
	CU_ASSERT_EQUAL(rows.cnt[SHARD_TABLE_SEGMENT], 4);
	trace__free(trace);
	thread_names__free(names);
}

static void an_idle_cpu_has_a_name_and_no_tid(void)
{
	struct thread_names *names = thread_names__new();
	struct wl_segment_record waits = {
		.header = {.kind = WL_RECORD_SEGMENT, .sz = sizeof(waits)},
		.begin_ts = 101 * MS,
		.end_ts = 102 * MS,
		.sid = 1,
		.pid = 1,
		.tid = 10,
		.state = WL_STATE_RUNQ_WAKEUP,
		.flags = WL_SEGMENT_IDLE,
		.sysno = -1,
	};
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	CU_ASSERT_EQUAL(trace__take(trace, &waits.header), 0);
	record_segment(trace, 10, 102 * MS, 103 * MS, WL_STATE_RUNQ_PREEMPT, 1);
	record_interval(trace, 1, 10, 10, 100 * MS, 103 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_SEGMENT], 3);
	CU_ASSERT_STRING_EQUAL(rows.by_comms[0], "");
	CU_ASSERT(!strcmp(rows.by_comms[1], NAME_IDLE_CPU) && !rows.has_by_tid[1]);
	CU_ASSERT_STRING_EQUAL(rows.by_comms[2], "");
	/* No task can be called that. */
	CU_ASSERT(strlen(NAME_IDLE_CPU) >= WL_COMM_LEN);
	trace__free(trace);
	thread_names__free(names);
}

static void data_from_another_process_is_a_handoff(void)
{
	data_from_40(WL_RECEIVED, "observed");
}

static void data_at_a_position_that_is_not_sure_may_be_anothers(void)
{
	data_from_40(WL_RECEIVED_UNSURE, "ambiguous");
}

static void a_disk_is_a_handoff_to_who_waited(void)
{
	struct wl_block_record block = {.queue_ts = 101 * MS,
					.issue_ts = 103 * MS,
					.complete_ts = 106 * MS,
					.bytes = 4096,
					.dev = 254 << 20,
					.pid = 1,
					.tid = 10};
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	block.header.kind = WL_RECORD_BLOCK;
	block.header.sz = sizeof(block);
	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 10, 101 * MS, 106 * MS, WL_STATE_BLOCKED_DISK, 1);
	record_segment(trace, 10, 106 * MS, 107 * MS, WL_STATE_RUNNING, 1);
	CU_ASSERT_EQUAL(trace__take(trace, &block.header), 0);
	record_wakeup(trace, 10, 106 * MS, 99, WL_CONTEXT_SOFTIRQ, 106 * MS);
	record_interval(trace, 1, 10, 10, 100 * MS, 107 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "block");
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 10);
	trace__free(trace);
	thread_names__free(names);
}

/* Thread 10 reads the request, 20 is at another one and answers it later. */
static void an_interval_that_moves_was_in_a_queue(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 10, 101 * MS, 140 * MS, WL_STATE_BLOCKED_POLL, 1);
	record_segment(trace, 20, 90 * MS, 120 * MS, WL_STATE_RUNNING, 9);
	record_segment(trace, 20, 120 * MS, 121 * MS, WL_STATE_RUNNING, 0);
	record_interval(trace, 1, 10, 20, 100 * MS, 121 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_HANDOFF], 1);
	CU_ASSERT_STRING_EQUAL(rows.handoff_kind, "queue");
	CU_ASSERT(rows.handoff_from == 10 && rows.handoff_to == 20);
	trace__free(trace);
	thread_names__free(names);
}

/* What 20 was at before was an interval that was not selected: only its reply says so. */
static void what_a_thread_did_before_a_reply_was_for_it(void)
{
	struct thread_names *names = thread_names__new();
	struct record_rows rows;
	struct trace *trace = record_trace(&rows, names, 64 << 20);

	record_segment(trace, 10, 100 * MS, 101 * MS, WL_STATE_RUNNING, 1);
	record_segment(trace, 20, 90 * MS, 95 * MS, WL_STATE_BLOCKED_FUTEX, 0);
	record_segment(trace, 20, 95 * MS, 119 * MS, WL_STATE_RUNNING, 0);
	record_segment(trace, 20, 119 * MS, 120 * MS, WL_STATE_RUNNING, 9);
	record_segment(trace, 20, 120 * MS, 121 * MS, WL_STATE_RUNNING, 0);
	record_interval(trace, 1, 10, 20, 94 * MS, 121 * MS, true);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rows.cnt[SHARD_TABLE_SEGMENT], 5);
	for (uint32_t i = 0; i < 5; i++) {
		if (rows.tids[i] == 20 && rows.begin_ts[i] == 95 * MS)
			CU_ASSERT_EQUAL(rows.sids[i], 9);
		if (rows.tids[i] == 20 && rows.begin_ts[i] == 120 * MS)
			CU_ASSERT_EQUAL(rows.sids[i], 1);
		if (rows.tids[i] == 20 && rows.begin_ts[i] == 90 * MS)
			CU_ASSERT_EQUAL(rows.sids[i], 0);
	}
	trace__free(trace);
	thread_names__free(names);
}

int suite_trace(void)
{
	static const struct unit_test tests[] = {
		{"items come out in order of time", items_come_out_in_order_of_time},
		{"ties put segments before edges and intervals last",
		 ties_put_segments_before_edges_and_intervals_last},
		{"what comes too late is counted and handed over", what_comes_too_late_is_counted_and_handed_over},
		{"an error stops and loses only what was handed over",
		 an_error_stops_and_loses_only_what_was_handed_over},
		{"a receive is matched by byte position", a_receive_is_matched_by_byte_position},
		{"sequence numbers wrap around", sequence_numbers_wrap_around},
		{"a receive waits for a send that returns late", a_receive_waits_for_a_send_that_returns_late},
		{"bytes for several intervals are mixed", bytes_for_several_intervals_are_mixed},
		{"addresses are written as people do", addresses_are_written_as_people_do},
		{"a kept interval takes its chain along", a_kept_interval_takes_its_chain_along},
		{"who may own a spin lock is kept along", who_may_own_a_spin_lock_is_kept_along},
		{"who may own a shared spin lock is kept along", who_may_own_a_shared_spin_lock_is_kept_along},
		{"no row is written twice", no_row_is_written_twice},
		{"a full memory forgets and says so", a_full_memory_forgets_and_says_so},
		{"impossible records are counted", impossible_records_are_counted},
		{"an idle CPU has a name and no tid", an_idle_cpu_has_a_name_and_no_tid},
		{"data from another process is a hand-off", data_from_another_process_is_a_handoff},
		{"data at a position that is not sure may be another's",
		 data_at_a_position_that_is_not_sure_may_be_anothers},
		{"a disk is a hand-off to who waited", a_disk_is_a_handoff_to_who_waited},
		{"an interval that moves was in a queue", an_interval_that_moves_was_in_a_queue},
		{"what a thread did before a reply was for it", what_a_thread_did_before_a_reply_was_for_it},
	};

	return unit_suite("trace", tests, sizeof(tests) / sizeof(tests[0]));
}
