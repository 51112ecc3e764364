/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where do the values of an event begin to be "high"?  VarMRI §5.1: fit its CDF with straight lines and take a joint.
 *
 * The CDF is cut into ranges of equal weight; neighbours are merged while the line through both explains each of the
 * two with R² > 0.95; where two final lines meet is a joint.  We fit the value over the percentile (the inverse of the
 * CDF), because an event is often 0 almost everywhere: as a function of the value that is a vertical line and has no
 * regression.  Values come in ascending order, a weighted row is a step as wide as its weight, and a step that
 * straddles two ranges is split: the sums are integrals over the step function, so a row of weight k gives exactly what
 * k rows give.  O(values) to collect, a constant time per merge.
 *
 * A step rarely falls on the boundary of two ranges.  The range around it has values of both sides and merges with
 * neither, so that the joint is one of its ends and the step is in it.  The joint is moved to the step: equal values
 * are never parted, and a value at a joint belongs to the side that has more of it.
 *
 * One thread per struct; no memory but the struct itself, which is large (about 90 KiB): not for the stack.
 */
#ifndef WHYLATE_ANALYSIS_CDF_FIT_H
#define WHYLATE_ANALYSIS_CDF_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CDF_RANGES_MAX 1000 /* VarMRI's N */
#define CDF_R2_MIN     0.95

/* A straight piece, from range `begin` up to and without range `end`. */
struct cdf_line {
	uint32_t begin, end;
	double mean;     /* of the values */
	double syy;      /* ∫(y - mean)² over the piece; x counts in ranges */
	double sxy;      /* ∫(x - its middle)(y - mean) */
	double last;     /* the value at its upper end: the quantile end / range_cnt */
	double from, to; /* where in x that value begins and ends */
	double below;    /* the next smaller value; unless from is 0 */
};

struct cdf_fit {
	struct cdf_line lines[CDF_RANGES_MAX];
	uint32_t line_cnt;
	uint32_t range_cnt;
	double total_weight;
	double target;
	double target_value; /* the quantile at the target percentile */
	double target_below; /* the next smaller value, NAN: none */
	double last;         /* the largest value */
	/* While values are coming in. */
	uint32_t open_cnt; /* of the lines, the first that ends in the value `last` */
	double weight, pos, first, sy, syy, sxy;
	double last_from, below; /* where the value `last` begins, and the one before it; NAN: none */
};

/* How many ranges suit so many rows: CDF_RANGES_MAX, fewer where a range would have too few rows to show a slope. */
uint32_t cdf_fit_range_cnt(size_t row_cnt);

/* range_cnt 1…CDF_RANGES_MAX; total_weight > 0 is what the weights will sum to; target 0…1. */
void cdf_fit__begin(struct cdf_fit *fit, uint32_t range_cnt, double total_weight, double target);
/* Values ascend; equal values may come one by one or as one. */
void cdf_fit__add(struct cdf_fit *fit, uint64_t value, double weight);
/* Merges.  Afterwards lines[line_cnt] holds the final lines in order. */
void cdf_fit__end(struct cdf_fit *fit);

/*
 * The joint below the target percentile and nearest to it: its percentile (0…1) and the largest value that is not above
 * it; *flat: all values of the line above it are equal.  false when there is none.
 */
bool cdf_fit__joint(const struct cdf_fit *fit, double *percentile, double *value, bool *flat);

#endif
