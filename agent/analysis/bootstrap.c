// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/bootstrap.h"

#include "analysis/parallel.h"
#include "analysis/sort.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t block_count(size_t row_cnt)
{
	size_t cnt = (size_t)ceil(pow((double)row_cnt, 2.0 / 3));

	return cnt < SHARES_BLOCKS_MAX ? cnt : SHARES_BLOCKS_MAX;
}

/* Does a block begin at the row, if the last one began at `first`?  Windows are never parted. */
static bool block_begins(const struct share_rows *rows, size_t row, size_t first, size_t length)
{
	if (rows->windows[row] != rows->windows[row - 1])
		return true;
	return !rows->windows[row] && row - first >= length;
}

static void blocks_of_windows(struct bootstrap_blocks *blocks, const struct share_rows *rows)
{
	size_t length = rows->row_cnt / block_count(rows->row_cnt), cnt = 1, stride;

	for (size_t i = 1; i < rows->row_cnt; i++)
		if (block_begins(rows, i, blocks->first[cnt - 1], length))
			blocks->first[cnt++] = i;
	stride = (cnt + SHARES_BLOCKS_MAX - 1) / SHARES_BLOCKS_MAX;
	blocks->cnt = (cnt + stride - 1) / stride;
	for (size_t b = 0; b < blocks->cnt; b++)
		blocks->first[b] = blocks->first[b * stride];
	blocks->first[blocks->cnt] = rows->row_cnt;
}

int bootstrap_blocks__init(struct bootstrap_blocks *blocks, const struct share_rows *rows)
{
	size_t row_cnt = rows->row_cnt, room;

	blocks->cnt = block_count(row_cnt);
	room = rows->windows ? row_cnt : blocks->cnt;
	blocks->first = calloc(room + 1, sizeof(*blocks->first));
	if (!blocks->first)
		return -ENOMEM;
	if (rows->windows && row_cnt) {
		blocks_of_windows(blocks, rows);
		return 0;
	}
	for (size_t b = 0; b <= blocks->cnt; b++)
		blocks->first[b] = blocks->cnt ? (size_t)((unsigned __int128)row_cnt * b / blocks->cnt) : 0;
	return 0;
}

void bootstrap_blocks__free(struct bootstrap_blocks *blocks)
{
	free(blocks->first);
	*blocks = (struct bootstrap_blocks){0};
}

void bootstrap_draw(uint32_t *multiplicity, size_t block_cnt, uint64_t seed, uint32_t replicate)
{
	/* Each replicate has its own stream, so the outcome does not depend on which thread draws it. */
	uint64_t state = seed + 0xd1b54a32d192ed03ULL * (replicate + 1);

	memset(multiplicity, 0, block_cnt * sizeof(*multiplicity));
	for (size_t i = 0; i < block_cnt; i++)
		multiplicity[(random_next(&state) >> 32) * block_cnt >> 32]++;
}

#define REPLICATES_PER_TASK 16

struct run {
	const struct bootstrap_sums *of;
	bootstrap_take take;
	void *ctx;
	double *sums[PARALLEL_WORKERS_MAX];
	uint32_t *multiplicity[PARALLEL_WORKERS_MAX];
};

static void replicate(const struct run *run, uint32_t r, double *sums, uint32_t *multiplicity)
{
	const struct bootstrap_sums *of = run->of;

	memset(sums, 0, of->stride * sizeof(*sums));
	bootstrap_draw(multiplicity, of->blocks.cnt, of->seed, r);
	for (size_t b = 0; b < of->blocks.cnt; b++) {
		const double *block = of->sums + b * of->stride;
		double times = multiplicity[b];

		for (size_t i = 0; multiplicity[b] && i < of->stride; i++)
			sums[i] += times * block[i];
	}
	run->take(run->ctx, r, sums);
}

static int replicates(void *ctx, size_t task, unsigned worker)
{
	const struct run *run = ctx;

	for (size_t r = task * REPLICATES_PER_TASK; r < (task + 1) * REPLICATES_PER_TASK; r++)
		if (r < run->of->replicate_cnt)
			replicate(run, (uint32_t)r, run->sums[worker], run->multiplicity[worker]);
	return 0;
}

int bootstrap_run(const struct bootstrap_sums *of, bootstrap_take take, void *ctx)
{
	struct run run = {.of = of, .take = take, .ctx = ctx};
	int err = 0;

	for (unsigned i = 0; i < parallel_workers() && !err; i++) {
		run.sums[i] = calloc(of->stride, sizeof(double));
		run.multiplicity[i] = calloc(of->blocks.cnt + 1, sizeof(uint32_t));
		err = run.sums[i] && run.multiplicity[i] ? 0 : -ENOMEM;
	}
	if (!err)
		err = parallel_run((of->replicate_cnt + REPLICATES_PER_TASK - 1) / REPLICATES_PER_TASK, replicates,
				   &run);
	for (unsigned i = 0; i < PARALLEL_WORKERS_MAX; i++) {
		free(run.sums[i]);
		free(run.multiplicity[i]);
	}
	return err;
}

/*
 * How much of the replicates to leave out on either side.  With few blocks a percentile interval is too narrow, as a
 * normal one would be without Student's t; the expanded one (Hesterberg, The American Statistician 2015, §3.2) takes
 * the percentiles Φ(∓ √(n/(n-1)) t) instead.  t by the expansion of Fisher and Cornish.
 */
static double tail_left_out(size_t block_cnt)
{
	const double z = 1.959964, z3 = z * z * z;
	double nu = (double)block_cnt - 1, t;

	if (block_cnt < 2)
		return 0;
	t = z + (z3 + z) / (4 * nu) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * nu * nu);
	return 0.5 * erfc(sqrt((double)block_cnt / nu) * t / sqrt(2));
}

struct ci bootstrap_interval(double *values, uint32_t cnt, double estimate, size_t block_cnt)
{
	double left_out = tail_left_out(block_cnt);
	uint32_t valid = 0;
	struct ci ci;

	for (uint32_t i = 0; i < cnt; i++)
		if (!isnan(values[i]))
			values[valid++] = values[i];
	if (block_cnt < 2 || isnan(estimate) || valid < 2 || valid < cnt / 2)
		return (struct ci){NAN, NAN};
	qsort(values, valid, sizeof(*values), compare_doubles);
	ci.lo = values[(uint32_t)floor(left_out * valid)];
	ci.hi = values[(uint32_t)ceil((1 - left_out) * valid) - 1];
	/* A percentile interval can miss its own estimate where the replicates are skewed; nobody would believe it. */
	return (struct ci){fmin(ci.lo, estimate), fmax(ci.hi, estimate)};
}
