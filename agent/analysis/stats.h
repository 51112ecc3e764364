/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Weighted statistics.  A weight says how many intervals a row stands for (a frequency weight): every figure is the one
 * that would come out if a row of weight k were k equal rows.
 *
 *   quantile p   the smallest value v such that the rows with values <= v weigh at least p·W (inverted ECDF, type 1)
 *   mean         Σ w·x / W
 *   variance     Σ w·(x - mean)² / W: the divisor is W, not W - 1, so that Var(L) = Σ Cov(X_i, L) holds exactly
 */
#ifndef WHYLATE_ANALYSIS_STATS_H
#define WHYLATE_ANALYSIS_STATS_H

#include "analysis/results.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows by ascending value, with what quantiles need. */
struct stats_order {
	const uint64_t *values;
	const double *weights;
	uint32_t *rows;
	size_t cnt;
	double total_weight;
};

static inline bool bitmap_test(const uint64_t *bitmap, size_t row)
{
	return bitmap[row / 64] >> (row % 64) & 1;
}

static inline void bitmap_set(uint64_t *bitmap, size_t row)
{
	bitmap[row / 64] |= 1ULL << (row % 64);
}

static inline size_t bitmap_words(size_t row_cnt)
{
	return (row_cnt + 63) / 64;
}

/* 0, -ENOMEM, or -E2BIG beyond 2^32 - 1 rows.  `values` and `weights` are borrowed. */
int stats_order__init(struct stats_order *order, const uint64_t *values, const double *weights, size_t cnt);
void stats_order__free(struct stats_order *order);

/*
 * Quantile p over the rows whose bits are clear in both bitmaps (either may be NULL); kept_weight is the weight of
 * those rows.  NAN without any.  O(rows above the quantile).
 */
double stats_quantile(const struct stats_order *order, double p, const uint64_t *skip, const uint64_t *skip_too,
		      double kept_weight);

/* Count, mean, variance, quantiles; all NAN but the count without rows. */
void stats_summarize(struct latency_summary *summary, const struct stats_order *order);

/* The p99 of each type and its count and mean: lines[type_cnt], types[row] below type_cnt.  0 or -ENOMEM. */
int stats_by_type(struct type_line *lines, const uint32_t *types, size_t type_cnt, const struct stats_order *order);

#endif
