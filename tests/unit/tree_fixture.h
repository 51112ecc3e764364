/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variance trees by hand: functions whose times vary as told, each independent of the others or together with one. */
#ifndef WHYLATE_TESTS_TREE_FIXTURE_H
#define WHYLATE_TESTS_TREE_FIXTURE_H

#include "analysis/variance_tree.h"

#define TREE_FIXTURE_MAX 10

/* A function without callees, or what is left of one with: its own time is base ± amplitude. */
struct tree_fixture_node {
	uint32_t func;
	int parent; /* index of its caller, which comes before it; -1: the root */
	uint64_t call_addr;
	double variance; /* of its own time: the share of it in Var(L) is this over the sum of all */
	int with;        /* index of the node with which it varies; -1: alone */
};

/*
 * 2^cnt intervals of weight 1, in which every node's own time takes both its values in every combination: variances are
 * exact (up to whole nanoseconds), covariances 0 or, `with` another, the product of the standard deviations.
 * Node i gets tree node ids[i].
 */
struct variance_tree *tree_fixture(const struct tree_fixture_node *nodes, int cnt, uint32_t *ids);

#endif
