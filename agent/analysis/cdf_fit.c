// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/cdf_fit.h"

#include <math.h>

/*
 * The order statistics of m rows of one straight piece wander about their line like a random walk, which leaves
 * R² ≈ 1 - 1.6 / m for one of two neighbours under their joint line, and a good deal less now and then.  With fifty
 * rows a range a fifth of all merges fail by chance, with two hundred hardly any.  Wider ranges lose little: the
 * threshold is the value below a joint, and a step that lies within a range makes a joint at its lower end.  Small
 * samples get a few ranges all the same, for their steps.
 */
#define ROWS_PER_RANGE 200
#define RANGES_FEW     10

uint32_t cdf_fit_range_cnt(size_t row_cnt)
{
	size_t cnt = row_cnt / ROWS_PER_RANGE;

	if (cnt < RANGES_FEW)
		cnt = row_cnt / RANGES_FEW < RANGES_FEW ? row_cnt / RANGES_FEW : RANGES_FEW;
	return cnt < 1 ? 1 : cnt > CDF_RANGES_MAX ? CDF_RANGES_MAX : (uint32_t)cnt;
}

void cdf_fit__begin(struct cdf_fit *fit, uint32_t range_cnt, double total_weight, double target)
{
	fit->line_cnt = 0;
	fit->range_cnt = range_cnt;
	fit->total_weight = total_weight;
	fit->target = target;
	fit->target_value = NAN;
	fit->target_below = fit->below = NAN;
	fit->open_cnt = 0;
	fit->weight = fit->pos = fit->last_from = 0;
	fit->first = fit->last = fit->sy = fit->syy = fit->sxy = 0;
}

/*
 * x runs over [0, range_cnt], so a range is one wide, its middle is at ½ and ∫(x - ½)² = 1/12: only the sums of y have
 * to be kept.  They are taken of d = y - (first value of the range), so large values do not cancel, and a range of one
 * single value has syy = sxy = 0 exactly.
 */
static void close_range(struct cdf_fit *fit, double last)
{
	double syy = fit->syy - fit->sy * fit->sy;

	fit->lines[fit->line_cnt] = (struct cdf_line){
		.begin = fit->line_cnt,
		.end = fit->line_cnt + 1,
		.mean = fit->first + fit->sy,
		.syy = syy > 0 ? syy : 0,
		.sxy = fit->sxy,
		.last = last,
		.from = fit->last_from,
		.below = fit->below,
	};
	fit->line_cnt++;
	fit->sy = fit->syy = fit->sxy = 0;
}

/* Lines that ended in `last` learn where it ends. */
static void end_value(struct cdf_fit *fit)
{
	for (; fit->open_cnt < fit->line_cnt; fit->open_cnt++)
		fit->lines[fit->open_cnt].to = fit->pos;
}

void cdf_fit__add(struct cdf_fit *fit, uint64_t value, double weight)
{
	double y = (double)value, end, from, to, d, part;

	fit->weight += weight;
	end = fit->weight / fit->total_weight * fit->range_cnt;
	/* A boundary missed by rounding would leave a sliver of the next value in a range that is flat. */
	if (fabs(end - rint(end)) < 1e-7)
		end = rint(end);
	if (y > fit->last && fit->pos > 0) {
		end_value(fit);
		fit->below = fit->last;
		fit->last_from = fit->pos;
	}
	fit->last = y;
	if (isnan(fit->target_value) && end >= fit->target * fit->range_cnt - 1e-7) {
		fit->target_value = y;
		fit->target_below = fit->below;
	}
	while (fit->pos < end && fit->line_cnt < fit->range_cnt) {
		from = fit->pos - fit->line_cnt;
		to = end - fit->line_cnt < 1 ? end - fit->line_cnt : 1;
		if (from <= 0)
			fit->first = y;
		d = y - fit->first;
		part = to - from;
		fit->sy += part * d;
		fit->syy += part * d * d;
		fit->sxy += part * ((from + to) / 2 - 0.5) * d;
		fit->pos = fit->line_cnt + to;
		if (to >= 1)
			close_range(fit, y);
	}
}

/* Both pieces as one, by the pairwise update of Chan, Golub and LeVeque (1979): only differences of means enter. */
static struct cdf_line join(const struct cdf_line *a, const struct cdf_line *b)
{
	double na = a->end - a->begin, nb = b->end - b->begin, n = na + nb;
	double dx = n / 2, dy = b->mean - a->mean;

	return (struct cdf_line){
		.begin = a->begin,
		.end = b->end,
		.mean = a->mean + dy * (nb / n),
		.syy = a->syy + b->syy + dy * dy * (na * nb / n),
		.sxy = a->sxy + b->sxy + dx * dy * (na * nb / n),
		.last = b->last,
		.from = b->from,
		.to = b->to,
		.below = b->below,
	};
}

/*
 * R² of one piece under the joint line y = Y + slope·(x - X):
 *   SSE = ∫(y - mean - slope·(x - middle))² + n·(mean - Y - slope·(middle - X))²
 *       = syy - 2·slope·sxy + slope²·n³/12  + n·(…)²,      R² = 1 - SSE / syy.
 * A flat piece has syy = 0: only the very same flat line explains it.
 */
static bool explains(const struct cdf_line *joint, const struct cdf_line *piece)
{
	double n = piece->end - piece->begin, m = joint->end - joint->begin;
	double slope = joint->sxy * 12 / (m * m * m);
	double off = piece->mean - joint->mean -
		     slope * ((piece->begin + piece->end) / 2.0 - (joint->begin + joint->end) / 2.0);
	double sse = piece->syy - 2 * slope * piece->sxy + slope * slope * n * n * n / 12 + n * off * off;

	if (piece->syy <= 0)
		return sse <= 0;
	return sse < (1 - CDF_R2_MIN) * piece->syy;
}

/*
 * In rounds, each piece once a round, so that neighbours of like size meet: a short piece under the line of a long one
 * would be held to an accuracy that the noise of the long one does not have.
 */
static bool merge_round(struct cdf_fit *fit)
{
	uint32_t kept = 0, cnt = fit->line_cnt;

	for (uint32_t i = 0; i < cnt; i++) {
		if (i + 1 < cnt) {
			struct cdf_line joint = join(&fit->lines[i], &fit->lines[i + 1]);

			if (explains(&joint, &fit->lines[i]) && explains(&joint, &fit->lines[i + 1])) {
				fit->lines[kept++] = joint;
				i++;
				continue;
			}
		}
		fit->lines[kept++] = fit->lines[i];
	}
	fit->line_cnt = kept;
	return kept < cnt;
}

void cdf_fit__end(struct cdf_fit *fit)
{
	/* Rounding of the sum of weights may leave the last range open by a hair. */
	if (fit->line_cnt < fit->range_cnt && fit->pos > fit->line_cnt)
		close_range(fit, fit->last);
	end_value(fit);
	while (merge_round(fit))
		;
}

/*
 * The upper end of the line, moved to the nearer end of the value that it falls into: as far as the target, which a
 * joint has to lie below.  At 0 nothing is below the joint.
 */
static double joint_of(const struct cdf_fit *fit, const struct cdf_line *line, double *value)
{
	double target = (fit->target - 1e-9) * fit->range_cnt;

	if (line->to < target && line->to - line->end <= line->end - line->from) {
		*value = line->last;
		return line->to;
	}
	*value = line->below;
	return line->from;
}

bool cdf_fit__joint(const struct cdf_fit *fit, double *percentile, double *value, bool *flat)
{
	for (uint32_t i = fit->line_cnt; i-- > 1;) {
		double joint;

		if ((double)fit->lines[i].begin / fit->range_cnt >= fit->target - 1e-9)
			continue;
		joint = joint_of(fit, &fit->lines[i - 1], value);
		if (joint <= 0)
			continue;
		*percentile = joint / fit->range_cnt;
		/* The range with values of both sides may be the one above. */
		if (i + 1 < fit->line_cnt && fit->lines[i].end - fit->lines[i].begin == 1 && fit->lines[i].syy > 0)
			i++;
		*flat = fit->lines[i].syy <= 0;
		return true;
	}
	return false;
}
