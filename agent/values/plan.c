// SPDX-License-Identifier: GPL-2.0-or-later
/* From a schema to what is to be read in the kernel, by ranges of program counters. */
#include "values/plan.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A read and where it holds. */
struct wish {
	uint64_t begin, end;
	struct value_read read;
};

typedef VEC(struct wish) wish_list;

static bool fits(int64_t off)
{
	return off >= INT32_MIN && off <= INT32_MAX;
}

/* The value lies in memory at what `reg` holds + off, or at what lies there + off2. */
static bool set_read(struct wish *wish, const struct value_variable *variable, uint8_t reg, int64_t off, bool deref)
{
	int64_t off2 = deref ? variable->member_off : 0;

	if (reg >= WL_STACK_REGS || !fits(off) || wish->begin >= wish->end)
		return false;
	wish->read = (struct value_read){
		.off = (int32_t)off, .off2 = (int32_t)off2, .reg = reg, .sz = variable->size, .deref = deref};
	return true;
}

/* A pointer in a frame, as far as the unwinding table says where the frame is. */
static int add_by_frame(struct value_plan *plan, const struct value_schema *schema,
			const struct value_variable *variable, const struct value_location *location, wish_list *wishes)
{
	struct value_frame_rule rule;
	bool is_complete = true;
	int err = 0;

	for (uint64_t pc = location->pc_begin; pc < location->pc_end && !err; pc = rule.end) {
		struct wish wish = {.begin = pc};
		int64_t off;

		value_schema_frame(schema, pc, &rule);
		wish.end = rule.end < location->pc_end ? rule.end : location->pc_end;
		if (rule.known && !__builtin_add_overflow(location->off, rule.off, &off) &&
		    set_read(&wish, variable, rule.reg, off, true))
			err = vec_push(wishes, wish);
		else
			is_complete = false;
		/* Without a table nothing tells how far its absence reaches. */
		if (rule.end == pc + 1 && !rule.known)
			break;
	}
	plan->no_frame += !is_complete;
	return err;
}

/* What of a local lies neither in registers nor where the copied stack has it. */
static int add_wish(struct value_plan *plan, const struct value_schema *schema, const struct value_variable *variable,
		    const struct value_location *location, wish_list *wishes)
{
	struct wish wish = {.begin = location->pc_begin, .end = location->pc_end};
	bool is_member = variable->member_off >= 0, is_read = false;
	int64_t off = location->off;

	switch (location->place) {
	case VALUE_IN_REGISTER:
		off = 0;
		/* fallthrough */
	case VALUE_IS_SUM:
		is_read = is_member && !__builtin_add_overflow(off, (int64_t)variable->member_off, &off) &&
			  set_read(&wish, variable, location->reg, off, false);
		break;
	case VALUE_AT_REGISTER:
		is_read = (is_member || location->reg != WL_STACK_REG_SP) &&
			  set_read(&wish, variable, location->reg, off, is_member);
		break;
	case VALUE_AT_CFA:
		return is_member ? add_by_frame(plan, schema, variable, location, wishes) : 0;
	default:
		break;
	}
	return is_read ? vec_push(wishes, wish) : 0;
}

ORDER(compare_wishes, struct wish, BY(a->begin, b->begin), BY(a->end, b->end));

static bool same_reads(const struct value_plan *plan, const struct value_range *last, const struct value_read *reads,
		       size_t cnt)
{
	return last->cnt == cnt && !memcmp(&plan->reads.items[last->first], reads, cnt * sizeof(*reads));
}

/* The reads that hold from `begin` to `end`; equal ones of adjacent ranges are one. */
static int add_range(struct value_plan *plan, size_t first_of_module, uint64_t begin, uint64_t end,
		     const struct value_read *reads, size_t cnt)
{
	struct value_range *last =
		plan->ranges.cnt > first_of_module ? &plan->ranges.items[plan->ranges.cnt - 1] : NULL;
	struct value_range range = {
		.begin = begin, .end = end, .first = (uint32_t)plan->reads.cnt, .cnt = (uint32_t)cnt};

	if (last && last->end == begin && same_reads(plan, last, reads, cnt)) {
		last->end = end;
		return 0;
	}
	if (plan->ranges.cnt >= VALUE_RANGES_MAX || plan->reads.cnt + cnt > VALUE_READS_MAX) {
		plan->left_out += cnt;
		return 0;
	}
	for (size_t i = 0; i < cnt; i++)
		if (vec_push(&plan->reads, reads[i]))
			return -ENOMEM;
	return vec_push(&plan->ranges, range) ? -ENOMEM : 0;
}

/* At most so many of one range are known; more are left out. */
#define ACTIVE_MAX 64

/* Sweeps over the beginnings and ends: between two of them the same reads hold. */
static int flatten(struct value_plan *plan, const wish_list *wishes)
{
	struct wish active[ACTIVE_MAX];
	struct value_read reads[ACTIVE_MAX];
	size_t active_cnt = 0, next = 0, first_of_module = plan->ranges.cnt;
	uint64_t at = 0;
	int err = 0;

	while (!err && (next < wishes->cnt || active_cnt)) {
		uint64_t end = UINT64_MAX;
		size_t kept = 0;

		if (!active_cnt)
			at = wishes->items[next].begin;
		for (; next < wishes->cnt && wishes->items[next].begin <= at; next++) {
			if (active_cnt < ACTIVE_MAX)
				active[active_cnt++] = wishes->items[next];
			else
				plan->left_out++;
		}
		for (size_t i = 0; i < active_cnt; i++) {
			end = active[i].end < end ? active[i].end : end;
			reads[i] = active[i].read;
		}
		if (next < wishes->cnt && wishes->items[next].begin < end)
			end = wishes->items[next].begin;
		err = add_range(plan, first_of_module, at, end, reads, active_cnt);
		at = end;
		for (size_t i = 0; i < active_cnt; i++)
			if (active[i].end > at)
				active[kept++] = active[i];
		active_cnt = kept;
	}
	return err;
}

static int add_global(struct value_plan *plan, const struct value_schema *schema, const struct value_variable *variable,
		      uint32_t module)
{
	const struct value_location *location = &schema->locations.items[variable->first_location];
	struct value_global global = {.module = module, .sz = variable->size};

	if (!variable->location_cnt || location->place != VALUE_AT_ADDRESS || variable->member_off >= 0)
		return 0;
	if (plan->globals.cnt >= VALUE_GLOBALS_MAX) {
		plan->left_out++;
		return 0;
	}
	global.addr = (uint64_t)location->off;
	return vec_push(&plan->globals, global) ? -ENOMEM : 0;
}

int value_plan_add(struct value_plan *plan, const struct value_schema *schema, uint32_t module, uint32_t *first_range,
		   uint32_t *range_cnt)
{
	wish_list wishes = {0};
	int err = 0;

	*first_range = (uint32_t)plan->ranges.cnt;
	for (size_t v = 0; v < schema->variables.cnt && !err; v++) {
		const struct value_variable *variable = &schema->variables.items[v];

		if (variable->tags & VALUE_TAG_GLOBAL) {
			err = add_global(plan, schema, variable, module);
			continue;
		}
		for (uint32_t l = 0; l < variable->location_cnt && !err; l++) {
			const struct value_location *location = &schema->locations.items[variable->first_location + l];

			err = add_wish(plan, schema, variable, location, &wishes);
		}
	}
	if (!err && wishes.cnt) {
		vec_sort(&wishes, compare_wishes);
		err = flatten(plan, &wishes);
	}
	*range_cnt = (uint32_t)plan->ranges.cnt - *first_range;
	vec_free(&wishes);
	return err;
}

void value_plan_free(struct value_plan *plan)
{
	vec_free(&plan->ranges);
	vec_free(&plan->reads);
	vec_free(&plan->globals);
}
