/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roots of one recording (roots.c) and who is at the root of a step (roots_blocker.c); for these only. */
#ifndef WHYLATE_ANALYSIS_ROOTS_INTERNAL_H
#define WHYLATE_ANALYSIS_ROOTS_INTERNAL_H

#include "analysis/roots.h"

/* What is known of a step on the way to its root. */
struct root_trail {
	struct roots *roots;
	const struct trace_session *session;
	const struct trace_interval *interval;
	uint32_t row;
	struct root_way way; /* but its key */
	bool idle;           /* the step is an idle wait in the interval's event loop */
	bool ended_by_timer; /* the last such wait before the interval went on */
	bool timer_met;      /* a timer ended one of them */
	uint32_t nest;
	uint32_t tids[ROOT_NEST_MAX]; /* whose waits are being followed */
};

/* What a thread did in a root's time, for the gain (root_gain.c). */
enum root_time {
	ROOT_TIME_OTHER,
	ROOT_TIME_RAN,   /* code of the path */
	ROOT_TIME_TAKEN, /* that code was interrupted or preempted */
};

/* A blocker that nothing is behind. */
struct root_leaf {
	struct root_key key;
	uint64_t sid;            /* for which the thread worked, 0: none */
	uint32_t context;        /* in which that was handed on */
	uint32_t pid, tid;       /* of the graph, 0: none */
	uint64_t from_ts, to_ts; /* by the graph's clock */
	bool on_cpu;             /* whose samples those of the thread are */
	enum root_time time;
};

/* Texts of roots.strings.  0 or -ENOMEM. */
int roots__text(struct roots *roots, const char *text, uint32_t *id);
/* The role of a thread with that name (of the traces). */
int roots__role(struct roots *roots, uint32_t traces_name, uint32_t *id);
/* Adds a thread of the graph to those between the interval and the root. */
int root_trail__hop(struct root_trail *trail, uint32_t pid, uint32_t tid);
/* The row has been held up for ns by that root. */
int roots__add(struct roots *roots, const struct root_trail *trail, const struct root_leaf *leaf, uint64_t ns);

/* Did nobody but a timer end the thread's wait, by the graph's clock? */
bool root_trail__timer_in(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts);
/* Follows one step, whose time by the graph's clock is [from_ts, to_ts). */
int root_trail__follow(struct root_trail *trail, const struct path_step *step, uint64_t from_ts, uint64_t to_ts,
		       uint64_t ns);

#endif
