/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What functions took themselves on the critical paths of both sides, as columns over the rows; for compare.c.
 *
 * A function's time in a row is that of the samples in which it is the innermost frame, of the request's own threads
 * and of its blockers'; what was not sampled is a line of its own, so that the lines sum to the latency.  As with roots
 * (compare_roots.h), functions are chosen by the time of both sides together, and a single row's time may be below 0.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_FUNCTIONS_H
#define WHYLATE_ANALYSIS_COMPARE_FUNCTIONS_H

#include "analysis/compare.h"

#define COMPARE_FUNCTIONS_MAX 32 /* two of them are what is left */

struct compare_functions {
	double *columns[COMPARE_FUNCTIONS_MAX]; /* by row of the dataset */
};

/*
 * Fills comparison->functions but its figures, and a column for each of its lines; none without samples.  sides: of the
 * rows that have a critical path.  0 or -ENOMEM; compare_functions__free() in either case.
 */
int compare_functions__make(struct compare_functions *functions, struct comparison *comparison, const uint8_t *sides,
			    const struct compare_opts *opts);
void compare_functions__free(struct compare_functions *functions);

#endif
