/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a trace: trace.c takes records, trace_edges.c makes hand-offs of them, trace_queues.c finds those
 * through queues of the program, trace_keep.c writes rows.
 */
#ifndef WHYLATE_MODEL_TRACE_INTERNAL_H
#define WHYLATE_MODEL_TRACE_INTERNAL_H

#include "base/vec.h"
#include "model/graph.h"
#include "model/path.h"
#include "model/trace.h"
#include "model/trace_far.h"
#include "model/trace_order.h"
#include "model/trace_rows.h"
#include "model/trace_sockets.h"

/* Details of so many hand-offs, the newest. */
#define TRACE_DETAILS 16384
/* Requests whose arrival woke a thread, the newest. */
#define TRACE_ARRIVALS 16384
#define TRACE_CPUS     1024
/* Requests that are written along with one that was waited for. */
#define TRACE_RIVALS_MAX 256
/* Threads of which it is known what was written last: as many requests of one thread overlap as it has connections. */
#define TRACE_COVERED 64
/* Moments at which threads were seen to spin, the newest. */
#define TRACE_SPINS 4096
/* How long before its call returned a thread may have been woken for what it received. */
#define TRACE_WOKEN_BEFORE_NS 1000000000ULL
/* An interval ends in the call that sends its reply, which the record of that call may come after. */
#define TRACE_REPLY_NS 50000ULL

/* A block I/O whose completion wakes whoever waits for it, right after it. */
struct pending_block {
	struct wl_block_record record;
	bool waited_for;
};

/* Who was told of a request's arrival, and when. */
struct trace_arrival {
	uint64_t sid, ts;
	uint32_t tid;
};

/* What the thread did in that time is written. */
struct trace_covered {
	uint32_t tid;
	uint64_t from_ts, to_ts;
};

struct trace_spin {
	uint64_t ts;
	uint32_t pid;
};

/* One thread hands an interval over, another one begins to work on it. */
struct trace_passage {
	const struct graph_interval *interval;
	uint32_t from_tid, to_tid;
	uint64_t handed_ts, taken_ts;
	enum wl_certainty certainty;
};

struct trace {
	struct trace_opts opts;
	struct trace_order *order;
	struct trace_sockets *sockets;
	struct trace_far *far;
	struct graph *graph;
	struct path path;
	const target_mappings *mappings;
	struct trace_handoff_detail {
		uint32_t row; /* of the hand-off, 0: none */
		bool written;
		struct trace_detail detail;
	} *details;
	uint32_t last_row;
	struct trace_arrival *arrivals;     /* by sid */
	VEC(struct graph_interval) pending; /* kept, and their ends not settled yet */
	struct pending_block blocks[TRACE_CPUS];
	struct trace_covered covered[TRACE_COVERED]; /* by tid */
	struct trace_spin spins[TRACE_SPINS];        /* in the order in which they came, round and round */
	uint64_t spin_cnt;
	bool has_forgotten;
	struct trace_counts counts;
	struct shard_row row;
	struct trace_texts texts;
};

/* Counts what the graph has taken or (-EINVAL) refused as impossible; other errors pass. */
int trace__received(struct trace *trace, enum shard_table_id table, int err);

/* trace_edges.c */
int trace__take_socket(struct trace *trace, const struct wl_socket_record *record);
int trace__settle_sockets(struct trace *trace, uint64_t before_ts);
int trace__take_block(struct trace *trace, const struct wl_block_record *record, uint16_t cpu);
int trace__block_waiter(struct trace *trace, const struct wl_wakeup_record *record, uint16_t cpu);
int trace__settle_blocks(struct trace *trace, uint64_t before_ts);
int trace__add_write(struct trace *trace, const struct wl_wakeup_record *record);
int trace__add_fork(struct trace *trace, const struct wl_task_record *record);
int trace__add_timer(struct trace *trace, const struct wl_timer_record *record);
int trace__add_queue(struct trace *trace, const struct trace_passage *passage);

/* trace_queues.c */
void trace__note_arrival(struct trace *trace, const struct wl_wakeup_record *record);
/* Before the interval was read: the thread that was told of its arrival passed it on to the one that read it. */
int trace__queue_before(struct trace *trace, const struct graph_interval *interval);
/* Another thread than the one that read it answered it. */
int trace__queue_within(struct trace *trace, const struct graph_interval *interval);

int trace__add_dequeue(struct trace *trace, const struct wl_queue_record *record);
void trace_detail_make(struct trace_detail *detail, const struct wl_socket_record *record, bool sent);

/* trace_keep.c: the rows of an interval that is kept. */
int trace__keep_interval(struct trace *trace, const struct graph_interval *interval);

#endif
