/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call paths of one thread role for one type of request that separate late intervals from typical ones.
 *
 * In the calling-context tree of late − typical time, the walk goes from the root to the child that holds 90 % of its
 * parent's difference, or as much as so few samples can tell from it, as long as there is one.  Where there is none,
 * children that were met in different units (a unit: one thread's work for one request) are causes of their own, and
 * the walk goes on in each of them, and in a child that holds most of the difference besides; children that share their
 * units are parts of one cause, and the walk ends.  Upwards, a branch extends as far as it stays clear of what typical
 * intervals do.
 */
#ifndef WHYLATE_ANALYSIS_ROOT_SPLIT_H
#define WHYLATE_ANALYSIS_ROOT_SPLIT_H

#include "analysis/samples.h"

#define ROOT_BRANCHES_MAX 6

/* What one sample stands for. */
struct split_tick {
	uint32_t node, unit;
	uint32_t sample;            /* several may stand for one sample, which several intervals met */
	double late_ns, typical_ns; /* of the mean late and of the mean typical interval */
};

struct root_branch {
	uint32_t top, shown, cut; /* nodes: its time is that below `top`, its call path goes from `shown` to `cut` */
};

struct root_split {
	struct root_branch branches[ROOT_BRANCHES_MAX];
	size_t cnt;
	uint8_t *branch_of; /* by node: index into branches plus 1, 0: none */
};

/*
 * The ticks are in the order of their units.  A branch holds at least min_ns of difference.  into_kernel: functions of
 * the kernel count, too; otherwise what the kernel does for a function is that function's.  0 or -ENOMEM;
 * root_split__free() in either case.
 */
int root_split__make(struct root_split *split, const struct samples *samples, const struct split_tick *ticks,
		     size_t tick_cnt, double min_ns, bool into_kernel);
void root_split__free(struct root_split *split);

#endif
