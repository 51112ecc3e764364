// SPDX-License-Identifier: GPL-2.0-or-later
#include "record_fixture.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int note_row(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	struct record_rows *rows = owner;

	if (table == SHARD_TABLE_SEGMENT && rows->cnt[table] < 64) {
		uint32_t i = rows->cnt[table];

		rows->tids[i] = row->values[SEGMENT_TID].u64;
		rows->begin_ts[i] = row->values[SEGMENT_BEGIN_TS].u64;
		if (!shard_row__is_null(row, SEGMENT_TYPE))
			snprintf(rows->types[i], sizeof(rows->types[i]), "%s", row->values[SEGMENT_TYPE].str);
		rows->sids[i] = shard_row__is_null(row, SEGMENT_SID) ? 0 : row->values[SEGMENT_SID].u64;
		if (!shard_row__is_null(row, SEGMENT_BY_COMM))
			snprintf(rows->by_comms[i], sizeof(rows->by_comms[i]), "%s", row->values[SEGMENT_BY_COMM].str);
		rows->has_by_tid[i] = !shard_row__is_null(row, SEGMENT_BY_TID);
	}
	if (table == SHARD_TABLE_HANDOFF) {
		rows->handoff_from = row->values[HANDOFF_FROM_TID].u64;
		rows->handoff_to = row->values[HANDOFF_TO_TID].u64;
		strcpy(rows->handoff_kind, row->values[HANDOFF_KIND].str);
		strcpy(rows->handoff_certainty, row->values[HANDOFF_CERTAINTY].str);
		rows->handoff_from_ts = row->values[HANDOFF_FROM_TS].u64;
		rows->handoff_to_ts = row->values[HANDOFF_TO_TS].u64;
		if (!shard_row__is_null(row, HANDOFF_FROM_ADDR))
			strcpy(rows->handoff_from_addr, row->values[HANDOFF_FROM_ADDR].str);
		rows->has_seq = !shard_row__is_null(row, HANDOFF_SEQ);
	}
	rows->cnt[table]++;
	return 0;
}

struct trace *record_trace(struct record_rows *rows, struct thread_names *names, uint64_t memory)
{
	struct trace_opts opts = {.memory = memory, .append = note_row, .owner = rows, .threads = names};

	memset(rows, 0, sizeof(*rows));
	return trace__new(&opts);
}

void record_segment(struct trace *trace, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint32_t state, uint64_t sid)
{
	struct wl_segment_record record = {
		.begin_ts = begin_ts, .end_ts = end_ts, .sid = sid, .pid = 1, .tid = tid, .state = state, .sysno = -1};

	record.header.kind = WL_RECORD_SEGMENT;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

void record_wakeup(struct trace *trace, uint32_t tid, uint64_t ts, uint32_t waker_tid, uint32_t context, uint64_t io_ts)
{
	struct wl_wakeup_record record = {.ts = ts,
					  .pid = 1,
					  .tid = tid,
					  .waker_pid = 1,
					  .waker_tid = waker_tid,
					  .context = context,
					  .io_ts = io_ts,
					  .waker_sysno = -1};

	record.header.kind = WL_RECORD_WAKEUP;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

void record_interval(struct trace *trace, uint64_t sid, uint32_t tid, uint32_t end_tid, uint64_t begin_ts,
		     uint64_t end_ts, bool keep)
{
	struct wl_interval_record *record = calloc(1, sizeof(*record));

	record->header.kind = WL_RECORD_INTERVAL;
	record->header.sz = sizeof(*record);
	record->sid = sid;
	record->begin_ts = record->pickup_ts = begin_ts;
	record->end_ts = end_ts;
	record->pid = 1;
	record->tid = tid;
	record->end_tid = end_tid;
	record->flags = tid == end_tid ? 0 : WL_INTERVAL_MOVED;
	CU_ASSERT_EQUAL(keep ? trace__take_interval(trace, record)
			     : trace__take_brief(trace, (const struct wl_brief_record *)record),
			0);
	free(record);
}

void record_futex_wait(struct trace *trace, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, uint32_t owner_tid)
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

void record_task(struct trace *trace, uint32_t event, uint32_t pid, uint32_t tid, uint64_t ts, uint32_t creator_tid)
{
	struct wl_task_record record = {
		.ts = ts, .event = event, .pid = pid, .tid = tid, .parent_pid = 1, .creator_tid = creator_tid};

	record.header.kind = WL_RECORD_TASK;
	record.header.sz = sizeof(record);
	CU_ASSERT_EQUAL(trace__take(trace, &record.header), 0);
}

void record_request(struct trace *trace, uint64_t sid, uint32_t tid, uint64_t begin_ts, uint64_t pickup_ts,
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
