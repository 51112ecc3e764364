/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A long recording, or a store, in segments of equal time (VarMRI §6): the p99 of each, which ones stand out, when it
 * changed.  Segments of a minute or more are made of the table `summary` alone, where the recording has it, and so need
 * not read a single request; shorter ones, and older recordings, of the requests that were kept.
 *
 * Each segment is cut into SEGMENT_BLOCKS blocks of equal time with a sketch of latencies each (summaries.h: a quantile
 * is off by 1/32 of itself at most).  Confidence of a segment's p99: bootstrap of those blocks, with Student's t.
 * Changes: the largest CUSUM of the logarithms of the p99, without their daily rhythm, which counts if no more than 1
 * in 100 random orders of the segments has as large a one; then on both sides of it, as far as there are changes
 * (binary segmentation).  A change of less than the sketch's error does not count.
 */
#ifndef WHYLATE_ANALYSIS_SEGMENTS_H
#define WHYLATE_ANALYSIS_SEGMENTS_H

#include "analysis/drift.h"
#include "analysis/results.h"
#include "base/arena.h"
#include "base/vec.h"

#include <whylate/record.h>

#define SEGMENT_BLOCKS 10
#define SEGMENTS_MAX   50000 /* a month of minutes, 44,640, and more */
#define SEGMENT_NONE   SIZE_MAX

/* Weights of a range of loghist classes. */
struct segment_sketch {
	uint32_t first, cnt;
	double *weights;
};

/* What requests waited for, by their longest waits (summaries.h). */
struct segment_culprit {
	enum wl_category category;
	uint32_t what; /* index into segments->culprits */
	double ns;     /* per request, once it is made */
};

struct segment {
	uint64_t begin_wall_ns;
	double count, mean_ns, p50_ns, tail_ns;
	uint64_t max_ns;
	struct ci tail_ci;
	double category_ns[WL_CATEGORY_CNT], category_count; /* per request, once it is made; of how many */
	VEC(struct segment_culprit) culprits;                /* the most time first; empty: not known */
	bool is_empty;
	struct segment_sketch blocks[SEGMENT_BLOCKS];
	double block_count[SEGMENT_BLOCKS], sum_ns;
};

/* The tail has another level from segment `at` on. */
struct segment_change {
	size_t at;
	double before_ns, after_ns; /* medians of the segments' tails, up to the neighbouring changes */
	double p;                   /* of random orders with as large a difference */
};

/* What the time of day does to the tail, as times the day's median. */
struct segment_rhythm {
	bool is_known;              /* three days and more, segments that divide the day */
	uint32_t high_min, low_min; /* minutes of the day, UTC */
	double high, low;
};

/* What most was waited for, over all segments: its time per request, 0 where a segment has none of it. */
struct segment_drift {
	enum wl_category category;
	uint32_t what; /* index into segments->culprits */
	struct drift drift;
};

#define SEGMENT_DRIFTS_MAX 16

struct segments {
	uint64_t length_ns, begin_wall_ns;
	double tail;
	struct segment *items;
	size_t cnt;
	bool from_summaries;
	size_t rows;                            /* of summaries, or requests, that they rest on */
	uint64_t records_emitted, records_lost; /* of intervals, in all of the recordings that were read */
	size_t bad_rows;                        /* impossible ones */
	struct arena *arena;
	const char **culprits; /* their texts, the arena's */
	uint32_t culprit_cnt;
	size_t median, worst; /* by tail; SEGMENT_NONE: no segment */
	struct segment_rhythm rhythm;
	VEC(struct segment_change) changes; /* of the tails without their daily rhythm */
	struct drift tail_drift, mean_drift;
	struct drift drifts[WL_CATEGORY_CNT]; /* of a category's time per request */
	struct segment_drift culprit_drifts[SEGMENT_DRIFTS_MAX];
	size_t culprit_drift_cnt;
};

/*
 * filter: type, host, times.  0; -ENOENT: there is no such request; -E2BIG: there would be more than SEGMENTS_MAX
 * segments; -ENODATA: the recordings do not tell their time of day; -ENOMEM, -EIO.
 */
int segments_make(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter,
		  uint64_t length_ns, double tail);
void segments_free(struct segments *segments);

/* What a request of the segment waited for it, on average: 0 if it is none of the segment's. */
double segment_culprit_ns(const struct segment *segment, enum wl_category category, uint32_t what);
/* The quantile of a sketch's weights: within a class by interpolation.  NAN without any. */
double segment_quantile(const double *weights, uint32_t class_cnt, uint32_t first_class, double p);

#endif
