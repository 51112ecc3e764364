/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's main thread is SCHED_IDLE while it records: it has a CPU when nobody else wants it.  On a machine without
 * an idle CPU that may be never.  So a second thread, which does nothing else, raises it to SCHED_BATCH when a pass of
 * the main loop is overdue or the rings fill, lets it go before others when they are half full, and the main thread
 * lowers itself when the pass is done.
 *
 * While an observation window is open or about to be, the main thread is timed: hooks that stay attached because the
 * agent waits for a CPU cost the target more than the few milliseconds a second that the agent needs then.  Where it
 * has to read the rings in a window that lasts long, it is raised.
 *
 * The second thread also starts a process, whylate-guard, which raises the threads of an agent that was killed
 * (session/guard.h).
 *
 * Without the privilege to come back from SCHED_IDLE both threads stay SCHED_BATCH, and there is no guard.
 */
#ifndef WHYLATE_SESSION_PACE_H
#define WHYLATE_SESSION_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace;

/* When the main thread has a CPU. */
enum pace_class {
	PACE_IDLE,   /* when nobody else wants it */
	PACE_RAISED, /* in its turn */
	PACE_TIMED,  /* at once */
};

struct pace_opts {
	uint64_t patience_ns;         /* how long a pass may be overdue */
	double (*backlog)(void *ctx); /* the fullest ring, 0…1; called by the second thread */
	void *ctx;
};

/* Lowers the calling thread.  NULL: it stays as it is. */
struct pace *pace__new(const struct pace_opts *opts);
/* Raises the calling thread; NULL-safe. */
void pace__free(struct pace *pace);

/*
 * The calling thread has done its pass, and the next one is due at that time (CLOCK_MONOTONIC); until it is done, the
 * thread is of that class.  NULL-safe.
 */
void pace__rest(struct pace *pace, uint64_t due_ts, enum pace_class class);
/* The pass under way takes long and may wait for an idle CPU until that time, as long as the rings have room. */
void pace__allow(struct pace *pace, uint64_t until_ts);
/* How often the main thread was raised. */
uint64_t pace__raised(const struct pace *pace);

/* Must the main thread be raised? */
bool pace_is_late(uint64_t now, uint64_t due_ts, uint64_t patience_ns, double backlog);
/* When to look again: at the latest when that may change. */
uint64_t pace_next_look(uint64_t now, uint64_t due_ts, uint64_t patience_ns);

#endif
