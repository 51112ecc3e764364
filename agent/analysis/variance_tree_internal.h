/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of a tree, for variance_tree.c and variance_tree_noise.c. */
#ifndef WHYLATE_ANALYSIS_VARIANCE_TREE_INTERNAL_H
#define WHYLATE_ANALYSIS_VARIANCE_TREE_INTERNAL_H

#include "analysis/variance_tree.h"
#include "base/idmap.h"
#include "base/vec.h"

/* Over the intervals in which a node occurs: weight, means, and sums of products of the differences from them. */
struct moments {
	double weight;
	double mean, m2;
	double latency_mean, latency_c;
	double doing_mean[TREE_DOING_CNT], doing_c[TREE_DOING_CNT];
	double calls;
	double noise; /* a sum over all intervals */
};

/* Over those in which two children of one parent occur both; `a` is the one that came later. */
struct pair {
	double weight, a_mean, b_mean, c;
	double noise; /* likewise */
};

struct node {
	struct tree_node base; /* children and child_cnt are below */
	uint32_t place;        /* among the parent's children */
	struct moments moments;
	VEC(uint32_t) children;
	VEC(struct pair) pairs; /* of children a > b: at a·(a - 1)/2 + b */
};

/* A node in the interval that is being added. */
struct visit {
	uint64_t mark; /* equal to the tree's: it occurs */
	uint64_t ns, doing_ns[TREE_DOING_CNT];
	uint64_t left_ns, left_doing_ns[TREE_DOING_CNT]; /* without its children's */
	double noise;
	uint32_t calls;
	uint32_t first_child, next; /* of those that occur; TREE_NONE: the end */
};

struct variance_tree {
	VEC(struct node) nodes;
	struct idmap ids; /* (parent, func), (call_addr, behind) → index into numbers */
	VEC(uint32_t) numbers;
	VEC(struct visit) visits;          /* by node */
	VEC(uint32_t) met;                 /* children of one parent in this interval */
	VEC(struct tree_noise) pair_noise; /* likewise */
	bool estimated;
	uint64_t mark;
	double weight;
	uint32_t queue;
};

static inline struct pair *pair_at(const struct node *parent, uint32_t place, uint32_t other)
{
	uint32_t a = place > other ? place : other, b = place > other ? other : place;

	return &parent->pairs.items[(size_t)a * (a - 1) / 2 + b];
}

static inline bool visited(const struct variance_tree *tree, uint32_t id)
{
	return tree->visits.items[id].mark == tree->mark;
}

/* The noise of the interval's times, which are noted down by now.  0 or -ENOMEM. */
int variance_tree__visit_noise(struct variance_tree *tree, const struct tree_interval *interval);

#endif
