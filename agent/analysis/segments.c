// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments.h"

#include "analysis/bootstrap.h"
#include "analysis/compare_sample.h"
#include "analysis/segments_read.h"
#include "analysis/sort.h"
#include "base/loghist.h"
#include "base/order.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLICATES  100
#define BLOCKS_MIN  4
#define SHUFFLES    500
#define CHANGE_P    0.01
#define CHANGE_SIDE 3 /* segments on either side of a change, at least */
#define CHANGES_MAX 64

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
	if (block_cnt < BLOCKS_MIN || !(segment->tail_ns > 0))
		return;
	half = compare_student(block_cnt - 1) * resampled_error(segment, number, tail, block_cnt, scratch);
	/* The sketch's own error is within the interval. */
	segment->tail_ci = (struct ci){segment->tail_ns * exp(-half) * (1 - 1.0 / 64),
				       segment->tail_ns * exp(half) * (1 + 1.0 / 64)};
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

/* --- changes -------------------------------------------------------------------------------------------------------
 */

/* The largest |CUSUM|, scaled for its place, and where it is: values[at] is the first one of the other level. */
static double largest_cusum(const double *values, size_t cnt, size_t *at)
{
	double mean = 0, sum = 0, largest = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i] / (double)cnt;
	*at = 0;
	for (size_t i = 0; i + 1 < cnt; i++) {
		double before = (double)(i + 1), after = (double)(cnt - i - 1), scaled;

		sum += values[i] - mean;
		scaled = fabs(sum) / sqrt(before * after / (double)cnt);
		if (i + 1 < CHANGE_SIDE || cnt - i - 1 < CHANGE_SIDE || scaled <= largest)
			continue;
		largest = scaled;
		*at = i + 1;
	}
	return largest;
}

static double change_p(double *values, size_t cnt, double found)
{
	uint64_t state = cnt;
	size_t as_large = 0, at;

	for (int s = 0; s < SHUFFLES; s++) {
		for (size_t i = cnt - 1; i > 0; i--) {
			size_t j = (size_t)((random_next(&state) >> 32) * (i + 1) >> 32);
			double kept = values[i];

			values[i] = values[j];
			values[j] = kept;
		}
		as_large += largest_cusum(values, cnt, &at) >= found;
		/* It will not become a change any more. */
		if (as_large > SHUFFLES * CHANGE_P)
			return 1;
	}
	return (double)(as_large + 1) / (SHUFFLES + 1);
}

/* The values of the full segments from `first` on, whose numbers are in `order`. */
static int find_changes(struct segments *segments, const double *values, const struct by_tail *order, size_t first,
			size_t cnt, double *scratch)
{
	struct segment_change change;
	size_t at;
	double found;
	int err;

	if (cnt < 2 * CHANGE_SIDE || segments->changes.cnt >= CHANGES_MAX)
		return 0;
	found = largest_cusum(values + first, cnt, &at);
	if (!at)
		return 0;
	memcpy(scratch, values + first, cnt * sizeof(*scratch));
	change = (struct segment_change){.at = order[first + at].number, .p = change_p(scratch, cnt, found)};
	if (change.p > CHANGE_P)
		return 0;
	err = find_changes(segments, values, order, first, at, scratch);
	if (!err && vec_push(&segments->changes, change))
		err = -ENOMEM;
	return err ? err : find_changes(segments, values, order, first + at, cnt - at, scratch);
}

/* The median of the full segments from `from` to before `to`. */
static double level(const struct segments *segments, size_t from, size_t to, double *scratch)
{
	size_t cnt = 0;

	for (size_t s = from; s < to; s++)
		if (!segments->items[s].is_empty)
			scratch[cnt++] = segments->items[s].tail_ns;
	qsort(scratch, cnt, sizeof(*scratch), compare_doubles);
	return cnt ? scratch[(cnt - 1) / 2] : NAN;
}

static int make_changes(struct segments *segments, struct by_tail *order)
{
	double *values = calloc(segments->cnt + 1, 2 * sizeof(*values)), *scratch;
	size_t cnt = 0;
	int err;

	if (!values)
		return -ENOMEM;
	scratch = values + segments->cnt + 1;
	for (size_t s = 0; s < segments->cnt; s++) {
		if (segments->items[s].is_empty)
			continue;
		order[cnt].number = s;
		values[cnt++] = log(fmax(segments->items[s].tail_ns, 1));
	}
	err = find_changes(segments, values, order, 0, cnt, scratch);
	for (size_t c = 0; c < segments->changes.cnt; c++) {
		struct segment_change *change = &segments->changes.items[c];
		size_t from = c ? segments->changes.items[c - 1].at : 0;
		size_t to = c + 1 < segments->changes.cnt ? segments->changes.items[c + 1].at : segments->cnt;

		change->before_ns = level(segments, from, change->at, scratch);
		change->after_ns = level(segments, change->at, to, scratch);
	}
	free(values);
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
		err = make_changes(segments, order);
	free(order);
	free(scratch);
	if (err)
		segments_free(segments);
	return err;
}

void segments_free(struct segments *segments)
{
	for (size_t s = 0; s < segments->cnt; s++)
		for (int b = 0; b < SEGMENT_BLOCKS; b++)
			free(segments->items[s].blocks[b].weights);
	free(segments->items);
	vec_free(&segments->changes);
	*segments = (struct segments){0};
}
