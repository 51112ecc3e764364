// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/levels.h"

#include "analysis/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The upper limit, at 97.5 %, of a Poisson count of which none was seen. */
#define UNMET_WINDOWS 3.69
/* The interval of the p99: replicates for each latency that may be its end, and how close its ends are looked for. */
#define P99_REPLICATES 200
#define P99_PRECISION  0.005

enum level_sum { LEVEL_W, LEVEL_L, LEVEL_OVER, LEVEL_SUM_CNT = LEVEL_OVER + LEVELS_OVER };

struct levels_work {
	struct bootstrap_blocks blocks;
	size_t block_cnt; /* with those of windows without rows, which come last */
	double (*sums)[LEVEL_SUM_CNT];
	double total[LEVEL_SUM_CNT];
	uint32_t *multiplicity;
	uint32_t replicate_cnt;
	double *values, *more; /* [LEVEL_SUM_CNT][replicate]; more: with the most extreme block once more */
	size_t extreme[LEVEL_SUM_CNT];
	double window_cnt; /* 0: all the time was observed */
};

static uint64_t over_ns(size_t i)
{
	uint64_t ns = LEVELS_OVER_FIRST_NS;

	while (i--)
		ns *= 10;
	return ns;
}

/* Windows that rows came from. */
static size_t windows_met(const struct share_rows *rows)
{
	size_t cnt = 0;

	for (size_t i = 0; rows->windows && i < rows->row_cnt; i++)
		cnt += rows->windows[i] && (!i || rows->windows[i] != rows->windows[i - 1]);
	return cnt;
}

/* As many rowless blocks for each block with rows as there are rowless windows for each window with rows. */
static size_t rowless_blocks(const struct dataset *dataset, const struct share_rows *rows, size_t block_cnt)
{
	size_t met = windows_met(rows);

	if (!met || dataset->window_cnt <= met)
		return 0;
	return (size_t)fmin((double)(dataset->window_cnt - met) / (double)met * (double)block_cnt,
			    (double)SHARES_BLOCKS_MAX * 100);
}

static void sum_blocks(struct levels_work *work, const struct share_rows *rows)
{
	for (size_t b = 0; b < work->blocks.cnt; b++)
		for (size_t i = work->blocks.first[b]; i < work->blocks.first[b + 1]; i++) {
			double *sums = work->sums[b], weight = rows->weights[i];

			sums[LEVEL_W] += weight;
			sums[LEVEL_L] += weight * (double)rows->latency_ns[i];
			for (size_t o = 0; o < LEVELS_OVER; o++)
				sums[LEVEL_OVER + o] += rows->latency_ns[i] > over_ns(o) ? weight : 0;
		}
	for (size_t b = 0; b < work->blocks.cnt; b++)
		for (size_t s = 0; s < LEVEL_SUM_CNT; s++)
			work->total[s] += work->sums[b][s];
	for (size_t b = 0; b < work->blocks.cnt; b++)
		for (size_t s = 0; s < LEVEL_SUM_CNT; s++)
			if (work->sums[b][s] > work->sums[work->extreme[s]][s])
				work->extreme[s] = b;
}

static void replicate(struct levels_work *work, uint64_t seed, uint32_t r)
{
	double sums[LEVEL_SUM_CNT] = {0};
	uint32_t again;

	bootstrap_draw(work->multiplicity, work->block_cnt + 1, seed, r);
	again = work->multiplicity[work->block_cnt];
	for (size_t b = 0; b < work->blocks.cnt; b++)
		for (size_t s = 0; work->multiplicity[b] && s < LEVEL_SUM_CNT; s++)
			sums[s] += work->multiplicity[b] * work->sums[b][s];
	work->values[LEVEL_W * work->replicate_cnt + r] = sums[LEVEL_W] / work->total[LEVEL_W];
	work->more[LEVEL_W * work->replicate_cnt + r] = work->values[LEVEL_W * work->replicate_cnt + r];
	for (size_t s = LEVEL_L; s < LEVEL_SUM_CNT; s++) {
		const double *extreme = work->sums[work->extreme[s]];
		double weight = sums[LEVEL_W] + again * extreme[LEVEL_W];

		work->values[s * work->replicate_cnt + r] = sums[LEVEL_W] > 0 ? sums[s] / sums[LEVEL_W] : NAN;
		work->more[s * work->replicate_cnt + r] = weight > 0 ? (sums[s] + again * extreme[s]) / weight : NAN;
	}
}

/* The mean of something that is at most `highest` for each of the censored ones, and at least 0. */
static struct ci censored(struct ci ci, const struct levels_work *work, double censored_weight, double highest)
{
	double weight = work->total[LEVEL_W];

	return (struct ci){ci.lo * weight / (weight + censored_weight),
			   (ci.hi * weight + highest * censored_weight) / (weight + censored_weight)};
}

/* highest: of one request. */
static struct ci interval(struct levels_work *work, size_t sum, double estimate, double highest)
{
	size_t first = sum * work->replicate_cnt;
	struct ci ci = bootstrap_interval(work->values + first, work->replicate_cnt, estimate, work->block_cnt);
	struct ci more = bootstrap_interval(work->more + first, work->replicate_cnt, estimate, work->block_cnt);

	ci.hi = more.hi;
	if (work->window_cnt > 0)
		ci.hi = fmax(ci.hi, highest * fmin(UNMET_WINDOWS / work->window_cnt, 1));
	return ci;
}

static void fill(struct report *report, struct levels_work *work)
{
	const struct dataset *dataset = report->dataset;
	double open = dataset->censored_weight, seen = (double)dataset->intervals_seen;
	double longest_ns = fmax(report->latency.max_ns, (double)dataset->censored_longest_ns);
	struct levels *levels = &report->levels;
	struct ci seen_ci = {1, 1};

	/* Without windows they were counted. */
	if (dataset->window_cnt)
		seen_ci = interval(work, LEVEL_W, 1, 0);
	levels->seen_ci = (struct ci){seen_ci.lo * seen, seen_ci.hi * seen + open};
	levels->mean_ci = censored(interval(work, LEVEL_L, work->total[LEVEL_L] / work->total[LEVEL_W], 0), work, open,
				   longest_ns);
	for (size_t o = 0; o < LEVELS_OVER; o++) {
		double share = work->total[LEVEL_OVER + o] / work->total[LEVEL_W];

		levels->over[o] = (struct level_over){
			.ns = over_ns(o),
			.share = share,
			.ci = censored(interval(work, LEVEL_OVER + o, share, 1), work, open, 1),
		};
	}
}

/* Of the requests that took longer than ns, the share and its interval. */
static struct ci share_over(struct levels_work *work, const struct share_rows *rows, double *over, double ns,
			    const struct report *report, uint64_t seed)
{
	double values[P99_REPLICATES], more[P99_REPLICATES], all = 0;
	size_t extreme = 0;
	struct ci ci;

	for (size_t b = 0; b < work->blocks.cnt; b++) {
		over[b] = 0;
		for (size_t i = work->blocks.first[b]; i < work->blocks.first[b + 1]; i++)
			over[b] += (double)rows->latency_ns[i] > ns ? rows->weights[i] : 0;
		all += over[b];
		extreme = over[b] > over[extreme] ? b : extreme;
	}
	for (uint32_t r = 0; r < P99_REPLICATES; r++) {
		double weight = 0, sum = 0, again;

		bootstrap_draw(work->multiplicity, work->block_cnt + 1, seed, r);
		again = work->multiplicity[work->block_cnt];
		for (size_t b = 0; b < work->blocks.cnt; b++) {
			weight += work->multiplicity[b] * work->sums[b][LEVEL_W];
			sum += work->multiplicity[b] * over[b];
		}
		values[r] = weight > 0 ? sum / weight : NAN;
		weight += again * work->sums[extreme][LEVEL_W];
		more[r] = weight > 0 ? (sum + again * over[extreme]) / weight : NAN;
	}
	all /= work->total[LEVEL_W];
	ci.lo = bootstrap_interval(values, P99_REPLICATES, all, work->block_cnt).lo;
	ci.hi = bootstrap_interval(more, P99_REPLICATES, all, work->block_cnt).hi;
	return censored(ci, work, report->dataset->censored_weight, 1);
}

/* The latencies that one in a hundred may exceed, as far as the intervals of the shares tell. */
static int find_p99(struct report *report, struct levels_work *work, const struct share_rows *rows, uint64_t seed)
{
	double *over = calloc(work->blocks.cnt + 1, sizeof(*over)), ends[2];

	if (!over)
		return -ENOMEM;
	for (int upper = 0; upper < 2; upper++) {
		double from_ns = upper ? report->latency.p99_ns : 0;
		double to_ns = upper ? report->latency.max_ns : report->latency.p99_ns;

		while (to_ns - from_ns > P99_PRECISION * to_ns) {
			double ns = (from_ns + to_ns) / 2;
			struct ci ci = share_over(work, rows, over, ns, report, seed);

			if (isnan(ci.lo))
				from_ns = to_ns = NAN;
			else if ((upper ? ci.hi : ci.lo) > 0.01)
				from_ns = ns;
			else
				to_ns = ns;
		}
		ends[upper] = to_ns;
	}
	report->levels.p99_ci = (struct ci){ends[0], ends[1]};
	free(over);
	return 0;
}

int levels_make(struct report *report, const struct share_rows *rows, const struct report_opts *opts)
{
	struct levels_work work = {.replicate_cnt = opts->bootstrap_cnt ? opts->bootstrap_cnt : BOOTSTRAP_REPLICATES};
	int err = bootstrap_blocks__init(&work.blocks, rows);

	if (err)
		return err;
	work.block_cnt = work.blocks.cnt + rowless_blocks(report->dataset, rows, work.blocks.cnt);
	work.sums = calloc(work.blocks.cnt + 1, sizeof(*work.sums));
	work.window_cnt = (double)report->dataset->window_cnt;
	work.multiplicity = calloc(work.block_cnt + 1, sizeof(*work.multiplicity));
	work.values = calloc((size_t)LEVEL_SUM_CNT * work.replicate_cnt, sizeof(*work.values));
	work.more = calloc((size_t)LEVEL_SUM_CNT * work.replicate_cnt, sizeof(*work.more));
	err = work.sums && work.multiplicity && work.values && work.more ? 0 : -ENOMEM;
	if (!err) {
		sum_blocks(&work, rows);
		for (uint32_t r = 0; r < work.replicate_cnt; r++)
			replicate(&work, opts->seed, r);
		fill(report, &work);
		err = find_p99(report, &work, rows, opts->seed);
	}
	free(work.values);
	free(work.more);
	free(work.multiplicity);
	free(work.sums);
	bootstrap_blocks__free(&work.blocks);
	return err;
}
