// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/tail_sample.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOTS_MAX   256
#define STANDARD_ERRORS 8
#define ROWS_MIN        50.0
#define CLAMPED_MAX     50 /* one replicate in so many may lie outside the margin: less than an interval leaves out */
#define MARGIN_GROWTH   4
#define ROUNDING        1e-9 /* as in stats_quantile() */

int tail_blocks__init(struct tail_blocks *blocks, const struct share_rows *rows, uint32_t replicate_cnt, uint64_t seed)
{
	uint32_t *multiplicity;
	size_t cnt;

	*blocks = (struct tail_blocks){.weights = rows->weights, .replicate_cnt = replicate_cnt};
	if (bootstrap_blocks__init(&blocks->blocks, rows))
		return -ENOMEM;
	cnt = blocks->blocks.cnt;
	blocks->of_row = calloc(rows->row_cnt + 1, sizeof(*blocks->of_row));
	blocks->weight = calloc(cnt + 1, sizeof(*blocks->weight));
	blocks->draws = calloc(cnt * replicate_cnt + 1, sizeof(*blocks->draws));
	multiplicity = calloc(cnt + 1, sizeof(*multiplicity));
	if (!blocks->of_row || !blocks->weight || !blocks->draws || !multiplicity) {
		free(multiplicity);
		tail_blocks__free(blocks);
		return -ENOMEM;
	}
	for (size_t b = 0; b < cnt; b++)
		for (size_t row = blocks->blocks.first[b]; row < blocks->blocks.first[b + 1]; row++) {
			blocks->of_row[row] = (uint16_t)b;
			blocks->weight[b] += rows->weights[row];
		}
	for (uint32_t r = 0; r < replicate_cnt && cnt; r++) {
		bootstrap_draw(multiplicity, cnt, seed, r);
		for (size_t b = 0; b < cnt; b++)
			blocks->draws[r * cnt + b] = multiplicity[b];
	}
	free(multiplicity);
	return 0;
}

void tail_blocks__free(struct tail_blocks *blocks)
{
	bootstrap_blocks__free(&blocks->blocks);
	free(blocks->of_row);
	free(blocks->weight);
	free(blocks->draws);
	*blocks = (struct tail_blocks){0};
}

int tail_scratch__init(struct tail_scratch *scratch, const struct tail_blocks *blocks)
{
	scratch->above = calloc(SNAPSHOTS_MAX * blocks->blocks.cnt + 1, sizeof(*scratch->above));
	scratch->value = calloc(SNAPSHOTS_MAX, sizeof(*scratch->value));
	scratch->row_cnt = calloc(SNAPSHOTS_MAX, sizeof(*scratch->row_cnt));
	if (scratch->above && scratch->value && scratch->row_cnt)
		return 0;
	tail_scratch__free(scratch);
	return -ENOMEM;
}

void tail_scratch__free(struct tail_scratch *scratch)
{
	free(scratch->above);
	free(scratch->value);
	free(scratch->row_cnt);
	*scratch = (struct tail_scratch){0};
}

/* Four sums side by side: one alone waits for each addition. */
static double dot(const double *a, const double *b, size_t cnt)
{
	double sum[4] = {0};
	size_t i = 0;

	for (; i + 4 <= cnt; i += 4)
		for (size_t k = 0; k < 4; k++)
			sum[k] += a[i + k] * b[i + k];
	for (; i < cnt; i++)
		sum[0] += a[i] * b[i];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Snapshots from `from` to `to` of the weight above, at equal steps, and the quantile itself; the number of them. */
static size_t take_snapshots(const struct tail_set *set, const struct tail_blocks *blocks, struct tail_scratch *scratch,
			     const struct sort_pair *rows, size_t row_cnt, double from, double *estimate)
{
	double limit = (1 - set->p + ROUNDING) * set->total_weight, above = 0, next = from;
	double step = 2 * set->margin * set->total_weight / (SNAPSHOTS_MAX - 2);
	size_t cnt = 0, block_cnt = blocks->blocks.cnt;
	double *now = scratch->above;
	uint32_t since = 0;

	*estimate = NAN;
	memset(now, 0, block_cnt * sizeof(*now));
	for (size_t i = 0; i < row_cnt; i++) {
		double weight = blocks->weights[rows[i].row];

		above += weight;
		now[blocks->of_row[rows[i].row]] += weight;
		since++;
		if (isnan(*estimate) && above > limit)
			*estimate = (double)rows[i].key;
		if (above < next && i + 1 < row_cnt)
			continue;
		scratch->value[cnt] = (double)rows[i].key;
		scratch->row_cnt[cnt] = since;
		since = 0;
		next = fmax(next, above) + step;
		if (++cnt == SNAPSHOTS_MAX)
			break;
		memcpy(now + block_cnt, now, block_cnt * sizeof(*now));
		now += block_cnt;
	}
	if (isnan(*estimate) && row_cnt)
		*estimate = (double)rows[row_cnt - 1].key;
	return cnt;
}

/* false: it lies outside the snapshots. */
static bool replicate(double *value, const struct tail_set *set, const struct tail_blocks *blocks,
		      const struct tail_scratch *scratch, size_t cnt, uint32_t r)
{
	size_t block_cnt = blocks->blocks.cnt, lo;
	const double *draws = blocks->draws + r * block_cnt;
	double limit = (1 - set->p + ROUNDING) * dot(draws, set->block_weight, block_cnt), below = 0, above;

	lo = search_first(0, cnt, middle, dot(draws, scratch->above + middle * block_cnt, block_cnt) > limit);
	if (lo == cnt) {
		*value = scratch->value[cnt - 1];
		return false;
	}
	*value = scratch->value[lo];
	if (scratch->row_cnt[lo] == 1)
		return true;
	if (!lo)
		return false;
	below = dot(draws, scratch->above + (lo - 1) * block_cnt, block_cnt);
	above = dot(draws, scratch->above + lo * block_cnt, block_cnt);
	*value = scratch->value[lo - 1] +
		 (scratch->value[lo] - scratch->value[lo - 1]) * (limit - below) / (above - below);
	return true;
}

int tail_sample(double *estimate, double *values, const struct tail_set *set, const struct tail_blocks *blocks,
		struct tail_scratch *scratch)
{
	struct tail_set wider = *set;

	*estimate = NAN;
	for (;; wider.margin *= MARGIN_GROWTH) {
		double late = (1 - set->p) * set->total_weight, width = wider.margin * set->total_weight;
		const struct sort_pair *rows;
		uint32_t outside = 0;
		size_t cnt;
		long top = set->top(set->ctx, late + width, &rows);

		if (top < 0)
			return (int)top;
		cnt = take_snapshots(&wider, blocks, scratch, rows, (size_t)top, fmax(late - width, 0), estimate);
		for (uint32_t r = 0; r < blocks->replicate_cnt; r++) {
			values[r] = NAN;
			if (cnt)
				outside += !replicate(&values[r], set, blocks, scratch, cnt, r);
		}
		if (outside <= blocks->replicate_cnt / CLAMPED_MAX || wider.margin >= 1)
			return 0;
	}
}

struct tail_error tail_blocks__error(const struct tail_blocks *blocks, const struct share_rows *rows)
{
	struct tail_error error = {0};
	double total = 0, late = 0, squares = 0;
	size_t cnt = blocks->blocks.cnt;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t b = 0; b < cnt; b++) {
			double in_block = 0;

			for (size_t row = blocks->blocks.first[b]; row < blocks->blocks.first[b + 1]; row++)
				if ((double)rows->latency_ns[row] >= rows->late_ns) {
					in_block += rows->weights[row];
					error.row_cnt += !pass;
				}
			if (pass) {
				in_block -= error.share * blocks->weight[b];
				squares += in_block * in_block;
				continue;
			}
			error.block_cnt += in_block > 0;
			total += blocks->weight[b];
			late += in_block;
		}
		error.share = total > 0 ? late / total : NAN;
	}
	error.standard = cnt > 1 ? sqrt(squares * (double)cnt / ((double)cnt - 1)) / total : NAN;
	if (error.block_cnt < BOOTSTRAP_LATE_BLOCKS_MIN)
		error.block_cnt = 0;
	return error;
}

double tail_error__margin(const struct tail_error *error, size_t row_cnt)
{
	double margin = ROWS_MIN / (double)(row_cnt + 1);

	if (error->standard > 0)
		margin = fmax(margin, STANDARD_ERRORS * error->standard);
	return fmin(margin, 1);
}
