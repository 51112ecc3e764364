// SPDX-License-Identifier: GPL-2.0-or-later
#include "row_writer.h"

#include "model/session.h"

#include <whylate/record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "row writer: %s\n", strerror(-err));
	exit(1);
}

void row_writer_open(struct row_writer *to, const char *dir, const char *host, uint64_t session_id, uint32_t pid)
{
	const struct shard_writer_opts opts = {.dir = dir, .host = host, .session_id = session_id};

	*to = (struct row_writer){.writer = shard_writer__new(&opts), .pid = pid};
	if (!to->writer)
		must(-1);
}

void row_writer_close(struct row_writer *to)
{
	must(shard_writer__free(to->writer));
}

uint64_t row_writer_clock(const struct row_writer *to, uint64_t ts)
{
	return ts + (uint64_t)(to->ahead_ns + (int64_t)(to->drift_ppm * 1e-6 * (double)ts));
}

void row_begin(struct row_writer *to, enum shard_table_id table)
{
	memset(&to->row, 0, sizeof(to->row));
	for (uint32_t c = 0; c < shard_tables[table].column_cnt; c++)
		if (shard_tables[table].columns[c].nullable)
			shard_row__set_null(&to->row, c);
		else if (shard_tables[table].columns[c].type == SHARD_STR)
			to->row.values[c].str = "";
}

void row_set_u64(struct row_writer *to, uint32_t column, uint64_t value)
{
	to->row.values[column].u64 = value;
	to->row.nulls[column / 64] &= ~(1ULL << (column % 64));
}

void row_set_ts(struct row_writer *to, uint32_t column, uint64_t ts)
{
	row_set_u64(to, column, row_writer_clock(to, ts));
}

void row_set_str(struct row_writer *to, uint32_t column, const char *value)
{
	to->row.values[column].str = value;
	to->row.nulls[column / 64] &= ~(1ULL << (column % 64));
}

void row_end(struct row_writer *to, enum shard_table_id table)
{
	must(shard_writer__append(to->writer, table, &to->row));
}

void row_begin_segment(struct row_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, const char *state,
		       uint64_t sid)
{
	row_begin(to, SHARD_TABLE_SEGMENT);
	row_set_u64(to, SEGMENT_PID, to->pid);
	row_set_u64(to, SEGMENT_TID, tid);
	row_set_ts(to, SEGMENT_BEGIN_TS, begin_ts);
	row_set_ts(to, SEGMENT_END_TS, end_ts);
	row_set_str(to, SEGMENT_STATE, state);
	if (sid)
		row_set_u64(to, SEGMENT_SID, sid);
	if (tid == to->worker_tid)
		row_set_str(to, SEGMENT_TYPE, to->worker_type);
}

void row_put_segment(struct row_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, const char *state,
		     uint64_t sid)
{
	row_begin_segment(to, tid, begin_ts, end_ts, state, sid);
	row_end(to, SHARD_TABLE_SEGMENT);
}

void row_put_wakeup(struct row_writer *to, uint32_t tid, uint64_t ts, uint32_t waker_tid, const char *waker)
{
	row_begin(to, SHARD_TABLE_WAKEUP);
	row_set_ts(to, WAKEUP_TS, ts);
	row_set_u64(to, WAKEUP_PID, to->pid);
	row_set_u64(to, WAKEUP_TID, tid);
	if (waker_tid) {
		row_set_u64(to, WAKEUP_WAKER_PID, to->pid);
		row_set_u64(to, WAKEUP_WAKER_TID, waker_tid);
		row_set_str(to, WAKEUP_WAKER_COMM, waker);
	}
	row_set_str(to, WAKEUP_CONTEXT, waker_tid ? "task" : "softirq");
	row_set_str(to, WAKEUP_CERTAINTY, "observed");
	row_end(to, SHARD_TABLE_WAKEUP);
}

void row_begin_interval(struct row_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
			uint64_t end_ts, uint64_t lock_ns, uint64_t flags)
{
	/* By its own clock, whose seconds are longer or shorter. */
	uint64_t latency_ns = row_writer_clock(to, end_ts) - row_writer_clock(to, begin_ts);

	row_begin(to, SHARD_TABLE_INTERVAL);
	row_set_u64(to, INTERVAL_SID, sid);
	row_set_ts(to, INTERVAL_BEGIN_TS, begin_ts);
	row_set_ts(to, INTERVAL_PICKUP_TS, begin_ts);
	row_set_ts(to, INTERVAL_END_TS, end_ts);
	row_set_u64(to, INTERVAL_PID, to->pid);
	row_set_u64(to, INTERVAL_TID, tid);
	row_set_u64(to, INTERVAL_END_TID, tid);
	row_set_str(to, INTERVAL_TYPE, type);
	to->row.values[INTERVAL_WEIGHT].f64 = 1;
	row_set_u64(to, INTERVAL_FLAGS, flags);
	row_set_u64(to, interval_column_length(WL_STATE_RUNNING), latency_ns - lock_ns);
	row_set_u64(to, interval_column_length(WL_STATE_BLOCKED_FUTEX), lock_ns);
}

void row_put_interval(struct row_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
		      uint64_t end_ts, uint64_t lock_ns, uint64_t flags)
{
	row_begin_interval(to, sid, tid, type, begin_ts, end_ts, lock_ns, flags);
	row_end(to, SHARD_TABLE_INTERVAL);
}

void row_put_thread(struct row_writer *to, uint32_t pid, uint32_t tid, const char *comm)
{
	row_begin(to, SHARD_TABLE_THREAD);
	row_set_str(to, THREAD_EVENT, "seen");
	row_set_u64(to, THREAD_PID, pid);
	row_set_u64(to, THREAD_TID, tid);
	row_set_str(to, THREAD_COMM, comm);
	row_end(to, SHARD_TABLE_THREAD);
}

void row_put_session(struct row_writer *to, const char *key, const char *value)
{
	row_begin(to, SHARD_TABLE_SESSION);
	row_set_str(to, SESSION_KEY, key);
	row_set_str(to, SESSION_VALUE, value);
	row_end(to, SHARD_TABLE_SESSION);
}

static void begin_message(struct row_writer *to, const struct row_message *message)
{
	row_begin(to, SHARD_TABLE_HANDOFF);
	row_set_str(to, HANDOFF_KIND, "socket");
	row_set_str(to, HANDOFF_CERTAINTY, "inferred");
	row_set_str(to, HANDOFF_FROM_ADDR, message->from_addr);
	row_set_str(to, HANDOFF_TO_ADDR, message->to_addr);
	row_set_u64(to, HANDOFF_SEQ, message->seq);
	row_set_u64(to, HANDOFF_BYTES, message->bytes);
	if (message->sid)
		row_set_u64(to, HANDOFF_SID, message->sid);
}

void row_put_sent(struct row_writer *to, uint32_t tid, uint64_t ts, const struct row_message *message)
{
	begin_message(to, message);
	row_set_u64(to, HANDOFF_FROM_PID, to->pid);
	row_set_u64(to, HANDOFF_FROM_TID, tid);
	row_set_ts(to, HANDOFF_FROM_TS, ts);
	row_end(to, SHARD_TABLE_HANDOFF);
}

void row_put_received(struct row_writer *to, uint32_t tid, uint64_t ts, const struct row_message *message)
{
	begin_message(to, message);
	row_set_u64(to, HANDOFF_TO_PID, to->pid);
	row_set_u64(to, HANDOFF_TO_TID, tid);
	row_set_ts(to, HANDOFF_TO_TS, ts);
	row_end(to, SHARD_TABLE_HANDOFF);
}

void row_put_context(struct row_writer *to, uint64_t id, uint64_t parent, uint64_t path, const char *frames)
{
	row_begin(to, SHARD_TABLE_CONTEXT);
	row_set_ts(to, CONTEXT_TS, 1000);
	row_set_u64(to, CONTEXT_ID, id);
	if (parent)
		row_set_u64(to, CONTEXT_PARENT, parent);
	row_set_str(to, CONTEXT_KIND, "socket");
	row_set_u64(to, CONTEXT_PATH, path);
	row_set_u64(to, CONTEXT_PID, 100);
	row_set_u64(to, CONTEXT_TID, 101);
	row_set_str(to, CONTEXT_FRAMES, frames);
	row_end(to, SHARD_TABLE_CONTEXT);
}
