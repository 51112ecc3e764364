// SPDX-License-Identifier: GPL-2.0-or-later
#include "tree_fixture.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define SCALE 1e10 /* ns² for a variance of 1 */

static bool is_above(const struct tree_fixture_node *nodes, int i, unsigned pattern)
{
	return pattern >> (nodes[i].with >= 0 ? nodes[i].with : i) & 1;
}

struct variance_tree *tree_fixture(const struct tree_fixture_node *nodes, int cnt, uint32_t *ids)
{
	struct variance_tree *tree = variance_tree__new();
	struct tree_time times[TREE_FIXTURE_MAX];

	CU_ASSERT_PTR_NOT_NULL_FATAL(tree);
	for (int i = 0; i < cnt; i++) {
		struct tree_call call = {.func = nodes[i].func, .call_addr = nodes[i].call_addr};
		uint32_t parent = nodes[i].parent < 0 ? TREE_ROOT : ids[nodes[i].parent];

		CU_ASSERT_EQUAL_FATAL(variance_tree__node(tree, parent, &call, &ids[i]), 0);
	}
	for (unsigned pattern = 0; pattern < 1u << cnt; pattern++) {
		struct tree_interval interval = {.weight = 1};

		for (int i = 0; i < cnt; i++) {
			uint64_t amplitude = (uint64_t)sqrt(nodes[i].variance * SCALE);

			times[i] = (struct tree_time){.node = ids[i], .calls = 1};
			times[i].ns = is_above(nodes, i, pattern) ? 2 * amplitude : 0;
		}
		for (int i = cnt - 1; i >= 0; i--) {
			times[i].doing_ns[TREE_RUNNING] = times[i].ns;
			if (nodes[i].parent >= 0)
				times[nodes[i].parent].ns += times[i].ns;
			else
				interval.latency_ns += times[i].ns;
		}
		interval.latency_ns += 1000;
		CU_ASSERT_EQUAL_FATAL(variance_tree__add(tree, &interval, times, (size_t)cnt), 0);
	}
	return tree;
}
