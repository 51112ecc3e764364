/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes rows of trace mode by hand.  Times are true ones; the writer's clock makes them those of its host. */
#ifndef WHYLATE_TESTS_ROW_WRITER_H
#define WHYLATE_TESTS_ROW_WRITER_H

#include "shard/writer.h"

struct row_writer {
	struct shard_writer *writer;
	struct shard_row row;
	uint32_t pid;     /* of threads that are not told otherwise */
	int64_t ahead_ns; /* its clock, at 0 … */
	double drift_ppm; /* … and from then on */
	/* What segments of that thread say of the interval that it works for; 0: nothing */
	uint32_t worker_tid;
	const char *worker_type;
};

void row_writer_open(struct row_writer *to, const char *dir, const char *host, uint64_t session_id, uint32_t pid);
void row_writer_close(struct row_writer *to);
uint64_t row_writer_clock(const struct row_writer *to, uint64_t ts);

/* Everything that may be null is, until it is set. */
void row_begin(struct row_writer *to, enum shard_table_id table);
void row_set_u64(struct row_writer *to, uint32_t column, uint64_t value);
void row_set_ts(struct row_writer *to, uint32_t column, uint64_t ts);
void row_set_str(struct row_writer *to, uint32_t column, const char *value);
void row_end(struct row_writer *to, enum shard_table_id table);

/* Begun: more can be set, until row_end(). */
void row_begin_segment(struct row_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, const char *state,
		       uint64_t sid);
void row_put_segment(struct row_writer *to, uint32_t tid, uint64_t begin_ts, uint64_t end_ts, const char *state,
		     uint64_t sid);
/* waker_tid 0: a softirq. */
void row_put_wakeup(struct row_writer *to, uint32_t tid, uint64_t ts, uint32_t waker_tid, const char *waker);
void row_begin_interval(struct row_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
			uint64_t end_ts, uint64_t lock_ns, uint64_t flags);
void row_put_interval(struct row_writer *to, uint64_t sid, uint32_t tid, const char *type, uint64_t begin_ts,
		      uint64_t end_ts, uint64_t lock_ns, uint64_t flags);
void row_put_thread(struct row_writer *to, uint32_t pid, uint32_t tid, const char *comm);
void row_put_session(struct row_writer *to, const char *key, const char *value);

/* One side of what went between hosts. */
struct row_message {
	const char *from_addr, *to_addr;
	uint32_t seq, bytes;
	uint64_t sid;
};
void row_put_sent(struct row_writer *to, uint32_t tid, uint64_t ts, const struct row_message *message);
void row_put_received(struct row_writer *to, uint32_t tid, uint64_t ts, const struct row_message *message);

/* A hand-off over a socket by thread 101 of process 100; parent 0: none; `path` stands for its call path. */
void row_put_context(struct row_writer *to, uint64_t id, uint64_t parent, uint64_t path, const char *frames);

#endif
