// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/levels.h"

#include "analysis/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The upper limit, at 97.5 %, of a Poisson count of which none was seen. */
#define UNMET_WINDOWS 3.69
/* The interval of a quantile: replicates for each latency that may be its end, and how close its ends are looked for.
 */
#define QUANTILE_REPLICATES 200
#define QUANTILE_PRECISION  0.005
#define ROWS_BEYOND_MIN     5

/* LEVEL_BEYOND: of a latency that is being tried. */
enum level_sum { LEVEL_W, LEVEL_L, LEVEL_OVER, LEVEL_BEYOND = LEVEL_OVER + LEVELS_OVER, LEVEL_SUM_CNT };

struct levels_work {
	struct bootstrap_blocks blocks;
	size_t block_cnt; /* with those of windows without rows, which come last */
	double (*sums)[LEVEL_SUM_CNT];
	double total[LEVEL_SUM_CNT];
	uint32_t replicate_cnt;
	uint32_t *draws; /* [replicate][blocks.cnt + 1]: how often each block with rows is there, and the extreme one
			    again */
	double *values, *more; /* [replicate] of one sum; more: with the most extreme block once more */
	double window_cnt;     /* 0: all the time was observed */
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
		for (size_t s = 0; s < LEVEL_BEYOND; s++)
			work->total[s] += work->sums[b][s];
}

static int draw(struct levels_work *work, uint64_t seed)
{
	size_t cnt = work->blocks.cnt;
	uint32_t *multiplicity = calloc(work->block_cnt + 1, sizeof(*multiplicity));

	work->draws = calloc(work->replicate_cnt * (cnt + 1), sizeof(*work->draws));
	for (uint32_t r = 0; multiplicity && work->draws && r < work->replicate_cnt; r++) {
		uint32_t *to = work->draws + r * (cnt + 1);

		bootstrap_draw(multiplicity, work->block_cnt + 1, seed, r);
		memcpy(to, multiplicity, cnt * sizeof(*to));
		to[cnt] = multiplicity[work->block_cnt];
	}
	free(multiplicity);
	return multiplicity && work->draws ? 0 : -ENOMEM;
}

/* Of LEVEL_W its share of all that there is, of the others the mean of a request. */
static void replicate(struct levels_work *work, size_t sum, uint32_t replicate_cnt)
{
	size_t cnt = work->blocks.cnt, extreme = 0;

	for (size_t b = 0; b < cnt; b++)
		if (work->sums[b][sum] > work->sums[extreme][sum])
			extreme = b;
	for (uint32_t r = 0; r < replicate_cnt; r++) {
		const uint32_t *multiplicity = work->draws + r * (cnt + 1);
		double weight = 0, value = 0, again = multiplicity[cnt];

		for (size_t b = 0; b < cnt; b++) {
			weight += multiplicity[b] * work->sums[b][LEVEL_W];
			value += multiplicity[b] * work->sums[b][sum];
		}
		if (sum == LEVEL_W) {
			work->values[r] = work->more[r] = weight / work->total[LEVEL_W];
			continue;
		}
		work->values[r] = weight > 0 ? value / weight : NAN;
		weight += again * work->sums[extreme][LEVEL_W];
		work->more[r] = weight > 0 ? (value + again * work->sums[extreme][sum]) / weight : NAN;
	}
}

/* The mean of something that is at most `highest` for each of the censored ones, and at least 0. */
static struct ci censored(struct ci ci, const struct levels_work *work, double censored_weight, double highest)
{
	double weight = work->total[LEVEL_W];

	return (struct ci){ci.lo * weight / (weight + censored_weight),
			   (ci.hi * weight + highest * censored_weight) / (weight + censored_weight)};
}

/* highest: of one request, where windows that met nothing count; else 0. */
static struct ci interval(struct levels_work *work, size_t sum, uint32_t replicate_cnt, double estimate, double highest)
{
	struct ci ci;

	replicate(work, sum, replicate_cnt);
	ci.lo = bootstrap_interval(work->values, replicate_cnt, estimate, work->block_cnt).lo;
	ci.hi = bootstrap_interval(work->more, replicate_cnt, estimate, work->block_cnt).hi;
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
	struct ci seen_ci = {1, 1}, mean_ci;

	/* Without windows they were counted. */
	if (dataset->window_cnt)
		seen_ci = interval(work, LEVEL_W, work->replicate_cnt, 1, 0);
	levels->seen_ci = (struct ci){seen_ci.lo * seen, seen_ci.hi * seen + open};
	mean_ci = interval(work, LEVEL_L, work->replicate_cnt, work->total[LEVEL_L] / work->total[LEVEL_W], 0);
	levels->mean_ci = censored(mean_ci, work, open, longest_ns);
	for (size_t o = 0; o < LEVELS_OVER; o++) {
		double share = work->total[LEVEL_OVER + o] / work->total[LEVEL_W];

		levels->over[o] = (struct level_over){
			.ns = over_ns(o),
			.share = share,
			.ci = censored(interval(work, LEVEL_OVER + o, work->replicate_cnt, share, 1), work, open, 1),
		};
	}
}

/* The interval of the share of requests that took longer than ns. */
static struct ci share_beyond(struct levels_work *work, const struct share_rows *rows, double ns,
			      const struct report *report)
{
	uint32_t replicate_cnt = work->replicate_cnt < QUANTILE_REPLICATES ? work->replicate_cnt : QUANTILE_REPLICATES;
	double all = 0;

	for (size_t b = 0; b < work->blocks.cnt; b++) {
		double *beyond = &work->sums[b][LEVEL_BEYOND];

		*beyond = 0;
		for (size_t i = work->blocks.first[b]; i < work->blocks.first[b + 1]; i++)
			*beyond += (double)rows->latency_ns[i] > ns ? rows->weights[i] : 0;
		all += *beyond;
	}
	return censored(interval(work, LEVEL_BEYOND, replicate_cnt, all / work->total[LEVEL_W], 0), work,
			report->dataset->censored_weight, 1);
}

/* A latency, and which share of requests exceeds it. */
struct quantile {
	double ns, beyond;
};

/* The latency that so many may exceed at least or at most, between these, as far as the intervals tell. */
static double end_of(const struct quantile *quantile, struct levels_work *work, const struct share_rows *rows,
		     const struct report *report, bool upper)
{
	double from_ns = upper ? quantile->ns : 0, to_ns = upper ? report->latency.max_ns : quantile->ns;

	while (to_ns - from_ns > QUANTILE_PRECISION * to_ns) {
		double ns = (from_ns + to_ns) / 2;
		struct ci ci = share_beyond(work, rows, ns, report);

		if (isnan(ci.lo))
			return NAN;
		if ((upper ? ci.hi : ci.lo) > quantile->beyond)
			from_ns = ns;
		else
			to_ns = ns;
	}
	return to_ns;
}

static size_t rows_from(const struct share_rows *rows, double ns)
{
	size_t cnt = 0;

	for (size_t i = 0; i < rows->row_cnt; i++)
		cnt += (double)rows->latency_ns[i] >= ns;
	return cnt;
}

static void fill_quantiles(struct report *report, struct levels_work *work, const struct share_rows *rows)
{
	const struct latency_summary *latency = &report->latency;
	struct levels *levels = &report->levels;
	const struct {
		struct quantile quantile;
		struct ci *ci;
	} quantiles[] = {
		{{latency->p50_ns, 0.5}, &levels->p50_ci},
		{{latency->p90_ns, 0.1}, &levels->p90_ci},
		{{latency->p99_ns, 0.01}, &levels->p99_ci},
		{{latency->p999_ns, 0.001}, &levels->p999_ci},
	};

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		*quantiles[i].ci = (struct ci){end_of(&quantiles[i].quantile, work, rows, report, false),
					       end_of(&quantiles[i].quantile, work, rows, report, true)};
	/* Of so few it would be the longest latency that was met, and other requests may have taken longer. */
	if (rows_from(rows, latency->p99_ns) < ROWS_BEYOND_MIN)
		levels->p99_ci.hi = NAN;
	if (rows_from(rows, latency->p999_ns) < ROWS_BEYOND_MIN)
		levels->p999_ci.hi = NAN;
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
	work.values = calloc(work.replicate_cnt, sizeof(*work.values));
	work.more = calloc(work.replicate_cnt, sizeof(*work.more));
	err = work.sums && work.values && work.more ? draw(&work, opts->seed) : -ENOMEM;
	if (!err) {
		sum_blocks(&work, rows);
		fill(report, &work);
		fill_quantiles(report, &work, rows);
	}
	free(work.values);
	free(work.more);
	free(work.draws);
	free(work.sums);
	bootstrap_blocks__free(&work.blocks);
	return err;
}
