// SPDX-License-Identifier: GPL-2.0-only
#include "trace_fixture.h"

#include "model/session.h"
#include "shard/writer.h"

#include <whylate/record.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture_writer {
	struct shard_writer *writer;
	const char *holder_type; /* what segments say of the interval that the holder works for */
	struct shard_row row;
};

static void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "trace fixture: %s\n", strerror(-err));
	exit(1);
}

/* Everything that may be null is, until it is set. */
static void begin_row(struct fixture_writer *to, enum shard_table_id table)
{
	memset(&to->row, 0, sizeof(to->row));
	for (uint32_t c = 0; c < shard_tables[table].column_cnt; c++)
		if (shard_tables[table].columns[c].nullable)
			shard_row__set_null(&to->row, c);
		else if (shard_tables[table].columns[c].type == SHARD_STR)
			to->row.values[c].str = "";
}

static void set_u64(struct fixture_writer *to, uint32_t column, uint64_t value)
{
	to->row.values[column].u64 = value;
	to->row.nulls[column / 64] &= ~(1ULL << (column % 64));
}

static void set_str(struct fixture_writer *to, uint32_t column, const char *value)
{
	to->row.values[column].str = value;
	to->row.nulls[column / 64] &= ~(1ULL << (column % 64));
}

static void end_row(struct fixture_writer *to, enum shard_table_id table)
{
	must(shard_writer__append(to->writer, table, &to->row));
}

static void begin_segment(struct fixture_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts,
			  const char *state, uint64_t sid)
{
	begin_row(to, SHARD_TABLE_SEGMENT);
	set_u64(to, SEGMENT_PID, TRACE_PID);
	set_u64(to, SEGMENT_TID, tid);
	set_u64(to, SEGMENT_BEGIN_TS, begin_ts);
	set_u64(to, SEGMENT_END_TS, end_ts);
	set_str(to, SEGMENT_STATE, state);
	if (sid)
		set_u64(to, SEGMENT_SID, sid);
	if (tid == TRACE_FLUSHER && to->holder_type)
		set_str(to, SEGMENT_TYPE, to->holder_type);
}

static void put_segment(struct fixture_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, const char *state,
			uint64_t sid)
{
	begin_segment(to, tid, begin_ts, end_ts, state, sid);
	end_row(to, SHARD_TABLE_SEGMENT);
}

static void put_wakeup(struct fixture_writer *to, uint32_t tid, uint64_t ts, uint32_t waker_tid, const char *waker)
{
	begin_row(to, SHARD_TABLE_WAKEUP);
	set_u64(to, WAKEUP_TS, ts);
	set_u64(to, WAKEUP_PID, TRACE_PID);
	set_u64(to, WAKEUP_TID, tid);
	if (waker_tid) {
		set_u64(to, WAKEUP_WAKER_PID, TRACE_PID);
		set_u64(to, WAKEUP_WAKER_TID, waker_tid);
		set_str(to, WAKEUP_WAKER_COMM, waker);
	}
	set_str(to, WAKEUP_CONTEXT, waker_tid ? "task" : "softirq");
	set_str(to, WAKEUP_CERTAINTY, "observed");
	end_row(to, SHARD_TABLE_WAKEUP);
}

static void put_interval(struct fixture_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
			 uint64_t end_ts, uint64_t lock_ns, uint64_t flags)
{
	begin_row(to, SHARD_TABLE_INTERVAL);
	set_u64(to, INTERVAL_SID, sid);
	set_u64(to, INTERVAL_BEGIN_TS, begin_ts);
	set_u64(to, INTERVAL_PICKUP_TS, begin_ts);
	set_u64(to, INTERVAL_END_TS, end_ts);
	set_u64(to, INTERVAL_PID, TRACE_PID);
	set_u64(to, INTERVAL_TID, tid);
	set_u64(to, INTERVAL_END_TID, tid);
	set_str(to, INTERVAL_TYPE, type);
	to->row.values[INTERVAL_WEIGHT].f64 = 1;
	set_u64(to, INTERVAL_FLAGS, flags);
	set_u64(to, interval_column_length(WL_STATE_RUNNING), end_ts - begin_ts - lock_ns);
	set_u64(to, interval_column_length(WL_STATE_BLOCKED_FUTEX), lock_ns);
	end_row(to, SHARD_TABLE_INTERVAL);
}

static void put_thread(struct fixture_writer *to, uint32_t pid, uint32_t tid, const char *comm)
{
	begin_row(to, SHARD_TABLE_THREAD);
	set_str(to, THREAD_EVENT, "seen");
	set_u64(to, THREAD_PID, pid);
	set_u64(to, THREAD_TID, tid);
	set_str(to, THREAD_COMM, comm);
	end_row(to, SHARD_TABLE_THREAD);
}

static void put_session(struct fixture_writer *to, const char *key, const char *value)
{
	begin_row(to, SHARD_TABLE_SESSION);
	set_str(to, SESSION_KEY, key);
	set_str(to, SESSION_VALUE, value);
	end_row(to, SHARD_TABLE_SESSION);
}

/* 50 µs of its own, then the wait, then the other 50 µs. */
static void put_late(struct fixture_writer *to, uint64_t begin_ts, uint64_t sid, uint64_t holder_sid)
{
	uint64_t lock_ts = begin_ts + 50000, wake_ts = lock_ts + 500000;

	put_segment(to, 101, begin_ts, lock_ts, "running", sid);
	begin_segment(to, 101, lock_ts, wake_ts, "blocked.futex", sid);
	set_u64(to, SEGMENT_OBJECT, 0x5555);
	set_str(to, SEGMENT_OBJECT_NAME, "web+0x40");
	set_u64(to, SEGMENT_OWNER_TID, TRACE_FLUSHER);
	set_str(to, SEGMENT_SYSCALL, "futex");
	end_row(to, SHARD_TABLE_SEGMENT);
	put_wakeup(to, 101, wake_ts, TRACE_FLUSHER, "flusher");
	put_segment(to, 101, wake_ts, wake_ts + 50000, "running", sid);

	begin_segment(to, TRACE_FLUSHER, begin_ts, lock_ts + 200000, "runq.preempt", holder_sid);
	set_u64(to, SEGMENT_BY_PID, TRACE_HOG);
	set_u64(to, SEGMENT_BY_TID, TRACE_HOG);
	set_str(to, SEGMENT_BY_COMM, "hog");
	end_row(to, SHARD_TABLE_SEGMENT);
	begin_segment(to, TRACE_FLUSHER, lock_ts + 200000, wake_ts - 1000, "blocked.disk", holder_sid);
	set_str(to, SEGMENT_SYSCALL, "fsync");
	end_row(to, SHARD_TABLE_SEGMENT);
	put_segment(to, TRACE_FLUSHER, wake_ts - 1000, wake_ts + 50000, "running", holder_sid);
	put_interval(to, sid, 101, "tcp:80", begin_ts, begin_ts + TRACE_LATE_NS, 500000,
		     sid == 6 ? WL_INTERVAL_LOSSY : 0);
}

enum { HANDLE = 7, GET_LOCK, FLUSH, SYNC };

static void put_symbol(struct fixture_writer *to, uint32_t id, const char *name, uint64_t height)
{
	begin_row(to, SHARD_TABLE_SYMBOL);
	set_u64(to, SYMBOL_ID, id);
	set_str(to, SYMBOL_MODULE, "web");
	set_str(to, SYMBOL_NAME, name);
	set_u64(to, SYMBOL_HEIGHT, height);
	set_str(to, SYMBOL_KIND, "function");
	end_row(to, SHARD_TABLE_SYMBOL);
}

static void put_call(struct fixture_writer *to, uint64_t sid, uint32_t tid, uint32_t func, uint64_t call_addr,
		     uint64_t begin_ts, uint64_t end_ts, uint64_t blocked_ns)
{
	begin_row(to, SHARD_TABLE_INVOCATION);
	set_u64(to, INVOCATION_SID, sid);
	set_u64(to, INVOCATION_PID, TRACE_PID);
	set_u64(to, INVOCATION_TID, tid);
	set_u64(to, INVOCATION_FUNC, func);
	set_u64(to, INVOCATION_SEQ, func);
	set_u64(to, INVOCATION_CALL_ADDR, call_addr);
	set_u64(to, INVOCATION_BEGIN_TS, begin_ts);
	set_u64(to, INVOCATION_END_TS, end_ts);
	set_u64(to, INVOCATION_RUNNING_NS, end_ts - begin_ts - blocked_ns);
	set_u64(to, INVOCATION_BLOCKED_NS, blocked_ns);
	end_row(to, SHARD_TABLE_INVOCATION);
}

static void put_calls(struct fixture_writer *to, uint64_t k, uint64_t cnt)
{
	uint64_t begin_ts = k * TRACE_PERIOD, lock_ts = begin_ts + 50000, wake_ts = lock_ts + 500000;

	if (k % 10 != 5) {
		put_call(to, k + 1, 101, HANDLE, 0, begin_ts, begin_ts + TRACE_TYPICAL_NS, 0);
		return;
	}
	put_call(to, cnt + 1, TRACE_FLUSHER, SYNC, 0x3000, lock_ts + 200000, wake_ts - 1000, 299000);
	put_call(to, cnt + 1, TRACE_FLUSHER, FLUSH, 0, begin_ts, wake_ts, 299000);
	put_call(to, k + 1, 101, GET_LOCK, k % 20 == 5 ? 0x1000 : 0x2000, lock_ts, wake_ts, 500000);
	put_call(to, k + 1, 101, HANDLE, 0, begin_ts, begin_ts + TRACE_LATE_NS, 500000);
}

static void write_all(const char *dir, uint64_t cnt, bool kept, bool calls)
{
	const struct shard_writer_opts opts = {.dir = dir, .host = "host", .session_id = TRACE_SESSION};
	struct fixture_writer to = {.writer = shard_writer__new(&opts), .holder_type = kept ? NULL : "tcp:82"};

	if (!to.writer)
		must(-1);
	put_session(&to, "comm", "web");
	put_session(&to, "pid", "100");
	if (calls) {
		put_symbol(&to, HANDLE, "handle", 3);
		put_symbol(&to, GET_LOCK, "get_lock", 0);
		put_symbol(&to, FLUSH, "flush", 1);
		put_symbol(&to, SYNC, "sync", 0);
	}
	put_thread(&to, TRACE_PID, TRACE_PID, "web");
	put_thread(&to, TRACE_PID, 101, "web");
	put_thread(&to, TRACE_PID, 102, "web");
	put_thread(&to, TRACE_PID, TRACE_FLUSHER, "flusher");
	put_thread(&to, TRACE_HOG, TRACE_HOG, "hog");
	for (uint64_t k = 0; k < cnt; k++) {
		uint64_t begin_ts = k * TRACE_PERIOD;

		if (calls)
			put_calls(&to, k, cnt);
		if (k % 10 == 5) {
			put_late(&to, begin_ts, k + 1, cnt + 1);
			continue;
		}
		put_segment(&to, 101, begin_ts, begin_ts + TRACE_TYPICAL_NS, "running", k + 1);
		put_interval(&to, k + 1, 101, "tcp:80", begin_ts, begin_ts + TRACE_TYPICAL_NS, 0, 0);
	}
	if (!kept)
		goto done;
	put_segment(&to, 102, cnt * TRACE_PERIOD, cnt * TRACE_PERIOD + TRACE_TYPICAL_NS, "running", cnt + 1);
	put_interval(&to, cnt + 1, 102, "tcp:81", cnt * TRACE_PERIOD, cnt * TRACE_PERIOD + TRACE_TYPICAL_NS, 0, 0);
done:
	must(shard_writer__free(to.writer));
}

void trace_fixture_write(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, true, false);
}

void trace_fixture_write_unkept(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, false, false);
}

void trace_fixture_write_calls(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, true, true);
}
