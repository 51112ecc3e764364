// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/sections.h"

#include "probe/sections_internal.h"

#include <errno.h>
#include <string.h>

#define NEAR_INSNS 40 /* around an exchange */

struct search {
	struct sections *sections;
	const struct flow *flow;
	uint8_t *is_near; /* by instruction */
	struct section_pendings pending;
	uint8_t loaded; /* register, by the instruction before; CODE_NO_REG: none */
};

/* --- where a value may be looked at --------------------------------------------------------------------------------
 */

static int near_mark(struct search *search)
{
	size_t cnt = search->flow->insns.cnt;

	search->is_near = calloc(cnt, 1);
	if (!search->is_near)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (!section_exchanges(&search->flow->insns.items[i]))
			continue;
		for (size_t at = i > NEAR_INSNS ? i - NEAR_INSNS : 0; at < cnt && at <= i + NEAR_INSNS; at++)
			search->is_near[at] = 1;
	}
	return 0;
}

/* --- what goes in and comes out ------------------------------------------------------------------------------------
 */

static int arg_add(struct search *search, bool out, int arg, int32_t off, bool handed)
{
	return section_use_add(search->sections, &(struct section_use){.out = out,
								       .lock_arg = -1,
								       .arg = arg,
								       .off = off,
								       .handed = handed,
								       .lockless = true,
								       .place = {.reg = CODE_NO_REG, .sz = 8}});
}

static bool is_taken(const struct section_value *value)
{
	return value->sz == 8 && section_value_is_taken(value);
}

static int store_note(struct search *search, const struct code_move *move, const struct section_state *state,
		      bool is_near)
{
	const struct section_value to = section_address(state, move);
	/* What goes through vector registers is most often a copy of many bytes. */
	const struct section_value *value = move->from < CODE_REG_VECTOR ? &state->regs[move->from] : NULL;

	if (!value || move->sz != 8 || value->sz != 8 || to.kind == VALUE_FRAME || to.kind == VALUE_ARRAY)
		return 0;
	if (value->kind == VALUE_ARG && !value->off)
		return arg_add(search, false, value->root - 1, 0, false);
	if (is_near && (is_taken(value) || value->kind == VALUE_SLOT || value->kind == VALUE_ELEMENT))
		section_pend(&search->pending, value, false);
	return is_taken(value) && to.kind == VALUE_ARG && to.off >= 0
		       ? arg_add(search, true, to.root - 1, to.off, false)
		       : 0;
}

static int moves_note(struct search *search, const struct flow_insn *insn, const struct section_state *state,
		      bool is_near)
{
	int err = 0;

	for (uint8_t i = 0; i < insn->moves.cnt && !err; i++) {
		const struct code_move *move = &insn->moves.items[i];

		if (move->kind == CODE_MOVE_STORE)
			err = store_note(search, move, state, is_near);
		else if (move->kind == CODE_MOVE_LOAD && is_near && move->sz == 8 && move->to < CODE_REG_CNT &&
			 section_address(state, move).kind != VALUE_FRAME &&
			 section_address(state, move).kind != VALUE_ARRAY)
			search->loaded = move->to;
	}
	return err;
}

/* Nothing was called so far: the register of the last argument is what it was. */
static bool is_first_call(const struct section_state *state)
{
	const struct section_value *last = &state->regs[code_reg_of_arg(SECTION_ARGS - 1)];

	return last->kind == VALUE_ARG && last->root == SECTION_ARGS && !last->off;
}

/* Arguments that are handed on to another function: those that were left where they were may be no arguments. */
static int call_note(struct search *search, const struct section_state *state)
{
	bool is_first = is_first_call(state);
	int err = 0;

	for (int i = 0; i < SECTION_ARGS && !err; i++) {
		const struct section_value *value = &state->regs[code_reg_of_arg(i)];

		if (value->kind == VALUE_ARG && !value->off && value->sz == 8 && !(is_first && value->root == i + 1))
			err = arg_add(search, false, value->root - 1, 0, true);
	}
	return err;
}

static int return_note(struct search *search, const struct section_state *state)
{
	const struct section_value *value = &state->regs[code_reg_of_arg(-1)];

	if (!is_taken(value))
		return 0;
	return section_use_add(search->sections, &(struct section_use){.out = true,
								       .lock_arg = -1,
								       .arg = -1,
								       .returned = true,
								       .handed = value->kind == VALUE_RESULT,
								       .lockless = true,
								       .place = {.reg = CODE_NO_REG, .sz = 8}});
}

static int insn_note(void *arg, const struct flow_insn *insn, const struct section_state *state)
{
	struct search *search = arg;
	size_t idx = (size_t)(insn - search->flow->insns.items);
	int err;

	if (idx == search->pending.next_idx && search->loaded != CODE_NO_REG &&
	    state->regs[search->loaded].kind == VALUE_LOADED)
		section_pend(&search->pending, &state->regs[search->loaded], true);
	search->loaded = CODE_NO_REG;
	err = section_pendings_place(&search->pending, search->flow, insn, state, true, search->sections);
	if (err)
		return err;
	if (insn->insn.kind == CODE_RETURN)
		return return_note(search, state);
	if (insn->is_call)
		return insn->calls == SECTION_CALL_NONE ? call_note(search, state) : 0;
	return moves_note(search, insn, state, search->is_near[idx]);
}

static int calls_note(void *arg, const struct flow_insn *insn, const struct section_state *state)
{
	struct search *search = arg;

	(void)state;
	section_calls_note(search->sections, insn);
	return 0;
}

int sections_find_lockless(struct program *program, uint32_t function, const struct call_targets *targets,
			   struct sections *sections)
{
	struct flow flow = {0};
	struct search search = {.sections = sections, .flow = &flow, .loaded = CODE_NO_REG};
	int err;

	*sections = (struct sections){.lock_arg = -1};
	err = flow_read(program, function, targets, &flow);
	/* All of it is inside. */
	for (size_t i = 0; i < flow.insns.cnt && !err; i++)
		if (flow.before[i])
			flow.before[i]->depth = 1;
	if (!err)
		err = flow_run(&flow);
	if (!err)
		err = flow_walk(&flow, calls_note, &search);
	if (!err && sections->exchanges && !sections->takes) {
		err = near_mark(&search);
		if (!err)
			err = flow_walk(&flow, insn_note, &search);
	}
	free(search.is_near);
	flow_free(&flow);
	return err == -ENOTSUP ? 0 : err;
}
