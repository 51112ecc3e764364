// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/section_flow.h"

#include "base/order.h"

#include <errno.h>

#define ROUNDS_MAX 64
#define NO_INSN    SIZE_MAX

/* --- instructions ------------------------------------------------------------------------------------------------- */

ORDER(insn_cmp, struct flow_insn, BY(a->insn.addr, b->insn.addr));

static size_t insn_at(const struct flow *flow, uint64_t addr)
{
	size_t at = search_first(0, flow->insns.cnt, mid, flow->insns.items[mid].insn.addr >= addr);

	return at < flow->insns.cnt && flow->insns.items[at].insn.addr == addr ? at : NO_INSN;
}

static void condition_set(struct flow_insn *insn, const uint8_t *bytes)
{
	uint8_t opcode = insn->insn.len == 2 ? bytes[0] & 0x0f : bytes[1] & 0x0f;

	/* je, jne: 74, 75, 0f 84, 0f 85 */
	if (insn->insn.len != 2 && insn->insn.len != 6)
		return;
	insn->is_equal = opcode == 4;
	insn->is_unequal = opcode == 5;
}

static void call_set(struct program *program, const struct function_code *code, const struct call_targets *targets,
		     struct flow_insn *insn)
{
	const struct call_target *target = call_target_of(targets, &insn->insn);

	switch (insn->insn.kind) {
	case CODE_CALL:
	case CODE_CALL_INDIRECT:
		insn->is_call = true;
		break;
	case CODE_JUMP:
	case CODE_JUMP_INDIRECT:
		insn->leaves = insn->is_call = function_code_jump(program, code, &insn->insn) == JUMP_AWAY;
		break;
	default:
		break;
	}
	insn->calls = insn->is_call && target ? SECTION_TAG_CALLS(target->tag) : SECTION_CALL_NONE;
	insn->lock_arg = insn->calls ? (int8_t)SECTION_TAG_LOCK_ARG(target->tag) : -1;
}

static int piece_read(struct program *program, const struct function_code *code, const struct function_piece *piece,
		      const struct call_targets *targets, struct flow *flow)
{
	uint32_t module = program__function(program, code->pieces[0].function)->module;
	uint8_t *bytes = malloc(piece->size + 1);
	int err = bytes ? 0 : -ENOMEM;

	if (!err && program__read_code(program, module, piece->addr, bytes, piece->size) != (ssize_t)piece->size)
		err = -ENOTSUP;
	for (size_t i = 0; i < piece->insns.cnt && !err; i++) {
		struct flow_insn insn = {.insn = piece->insns.items[i]};
		const uint8_t *at = bytes + (insn.insn.addr - piece->addr);

		if (flow->insns.cnt == FLOW_INSNS_MAX) {
			err = -ENOTSUP;
			break;
		}
		if (insn.insn.kind == CODE_PLAIN &&
		    !code__moves(program__code(program), at, insn.insn.len, insn.insn.addr, &insn.moves))
			err = -ENOTSUP;
		if (insn.insn.kind == CODE_BRANCH)
			condition_set(&insn, at);
		call_set(program, code, targets, &insn);
		if (!err)
			err = vec_push(&flow->insns, insn);
	}
	free(bytes);
	return err;
}

static void blocks_mark(struct flow *flow, uint64_t entry)
{
	size_t at = insn_at(flow, entry);

	if (at != NO_INSN)
		flow->begins[at] = 1;
	for (size_t i = 0; i < flow->insns.cnt; i++) {
		struct flow_insn *insn = &flow->insns.items[i];
		bool ends = insn->insn.kind == CODE_JUMP || insn->insn.kind == CODE_JUMP_INDIRECT ||
			    insn->insn.kind == CODE_BRANCH || insn->insn.kind == CODE_RETURN ||
			    insn->insn.kind == CODE_STOP || insn->calls == SECTION_CALL_ENDS;

		insn->is_followed = i + 1 < flow->insns.cnt && insn[1].insn.addr == insn->insn.addr + insn->insn.len &&
				    (!ends || insn->insn.kind == CODE_BRANCH);
		if (ends && i + 1 < flow->insns.cnt)
			flow->begins[i + 1] = 1;
		at = insn->insn.kind == CODE_JUMP || insn->insn.kind == CODE_BRANCH ? insn_at(flow, insn->insn.target)
										    : NO_INSN;
		if (at != NO_INSN)
			flow->begins[at] = 1;
	}
}

int flow_read(struct program *program, uint32_t function, const struct call_targets *targets, struct flow *flow)
{
	struct function_code code;
	int err = program__function_code(program, function, &code);

	if (err && err != -ENOMEM)
		err = -ENOTSUP;
	for (size_t i = 0; i < code.piece_cnt && !err; i++)
		err = piece_read(program, &code, &code.pieces[i], targets, flow);
	if (!err && !flow->insns.cnt)
		err = -ENOTSUP;
	if (!err) {
		vec_sort(&flow->insns, insn_cmp);
		flow->before = calloc(flow->insns.cnt, sizeof(*flow->before));
		flow->begins = calloc(flow->insns.cnt, 1);
		err = flow->before && flow->begins ? 0 : -ENOMEM;
	}
	if (!err) {
		size_t entry = insn_at(flow, code.pieces[0].addr);

		blocks_mark(flow, code.pieces[0].addr);
		flow->before[entry] = malloc(sizeof(**flow->before));
		err = flow->before[entry] ? 0 : -ENOMEM;
		if (!err)
			section_state_begin(flow->before[entry]);
	}
	function_code_free(&code);
	return err;
}

void flow_free(struct flow *flow)
{
	for (size_t i = 0; i < flow->insns.cnt && flow->before; i++)
		free(flow->before[i]);
	free(flow->before);
	free(flow->begins);
	vec_free(&flow->insns);
}

/* --- what is known ------------------------------------------------------------------------------------------------ */

static void lock_taken(struct section_state *state, const struct flow_insn *insn)
{
	if (insn->lock_arg >= 0)
		section_state_locked(state, &state->regs[code_reg_of_arg(insn->lock_arg)]);
	if (state->depth == 0) {
		state->lock_addr = insn->insn.addr;
		state->lock_root = insn->lock_arg < 0 ? NO_ROOT : state->regs[code_reg_of_arg(insn->lock_arg)].root;
	}
	state->depth++;
}

/* What the instruction does to the state. */
static void flow_step(const struct flow *flow, size_t idx, struct section_state *state)
{
	const struct flow_insn *insn = &flow->insns.items[idx];

	if (!insn->is_call) {
		section_state_move(state, &insn->moves, insn->insn.addr);
		return;
	}
	if (insn->calls == SECTION_CALL_LOCK || insn->calls == SECTION_CALL_TRY_LOCK)
		lock_taken(state, insn);
	else if (insn->calls == SECTION_CALL_UNLOCK && state->depth > -1)
		state->depth--;
	section_state_called(state, insn->insn.addr, insn->calls != SECTION_CALL_NONE);
	if (insn->calls == SECTION_CALL_LOCK || insn->calls == SECTION_CALL_TRY_LOCK)
		state->regs[code_reg_of_arg(-1)] = (struct section_value){.kind = VALUE_LOCKED, .sz = 8};
}

/* True: something is new there. */
static int arrive(struct flow *flow, size_t idx, const struct section_state *state, bool *changed)
{
	if (idx == NO_INSN)
		return 0;
	if (flow->before[idx]) {
		*changed |= section_state_join(flow->before[idx], state);
		return 0;
	}
	flow->before[idx] = malloc(sizeof(*state));
	if (!flow->before[idx])
		return -ENOMEM;
	*flow->before[idx] = *state;
	*changed = true;
	return 0;
}

/* Where the lock was not got there is no section: on one way from a test of what the call returned. */
static void refused(struct section_state *state, bool is_nonzero)
{
	if (state->tells_locked && is_nonzero && state->depth > 0)
		state->depth--;
}

static int block_run(struct flow *flow, size_t idx, bool *changed)
{
	struct section_state state = *flow->before[idx];

	for (;; idx++) {
		const struct flow_insn *insn = &flow->insns.items[idx];
		int err = 0;

		if (insn->insn.kind == CODE_BRANCH) {
			struct section_state taken = state;
			bool always = state.is_nonzero && insn->is_unequal, never = state.is_nonzero && insn->is_equal;

			refused(&taken, insn->is_unequal);
			refused(&state, insn->is_equal);
			taken.tells_locked = state.tells_locked = taken.is_nonzero = state.is_nonzero = false;
			/* As where a flag of the function's own says that the lock is held. */
			if (!never)
				err = arrive(flow, insn_at(flow, insn->insn.target), &taken, changed);
			if (always)
				return err;
		} else if (insn->insn.kind == CODE_JUMP && !insn->leaves) {
			return arrive(flow, insn_at(flow, insn->insn.target), &state, changed);
		} else {
			flow_step(flow, idx, &state);
		}
		if (err || !insn->is_followed || insn->leaves)
			return err;
		if (flow->begins[idx + 1])
			return arrive(flow, idx + 1, &state, changed);
	}
}

int flow_run(struct flow *flow)
{
	bool changed = true;
	int err = 0;

	for (int round = 0; round < ROUNDS_MAX && changed && !err; round++) {
		changed = false;
		for (size_t i = 0; i < flow->insns.cnt && !err; i++)
			if (flow->begins[i] && flow->before[i])
				err = block_run(flow, i, &changed);
	}
	return err;
}

int flow_walk(const struct flow *flow,
	      int (*visit)(void *arg, const struct flow_insn *insn, const struct section_state *state), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < flow->insns.cnt && !err; i++) {
		struct section_state state;

		if (!flow->begins[i] || !flow->before[i])
			continue;
		state = *flow->before[i];
		for (size_t at = i; !err; at++) {
			err = visit(arg, &flow->insns.items[at], &state);
			flow_step(flow, at, &state);
			if (!flow->insns.items[at].is_followed || flow->begins[at + 1])
				break;
		}
	}
	return err;
}
