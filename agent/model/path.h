/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The critical path of one interval: VProfiler Algorithm 2 (§3.3.3), from the interval's end backwards.
 *
 *   running, interrupted, runnable, …   the time is the thread's own
 *   blocked                             follow the wake-up: what the waker did meanwhile is why; then back to what the
 *                                       blocked thread did before it blocked.  A wake-up from an interrupt has no
 * waker: the sender of the data (a socket's or a pipe's hand-off) is followed instead not yet, or not now, worked on
 * queueing: the generator (a hand-off with this sid) is followed, otherwise the time goes to what the thread did
 * instead no segment, a loop, too deep        `other`, and the path says so
 *
 * The steps partition [begin_ts, end_ts] exactly.  Whose time it is, and of which category:
 *
 *   - What is done to a thread from outside (interrupts, run queue, throttling) keeps its category wherever on the path
 *     it happens; the culprit of `runq` is the task that had the CPU.
 *   - On the interval's own thread (depth 0), the state's category; the culprit of an unfollowed `lock` is its owner.
 *   - On another thread (depth 1 and more): behind a lock it is `lock`, the object is the lock's, and the culprit is
 * the thread that the path is on, whatever it did (`state` says what).  Behind another wait, what that thread waited
 * for itself has its own category, and its running is the category of the wait; a pipe or an eventfd counts as
 *     `io.net`, "the network or another process".
 *   - Queued while the thread was idle in its event loop (`blocked.poll`): the wait is the interval's own.
 *   - Stopped by a signal it is `other` wherever that happens; the culprit is who continued it.
 *   - `queue`: the culprit is the thread that worked on something else, `sid` is the interval that it worked for.
 *
 * An ambiguous edge makes everything behind it ambiguous; `sure` is the category that such a step has without that
 * edge. Cost: linear in the path, times the logarithm of the graph for every edge.  No globals, no I/O; what needs the
 * names is left to the caller.
 */
#ifndef WHYLATE_MODEL_PATH_H
#define WHYLATE_MODEL_PATH_H

#include "base/vec.h"
#include "model/graph.h"

#define PATH_DEPTH_MAX 32
#define PATH_STEPS_MAX 65536
#define PATH_HOPS_MAX  3

enum path_flag {
	PATH_GAP = 1,        /* part of it is `other` because a thread's history has a hole there */
	PATH_NO_EDGE = 2,    /* a wait whose end nobody explains: it keeps its category and has no culprit */
	PATH_LOOP = 4,       /* threads that wait for each other at one and the same time: `other` */
	PATH_TOO_LONG = 8,   /* PATH_DEPTH_MAX or PATH_STEPS_MAX: the rest is `other` */
	PATH_AMBIGUOUS = 16, /* part of it rests on an ambiguous edge */
	PATH_LOSSY = 32,     /* records were lost meanwhile: count it, rank it not */
};

/* How the path came to the thread of a step. */
enum path_via {
	PATH_VIA_OWN,       /* it is the interval's own */
	PATH_VIA_WAKEUP,    /* it woke the thread at depth - 1 */
	PATH_VIA_OWNER,     /* it held the lock that the thread at depth - 1 waited for, and went on holding it */
	PATH_VIA_HANDOFF,   /* it sent what the thread at depth - 1 waited for */
	PATH_VIA_GENERATOR, /* it handed the interval over */
};

struct path_step {
	uint64_t begin_ts, end_ts;
	uint64_t sid;    /* that the thread worked for meanwhile, 0: none known */
	uint64_t object; /* what it is about: the lock behind which the path is, otherwise the segment's own */
	uint32_t pid, tid;
	uint32_t culprit_pid, culprit_tid; /* 0: nobody known */
	uint32_t culprit_name;             /* 0: not in the edge, look the tid up */
	uint32_t object_name, syscall;     /* names, likewise */
	uint32_t type;                     /* of `sid`, a name; 0: not known */
	uint32_t hop_tids[PATH_HOPS_MAX];  /* threads between the own one and this one, nearest first; 0: no more */
	uint8_t state;                     /* enum wl_state: what the thread did */
	uint8_t category;                  /* enum wl_category */
	uint8_t wait;                      /* enum wl_category of the wait by which the path left the own thread */
	uint8_t sure;
	uint8_t certainty; /* enum wl_certainty, of the weakest edge on the way here */
	uint8_t via;       /* enum path_via */
	uint8_t kind;      /* enum wl_handoff, with PATH_VIA_HANDOFF, PATH_VIA_GENERATOR and `transit` */
	uint8_t transit;   /* 1: what the thread waited for had been sent and was under way */
	uint8_t depth;     /* 0: the own thread */
};

/* An edge that the path went along, or that explains a wait without leading anywhere (a disk, a timer, an interrupt).
 */
struct path_edge {
	struct graph_wakeup *wakeup;       /* either this one … */
	struct graph_handoff *handoff;     /* … or this one … */
	uint64_t disk_from_ts, disk_to_ts; /* … or whoever had the disk then */
	uint32_t tid;                      /* woken */
	uint8_t depth;                     /* of the thread that was woken or got the work */
};

struct path {
	uint64_t sid;
	uint32_t flags; /* enum path_flag */
	/* By time: steps[0].begin_ts is the interval's begin_ts, each begins where the one before ends. */
	VEC(struct path_step) steps;
	VEC(struct path_edge) edges; /* latest first; valid until the graph changes */
};

/*
 * Walks one interval; what *path held before is replaced, its memory is used again ({0} to begin with).
 * 0; -EINVAL: the interval's times are out of order; -ENOMEM.
 */
int path_walk(struct path *path, const struct graph *graph, const struct graph_interval *interval);
/*
 * Walks what one thread did from begin_ts to end_ts, whatever it worked for: waits are followed as they are in an
 * interval, categories are those of the thread's own states, nothing is `queue`.  As path_walk() otherwise.
 */
int path_walk_thread(struct path *path, const struct graph *graph, uint32_t pid, uint32_t tid, uint64_t begin_ts,
		     uint64_t end_ts);
void path__clear(struct path *path); /* frees */

#endif
