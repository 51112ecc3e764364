/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of a schema is to be read in the kernel at the innermost frame: the rest is in registers and on the stack.  The
 * plan is in parts, each of one module, of which as many are in the kernel at a time as fit: they take turns.
 */
#ifndef WHYLATE_VALUES_PLAN_H
#define WHYLATE_VALUES_PLAN_H

#include "bpf/knobs.h"
#include "values/schema.h"

#define VALUE_NO_PART UINT32_MAX
/* A schema that lies shall not keep the agent: what is beyond so many steps is left out. */
#define VALUE_PLAN_STEPS_MAX (1ULL << 31)

/* The kernel's offsets have 32 bits. */
static inline bool value_off_fits(int64_t off)
{
	return off >= INT32_MIN && off <= INT32_MAX;
}

/* Slices of the plan's arrays, which have those of all parts one after the other. */
struct value_slice {
	uint32_t first, cnt;
};

struct value_part {
	uint32_t module;
	struct value_slice ranges, reads, globals;
};

struct value_limits {
	size_t ranges, reads, globals;
};

struct value_plan {
	VEC(struct value_range) ranges; /* of each part ascending and disjoint; the reads are counted from the first */
	VEC(struct value_read) reads;
	VEC(struct value_global) globals;
	VEC(struct value_part) parts;
	struct value_limits limits; /* of what is in the kernel at a time; 0: its own */
	size_t left_out;            /* reads of one function that are more than that */
	size_t no_frame;            /* pointers in frames whose place is not known throughout */
	uint64_t steps;             /* that making it has taken */
};

/* How a variable is read. */
struct value_planned {
	uint32_t part; /* VALUE_NO_PART: it needs none */
};

/* With so many reads, of which so many are made at a tick, each is made at one of so many. */
static inline uint32_t value_turn(size_t cnt, uint32_t at_once)
{
	return cnt > at_once ? (uint32_t)((cnt + at_once - 1) / at_once) : 1;
}

/*
 * The read of a variable in memory at that location; `rule`: where the frame is, NULL: not known.  False: there is
 * none, or it is in a register or where the copied stack has it.
 */
bool value_read_make(const struct value_variable *variable, const struct value_location *location,
		     const struct value_frame_rule *rule, struct value_read *read);
/*
 * Adds a module's parts, one or more; `planned`: of each variable of the schema.  0 or -ENOMEM; value_plan_free() in
 * either case.
 */
int value_plan_add(struct value_plan *plan, const struct value_schema *schema, uint32_t module,
		   struct value_planned *planned);
/* One without a read. */
int value_plan_add_empty(struct value_plan *plan, uint32_t module);
/* What is read at an address of the module, as linked, is read at one of so many ticks. */
uint32_t value_plan_turn(const struct value_plan *plan, uint32_t module, uint64_t addr);
/* Which parts from this one on fit into the kernel together: it is one at least. */
uint32_t value_plan_fits(const struct value_plan *plan, uint32_t first_part);
void value_plan_free(struct value_plan *plan);

#endif
