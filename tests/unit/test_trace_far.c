// SPDX-License-Identifier: GPL-2.0-or-later
/* What goes to other hosts and comes from them: rows with one side, of kept intervals only. */
#include "unit.h"

#include "model/trace.h"
#include "model/trace_far.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MS 1000000ULL
#define US 1000ULL

#define SERVER 10

struct far_row {
	uint32_t from_tid, to_tid, seq, bytes;
	uint64_t ts, left_ts;
	char from_addr[64], to_addr[64];
};

struct far_rows {
	struct far_row rows[32];
	size_t cnt;
};

static uint64_t value(const struct shard_row *row, uint32_t column)
{
	return shard_row__is_null(row, column) ? 0 : row->values[column].u64;
}

static int note_row(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	struct far_rows *rows = owner;
	struct far_row *far;

	if (table != SHARD_TABLE_HANDOFF || rows->cnt == 32)
		return 0;
	far = &rows->rows[rows->cnt++];
	far->from_tid = (uint32_t)value(row, HANDOFF_FROM_TID);
	far->to_tid = (uint32_t)value(row, HANDOFF_TO_TID);
	far->seq = (uint32_t)value(row, HANDOFF_SEQ);
	far->bytes = (uint32_t)value(row, HANDOFF_BYTES);
	far->ts = far->from_tid ? value(row, HANDOFF_FROM_TS) : value(row, HANDOFF_TO_TS);
	far->left_ts = value(row, HANDOFF_LEFT_TS);
	snprintf(far->from_addr, sizeof(far->from_addr), "%s", row->values[HANDOFF_FROM_ADDR].str);
	snprintf(far->to_addr, sizeof(far->to_addr), "%s", row->values[HANDOFF_TO_ADDR].str);
	return 0;
}

static void segment(struct trace *trace, uint64_t begin_ts, uint64_t end_ts, uint32_t state, uint64_t sid)
{
	struct wl_segment_record record = {
		.header = {.kind = WL_RECORD_SEGMENT, .sz = sizeof(record)},
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.sid = sid,
		.pid = SERVER,
		.tid = SERVER,
		.state = state,
		.sysno = UINT32_MAX,
	};

	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

/* Of 10.0.0.1:80, to or from port 9 of 10.0.0.2, or of 127.0.0.1. */
static void socket_record(struct trace *trace, enum wl_direction direction, uint64_t ts, uint32_t pos, bool loopback)
{
	struct wl_socket_record record = {
		.header = {.kind = WL_RECORD_SOCKET, .sz = sizeof(record)},
		.ts = ts,
		.sid = 1,
		.pos = pos,
		.len = 7,
		.pid = SERVER,
		.tid = SERVER,
		.family = AF_INET,
		.direction = direction,
		.local_port = 80,
		.remote_port = 9,
		.lag_ns = direction == WL_SENT || direction == WL_REPLIED ? 3 * US : 0,
		.local_addr = {10, 0, 0, 1},
		.remote_addr = {10, 0, 0, 2},
	};

	if (loopback)
		memcpy(record.remote_addr, (uint8_t[]){127, 0, 0, 1}, 4);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

static void interval(struct trace *trace, uint64_t sid, uint64_t begin_ts, uint64_t end_ts, bool keep)
{
	struct wl_interval_record record = {
		.header = {.kind = WL_RECORD_INTERVAL, .sz = sizeof(record)},
		.sid = sid,
		.begin_ts = begin_ts,
		.pickup_ts = begin_ts,
		.end_ts = end_ts,
		.pid = SERVER,
		.tid = SERVER,
		.end_tid = SERVER,
	};

	CU_ASSERT_EQUAL(keep ? trace__take_interval(trace, &record)
			     : trace__take_brief(trace, (const struct wl_brief_record *)&record),
			0);
}

/* A request, a question to somebody else and the answer, the reply; and the same once more, 100 ms later. */
static void serve(struct trace *trace, uint64_t begin_ts, uint64_t sid, bool keep, bool loopback)
{
	uint32_t pos = (uint32_t)sid * 1000;

	segment(trace, begin_ts, begin_ts + MS, WL_STATE_RUNNING, sid);
	socket_record(trace, WL_REQUESTED, begin_ts + 10 * US, pos, loopback);
	socket_record(trace, WL_SENT, begin_ts + MS - 10 * US, pos + 100, loopback);
	segment(trace, begin_ts + MS, begin_ts + 5 * MS, WL_STATE_BLOCKED_NET, sid);
	segment(trace, begin_ts + 5 * MS, begin_ts + 6 * MS, WL_STATE_RUNNING, sid);
	socket_record(trace, WL_RECEIVED, begin_ts + 5 * MS + 10 * US, pos + 200, loopback);
	socket_record(trace, WL_REPLIED, begin_ts + 6 * MS + 5 * US, pos + 300, loopback);
	interval(trace, sid, begin_ts, begin_ts + 6 * MS, keep);
}

static void run(struct far_rows *rows, bool loopback, struct trace_counts *counts)
{
	struct thread_names *names = thread_names__new();
	const struct trace_opts opts = {.memory = 64 << 20, .append = note_row, .owner = rows, .threads = names};
	struct trace *trace = trace__new(&opts);

	memset(rows, 0, sizeof(*rows));
	serve(trace, 100 * MS, 1, true, loopback);
	serve(trace, 200 * MS, 2, false, loopback);
	serve(trace, 300 * MS, 3, true, loopback);
	CU_ASSERT_EQUAL(trace__advance(trace, 400 * MS, NULL), 0);
	CU_ASSERT_EQUAL(trace__finish(trace, NULL), 0);
	trace__counts(trace, counts);
	trace__free(trace);
	thread_names__free(names);
}

static const struct far_row *row_of(const struct far_rows *rows, uint32_t seq)
{
	for (size_t i = 0; i < rows->cnt; i++)
		if (rows->rows[i].seq == seq)
			return &rows->rows[i];
	return NULL;
}

static void kept_intervals_take_their_ends_along(void)
{
	struct trace_counts counts;
	const struct far_row *row;
	struct far_rows rows;

	run(&rows, false, &counts);
	CU_ASSERT_EQUAL(rows.cnt, 8);
	for (uint32_t sid = 1; sid <= 3; sid += 2)
		for (uint32_t i = 0; i < 4; i++) {
			bool sent = i % 2;

			row = row_of(&rows, sid * 1000 + i * 100);
			if (!row) {
				CU_FAIL("a row is missing");
				continue;
			}
			CU_ASSERT_EQUAL(row->from_tid, sent ? SERVER : 0);
			CU_ASSERT_EQUAL(row->to_tid, sent ? 0 : SERVER);
			CU_ASSERT_EQUAL(row->bytes, 7);
			CU_ASSERT_EQUAL(row->left_ts, sent ? row->ts - 3 * US : 0);
			CU_ASSERT_STRING_EQUAL(row->from_addr, sent ? "10.0.0.1:80" : "10.0.0.2:9");
			CU_ASSERT_STRING_EQUAL(row->to_addr, sent ? "10.0.0.2:9" : "10.0.0.1:80");
		}
	CU_ASSERT_PTR_NULL(row_of(&rows, 2000));
	CU_ASSERT_EQUAL(counts.written[SHARD_TABLE_HANDOFF], 8);
	CU_ASSERT(counts.received[SHARD_TABLE_HANDOFF] >= 8);
}

static void loopback_is_no_other_host(void)
{
	struct trace_counts counts;
	struct far_rows rows;

	run(&rows, true, &counts);
	CU_ASSERT_EQUAL(rows.cnt, 0);
}

static void sends_are_found_by_thread_and_time(void)
{
	struct trace_far *far = calloc(1, sizeof(*far));
	struct wl_socket_record record = {.family = AF_INET, .len = 1};
	struct trace_far_send *send;
	uint64_t place = 0, cnt = 0;

	/* More than fit: the oldest are forgotten. */
	for (uint64_t i = 0; i < TRACE_FAR_SENDS * 2; i++) {
		record.ts = i * 10;
		record.tid = i % 3 + 1;
		record.pos = i;
		trace_far__sent(far, &record);
	}
	CU_ASSERT_PTR_NULL(trace_far__next(far, 1, 0, TRACE_FAR_SENDS * 10 - 1, &place));
	record.ts = 90000;
	record.tid = 9000 % 3 + 1;
	record.pos = 9000;
	trace_far__met(far, &record);
	while ((send = trace_far__next(far, record.tid, 90000, 90300, &place))) {
		CU_ASSERT(send->record.tid == record.tid && send->record.ts > 90000 && send->record.ts <= 90300);
		cnt++;
	}
	CU_ASSERT_EQUAL(cnt, 10);
	free(far);
}

static const struct unit_test tests[] = {
	{"kept intervals take their ends along", kept_intervals_take_their_ends_along},
	{"loopback is no other host", loopback_is_no_other_host},
	{"sends are found by thread and time", sends_are_found_by_thread_and_time},
};

int suite_trace_far(void)
{
	return unit_suite("trace_far", tests, sizeof(tests) / sizeof(tests[0]));
}
