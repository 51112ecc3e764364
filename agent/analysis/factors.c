// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/factors.h"

#include "base/idmap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct selection {
	struct factors *factors;
	const struct variance_tree *tree;
	const struct factor_rule *rule;
	struct idmap ids;        /* one or two parts → index into the list */
	VEC(uint32_t) owners;    /* by instance: whose it is */
	VEC(double) biggest_var; /* by factor: of its biggest instance */
	VEC(double) doing_cov;   /* by factor and doing */
};

/* A function or a function's body, as half of a key. */
static uint64_t part_key(const struct tree_node *node)
{
	return (uint64_t)node->call.func << 1 | (node->part == TREE_BODY);
}

static int factor_of(struct selection *selection, uint64_t first, uint64_t second, uint32_t *id)
{
	struct factors *factors = selection->factors;
	bool pair = second != UINT64_MAX;
	struct factor made = {
		.funcs = {(uint32_t)(first >> 1), pair ? (uint32_t)(second >> 1) : FACTOR_NONE},
		.body = {first & 1, pair && (second & 1)},
	};

	if (idmap__id(&selection->ids, first, second, id))
		return -ENOMEM;
	if (*id < factors->list.cnt)
		return 0;
	for (int d = 0; d < TREE_DOING_CNT; d++)
		if (vec_push(&selection->doing_cov, 0.0))
			return -ENOMEM;
	if (vec_push(&selection->biggest_var, -1.0))
		return -ENOMEM;
	return vec_push(&factors->list, made);
}

static int add_instance(struct selection *selection, uint32_t id, uint32_t node, uint32_t other, double variance_ns2)
{
	struct factors *factors = selection->factors;
	struct factor *factor = &factors->list.items[id];

	factor->contribution += variance_ns2 / factors->variance_ns2;
	factor->call_sites++;
	if (fabs(variance_ns2) > selection->biggest_var.items[id]) {
		selection->biggest_var.items[id] = fabs(variance_ns2);
		factor->biggest = node;
	}
	factor->instance_cnt += other == TREE_NONE ? 1 : 2;
	for (int i = 0; i < (other == TREE_NONE ? 1 : 2); i++)
		if (vec_push(&factors->instances, i ? other : node) || vec_push(&selection->owners, id) ||
		    vec_push(&factors->terms, variance_ns2 / factors->variance_ns2))
			return -ENOMEM;
	return 0;
}

/* Is it part of a call of the same function? */
static bool is_recursive(const struct variance_tree *tree, const struct tree_node *node)
{
	struct tree_node above;

	if (node->part != TREE_FUNCTION)
		return false;
	for (uint32_t at = node->parent; at != TREE_ROOT; at = above.parent) {
		variance_tree__node_at(tree, at, &above);
		if (above.call.func == node->call.func)
			return true;
	}
	return false;
}

/* The earlier paper's rule: one child's variance, or two children's covariance, is nearly all of it. */
static bool is_dominated(const struct variance_tree *tree, const struct tree_node *node, double variance_ns2, double m)
{
	struct tree_stats stats;

	if (!(m > 0))
		return false;
	for (size_t a = 0; a < node->child_cnt; a++) {
		variance_tree__stats(tree, node->children[a], &stats);
		if (stats.variance_ns2 >= m * variance_ns2)
			return true;
		for (size_t b = 0; b < a; b++)
			if (2 * variance_tree__cov(tree, node->children[a], node->children[b]) >= m * variance_ns2)
				return true;
	}
	return false;
}

static int add_variance(struct selection *selection, uint32_t id, const struct tree_node *node)
{
	const struct variance_tree *tree = selection->tree;
	struct tree_stats stats;
	struct factor *factor;
	double variance_ns2;
	uint32_t of;

	variance_tree__stats(tree, id, &stats);
	if (!(stats.met > 0) || is_recursive(tree, node))
		return 0;
	if (factor_of(selection, part_key(node), UINT64_MAX, &of))
		return -ENOMEM;
	factor = &selection->factors->list.items[of];
	factor->opened |= node->body != TREE_NONE;
	factor->variance_share += stats.cov_latency_ns2 / selection->factors->variance_ns2;
	factor->mean_ns += stats.mean_ns;
	factor->calls += stats.calls;
	/* Call sites are met together or apart: how often any of them is, the sums do not tell. */
	factor->met = fmax(factor->met, stats.met);
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		factor->doing_share[d] += stats.doing_mean_ns[d];
		selection->doing_cov.items[(size_t)of * TREE_DOING_CNT + (size_t)d] += stats.doing_cov_ns2[d];
	}
	variance_ns2 = stats.variance_ns2;
	if (node->part == TREE_FUNCTION && is_dominated(tree, node, variance_ns2, selection->rule->m))
		variance_ns2 = 0;
	return add_instance(selection, of, id, TREE_NONE, variance_ns2);
}

static bool has_function(const struct tree_node *node)
{
	return node->part == TREE_FUNCTION || (node->part == TREE_BODY && node->parent != TREE_ROOT);
}

/* Every pair of a node's children that both vary. */
static int add_pairs(struct selection *selection, const struct tree_node *node)
{
	const struct variance_tree *tree = selection->tree;
	struct tree_node a, b;
	double cov_ns2;
	uint32_t of;

	for (size_t i = 1; i < node->child_cnt; i++) {
		variance_tree__node_at(tree, node->children[i], &a);
		for (size_t j = 0; j < i && has_function(&a); j++) {
			uint64_t x = part_key(&a), y;

			variance_tree__node_at(tree, node->children[j], &b);
			if (!has_function(&b))
				continue;
			cov_ns2 = variance_tree__cov(tree, node->children[i], node->children[j]);
			if (cov_ns2 == 0)
				continue;
			y = part_key(&b);
			if (factor_of(selection, x < y ? x : y, x < y ? y : x, &of) ||
			    add_instance(selection, of, node->children[x < y ? i : j], node->children[x < y ? j : i],
					 2 * cov_ns2))
				return -ENOMEM;
		}
	}
	return 0;
}

static int add_all(struct selection *selection)
{
	size_t cnt = variance_tree__node_cnt(selection->tree);
	struct tree_node node;
	int err = 0;

	for (uint32_t id = 0; id < cnt && !err; id++) {
		variance_tree__node_at(selection->tree, id, &node);
		if (id != TREE_ROOT && has_function(&node))
			err = add_variance(selection, id, &node);
		if (!err)
			err = add_pairs(selection, &node);
	}
	return err;
}

/* Instances factor by factor: a counting sort, in which a pair's two stay together. */
static int group_instances(struct selection *selection)
{
	struct factors *factors = selection->factors;
	uint32_t *grouped = malloc((factors->instances.cnt + 1) * sizeof(*grouped));
	double *terms = malloc((factors->terms.cnt + 1) * sizeof(*terms));
	size_t at = 0;

	if (!grouped || !terms) {
		free(grouped);
		free(terms);
		return -ENOMEM;
	}
	for (size_t f = 0; f < factors->list.cnt; f++) {
		struct factor *factor = &factors->list.items[f];

		factor->first_instance = at;
		at += factor->instance_cnt;
		factor->instance_cnt = 0;
	}
	for (size_t i = 0; i < factors->instances.cnt; i++) {
		struct factor *factor = &factors->list.items[selection->owners.items[i]];

		terms[factor->first_instance + factor->instance_cnt] = factors->terms.items[i];
		grouped[factor->first_instance + factor->instance_cnt++] = factors->instances.items[i];
	}
	if (at) {
		memcpy(factors->instances.items, grouped, factors->instances.cnt * sizeof(*grouped));
		memcpy(factors->terms.items, terms, factors->terms.cnt * sizeof(*terms));
	}
	free(grouped);
	free(terms);
	return 0;
}

static void finish_doing(struct selection *selection, size_t f)
{
	struct factor *factor = &selection->factors->list.items[f];
	const double *cov = selection->doing_cov.items + f * TREE_DOING_CNT;
	double sum = 0;

	for (int d = 0; d < TREE_DOING_CNT; d++)
		sum += cov[d];
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		bool pair = factor->funcs[1] != FACTOR_NONE;

		factor->doing_share[d] = factor->mean_ns > 0 ? factor->doing_share[d] / factor->mean_ns : NAN;
		factor->doing_contribution[d] = !pair && sum > 0 ? cov[d] / sum : NAN;
	}
}

static uint32_t part_height(uint32_t func, bool body, factor_height height, void *ctx)
{
	return func == FACTOR_NONE || body ? 0 : height(ctx, func);
}

static void score_all(struct selection *selection, uint32_t graph_height, factor_height height, void *ctx)
{
	struct factors *factors = selection->factors;

	factors->graph_height = graph_height;
	for (size_t f = 0; f < factors->list.cnt; f++) {
		struct factor *factor = &factors->list.items[f];
		uint32_t other = part_height(factor->funcs[1], factor->body[1], height, ctx);

		factor->height = part_height(factor->funcs[0], factor->body[0], height, ctx);
		factor->height = factor->height > other ? factor->height : other;
		if (factor->height >= factors->graph_height)
			factors->graph_height = factor->height + 1;
		finish_doing(selection, f);
	}
	for (size_t f = 0; f < factors->list.cnt; f++) {
		struct factor *factor = &factors->list.items[f];

		factor->specificity = pow(factors->graph_height - factor->height, selection->rule->e);
		factor->score = factor->specificity * factor->contribution;
	}
}

static int compare_factors(const void *left, const void *right)
{
	const struct factor *a = left, *b = right;

	if (a->score != b->score)
		return a->score < b->score ? 1 : -1;
	if (a->contribution != b->contribution)
		return a->contribution < b->contribution ? 1 : -1;
	for (int i = 0; i < 2; i++) {
		if (a->funcs[i] != b->funcs[i])
			return a->funcs[i] < b->funcs[i] ? -1 : 1;
		if (a->body[i] != b->body[i])
			return a->body[i] ? 1 : -1;
	}
	return 0;
}

/*
 * The best k of those that contribute enough: a small one in front of them takes nobody's place.  What has been opened
 * comes last: its own code, its callees and their covariances, which together are all that it contributes, are factors
 * themselves, and under a call graph of some height the specificity hardly tells it from them.
 */
static void select_best(struct factors *factors, const struct factor_rule *rule)
{
	vec_sort(&factors->list, compare_factors);
	for (int opened = 0; opened <= 1; opened++)
		for (size_t f = 0; f < factors->list.cnt && factors->selected_cnt < rule->k; f++) {
			struct factor *factor = &factors->list.items[f];

			if (factor->opened == opened && factor->contribution > rule->d)
				factor->rank = (uint32_t)++factors->selected_cnt;
		}
}

static double share_of(const struct factors *factors, const struct variance_tree *tree, uint32_t node)
{
	struct tree_stats stats;

	variance_tree__stats(tree, node, &stats);
	return stats.cov_latency_ns2 / factors->variance_ns2;
}

int factors_select(struct factors *factors, const struct variance_tree *tree, const struct factor_rule *rule,
		   uint32_t graph_height, factor_height height, void *ctx)
{
	struct selection selection = {.factors = factors, .tree = tree, .rule = rule};
	struct tree_stats stats;
	struct tree_node root;
	int err;

	*factors = (struct factors){.graph_height = graph_height, .body_share = NAN, .queue_share = NAN};
	variance_tree__stats(tree, TREE_ROOT, &stats);
	factors->variance_ns2 = stats.variance_ns2;
	/* Equal latencies: what is left is rounding. */
	if (!(stats.variance_ns2 > 1e-12 * stats.mean_ns * stats.mean_ns))
		return 0;
	variance_tree__node_at(tree, TREE_ROOT, &root);
	factors->body_share = share_of(factors, tree, root.body);
	factors->queue_share = share_of(factors, tree, variance_tree__queue(tree));
	err = add_all(&selection);
	if (!err)
		err = group_instances(&selection);
	if (!err) {
		score_all(&selection, graph_height, height, ctx);
		select_best(factors, rule);
	}
	idmap__free(&selection.ids);
	vec_free(&selection.owners);
	vec_free(&selection.biggest_var);
	vec_free(&selection.doing_cov);
	return err;
}

int factor_names_add(factor_names *names, const char *name)
{
	if (vec_reserve(names, 1))
		return -ENOMEM;
	names->items[names->cnt] = strdup(name);
	if (!names->items[names->cnt])
		return -ENOMEM;
	names->cnt++;
	return 0;
}

void factor_names_free(factor_names *names)
{
	for (size_t i = 0; i < names->cnt; i++)
		free(names->items[i]);
	vec_free(names);
}

void factors_free(struct factors *factors)
{
	vec_free(&factors->list);
	vec_free(&factors->instances);
	vec_free(&factors->terms);
	*factors = (struct factors){0};
}
