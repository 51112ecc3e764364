// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/shares.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct breakdown_line *line_of(const struct report *report, enum wl_category category)
{
	for (int i = 0; i < WL_CATEGORY_CNT; i++)
		if (report->breakdown[i].category == category)
			return &report->breakdown[i];
	CU_FAIL_FATAL("a category is not in the breakdown");
	return NULL;
}

static void make(struct report *report, struct analysis_fixture *fixture, double tail)
{
	const struct report_opts opts = {.tail = tail, .bootstrap_cnt = 100, .seed = 5};

	CU_ASSERT_EQUAL_FATAL(report_make(report, &fixture->dataset, &opts), 0);
}

static void shares_by_hand(void)
{
	static const uint64_t oncpu[] = {4, 4, 4, 2}, runq[] = {0, 0, 0, 8};
	struct analysis_fixture fixture;
	struct report report;

	/* L = 4 4 4 10, mean 5.5, Var = (3·2.25 + 20.25) / 4 = 6.75 */
	analysis_fixture_init(&fixture, 4);
	for (size_t i = 0; i < 4; i++) {
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, oncpu[i]);
		fixture_add(&fixture, i, WL_CATEGORY_RUNQ, runq[i]);
	}
	fixture.dataset.category_unmeasured[WL_CATEGORY_THROTTLED] = true;
	make(&report, &fixture, 0.9);
	ASSERT_NEAR(report.latency.variance_ns2, 6.75);
	ASSERT_NEAR(report.tail_threshold_ns, 10);
	/* Cov(runq, L) = (3·(-2)·(-1.5) + 6·4.5) / 4 = 9; Cov(oncpu, L) = (3·0.5·(-1.5) - 1.5·4.5) / 4 = -2.25 */
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_RUNQ)->variance_share, 4.0 / 3);
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_ONCPU)->variance_share, -1.0 / 3);
	/* Late is the last row, typical the others: 8 - 0 and 2 - 4 over 10 - 4. */
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_RUNQ)->tail_share, 8.0 / 6);
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_ONCPU)->tail_share, -2.0 / 6);
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_RUNQ)->late_ns, 8);
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_ONCPU)->typical_ns, 4);
	ASSERT_NEAR(line_of(&report, WL_CATEGORY_LOCK)->tail_share, 0);
	CU_ASSERT_EQUAL(report.breakdown[0].category, WL_CATEGORY_RUNQ);
	CU_ASSERT_EQUAL(report.breakdown[WL_CATEGORY_CNT - 1].category, WL_CATEGORY_THROTTLED);
	CU_ASSERT_FALSE(report.breakdown[WL_CATEGORY_CNT - 1].measured);
	CU_ASSERT(isnan(report.breakdown[WL_CATEGORY_CNT - 1].tail_share));
	CU_ASSERT(isnan(report.breakdown[WL_CATEGORY_CNT - 1].variance_share));
	report_free(&report);
	analysis_fixture_free(&fixture);
}

static void fill_random(struct analysis_fixture *fixture, size_t row_cnt, uint64_t seed)
{
	uint64_t state = seed;

	analysis_fixture_init(fixture, row_cnt);
	for (size_t i = 0; i < row_cnt; i++) {
		fixture->dataset.weight[i] = 1 + floor(fixture_uniform(&state) * 4);
		for (int c = 0; c < WL_CATEGORY_CNT; c += 2)
			fixture_add(fixture, i, c, (uint64_t)(fixture_exponential(&state) * 1000 * (c + 1)));
	}
}

static void shares_sum_to_one(void)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct analysis_fixture fixture;
		struct report report;
		double variance = 0, tail = 0, mean = 0;

		fill_random(&fixture, 300 * seed, seed);
		make(&report, &fixture, 0.95);
		for (int i = 0; i < WL_CATEGORY_CNT; i++) {
			variance += report.breakdown[i].variance_share;
			tail += report.breakdown[i].tail_share;
			mean += report.breakdown[i].mean_ns;
			CU_ASSERT(report.breakdown[i].tail_share_ci.lo <= report.breakdown[i].tail_share);
			CU_ASSERT(report.breakdown[i].tail_share_ci.hi >= report.breakdown[i].tail_share);
			if (i)
				CU_ASSERT(report.breakdown[i - 1].tail_share >= report.breakdown[i].tail_share);
		}
		ASSERT_NEAR(variance, 1);
		ASSERT_NEAR(tail, 1);
		CU_ASSERT_DOUBLE_EQUAL(mean, report.latency.mean_ns, 1e-6);
		report_free(&report);
		analysis_fixture_free(&fixture);
	}
}

static void columns_may_change_places(void)
{
	struct analysis_fixture one, other;
	struct report report_one, report_other;

	fill_random(&one, 500, 9);
	fill_random(&other, 500, 9);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		free(other.dataset.category_ns[c]);
		other.dataset.category_ns[c] = one.dataset.category_ns[WL_CATEGORY_CNT - 1 - c];
	}
	make(&report_one, &one, 0.9);
	make(&report_other, &other, 0.9);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		const struct breakdown_line *a = line_of(&report_one, c);
		const struct breakdown_line *b = line_of(&report_other, WL_CATEGORY_CNT - 1 - c);

		ASSERT_NEAR(a->variance_share, b->variance_share);
		ASSERT_NEAR(a->tail_share, b->tail_share);
		ASSERT_NEAR(a->tail_share_ci.lo, b->tail_share_ci.lo);
		ASSERT_NEAR(a->variance_share_ci.hi, b->variance_share_ci.hi);
	}
	report_free(&report_one);
	report_free(&report_other);
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		other.dataset.category_ns[c] = NULL;
	analysis_fixture_free(&one);
	analysis_fixture_free(&other);
}

static void a_weight_is_as_many_rows(void)
{
	struct analysis_fixture weighted, repeated;
	struct report of_weighted, of_repeated;
	size_t total = 0, at = 0;

	fill_random(&weighted, 200, 21);
	for (size_t i = 0; i < 200; i++)
		total += (size_t)weighted.dataset.weight[i];
	analysis_fixture_init(&repeated, total);
	for (size_t i = 0; i < 200; i++)
		for (size_t k = 0; k < (size_t)weighted.dataset.weight[i]; k++, at++)
			for (int c = 0; c < WL_CATEGORY_CNT; c += 2)
				fixture_add(&repeated, at, c, weighted.dataset.category_ns[c][i]);
	make(&of_weighted, &weighted, 0.9);
	make(&of_repeated, &repeated, 0.9);
	ASSERT_NEAR(of_weighted.latency.count, of_repeated.latency.count);
	CU_ASSERT_DOUBLE_EQUAL(of_weighted.latency.mean_ns, of_repeated.latency.mean_ns, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(of_weighted.latency.cov, of_repeated.latency.cov, 1e-9);
	CU_ASSERT_EQUAL(of_weighted.latency.p50_ns, of_repeated.latency.p50_ns);
	CU_ASSERT_EQUAL(of_weighted.latency.p99_ns, of_repeated.latency.p99_ns);
	for (int i = 0; i < WL_CATEGORY_CNT; i++) {
		CU_ASSERT_EQUAL(of_weighted.breakdown[i].category, of_repeated.breakdown[i].category);
		ASSERT_NEAR(of_weighted.breakdown[i].variance_share, of_repeated.breakdown[i].variance_share);
		ASSERT_NEAR(of_weighted.breakdown[i].tail_share, of_repeated.breakdown[i].tail_share);
	}
	report_free(&of_weighted);
	report_free(&of_repeated);
	analysis_fixture_free(&weighted);
	analysis_fixture_free(&repeated);
}

static void what_is_not_defined_is_nan(void)
{
	const struct report_opts opts = {.tail = 0.99}, wrong = {.tail = 0}, nan = {.tail = NAN};
	struct analysis_fixture fixture;
	struct report report;

	for (size_t cnt = 0; cnt <= 50; cnt = cnt ? cnt * 7 + 1 : 1) {
		analysis_fixture_init(&fixture, cnt);
		for (size_t i = 0; i < cnt; i++)
			fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1234567891);
		CU_ASSERT_EQUAL_FATAL(report_make(&report, &fixture.dataset, &opts), 0);
		for (int i = 0; i < WL_CATEGORY_CNT; i++) {
			CU_ASSERT(isnan(report.breakdown[i].variance_share));
			CU_ASSERT(isnan(report.breakdown[i].tail_share));
			CU_ASSERT(isnan(report.breakdown[i].tail_share_ci.lo));
		}
		CU_ASSERT_EQUAL(report.cause_cnt, 0);
		CU_ASSERT(cnt ? report.latency.p99_ns == 1234567891 : isnan(report.latency.p99_ns));
		CU_ASSERT(cnt ? report.latency.variance_ns2 == 0 : isnan(report.latency.variance_ns2));
		CU_ASSERT(isnan(report.records_lost_share));
		report_free(&report);
		CU_ASSERT_NOT_EQUAL(report_make(&report, &fixture.dataset, &wrong), 0);
		CU_ASSERT_NOT_EQUAL(report_make(&report, &fixture.dataset, &nan), 0);
		analysis_fixture_free(&fixture);
	}
}

struct sample {
	size_t row_cnt;
	uint64_t *latency_ns, *parts[2];
	double *weights;
	const uint32_t *windows;
	struct share_rows rows;
};

static void sample_init(struct sample *sample, size_t row_cnt)
{
	sample->row_cnt = row_cnt;
	sample->windows = NULL;
	sample->latency_ns = calloc(row_cnt, sizeof(uint64_t));
	sample->parts[0] = calloc(row_cnt, sizeof(uint64_t));
	sample->parts[1] = calloc(row_cnt, sizeof(uint64_t));
	sample->weights = calloc(row_cnt, sizeof(double));
	CU_ASSERT_FATAL(sample->latency_ns && sample->parts[0] && sample->parts[1] && sample->weights);
}

static void sample_free(struct sample *sample)
{
	free(sample->latency_ns);
	free(sample->parts[0]);
	free(sample->parts[1]);
	free(sample->weights);
}

/* Two independent exponential parts with means 1 and 2 (times 10^6). */
static void sample_draw(struct sample *sample, uint64_t *state)
{
	for (size_t i = 0; i < sample->row_cnt; i++) {
		sample->parts[0][i] = (uint64_t)(fixture_exponential(state) * 1e6);
		sample->parts[1][i] = (uint64_t)(fixture_exponential(state) * 2e6);
		sample->latency_ns[i] = sample->parts[0][i] + sample->parts[1][i];
		sample->weights[i] = 1;
	}
}

static int compare_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void sample_shares(struct sample *sample, struct share_part parts[2], uint64_t seed, uint32_t bootstrap_cnt)
{
	const struct share_opts opts = {.bootstrap_cnt = bootstrap_cnt, .seed = seed};
	uint64_t *sorted = calloc(sample->row_cnt, sizeof(uint64_t));

	CU_ASSERT_PTR_NOT_NULL_FATAL(sorted);
	memcpy(sorted, sample->latency_ns, sample->row_cnt * sizeof(uint64_t));
	qsort(sorted, sample->row_cnt, sizeof(uint64_t), compare_values);
	sample->rows = (struct share_rows){.row_cnt = sample->row_cnt,
					   .latency_ns = sample->latency_ns,
					   .weights = sample->weights,
					   .windows = sample->windows,
					   .median_ns = (double)sorted[(sample->row_cnt - 1) / 2],
					   .late_ns = (double)sorted[sample->row_cnt * 9 / 10 - 1]};
	free(sorted);
	for (int p = 0; p < 2; p++)
		parts[p] = (struct share_part){.values = sample->parts[p], .slot_cnt = 1};
	CU_ASSERT_EQUAL_FATAL(shares_compute(parts, 2, &sample->rows, &opts), 0);
}

/*
 * Var shares are 1/5 and 4/5.  The tail share at p90 comes from 400,000 draws.  Nominal coverage is 95 %;
 * over thousands of such samples it comes out at 95 % and 93 %.
 */
static void intervals_of_confidence_cover_the_truth(void)
{
	struct share_part parts[2];
	struct sample sample;
	uint64_t state = 42;
	int variance_hits = 0, tail_hits = 0;
	double tail_truth;

	sample_init(&sample, 400000);
	sample_draw(&sample, &state);
	sample_shares(&sample, parts, 1, 2);
	tail_truth = parts[0].total.tail_share;
	CU_ASSERT_DOUBLE_EQUAL(parts[0].total.variance_share, 0.2, 0.01);
	sample_free(&sample);

	sample_init(&sample, 1500);
	for (uint64_t round = 0; round < 200; round++) {
		const struct share_line *line = &parts[0].total;

		sample_draw(&sample, &state);
		sample_shares(&sample, parts, round, 200);
		variance_hits += line->variance_share_ci.lo <= 0.2 && line->variance_share_ci.hi >= 0.2;
		tail_hits += line->tail_share_ci.lo <= tail_truth && line->tail_share_ci.hi >= tail_truth;
	}
	CU_ASSERT(variance_hits >= 180);
	CU_ASSERT(tail_hits >= 180);
	sample_free(&sample);
}

static void bursts_make_intervals_wider(void)
{
	struct share_part bursts[2], mixed[2];
	struct sample sample;
	uint64_t state = 8, swap;
	double wide, narrow;
	bool burst = false;

	/* One burst of twenty rows in forty waits in part 1; then the same rows in random order. */
	sample_init(&sample, 8000);
	sample_draw(&sample, &state);
	for (size_t i = 0; i < sample.row_cnt; i++) {
		if (i % 20 == 0)
			burst = fixture_uniform(&state) < 0.025;
		sample.parts[1][i] += burst ? 50000000 : 0;
		sample.latency_ns[i] = sample.parts[0][i] + sample.parts[1][i];
	}
	sample_shares(&sample, bursts, 3, 300);
	for (size_t i = sample.row_cnt - 1; i > 0; i--) {
		size_t j = (size_t)(fixture_uniform(&state) * (double)(i + 1));

		for (int p = 0; p < 2; p++) {
			swap = sample.parts[p][i];
			sample.parts[p][i] = sample.parts[p][j];
			sample.parts[p][j] = swap;
		}
	}
	for (size_t i = 0; i < sample.row_cnt; i++)
		sample.latency_ns[i] = sample.parts[0][i] + sample.parts[1][i];
	sample_shares(&sample, mixed, 3, 300);
	ASSERT_NEAR(bursts[0].total.variance_share, mixed[0].total.variance_share);
	wide = bursts[0].total.variance_share_ci.hi - bursts[0].total.variance_share_ci.lo;
	narrow = mixed[0].total.variance_share_ci.hi - mixed[0].total.variance_share_ci.lo;
	CU_ASSERT(wide > 1.5 * narrow);
	sample_free(&sample);
}

/*
 * Windows of 400 rows, each with a level of its own in part 1: only as many things were drawn as there are windows,
 * and rows taken for the sample would promise far too much.  The share of part 1 is E[Var] + Var[E] of both.
 */
static void windows_are_the_sample(void)
{
	enum { WINDOWS = 40, ROWS = 400, ROUNDS = 100 };
	static uint32_t windows[WINDOWS * ROWS];
	const double level = 3e6, truth = (4e12 + level * level) / (1e12 + 4e12 + level * level);
	struct share_part parts[2];
	struct sample sample;
	uint64_t state = 77;
	int hits = 0, blind_hits = 0;

	sample_init(&sample, WINDOWS * ROWS);
	for (size_t i = 0; i < sample.row_cnt; i++)
		windows[i] = (uint32_t)(1 + i / ROWS);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		const struct ci *ci = &parts[1].total.variance_share_ci;

		sample_draw(&sample, &state);
		for (size_t i = 0, add = 0; i < sample.row_cnt; i++) {
			if (i % ROWS == 0)
				add = (size_t)(fixture_exponential(&state) * level);
			sample.parts[1][i] += add;
			sample.latency_ns[i] += add;
		}
		sample.windows = NULL;
		sample_shares(&sample, parts, round, 200);
		blind_hits += ci->lo <= truth && ci->hi >= truth;
		sample.windows = windows;
		sample_shares(&sample, parts, round, 200);
		hits += ci->lo <= truth && ci->hi >= truth;
	}
	/* Forty levels drawn from so skewed a distribution are few: it covers 74 times; with rows as the sample, 30. */
	CU_ASSERT(hits >= 65);
	CU_ASSERT(blind_hits <= 45);
	sample_free(&sample);
}

/* More windows than blocks, and rows of a recording without windows among them. */
/* One burst made all that is late: whoever draws blocks meets it or not, and knows nothing of the next one. */
static void a_single_burst_has_no_interval(void)
{
	struct analysis_fixture fixture;
	struct report report;

	for (size_t bursts = 1; bursts <= 5; bursts += 4) {
		analysis_fixture_init(&fixture, 1000);
		for (size_t i = 0; i < 1000; i++)
			fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000 + i % 10);
		for (size_t burst = 0; burst < bursts; burst++)
			for (size_t i = 0; i < 15 / bursts; i++)
				fixture_add(&fixture, 100 + 150 * burst + i, WL_CATEGORY_RUNQ, 50000);
		make(&report, &fixture, 0.99);
		ASSERT_NEAR(line_of(&report, WL_CATEGORY_LOCK)->tail_share, 0);
		CU_ASSERT(line_of(&report, WL_CATEGORY_RUNQ)->tail_share > 0.9);
		CU_ASSERT_EQUAL(isnan(line_of(&report, WL_CATEGORY_RUNQ)->tail_share_ci.lo), bursts == 1);
		CU_ASSERT_FALSE(isnan(line_of(&report, WL_CATEGORY_RUNQ)->variance_share_ci.lo));
		report_free(&report);
		analysis_fixture_free(&fixture);
	}
}

static void windows_may_be_many(void)
{
	enum { ROWS = 9000 };
	static uint32_t windows[ROWS];
	struct share_part parts[2];
	struct sample sample;
	uint64_t state = 5;

	sample_init(&sample, ROWS);
	sample_draw(&sample, &state);
	for (uint32_t i = 0; i < ROWS; i++)
		windows[i] = i < ROWS / 2 ? 1 + i / 3 : 0;
	sample.windows = windows;
	sample_shares(&sample, parts, 1, 100);
	CU_ASSERT(parts[0].total.variance_share_ci.lo < 0.2 && parts[0].total.variance_share_ci.hi > 0.2);
	CU_ASSERT(parts[0].total.variance_share_ci.hi - parts[0].total.variance_share_ci.lo < 0.1);
	sample_free(&sample);
}

static void equal_seeds_give_equal_reports(void)
{
	struct share_part one[2], same[2], other[2];
	struct sample sample;
	uint64_t state = 77;

	sample_init(&sample, 1000);
	sample_draw(&sample, &state);
	sample_shares(&sample, one, 1, 100);
	sample_shares(&sample, same, 1, 100);
	sample_shares(&sample, other, 2, 100);
	CU_ASSERT_EQUAL(memcmp(&one[0].total, &same[0].total, sizeof(one[0].total)), 0);
	CU_ASSERT_NOT_EQUAL(one[0].total.tail_share_ci.lo, other[0].total.tail_share_ci.lo);
	CU_ASSERT_EQUAL(one[0].total.tail_share, other[0].total.tail_share);
	sample_free(&sample);
}

static void losses_widen_intervals(void)
{
	struct ci ci;

	/* 1 % lost, all of it late: 0.01 of 0.01 + 0.99·0.01 */
	ASSERT_NEAR(shares_lost_bound(0.01, 0.99), 0.01 / 0.0199);
	CU_ASSERT_EQUAL(shares_lost_bound(0, 0.99), 0);
	CU_ASSERT_EQUAL(shares_lost_bound(NAN, 0.99), 0);
	CU_ASSERT_EQUAL(shares_lost_bound(1, 0.99), 1);
	ci = shares_widen((struct ci){0.4, 0.5}, 0.5);
	ASSERT_NEAR(ci.lo, 0.2);
	ASSERT_NEAR(ci.hi, 0.75);
	ci = shares_widen((struct ci){-0.4, 1.2}, 0.5);
	ASSERT_NEAR(ci.lo, -0.4);
	ASSERT_NEAR(ci.hi, 1.2);
	ci = shares_widen((struct ci){0.4, 0.5}, 0);
	ASSERT_NEAR(ci.hi, 0.5);
}

int suite_breakdown(void)
{
	static const struct unit_test tests[] = {
		{"shares by hand", shares_by_hand},
		{"shares sum to one", shares_sum_to_one},
		{"columns may change places", columns_may_change_places},
		{"a weight is as many rows", a_weight_is_as_many_rows},
		{"what is not defined is NAN", what_is_not_defined_is_nan},
		{"intervals of confidence cover the truth", intervals_of_confidence_cover_the_truth},
		{"bursts make intervals wider", bursts_make_intervals_wider},
		{"windows are the sample", windows_are_the_sample},
		{"a single burst has no interval", a_single_burst_has_no_interval},
		{"windows may be many", windows_may_be_many},
		{"equal seeds give equal reports", equal_seeds_give_equal_reports},
		{"losses widen intervals", losses_widen_intervals},
	};

	return unit_suite("analysis: breakdown", tests, sizeof(tests) / sizeof(tests[0]));
}
