/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a schema is to be read in the kernel at the innermost frame: the rest is in registers and on the stack. */
#ifndef WHYLATE_VALUES_PLAN_H
#define WHYLATE_VALUES_PLAN_H

#include "bpf/knobs.h"
#include "values/schema.h"

struct value_plan {
	VEC(struct value_range) ranges; /* of each module ascending and disjoint */
	VEC(struct value_read) reads;
	VEC(struct value_global) globals;
	size_t left_out; /* reads beyond the limits */
	size_t no_frame; /* pointers in frames whose place is not known throughout */
};

/* Adds a module's: its ranges are range_cnt from first_range on. 0 or -ENOMEM; value_plan_free() in either case. */
int value_plan_add(struct value_plan *plan, const struct value_schema *schema, uint32_t module, uint32_t *first_range,
		   uint32_t *range_cnt);
void value_plan_free(struct value_plan *plan);

#endif
