// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/hw_rules.h"

#include "shard/table.h"

#include <string.h>

static const struct hw_traits traits[SHARD_HW_CNT] = {
#define HWCOUNTER(id, name, type, config, group, set) {name, HW_GROUP_##group, set},
#include <whylate/hwcounter.def>
};

static const struct hw_child children[] = {
#define HW_CHILD(child, parent) {SHARD_HW_##child, SHARD_HW_##parent},
#include <whylate/hwrule.def>
};

const struct hw_traits *hw_traits(uint32_t counter)
{
	return &traits[counter];
}

enum hw_group hw_group_named(const char *name)
{
	for (size_t i = 0; i < SHARD_HW_CNT; i++)
		if (!strcmp(traits[i].name, name))
			return traits[i].group;
	return HW_GROUP_NONE;
}

const struct hw_child *hw_children(size_t *cnt)
{
	*cnt = sizeof(children) / sizeof(children[0]);
	return children;
}

bool hw_rule_pair(uint32_t a, uint32_t b)
{
	if (a == b || traits[a].set != traits[b].set)
		return false;
	for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		if ((children[i].child == a && children[i].parent == b) ||
		    (children[i].child == b && children[i].parent == a))
			return true;
	return traits[a].group != traits[b].group;
}
