// SPDX-License-Identifier: GPL-2.0-or-later
/* Of times that are estimated from samples: how much of their variances and covariances is the sampling's own. */
#include "analysis/variance_tree_internal.h"

#include <errno.h>

static void add_noise(struct variance_tree *tree, uint32_t node, double ns2)
{
	if (node != TREE_NONE && visited(tree, node))
		tree->visits.items[node].noise += ns2;
}

static int add_pair_noise(struct variance_tree *tree, uint32_t a, uint32_t b, double ns2)
{
	if (a == TREE_NONE || b == TREE_NONE || !visited(tree, a) || !visited(tree, b))
		return 0;
	return vec_push(&tree->pair_noise, ((struct tree_noise){a, b, ns2}));
}

/* The parent's time is exact, whatever is estimated below this child. */
static bool is_below_exact(const struct variance_tree *tree, uint32_t id)
{
	const struct tree_node *node = &tree->nodes.items[id].base;

	return node->parent == TREE_ROOT || node->call.behind;
}

/* The node's square, and that of all above it up to one whose time is exact: what that one's body is lacks the error.
 */
static int climb_noise(struct variance_tree *tree, uint32_t id, double ns2)
{
	for (; id != TREE_ROOT; id = tree->nodes.items[id].base.parent) {
		uint32_t body = tree->nodes.items[tree->nodes.items[id].base.parent].base.body;

		add_noise(tree, id, ns2);
		if (!is_below_exact(tree, id))
			continue;
		add_noise(tree, body, ns2);
		return add_pair_noise(tree, body, id, -ns2);
	}
	return 0;
}

/* One up; false: the error ends there. */
static bool climb(const struct variance_tree *tree, uint32_t *at, uint32_t *below)
{
	*below = *at;
	*at = tree->nodes.items[*at].base.parent;
	return *at == TREE_ROOT || !tree->nodes.items[*below].base.call.behind;
}

static int add_noise_of_two(struct variance_tree *tree, const struct tree_noise *noise)
{
	uint32_t a = noise->a, b = noise->b, a_below = TREE_NONE, b_below = TREE_NONE, body;
	bool together = true;

	while (a != b && together) {
		uint32_t a_depth = tree->nodes.items[a].base.depth, b_depth = tree->nodes.items[b].base.depth;

		if (a_depth >= b_depth)
			together = climb(tree, &a, &a_below);
		if (b_depth >= a_depth)
			together &= climb(tree, &b, &b_below);
	}
	/* Behind the same wait they are together after all. */
	if (a != b)
		return 0;
	body = tree->nodes.items[a].base.body;
	if (add_pair_noise(tree, a_below == TREE_NONE ? body : a_below, b_below == TREE_NONE ? body : b_below,
			   noise->ns2))
		return -ENOMEM;
	if (a != TREE_ROOT && together)
		return climb_noise(tree, a, 2 * noise->ns2);
	add_noise(tree, body, 2 * noise->ns2);
	return add_pair_noise(tree, body, a_below, -noise->ns2) || add_pair_noise(tree, body, b_below, -noise->ns2)
		       ? -ENOMEM
		       : 0;
}

int variance_tree__visit_noise(struct variance_tree *tree, const struct tree_interval *interval)
{
	int err = 0;

	tree->pair_noise.cnt = 0;
	for (size_t i = 0; i < interval->noise_cnt && !err; i++) {
		const struct tree_noise *noise = &interval->noise[i];

		if (noise->a != noise->b) {
			err = add_noise_of_two(tree, noise);
			continue;
		}
		add_noise(tree, tree->nodes.items[noise->a].base.body, noise->ns2);
		err = climb_noise(tree, noise->a, noise->ns2);
	}
	return err;
}

double variance_tree__visited_noise(const struct variance_tree *tree, uint32_t node)
{
	return visited(tree, node) ? tree->visits.items[node].noise : 0;
}

const struct tree_noise *variance_tree__visited_pairs(const struct variance_tree *tree, size_t *cnt)
{
	*cnt = tree->pair_noise.cnt;
	return tree->pair_noise.items;
}

/* Marks what occurs and works out what is left of every parent; false: it cannot be true. */
