// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments.h"

#include "analysis/bootstrap.h"
#include "analysis/compare_sample.h"
#include "analysis/segments_read.h"
#include "base/idmap.h"
#include "base/loghist.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLICATES 100
#define BLOCKS_MIN 4

double segment_quantile(const double *weights, uint32_t class_cnt, uint32_t first_class, double p)
{
	double total = 0, below = 0, wanted;

	for (uint32_t c = 0; c < class_cnt; c++)
		total += weights[c];
	wanted = p * total;
	for (uint32_t c = 0; c < class_cnt; c++) {
		uint32_t number = first_class + c;
		double lo, hi;

		if (!(weights[c] > 0))
			continue;
		below += weights[c];
		if (below < wanted * (1 - 1e-9))
			continue;
		lo = (double)loghist_floor(number);
		hi = number + 1 < LOGHIST_CLASS_CNT ? (double)loghist_floor(number + 1) - 1 : lo;
		return hi - (hi - lo) * (below - wanted) / weights[c];
	}
	return NAN;
}

/* All blocks of a segment, each so many times, in dense classes. */
static double merged_quantile(const struct segment *segment, const uint32_t *times, double p, double *scratch)
{
	uint32_t first = LOGHIST_CLASS_CNT, end = 0;

	for (int b = 0; b < SEGMENT_BLOCKS; b++) {
		const struct segment_sketch *sketch = &segment->blocks[b];

		if (!sketch->cnt || !times[b])
			continue;
		first = sketch->first < first ? sketch->first : first;
		end = sketch->first + sketch->cnt > end ? sketch->first + sketch->cnt : end;
	}
	if (first >= end)
		return NAN;
	memset(scratch, 0, (end - first) * sizeof(*scratch));
	for (int b = 0; b < SEGMENT_BLOCKS; b++)
		for (uint32_t c = 0; times[b] && c < segment->blocks[b].cnt; c++)
			scratch[segment->blocks[b].first + c - first] += times[b] * segment->blocks[b].weights[c];
	return segment_quantile(scratch, end - first, first, p);
}

static double resampled_error(const struct segment *segment, size_t number, double tail, size_t block_cnt,
			      double *scratch)
{
	uint32_t full[SEGMENT_BLOCKS] = {0}, drawn[SEGMENT_BLOCKS], times[SEGMENT_BLOCKS];
	double sum = 0, squares = 0;
	size_t cnt = 0;

	for (uint32_t b = 0; b < SEGMENT_BLOCKS; b++)
		if (segment->blocks[b].cnt)
			full[cnt++] = b;
	for (uint32_t r = 0; r < REPLICATES; r++) {
		double value;

		memset(times, 0, sizeof(times));
		bootstrap_draw(drawn, block_cnt, number + 1, r);
		for (size_t b = 0; b < block_cnt; b++)
			times[full[b]] = drawn[b];
		value = log(merged_quantile(segment, times, tail, scratch));
		sum += value;
		squares += value * value;
	}
	squares = squares / REPLICATES - pow(sum / REPLICATES, 2);
	return sqrt(fmax(squares, 0) * (double)block_cnt / ((double)block_cnt - 1));
}

ORDER(by_ns, struct segment_culprit, BY(b->ns, a->ns), BY(a->category, b->category), BY(a->what, b->what));

static void finish_segment(struct segment *segment, size_t number, double tail, double *scratch)
{
	const uint32_t once[SEGMENT_BLOCKS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	size_t block_cnt = 0;
	double half;

	segment->tail_ci = (struct ci){NAN, NAN};
	segment->is_empty = !(segment->count > 0);
	for (int b = 0; b < SEGMENT_BLOCKS; b++)
		block_cnt += segment->blocks[b].cnt > 0;
	segment->mean_ns = segment->is_empty ? NAN : segment->sum_ns / segment->count;
	segment->p50_ns = merged_quantile(segment, once, 0.5, scratch);
	segment->tail_ns = merged_quantile(segment, once, tail, scratch);
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		segment->category_ns[c] =
			segment->category_count > 0 ? segment->category_ns[c] / segment->category_count : NAN;
	for (size_t c = 0; c < segment->culprits.cnt; c++)
		segment->culprits.items[c].ns /= segment->category_count;
	if (segment->culprits.cnt)
		qsort(segment->culprits.items, segment->culprits.cnt, sizeof(*segment->culprits.items), by_ns);
	if (block_cnt < BLOCKS_MIN || !(segment->tail_ns > 0))
		return;
	half = compare_student(block_cnt - 1) * resampled_error(segment, number, tail, block_cnt, scratch);
	/* The sketch's own error is within the interval. */
	segment->tail_ci = (struct ci){segment->tail_ns * exp(-half) * (1 - 1.0 / 32),
				       segment->tail_ns * exp(half) * (1 + 1.0 / 32)};
}

double segment_culprit_ns(const struct segment *segment, enum wl_category category, uint32_t what)
{
	for (size_t c = 0; c < segment->culprits.cnt; c++)
		if (segment->culprits.items[c].what == what && segment->culprits.items[c].category == category)
			return segment->culprits.items[c].ns;
	return 0;
}

/* --- which ones ----------------------------------------------------------------------------------------------------
 */

struct by_tail {
	double ns;
	size_t number;
};

ORDER(compare_tails, struct by_tail, BY(a->ns, b->ns), BY(a->number, b->number));

static int choose(struct segments *segments, struct by_tail *order)
{
	size_t cnt = 0;

	segments->median = segments->worst = SEGMENT_NONE;
	for (size_t s = 0; s < segments->cnt; s++)
		if (!segments->items[s].is_empty)
			order[cnt++] = (struct by_tail){segments->items[s].tail_ns, s};
	if (!cnt)
		return -ENOENT;
	qsort(order, cnt, sizeof(*order), compare_tails);
	segments->median = order[(cnt - 1) / 2].number;
	segments->worst = order[cnt - 1].number;
	return 0;
}

/* --- drift ---------------------------------------------------------------------------------------------------------
 */

/* A value of each segment, and its weight within its day. */
struct series {
	uint64_t *wall_ns;
	double *values, *weights;
};

/* One figure of all segments: a category's time per request, or (-1) the mean latency, (-2) the tail. */
static int find_drift(struct drift *drift, const struct segments *segments, int figure, const struct series *series)
{
	for (size_t s = 0; s < segments->cnt; s++) {
		const struct segment *segment = &segments->items[s];

		series->values[s] = figure == -2   ? segment->tail_ns
				    : figure == -1 ? segment->mean_ns
						   : segment->category_ns[figure];
		/* A tail is that of a time, not of so many requests. */
		series->weights[s] = figure == -2 ? 1 : figure == -1 ? segment->count : segment->category_count;
	}
	return drift_find(drift, series->wall_ns, series->values, series->weights, segments->cnt);
}

struct waited {
	double ns;
	enum wl_category category;
	uint32_t what;
};

ORDER(by_most, struct waited, BY(b->ns, a->ns), BY(a->category, b->category), BY(a->what, b->what));

/* Each culprit's time in all segments; the most time first. */
static int sum_culprits(const struct segments *segments, struct waited **sums, size_t *cnt)
{
	struct idmap ids = {0};
	VEC(struct waited) found = {0};
	int err = 0;

	for (size_t s = 0; s < segments->cnt && !err; s++)
		for (size_t c = 0; c < segments->items[s].culprits.cnt && !err; c++) {
			const struct segment_culprit *culprit = &segments->items[s].culprits.items[c];
			struct waited added = {.category = culprit->category, .what = culprit->what};
			uint32_t id;

			err = idmap__id(&ids, culprit->category, culprit->what, &id);
			if (!err && id == found.cnt)
				err = vec_push(&found, added);
			if (!err)
				found.items[id].ns += culprit->ns * segments->items[s].category_count;
		}
	idmap__free(&ids);
	if (found.cnt)
		qsort(found.items, found.cnt, sizeof(*found.items), by_most);
	*sums = found.items;
	*cnt = found.cnt;
	return err;
}

static int find_culprit_drift(struct segment_drift *drift, const struct segments *segments, const struct series *series)
{
	for (size_t s = 0; s < segments->cnt; s++) {
		const struct segment *segment = &segments->items[s];

		series->values[s] = segment_culprit_ns(segment, drift->category, drift->what);
		series->weights[s] = segment->category_count;
	}
	return drift_find(&drift->drift, series->wall_ns, series->values, series->weights, segments->cnt);
}

static int find_culprit_drifts(struct segments *segments, const struct series *series)
{
	struct waited *sums = NULL;
	size_t cnt = 0;
	int err = 0;

	if (segments->mean_drift.days >= DRIFT_DAYS_MIN)
		err = sum_culprits(segments, &sums, &cnt);
	for (size_t i = 0; i < cnt && i < SEGMENT_DRIFTS_MAX && !err; i++) {
		struct segment_drift *drift = &segments->culprit_drifts[segments->culprit_drift_cnt++];

		drift->category = sums[i].category;
		drift->what = sums[i].what;
		err = find_culprit_drift(drift, segments, series);
	}
	free(sums);
	return err;
}

static int find_drifts(struct segments *segments)
{
	struct series series = {.wall_ns = calloc(segments->cnt + 1, sizeof(*series.wall_ns)),
				.values = calloc(segments->cnt + 1, 2 * sizeof(*series.values))};
	int err = series.wall_ns && series.values ? 0 : -ENOMEM;

	if (!err)
		series.weights = series.values + segments->cnt + 1;
	for (size_t s = 0; s < segments->cnt && !err; s++)
		series.wall_ns[s] = segments->items[s].begin_wall_ns;
	if (!err)
		err = find_drift(&segments->tail_drift, segments, -2, &series);
	if (!err)
		err = find_drift(&segments->mean_drift, segments, -1, &series);
	for (int c = 0; c < WL_CATEGORY_CNT && !err; c++)
		err = find_drift(&segments->drifts[c], segments, c, &series);
	if (!err)
		err = find_culprit_drifts(segments, &series);
	free(series.wall_ns);
	free(series.values);
	return err;
}

int segments_make(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter,
		  uint64_t length_ns, double tail)
{
	double *scratch = calloc(LOGHIST_CLASS_CNT, sizeof(*scratch));
	struct by_tail *order = NULL;
	int err;

	*segments = (struct segments){.length_ns = length_ns, .tail = tail};
	err = scratch ? segments_read(segments, reader, filter) : -ENOMEM;
	for (size_t s = 0; s < segments->cnt && !err; s++)
		finish_segment(&segments->items[s], s, tail, scratch);
	if (!err)
		order = calloc(segments->cnt + 1, sizeof(*order));
	if (!err)
		err = order ? choose(segments, order) : -ENOMEM;
	if (!err)
		err = segments_find_changes(segments);
	if (!err)
		err = find_drifts(segments);
	free(order);
	free(scratch);
	if (err)
		segments_free(segments);
	return err;
}

void segments_free(struct segments *segments)
{
	for (size_t s = 0; s < segments->cnt; s++) {
		for (int b = 0; b < SEGMENT_BLOCKS; b++)
			free(segments->items[s].blocks[b].weights);
		vec_free(&segments->items[s].culprits);
	}
	free(segments->items);
	free(segments->culprits);
	arena__free(segments->arena);
	vec_free(&segments->changes);
	*segments = (struct segments){0};
}
