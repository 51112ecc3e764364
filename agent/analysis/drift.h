/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slow drifts in a series over days: the slope by Theil and Sen of daily values, which counts if the Mann-Kendall test
 * finds p of 0.01 at most.
 */
#ifndef WHYLATE_ANALYSIS_DRIFT_H
#define WHYLATE_ANALYSIS_DRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIFT_DAYS_MIN 7
#define DRIFT_P        0.01

struct drift {
	size_t days; /* that it rests on; too few: the rest is not set, p is NAN */
	bool found;
	double p, per_day;
	double first, last; /* the line's values on the first and the last day */
};

/*
 * Of cnt values, in the order of their times; weights: of each value within its day; NAN values are left out.  0 or
 * -ENOMEM.
 */
int drift_find(struct drift *drift, const uint64_t *wall_ns, const double *values, const double *weights, size_t cnt);

#endif
