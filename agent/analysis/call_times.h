/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one interval's calls to its times in the variance tree (VProfiler §3.3.3, monitor_exec_time): each call's
 * overlap with the critical path, summed per call path.
 *
 * The path is given as stretches that partition the interval from pickup to end.  A stretch belongs to the thread that
 * the interval was on; where that one waited for another thread, the stretch names it, and the calls of that thread
 * become children "behind" the call in which the own thread waited.  Their times then are part of it, as those of
 * callees are, and the sums of the tree hold across threads.
 *
 * What encloses what follows from the times on a thread, so that a lost record costs that call and no other.
 */
#ifndef WHYLATE_ANALYSIS_CALL_TIMES_H
#define WHYLATE_ANALYSIS_CALL_TIMES_H

#include "analysis/variance_tree.h"
#include "base/vec.h"

/* One finished call of a probed function. */
struct call {
	uint64_t begin_ts, end_ts;
	uint64_t call_addr;                /* 0: not known */
	uint64_t doing_ns[TREE_DOING_CNT]; /* TREE_RUNNING is the rest, whatever it says */
	uint32_t row;                      /* of the dataset: the interval that it was made for */
	uint32_t tid, func;
	uint32_t seq; /* order of the entries on that thread */
	bool unsplit; /* an older recording: TREE_OTHER is all that it was blocked */
};

struct call_stretch {
	uint64_t begin_ts, end_ts;
	uint32_t tid;
	uint32_t behind_tid; /* for which `tid` waited; 0: for none */
};

struct call_nest {
	uint32_t parent, node;
	uint64_t begin_ts, end_ts;
};

struct call_times {
	VEC(struct tree_time) times; /* of the last interval; ancestors before their descendants */
	size_t skipped;              /* calls so far whose time stays in their callers': the tree is full */

	VEC(struct call_nest) nest; /* by call */
	VEC(uint64_t) places;       /* by node: where it is in times, and of which round that is */
	uint64_t round;
};

/* By tid, then in the order of their entries. */
void calls_sort(struct call *calls, size_t cnt);

/*
 * Fills times->times from calls in the order of calls_sort() and stretches by time; makes the nodes.  Calls of threads
 * that no stretch names do not count.  0 or -ENOMEM.
 */
int call_times__make(struct call_times *times, struct variance_tree *tree, const struct call *calls, size_t call_cnt,
		     const struct call_stretch *stretches, size_t stretch_cnt);
void call_times__free(struct call_times *times);

typedef VEC(struct call_stretch) call_stretches;

/*
 * The stretches of an interval of whose threads nothing is known but its calls (in the order of calls_sort()): of those
 * under way, the one that began last is where the work is; when there is none, it is on `tid` until the first one on
 * end_tid, and on that from then on.  Appends to `stretches`: 0 or -ENOMEM.
 */
int call_stretches_make(call_stretches *stretches, const struct call *calls, size_t call_cnt, uint64_t pickup_ts,
			uint64_t end_ts, uint32_t tid, uint32_t end_tid);

#endif
