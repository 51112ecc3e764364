// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/cdf_fit.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

static struct cdf_fit *fit_new(void)
{
	struct cdf_fit *fit = calloc(1, sizeof(*fit));

	CU_ASSERT_PTR_NOT_NULL_FATAL(fit);
	return fit;
}

static void a_row_that_straddles_two_ranges_is_split(void)
{
	struct cdf_fit *fit = fit_new();

	/* Three rows in two ranges: [1, 1, 2) and (2, 3, 3] in sixths. */
	cdf_fit__begin(fit, 2, 3, 0.99);
	for (uint64_t value = 1; value <= 3; value++)
		cdf_fit__add(fit, value, 1);
	CU_ASSERT_EQUAL(fit->line_cnt, 2);
	ASSERT_NEAR(fit->lines[0].mean, 4.0 / 3);
	ASSERT_NEAR(fit->lines[1].mean, 8.0 / 3);
	ASSERT_NEAR(fit->lines[0].syy, 2.0 / 3 / 9 + 1.0 / 3 * 4 / 9);
	ASSERT_NEAR(fit->lines[0].sxy, 1.0 / 9); /* ½·t·(1-t) for a step of 1 at t = 2/3 */
	CU_ASSERT_EQUAL(fit->lines[0].last, 2);
	CU_ASSERT_EQUAL(fit->lines[1].last, 3);
	free(fit);
}

static void zeros_then_values_have_their_joint_where_the_zeros_end(void)
{
	struct cdf_fit *fit = fit_new();
	double percentile, value;
	bool flat;

	cdf_fit__begin(fit, 1000, 1000, 0.99);
	cdf_fit__add(fit, 0, 980);
	cdf_fit__add(fit, 500, 20);
	cdf_fit__end(fit);
	CU_ASSERT_EQUAL(fit->line_cnt, 2);
	CU_ASSERT_TRUE(cdf_fit__joint(fit, &percentile, &value, &flat));
	ASSERT_NEAR(percentile, 0.98);
	CU_ASSERT_EQUAL(value, 0);
	CU_ASSERT_EQUAL(fit->target_value, 500);
	CU_ASSERT_EQUAL(fit->target_below, 0);

	/* Fewer values than the tail: below the target there is one line, and the target's own quantile is 0. */
	cdf_fit__begin(fit, 1000, 1000, 0.99);
	cdf_fit__add(fit, 0, 995);
	cdf_fit__add(fit, 500, 5);
	cdf_fit__end(fit);
	CU_ASSERT_FALSE(cdf_fit__joint(fit, &percentile, &value, &flat));
	CU_ASSERT_EQUAL(fit->target_value, 0);
	free(fit);
}

static void of_several_steps_the_nearest_below_the_target_is_taken(void)
{
	struct cdf_fit *fit = fit_new();
	double percentile, value;
	bool flat;

	for (int large = 0; large < 2; large++) {
		uint64_t base = large ? 1000000000000000ULL : 0;

		cdf_fit__begin(fit, 1000, 100000, 0.99);
		cdf_fit__add(fit, base + 10, 50000);
		cdf_fit__add(fit, base + 20, 40000);
		cdf_fit__add(fit, base + 30, 7000);
		cdf_fit__add(fit, base + 50, 2500);
		cdf_fit__add(fit, base + 90, 500);
		cdf_fit__end(fit);
		CU_ASSERT_EQUAL(fit->line_cnt, 5);
		CU_ASSERT_TRUE(cdf_fit__joint(fit, &percentile, &value, &flat));
		ASSERT_NEAR(percentile, 0.97);
		CU_ASSERT_EQUAL(value, (double)(base + 30));
	}
	fit->target = 0.9; /* a joint at the target itself is not below it */
	CU_ASSERT_TRUE(cdf_fit__joint(fit, &percentile, &value, &flat));
	ASSERT_NEAR(percentile, 0.5);
	free(fit);
}

static void one_straight_line_has_no_joint(void)
{
	struct cdf_fit *fit = fit_new();
	double percentile, value;
	bool flat;

	cdf_fit__begin(fit, 1000, 100, 0.99);
	cdf_fit__add(fit, 77, 100);
	cdf_fit__end(fit);
	CU_ASSERT_EQUAL(fit->line_cnt, 1);
	CU_ASSERT_FALSE(cdf_fit__joint(fit, &percentile, &value, &flat));

	cdf_fit__begin(fit, 1000, 100000, 0.99);
	for (uint64_t v = 0; v < 100000; v++)
		cdf_fit__add(fit, 3 * v, 1);
	cdf_fit__end(fit);
	CU_ASSERT_EQUAL(fit->line_cnt, 1);
	CU_ASSERT_EQUAL(fit->target_value, 3 * 98999);
	free(fit);
}

static void two_slopes_meet_in_one_joint(void)
{
	struct cdf_fit *fit = fit_new();
	double percentile, value;
	bool flat;

	cdf_fit__begin(fit, 1000, 100000, 0.99);
	for (uint64_t v = 0; v < 100000; v++)
		cdf_fit__add(fit, v < 90000 ? v : 90000 + 50 * (v - 90000), 1);
	cdf_fit__end(fit);
	CU_ASSERT_EQUAL(fit->line_cnt, 2);
	CU_ASSERT_TRUE(cdf_fit__joint(fit, &percentile, &value, &flat));
	CU_ASSERT_DOUBLE_EQUAL(percentile, 0.9, 0.01);
	free(fit);
}

static void an_exponential_bends_more_and_more(void)
{
	struct cdf_fit *fit = fit_new();
	double percentile, value;
	bool flat;

	cdf_fit__begin(fit, 1000, 200000, 0.99);
	for (int i = 0; i < 200000; i++)
		cdf_fit__add(fit, (uint64_t)(-1e6 * log(1 - (i + 0.5) / 200000)), 1);
	cdf_fit__end(fit);
	CU_ASSERT(fit->line_cnt >= 3 && fit->line_cnt <= 40);
	CU_ASSERT_TRUE(cdf_fit__joint(fit, &percentile, &value, &flat));
	CU_ASSERT(percentile >= 0.8 && percentile < 0.99);
	CU_ASSERT_DOUBLE_EQUAL(value, -1e6 * log(1 - percentile), 1e3);
	for (uint32_t i = 1; i < fit->line_cnt; i++)
		CU_ASSERT_EQUAL(fit->lines[i].begin, fit->lines[i - 1].end);
	CU_ASSERT_EQUAL(fit->lines[fit->line_cnt - 1].end, 1000);
	free(fit);
}

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void noise_makes_few_joints(void)
{
	struct cdf_fit *fit = fit_new();
	uint64_t *values = calloc(100000, sizeof(*values)), state = 3;

	CU_ASSERT_PTR_NOT_NULL_FATAL(values);
	for (size_t i = 0; i < 100000; i++)
		values[i] = (uint64_t)(fixture_uniform(&state) * 1e9);
	qsort(values, 100000, sizeof(*values), compare_values);
	cdf_fit__begin(fit, cdf_fit_range_cnt(100000), 100000, 0.99);
	for (size_t i = 0; i < 100000; i++)
		cdf_fit__add(fit, values[i], 1);
	cdf_fit__end(fit);
	CU_ASSERT(fit->line_cnt <= 10);
	CU_ASSERT_EQUAL(cdf_fit_range_cnt(0), 1);
	CU_ASSERT_EQUAL(cdf_fit_range_cnt(50), 5);
	CU_ASSERT_EQUAL(cdf_fit_range_cnt(500), 10);
	CU_ASSERT_EQUAL(cdf_fit_range_cnt(100000), 500);
	CU_ASSERT_EQUAL(cdf_fit_range_cnt(5000000), 1000);
	free(values);
	free(fit);
}

static void a_weight_is_as_many_rows(void)
{
	struct cdf_fit *weighted = fit_new(), *repeated = fit_new();
	uint64_t state = 11, value = 0, total = 0;
	uint32_t weights[400];

	for (size_t i = 0; i < 400; i++)
		total += weights[i] = 1 + (uint32_t)(fixture_uniform(&state) * 5);
	cdf_fit__begin(weighted, 50, (double)total, 0.95);
	cdf_fit__begin(repeated, 50, (double)total, 0.95);
	for (size_t i = 0; i < 400; i++) {
		value += (uint64_t)(fixture_exponential(&state) * (i < 300 ? 10 : 1000));
		cdf_fit__add(weighted, value, weights[i]);
		for (uint32_t k = 0; k < weights[i]; k++)
			cdf_fit__add(repeated, value, 1);
	}
	cdf_fit__end(weighted);
	cdf_fit__end(repeated);
	CU_ASSERT_EQUAL_FATAL(weighted->line_cnt, repeated->line_cnt);
	for (uint32_t i = 0; i < weighted->line_cnt; i++) {
		CU_ASSERT_EQUAL(weighted->lines[i].begin, repeated->lines[i].begin);
		CU_ASSERT_DOUBLE_EQUAL(weighted->lines[i].mean, repeated->lines[i].mean, 1e-6);
		CU_ASSERT_EQUAL(weighted->lines[i].last, repeated->lines[i].last);
	}
	CU_ASSERT_EQUAL(weighted->target_value, repeated->target_value);
	free(weighted);
	free(repeated);
}

struct atom {
	uint64_t value;
	double weight;
};

/*
 * Brute force: of the steps between the atoms, each where the weights of those before it sum to, the one nearest to the
 * target from below, or false.
 */
static bool nearest_step(const struct atom *atoms, size_t cnt, double target, double *percentile, double *value)
{
	double total = 0, sum = 0;
	bool found = false;

	for (size_t i = 0; i < cnt; i++)
		total += atoms[i].weight;
	for (size_t i = 0; i + 1 < cnt; i++) {
		sum += atoms[i].weight;
		if (sum / total >= target - 1e-9)
			break;
		*percentile = sum / total;
		*value = (double)atoms[i].value;
		found = true;
	}
	return found;
}

/* The atoms as rows: each as one row of its weight, as rows of weight 1, or as rows of random weights. */
static void add_atoms(struct cdf_fit *fit, const struct atom *atoms, size_t cnt, int weights, uint64_t *state)
{
	for (size_t i = 0; i < cnt; i++)
		for (double left = atoms[i].weight, w; left > 0; left -= w) {
			w = weights == 0 ? left : weights == 1 ? 1 : 1 + floor(fixture_uniform(state) * 20);
			w = w < left ? w : left;
			cdf_fit__add(fit, atoms[i].value, w);
		}
}

static void random_steps_are_found_where_they_are(void)
{
	static const double targets[] = {0.25, 0.5, 0.9, 0.99};
	struct cdf_fit *fit = fit_new();
	uint64_t state = 77;

	for (int round = 0; round < 2000; round++) {
		double target = targets[round % 4], expected_at = 0, expected = 0, at = 0, value = 0, total = 0;
		size_t cnt = 2 + (size_t)(fixture_uniform(&state) * 4);
		uint32_t range_cnt = round % 3 ? 500 : 50;
		struct atom atoms[8];
		bool found, flat = false;

		/* Each fills two ranges at least, so that no range has more than one step. */
		for (size_t i = 0; i < cnt; i++) {
			atoms[i].value = (i ? atoms[i - 1].value + 1 : 0) + (uint64_t)(fixture_uniform(&state) * 1000);
			atoms[i].weight = floor(10000 * fixture_uniform(&state)) + 2.0 * 60000 / range_cnt;
			total += atoms[i].weight;
		}
		cdf_fit__begin(fit, range_cnt, total, target);
		add_atoms(fit, atoms, cnt, round / 4 % 3, &state);
		cdf_fit__end(fit);
		found = nearest_step(atoms, cnt, target, &expected_at, &expected);
		CU_ASSERT_EQUAL_FATAL(cdf_fit__joint(fit, &at, &value, &flat), found);
		if (!found)
			continue;
		CU_ASSERT_DOUBLE_EQUAL_FATAL(at, expected_at, 1e-6);
		CU_ASSERT_EQUAL_FATAL(value, expected);
		CU_ASSERT_TRUE(flat);
	}
	free(fit);
}

int suite_cdf_fit(void)
{
	static const struct unit_test tests[] = {
		{"a row that straddles two ranges is split", a_row_that_straddles_two_ranges_is_split},
		{"zeros, then values: the joint is where the zeros end",
		 zeros_then_values_have_their_joint_where_the_zeros_end},
		{"of several steps the nearest below the target is taken",
		 of_several_steps_the_nearest_below_the_target_is_taken},
		{"one straight line has no joint", one_straight_line_has_no_joint},
		{"two slopes meet in one joint", two_slopes_meet_in_one_joint},
		{"an exponential bends more and more", an_exponential_bends_more_and_more},
		{"noise makes few joints", noise_makes_few_joints},
		{"a weight is as many rows", a_weight_is_as_many_rows},
		{"random steps are found where they are", random_steps_are_found_where_they_are},
	};

	return unit_suite("analysis: cdf_fit", tests, sizeof(tests) / sizeof(tests[0]));
}
