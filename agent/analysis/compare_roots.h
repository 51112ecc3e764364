/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The roots of both sides as columns over the rows; for compare.c.
 *
 * Both sides are walked together, so that a root is the same line on both.  Which call paths are roots of their own is
 * decided by how much time both sides together spend there (roots_split.h with all rows as late ones), not by the
 * difference: paths that are chosen for their difference would differ by chance too often.
 *
 * A line's time in a row is that of the samples that were taken in it (n/λ, DESIGN §9), and what is left of the entry
 * belongs to the line without a call path.  No time is given to rows without a sample, unlike in a report: that would
 * hide the error of sampling from the bootstrap.  So a single row's time may be below 0; sums are right.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_ROOTS_H
#define WHYLATE_ANALYSIS_COMPARE_ROOTS_H

#include "analysis/compare.h"
#include "analysis/roots_report.h"

#define COMPARE_ROOTS_MAX (ROOT_LINES_MAX + 1)

struct compare_roots {
	double *columns[COMPARE_ROOTS_MAX]; /* by row of the dataset */
};

/*
 * Fills comparison->roots but its figures, and a column for each of its lines.  sides: of the rows that have a critical
 * path.  0 or -ENOMEM; compare_roots__free() in either case.
 */
int compare_roots__make(struct compare_roots *roots, struct comparison *comparison, const uint8_t *sides,
			const struct compare_opts *opts);
void compare_roots__free(struct compare_roots *roots);

#endif
