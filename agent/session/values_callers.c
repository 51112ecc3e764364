// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the kernel reaches the callers of a tick's frame: by what the stacks so far have shown.  Each frame that leads to
 * a caller with members is given to it once, so the first stack of a place has none of its callers' members.
 */
#include "session/values_internal.h"
#include "values/step.h"

#include <errno.h>
#include <string.h>

static struct value_step_key key_of(const struct value_stack *stack, const struct met *met, size_t depth)
{
	return (struct value_step_key){
		.addr = stack->frames[depth].pc, .program = met->program, .is_caller = depth > 0};
}

static int find_frame(struct sampled_values *values, const struct value_step_key *key, uint32_t *id, bool *is_new)
{
	if (idmap__id(&values->frame_ids, (uint64_t)key->program << 1 | key->is_caller, key->addr, id))
		return -ENOMEM;
	*is_new = *id == values->frames.cnt;
	return *is_new && vec_push(&values->frames, ((struct met_frame){.is_given = false})) ? -ENOMEM : 0;
}

/* Members that take turns.  The place of the frame is known: its other values were taken before. */
static void note_turn(struct sampled_values *values, const struct module *module, uint64_t addr,
		      const struct value_caller *caller)
{
	uint32_t turn = value_turn(caller->read_cnt, VALUE_FRAME_READS_AT_ONCE(values->opts.depth)), id;

	values->counts.callers++;
	values->counts.callers_in_turn += turn > 1;
	values->counts.callers_left_out += caller->left_out;
	if (idmap__find(&values->place_ids, (uintptr_t)module, addr, &id))
		values->places.items[id].turn = turn;
}

/* Fills the reads of a caller's step.  0 or -ENOMEM. */
static int add_reads(struct sampled_values *values, const struct value_stack *stack, const struct met *met,
		     size_t depth, struct value_step *step, bool is_new)
{
	uint64_t addr = unwind_frame_addr(&stack->frames[depth]);
	struct value_frame_rule rule = value_step_frame(step);
	const struct program_module *of;
	const struct module *module = sampled_values__module_at(values, stack, met, addr, &of);
	struct value_caller caller = {.read_cnt = 0};
	int err;

	if (!module)
		return 0;
	err = value_caller_make(&caller, module->reader, addr - of->bias, &rule);
	if (!err && caller.read_cnt && is_new)
		note_turn(values, module, addr - of->bias, &caller);
	memcpy(step->reads, caller.reads, sizeof(step->reads));
	step->read_cnt = (uint8_t)caller.read_cnt;
	value_caller_free(&caller);
	return err;
}

/* The way on from a frame, and what is read there.  0 or -ENOMEM. */
static int make_step(struct sampled_values *values, const struct value_stack *stack, const struct met *met,
		     size_t depth, struct value_step *step, bool is_new)
{
	const struct unwind_rule *rule = unwinder__rule(stack->unwinder, unwind_frame_addr(&stack->frames[depth]));

	/* The last one need not lead on. */
	if (!rule || !value_step_make(rule, step))
		*step = (struct value_step){.cfa_reg = WL_STACK_REGS};
	return depth ? add_reads(values, stack, met, depth, step, is_new) : 0;
}

static int give(struct sampled_values *values, const struct value_stack *stack, const struct met *met, size_t depth)
{
	struct value_step_key key = key_of(stack, met, depth);
	struct value_step step;
	bool is_new;
	uint32_t id;
	int err = find_frame(values, &key, &id, &is_new);

	if (err || values->frames.items[id].is_given)
		return err;
	err = make_step(values, stack, met, depth, &step, false);
	if (err)
		return err;
	/* What the kernel does not take has no members, and is not tried again. */
	values->frames.items[id].is_given = true;
	values->opts.meet(values->opts.owner, &key, &step);
	return 0;
}

int sampled_values__meet_frames(struct sampled_values *values, const struct value_stack *stack, const struct met *met)
{
	size_t deepest = 0;
	int err = 0;

	if (!values->opts.meet || !stack->unwinder)
		return 0;
	/* The kernel drops the steps that were not used for longest: those that are met again are given again. */
	if (values->frames.cnt + VALUES_DEPTH_MAX + 1 > VALUE_STEPS_MAX) {
		idmap__free(&values->frame_ids);
		values->frames.cnt = 0;
	}
	for (size_t depth = 1; depth < stack->frame_cnt && depth <= values->opts.depth && !err; depth++) {
		struct value_step_key key = key_of(stack, met, depth);
		struct value_step step;
		bool is_new;
		uint32_t id;

		/* Above a signal's frame, and beyond a guess, the kernel does not go. */
		if (stack->frames[depth].how != UNWIND_BY_CFI || stack->frames[depth].exact)
			break;
		err = find_frame(values, &key, &id, &is_new);
		if (!err && is_new) {
			err = make_step(values, stack, met, depth, &step, true);
			values->frames.items[id].has_reads = !err && step.read_cnt > 0;
		}
		if (!err && values->frames.items[id].has_reads)
			deepest = depth;
	}
	for (size_t depth = 0; deepest && depth <= deepest && !err; depth++)
		err = give(values, stack, met, depth);
	return err;
}
