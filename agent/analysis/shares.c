// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/shares.h"

#include "analysis/bootstrap.h"
#include "analysis/parallel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The sums of a column (a slot of a part) over a block, and of the rows themselves. */
enum column_sum { SUM_X, SUM_XL, SUM_LATE, SUM_TYPICAL, COLUMN_SUM_CNT };
enum row_sum { ROW_W, ROW_L, ROW_LL, ROW_W_LATE, ROW_W_TYPICAL, ROW_SUM_CNT };

struct shares {
	struct share_part *parts;
	size_t part_cnt;
	const struct share_rows *rows;
	struct bootstrap_sums of; /* [block][ROW_SUM_CNT + column * COLUMN_SUM_CNT + …] */
	size_t late_block_cnt;    /* that have late rows: what the tail is a sample of; 0: too few */
	size_t column_cnt;
	size_t *first_column;    /* of each part; part_cnt + 1 of them */
	double *late_met;        /* per column: weight of the late rows that have any of it */
	double center_ns;        /* latencies enter as differences from it: Cov and Var do not care, doubles do */
	double *variance, *tail; /* [line][replicate], a line per column and then per part */
};

static void sum_rows(struct shares *shares)
{
	const struct share_rows *rows = shares->rows;

	for (size_t b = 0; b < shares->of.blocks.cnt; b++) {
		double *sums = shares->of.sums + b * shares->of.stride;

		for (size_t i = shares->of.blocks.first[b]; i < shares->of.blocks.first[b + 1]; i++) {
			double w = rows->weights[i], latency = (double)rows->latency_ns[i];
			double l = latency - shares->center_ns;

			sums[ROW_W] += w;
			sums[ROW_L] += w * l;
			sums[ROW_LL] += w * l * l;
			sums[ROW_W_LATE] += latency >= rows->late_ns ? w : 0;
			sums[ROW_W_TYPICAL] += latency <= rows->median_ns ? w : 0;
		}
	}
}

/* One part over all blocks; task 0 is the rows themselves. */
static int sum_part(void *ctx, size_t task, unsigned worker)
{
	struct shares *shares = ctx;
	const struct share_rows *rows = shares->rows;
	const struct share_part *part;
	size_t first;

	(void)worker;
	if (!task) {
		sum_rows(shares);
		return 0;
	}
	part = &shares->parts[task - 1];
	first = shares->first_column[task - 1];
	for (size_t b = 0; part->values && b < shares->of.blocks.cnt; b++) {
		double *block = shares->of.sums + b * shares->of.stride + ROW_SUM_CNT + first * COLUMN_SUM_CNT;

		for (size_t i = shares->of.blocks.first[b]; i < shares->of.blocks.first[b + 1]; i++) {
			uint32_t slot = part->slots ? part->slots[i] : 0;
			double latency = (double)rows->latency_ns[i], w = rows->weights[i];
			double wx = w * (double)(int64_t)part->values[i], *sums = block + slot * COLUMN_SUM_CNT;

			if (!part->values[i])
				continue;
			sums[SUM_X] += wx;
			sums[SUM_XL] += wx * (latency - shares->center_ns);
			if (latency >= rows->late_ns) {
				sums[SUM_LATE] += wx;
				shares->late_met[first + slot] += w;
			}
			if (latency <= rows->median_ns)
				sums[SUM_TYPICAL] += wx;
		}
	}
	return 0;
}

/* What the shares of a sample divide by; NAN where they are not defined. */
struct sample {
	const double *sums;
	double variance, tail;
};

static double column_tail(const double *sums, size_t column)
{
	const double *x = sums + ROW_SUM_CNT + column * COLUMN_SUM_CNT;

	return x[SUM_LATE] / sums[ROW_W_LATE] - x[SUM_TYPICAL] / sums[ROW_W_TYPICAL];
}

/* Cov(X, L) = E[X·l] - E[X]·E[l], l = L - center. */
static double column_cov(const double *sums, size_t column)
{
	const double *x = sums + ROW_SUM_CNT + column * COLUMN_SUM_CNT;

	return x[SUM_XL] / sums[ROW_W] - x[SUM_X] / sums[ROW_W] * (sums[ROW_L] / sums[ROW_W]);
}

static struct sample sample_of(const struct shares *shares, const double *sums)
{
	struct sample sample = {.sums = sums};
	double ll = sums[ROW_LL] / sums[ROW_W], l = sums[ROW_L] / sums[ROW_W];

	sample.variance = ll - l * l;
	/* Equal latencies: what is left is rounding. */
	if (!(sample.variance > 1e-12 * ll))
		sample.variance = NAN;
	for (size_t c = 0; c < shares->column_cnt; c++)
		sample.tail += column_tail(sums, c);
	if (!(sample.tail > 0))
		sample.tail = NAN;
	return sample;
}

static void replicate(void *ctx, uint32_t r, const double *sums)
{
	struct shares *shares = ctx;
	size_t parts_at = shares->column_cnt * (size_t)shares->of.replicate_cnt, at;
	struct sample sample = sample_of(shares, sums);

	for (size_t p = 0; p < shares->part_cnt; p++) {
		double variance = 0, tail = 0;

		for (size_t c = shares->first_column[p]; c < shares->first_column[p + 1]; c++) {
			at = c * shares->of.replicate_cnt + r;
			shares->variance[at] = column_cov(sums, c) / sample.variance;
			shares->tail[at] = column_tail(sums, c) / sample.tail;
			variance += shares->variance[at];
			tail += shares->tail[at];
		}
		at = parts_at + p * shares->of.replicate_cnt + r;
		shares->variance[at] = variance;
		shares->tail[at] = tail;
	}
}

/*
 * What was lost is not known, so assume the worst: every lost interval was late, as late as those that were kept.  Of
 * N intervals, λN were lost and (1-λ)(1-p)N late ones were kept, so the unseen part of the tail is at most
 * λ / (λ + (1-λ)(1-p)).  Losses at random would give λ only: the bound is the larger, by up to 1/(1-p).
 */
double shares_lost_bound(double lost_share, double tail)
{
	if (!(lost_share > 0))
		return 0;
	if (lost_share >= 1)
		return 1;
	return lost_share / (lost_share + (1 - lost_share) * (1 - tail));
}

/* The whole is (1-μ)·seen + μ·unseen, and the unseen part had a share somewhere between none and all of it. */
struct ci shares_widen(struct ci ci, double lost)
{
	if (!(lost > 0) || isnan(ci.lo))
		return ci;
	return (struct ci){
		.lo = (1 - lost) * ci.lo + lost * fmin(ci.lo, 0),
		.hi = (1 - lost) * ci.hi + lost * fmax(ci.hi, 1),
	};
}

static void finish_line(struct shares *shares, struct share_line *line, size_t at, double lost)
{
	uint32_t cnt = shares->of.replicate_cnt;

	line->variance_share_ci =
		bootstrap_interval(shares->variance + at * cnt, cnt, line->variance_share, shares->of.blocks.cnt);
	line->tail_share_ci =
		bootstrap_interval(shares->tail + at * cnt, cnt, line->tail_share, shares->late_block_cnt);
	line->variance_share_ci = shares_widen(line->variance_share_ci, lost);
	line->tail_share_ci = shares_widen(line->tail_share_ci, lost);
}

static void finish_part(struct shares *shares, size_t p, const struct sample *sample, double lost)
{
	struct share_part *part = &shares->parts[p];
	const double *sums = sample->sums, *x;

	part->total = (struct share_line){0};
	for (uint32_t s = 0; s < part->slot_cnt; s++) {
		size_t column = shares->first_column[p] + s;
		struct share_line line = {0};

		x = sums + ROW_SUM_CNT + column * COLUMN_SUM_CNT;
		line.mean_ns = x[SUM_X] / sums[ROW_W];
		line.typical_ns = x[SUM_TYPICAL] / sums[ROW_W_TYPICAL];
		line.late_ns = x[SUM_LATE] / sums[ROW_W_LATE];
		line.late_met = shares->late_met[column] / sums[ROW_W_LATE];
		line.variance_share = column_cov(sums, column) / sample->variance;
		line.tail_share = column_tail(sums, column) / sample->tail;
		part->total.mean_ns += line.mean_ns;
		part->total.typical_ns += line.typical_ns;
		part->total.late_ns += line.late_ns;
		part->total.late_met += line.late_met;
		part->total.variance_share += line.variance_share;
		part->total.tail_share += line.tail_share;
		if (part->slot_lines) {
			finish_line(shares, &line, column, lost);
			part->slot_lines[s] = line;
		}
	}
	finish_line(shares, &part->total, shares->column_cnt + p, lost);
}

static size_t late_blocks(const struct shares *shares)
{
	size_t cnt = 0;

	for (size_t b = 0; b < shares->of.blocks.cnt; b++)
		cnt += shares->of.sums[b * shares->of.stride + ROW_W_LATE] > 0;
	return cnt < BOOTSTRAP_LATE_BLOCKS_MIN ? 0 : cnt;
}

static int shares_alloc(struct shares *shares)
{
	size_t line_cnt;

	shares->first_column = calloc(shares->part_cnt + 1, sizeof(*shares->first_column));
	if (!shares->first_column)
		return -ENOMEM;
	for (size_t p = 0; p < shares->part_cnt; p++)
		shares->first_column[p + 1] = shares->first_column[p] + shares->parts[p].slot_cnt;
	shares->column_cnt = shares->first_column[shares->part_cnt];
	shares->of.stride = ROW_SUM_CNT + shares->column_cnt * COLUMN_SUM_CNT;
	line_cnt = shares->column_cnt + shares->part_cnt;
	shares->of.sums = calloc(shares->of.blocks.cnt * shares->of.stride, sizeof(double));
	shares->late_met = calloc(shares->column_cnt + 1, sizeof(double));
	shares->variance = calloc(line_cnt * shares->of.replicate_cnt + 1, sizeof(double));
	shares->tail = calloc(line_cnt * shares->of.replicate_cnt + 1, sizeof(double));
	if (!shares->of.sums || !shares->late_met || !shares->variance || !shares->tail)
		return -ENOMEM;
	return 0;
}

static void shares_release(struct shares *shares)
{
	free(shares->tail);
	free(shares->variance);
	free(shares->late_met);
	free(shares->of.sums);
	free(shares->first_column);
	bootstrap_blocks__free(&shares->of.blocks);
}

static void lines_undefined(struct share_part *part)
{
	struct ci none = {NAN, NAN};
	struct share_line undefined = {NAN, NAN, NAN, NAN, NAN, none, none, NAN};

	part->total = undefined;
	for (uint32_t s = 0; part->slot_lines && s < part->slot_cnt; s++)
		part->slot_lines[s] = undefined;
}

int shares_compute(struct share_part *parts, size_t part_cnt, const struct share_rows *rows,
		   const struct share_opts *opts)
{
	struct shares shares = {.parts = parts, .part_cnt = part_cnt, .rows = rows, .of.seed = opts->seed};
	double sum = 0, weight = 0, *total = NULL;
	struct sample sample;
	int err;

	for (size_t p = 0; !rows->row_cnt && p < part_cnt; p++)
		lines_undefined(&parts[p]);
	if (!rows->row_cnt)
		return 0;
	err = bootstrap_blocks__init(&shares.of.blocks, rows);
	if (err)
		return err;
	shares.of.replicate_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : BOOTSTRAP_REPLICATES;
	for (size_t i = 0; i < rows->row_cnt; i++) {
		sum += rows->weights[i] * (double)rows->latency_ns[i];
		weight += rows->weights[i];
	}
	/* A whole number: the differences of equal latencies from it are then equal to the last bit. */
	shares.center_ns = rint(sum / weight);
	err = shares_alloc(&shares);
	total = err ? NULL : calloc(shares.of.stride, sizeof(*total));
	if (!total)
		err = -ENOMEM;
	if (err)
		goto cleanup;
	err = parallel_run(part_cnt + 1, sum_part, &shares);
	if (err)
		goto cleanup;
	err = bootstrap_run(&shares.of, replicate, &shares);
	if (err)
		goto cleanup;
	for (size_t b = 0; b < shares.of.blocks.cnt; b++)
		for (size_t i = 0; i < shares.of.stride; i++)
			total[i] += shares.of.sums[b * shares.of.stride + i];
	sample = sample_of(&shares, total);
	shares.late_block_cnt = late_blocks(&shares);
	for (size_t p = 0; p < part_cnt; p++)
		finish_part(&shares, p, &sample, opts->lost);
cleanup:
	free(total);
	shares_release(&shares);
	return err;
}
