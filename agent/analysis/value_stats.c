// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_stats.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define SETS_MAX 16
/* The variance of the statistic is defined from here on. */
#define SAMPLES_MIN 4
/* Values that normal requests do not have at all are an anomaly if the slow ones have them so often. */
#define ONLY_SLOW_MIN 5

ORDER(compare_points, struct value_point, BY(a->value, b->value));

static void sort(struct value_set *set)
{
	for (size_t i = 1; i < set->cnt; i++) {
		if (set->points[i].value < set->points[i - 1].value) {
			qsort(set->points, set->cnt, sizeof(*set->points), compare_points);
			return;
		}
	}
}

/* So many samples the set counts as, and by how much a weight is multiplied for it. */
static double effective_size(const struct value_set *set, double *scale)
{
	double sum = 0, squares = 0, size;

	for (size_t i = 0; i < set->cnt; i++) {
		sum += set->points[i].weight;
		squares += set->points[i].weight * set->points[i].weight;
	}
	size = squares > 0 ? sum * sum / squares : 0;
	if (set->effective > 0 && set->effective < size)
		size = set->effective;
	*scale = sum > 0 ? size / sum : 0;
	return size;
}

/* --- Anderson-Darling --------------------------------------------------------------------------------------------- */

struct walk {
	const struct value_set *sets;
	size_t cnt;
	size_t next[SETS_MAX];
	double size[SETS_MAX], scale[SETS_MAX];
	double below[SETS_MAX]; /* weight of the values below the one under way */
	double at[SETS_MAX];    /* and of those equal to it */
};

/* The next distinct value of all sets: false at the end. */
static bool walk_next(struct walk *walk, double *weight)
{
	double least = INFINITY;
	bool any = false;

	*weight = 0;
	for (size_t i = 0; i < walk->cnt; i++) {
		walk->below[i] += walk->at[i];
		walk->at[i] = 0;
		if (walk->next[i] == walk->sets[i].cnt)
			continue;
		if (!any || walk->sets[i].points[walk->next[i]].value < least)
			least = walk->sets[i].points[walk->next[i]].value;
		any = true;
	}
	for (size_t i = 0; any && i < walk->cnt; i++) {
		while (walk->next[i] < walk->sets[i].cnt && walk->sets[i].points[walk->next[i]].value <= least)
			walk->at[i] += walk->sets[i].points[walk->next[i]++].weight * walk->scale[i];
		*weight += walk->at[i];
	}
	return any;
}

/* Scholz and Stephens (1987), equations 6 and 7: the sum before it is standardised. */
static double sum_of(struct walk *walk, double total, bool midrank, size_t *distinct)
{
	double sum = 0, below = 0, weight;

	*distinct = 0;
	while (walk_next(walk, &weight)) {
		double upto = midrank ? below + weight / 2 : below + weight;
		double spread = midrank ? upto * (total - upto) - total * weight / 4 : upto * (total - upto);

		++*distinct;
		below += weight;
		/* The last value tells nothing in the right-continuous form. */
		if (spread <= 1e-14 * total * total)
			continue;
		for (size_t i = 0; i < walk->cnt; i++) {
			double own = walk->below[i] + (midrank ? walk->at[i] / 2 : walk->at[i]);
			double off = total * own - upto * walk->size[i];

			sum += weight / total * off * off / spread / walk->size[i];
		}
	}
	return midrank ? sum * (total - 1) / total : sum;
}

/* The variance of the sum where all sets are of one distribution: equation 4. */
static double variance_of(const struct walk *walk, double total)
{
	double k = (double)walk->cnt, inverse = 0, g = 0, h = 1, harmonic = 0, a, b, c, d, n;
	size_t cnt = (size_t)(total + 0.5);

	for (size_t i = 0; i < walk->cnt; i++)
		inverse += 1 / walk->size[i];
	/* Σ over i of 1/((N - i) j), i from 1 to N - 2, j from i + 1 to N - 1 */
	for (size_t i = 1; i + 1 < cnt; i++) {
		harmonic += 1 / (double)(cnt - i);
		g += harmonic / (double)(i + 1);
	}
	h += harmonic;
	n = (double)cnt;
	a = (4 * g - 6) * (k - 1) + (10 - 6 * g) * inverse;
	b = (2 * g - 4) * k * k + 8 * h * k + (2 * g - 14 * h - 4) * inverse - 8 * h + 4 * g - 6;
	c = (6 * h + 2 * g - 2) * k * k + (4 * h - 4 * g + 6) * k + (2 * h - 6) * inverse + 4 * h;
	d = (2 * h + 6) * k * k - 4 * h * k;
	return (a * n * n * n + b * n * n + c * n + d) / ((n - 1) * (n - 2) * (n - 3));
}

double value_anderson_darling(struct value_set *sets, size_t set_cnt, bool midrank)
{
	struct walk walk = {.sets = sets, .cnt = set_cnt};
	double total = 0, sum, variance;
	size_t distinct;

	if (set_cnt < 2 || set_cnt > SETS_MAX)
		return NAN;
	for (size_t i = 0; i < set_cnt; i++) {
		sort(&sets[i]);
		walk.size[i] = effective_size(&sets[i], &walk.scale[i]);
		if (!(walk.size[i] > 0))
			return NAN;
		total += walk.size[i];
	}
	if (total + 0.5 < SAMPLES_MIN)
		return NAN;
	sum = sum_of(&walk, total, midrank, &distinct);
	variance = variance_of(&walk, total);
	return distinct < 2 || !(variance > 0) ? NAN : (sum - (double)(set_cnt - 1)) / sqrt(variance);
}

double value_anderson_darling_critical(size_t set_cnt)
{
	double m = (double)set_cnt - 1;

	/* Table 2, at 5 % */
	return 1.645 + 0.678 / sqrt(m) - 0.362 / m;
}

/* --- Hellinger ---------------------------------------------------------------------------------------------------- */

static size_t distinct_values(const struct walk *from)
{
	struct walk walk = *from;
	size_t cnt = 0;
	double weight;

	while (walk_next(&walk, &weight))
		cnt++;
	return cnt;
}

double value_hellinger(struct value_set *a, struct value_set *b)
{
	struct value_set sets[2] = {*a, *b};
	struct walk walk = {.sets = sets, .cnt = 2};
	double of_a = 0, of_b = 0, alike = 0, weight, class_weight;

	for (int i = 0; i < 2; i++) {
		sort(&sets[i]);
		if (!(effective_size(&sets[i], &walk.scale[i]) > 0))
			return NAN;
		/* Of each set the weights sum to 1. */
		walk.scale[i] = 0;
		for (size_t p = 0; p < sets[i].cnt; p++)
			walk.scale[i] += sets[i].points[p].weight;
		walk.scale[i] = 1 / walk.scale[i];
	}
	class_weight = distinct_values(&walk) > VALUE_CLASSES_MAX ? 2.0 / VALUE_CLASSES_MAX : 0;
	while (walk_next(&walk, &weight)) {
		of_a += walk.at[0];
		of_b += walk.at[1];
		if (of_a + of_b < class_weight)
			continue;
		alike += sqrt(of_a * of_b);
		of_a = of_b = 0;
	}
	alike += sqrt(of_a * of_b);
	return sqrt(fmax(0, 1 - alike));
}

double value_uniform_distance(struct value_set *set)
{
	double most = set->cnt ? 0 : NAN, n = (double)set->cnt;

	sort(set);
	for (size_t i = 0; i < set->cnt; i++) {
		double at = fmin(1, fmax(0, set->points[i].value));

		most = fmax(most, fmax((double)(i + 1) / n - at, at - (double)i / n));
	}
	return most;
}

double value_discount(struct value_set *normal, struct value_set *slow)
{
	struct value_set sets[2] = {*normal, *slow};
	double statistic, ratio;

	if (!slow->cnt)
		return NAN;
	if (!normal->cnt) {
		double scale;

		return effective_size(slow, &scale) >= ONLY_SLOW_MIN ? 0 : VALUE_DEFAULT_DISCOUNT;
	}
	statistic = value_anderson_darling(sets, 2, true);
	if (!(statistic > value_anderson_darling_critical(2)))
		return VALUE_DEFAULT_DISCOUNT;
	ratio = 1 - value_hellinger(normal, slow);
	return ratio < VALUE_VALID_DISCOUNT ? 0 : ratio;
}
