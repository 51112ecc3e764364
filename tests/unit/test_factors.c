// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/factors.h"

#include "tree_fixture.h"
#include "unit.h"

#include <math.h>

/* Heights of the functions 0, 1, 2, … */
static uint32_t height_of(void *ctx, uint32_t func)
{
	return ((const uint32_t *)ctx)[func];
}

static const struct factor *find(const struct factors *factors, uint32_t func, bool body, uint32_t other)
{
	for (size_t i = 0; i < factors->list.cnt; i++) {
		const struct factor *factor = &factors->list.items[i];

		if (factor->funcs[0] == func && factor->body[0] == body && factor->funcs[1] == other)
			return factor;
	}
	return NULL;
}

#define ASSERT_SHARE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-4)

/* Both papers: WriteLog has 30 % of the variance, CopyData, which it calls, 28 %: CopyData is the more specific one. */
static void copy_data_before_write_log(void)
{
	enum { TXN, OTHER, WRITE_LOG, LOCK, COPY_DATA, UNLOCK };
	static const struct tree_fixture_node nodes[] = {
		{TXN, -1, 0, 0, -1},   {OTHER, 0, 0, 70, -1},     {WRITE_LOG, 0, 0, 0, -1},
		{LOCK, 2, 0, 1.5, -1}, {COPY_DATA, 2, 0, 28, -1}, {UNLOCK, 2, 0, 0.5, -1},
	};
	uint32_t heights[] = {2, 0, 1, 0, 0, 0}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 6, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	const struct factor *write_log, *copy_data;
	struct factors factors;

	for (uint32_t e = 2; e <= 3; e++) {
		rule.e = e;
		CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 2, height_of, heights), 0);
		write_log = find(&factors, WRITE_LOG, false, FACTOR_NONE);
		copy_data = find(&factors, COPY_DATA, false, FACTOR_NONE);
		CU_ASSERT_FATAL(write_log && copy_data);
		ASSERT_SHARE(write_log->contribution, 0.30);
		ASSERT_SHARE(copy_data->contribution, 0.28);
		CU_ASSERT_EQUAL(factors.graph_height, 3);
		ASSERT_SHARE(write_log->score, pow(3 - 1, e) * 0.30);
		ASSERT_SHARE(copy_data->score, pow(3, e) * 0.28);
		CU_ASSERT(copy_data->rank && (!write_log->rank || copy_data->rank < write_log->rank));
		CU_ASSERT(write_log->opened && !copy_data->opened);
		factors_free(&factors);
	}
	variance_tree__free(tree);
}

/* The earlier paper: X has variance 300, Y beneath it 285: with m = 95 % X is of no importance, with 96 % it is. */
static void m_rule_forgets_the_parent(void)
{
	enum { X, Y, Z };
	static const struct tree_fixture_node nodes[] = {{X, -1, 0, 0, -1}, {Y, 0, 0, 285, -1}, {Z, 0, 0, 15, -1}};
	uint32_t heights[] = {1, 0, 0}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 3, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct factors factors;

	rule.m = 0.9499;
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 1, height_of, heights), 0);
	CU_ASSERT_EQUAL(find(&factors, X, false, FACTOR_NONE)->contribution, 0);
	ASSERT_SHARE(find(&factors, Y, false, FACTOR_NONE)->contribution, 0.95);
	CU_ASSERT_EQUAL(find(&factors, X, false, FACTOR_NONE)->rank, 0);
	factors_free(&factors);
	rule.m = 0.96;
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 1, height_of, heights), 0);
	ASSERT_SHARE(find(&factors, X, false, FACTOR_NONE)->contribution, 1);
	CU_ASSERT_EQUAL(find(&factors, X, false, FACTOR_NONE)->rank, 2);
	factors_free(&factors);
	variance_tree__free(tree);
}

/* Table 4 of the later paper: os_event_wait has 37.5 % at one call site and 21.7 % at another, 59.2 % together. */
static void call_sites_add_up(void)
{
	enum { SELECT, UPDATE, OS_EVENT_WAIT, ROW_INS };
	static const struct tree_fixture_node nodes[] = {
		{SELECT, -1, 0, 10, -1},           {UPDATE, -1, 0, 21.5, -1}, {OS_EVENT_WAIT, 0, 0xa, 37.5, -1},
		{OS_EVENT_WAIT, 1, 0xb, 21.7, -1}, {ROW_INS, 1, 0, 9.3, -1},
	};
	uint32_t heights[] = {2, 2, 0, 1}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 5, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	const struct factor *wait;
	struct factors factors;

	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 3, height_of, heights), 0);
	wait = find(&factors, OS_EVENT_WAIT, false, FACTOR_NONE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wait);
	ASSERT_SHARE(wait->contribution, 0.592);
	ASSERT_SHARE(wait->variance_share, 0.592);
	CU_ASSERT_EQUAL(wait->call_sites, 2);
	CU_ASSERT_EQUAL(wait->instance_cnt, 2);
	CU_ASSERT_EQUAL(wait->rank, 1);
	CU_ASSERT_EQUAL(wait->biggest, ids[2]);
	CU_ASSERT_EQUAL(wait, &factors.list.items[0]);
	factors_free(&factors);
	variance_tree__free(tree);
}

/* Under a tall graph a leaf is hardly more specific than who calls it twice, which has been opened and so comes later.
 */
static void what_is_opened_comes_last(void)
{
	enum { HANDLE, HEADER, BODY, ALLOC, FAR };
	static const struct tree_fixture_node nodes[] = {
		{HANDLE, -1, 0, 0, -1},  {HEADER, 0, 0, 17, -1},  {BODY, 0, 0, 17, -1},
		{ALLOC, 1, 0xa, 30, -1}, {ALLOC, 2, 0xb, 30, -1}, {FAR, -1, 0, 6, -1},
	};
	uint32_t heights[] = {3, 2, 2, 1, 13}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 6, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	const struct factor *handle, *alloc;
	struct factors factors;

	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 0, height_of, heights), 0);
	handle = find(&factors, HANDLE, false, FACTOR_NONE);
	alloc = find(&factors, ALLOC, false, FACTOR_NONE);
	CU_ASSERT_FATAL(handle && alloc);
	CU_ASSERT(handle->score > alloc->score && handle->opened && !alloc->opened);
	CU_ASSERT_EQUAL(alloc->rank, 1);
	CU_ASSERT(!handle->rank || handle->rank > alloc->rank);
	for (size_t f = 0; f < factors.list.cnt; f++)
		for (size_t g = 0; g < factors.list.cnt; g++) {
			const struct factor *a = &factors.list.items[f], *b = &factors.list.items[g];

			if (a->rank && b->rank && a->opened && !b->opened)
				CU_ASSERT(a->rank > b->rank);
		}
	/* Where there is nothing else to select it is taken. */
	factors_free(&factors);
	rule.k = 100;
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 0, height_of, heights), 0);
	CU_ASSERT(find(&factors, HANDLE, false, FACTOR_NONE)->rank > 1);
	factors_free(&factors);
	variance_tree__free(tree);
}

/* With k = 3 a linear specificity passes over a factor of 18.2 % deep down (§4.4) that a square or a cube does not. */
static void linear_specificity_misses_what_is_deep(void)
{
	enum { A, B, C, DEEP };
	static const struct tree_fixture_node nodes[] = {
		{A, -1, 0, 28, -1}, {B, -1, 0, 27, -1}, {C, -1, 0, 26.8, -1}, {DEEP, -1, 0, 18.2, -1}};
	uint32_t heights[] = {3, 3, 3, 0}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 4, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct factors factors;

	for (uint32_t e = 1; e <= 3; e++) {
		rule.e = e;
		CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 11, height_of, heights), 0);
		ASSERT_SHARE(find(&factors, DEEP, false, FACTOR_NONE)->contribution, 0.182);
		CU_ASSERT_EQUAL(find(&factors, DEEP, false, FACTOR_NONE)->rank, e == 1 ? 0 : e == 2 ? 1 : 1);
		CU_ASSERT_EQUAL(factors.selected_cnt, 3);
		factors_free(&factors);
	}
	variance_tree__free(tree);
}

/* Figure 1: A calls B and C; what varies together is a factor of two functions, its body one of them. */
static void covarying_pairs_are_factors(void)
{
	enum { A, B, C };
	static const struct tree_fixture_node nodes[] = {{A, -1, 0, 4, -1}, {B, 0, 0, 9, -1}, {C, 0, 0, 16, 1}};
	uint32_t heights[] = {1, 0, 0}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 3, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	const struct factor *pair;
	struct factors factors;
	double all = 4 + 9 + 16 + 2 * 3 * 4, sum = 0;

	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 1, height_of, heights), 0);
	pair = find(&factors, B, false, C);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair);
	ASSERT_SHARE(pair->contribution, 24 / all);
	ASSERT_SHARE(find(&factors, B, false, FACTOR_NONE)->contribution, 9 / all);
	ASSERT_SHARE(find(&factors, C, false, FACTOR_NONE)->contribution, 16 / all);
	ASSERT_SHARE(find(&factors, A, true, FACTOR_NONE)->contribution, 4 / all);
	ASSERT_SHARE(find(&factors, A, false, FACTOR_NONE)->contribution, 1);
	CU_ASSERT_EQUAL(pair->rank, 1);
	CU_ASSERT_EQUAL(pair->instance_cnt, 2);
	CU_ASSERT_EQUAL(factors.instances.items[pair->first_instance], ids[1]);
	CU_ASSERT_EQUAL(factors.instances.items[pair->first_instance + 1], ids[2]);
	for (size_t i = 0; i < factors.list.cnt; i++)
		if (factors.list.items[i].funcs[0] != A || factors.list.items[i].body[0])
			sum += factors.list.items[i].contribution;
	ASSERT_SHARE(sum, 1);
	factors_free(&factors);
	variance_tree__free(tree);
}

static void recursion_counts_once(void)
{
	enum { F, G };
	static const struct tree_fixture_node nodes[] = {
		{F, -1, 0, 10, -1}, {G, 0, 0, 10, -1}, {F, 1, 0, 10, -1}, {F, 2, 0, 70, -1}};
	uint32_t heights[] = {2, 2}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 4, ids);
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct factors factors;

	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 2, height_of, heights), 0);
	ASSERT_SHARE(find(&factors, F, false, FACTOR_NONE)->contribution, 1);
	CU_ASSERT_EQUAL(find(&factors, F, false, FACTOR_NONE)->call_sites, 1);
	ASSERT_SHARE(find(&factors, F, true, FACTOR_NONE)->contribution, 0.2);
	factors_free(&factors);
	variance_tree__free(tree);
}

static void below_the_threshold_nothing_is_selected(void)
{
	static const struct tree_fixture_node nodes[] = {{0, -1, 0, 96, -1}, {1, -1, 0, 4, -1}};
	uint32_t heights[] = {9, 0}, ids[TREE_FIXTURE_MAX];
	struct variance_tree *tree = tree_fixture(nodes, 2, ids), *empty = variance_tree__new();
	const struct tree_interval same = {.weight = 1, .latency_ns = 1000};
	struct factor_rule rule = FACTOR_RULE_DEFAULT;
	struct factors factors;

	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, tree, &rule, 0, height_of, heights), 0);
	CU_ASSERT_EQUAL(factors.list.items[0].funcs[0], 1); /* scores 100 · 4 %, the other 1 · 96 % */
	CU_ASSERT_EQUAL(factors.list.items[0].rank, 0);
	CU_ASSERT_EQUAL(factors.list.items[1].rank, 1);
	CU_ASSERT_EQUAL(factors.selected_cnt, 1);
	factors_free(&factors);
	/* Nothing varies, or there is nothing: no factors. */
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, empty, &rule, 0, height_of, heights), 0);
	CU_ASSERT_EQUAL(factors.list.cnt, 0);
	factors_free(&factors);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(variance_tree__add(empty, &same, NULL, 0), 0);
	CU_ASSERT_EQUAL_FATAL(factors_select(&factors, empty, &rule, 0, height_of, heights), 0);
	CU_ASSERT_EQUAL(factors.list.cnt, 0);
	CU_ASSERT(isnan(factors.body_share));
	factors_free(&factors);
	variance_tree__free(empty);
	variance_tree__free(tree);
}

int suite_factors(void)
{
	static const struct unit_test tests[] = {
		{"CopyData before WriteLog", copy_data_before_write_log},
		{"the m rule forgets the parent", m_rule_forgets_the_parent},
		{"call sites add up", call_sites_add_up},
		{"what is opened comes last", what_is_opened_comes_last},
		{"linear specificity misses what is deep", linear_specificity_misses_what_is_deep},
		{"covarying pairs are factors", covarying_pairs_are_factors},
		{"recursion counts once", recursion_counts_once},
		{"below the threshold nothing is selected", below_the_threshold_nothing_is_selected},
	};

	return unit_suite("analysis: factors", tests, sizeof(tests) / sizeof(tests[0]));
}
