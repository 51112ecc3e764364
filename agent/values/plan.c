// SPDX-License-Identifier: GPL-2.0-or-later
/* From a schema to what is to be read in the kernel, by ranges of program counters. */
#include "values/plan.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beside comparing two reads. */
#define STEPS_OF_FRAME 32
/* Of one module; the kernel holds 131,072 at a time. */
#define WISHES_MAX (8U << 20)

/* A read and where it holds. */
struct wish {
	uint64_t begin, end;
	uint32_t variable;
	struct value_read read;
};

typedef VEC(struct wish) wish_list;

struct planner {
	struct value_plan *plan;
	uint32_t module;
	struct value_planned *planned;
	wish_list active; /* in the sweep */
	/* Between two addresses at which nothing is read: of one function. */
	VEC(struct value_range) run_ranges;
	VEC(struct value_read) run_reads;
	VEC(uint32_t) run_variables; /* some of them several times */
};

/* The value lies in memory at what `reg` holds + off, or at what lies there + off2. */
static bool set_read(struct value_read *read, const struct value_variable *variable, uint8_t reg, int64_t off,
		     bool deref)
{
	int64_t off2 = deref ? variable->member_off : 0;

	if (reg >= WL_STACK_REGS || !value_off_fits(off))
		return false;
	*read = (struct value_read){
		.off = (int32_t)off, .off2 = (int32_t)off2, .reg = reg, .sz = variable->size, .deref = deref};
	return true;
}

bool value_read_make(const struct value_variable *variable, const struct value_location *location,
		     const struct value_frame_rule *rule, struct value_read *read)
{
	bool is_member = variable->member_off >= 0;
	int64_t off = location->off;

	switch (location->place) {
	case VALUE_IN_REGISTER:
		off = 0;
		/* fallthrough */
	case VALUE_IS_SUM:
		return is_member && !__builtin_add_overflow(off, (int64_t)variable->member_off, &off) &&
		       set_read(read, variable, location->reg, off, false);
	case VALUE_AT_REGISTER:
		return (is_member || location->reg != WL_STACK_REG_SP) &&
		       set_read(read, variable, location->reg, off, is_member);
	case VALUE_AT_CFA:
		return is_member && rule && rule->known && !__builtin_add_overflow(off, rule->off, &off) &&
		       set_read(read, variable, rule->reg, off, true);
	default:
		return false;
	}
}

static uint32_t number_of(const struct value_schema *schema, const struct value_variable *variable)
{
	return (uint32_t)(variable - schema->variables.items);
}

/* False: too many. */
static bool take_steps(struct value_plan *plan, uint64_t cnt)
{
	if (plan->steps >= VALUE_PLAN_STEPS_MAX)
		return false;
	plan->steps += cnt;
	return true;
}

static int push_wish(struct value_plan *plan, wish_list *wishes, const struct wish *wish)
{
	if (wishes->cnt < WISHES_MAX)
		return vec_push(wishes, *wish);
	plan->left_out++;
	return 0;
}

/* A pointer in a frame, as far as the unwinding table says where the frame is. */
static int add_by_frame(struct value_plan *plan, const struct value_schema *schema,
			const struct value_variable *variable, const struct value_location *location, wish_list *wishes)
{
	struct value_frame_rule rule;
	bool is_complete = true;
	int err = 0;

	for (uint64_t pc = location->pc_begin; pc < location->pc_end && !err; pc = rule.end) {
		struct wish wish = {.begin = pc, .variable = number_of(schema, variable)};

		if (!take_steps(plan, STEPS_OF_FRAME)) {
			plan->left_out++;
			break;
		}
		value_schema_frame(schema, pc, &rule);
		wish.end = rule.end < location->pc_end ? rule.end : location->pc_end;
		if (wish.begin < wish.end && value_read_make(variable, location, &rule, &wish.read))
			err = push_wish(plan, wishes, &wish);
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
	struct wish wish = {
		.begin = location->pc_begin, .end = location->pc_end, .variable = number_of(schema, variable)};

	if (location->place == VALUE_AT_CFA)
		return variable->member_off >= 0 ? add_by_frame(plan, schema, variable, location, wishes) : 0;
	if (wish.begin >= wish.end || !value_read_make(variable, location, NULL, &wish.read))
		return 0;
	return push_wish(plan, wishes, &wish);
}

ORDER(compare_wishes, struct wish, BY(a->begin, b->begin), BY(a->end, b->end), BY(a->variable, b->variable));

/* --- parts -------------------------------------------------------------------------------------------------------- */

static struct value_limits limits_of(const struct value_plan *plan)
{
	const struct value_limits *set = &plan->limits;

	return (struct value_limits){
		.ranges = set->ranges && set->ranges < VALUE_RANGES_MAX ? set->ranges : VALUE_RANGES_MAX,
		.reads = set->reads && set->reads < VALUE_READS_MAX ? set->reads : VALUE_READS_MAX,
		.globals = set->globals && set->globals < VALUE_GLOBALS_MAX ? set->globals : VALUE_GLOBALS_MAX,
	};
}

int value_plan_add_empty(struct value_plan *plan, uint32_t module)
{
	struct value_part part = {.module = module,
				  .ranges.first = (uint32_t)plan->ranges.cnt,
				  .reads.first = (uint32_t)plan->reads.cnt,
				  .globals.first = (uint32_t)plan->globals.cnt};

	return vec_push(&plan->parts, part);
}

static struct value_part *last_part(struct value_plan *plan)
{
	return &plan->parts.items[plan->parts.cnt - 1];
}

uint32_t value_plan_fits(const struct value_plan *plan, uint32_t first_part)
{
	struct value_limits limits = limits_of(plan);
	size_t ranges = 0, reads = 0, globals = 0;
	uint32_t part = first_part;

	for (; part < plan->parts.cnt; part++) {
		ranges += plan->parts.items[part].ranges.cnt;
		reads += plan->parts.items[part].reads.cnt;
		globals += plan->parts.items[part].globals.cnt;
		if (part > first_part && (ranges > limits.ranges || reads > limits.reads || globals > limits.globals))
			break;
	}
	return part - first_part;
}

uint32_t value_plan_turn(const struct value_plan *plan, uint32_t module, uint64_t addr)
{
	const struct value_range *ranges = plan->ranges.items;

	for (size_t p = 0; p < plan->parts.cnt; p++) {
		size_t first = plan->parts.items[p].ranges.first, end = first + plan->parts.items[p].ranges.cnt, at;

		if (plan->parts.items[p].module != module)
			continue;
		at = search_first(first, end, mid, ranges[mid].end > addr);
		if (at < end && ranges[at].begin <= addr)
			return value_turn(ranges[at].cnt, VALUE_READS_AT_ONCE);
	}
	return 1;
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

static bool same_reads(const struct planner *planner, const struct value_range *last, const struct value_read *reads,
		       size_t cnt)
{
	return last->cnt == cnt && !memcmp(&planner->run_reads.items[last->first], reads, cnt * sizeof(*reads));
}

/* What is active is read from `begin` to `end`; of adjacent ranges with the same reads one is made. */
static int add_range(struct planner *planner, uint64_t begin, uint64_t end)
{
	struct value_range *last =
		planner->run_ranges.cnt ? &planner->run_ranges.items[planner->run_ranges.cnt - 1] : NULL;
	struct value_range range = {.begin = begin, .end = end, .first = (uint32_t)planner->run_reads.cnt};

	for (size_t a = 0; a < planner->active.cnt; a++) {
		const struct value_read *read = &planner->active.items[a].read;
		size_t known = range.first;

		/* Inlined copies share their variables' places. */
		while (known < planner->run_reads.cnt && memcmp(&planner->run_reads.items[known], read, sizeof(*read)))
			known++;
		if (known == planner->run_reads.cnt && vec_push(&planner->run_reads, *read))
			return -ENOMEM;
	}
	range.cnt = (uint32_t)planner->run_reads.cnt - range.first;
	for (size_t a = 0; a < planner->active.cnt; a++)
		if (vec_push(&planner->run_variables, planner->active.items[a].variable))
			return -ENOMEM;
	if (last && last->end == begin &&
	    same_reads(planner, last, &planner->run_reads.items[range.first], range.cnt)) {
		planner->run_reads.cnt = range.first;
		last->end = end;
		return 0;
	}
	return vec_push(&planner->run_ranges, range);
}

/* The run goes into the last part, or into a new one: what is read in one function is read together. */
static int end_run(struct planner *planner)
{
	struct value_plan *plan = planner->plan;
	struct value_limits limits = limits_of(plan);
	struct value_part *part = last_part(plan);
	int err = 0;

	if (planner->run_ranges.cnt > limits.ranges || planner->run_reads.cnt > limits.reads) {
		plan->left_out += planner->run_reads.cnt;
	} else {
		if (part->ranges.cnt + planner->run_ranges.cnt > limits.ranges ||
		    part->reads.cnt + planner->run_reads.cnt > limits.reads)
			err = value_plan_add_empty(plan, planner->module);
		part = last_part(plan);
		for (size_t r = 0; r < planner->run_ranges.cnt && !err; r++) {
			struct value_range range = planner->run_ranges.items[r];

			range.first += (uint32_t)plan->reads.cnt;
			err = vec_push(&plan->ranges, range);
		}
		for (size_t r = 0; r < planner->run_reads.cnt && !err; r++)
			err = vec_push(&plan->reads, planner->run_reads.items[r]);
		part->ranges.cnt = (uint32_t)plan->ranges.cnt - part->ranges.first;
		part->reads.cnt = (uint32_t)plan->reads.cnt - part->reads.first;
		for (size_t v = 0; v < planner->run_variables.cnt; v++)
			if (planner->planned[planner->run_variables.items[v]].part == VALUE_NO_PART)
				planner->planned[planner->run_variables.items[v]].part = (uint32_t)plan->parts.cnt - 1;
	}
	planner->run_ranges.cnt = planner->run_reads.cnt = planner->run_variables.cnt = 0;
	return err;
}

/* Sweeps over the beginnings and ends: between two of them the same reads hold. */
static int flatten(struct planner *planner, const wish_list *wishes)
{
	wish_list *active = &planner->active;
	uint64_t at = 0;
	size_t next = 0;
	int err = 0;

	while (!err && (next < wishes->cnt || active->cnt)) {
		uint64_t end = UINT64_MAX;
		size_t kept = 0;

		if (!active->cnt) {
			err = end_run(planner);
			at = wishes->items[next].begin;
		}
		for (; next < wishes->cnt && wishes->items[next].begin <= at && !err; next++)
			err = vec_push(active, wishes->items[next]);
		for (size_t i = 0; i < active->cnt; i++)
			end = active->items[i].end < end ? active->items[i].end : end;
		if (next < wishes->cnt && wishes->items[next].begin < end)
			end = wishes->items[next].begin;
		if (!take_steps(planner->plan, active->cnt * active->cnt)) {
			planner->plan->left_out += active->cnt + wishes->cnt - next;
			break;
		}
		if (!err)
			err = add_range(planner, at, end);
		at = end;
		for (size_t i = 0; i < active->cnt; i++)
			if (active->items[i].end > at)
				active->items[kept++] = active->items[i];
		active->cnt = kept;
	}
	return err ? err : end_run(planner);
}

static int add_global(struct planner *planner, const struct value_schema *schema, uint32_t number)
{
	const struct value_variable *variable = &schema->variables.items[number];
	const struct value_location *location = &schema->locations.items[variable->first_location];
	struct value_global global = {.module = planner->module, .sz = variable->size};
	struct value_plan *plan = planner->plan;
	int err = 0;

	if (!variable->location_cnt || location->place != VALUE_AT_ADDRESS || variable->member_off >= 0)
		return 0;
	global.addr = (uint64_t)location->off;
	if (last_part(plan)->globals.cnt >= limits_of(plan).globals)
		err = value_plan_add_empty(plan, planner->module);
	if (!err)
		err = vec_push(&plan->globals, global);
	if (err)
		return err;
	last_part(plan)->globals.cnt++;
	planner->planned[number].part = (uint32_t)plan->parts.cnt - 1;
	return 0;
}

int value_plan_add(struct value_plan *plan, const struct value_schema *schema, uint32_t module,
		   struct value_planned *planned)
{
	struct planner planner = {.plan = plan, .module = module, .planned = planned};
	wish_list wishes = {0};
	int err = value_plan_add_empty(plan, module);

	for (size_t v = 0; v < schema->variables.cnt; v++)
		planned[v] = (struct value_planned){.part = VALUE_NO_PART};
	for (uint32_t v = 0; v < schema->variables.cnt && !err; v++) {
		const struct value_variable *variable = &schema->variables.items[v];

		for (uint32_t l = 0; l < variable->location_cnt && !err && !(variable->tags & VALUE_TAG_GLOBAL); l++)
			err = add_wish(plan, schema, variable, &schema->locations.items[variable->first_location + l],
				       &wishes);
	}
	if (!err && wishes.cnt) {
		vec_sort(&wishes, compare_wishes);
		err = flatten(&planner, &wishes);
	}
	for (uint32_t v = 0; v < schema->variables.cnt && !err; v++)
		if (schema->variables.items[v].tags & VALUE_TAG_GLOBAL)
			err = add_global(&planner, schema, v);
	vec_free(&wishes);
	vec_free(&planner.active);
	vec_free(&planner.run_ranges);
	vec_free(&planner.run_reads);
	vec_free(&planner.run_variables);
	return err;
}

void value_plan_free(struct value_plan *plan)
{
	vec_free(&plan->ranges);
	vec_free(&plan->reads);
	vec_free(&plan->globals);
	vec_free(&plan->parts);
}
