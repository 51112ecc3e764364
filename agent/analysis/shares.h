/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of the variance and of the tail each part of the latency has (DESIGN §4), with confidence intervals.
 *
 *   variance share of X:  Cov(X, L) / Var(L)
 *   tail share of X:      E[X | L >= late] - E[X | L <= typical], over the sum of that over all parts
 *
 * Both are linear in X, so the shares of parts that sum to L sum to 1, and those of a part's slots (a part split by who
 * is to blame) sum to the part's.
 *
 * Intervals of confidence: non-overlapping block bootstrap (Carlstein 1986).  Late requests come in bursts (a cron job,
 * a garbage collection), so rows that end one after the other are not independent, and resampling single rows would
 * give intervals that are far too narrow; whole blocks of consecutive rows keep a burst together.  Block length grows
 * as n^(1/3), which is the optimal order for a variance, and there are at most SHARES_BLOCKS_MAX blocks.  Each block is
 * reduced to its sums first, so a replicate costs O(blocks), not O(rows).  The thresholds stay those of the full
 * sample.  The tail is a sample of the blocks that have late rows: it has no interval where those are fewer than five,
 * for then most replicates consist of the same few requests and agree on whatever they met.  Where rows come from
 * observation windows, the windows are the sample (one-stage cluster sampling), and blocks hold whole windows.
 */
#ifndef WHYLATE_ANALYSIS_SHARES_H
#define WHYLATE_ANALYSIS_SHARES_H

#include "analysis/bootstrap.h"

struct share_line {
	double mean_ns, typical_ns, late_ns;
	double variance_share, tail_share; /* NAN: all latencies are equal */
	struct ci variance_share_ci, tail_share_ci;
	double late_met; /* which share of the late intervals has any of it */
};

struct share_part {
	const uint64_t *values; /* per row; NULL: all 0; estimates may be negative, in two's complement */
	const uint8_t *slots;   /* per row, below slot_cnt; NULL: slot 0 */
	uint32_t slot_cnt;      /* at least 1 */
	struct share_line total;
	struct share_line *slot_lines; /* slot_cnt of them, the caller's; or NULL */
};

struct share_opts {
	uint32_t bootstrap_cnt; /* 0: 1000 */
	uint64_t seed;
	double lost; /* shares_lost_bound(); 0: nothing was lost */
};

/* Fills the lines of all parts.  0 or -ENOMEM.  Same input, same result, whatever the number of threads. */
int shares_compute(struct share_part *parts, size_t part_cnt, const struct share_rows *rows,
		   const struct share_opts *opts);

/* How much of the tail may have been lost at most when this share of all records was: see the comment in shares.c. */
double shares_lost_bound(double lost_share, double tail);
/* ci, widened for the case that so much of the tail is not in the data. */
struct ci shares_widen(struct ci ci, double lost);

#endif
