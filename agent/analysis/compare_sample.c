// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/compare_sample.h"

#include "analysis/bootstrap.h"
#include "analysis/compare_rows.h"
#include "analysis/parallel.h"
#include "analysis/stats.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BORDER_WIDTH 0.25 /* of the share of late rows: how far the rows at the border of the tail reach */
#define ROUNDING     1e-9 /* as in stats_quantile() */
#define BOTH         COMPARE_SIDE_CNT

const double compare_quantiles[COMPARE_QUANTILE_CNT] = {0.5, 0.9, 0.99, 0.999};

double compare_student(size_t freedom)
{
	const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
	double nu = (double)freedom;

	if (!freedom)
		return NAN;
	return z + (z3 + z) / (4 * nu) + (5 * z5 + 16 * z3 + 3 * z) / (96 * nu * nu) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * nu * nu * nu);
}

static size_t all_blocks(const struct compare_sample *sample)
{
	return sample->block_cnt[COMPARE_A] + sample->block_cnt[COMPARE_B];
}

/* --- one replicate -------------------------------------------------------------------------------------------------
 */

/* Where a quantile is, from the longest latency down; within a bin by interpolation. */
struct cursor {
	double limit, above, ns;
	bool done;
};

static void cursor__step(struct cursor *cursor, double weight, double hi_ns, double lo_ns)
{
	double before = cursor->above;

	if (cursor->done || !(weight > 0))
		return;
	cursor->above += weight;
	cursor->ns = lo_ns;
	if (!(cursor->above > cursor->limit))
		return;
	cursor->ns = hi_ns - (hi_ns - lo_ns) * fmax(cursor->limit - before, 0) / weight;
	cursor->done = true;
}

static double limit_of(double p, double weight)
{
	return (1 - p + ROUNDING) * weight;
}

/* What one side of a replicate weighs. */
struct side_weights {
	double all, like, by_stratum[COMPARE_STRATA_MAX + 1];
	double ns, like_ns, ns_by_stratum[COMPARE_STRATA_MAX + 1];
	double factor[COMPARE_STRATA_MAX + 1];
};

static void sum_weights(struct side_weights *weights, const struct compare_sample *sample, const uint32_t *times)
{
	uint32_t width = sample->stratum_cnt + 1;

	*weights = (struct side_weights){0};
	for (size_t b = 0; b < all_blocks(sample); b++)
		for (uint32_t s = 0; times[b] && s < width; s++) {
			weights->by_stratum[s] += times[b] * sample->weight[b * width + s];
			weights->ns_by_stratum[s] += times[b] * sample->weighted_ns[b * width + s];
		}
	for (uint32_t s = 0; s < width; s++) {
		weights->all += weights->by_stratum[s];
		weights->ns += weights->ns_by_stratum[s];
	}
}

/* What makes the mix of the strata that of `mix`: A's own factors are 1. */
static void sum_like(struct side_weights *weights, const struct compare_sample *sample, const struct side_weights *mix)
{
	double own = 0, other = 0;

	for (uint32_t s = 0; s < sample->stratum_cnt; s++) {
		own += weights->by_stratum[s];
		other += mix->by_stratum[s];
	}
	for (uint32_t s = 0; s < sample->stratum_cnt; s++) {
		if (weights->by_stratum[s] > 0 && other > 0)
			weights->factor[s] = mix->by_stratum[s] / other * (own / weights->by_stratum[s]);
		weights->like += weights->factor[s] * weights->by_stratum[s];
		weights->like_ns += weights->factor[s] * weights->ns_by_stratum[s];
	}
}

/* The quantiles of one side that are looked for. */
struct search {
	struct cursor all[COMPARE_QUANTILE_CNT], like[COMPARE_QUANTILE_CNT], types[COMPARE_STRATA_MAX];
	double weight, like_weight; /* of the bin */
};

static void search__begin(struct search *search, const struct compare_sample *sample,
			  const struct side_weights *weights)
{
	search->weight = search->like_weight = 0;
	for (int q = 0; q < COMPARE_QUANTILE_CNT; q++) {
		search->all[q] = (struct cursor){.limit = limit_of(compare_quantiles[q], weights->all), .ns = NAN};
		search->like[q] = (struct cursor){.limit = limit_of(compare_quantiles[q], weights->like), .ns = NAN};
	}
	for (uint32_t s = 0; s < sample->stratum_cnt; s++)
		search->types[s] = (struct cursor){.limit = limit_of(sample->tail, weights->by_stratum[s]), .ns = NAN};
}

static void search__end_bin(struct search *search, double hi_ns, double lo_ns)
{
	for (int q = 0; q < COMPARE_QUANTILE_CNT; q++) {
		cursor__step(&search->all[q], search->weight, hi_ns, lo_ns);
		cursor__step(&search->like[q], search->like_weight, hi_ns, lo_ns);
	}
	search->weight = search->like_weight = 0;
}

static void search__end(const struct search *search, const struct compare_sample *sample,
			struct compare_figures *figures)
{
	for (int q = 0; q < COMPARE_QUANTILE_CNT; q++) {
		figures->quantile_ns[q] = search->all[q].ns;
		figures->like_quantile_ns[q] = search->like[q].ns;
	}
	for (uint32_t s = 0; s < sample->stratum_cnt; s++)
		figures->type_tail_ns[s] = search->types[s].ns;
}

/* Both sides in one pass over the entries. */
static void find_quantiles(struct compare_figures *figures[COMPARE_SIDE_CNT], const struct compare_sample *sample,
			   const struct side_weights *weights, uint32_t *const times[COMPARE_SIDE_CNT])
{
	uint32_t width = sample->stratum_cnt + 1;
	struct search search[COMPARE_SIDE_CNT];
	double hi_ns = NAN;

	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		search__begin(&search[side], sample, &weights[side]);
	for (size_t e = 0; e < sample->entry_cnt; e++) {
		const struct compare_entry *entry = &sample->entries[e];
		uint32_t block = entry->cell / width, s = entry->cell % width;

		hi_ns = isnan(hi_ns) ? entry->ns : hi_ns;
		for (int side = 0; side < COMPARE_SIDE_CNT; side++) {
			double weight = times[side][block] * entry->weight;

			if (!(weight > 0))
				continue;
			search[side].weight += weight;
			search[side].like_weight += weight * weights[side].factor[s];
			if (s < sample->stratum_cnt)
				cursor__step(&search[side].types[s], weight, entry->ns, entry->ns);
		}
		if (!entry->ends_bin)
			continue;
		for (int side = 0; side < COMPARE_SIDE_CNT; side++)
			search__end_bin(&search[side], hi_ns, entry->ns);
		hi_ns = NAN;
	}
	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		search__end(&search[side], sample, figures[side]);
}

/*
 * The threshold of late rows is a quantile, which differs from replicate to replicate; the sums by cell are those
 * beyond one threshold.  Of rows that are thereby too many or too few, each has about the mean of the rows at the
 * border: the derivative of E[X | L >= q] with respect to q.
 */
static void sum_column(struct compare_figures *figures, const struct compare_sample *sample,
		       const struct side_weights *weights, const uint32_t *times, size_t column,
		       enum compare_threshold threshold, int border)
{
	size_t first = column * sample->cell_cnt;
	const double *x = sample->column + first, *of = sample->column_weight + first;
	const double *late = sample->column_late[threshold] + first, *late_of = sample->late_weight[threshold];
	double sum = 0, late_sum = 0, weight = 0, late_weight = 0, wanted;
	uint32_t width = sample->stratum_cnt + 1;

	for (size_t b = 0; b < all_blocks(sample); b++)
		for (uint32_t s = 0; times[b] && s + 1 < width; s++) {
			double factor = times[b] * weights->factor[s];

			sum += factor * x[b * width + s];
			weight += factor * of[b * width + s];
			late_sum += factor * late[b * width + s];
			late_weight += factor * late_of[b * width + s];
		}
	wanted = (1 - sample->tail) * weights->like;
	figures->column_mean[column] = weight > 0 ? sum / weight : NAN;
	figures->column_late[column] =
		wanted > 0 ? (late_sum -
			      sample->border[(size_t)border * sample->column_cnt + column] * (late_weight - wanted)) /
				     wanted
			   : NAN;
}

static void figure(struct compare_figures *figures[COMPARE_SIDE_CNT], const struct compare_sample *sample,
		   struct side_weights *weights, uint32_t *const times[COMPARE_SIDE_CNT])
{
	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		sum_weights(&weights[side], sample, times[side]);
	for (int side = 0; side < COMPARE_SIDE_CNT; side++) {
		struct side_weights *of = &weights[side];

		sum_like(of, sample, &weights[COMPARE_A]);
		figures[side]->mean_ns = of->ns / of->all;
		figures[side]->like_mean_ns = of->like_ns / of->like;
		for (uint32_t s = 0; s < sample->stratum_cnt; s++)
			figures[side]->type_mean_ns[s] = of->ns_by_stratum[s] / of->by_stratum[s];
	}
	find_quantiles(figures, sample, weights, times);
}

static void sum_all_columns(struct compare_figures *figures[COMPARE_SIDE_CNT], const struct compare_sample *sample,
			    const struct side_weights *weights, uint32_t *const times[COMPARE_SIDE_CNT],
			    enum compare_threshold threshold)
{
	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		for (size_t c = 0; c < sample->column_cnt; c++)
			sum_column(figures[side], sample, &weights[side], times[side], c, threshold,
				   threshold == COMPARE_OWN ? side : BOTH);
}

/* --- each side once ------------------------------------------------------------------------------------------------
 */

/* The exact quantiles of the rows of one side or of both, weighted like for like or as they are. */
struct quantiles {
	struct stats_order order;
	uint64_t *values;
	double *weights, total;
};

static int quantiles__init(struct quantiles *quantiles, const struct compare_sample *sample, int side, bool like)
{
	size_t first = side == BOTH ? 0 : sample->first_row[side], cnt;
	uint32_t width = sample->stratum_cnt + 1;

	cnt = side == BOTH ? sample->row_cnt[COMPARE_A] + sample->row_cnt[COMPARE_B] : sample->row_cnt[side];
	*quantiles = (struct quantiles){.values = malloc((cnt + 1) * sizeof(uint64_t)),
					.weights = malloc((cnt + 1) * sizeof(double))};
	if (!quantiles->values || !quantiles->weights)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		uint32_t row = sample->rows[first + i];
		const double *factor = sample->like_factor[first + i >= sample->first_row[COMPARE_B]];

		quantiles->values[i] = sample->dataset->latency_ns[row];
		quantiles->weights[i] =
			sample->dataset->weight[row] * (like ? factor[sample->cells[first + i] % width] : 1);
		quantiles->total += quantiles->weights[i];
	}
	return stats_order__init(&quantiles->order, quantiles->values, quantiles->weights, cnt);
}

static void quantiles__free(struct quantiles *quantiles)
{
	stats_order__free(&quantiles->order);
	free(quantiles->values);
	free(quantiles->weights);
}

static double quantiles__at(const struct quantiles *quantiles, double p)
{
	return stats_quantile(&quantiles->order, p, NULL, NULL, quantiles->total);
}

/* Latencies from which rows are late, and between which they are at the border of it. */
struct threshold {
	double late_ns, lo_ns, hi_ns;
};

/* The figures of a whole side have no interpolation. */
static int exact_quantiles(struct compare_sample *sample, struct threshold thresholds[COMPARE_SIDE_CNT + 1])
{
	double late = 1 - sample->tail;

	for (int side = 0; side <= BOTH; side++)
		for (int like = side == BOTH; like < 2; like++) {
			struct quantiles quantiles;
			int err = quantiles__init(&quantiles, sample, side, like);

			for (int q = 0; q < COMPARE_QUANTILE_CNT && side != BOTH && !err; q++)
				(like ? sample->figures[side].like_quantile_ns : sample->figures[side].quantile_ns)[q] =
					quantiles__at(&quantiles, compare_quantiles[q]);
			if (!err && like)
				thresholds[side] = (struct threshold){
					quantiles__at(&quantiles, sample->tail),
					quantiles__at(&quantiles, fmax(1 - late * (1 + BORDER_WIDTH), 0)),
					quantiles__at(&quantiles, 1 - late * (1 - BORDER_WIDTH)),
				};
			quantiles__free(&quantiles);
			if (err)
				return err;
		}
	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		sample->late_ns[side] = thresholds[side].late_ns;
	return 0;
}

/* Counts rows, and blocks with rows, beyond each threshold. */
static int count_late(struct compare_sample *sample)
{
	uint8_t *met = calloc(all_blocks(sample) + 1, COMPARE_QUANTILE_CNT + 1);
	uint32_t width = sample->stratum_cnt + 1;

	if (!met)
		return -ENOMEM;
	for (int side = 0; side < COMPARE_SIDE_CNT; side++)
		for (size_t i = 0; i < sample->row_cnt[side]; i++) {
			size_t at = sample->first_row[side] + i;
			uint8_t *block = &met[sample->cells[at] / width * (COMPARE_QUANTILE_CNT + 1)];
			double ns = (double)sample->dataset->latency_ns[sample->rows[at]];

			for (int q = 0; q <= COMPARE_QUANTILE_CNT; q++) {
				if (ns < (q < COMPARE_QUANTILE_CNT ? sample->figures[side].quantile_ns[q]
								   : sample->late_ns[side]))
					continue;
				sample->late_row_cnt[side][q]++;
				sample->late_block_cnt[side][q] += !block[q];
				block[q] = 1;
			}
		}
	free(met);
	return 0;
}

/* Sums of one column by cell, and its means at the borders. */
static void fill_column(struct compare_sample *sample, size_t c, const struct threshold *thresholds)
{
	const struct compare_column *column = &sample->columns[c];
	size_t first = c * sample->cell_cnt, width = sample->stratum_cnt + 1;
	double border[COMPARE_SIDE_CNT + 1] = {0}, border_weight[COMPARE_SIDE_CNT + 1] = {0};

	for (size_t i = 0; i < sample->row_cnt[COMPARE_A] + sample->row_cnt[COMPARE_B]; i++) {
		uint32_t row = sample->rows[i], cell = sample->cells[i];
		int side = i >= sample->first_row[COMPARE_B];
		double weight = sample->dataset->weight[row] * (column->factor ? column->factor[row] : 1);
		double ns = (double)sample->dataset->latency_ns[row], like = sample->like_factor[side][cell % width];
		double value = column->values      ? (double)column->values[row]
			       : column->estimates ? column->estimates[row]
						   : 0;

		if (column->missing && bitmap_test(column->missing, row))
			continue;
		sample->column[first + cell] += weight * value;
		sample->column_weight[first + cell] += weight;
		if (ns >= thresholds[side].late_ns)
			sample->column_late[COMPARE_OWN][first + cell] += weight * value;
		if (ns >= thresholds[BOTH].late_ns)
			sample->column_late[COMPARE_POOLED][first + cell] += weight * value;
		for (int b = side; b <= BOTH; b += BOTH - side) {
			if (ns < thresholds[b].lo_ns || ns > thresholds[b].hi_ns)
				continue;
			border[b] += like * weight * value;
			border_weight[b] += like * weight;
		}
	}
	for (int b = 0; b <= BOTH; b++)
		sample->border[(size_t)b * sample->column_cnt + c] =
			border_weight[b] > 0 ? border[b] / border_weight[b] : 0;
}

static void fill_columns(struct compare_sample *sample, const struct threshold *thresholds)
{
	for (size_t i = 0; i < sample->row_cnt[COMPARE_A] + sample->row_cnt[COMPARE_B]; i++) {
		uint32_t row = sample->rows[i];
		double ns = (double)sample->dataset->latency_ns[row];

		if (ns >= thresholds[i >= sample->first_row[COMPARE_B]].late_ns)
			sample->late_weight[COMPARE_OWN][sample->cells[i]] += sample->dataset->weight[row];
		if (ns >= thresholds[BOTH].late_ns)
			sample->late_weight[COMPARE_POOLED][sample->cells[i]] += sample->dataset->weight[row];
	}
	for (size_t c = 0; c < sample->column_cnt; c++)
		fill_column(sample, c, thresholds);
}

static int alloc_columns(struct compare_sample *sample)
{
	size_t sums = sample->cell_cnt * sample->column_cnt + 1;

	sample->column = calloc(sums, sizeof(double));
	sample->column_weight = calloc(sums, sizeof(double));
	sample->border = calloc((COMPARE_SIDE_CNT + 1) * sample->column_cnt + 1, sizeof(double));
	for (int t = 0; t < COMPARE_THRESHOLD_CNT; t++) {
		sample->late_weight[t] = calloc(sample->cell_cnt + 1, sizeof(double));
		sample->column_late[t] = calloc(sums, sizeof(double));
		if (!sample->late_weight[t] || !sample->column_late[t])
			return -ENOMEM;
	}
	return sample->column && sample->column_weight && sample->border ? 0 : -ENOMEM;
}

/* Memory of one replicate, or of the sample itself. */
struct scratch {
	struct side_weights weights[COMPARE_SIDE_CNT];
	uint32_t *times[COMPARE_SIDE_CNT];
};

static struct scratch *scratch__new(const struct compare_sample *sample)
{
	size_t cnt = all_blocks(sample);
	struct scratch *scratch = calloc(1, sizeof(*scratch) + 2 * (cnt + 1) * sizeof(uint32_t));

	if (!scratch)
		return NULL;
	scratch->times[COMPARE_A] = (uint32_t *)(scratch + 1);
	scratch->times[COMPARE_B] = scratch->times[COMPARE_A] + cnt + 1;
	return scratch;
}

/* Each block once: the factors, the thresholds, the figures. */
static int figure_sides(struct compare_sample *sample)
{
	struct compare_figures *figures[] = {&sample->figures[COMPARE_A], &sample->figures[COMPARE_B]};
	struct scratch *scratch = scratch__new(sample);
	struct threshold thresholds[COMPARE_SIDE_CNT + 1] = {0};
	int err = scratch ? alloc_columns(sample) : -ENOMEM;

	for (int s = 0; s < COMPARE_SIDE_CNT && !err; s++) {
		for (size_t b = 0; b < sample->block_cnt[s]; b++)
			scratch->times[s][sample->first_block[s] + b] = 1;
		figures[s]->column_mean = sample->replicate_columns + 2 * (size_t)s * sample->column_cnt;
		figures[s]->column_late = figures[s]->column_mean + sample->column_cnt;
	}
	if (!err) {
		figure(figures, sample, scratch->weights, scratch->times);
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			memcpy(sample->like_factor[s], scratch->weights[s].factor, sizeof(sample->like_factor[s]));
		err = exact_quantiles(sample, thresholds);
	}
	if (!err)
		err = count_late(sample);
	if (!err) {
		fill_columns(sample, thresholds);
		sum_all_columns(figures, sample, scratch->weights, scratch->times, COMPARE_OWN);
	}
	free(scratch);
	return err;
}

/* --- replicates ----------------------------------------------------------------------------------------------------
 */

/* Deals the blocks of both sides to the sides anew. */
static void permute(const struct compare_sample *sample, struct scratch *scratch, uint32_t number)
{
	uint64_t state = ~sample->seed + 0xd1b54a32d192ed03ULL * (number + 1);
	size_t left = all_blocks(sample), wanted = sample->block_cnt[COMPARE_A];

	for (size_t b = 0; left; b++, left--) {
		bool to_a = (random_next(&state) >> 32) * left >> 32 < wanted;

		scratch->times[to_a ? COMPARE_A : COMPARE_B][b] = 1;
		wanted -= to_a;
	}
}

static int replicate(void *ctx, size_t task, unsigned worker)
{
	struct compare_sample *sample = ctx;
	uint32_t number = (uint32_t)(task / COMPARE_DRAW_CNT);
	enum compare_draw draw = task % COMPARE_DRAW_CNT;
	struct compare_figures *figures[] = {&sample->replicates[draw][COMPARE_A][number],
					     &sample->replicates[draw][COMPARE_B][number]};
	struct scratch *scratch = scratch__new(sample);

	(void)worker;
	if (!scratch)
		return -ENOMEM;
	if (draw == COMPARE_PERMUTATION)
		permute(sample, scratch, number);
	for (int s = 0; s < COMPARE_SIDE_CNT && draw == COMPARE_BOOTSTRAP; s++)
		bootstrap_draw(scratch->times[s] + sample->first_block[s], sample->block_cnt[s],
			       sample->seed + (uint64_t)s * 0x9e3779b9, number);
	figure(figures, sample, scratch->weights, scratch->times);
	sum_all_columns(figures, sample, scratch->weights, scratch->times,
			draw == COMPARE_PERMUTATION ? COMPARE_POOLED : COMPARE_OWN);
	free(scratch);
	return 0;
}

static int alloc_replicates(struct compare_sample *sample)
{
	size_t set = 2 * sample->column_cnt, sets = (size_t)sample->replicate_cnt * COMPARE_DRAW_CNT + 1;
	double *columns = calloc(COMPARE_SIDE_CNT * set * sets + 1, sizeof(double));

	sample->replicate_columns = columns;
	if (!columns)
		return -ENOMEM;
	columns += COMPARE_SIDE_CNT * set;
	for (int draw = 0; draw < COMPARE_DRAW_CNT; draw++)
		for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
			struct compare_figures *figures = calloc(sample->replicate_cnt + 1, sizeof(*figures));

			sample->replicates[draw][s] = figures;
			if (!figures)
				return -ENOMEM;
			for (uint32_t r = 0; r < sample->replicate_cnt; r++, columns += set) {
				figures[r].column_mean = columns;
				figures[r].column_late = columns + sample->column_cnt;
			}
		}
	return 0;
}

int compare_sample__make(struct compare_sample *sample, const struct dataset *dataset, const uint8_t *sides,
			 const struct compare_column *columns, size_t column_cnt, double tail, uint32_t replicate_cnt,
			 uint64_t seed)
{
	int err;

	*sample = (struct compare_sample){
		.dataset = dataset,
		.tail = tail,
		.replicate_cnt = replicate_cnt,
		.seed = seed,
		.columns = columns,
		.column_cnt = column_cnt,
	};
	err = compare_rows_take(sample, sides);
	if (!err)
		err = alloc_replicates(sample);
	if (!err)
		err = figure_sides(sample);
	return err ? err : parallel_run((size_t)replicate_cnt * COMPARE_DRAW_CNT, replicate, sample);
}

void compare_sample__free(struct compare_sample *sample)
{
	for (int draw = 0; draw < COMPARE_DRAW_CNT; draw++)
		for (int s = 0; s < COMPARE_SIDE_CNT; s++)
			free(sample->replicates[draw][s]);
	for (int t = 0; t < COMPARE_THRESHOLD_CNT; t++) {
		free(sample->late_weight[t]);
		free(sample->column_late[t]);
	}
	free(sample->rows);
	free(sample->cells);
	free(sample->weight);
	free(sample->weighted_ns);
	free(sample->column);
	free(sample->column_weight);
	free(sample->border);
	free(sample->entries);
	free(sample->stratum_of);
	free(sample->replicate_columns);
	*sample = (struct compare_sample){0};
}
