/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The block bootstrap that shares.h speaks of, for whoever has sums per block of rows. */
#ifndef WHYLATE_ANALYSIS_BOOTSTRAP_H
#define WHYLATE_ANALYSIS_BOOTSTRAP_H

#include "analysis/results.h"

#define BOOTSTRAP_REPLICATES 1000 /* where nobody says otherwise */

/* With late rows in fewer blocks than this, replicates differ too little to say anything of the tail. */
#define BOOTSTRAP_LATE_BLOCKS_MIN 5

#define SHARES_BLOCKS_MAX 1000

struct share_rows {
	size_t row_cnt;
	const uint64_t *latency_ns;
	const double *weights;
	const uint32_t
		*windows; /* per row, equal for neighbours of one window; NULL: no windows, as for a row with 0 */
	double median_ns, late_ns; /* a row is typical with latency <= median_ns, late with latency >= late_ns */
};

struct bootstrap_blocks {
	size_t cnt;
	size_t *first; /* of each block its first row; cnt + 1 of them */
};

/* Cuts the rows into blocks, of windows where there are any: 0 or -ENOMEM. */
int bootstrap_blocks__init(struct bootstrap_blocks *blocks, const struct share_rows *rows);
void bootstrap_blocks__free(struct bootstrap_blocks *blocks);

/* How often each block is in a replicate; it depends on nothing but the seed and the number of the replicate. */
void bootstrap_draw(uint32_t *multiplicity, size_t block_cnt, uint64_t seed, uint32_t replicate);

/* The sums of each block, to be resampled. */
struct bootstrap_sums {
	struct bootstrap_blocks blocks;
	size_t stride; /* sums per block */
	double *sums;  /* [block][stride] */
	uint32_t replicate_cnt;
	uint64_t seed;
};

/* Takes the sums of one replicate; several threads call it at once. */
typedef void (*bootstrap_take)(void *ctx, uint32_t replicate, const double *sums);
/* 0 or -ENOMEM.  The caller owns blocks and sums. */
int bootstrap_run(const struct bootstrap_sums *of, bootstrap_take take, void *ctx);

/*
 * The 95 % interval from the replicates' values, which are sorted on the way; replicates that are NAN say nothing and
 * are left out.  NAN where the estimate is, or with too few blocks or replicates.
 */
struct ci bootstrap_interval(double *values, uint32_t cnt, double estimate, size_t block_cnt);

#endif
