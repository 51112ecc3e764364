// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace_fixture.h"

#include "row_writer.h"

#include <whylate/record.h>

#include <stdbool.h>

/* context 0: none */
static void put_interval(struct row_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
			 uint64_t latency_ns, uint64_t blocked_ns, uint64_t context)
{
	row_begin_interval(to, sid, tid, type, begin_ts, begin_ts + latency_ns, blocked_ns,
			   sid == 6 ? WL_INTERVAL_LOSSY : 0);
	if (context)
		row_set_u64(to, INTERVAL_CONTEXT, context);
	row_end(to, SHARD_TABLE_INTERVAL);
}

/* 50 µs of its own, then the wait, then the other 50 µs. */
static void put_late(struct row_writer *to, uint64_t begin_ts, uint64_t sid, uint64_t holder_sid, uint64_t context)
{
	uint64_t lock_ts = begin_ts + 50000, wake_ts = lock_ts + 500000;

	row_put_segment(to, 101, begin_ts, lock_ts, "running", sid);
	row_begin_segment(to, 101, lock_ts, wake_ts, "blocked.futex", sid);
	row_set_u64(to, SEGMENT_OBJECT, 0x5555);
	row_set_str(to, SEGMENT_OBJECT_NAME, "web+0x40");
	row_set_u64(to, SEGMENT_OWNER_TID, TRACE_FLUSHER);
	row_set_str(to, SEGMENT_SYSCALL, "futex");
	row_end(to, SHARD_TABLE_SEGMENT);
	row_put_wakeup(to, 101, wake_ts, TRACE_FLUSHER, "flusher");
	row_put_segment(to, 101, wake_ts, wake_ts + 50000, "running", sid);

	row_begin_segment(to, TRACE_FLUSHER, begin_ts, lock_ts + 200000, "runq.preempt", holder_sid);
	row_set_u64(to, SEGMENT_BY_PID, TRACE_HOG);
	row_set_u64(to, SEGMENT_BY_TID, TRACE_HOG);
	row_set_str(to, SEGMENT_BY_COMM, "hog");
	row_end(to, SHARD_TABLE_SEGMENT);
	row_begin_segment(to, TRACE_FLUSHER, lock_ts + 200000, wake_ts - 1000, "blocked.disk", holder_sid);
	row_set_str(to, SEGMENT_SYSCALL, "fsync");
	row_end(to, SHARD_TABLE_SEGMENT);
	row_put_segment(to, TRACE_FLUSHER, wake_ts - 1000, wake_ts + 50000, "running", holder_sid);
	put_interval(to, sid, 101, "tcp:80", begin_ts, TRACE_LATE_NS, 500000, context);
}

enum { HANDLE = 7, GET_LOCK, FLUSH, SYNC };

static void put_symbol(struct row_writer *to, uint32_t id, const char *name, uint64_t height)
{
	row_begin(to, SHARD_TABLE_SYMBOL);
	row_set_u64(to, SYMBOL_ID, id);
	row_set_str(to, SYMBOL_MODULE, "web");
	row_set_str(to, SYMBOL_NAME, name);
	row_set_u64(to, SYMBOL_HEIGHT, height);
	row_set_str(to, SYMBOL_KIND, "function");
	row_end(to, SHARD_TABLE_SYMBOL);
}

static void put_call(struct row_writer *to, uint64_t sid, uint32_t tid, uint32_t func, uint64_t call_addr,
		     uint64_t begin_ts, uint64_t end_ts, uint64_t blocked_ns)
{
	row_begin(to, SHARD_TABLE_INVOCATION);
	row_set_u64(to, INVOCATION_SID, sid);
	row_set_u64(to, INVOCATION_PID, TRACE_PID);
	row_set_u64(to, INVOCATION_TID, tid);
	row_set_u64(to, INVOCATION_FUNC, func);
	row_set_u64(to, INVOCATION_SEQ, func);
	row_set_u64(to, INVOCATION_CALL_ADDR, call_addr);
	row_set_u64(to, INVOCATION_BEGIN_TS, begin_ts);
	row_set_u64(to, INVOCATION_END_TS, end_ts);
	row_set_u64(to, INVOCATION_RUNNING_NS, end_ts - begin_ts - blocked_ns);
	row_set_u64(to, INVOCATION_BLOCKED_NS, blocked_ns);
	row_end(to, SHARD_TABLE_INVOCATION);
}

static void put_calls(struct row_writer *to, uint64_t k, uint64_t cnt)
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

/* What there is besides segments and wake-ups. */
struct parts {
	bool holder, calls, contexts;
};

static void write_all(const char *dir, uint64_t cnt, const struct parts *parts)
{
	struct row_writer to;

	row_writer_open(&to, dir, "host", TRACE_SESSION, TRACE_PID);
	if (!parts->holder) {
		to.worker_tid = TRACE_FLUSHER;
		to.worker_type = "tcp:82";
	}
	row_put_session(&to, "comm", "web");
	row_put_session(&to, "pid", "100");
	if (parts->calls) {
		put_symbol(&to, HANDLE, "handle", 3);
		put_symbol(&to, GET_LOCK, "get_lock", 0);
		put_symbol(&to, FLUSH, "flush", 1);
		put_symbol(&to, SYNC, "sync", 0);
	}
	if (parts->contexts) {
		row_put_context(&to, TRACE_CONTEXT, 0, 1, "main;loop;ask");
		row_put_context(&to, TRACE_CONTEXT_BEHIND, TRACE_CONTEXT, 2, "main;loop;reply;ask");
	}
	row_put_thread(&to, TRACE_PID, TRACE_PID, "web");
	row_put_thread(&to, TRACE_PID, 101, "web");
	row_put_thread(&to, TRACE_PID, 102, "web");
	row_put_thread(&to, TRACE_PID, TRACE_FLUSHER, "flusher");
	row_put_thread(&to, TRACE_HOG, TRACE_HOG, "hog");
	for (uint64_t k = 0; k < cnt; k++) {
		uint64_t begin_ts = k * TRACE_PERIOD;

		if (parts->calls)
			put_calls(&to, k, cnt);
		if (k % 10 == 5) {
			put_late(&to, begin_ts, k + 1, cnt + 1,
				 !parts->contexts ? 0
				 : k % 20 == 5    ? TRACE_CONTEXT
						  : TRACE_CONTEXT_BEHIND);
			continue;
		}
		row_put_segment(&to, 101, begin_ts, begin_ts + TRACE_TYPICAL_NS, "running", k + 1);
		row_put_interval(&to, k + 1, 101, "tcp:80", begin_ts, begin_ts + TRACE_TYPICAL_NS, 0, 0);
	}
	if (!parts->holder)
		goto done;
	row_put_segment(&to, 102, cnt * TRACE_PERIOD, cnt * TRACE_PERIOD + TRACE_TYPICAL_NS, "running", cnt + 1);
	put_interval(&to, cnt + 1, 102, "tcp:81", cnt * TRACE_PERIOD, TRACE_TYPICAL_NS, 0,
		     parts->contexts ? TRACE_CONTEXT_BEHIND : 0);
done:
	row_writer_close(&to);
}

void trace_fixture_write(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, &(struct parts){.holder = true});
}

void trace_fixture_write_unkept(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, &(struct parts){0});
}

void trace_fixture_write_calls(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, &(struct parts){.holder = true, .calls = true});
}

void trace_fixture_write_contexts(const char *dir, uint64_t cnt)
{
	write_all(dir, cnt, &(struct parts){.holder = true, .contexts = true});
}
