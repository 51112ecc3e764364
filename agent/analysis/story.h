/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One interval's critical path with everything by its name: what `explain` tells, what a report shows of the slowest,
 * and what an export draws.  Strings belong to the traces or to the arena.
 */
#ifndef WHYLATE_ANALYSIS_STORY_H
#define WHYLATE_ANALYSIS_STORY_H

#include "analysis/samples.h"

struct story_step {
	uint64_t begin_ts, end_ts;
	enum wl_category category;
	enum wl_state state;
	enum wl_category wait; /* by which the path left the interval's own thread; with depth 0, the category */
	const char *comm;      /* of the thread that the path is on; NULL: not known */
	const char *host;      /* of that thread; NULL: the interval's own */
	uint32_t pid, tid;
	const char *culprit_host;          /* likewise */
	const char *object;                /* NULL: none known; a lock by name or address, a file, what is queued for */
	const char *syscall;               /* NULL: not in one, or not known */
	const char *culprit_comm;          /* NULL: not known */
	uint32_t culprit_pid, culprit_tid; /* 0: not known */
	uint64_t other_sid;                /* of another interval that the thread worked for, 0: none */
	const char *other_type;            /* its type; NULL: it was not kept */
	const char *call_path;             /* "a > b": what the one that it is about was at; NULL: no sample tells */
	enum path_via via;
	enum wl_handoff kind; /* by a hand-off, or with `transit` */
	bool transit;         /* data were under way */
	enum wl_certainty certainty;
	uint8_t depth;
};

struct story {
	uint64_t sid, session_id;
	const char *host;  /* that it was recorded on, or "" */
	bool host_is_told; /* there are recordings of several hosts */
	uint64_t begin_ts, pickup_ts, end_ts;
	const char *type;
	uint32_t pid, tid, end_tid;
	uint32_t path_flags; /* enum path_flag */
	double weight;
	const char *trace_id, *span_id; /* of the application's own tracing; "" where there is none */
	struct story_step *steps;
	size_t step_cnt;
};

/*
 * Walks the interval, names what it meets.  samples: NULL, there are none.  0 or -ENOMEM.  *path is memory to be used
 * again by the next call.
 */
int story_make(struct story *story, const struct traces *traces, const struct samples *samples,
	       const struct trace_interval *interval, struct path *path, struct arena *arena);

/*
 * What a step of that category is about; an index into the strings of the traces, 0: nothing, or (*by_address) nothing
 * but step->object.
 */
uint32_t story_object(const struct traces *traces, const struct trace_session *session, const struct path_step *step,
		      bool *by_address);
/* The culprit's name; an index into the strings of the traces, 0: not known. */
uint32_t story_culprit_name(const struct traces *traces, const struct trace_session *session,
			    const struct path_step *step);

#endif
