// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/variance_tree_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1 << 20)

static int add_node(struct variance_tree *tree, uint32_t parent, enum tree_part part, const struct tree_call *call,
		    uint32_t *id)
{
	struct node *above = parent == TREE_NONE ? NULL : &tree->nodes.items[parent];
	struct node made = {
		.base = {.parent = parent, .part = part, .body = TREE_NONE},
		.place = above ? (uint32_t)above->children.cnt : 0,
	};
	struct visit visit = {0};

	if (call)
		made.base.call = *call;
	made.base.depth = above ? above->base.depth + 1 : 0;
	*id = (uint32_t)tree->nodes.cnt;
	if (above && (vec_reserve(&above->pairs, above->children.cnt) || vec_push(&above->children, *id)))
		return -ENOMEM;
	if (made.place) {
		memset(above->pairs.items + above->pairs.cnt, 0, made.place * sizeof(*above->pairs.items));
		above->pairs.cnt += made.place;
	}
	if (vec_push(&tree->nodes, made) || vec_push(&tree->visits, visit))
		return -ENOMEM;
	return 0;
}

struct variance_tree *variance_tree__new(void)
{
	struct variance_tree *tree = calloc(1, sizeof(*tree));
	uint32_t root, body;

	if (!tree)
		return NULL;
	if (add_node(tree, TREE_NONE, TREE_FUNCTION, NULL, &root) ||
	    add_node(tree, TREE_ROOT, TREE_BODY, NULL, &body) ||
	    add_node(tree, TREE_ROOT, TREE_QUEUE, NULL, &tree->queue)) {
		variance_tree__free(tree);
		errno = ENOMEM;
		return NULL;
	}
	tree->nodes.items[root].base.body = body;
	return tree;
}

void variance_tree__free(struct variance_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->nodes.cnt; i++) {
		vec_free(&tree->nodes.items[i].children);
		vec_free(&tree->nodes.items[i].pairs);
	}
	vec_free(&tree->nodes);
	idmap__free(&tree->ids);
	vec_free(&tree->numbers);
	vec_free(&tree->visits);
	vec_free(&tree->met);
	vec_free(&tree->pair_noise);
	free(tree);
}

void variance_tree__estimate(struct variance_tree *tree)
{
	tree->estimated = true;
}

/* From now on `parent` has callees: until now all of it was its body. */
static int give_body(struct variance_tree *tree, uint32_t parent)
{
	struct tree_call call = tree->nodes.items[parent].base.call;
	uint32_t body;

	if (tree->nodes.items[parent].base.body != TREE_NONE)
		return 0;
	if (add_node(tree, parent, TREE_BODY, &call, &body))
		return -ENOMEM;
	tree->nodes.items[parent].base.body = body;
	tree->nodes.items[body].moments = tree->nodes.items[parent].moments;
	return 0;
}

int variance_tree__node(struct variance_tree *tree, uint32_t parent, const struct tree_call *call, uint32_t *node)
{
	uint64_t path = (uint64_t)parent << 32 | call->func, site = call->call_addr ^ (uint64_t)call->behind << 63;
	uint32_t id;

	if (idmap__find(&tree->ids, path, site, &id)) {
		*node = tree->numbers.items[id];
		return 0;
	}
	*node = parent;
	if (tree->nodes.items[parent].base.depth >= TREE_DEPTH_MAX || tree->nodes.cnt >= NODES_MAX)
		return -E2BIG;
	if (give_body(tree, parent) || vec_reserve(&tree->numbers, 1) || idmap__id(&tree->ids, path, site, &id) ||
	    add_node(tree, parent, TREE_FUNCTION, call, node))
		return -ENOMEM;
	return vec_push(&tree->numbers, *node);
}

/* West 1979, for a weight; `latency_ns` and what the thread did along with it. */
static void moments__add(struct moments *moments, double weight, const struct visit *visit, double latency_ns)
{
	double x = tree_ns(visit->ns), x_before = x - moments->mean, part;

	moments->weight += weight;
	part = weight / moments->weight;
	moments->mean += x_before * part;
	moments->m2 += weight * x_before * (x - moments->mean);
	moments->latency_mean += (latency_ns - moments->latency_mean) * part;
	moments->latency_c += weight * x_before * (latency_ns - moments->latency_mean);
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		double doing = tree_ns(visit->doing_ns[d]);

		moments->doing_mean[d] += (doing - moments->doing_mean[d]) * part;
		moments->doing_c[d] += weight * x_before * (doing - moments->doing_mean[d]);
	}
	moments->calls += weight * visit->calls;
	moments->noise += weight * visit->noise;
}

static void pair__add(struct pair *pair, double weight, double a, double b)
{
	double a_before = a - pair->a_mean;

	pair->weight += weight;
	pair->a_mean += a_before * weight / pair->weight;
	pair->b_mean += (b - pair->b_mean) * weight / pair->weight;
	pair->c += weight * a_before * (b - pair->b_mean);
}

static void visit__init(struct visit *visit, uint64_t mark, uint64_t ns, const uint64_t doing_ns[TREE_DOING_CNT],
			uint32_t calls)
{
	*visit = (struct visit){
		.mark = mark,
		.ns = ns,
		.left_ns = ns,
		.calls = calls,
		.first_child = TREE_NONE,
		.next = TREE_NONE,
	};
	memcpy(visit->doing_ns, doing_ns, sizeof(visit->doing_ns));
	memcpy(visit->left_doing_ns, doing_ns, sizeof(visit->left_doing_ns));
}

/* Takes a child's time out of what is left of its parent; false: there is not so much. */
static bool take(struct variance_tree *tree, uint32_t id)
{
	struct visit *child = &tree->visits.items[id], *parent = &tree->visits.items[tree->nodes.items[id].base.parent];

	if (parent->mark != tree->mark || (child->ns > parent->left_ns && !tree->estimated))
		return false;
	child->next = parent->first_child;
	parent->first_child = id;
	parent->left_ns -= child->ns;
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		uint64_t most = parent->left_doing_ns[d];

		parent->left_doing_ns[d] -= child->doing_ns[d] < most || tree->estimated ? child->doing_ns[d] : most;
	}
	return true;
}

/* The split of what is left need not fit into it exactly, where a child's was cut at a boundary. */
static void fit_doing(struct visit *visit)
{
	uint64_t rest_ns = visit->ns;

	for (int d = TREE_DOING_CNT - 1; d >= 0; d--) {
		uint64_t *doing = &visit->doing_ns[d];

		*doing = *doing < rest_ns ? *doing : rest_ns;
		rest_ns -= *doing;
	}
}

/* What its callees leave of one that occurs. */
static void visit_body(struct variance_tree *tree, uint32_t parent)
{
	uint32_t body = tree->nodes.items[parent].base.body;
	const struct visit *above = &tree->visits.items[parent];

	if (body == TREE_NONE)
		return;
	visit__init(&tree->visits.items[body], tree->mark, above->left_ns, above->left_doing_ns, above->calls);
	if (!tree->estimated)
		fit_doing(&tree->visits.items[body]);
}

static bool visit_all(struct variance_tree *tree, const struct tree_interval *interval, const struct tree_time *times,
		      size_t cnt)
{
	static const uint64_t nothing[TREE_DOING_CNT];
	struct visit *visits = tree->visits.items;

	tree->mark++;
	if (interval->queue_ns > interval->latency_ns)
		return false;
	visit__init(&visits[TREE_ROOT], tree->mark, interval->latency_ns, interval->doing_ns, 1);
	if (interval->queue_ns) {
		visit__init(&visits[tree->queue], tree->mark, interval->queue_ns, nothing, 1);
		take(tree, tree->queue);
	}
	for (size_t i = 0; i < cnt; i++) {
		uint32_t node = times[i].node;

		if (!node || node >= tree->nodes.cnt || tree->nodes.items[node].base.part != TREE_FUNCTION ||
		    visited(tree, node))
			return false;
		visit__init(&visits[node], tree->mark, times[i].ns, times[i].doing_ns, times[i].calls);
	}
	for (size_t i = 0; i < cnt; i++)
		if (!take(tree, times[i].node))
			return false;
	visit_body(tree, TREE_ROOT);
	for (size_t i = 0; i < cnt; i++)
		visit_body(tree, times[i].node);
	return true;
}

/* Adds the body of one that occurs, and all pairs of its children that do. */
static int add_children(struct variance_tree *tree, const struct tree_interval *interval, uint32_t parent)
{
	struct node *above = &tree->nodes.items[parent];
	struct visit *visits = tree->visits.items;
	uint32_t body = above->base.body;

	if (body == TREE_NONE)
		return 0;
	moments__add(&tree->nodes.items[body].moments, interval->weight, &visits[body], (double)interval->latency_ns);
	tree->met.cnt = 0;
	if (vec_push(&tree->met, body))
		return -ENOMEM;
	for (uint32_t child = visits[parent].first_child; child != TREE_NONE; child = visits[child].next)
		if (vec_push(&tree->met, child))
			return -ENOMEM;
	for (size_t i = 1; i < tree->met.cnt; i++)
		for (size_t j = 0; j < i; j++) {
			uint32_t a = tree->met.items[i], b = tree->met.items[j];
			uint32_t a_place = tree->nodes.items[a].place, b_place = tree->nodes.items[b].place;
			bool later = a_place > b_place;

			pair__add(pair_at(above, a_place, b_place), interval->weight, tree_ns(visits[later ? a : b].ns),
				  tree_ns(visits[later ? b : a].ns));
		}
	return 0;
}

int variance_tree__visit(struct variance_tree *tree, const struct tree_interval *interval,
			 const struct tree_time *times, size_t cnt)
{
	return visit_all(tree, interval, times, cnt) ? variance_tree__visit_noise(tree, interval) : -EINVAL;
}

bool variance_tree__visited(const struct variance_tree *tree, uint32_t node, struct tree_time *time)
{
	const struct visit *visit = &tree->visits.items[node];

	if (!visited(tree, node))
		return false;
	*time = (struct tree_time){.node = node, .calls = visit->calls, .ns = visit->ns};
	memcpy(time->doing_ns, visit->doing_ns, sizeof(time->doing_ns));
	return true;
}

int variance_tree__add(struct variance_tree *tree, const struct tree_interval *interval, const struct tree_time *times,
		       size_t cnt)
{
	double latency_ns = (double)interval->latency_ns;
	struct visit *visits = tree->visits.items;
	int err;

	if (!(interval->weight > 0) || !visit_all(tree, interval, times, cnt))
		return -EINVAL;
	if (variance_tree__visit_noise(tree, interval))
		return -ENOMEM;
	tree->weight += interval->weight;
	moments__add(&tree->nodes.items[TREE_ROOT].moments, interval->weight, &visits[TREE_ROOT], latency_ns);
	if (interval->queue_ns)
		moments__add(&tree->nodes.items[tree->queue].moments, interval->weight, &visits[tree->queue],
			     latency_ns);
	for (size_t i = 0; i < cnt; i++)
		moments__add(&tree->nodes.items[times[i].node].moments, interval->weight, &visits[times[i].node],
			     latency_ns);
	err = add_children(tree, interval, TREE_ROOT);
	for (size_t i = 0; i < cnt && !err; i++)
		err = add_children(tree, interval, times[i].node);
	for (size_t i = 0; i < tree->pair_noise.cnt && !err; i++) {
		const struct tree_noise *noise = &tree->pair_noise.items[i];
		const struct node *a = &tree->nodes.items[noise->a], *b = &tree->nodes.items[noise->b];

		if (a->place != b->place)
			pair_at(&tree->nodes.items[a->base.parent], a->place, b->place)->noise +=
				interval->weight * noise->ns2;
	}
	return err;
}

size_t variance_tree__node_cnt(const struct variance_tree *tree)
{
	return tree->nodes.cnt;
}

uint32_t variance_tree__queue(const struct variance_tree *tree)
{
	return tree->queue;
}

void variance_tree__node_at(const struct variance_tree *tree, uint32_t id, struct tree_node *node)
{
	*node = tree->nodes.items[id].base;
	node->children = tree->nodes.items[id].children.items;
	node->child_cnt = tree->nodes.items[id].children.cnt;
}

/*
 * With the intervals in which it does not occur, where X = 0, by Chan's formula: what is there has weight w of W and
 * mean m, what is not there has mean 0, so the sums of products grow by m·m'·w·(W - w)/W.  The latency's mean over the
 * intervals without the node is not kept, but (W - w) times its difference to the one with it is W times the difference
 * of that to the mean of all.
 */
void variance_tree__stats(const struct variance_tree *tree, uint32_t id, struct tree_stats *stats)
{
	const struct moments *own = &tree->nodes.items[id].moments, *all = &tree->nodes.items[TREE_ROOT].moments;
	double w = own->weight, total = tree->weight, both;

	*stats = (struct tree_stats){0};
	if (!(total > 0))
		return;
	both = total > w ? w * (total - w) / total : 0;
	stats->met = w / total;
	stats->calls = own->calls / total;
	stats->mean_ns = own->mean * stats->met;
	stats->variance_ns2 = (own->m2 + own->mean * own->mean * both - own->noise) / total;
	stats->cov_latency_ns2 = (own->latency_c + own->mean * w * (own->latency_mean - all->latency_mean)) / total;
	for (int d = 0; d < TREE_DOING_CNT; d++) {
		stats->doing_mean_ns[d] = own->doing_mean[d] * stats->met;
		stats->doing_cov_ns2[d] = (own->doing_c[d] + own->doing_mean[d] * own->mean * both) / total;
	}
	/* Waits are exact. */
	stats->doing_cov_ns2[TREE_RUNNING] -= own->noise / total;
}

/* Likewise: outside of the intervals in which both occur, one of the two is 0, and so is their product. */
double variance_tree__cov(const struct variance_tree *tree, uint32_t child, uint32_t other)
{
	const struct node *a = &tree->nodes.items[child], *b = &tree->nodes.items[other];
	const struct pair *pair = pair_at(&tree->nodes.items[a->base.parent], a->place, b->place);
	double total = tree->weight, rest = total - pair->weight, x, y, c = pair->c;
	bool later = a->place > b->place;

	if (!(total > 0))
		return 0;
	/* What is less is the rounding of the weights' sums, not a rest. */
	if (rest > 1e-10 * total) {
		x = (a->moments.mean * a->moments.weight - (later ? pair->a_mean : pair->b_mean) * pair->weight) / rest;
		y = (b->moments.mean * b->moments.weight - (later ? pair->b_mean : pair->a_mean) * pair->weight) / rest;
		c += ((later ? pair->a_mean : pair->b_mean) - x) * ((later ? pair->b_mean : pair->a_mean) - y) *
			     pair->weight * rest / total -
		     rest * x * y;
	}
	return (c - pair->noise) / total;
}
