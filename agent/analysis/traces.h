/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of `--mode trace` in memory: one graph per recording, the intervals that can be walked in it, and all
 * names.  What the files say is checked; rows that cannot be are counted and left out.
 *
 * Recordings that can be joined (stitch.h) share a graph, whose times are by one clock.  A thread's or process's number
 * in a graph, and in a path, has the recording's slot above its TRACE_ID_BITS; an interval's sid is likewise made
 * different.  Everything else here, intervals among it, speaks of numbers and times as the recording had them.
 */
#ifndef WHYLATE_ANALYSIS_TRACES_H
#define WHYLATE_ANALYSIS_TRACES_H

#include "analysis/context_chains.h"
#include "analysis/stitch.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "model/path.h"
#include "shard/reader.h"

/* The kernel's limit (PID_MAX_LIMIT), and a bit for goroutines. */
#define TRACE_ID_BITS (WL_GOROUTINE_BITS + 1)
#define TRACE_ID_MASK ((1u << TRACE_ID_BITS) - 1)

/* The ends of a socket's hand-off; indexes into the strings, 0: not known. */
struct trace_socket {
	uint32_t from_addr, to_addr;
};

/* A thread by its newest name. */
struct trace_thread {
	uint32_t tid, pid;
	uint32_t name;
	uint64_t name_ts; /* it had that name then */
};

struct trace_session {
	uint64_t id;
	uint32_t host;                           /* index into the strings, 0: not known */
	uint64_t mono_anchor_ns, wall_anchor_ns; /* its clock and everybody's at one moment, 0: not known */
	struct graph *graph;                     /* of slot 0 */
	uint32_t slot;                           /* among those that share the graph */
	bool joined;                             /* it shares it */
	struct idmap thread_ids; /* (tid, pid) → index into threads; (tid, UINT64_MAX) → the newest of that tid */
	VEC(struct trace_thread) threads;
	struct idmap interval_ids;     /* (sid, 0) → index into `first_intervals` */
	VEC(uint32_t) first_intervals; /* index into traces.intervals */
	VEC(uint32_t) tids;            /* in the graph, that have segments, in the order in which they appeared */
	struct idmap tid_ids;
};

struct trace_interval {
	struct graph_interval base; /* `type` is an index into the strings */
	uint32_t session;           /* index into traces.sessions */
	double weight;
	uint64_t context;           /* in which it ended, as its recording numbers them; 0: as it came in */
	uint32_t trace_id, span_id; /* of the application's own tracing; index into the strings, 0: none */
};

struct traces {
	struct arena *arena;
	struct intern strings; /* 0 is "" */
	VEC(struct trace_session) sessions;
	struct idmap session_ids;
	VEC(struct trace_interval) intervals; /* by their end, which is the order in which they were written */
	VEC(struct trace_socket) sockets;     /* by graph_handoff.row */
	struct context_chains chains;
	struct stitch stitch;
	size_t stitched;       /* receives that were loaded, of those in stitch.receives */
	struct idmap slot_ids; /* (session of slot 0, slot) → index into slot_sessions */
	VEC(uint32_t) slot_sessions;
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
/* Walks the interval, whose recording's clock the steps are by; numbers in them are those of its graph. As path_walk().
 */
int traces_walk(struct path *path, const struct traces *traces, const struct trace_interval *interval);

/* The recording that a number of the graph is of, among those that share the graph with `session`. */
const struct trace_session *traces_owner(const struct traces *traces, const struct trace_session *session, uint32_t id);
static inline uint32_t traces_real_id(uint32_t id)
{
	return id & TRACE_ID_MASK;
}
/* A number of the session as its graph has it. */
static inline uint32_t traces_graph_id(const struct trace_session *session, uint32_t id)
{
	return id ? session->slot << TRACE_ID_BITS | id : 0;
}
/* The sid that a thread of the graph worked for, as its recording had it. */
uint64_t traces_real_sid(const struct traces *traces, const struct trace_session *session, uint32_t tid, uint64_t sid);
/* The interval that a step's thread worked for, or NULL. */
const struct trace_interval *traces_step_interval(const struct traces *traces, const struct trace_session *session,
						  const struct path_step *step);
/* The host of that thread of the graph where it is not the session's own; NULL: it is, or has no name. */
const char *traces_other_host(const struct traces *traces, const struct trace_session *session, uint32_t tid);
/* The time of the session as the graph has it. */
uint64_t traces_graph_ts(const struct traces *traces, const struct trace_session *session, uint64_t ts);

/* The name of a thread of the graph (pid 0: of whoever had that tid last); index into the strings, 0: not known. */
uint32_t traces_thread_name(const struct traces *traces, const struct trace_session *session, uint32_t pid,
			    uint32_t tid);
/* The process of that thread, a number of the graph, too; 0: not known. */
uint32_t traces_thread_pid(const struct traces *traces, const struct trace_session *session, uint32_t tid);
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
