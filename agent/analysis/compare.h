/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two recordings, or parts of recordings, side by side: is B worse than A, by how much, and by what?
 *
 * Latency figures are compared as ratios, times and counts per request as differences.  All of them are like for like
 * (compare_sample.h) but those named `all`.  The differences of the categories, of the roots, and of the functions sum
 * to that of the means; those of late requests (beyond each side's own threshold) to that of the means of the late
 * ones.
 */
#ifndef WHYLATE_ANALYSIS_COMPARE_H
#define WHYLATE_ANALYSIS_COMPARE_H

#include "analysis/compare_sample.h"
#include "analysis/paths.h"
#include "analysis/roots.h"
#include "base/arena.h"

#define COMPARE_METRIC_CNT (1 + COMPARE_QUANTILE_CNT) /* the mean first */
#define COMPARE_POWER      0.8

/* B against A.  NAN where it cannot be told. */
struct compare_difference {
	double value;      /* B − A, or B / A − 1 */
	struct ci ci;      /* 95 %, for all lines of the list together */
	double detectable; /* a difference of this size is found in 80 % of such comparisons */
	bool differs;      /* the interval is clear of 0 */
};

struct compare_metric {
	const char *name; /* "mean", "p50", … */
	double ns[COMPARE_SIDE_CNT], like_ns[COMPARE_SIDE_CNT];
	struct compare_difference like, all;
	double limit; /* by how much B may be longer; NAN: any difference is told, none exceeds */
	bool exceeds; /* like.ci is beyond it */
};

struct compare_type {
	const char *type;
	double share[COMPARE_SIDE_CNT];
	bool in_both; /* the rest is known only if it is */
	double mean_ns[COMPARE_SIDE_CNT], tail_ns[COMPARE_SIDE_CNT];
	struct compare_difference mean, tail;
};

/* A category, a root, a function or an event. */
struct compare_line {
	const char *name;         /* of a category, function or event; of a root its one line for a person */
	const struct cause *root; /* NULL: it is none */
	bool known;               /* a root that the recordings tell */
	/* Of a root: the latency of each side without it.  p99_ns NAN: not known. */
	struct cause_gain gain[COMPARE_SIDE_CNT];
	double mean[COMPARE_SIDE_CNT], late[COMPARE_SIDE_CNT]; /* per request, per late request */
	struct compare_difference mean_diff, late_diff;
};

static inline bool compare_line_differs(const struct compare_line *line)
{
	return line->mean_diff.differs || line->late_diff.differs;
}

/* What a side is of, and what was lost of it. */
struct compare_facts {
	const char *label;                /* as the user named it */
	const char *host, *kernel, *comm; /* NULL: not known */
	int64_t pid;                      /* -1: not known */
	size_t host_cnt, session_cnt;
	double duration_s;
	uint64_t begin_wall_ns, end_wall_ns; /* 0: not known */
	uint64_t intervals_seen, intervals_flagged, records_lost;
	size_t intervals_kept;
	bool windowed; /* intervals_seen is an estimate */
	double lost_share;
	struct dataset_loss loss[WL_LOSS_CNT];
};

struct compare_list {
	struct compare_line *lines; /* by the larger of both differences, the largest first */
	size_t cnt;
};

enum compare_verdict { COMPARE_SAME, COMPARE_WORSE, COMPARE_BETTER, COMPARE_MIXED, COMPARE_UNKNOWN };

struct comparison {
	struct arena *arena;
	const struct dataset *dataset;
	double tail;
	size_t row_cnt[COMPARE_SIDE_CNT], both_cnt; /* rows; rows of both sides */
	double weight[COMPARE_SIDE_CNT];
	size_t block_cnt[COMPARE_SIDE_CNT];
	double like_share[COMPARE_SIDE_CNT]; /* of the requests that are of a type that both sides have */
	bool mixed;                          /* the mixes of types differ: like for like is not all */
	double late_ns[COMPARE_SIDE_CNT];    /* the thresholds of late requests */
	struct compare_metric metrics[COMPARE_METRIC_CNT];
	struct compare_type *types; /* the most frequent first */
	size_t type_cnt;
	struct compare_list categories, roots, functions, events;
	size_t ranked_cnt[COMPARE_SIDE_CNT];       /* rows that categories and roots rest on */
	struct cause_gain whole[COMPARE_SIDE_CNT]; /* the latency that the roots' gains are of: with all roots */
	enum compare_verdict verdict;              /* of all metrics */
	bool exceeds;                              /* one of them is beyond its limit */
	struct value_report *values;               /* of two recordings with values; NULL: none */
};

struct compare_opts {
	double tail;
	uint32_t bootstrap_cnt; /* 0: 400 */
	uint64_t seed;
	double limits[COMPARE_METRIC_CNT]; /* NAN: none */
	const struct paths *paths;         /* NULL: no detail was recorded */
	const struct roots *roots;         /* likewise */
};

/* sides as in compare_sample__make().  0, -ENODATA: a side has no row; -ENOMEM. */
int comparison_make(struct comparison *comparison, const struct dataset *dataset, const uint8_t *sides,
		    const struct compare_opts *opts);
void comparison_free(struct comparison *comparison);

#endif
