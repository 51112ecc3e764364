// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/impact.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct event_line *line_of(const struct event_line *lines, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(lines[i].event, name))
			return &lines[i];
	CU_FAIL_FATAL("an event has no line");
	return NULL;
}

/* Latencies 1 … 100; the event has value 5 in the ten latest. */
static void impact_by_hand(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *steps, *some, *missing, *flat;

	analysis_fixture_init(&fixture, 100);
	steps = fixture_event(&fixture, "runq.preempt.count", NULL);
	some = fixture_event(&fixture, "fault.minor.count", &missing);
	flat = fixture_event(&fixture, "migration.count", NULL);
	for (size_t i = 0; i < 100; i++) {
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, i + 1);
		steps[i] = some[i] = i >= 90 ? 5 : 0;
		flat[i] = 7;
		if (i % 2)
			bitmap_set(missing, i);
	}
	fixture_impacts(lines, &fixture, 0.9);
	/* T(all) = 90; without the ten, p90 of 1 … 90 is 81. */
	ASSERT_NEAR(line_of(lines, 3, "runq.preempt.count")->impact, 9.0 / 90);
	CU_ASSERT_EQUAL(line_of(lines, 3, "runq.preempt.count")->threshold, 0);
	ASSERT_NEAR(line_of(lines, 3, "runq.preempt.count")->threshold_percentile, 0.9);
	ASSERT_NEAR(line_of(lines, 3, "runq.preempt.count")->mean, 0.5);
	/* Recorded in 1 3 5 … 99: the 45th is 89; without 91 … 99, the 41st (0.9·45 = 40.5) of 1 … 89 is 81. */
	ASSERT_NEAR(line_of(lines, 3, "fault.minor.count")->impact, 8.0 / 89);
	/* Always the same: nothing is high. */
	CU_ASSERT_EQUAL(line_of(lines, 3, "migration.count")->impact, 0);
	CU_ASSERT_STRING_EQUAL(lines[0].event, "runq.preempt.count");
	CU_ASSERT_STRING_EQUAL(lines[2].event, "migration.count");
	analysis_fixture_free(&fixture);
}

static void weights_count_in_the_impact(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *values;

	/* Four rows for 90, 5, 3 and 2 intervals: p95 is 20, and without the last two 0.95·95 = 90.25 makes it 20
	 * again. */
	analysis_fixture_init(&fixture, 4);
	values = fixture_event(&fixture, "migration.count", NULL);
	for (size_t i = 0; i < 4; i++)
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 10 * (i + 1));
	memcpy(fixture.dataset.weight, (double[]){90, 5, 3, 2}, 4 * sizeof(double));
	values[2] = values[3] = 1;
	fixture_impacts(lines, &fixture, 0.95);
	ASSERT_NEAR(lines[0].impact, 0);
	ASSERT_NEAR(lines[0].threshold_percentile, 0.95);
	fixture_impacts(lines, &fixture, 0.96);
	/* p96 is 30; without them 0.96·95 = 91.2: 20. */
	ASSERT_NEAR(lines[0].impact, 10.0 / 30);
	analysis_fixture_free(&fixture);
}

static void what_was_not_recorded_has_no_impact_and_what_was_zero_has_none(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *missing;

	analysis_fixture_init(&fixture, 70);
	fixture_event(&fixture, "hw.cycles", &missing);
	for (size_t i = 0; i < 70; i++) {
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, i);
		bitmap_set(missing, i);
	}
	fixture.events[fixture.dataset.event_cnt++] = (struct dataset_event){.name = "throttled.ns"};
	fixture.events[fixture.dataset.event_cnt++] = (struct dataset_event){.name = "blocked.disk.ns"};
	fixture.dataset.category_unmeasured[WL_CATEGORY_THROTTLED] = true;
	fixture_impacts(lines, &fixture, 0.9);
	CU_ASSERT(isnan(line_of(lines, 3, "hw.cycles")->impact));
	CU_ASSERT(isnan(line_of(lines, 3, "throttled.ns")->impact_adjusted));
	CU_ASSERT_EQUAL(line_of(lines, 3, "blocked.disk.ns")->impact_adjusted, 0);
	CU_ASSERT_STRING_EQUAL(lines[0].event, "blocked.disk.ns");
	analysis_fixture_free(&fixture);
}

static void a_joint_that_most_intervals_exceed_is_passed_over(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *values;

	/* 30 % zeros, then a straight line: the joint at 0.3 would call 70 % of the intervals high. */
	analysis_fixture_init(&fixture, 10000);
	values = fixture_event(&fixture, "migration.count", NULL);
	for (size_t i = 0; i < 10000; i++) {
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000 + i % 7);
		values[i] = i < 3000 ? 0 : i - 3000;
	}
	fixture_impacts(lines, &fixture, 0.99);
	CU_ASSERT_DOUBLE_EQUAL(lines[0].threshold_percentile, 0.99, 1e-6);
	analysis_fixture_free(&fixture);
}

static uint64_t poisson(uint64_t *state, double mean)
{
	double left = exp(-mean), product = fixture_uniform(state);
	uint64_t cnt = 0;

	for (; product > left; product *= fixture_uniform(state))
		cnt++;
	return cnt;
}

/* Latency 1 ms and 1 % of noise; the intervals from `from` on met the event for `value` ns. */
static struct event_line impact_of_step(size_t row_cnt, size_t from, uint64_t value, double tail, bool weights)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *values, state = 5;

	analysis_fixture_init(&fixture, row_cnt);
	values = fixture_event(&fixture, "sleep.ns", NULL);
	for (size_t i = 0; i < row_cnt; i++) {
		values[i] = i >= from ? value : 0;
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000000 + (uint64_t)(fixture_uniform(&state) * 10000));
		fixture_add(&fixture, i, WL_CATEGORY_SLEEP, values[i]);
		fixture.dataset.weight[i] = weights ? 1 + i % 3 : 1;
	}
	fixture_impacts(lines, &fixture, tail);
	analysis_fixture_free(&fixture);
	return lines[0];
}

static void a_step_is_high_wherever_it_is(void)
{
	uint64_t state = 9;

	for (int weights = 0; weights < 2; weights++)
		for (int i = 0; i < 60; i++) {
			double share = 0.4 + 0.58 * fixture_uniform(&state);
			size_t from = i ? (size_t)(100000 * share) : 90001;
			struct event_line line = impact_of_step(100000, from, 5000000, 0.99, weights);

			CU_ASSERT_EQUAL_FATAL(line.threshold, 0);
			CU_ASSERT_DOUBLE_EQUAL_FATAL(line.threshold_percentile, (double)from / 100000, 1e-4);
			CU_ASSERT_DOUBLE_EQUAL_FATAL(line.impact, 5.0 / 6, 0.01);
		}
}

static void poisson_counts_are_high_where_they_are_not_zero(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	uint64_t *values, state = 21, met = 0;
	struct analysis_fixture fixture;

	analysis_fixture_init(&fixture, 100000);
	values = fixture_event(&fixture, "migration.count", NULL);
	for (size_t i = 0; i < 100000; i++) {
		values[i] = poisson(&state, 0.08);
		met += values[i] > 0;
		fixture_add(&fixture, i, WL_CATEGORY_ONCPU, 1000000 + 1000 * (i % 11) + 500000 * values[i]);
	}
	fixture_impacts(lines, &fixture, 0.99);
	CU_ASSERT_EQUAL(lines[0].threshold, 0);
	CU_ASSERT_DOUBLE_EQUAL(lines[0].threshold_percentile, 1 - (double)met / 100000, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(lines[0].impact, 0.5 / 1.5, 0.01);
	analysis_fixture_free(&fixture);
}

/* VarMRI's MemBench: 75 % of the intervals meet the event, and the target is p25 and above. */
static void an_event_in_most_intervals_has_a_threshold(void)
{
	struct event_line line = impact_of_step(10000, 4000, 5000000, 0.99, false);

	CU_ASSERT_EQUAL(line.threshold, 0);
	ASSERT_NEAR(line.threshold_percentile, 0.4);
	CU_ASSERT_DOUBLE_EQUAL(line.impact, 5.0 / 6, 0.01);
	line = impact_of_step(10000, 2405, 250000, 0.25, false);
	CU_ASSERT_EQUAL(line.threshold, 0);
	ASSERT_NEAR(line.threshold_percentile, 0.2405);
	CU_ASSERT_DOUBLE_EQUAL(line.impact, 0.2, 0.02);
}

/* By brute force: rows sorted by latency less the event. */
static double quantile_of(const struct analysis_fixture *fixture, const uint64_t *event, const uint32_t *times,
			  double p)
{
	const struct dataset *dataset = &fixture->dataset;
	double *weights = calloc(dataset->row_cnt, sizeof(*weights)), total = 0, answer;
	uint64_t *values = calloc(dataset->row_cnt, sizeof(*values));
	struct stats_order order;

	CU_ASSERT_FATAL(weights && values);
	for (size_t i = 0; i < dataset->row_cnt; i++) {
		values[i] = dataset->latency_ns[i] - (event ? event[i] : 0);
		weights[i] = dataset->weight[i] * (times ? times[i] : 1);
		total += weights[i];
	}
	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, weights, dataset->row_cnt), 0);
	answer = stats_quantile(&order, p, NULL, NULL, total);
	stats_order__free(&order);
	free(weights);
	free(values);
	return answer;
}

static void gain_is_exact_and_its_interval_is_that_of_whole_rows(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *values, state = 4;
	size_t row_cnt = 3000;

	for (int round = 0; round < 6; round++) {
		struct share_rows rows;
		struct bootstrap_blocks blocks;
		uint32_t *times = calloc(row_cnt, sizeof(*times)), multiplicity[SHARES_BLOCKS_MAX];
		double tail = round % 2 ? 0.9 : 0.4, gains[200], whole, expected;
		struct ci ci;

		CU_ASSERT_PTR_NOT_NULL_FATAL(times);
		analysis_fixture_init(&fixture, row_cnt);
		values = fixture_event(&fixture, "blocked.disk.ns", NULL);
		fixture.events[0].is_length = true;
		for (size_t i = 0; i < row_cnt; i++) {
			values[i] = fixture_uniform(&state) < 0.3 ? (uint64_t)(1e6 * fixture_exponential(&state)) : 0;
			fixture_add(&fixture, i, WL_CATEGORY_ONCPU, (uint64_t)(1e5 * fixture_exponential(&state)));
			fixture_add(&fixture, i, WL_CATEGORY_IO_DISK, values[i]);
			fixture.dataset.weight[i] = round > 2 ? 1 + (uint64_t)(fixture_uniform(&state) * 9) : 1;
		}
		fixture_impacts(lines, &fixture, tail);
		whole = quantile_of(&fixture, NULL, NULL, tail);
		expected = (whole - quantile_of(&fixture, values, NULL, tail)) / whole;
		ASSERT_NEAR(lines[0].gain, expected);
		rows = (struct share_rows){row_cnt, fixture.dataset.latency_ns, fixture.dataset.weight, NULL, 0, 0};
		CU_ASSERT_EQUAL_FATAL(bootstrap_blocks__init(&blocks, &rows), 0);
		for (uint32_t r = 0; r < 200; r++) {
			bootstrap_draw(multiplicity, blocks.cnt, 1, r);
			for (size_t b = 0; b < blocks.cnt; b++)
				for (size_t i = blocks.first[b]; i < blocks.first[b + 1]; i++)
					times[i] = multiplicity[b];
			whole = quantile_of(&fixture, NULL, times, tail);
			gains[r] = (whole - quantile_of(&fixture, values, times, tail)) / whole;
		}
		ci = bootstrap_interval(gains, 200, expected, blocks.cnt);
		CU_ASSERT_DOUBLE_EQUAL(lines[0].gain_ci.lo, ci.lo, 0.01 * expected);
		CU_ASSERT_DOUBLE_EQUAL(lines[0].gain_ci.hi, ci.hi, 0.01 * expected);
		bootstrap_blocks__free(&blocks);
		analysis_fixture_free(&fixture);
		free(times);
	}
}

static void events_are_ranked_by_gain(void)
{
	struct event_line lines[FIXTURE_EVENTS_MAX];
	struct analysis_fixture fixture;
	uint64_t *sleep, *disk, *count, state = 8;

	/* Every interval sleeps, and the tail is nothing else; one in fifty meets a disk. */
	analysis_fixture_init(&fixture, 20000);
	sleep = fixture_event(&fixture, "sleep.ns", NULL);
	disk = fixture_event(&fixture, "blocked.disk.ns", NULL);
	count = fixture_event(&fixture, "migration.count", NULL);
	fixture.events[0].is_length = fixture.events[1].is_length = true;
	for (size_t i = 0; i < 20000; i++) {
		sleep[i] = (uint64_t)(1e6 + 1e6 * fixture_uniform(&state));
		disk[i] = fixture_uniform(&state) < 0.02 ? 100000 : 0;
		count[i] = disk[i] ? 1 : 0;
		fixture_add(&fixture, i, WL_CATEGORY_SLEEP, sleep[i]);
		fixture_add(&fixture, i, WL_CATEGORY_IO_DISK, disk[i]);
	}
	fixture_impacts(lines, &fixture, 0.99);
	CU_ASSERT_STRING_EQUAL(lines[0].event, "sleep.ns");
	CU_ASSERT(lines[0].gain > 0.94 && lines[0].gain_ci.lo <= lines[0].gain && lines[0].gain_ci.hi >= lines[0].gain);
	ASSERT_NEAR(line_of(lines, 3, "migration.count")->gain, line_of(lines, 3, "migration.count")->impact);
	analysis_fixture_free(&fixture);
}

static void the_weaker_of_two_kernel_events_is_deducted(void)
{
	static const uint64_t high[] = {0x0f}, half[] = {0x3c};
	static const double ones[] = {1, 1, 1, 1, 1, 1};
	struct rule_event events[] = {
		{.name = "switch.involuntary.count", .high = high, .high_weight = 4, .impact = 0.3},
		{.name = "runq.preempt.ns", .high = high, .high_weight = 4, .impact = 0.4},
		{.name = "hw.cycles", .high = half, .high_weight = 4, .impact = 0.2},
		{.name = "sleep.ns", .high = half, .high_weight = 4, .impact = 0.1},
	};

	rules_apply(events, 4, ones, 6);
	ASSERT_NEAR(events[0].adjusted, 0.3 - 0.4);
	CU_ASSERT_STRING_EQUAL(events[0].explained_by, "runq.preempt.ns");
	ASSERT_NEAR(events[1].adjusted, 0.4);
	CU_ASSERT_PTR_NULL(events[1].explained_by);
	/* {2 3} of six rows; with a hardware counter there is no rule, but a correlation. */
	ASSERT_NEAR(events[3].adjusted, 0.1 - 0.4 / 3);
	CU_ASSERT_STRING_EQUAL(events[3].correlated_with, "hw.cycles");
	ASSERT_NEAR(events[3].correlation, 1);
	CU_ASSERT_STRING_EQUAL(events[2].correlated_with, "sleep.ns");
	ASSERT_NEAR(events[2].adjusted, 0.2);
}

static void overlap_by_hand(void)
{
	static const uint64_t a_high[] = {0x07}, b_high[] = {0x0e}, a_missing[] = {0x04}, none[] = {0};
	static const uint64_t first[] = {0x07}, last[] = {0x38};
	const struct rule_event a = {.high = a_high}, b = {.high = b_high};
	const struct rule_event a_partly = {.high = a_high, .missing = a_missing}, never = {.high = none};
	const struct rule_event a_first = {.high = a_high, .missing = last},
				b_last = {.high = b_high, .missing = first};
	static const double ones[] = {1, 1, 1, 1, 1, 1}, weights[] = {1, 2, 5, 1, 1, 1};

	ASSERT_NEAR(rule_overlap(&a, &b, ones, 6), 2.0 / 4);        /* {0 1 2} and {1 2 3} */
	ASSERT_NEAR(rule_overlap(&a_partly, &b, ones, 6), 1.0 / 3); /* {0 1} and {1 3} */
	ASSERT_NEAR(rule_overlap(&b, &a_partly, ones, 6), 1.0 / 3);
	ASSERT_NEAR(rule_overlap(&a_partly, &b, weights, 6), 2.0 / 4);
	ASSERT_NEAR(rule_overlap(&a, &a, weights, 6), 1);
	CU_ASSERT_EQUAL(rule_overlap(&a, &never, ones, 6), 0);
	CU_ASSERT_EQUAL(rule_overlap(&never, &never, ones, 6), 0);
	/* No row has both, though bits beyond the last row are not marked as missing. */
	CU_ASSERT(isnan(rule_overlap(&a_first, &b_last, ones, 6)));
	CU_ASSERT_EQUAL(rule_overlap(&(struct rule_event){0}, &never, ones, 6), 0);
}

/* What was never recorded together may be related or not. */
static void never_together_is_not_unrelated(void)
{
	static const uint64_t inst_missing[] = {0x38}, cycle_missing[] = {0x07}, high[] = {0x09};
	static const double ones[] = {1, 1, 1, 1, 1, 1};
	struct rule_event events[] = {
		{.name = "hw.cycles", .high = high, .missing = cycle_missing, .impact = 0.3},
		{.name = "hw.instructions", .high = high, .missing = inst_missing, .impact = 0.4},
		{.name = "hw.cache_misses", .high = high, .impact = 0.5},
	};

	rules_apply(events, 3, ones, 6);
	/* CACHE is recorded with both: all of its 0.5 comes off CYCLE, more than INST's 0.4 could. */
	ASSERT_NEAR(events[0].adjusted, 0.3 - 0.5);
	CU_ASSERT_STRING_EQUAL(events[0].explained_by, "hw.cache_misses");
	events[2].impact = 0.2;
	rules_apply(events, 3, ones, 6);
	CU_ASSERT(isnan(events[0].adjusted));
	ASSERT_NEAR(events[1].adjusted, 0.4);
	ASSERT_NEAR(events[2].adjusted, 0.2 - 0.4);
}

static void rule_one_deducts_the_largest_cause_of_a_higher_group(void)
{
	static const uint64_t inst_high[] = {0x07}, cache_high[] = {0x0e}, cycle_high[] = {0x0e};
	static const uint64_t inst_missing[] = {0x04};
	static const double ones[] = {1, 1, 1, 1, 1, 1};
	struct rule_event events[] = {
		{.name = "hw.cycles", .high = cycle_high, .impact = 0.3},
		{.name = "hw.instructions", .high = inst_high, .missing = inst_missing, .impact = 0.4},
		{.name = "hw.cache_misses", .high = cache_high, .impact = 0.1},
		{.name = "runq.preempt.ns", .high = inst_high, .impact = 0.5},
		{.name = "hw.itlb_misses", .impact = NAN},
	};

	rules_apply(events, 5, ones, 6);
	/* INST overlaps both by 1/3: 0.4/3 from CYCLE is more than CACHE's 1·0.1. */
	ASSERT_NEAR(events[0].adjusted, 0.3 - 0.4 / 3);
	CU_ASSERT_STRING_EQUAL(events[0].explained_by, "hw.instructions");
	ASSERT_NEAR(events[0].overlap, 1.0 / 3);
	ASSERT_NEAR(events[1].adjusted, 0.4); /* nothing is above INST */
	CU_ASSERT_PTR_NULL(events[1].explained_by);
	ASSERT_NEAR(events[2].adjusted, 0.1 - 0.4 / 3);
	ASSERT_NEAR(events[3].adjusted, 0.5); /* no hardware counter */
	CU_ASSERT(isnan(events[3].overlap));
	CU_ASSERT(isnan(events[4].adjusted));
}

static void proportion_by_hand(void)
{
	static const uint64_t x[] = {1, 2, 3, 4}, twice[] = {2, 4, 6, 8}, bent[] = {1, 2, 3, 10};
	static const uint64_t falling[] = {4, 3, 2, 1}, last_missing[] = {0x08}, flat[] = {5, 5, 5, 5};
	static const uint64_t eleven[] = {11, 22, 33, 44}, raised[] = {21, 32, 43, 54};
	static const double ones[] = {1, 1, 1, 1};
	const struct rule_event parent = {.values = x}, child = {.values = bent}, even = {.values = flat};
	const struct rule_event exact = {.values = twice}, down = {.values = falling};
	const struct rule_event partly = {.values = bent, .missing = last_missing};

	ASSERT_NEAR(rule_proportion(&exact, &parent, ones, 4), 1);
	/* b = Σxy/Σx² = 54/30; Σ(y - bx)² = 114 - 54²/30 = 16.8 of Σ(y - 4)² = 50 */
	ASSERT_NEAR(rule_proportion(&child, &parent, ones, 4), 1 - 16.8 / 50);
	/* A straight line, but not through 0: b = 330/30, Σ(y - bx)² = 3630 - 330²/30 = 0, and with 10 more each not.
	 */
	ASSERT_NEAR(rule_proportion(&(struct rule_event){.values = eleven}, &parent, ones, 4), 1);
	CU_ASSERT(rule_proportion(&(struct rule_event){.values = raised}, &parent, ones, 4) < 0.99);
	ASSERT_NEAR(rule_proportion(&partly, &parent, ones, 4), 1);
	CU_ASSERT_EQUAL(rule_proportion(&down, &parent, ones, 4), 0);
	CU_ASSERT(isnan(rule_proportion(&even, &parent, ones, 4)));
}

static void rule_two_drops_a_child_in_proportion(void)
{
	static const uint64_t x[] = {100, 200, 300, 400}, fifth[] = {20, 40, 60, 81}, other[] = {9, 1, 7, 2};
	static const uint64_t high[] = {0x08};
	static const double ones[] = {1, 1, 1, 1};
	struct rule_event events[] = {
		{.name = "hw.instructions", .values = x, .high = high, .impact = 0.2},
		{.name = "hw.branches", .values = fifth, .high = high, .impact = 0.4},
		{.name = "hw.branch_misses", .values = other, .high = high, .impact = 0.3},
		{.name = "hw.itlb_misses", .values = other, .high = high, .impact = 0.3},
	};

	rules_apply(events, 4, ones, 4);
	CU_ASSERT_PTR_NULL(events[0].dropped_for);
	CU_ASSERT_STRING_EQUAL(events[1].dropped_for, "hw.instructions");
	CU_ASSERT_PTR_NULL(events[2].dropped_for);
	/* A dropped event explains nothing: the cause deducted from CACHE is branch_misses, 1·0.3, not branches, 0.4.
	 */
	CU_ASSERT_STRING_EQUAL(events[3].explained_by, "hw.branch_misses");
	ASSERT_NEAR(events[3].adjusted, 0);
}

static void event_names_lead_to_categories(void)
{
	CU_ASSERT_EQUAL(event_category("runq.preempt.ns"), WL_CATEGORY_RUNQ);
	CU_ASSERT_EQUAL(event_category("softirq.net_rx.count"), WL_CATEGORY_IRQ_SOFT);
	CU_ASSERT_EQUAL(event_category("running.ns"), WL_CATEGORY_ONCPU);
	CU_ASSERT_EQUAL(event_category("migration.count"), -1);
	CU_ASSERT_EQUAL(event_category("hw.cycles"), -1);
	CU_ASSERT_EQUAL(event_category("nothing"), -1);
}

int suite_impact(void)
{
	static const struct unit_test tests[] = {
		{"never together is not unrelated", never_together_is_not_unrelated},
		{"impact by hand", impact_by_hand},
		{"weights count in the impact", weights_count_in_the_impact},
		{"what was not recorded is NAN, what was zero is 0",
		 what_was_not_recorded_has_no_impact_and_what_was_zero_has_none},
		{"a joint that most intervals exceed is passed over",
		 a_joint_that_most_intervals_exceed_is_passed_over},
		{"a step is high wherever it is", a_step_is_high_wherever_it_is},
		{"Poisson counts are high where they are not zero", poisson_counts_are_high_where_they_are_not_zero},
		{"an event in most intervals has a threshold", an_event_in_most_intervals_has_a_threshold},
		{"gain is exact, and its interval is that of whole rows",
		 gain_is_exact_and_its_interval_is_that_of_whole_rows},
		{"events are ranked by gain", events_are_ranked_by_gain},
		{"the weaker of two kernel events is deducted", the_weaker_of_two_kernel_events_is_deducted},
		{"overlap by hand", overlap_by_hand},
		{"rule 1 deducts the largest cause of a higher group",
		 rule_one_deducts_the_largest_cause_of_a_higher_group},
		{"proportion by hand", proportion_by_hand},
		{"rule 2 drops a child in proportion", rule_two_drops_a_child_in_proportion},
		{"event names lead to categories", event_names_lead_to_categories},
	};

	return unit_suite("analysis: impact", tests, sizeof(tests) / sizeof(tests[0]));
}
