/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of `--mode trace` in memory: one graph per recording, the intervals that can be walked in it, and all
 * names.  What the files say is checked; rows that cannot be are counted and left out.
 */
#ifndef WHYLATE_ANALYSIS_TRACES_H
#define WHYLATE_ANALYSIS_TRACES_H

#include "analysis/idmap.h"
#include "base/vec.h"
#include "model/path.h"
#include "shard/reader.h"

/* The ends of a socket's hand-off; indexes into the strings, 0: not known. */
struct trace_socket {
	uint32_t from_addr, to_addr;
};

/* A thread by its newest name. */
struct trace_thread {
	uint32_t tid, pid;
	uint32_t name;
};

struct trace_session {
	uint64_t id;
	uint32_t host;                           /* index into the strings, 0: not known */
	uint64_t mono_anchor_ns, wall_anchor_ns; /* its clock and everybody's at one moment, 0: not known */
	struct graph *graph;
	struct idmap thread_ids; /* (tid, pid) → index into threads; (tid, UINT64_MAX) → the newest of that tid */
	VEC(struct trace_thread) threads;
	struct idmap interval_ids;     /* (sid, 0) → index into `first_intervals` */
	VEC(uint32_t) first_intervals; /* index into traces.intervals */
	VEC(uint32_t) tids;            /* that have segments, in the order in which they appeared */
	struct idmap tid_ids;
};

struct trace_interval {
	struct graph_interval base; /* `type` is an index into the strings */
	uint32_t session;           /* index into traces.sessions */
	double weight;
};

struct traces {
	struct arena *arena;
	struct intern strings; /* 0 is "" */
	VEC(struct trace_session) sessions;
	struct idmap session_ids;
	VEC(struct trace_interval) intervals; /* by their end, which is the order in which they were written */
	VEC(struct trace_socket) sockets;     /* by graph_handoff.row */
	size_t segment_cnt, wakeup_cnt, handoff_cnt;
	size_t bad_rows; /* impossible ones, of all tables */
};

/*
 * 1: loaded; 0: there is no segment, this is no recording of trace mode (and nothing to free); -ENOMEM, -EIO.
 * Reads from the beginning, selects tables as it likes.
 */
int traces_load(struct traces *traces, struct shard_reader *reader);
void traces_free(struct traces *traces);

/* The session of that id, or NULL. */
struct trace_session *traces_session(const struct traces *traces, uint64_t id);
/* The interval of that sid in a session, or NULL. */
const struct trace_interval *traces_interval(const struct traces *traces, const struct trace_session *session,
					     uint64_t sid);
/* The name of a thread (pid 0: of whoever had that tid last); an index into the strings, 0: not known. */
uint32_t traces_thread_name(const struct trace_session *session, uint32_t pid, uint32_t tid);
/* The process of that thread, 0: not known. */
uint32_t traces_thread_pid(const struct trace_session *session, uint32_t tid);
/*
 * What is to be added to the times of a session so that they are those of the first session's clock: 0 on the same host
 * since the same boot, and where a clock is not known.
 */
int64_t traces_shift_ns(const struct traces *traces, const struct trace_session *session);
/* Are there sessions of more than one host? */
bool traces_many_hosts(const struct traces *traces);
/* Never NULL. */
static inline const char *traces_string(const struct traces *traces, uint32_t id)
{
	return id < traces->strings.cnt ? traces->strings.strings[id] : "";
}

#endif
