// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/variance_tree.h"

#include "base/random.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 3 functions from 2 call sites each, 3 deep: at most 6 + 36 + 216 nodes, and bodies. */
#define FUNCS     3
#define DEPTH     3
#define NODES_MAX 310
#define ROWS      300

/* Times at random over a tree that grows as it goes, and the same as plain rows. */
struct sample {
	struct variance_tree *tree;
	uint64_t state;
	double weights[ROWS];
	double latency_ns[ROWS], queue_ns[ROWS];
	double ns[ROWS][NODES_MAX];
	size_t cnt;
};

static uint64_t below(struct sample *sample, uint64_t limit)
{
	return random_next(&sample->state) % limit;
}

/* Calls from `parent`, which has room_ns: some functions, some call sites, some of them rarely. */
static void add_calls(struct sample *sample, uint32_t parent, uint64_t room_ns, int depth, struct tree_time *times,
		      size_t *cnt)
{
	for (uint32_t func = 0; func < FUNCS && depth < DEPTH; func++) {
		struct tree_call call = {.func = func, .call_addr = 0x1000 + below(sample, 2)};
		uint64_t ns = below(sample, room_ns / 4 + 1);
		struct tree_time *time;

		if (below(sample, 3))
			continue;
		CU_ASSERT_EQUAL_FATAL(variance_tree__node(sample->tree, parent, &call, &times[*cnt].node), 0);
		CU_ASSERT_FATAL(times[*cnt].node < NODES_MAX);
		time = &times[(*cnt)++];
		time->calls = 1;
		time->ns = ns;
		memset(time->doing_ns, 0, sizeof(time->doing_ns));
		time->doing_ns[TREE_LOCK] = below(sample, ns + 1);
		time->doing_ns[TREE_RUNNING] = ns - time->doing_ns[TREE_LOCK];
		room_ns -= ns;
		add_calls(sample, time->node, ns, depth + 1, times, cnt);
	}
}

static void add_row(struct sample *sample)
{
	struct tree_time times[NODES_MAX];
	struct tree_interval interval = {
		.weight = 1 + (double)below(sample, 8) / 3,
		.latency_ns = 1000000 + below(sample, 1000000),
	};
	size_t cnt = 0, row = sample->cnt++;

	interval.queue_ns = below(sample, 3) ? 0 : below(sample, 500000);
	add_calls(sample, TREE_ROOT, interval.latency_ns - interval.queue_ns, 0, times, &cnt);
	CU_ASSERT_EQUAL_FATAL(variance_tree__add(sample->tree, &interval, times, cnt), 0);
	sample->weights[row] = interval.weight;
	sample->latency_ns[row] = (double)interval.latency_ns;
	sample->queue_ns[row] = (double)interval.queue_ns;
	memset(sample->ns[row], 0, sizeof(sample->ns[row]));
	for (size_t i = 0; i < cnt; i++)
		sample->ns[row][times[i].node] = (double)times[i].ns;
}

/* Two passes over plain rows, in long double. */
static double plain_cov(const struct sample *sample, const double *x, size_t x_step, const double *y, size_t y_step)
{
	long double w = 0, mx = 0, my = 0, c = 0;

	for (size_t i = 0; i < sample->cnt; i++) {
		w += sample->weights[i];
		mx += (long double)sample->weights[i] * x[i * x_step];
		my += (long double)sample->weights[i] * y[i * y_step];
	}
	for (size_t i = 0; i < sample->cnt; i++)
		c += sample->weights[i] * (x[i * x_step] - mx / w) * (y[i * y_step] - my / w);
	return (double)(c / w);
}

static void is_near(double actual, double expected, double scale)
{
	CU_ASSERT(fabs(actual - expected) <= 1e-9 * (fabs(expected) + scale));
}

/* The sum of the children's variances and twice their covariances. */
static double sum_of_children(const struct variance_tree *tree, const struct tree_node *node)
{
	struct tree_stats stats;
	double sum = 0;

	for (size_t a = 0; a < node->child_cnt; a++) {
		variance_tree__stats(tree, node->children[a], &stats);
		sum += stats.variance_ns2;
		for (size_t b = 0; b < a; b++)
			sum += 2 * variance_tree__cov(tree, node->children[a], node->children[b]);
	}
	return sum;
}

static void every_parent_is_the_sum_of_its_children(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sample *sample = calloc(1, sizeof(*sample));
		struct tree_stats root, stats;
		struct tree_node node;
		size_t parents = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(sample);
		sample->state = seed;
		sample->tree = variance_tree__new();
		while (sample->cnt < ROWS)
			add_row(sample);
		variance_tree__stats(sample->tree, TREE_ROOT, &root);
		is_near(root.variance_ns2, plain_cov(sample, sample->latency_ns, 1, sample->latency_ns, 1), 0);
		for (uint32_t id = 0; id < variance_tree__node_cnt(sample->tree); id++) {
			double shares = 0;

			variance_tree__node_at(sample->tree, id, &node);
			variance_tree__stats(sample->tree, id, &stats);
			if (!node.child_cnt)
				continue;
			parents++;
			is_near(sum_of_children(sample->tree, &node), stats.variance_ns2, 0);
			for (size_t c = 0; c < node.child_cnt; c++) {
				struct tree_stats child;

				variance_tree__stats(sample->tree, node.children[c], &child);
				shares += child.cov_latency_ns2;
			}
			is_near(shares, stats.cov_latency_ns2, root.variance_ns2);
		}
		CU_ASSERT(parents > 5);
		variance_tree__free(sample->tree);
		free(sample);
	}
}

static void sums_are_those_of_two_passes(void)
{
	struct sample *sample = calloc(1, sizeof(*sample));
	struct tree_node node, other;
	struct tree_stats stats;

	CU_ASSERT_PTR_NOT_NULL_FATAL(sample);
	sample->state = 77;
	sample->tree = variance_tree__new();
	while (sample->cnt < ROWS)
		add_row(sample);
	for (uint32_t id = 1; id < variance_tree__node_cnt(sample->tree); id++) {
		const double *x = &sample->ns[0][id];
		double doing = 0;

		variance_tree__node_at(sample->tree, id, &node);
		variance_tree__stats(sample->tree, id, &stats);
		for (int d = 0; d < TREE_DOING_CNT; d++)
			doing += stats.doing_cov_ns2[d];
		if (node.part != TREE_QUEUE && node.parent != TREE_ROOT)
			is_near(doing, stats.variance_ns2, 0);
		if (node.part != TREE_FUNCTION)
			continue;
		is_near(stats.variance_ns2, plain_cov(sample, x, NODES_MAX, x, NODES_MAX), 0);
		is_near(stats.cov_latency_ns2, plain_cov(sample, x, NODES_MAX, sample->latency_ns, 1),
			stats.variance_ns2);
		for (uint32_t to = 1; to < id; to++) {
			variance_tree__node_at(sample->tree, to, &other);
			if (other.part == TREE_FUNCTION && other.parent == node.parent)
				is_near(variance_tree__cov(sample->tree, id, to),
					plain_cov(sample, x, NODES_MAX, &sample->ns[0][to], NODES_MAX),
					stats.variance_ns2);
		}
	}
	variance_tree__stats(sample->tree, variance_tree__queue(sample->tree), &stats);
	is_near(stats.variance_ns2, plain_cov(sample, sample->queue_ns, 1, sample->queue_ns, 1), 0);
	variance_tree__free(sample->tree);
	free(sample);
}

/* A function that is called for the first time late: until then its caller was all body. */
static void what_comes_late_was_zero(void)
{
	struct variance_tree *tree = variance_tree__new();
	struct tree_interval interval = {.weight = 1, .latency_ns = 100};
	struct tree_call a = {.func = 1}, b = {.func = 2};
	struct tree_time times[2] = {{.calls = 1}, {.calls = 1}};
	struct tree_stats stats;
	struct tree_node node;

	CU_ASSERT_EQUAL(variance_tree__node(tree, TREE_ROOT, &a, &times[0].node), 0);
	for (int i = 0; i < 10; i++) {
		interval.latency_ns = 200 + (uint64_t)i;
		times[0].ns = 100 + (uint64_t)i;
		if (i == 8)
			CU_ASSERT_EQUAL(variance_tree__node(tree, times[0].node, &b, &times[1].node), 0);
		times[1].ns = 50;
		CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, i >= 8 ? 2 : 1), 0);
	}
	variance_tree__node_at(tree, times[0].node, &node);
	variance_tree__stats(tree, node.body, &stats);
	is_near(stats.mean_ns, 104.5 - 10, 0);
	variance_tree__stats(tree, times[1].node, &stats);
	is_near(stats.mean_ns, 10, 0);
	is_near(stats.variance_ns2, 400, 0);
	is_near(stats.met, 0.2, 0);
	variance_tree__stats(tree, times[0].node, &stats);
	is_near(sum_of_children(tree, &node), stats.variance_ns2, 0);
	variance_tree__free(tree);
}

/* A second's latency whose parts vary by ten nanoseconds. */
static void small_variances_of_long_times_are_right(void)
{
	struct variance_tree *tree = variance_tree__new();
	struct tree_call a = {.func = 1}, b = {.func = 2};
	struct tree_time times[2] = {{.calls = 1}, {.calls = 1}};
	struct tree_stats stats;
	uint64_t state = 3;

	CU_ASSERT_EQUAL(variance_tree__node(tree, TREE_ROOT, &a, &times[0].node), 0);
	CU_ASSERT_EQUAL(variance_tree__node(tree, TREE_ROOT, &b, &times[1].node), 0);
	for (int i = 0; i < 40000; i++) {
		struct tree_interval interval = {.weight = 0.1};
		uint64_t both = random_next(&state);

		times[0].ns = 1000000000000 + (both & 1 ? 10 : 0);
		times[1].ns = 3000000000000 + (both & 1 ? 10 : 0) + (both & 2 ? 20 : 0);
		interval.latency_ns = times[0].ns + times[1].ns;
		CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), 0);
	}
	variance_tree__stats(tree, times[0].node, &stats);
	CU_ASSERT_DOUBLE_EQUAL(stats.variance_ns2, 25, 0.5);
	variance_tree__stats(tree, times[1].node, &stats);
	CU_ASSERT_DOUBLE_EQUAL(stats.variance_ns2, 125, 3);
	CU_ASSERT_DOUBLE_EQUAL(variance_tree__cov(tree, times[0].node, times[1].node), 25, 2);
	variance_tree__free(tree);
}

static void the_impossible_is_refused(void)
{
	struct variance_tree *tree = variance_tree__new();
	struct tree_interval interval = {.weight = 1, .latency_ns = 100};
	struct tree_call a = {.func = 1}, b = {.func = 2};
	struct tree_time times[2] = {{.calls = 1, .ns = 60}, {.calls = 1, .ns = 61}};
	struct tree_stats stats;

	CU_ASSERT_EQUAL(variance_tree__node(tree, TREE_ROOT, &a, &times[0].node), 0);
	CU_ASSERT_EQUAL(variance_tree__node(tree, times[0].node, &b, &times[1].node), 0);
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL); /* longer than its caller */
	times[1].ns = 10;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, &times[1], 1), -EINVAL); /* without its caller */
	interval.queue_ns = 41;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL); /* queued and called at once */
	interval.queue_ns = 101;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, NULL, 0), -EINVAL);
	interval.queue_ns = 40;
	interval.weight = 0;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL);
	interval.weight = NAN;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL);
	variance_tree__stats(tree, TREE_ROOT, &stats);
	CU_ASSERT_EQUAL(stats.met, 0);
	interval.weight = 1;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), 0);
	times[1] = times[0];
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL); /* twice */
	times[1].node = TREE_ROOT;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL);
	times[1].node = 4711;
	CU_ASSERT_EQUAL(variance_tree__add(tree, &interval, times, 2), -EINVAL);
	/* None of these is counted. */
	variance_tree__stats(tree, times[0].node, &stats);
	CU_ASSERT_EQUAL(stats.met, 1);
	variance_tree__free(tree);
}

static void recursion_ends_somewhere(void)
{
	struct variance_tree *tree = variance_tree__new();
	struct tree_call call = {.func = 1};
	uint32_t node = TREE_ROOT, deeper;
	int err = 0, depth = 0;

	while (!(err = variance_tree__node(tree, node, &call, &deeper))) {
		node = deeper;
		depth++;
	}
	CU_ASSERT_EQUAL(err, -E2BIG);
	CU_ASSERT_EQUAL(deeper, node);
	CU_ASSERT_EQUAL(depth, TREE_DEPTH_MAX);
	variance_tree__free(tree);
}

int suite_variance_tree(void)
{
	static const struct unit_test tests[] = {
		{"every parent is the sum of its children", every_parent_is_the_sum_of_its_children},
		{"sums are those of two passes", sums_are_those_of_two_passes},
		{"what comes late was zero", what_comes_late_was_zero},
		{"small variances of long times are right", small_variances_of_long_times_are_right},
		{"the impossible is refused", the_impossible_is_refused},
		{"recursion ends somewhere", recursion_ends_somewhere},
	};

	return unit_suite("analysis: variance tree", tests, sizeof(tests) / sizeof(tests[0]));
}
