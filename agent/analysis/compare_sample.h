/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two sets of rows, A and B, and how sure their differences are; for compare.c.
 *
 * Strata.  A stratum is a type that both sides have (at least COMPARE_TYPE_ROWS_MIN rows each).  "Like for like"
 * figures are those of the strata, B's rows weighted so that its mix of types is A's (post-stratification; DiNardo,
 * Fortin and Lemieux, Econometrica 1996): Simpson's paradox cannot act on them.  Rows of other types enter the other
 * figures only.
 *
 * Blocks.  Both sides are cut into segments of equal time (whole observation windows, and never across recordings;
 * where a side has COMPARE_SESSIONS_MIN recordings or more, these are its blocks).  By time, not by rows: retention
 * keeps nearly all rows of a slow episode and few of the others, so blocks of equal row counts would cut one episode
 * into many.  Few long blocks and Student's t hold under autocorrelation up to the length of a block (batch means),
 * where many short ones would not.
 *
 * Confidence.  The intervals of a list hold together: a difference is studentised, and the critical value is the 95 %
 * quantile of the largest |t| of the list over the replicates (Romano and Wolf, JASA 2005).  Replicates are made in two
 * ways, and the wider interval counts.  Bootstrap: each side's blocks are drawn with replacement, which is right for
 * sides that differ; but a side that met few slow episodes by chance looks surer than it is.  Permutation: the blocks
 * of both sides are dealt anew to the sides, which is exact where both are of one population.  So at most one list in
 * twenty shows a difference where there is none, however rare and clustered late requests are.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_SAMPLE_H
#define WHYLATE_ANALYSIS_COMPARE_SAMPLE_H

#include "analysis/dataset.h"
#include "analysis/results.h"

#define COMPARE_BLOCKS        40  /* of each side, if both are equally long */
#define COMPARE_BLOCKS_LEAST  12  /* of the shorter one, as long as … */
#define COMPARE_BLOCKS_MAX    400 /* … both together have no more than these */
#define COMPARE_SESSIONS_MIN  8
#define COMPARE_TYPE_ROWS_MIN 20
#define COMPARE_STRATA_MAX    64
#define COMPARE_QUANTILE_CNT  4
#define COMPARE_NO_STRATUM    UINT32_MAX

enum compare_side { COMPARE_A, COMPARE_B, COMPARE_SIDE_CNT };

#define COMPARE_IN_A 1
#define COMPARE_IN_B 2

/* The p50, p90, p99 and p99.9 of compare_figures.quantile_ns. */
extern const double compare_quantiles[COMPARE_QUANTILE_CNT];

/* A time or count of each row, whose means are compared. */
struct compare_column {
	const uint64_t *values;  /* by row of the dataset; NULL: all 0, or … */
	const double *estimates; /* … these, which may be below 0 in single rows; NULL: none */
	const uint64_t *missing; /* bitmap over them, or NULL: none is missing */
	const double *factor;    /* how many rows one that is not missing stands for, or NULL: 1 */
};

/* What one side's rows, each block as often as a replicate says, come to. */
struct compare_figures {
	double mean_ns, quantile_ns[COMPARE_QUANTILE_CNT];
	double like_mean_ns, like_quantile_ns[COMPARE_QUANTILE_CNT];
	double type_mean_ns[COMPARE_STRATA_MAX], type_tail_ns[COMPARE_STRATA_MAX];
	double *column_mean,
		*column_late; /* of each column, like for like; late: of rows beyond the tail's threshold */
};

/* Of one row, or of several in the same bin of latencies (0.1 % wide) and cell. */
struct compare_entry {
	double ns, weight;
	uint32_t cell;
	bool ends_bin;
};

/* Late rows: beyond their own side's threshold, or beyond that of both sides together. */
enum compare_threshold { COMPARE_OWN, COMPARE_POOLED, COMPARE_THRESHOLD_CNT };
/* How a replicate was made. */
enum compare_draw { COMPARE_BOOTSTRAP, COMPARE_PERMUTATION, COMPARE_DRAW_CNT };

struct compare_sample {
	const struct dataset *dataset;
	double tail;
	uint32_t replicate_cnt; /* of each way */
	uint64_t seed;
	uint32_t stratum_cnt;
	uint32_t stratum_types[COMPARE_STRATA_MAX]; /* strings of the dataset */
	uint32_t *stratum_of;                       /* by string */
	bool mixed;                                 /* like for like differs from all */
	const struct compare_column *columns;
	size_t column_cnt;

	/* Rows of A, then those of B; one of both is there twice.  Cell = block × (stratum_cnt + 1) + stratum, the last
	 * stratum being that of other types.  A's blocks come first. */
	uint32_t *rows, *cells;
	size_t first_row[COMPARE_SIDE_CNT], row_cnt[COMPARE_SIDE_CNT];
	size_t first_block[COMPARE_SIDE_CNT], block_cnt[COMPARE_SIDE_CNT];
	size_t cell_cnt;
	double *weight, *weighted_ns, *late_weight[COMPARE_THRESHOLD_CNT];   /* by cell */
	double *column, *column_weight, *column_late[COMPARE_THRESHOLD_CNT]; /* [column][cell] */
	double *border; /* [side or, last, both][column]: its mean in rows about as long as the threshold */
	struct compare_entry *entries; /* by latency, the longest first */
	size_t entry_cnt;

	double like_factor[COMPARE_SIDE_CNT][COMPARE_STRATA_MAX + 1]; /* what weighs the side's own mix to A's */
	double late_ns[COMPARE_SIDE_CNT];                             /* the threshold: like for like, at `tail` */
	/* Blocks with rows, and rows, beyond each quantile and (the last one) beyond late_ns. */
	size_t late_block_cnt[COMPARE_SIDE_CNT][COMPARE_QUANTILE_CNT + 1];
	size_t late_row_cnt[COMPARE_SIDE_CNT][COMPARE_QUANTILE_CNT + 1];
	struct compare_figures figures[COMPARE_SIDE_CNT]; /* each block once */
	struct compare_figures *replicates[COMPARE_DRAW_CNT][COMPARE_SIDE_CNT];
	double *replicate_columns;
};

/*
 * sides: per row COMPARE_IN_A, COMPARE_IN_B, both or none.  The columns are borrowed.  0 or -ENOMEM;
 * compare_sample__free() in either case.
 */
int compare_sample__make(struct compare_sample *sample, const struct dataset *dataset, const uint8_t *sides,
			 const struct compare_column *columns, size_t column_cnt, double tail, uint32_t replicate_cnt,
			 uint64_t seed);
void compare_sample__free(struct compare_sample *sample);

/* Student's t, 97.5 %; the expansion of Fisher and Cornish. */
double compare_student(size_t freedom);

#endif
