/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VarMRI §5.2: which hardware counters the two rules compare (hwcounter.def, hwrule.def). */
#ifndef WHYLATE_MODEL_HW_RULES_H
#define WHYLATE_MODEL_HW_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rule 1, INST > CACHE > CYCLE: more instructions make more cache misses and more cycles, and not the other way round.
 */
enum hw_group { HW_GROUP_NONE, HW_GROUP_CYCLE, HW_GROUP_CACHE, HW_GROUP_INST };

/* Of an enum shard_hwcounter. */
struct hw_traits {
	const char *name;
	enum hw_group group;
	int set; /* only counters of one set are open together */
};

/* Rule 2: the child's value is part of the parent's. */
struct hw_child {
	uint32_t child, parent;
};

const struct hw_traits *hw_traits(uint32_t counter);
/* HW_GROUP_NONE: no hardware counter is called that. */
enum hw_group hw_group_named(const char *name);
const struct hw_child *hw_children(size_t *cnt);
/* Does a rule compare the two? */
bool hw_rule_pair(uint32_t a, uint32_t b);

#endif
