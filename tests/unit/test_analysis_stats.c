// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/parallel.h"
#include "analysis/sort.h"
#include "analysis/stats.h"
#include "base/idmap.h"
#include "test_analysis_fixture.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static double quantile(const uint64_t *values, const double *weights, size_t cnt, double p)
{
	struct stats_order order;
	double value;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, weights, cnt), 0);
	value = stats_quantile(&order, p, NULL, NULL, order.total_weight);
	stats_order__free(&order);
	return value;
}

static void quantiles_are_the_smallest_value_that_reaches_the_weight(void)
{
	static const uint64_t values[] = {40, 10, 30, 20};
	static const double ones[] = {1, 1, 1, 1}, weights[] = {4, 1, 3, 2};

	/* Cumulative 1 2 3 4 of 4. */
	CU_ASSERT_EQUAL(quantile(values, ones, 4, 0.5), 20);
	CU_ASSERT_EQUAL(quantile(values, ones, 4, 0.51), 30);
	CU_ASSERT_EQUAL(quantile(values, ones, 4, 0.75), 30);
	CU_ASSERT_EQUAL(quantile(values, ones, 4, 0.99), 40);
	/* By value the weights are 1 2 3 4, cumulative 1 3 6 10 of 10. */
	CU_ASSERT_EQUAL(quantile(values, weights, 4, 0.1), 10);
	CU_ASSERT_EQUAL(quantile(values, weights, 4, 0.3), 20);
	CU_ASSERT_EQUAL(quantile(values, weights, 4, 0.5), 30);
	CU_ASSERT_EQUAL(quantile(values, weights, 4, 0.6), 30);
	CU_ASSERT_EQUAL(quantile(values, weights, 4, 0.61), 40);
	CU_ASSERT(isnan(quantile(values, weights, 0, 0.5)));
}

static void round_percentiles_are_not_moved_by_rounding(void)
{
	uint64_t values[1000];
	double weights[1000];

	for (int i = 0; i < 1000; i++) {
		values[i] = (uint64_t)i + 1;
		weights[i] = 0.1;
	}
	for (int k = 1; k < 1000; k++)
		CU_ASSERT_EQUAL(quantile(values, weights, 1000, k / 1000.0), k);
}

static void skipped_rows_do_not_count(void)
{
	static const uint64_t values[] = {1, 2, 3, 4, 5, 6}, skip[] = {0x20}, skip_too[] = {0x01};
	static const double ones[] = {1, 1, 1, 1, 1, 1};
	struct stats_order order;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, ones, 6), 0);
	CU_ASSERT_EQUAL(stats_quantile(&order, 0.75, skip, skip_too, 4), 4); /* of 2 3 4 5 */
	CU_ASSERT_EQUAL(stats_quantile(&order, 0.8, skip, NULL, 5), 4);      /* of 1 2 3 4 5 */
	stats_order__free(&order);
}

static void the_summary_is_that_of_weighted_rows(void)
{
	static const uint64_t values[] = {40, 10, 30, 20};
	static const double weights[] = {4, 1, 3, 2};
	struct latency_summary summary;
	struct stats_order order;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, weights, 4), 0);
	stats_summarize(&summary, &order);
	ASSERT_NEAR(summary.count, 10);
	ASSERT_NEAR(summary.mean_ns, 30);       /* (4·40 + 10 + 3·30 + 2·20) / 10 */
	ASSERT_NEAR(summary.variance_ns2, 100); /* (4·100 + 400 + 0 + 2·100) / 10 */
	ASSERT_NEAR(summary.cov, 1.0 / 3);
	CU_ASSERT_EQUAL(summary.max_ns, 40);
	stats_order__free(&order);
	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, weights, 0), 0);
	stats_summarize(&summary, &order);
	CU_ASSERT(isnan(summary.mean_ns) && isnan(summary.max_ns) && isnan(summary.variance_ns2));
	stats_order__free(&order);
}

static void types_are_summed_apart(void)
{
	static const uint64_t values[] = {5, 7, 100, 9};
	static const double weights[] = {1, 3, 2, 1};
	static const uint32_t types[] = {1, 1, 3, 3};
	struct type_line lines[4];
	struct stats_order order;

	CU_ASSERT_EQUAL_FATAL(stats_order__init(&order, values, weights, 4), 0);
	CU_ASSERT_EQUAL(stats_by_type(lines, types, 4, &order), 0);
	stats_order__free(&order);
	CU_ASSERT_EQUAL(lines[0].count, 0);
	CU_ASSERT_EQUAL(lines[1].count, 4);
	ASSERT_NEAR(lines[1].mean_ns, 6.5);
	CU_ASSERT_EQUAL(lines[1].p99_ns, 7);
	ASSERT_NEAR(lines[3].mean_ns, 209.0 / 3);
	CU_ASSERT_EQUAL(lines[3].p99_ns, 100);
}

static void sorting_orders_keys_of_every_width_and_is_stable(void)
{
	static const size_t counts[] = {0, 1, 2, 31, 32, 33, 1000, 4097};
	uint64_t state = 7;

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (int bits = 1; bits <= 64; bits += 9) {
			struct sort_scratch scratch;
			struct sort_pair *sorted;

			CU_ASSERT_EQUAL_FATAL(sort_scratch__init(&scratch, counts[c]), 0);
			for (size_t i = 0; i < counts[c]; i++) {
				fixture_uniform(&state);
				scratch.pairs[0][i] = (struct sort_pair){state >> (64 - bits), (uint32_t)i, 0};
			}
			sorted = sort_pairs(&scratch, counts[c]);
			for (size_t i = 1; i < counts[c]; i++)
				CU_ASSERT(sorted[i - 1].key < sorted[i].key ||
					  (sorted[i - 1].key == sorted[i].key && sorted[i - 1].row < sorted[i].row));
			sort_scratch__free(&scratch);
		}
}

static int count_task(void *ctx, size_t task, unsigned worker)
{
	atomic_int *done = ctx;

	CU_ASSERT(worker < parallel_workers());
	done[task]++;
	return task == 90 ? -EIO : 0;
}

static void every_task_runs_once_and_a_failure_is_told(void)
{
	atomic_int done[100] = {0};

	CU_ASSERT_EQUAL(parallel_run(90, count_task, done), 0);
	for (int i = 0; i < 90; i++)
		CU_ASSERT_EQUAL(done[i], 1);
	CU_ASSERT_EQUAL(parallel_run(100, count_task, done), -EIO);
	CU_ASSERT_EQUAL(parallel_run(0, count_task, done), 0);
}

static void ids_are_given_in_order(void)
{
	struct arena *arena = arena__new();
	struct intern intern = {.arena = arena};
	struct idmap map = {0};
	uint32_t id;
	char text[16];

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 500; i++) {
			CU_ASSERT_EQUAL(idmap__id(&map, i / 10, i % 10, &id), 0);
			CU_ASSERT_EQUAL(id, i);
			snprintf(text, sizeof(text), "text %u", i);
			CU_ASSERT_EQUAL(intern__id(&intern, text, &id), 0);
			CU_ASSERT_EQUAL(id, i);
			CU_ASSERT_STRING_EQUAL(intern.strings[id], text);
		}
	intern__free(&intern);
	idmap__free(&map);
	CU_ASSERT_PTR_NULL(arena__alloc(arena, SIZE_MAX / 2, 4));
	arena__free(arena);
}

int suite_stats(void)
{
	static const struct unit_test tests[] = {
		{"quantiles are the smallest value that reaches the weight",
		 quantiles_are_the_smallest_value_that_reaches_the_weight},
		{"round percentiles are not moved by rounding", round_percentiles_are_not_moved_by_rounding},
		{"skipped rows do not count", skipped_rows_do_not_count},
		{"the summary is that of weighted rows", the_summary_is_that_of_weighted_rows},
		{"types are summed apart", types_are_summed_apart},
		{"sorting orders keys of every width and is stable", sorting_orders_keys_of_every_width_and_is_stable},
		{"every task runs once and a failure is told", every_task_runs_once_and_a_failure_is_told},
		{"ids are given in order", ids_are_given_in_order},
	};

	return unit_suite("analysis: stats", tests, sizeof(tests) / sizeof(tests[0]));
}
