/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one interval's samples to its times in the variance tree, without bias (DESIGN §9).
 *
 * The time of a function on the interval's critical path is the sum of its ticks' periods and of its waits, which are
 * exact.  Means, and covariances with the exact latency, need nothing more.  Squares and products do: with T for the
 * period, the product of two functions' times is a sum over pairs of ticks, and
 *
 *   E[X_f·X_g] = E[Σ T_i·T_j / seen(t_j - t_i)]   over pairs of different ticks i in f, j in g
 *
 * where seen(lag) is how many pairs at that distance the clocks take, as a share of what independent ticks would. Ticks
 * of a clock that is nearly regular are not independent: next to a tick there is no other one for most of a period.  So
 * seen(lag) is measured: pairs of ticks, over the area that pairs of points of the CPU time have at that lag.  Where
 * the clocks take no pairs, a tick speaks for what lies so near to it.  What the sum of all products has beyond that is
 * noise (variance_tree.h).  For independent ticks seen is 1 and the noise is T·E[X_f∩g].
 *
 * Pairs are those of one thread; clocks of different CPUs are independent.
 */
#ifndef WHYLATE_ANALYSIS_SAMPLE_TIMES_H
#define WHYLATE_ANALYSIS_SAMPLE_TIMES_H

#include "analysis/call_times.h"

#define SAMPLE_LAGS 24 /* a quarter of the mean period each; beyond, ticks are independent */

/* A tick, or a wait as far as it lies on the path. */
struct timed_sample {
	uint64_t ts; /* of a tick */
	uint64_t ns;
	uint32_t node; /* of the tree */
	uint32_t tid;
	uint8_t doing; /* enum tree_doing */
	bool tick;
};

/* The path is on a thread that has the CPU. */
struct timed_stretch {
	uint64_t begin_ts, end_ts;
	uint32_t tid;
};

struct timed_row {
	size_t first_sample, first_stretch;
	uint64_t queue_ns;
};

struct sample_times {
	VEC(struct timed_sample) samples;
	VEC(struct timed_stretch) stretches;
	VEC(struct timed_row) rows;
	double lag_ns;            /* width of a class of lags; 0: no ticks */
	double seen[SAMPLE_LAGS]; /* 0: none are */

	VEC(struct tree_noise) noise; /* of the last row */
};

/* A row begins; what follows belongs to it.  0 or -ENOMEM. */
int sample_times__begin(struct sample_times *times, uint64_t queue_ns);
/* Stretches of one thread come by time. */
int sample_times__stretch(struct sample_times *times, uint32_t tid, uint64_t begin_ts, uint64_t end_ts);
int sample_times__tick(struct sample_times *times, uint32_t tid, uint32_t node, uint64_t ts, double period_ns);
int sample_times__wait(struct sample_times *times, uint32_t node, uint64_t ns, enum tree_doing doing);
/* After the last row. */
void sample_times__settle(struct sample_times *times);
/* Fills to->times and times->noise with those of a row.  0 or -ENOMEM. */
int sample_times__row(struct sample_times *times, const struct variance_tree *tree, size_t row, struct call_times *to);
void sample_times__free(struct sample_times *times);

#endif
