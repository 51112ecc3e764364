/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A weighted quantile of rows and its replicates under the block bootstrap (shares.h), at a cost that does not grow
 * with replicates × rows.  A replicate's quantile lies near the quantile: within the margin, the weight above each of
 * SNAPSHOTS_MAX values is kept by block, and a replicate is a binary search over the sums of those, each block as often
 * as it was drawn.  Values between two snapshots are interpolated.  A margin that too many replicates leave is widened.
 */
#ifndef WHYLATE_ANALYSIS_TAIL_SAMPLE_H
#define WHYLATE_ANALYSIS_TAIL_SAMPLE_H

#include "analysis/bootstrap.h"
#include "analysis/sort.h"
#include "analysis/stats.h"

/* What all samples of the same rows share: read-only once it is made. */
struct tail_blocks {
	struct bootstrap_blocks blocks;
	const double *weights;
	uint16_t *of_row;
	double *weight; /* of each block */
	double *draws;  /* [replicate][block]: how often */
	uint32_t replicate_cnt;
};

/* 0 or -ENOMEM.  rows->weights is borrowed. */
int tail_blocks__init(struct tail_blocks *blocks, const struct share_rows *rows, uint32_t replicate_cnt, uint64_t seed);
void tail_blocks__free(struct tail_blocks *blocks);

/* The rows of a sample. */
struct tail_set {
	/* Rows by descending key that weigh at least `weight` together, or all: their number, -errno. */
	long (*top)(void *ctx, double weight, const struct sort_pair **rows);
	void *ctx;
	const double *block_weight; /* of its rows, by block */
	double total_weight;
	double p;
	double margin; /* to begin with, as a share of total_weight: tail_blocks__margin() */
};

/* One per thread. */
struct tail_scratch {
	double *above; /* [snapshot][block] */
	double *value;
	uint32_t *row_cnt; /* since the snapshot before */
};

int tail_scratch__init(struct tail_scratch *scratch, const struct tail_blocks *blocks); /* 0 or -ENOMEM */
void tail_scratch__free(struct tail_scratch *scratch);

/* The quantile into *estimate, NAN without rows, its replicates into values[replicate_cnt]: 0 or -errno. */
int tail_sample(double *estimate, double *values, const struct tail_set *set, const struct tail_blocks *blocks,
		struct tail_scratch *scratch);

/* How far off chance is with the weight of the rows with value >= late_ns, as a share of all; and their blocks. */
struct tail_error {
	double share;    /* of the rows, by weight */
	double standard; /* its standard error */
	size_t block_cnt;
	size_t row_cnt;
};

struct tail_error tail_blocks__error(const struct tail_blocks *blocks, const struct share_rows *rows);
/* Wide enough for nearly all replicates of a quantile near that share. */
double tail_error__margin(const struct tail_error *error, size_t row_cnt);

#endif
