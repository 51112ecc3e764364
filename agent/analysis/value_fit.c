// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_fit.h"

#include "analysis/sort.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define EXPONENT_MIN  0.25
#define EXPONENT_STEP 0.05
#define EXPONENT_CNT  76 /* up to 4 */
#define POINTS_MAX    2000
#define POINTS_MIN    20
#define REPLICATES    200
#define SPREAD_MIN    2.0 /* of the largest value to the smallest: less tells no exponent */
#define EXPLAINED_MIN 0.8

struct sums {
	double weight, x, y, xx, xy, yy;
};

static void add(struct sums *sums, double x, double y, double weight)
{
	sums->weight += weight;
	sums->x += weight * x;
	sums->y += weight * y;
	sums->xx += weight * x * x;
	sums->xy += weight * x * y;
	sums->yy += weight * y * y;
}

/* The share of y's variance that a line over x explains: with a falling line, none. */
static double explained(const struct sums *sums)
{
	double w = sums->weight, xx = sums->xx - sums->x * sums->x / w, xy = sums->xy - sums->x * sums->y / w,
	       yy = sums->yy - sums->y * sums->y / w;

	return xx > 0 && yy > 0 && xy > 0 ? xy * xy / xx / yy : 0;
}

struct grid {
	size_t cnt;
	double *powers;  /* EXPONENT_CNT of each point */
	double *latency; /* in units of the largest one */
	double *weights;
	double *draws; /* how often each point is in a replicate */
};

static double exponent_at(int step)
{
	return EXPONENT_MIN + EXPONENT_STEP * step;
}

static double best_exponent(const struct grid *grid, double *share)
{
	double best = NAN;

	*share = 0;
	for (int step = 0; step < EXPONENT_CNT; step++) {
		struct sums sums = {0};
		double of_step;

		for (size_t i = 0; i < grid->cnt; i++)
			if (grid->draws[i] > 0)
				add(&sums, grid->powers[i * EXPONENT_CNT + (size_t)step], grid->latency[i],
				    grid->weights[i] * grid->draws[i]);
		of_step = sums.weight > 0 ? explained(&sums) : 0;
		if (of_step > *share) {
			*share = of_step;
			best = exponent_at(step);
		}
	}
	return best;
}

static struct ci confidence(struct grid *grid, uint64_t seed)
{
	double exponents[REPLICATES], share;
	size_t cnt = 0;

	for (int r = 0; r < REPLICATES; r++) {
		for (size_t i = 0; i < grid->cnt; i++)
			grid->draws[i] = 0;
		for (size_t i = 0; i < grid->cnt; i++)
			grid->draws[random_next(&seed) % grid->cnt]++;
		exponents[cnt] = best_exponent(grid, &share);
		cnt += !isnan(exponents[cnt]);
	}
	if (cnt < REPLICATES / 2)
		return (struct ci){NAN, NAN};
	qsort(exponents, cnt, sizeof(exponents[0]), compare_doubles);
	return (struct ci){exponents[cnt * 25 / 1000], exponents[cnt - 1 - cnt * 25 / 1000]};
}

/* Scaled so that powers stay small. */
static void fill(struct grid *grid, const struct value_fit_point *points, size_t cnt, size_t stride, double most,
		 double longest)
{
	for (size_t i = 0; i < cnt && grid->cnt < POINTS_MAX; i += stride) {
		size_t at = grid->cnt;

		if (!(points[i].value > 0))
			continue;
		for (int step = 0; step < EXPONENT_CNT; step++)
			grid->powers[at * EXPONENT_CNT + (size_t)step] = pow(points[i].value / most, exponent_at(step));
		grid->latency[at] = points[i].latency_ns / longest;
		grid->weights[at] = points[i].weight;
		grid->draws[at] = 1;
		grid->cnt++;
	}
}

int value_fit(struct value_fit *fit, const struct value_fit_point *points, size_t cnt, uint64_t seed)
{
	double most = 0, least = INFINITY, longest = 0;
	struct grid grid = {0};
	size_t positive = 0;
	int err = -ENOMEM;

	*fit = (struct value_fit){NAN, {NAN, NAN}, NAN};
	for (size_t i = 0; i < cnt; i++) {
		if (!(points[i].value > 0) || !isfinite(points[i].value))
			continue;
		positive++;
		most = fmax(most, points[i].value);
		least = fmin(least, points[i].value);
		longest = fmax(longest, points[i].latency_ns);
	}
	/* Values that are zero or less have no power that tells anything. */
	if (positive < POINTS_MIN || positive * 10 < cnt * 9 || most < SPREAD_MIN * least || !(longest > 0))
		return 0;
	grid.powers = malloc(POINTS_MAX * EXPONENT_CNT * sizeof(*grid.powers));
	grid.latency = malloc(POINTS_MAX * sizeof(*grid.latency));
	grid.weights = malloc(POINTS_MAX * sizeof(*grid.weights));
	grid.draws = malloc(POINTS_MAX * sizeof(*grid.draws));
	if (grid.powers && grid.latency && grid.weights && grid.draws) {
		fill(&grid, points, cnt, cnt / POINTS_MAX + 1, most, longest);
		fit->exponent = best_exponent(&grid, &fit->explained);
		if (fit->explained < EXPLAINED_MIN)
			fit->exponent = NAN;
		else
			fit->exponent_ci = confidence(&grid, seed);
		err = 0;
	}
	free(grid.powers);
	free(grid.latency);
	free(grid.weights);
	free(grid.draws);
	return err;
}
