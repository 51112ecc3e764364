/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of the tables of trace mode, from what the graph holds and from what came with a hand-off. */
#ifndef WHYLATE_MODEL_TRACE_ROWS_H
#define WHYLATE_MODEL_TRACE_ROWS_H

#include "model/graph.h"
#include "model/interval_row.h"
#include "model/thread_names.h"
#include "shard/table.h"
#include "target/target.h"

/* How the graph's numbers for names are made: 0 is none. */
#define TRACE_SYSCALL(sysno) ((sysno) == UINT32_MAX ? 0 : (sysno) + 1)
#define TRACE_DEVICE(dev)    ((dev) + 1)

/* The caller's bits of `mark`. */
enum trace_mark {
	TRACE_WRITTEN = 1,
	TRACE_SUSPECT = 2, /* WL_SEGMENT_SUSPECT */
	TRACE_PENDING = 4, /* a fault that is not known to be major or minor yet */
	TRACE_OUTSIDE = 8, /* of another process, whose addresses have other names */
	TRACE_FAR = 16,    /* received from another host, perhaps */
	TRACE_IDLE = 32,   /* WL_SEGMENT_IDLE */
};

/* What a hand-off has beyond the graph. */
struct trace_detail {
	char from_addr[64], to_addr[64];
	uint64_t begin_byte, end_byte;
	uint32_t seq;
	bool has_seq;
	uint32_t bytes;
	uint64_t left_ts; /* 0: not known */
};

struct trace_names {
	const struct thread_names *threads;
	const target_mappings *mappings; /* of the target; NULL: none */
	const target_listeners *listeners;
	const probe_lines *lines;
	const struct request_types *types;
	data_namer data_name; /* NULL: none */
	void *owner;
};

/* Room for the strings of one row. */
struct trace_texts {
	char name[DATA_NAME_LEN], device[32], syscall[32], type[INTERVAL_TYPE_LEN];
};

void trace_row_segment(struct shard_row *row, struct trace_texts *texts, uint32_t tid,
		       const struct graph_segment *segment, const struct trace_names *names);
void trace_row_wakeup(struct shard_row *row, uint32_t pid, uint32_t tid, const struct graph_wakeup *wakeup,
		      const struct trace_names *names);
/* `detail` may be NULL. */
void trace_row_handoff(struct shard_row *row, struct trace_texts *texts, const struct graph_handoff *handoff,
		       const struct trace_detail *detail, const struct trace_names *names);

#endif
