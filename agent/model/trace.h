/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace mode: records → the graph of who waited for whom → rows, in one pass and in bounded memory.
 *
 * Detail waits here until the interval that it may belong to has ended.  Of an interval that retention keeps, the
 * segments of its own threads and whatever its critical path visits are handed out as rows, each at most once; the rest
 * is forgotten when the memory is full, oldest first.  received = written + forgotten, for each table.
 *
 * Records may come out of order within a window of time; later ones are taken all the same and counted.  One thread
 * only, no I/O.
 */
#ifndef WHYLATE_MODEL_TRACE_H
#define WHYLATE_MODEL_TRACE_H

#include <whylate/record.h>

#include "model/interval_row.h"
#include "model/thread_names.h"
#include "probe/symbol_list.h"
#include "shard/table.h"
#include "target/target.h"

/* What the rings of several CPUs need. */
#define TRACE_WINDOW_NS 2000000ULL
/* A goroutine tells when its wait for bytes was over after it got a thread to read them on. */
#define TRACE_GO_WINDOW_NS 50000000ULL

/* 0 or -errno, which ends the call under way. */
typedef int (*trace_append)(void *owner, enum shard_table_id table, const struct shard_row *row);

struct trace_opts {
	uint64_t memory;    /* bytes */
	uint64_t window_ns; /* records may come out of order within it; 0: TRACE_WINDOW_NS */
	trace_append append;
	void *owner;
	data_namer data_name; /* names locks, with `owner`; NULL: they have addresses */
	/* The caller's, who keeps them up to date; the last three are for the types of intervals and may be NULL. */
	const struct thread_names *threads;
	const target_listeners *listeners;
	const probe_lines *lines;
	const struct request_types *types;
};

struct trace_counts {
	uint64_t taken[WL_RECORD_KIND_CNT]; /* records that came out of the rings, by kind */
	uint64_t received[SHARD_TABLE_CNT]; /* segments, wake-ups and hand-offs that were true */
	uint64_t written[SHARD_TABLE_CNT];
	uint64_t forgotten;  /* received and not written, of the three tables together */
	uint64_t impossible; /* records that cannot be true */
	uint64_t late;       /* beyond the window */
	uint64_t kept;       /* intervals */
	uint64_t cut_short;  /* of them, those whose beginning was forgotten before they ended */
	uint64_t lossy;      /* of them, those during which records were lost */
};

struct trace;

/* NULL when out of memory. */
struct trace *trace__new(const struct trace_opts *opts);
void trace__free(struct trace *trace); /* NULL-safe */

/* A record of any kind but an interval. */
int trace__take(struct trace *trace, const struct wl_record_header *record);
/* An interval whose detail is to be kept; one that is not kept itself. */
int trace__take_interval(struct trace *trace, const struct wl_interval_record *record);
int trace__take_brief(struct trace *trace, const struct wl_brief_record *record);
/* A sample met a thread of that process in a spin loop: intervals keep what the process's other threads did, too. */
void trace__spun(struct trace *trace, uint32_t pid, uint64_t ts);

/* Everything that was sent until now_ts has been taken: goes on as far as the window allows. */
int trace__advance(struct trace *trace, uint64_t now_ts, const target_mappings *mappings);
/* Nothing more will come. */
int trace__finish(struct trace *trace, const target_mappings *mappings);

void trace__counts(const struct trace *trace, struct trace_counts *counts);
size_t trace__bytes(const struct trace *trace);

#endif
