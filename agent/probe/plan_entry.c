// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The entry's site.  What lies between the function's first instruction and the site is executed once in every call, in
 * a straight line, before the probe is hit: it must leave alone what the probe reads, and nothing may jump into it.
 */
#include "probe/plan_internal.h"

#define STRETCH_INSNS_MAX 32
#define STRETCH_SZ_MAX    160

/* What the skipped instructions have done so far. */
struct stretch {
	uint32_t frame_sz;
	uint8_t args_written;
	bool memory_written, caller_written, stores, flags_written;
};

static bool serves(const struct planner *planner, bool at_return_address, const struct stretch *stretch)
{
	const struct plan_needs *needs = planner->needs;

	if (at_return_address && (stretch->frame_sz || stretch->caller_written))
		return false;
	return !(needs->args & stretch->args_written) && !(needs->memory && stretch->memory_written) &&
	       !(needs->flags && stretch->flags_written);
}

static bool is_fast(const struct planner *planner, enum site_kind kind, const struct code_insn *insn,
		    const struct stretch *stretch)
{
	switch (kind) {
	case SITE_EMULATED:
		/* Emulating a call writes no shadow stack on most kernels. */
		return insn->kind != CODE_CALL || !program__has_shadow_stack(planner->program);
	case SITE_CALLABLE_NOP:
		return !planner->needs->no_long_nops && !stretch->stores;
	case SITE_LONG_NOP:
		return !planner->needs->no_long_nops;
	default:
		return false;
	}
}

static bool is_own_jump_into(const struct planner *planner, uint64_t first, uint64_t last)
{
	for (size_t i = 0; i < planner->code.piece_cnt; i++)
		for (size_t j = 0; j < planner->code.pieces[i].insns.cnt; j++) {
			const struct code_insn *insn = &planner->code.pieces[i].insns.items[j];

			if (insn->flags & CODE_TARGET && insn->target >= first && insn->target <= last)
				return true;
		}
	return false;
}

/* Is the site, and every instruction between the entry and it, reached from the entry only? */
static bool is_straight(const struct planner *planner, const struct code_insn *site)
{
	const struct program_function *function = planner->function;
	uint64_t first = function->addr + 1, last = site->addr;
	int64_t depth;

	if (last < first)
		return true;
	if (planner->code.unclear || is_own_jump_into(planner, first, last))
		return false;
	/* A jump table may lead here only from where as much lies on the stack as here. */
	for (const struct code_insn *insn = planner->code.pieces[0].insns.items + 1; insn <= site; insn++)
		if ((program__depth(planner->program, function->module, insn->addr, &depth) ||
		     function_code_jumps_at_depth(planner->program, &planner->code, depth)) &&
		    function_code_is_pointed_into(planner->program, &planner->code, insn->addr, insn->addr))
			return false;
	return !program__is_jumped_into(planner->program, function->module, first, last);
}

/* The first instruction that another function begins with: from there on the code is not this one's alone. */
static uint64_t own_end(const struct planner *planner)
{
	const struct program_function *next = program__function(planner->program, planner->function->id + 1);

	if (next && next->module == planner->function->module && next->addr > planner->function->addr)
		return next->addr;
	return UINT64_MAX;
}

/* False: nothing behind this instruction can be a site. */
static bool stretch_grow(const struct planner *planner, const struct code_insn *insn, struct stretch *stretch)
{
	struct code_effects effects;
	uint8_t bytes[CODE_INSN_MAX];
	ssize_t len;

	if (insn->kind != CODE_PLAIN)
		return false;
	len = program__read_code(planner->program, planner->function->module, insn->addr, bytes, insn->len);
	if (len != insn->len ||
	    !code__effects(program__code(planner->program), bytes, len, stretch->frame_sz, &effects) || effects.sp_lost)
		return false;
	if (effects.sp_down < 0 && stretch->frame_sz < (uint32_t)-effects.sp_down)
		return false;
	if (effects.sp_down > 0 && stretch->frame_sz > UINT32_MAX / 2 - effects.sp_down)
		return false;
	stretch->frame_sz += effects.sp_down;
	stretch->args_written |= effects.args_written;
	stretch->memory_written |= effects.memory_written;
	stretch->caller_written |= effects.caller_written;
	stretch->stores |= effects.stores;
	stretch->flags_written |= effects.flags_written;
	return true;
}

static struct plan_site site_at(const struct planner *planner, const struct code_insn *insn, uint32_t sp_bias,
				enum plan_cost cost)
{
	return (struct plan_site){.file_off = planner->function->file_off + (insn->addr - planner->function->addr),
				  .sp_bias = sp_bias,
				  .cost = cost};
}

bool planner_entry(const struct planner *planner, bool at_return_address, struct plan_site *site, const char **why)
{
	const code_insns *insns = &planner->code.pieces[0].insns;
	const struct code_insn *slow = NULL;
	const char *slow_why;
	uint32_t slow_bias = 0;
	uint64_t end = own_end(planner);
	struct stretch stretch = {0};

	*why = "its instructions cannot be read";
	slow_why = "nothing that the kernel emulates comes before something is changed that the probe reads";
	for (size_t i = 0; i < insns->cnt && i < STRETCH_INSNS_MAX; i++) {
		const struct code_insn *insn = &insns->items[i];
		const char *refused;
		enum site_kind kind = planner_judge(planner, insn, &refused);

		/* Before it, a call may pass twice. */
		if (planner->stack_check && insn <= planner->stack_check) {
			if (insn < planner->stack_check && !stretch_grow(planner, insn, &stretch))
				break;
			continue;
		}
		if (insn->addr >= end || insn->addr - planner->function->addr > STRETCH_SZ_MAX ||
		    !serves(planner, at_return_address, &stretch))
			break;
		if (is_fast(planner, kind, insn, &stretch)) {
			if (!is_straight(planner, insn)) {
				slow_why = "other code jumps to where a probe would cost less";
				break;
			}
			*site = site_at(planner, insn, stretch.frame_sz, PLAN_EMULATED);
			*why = NULL;
			return true;
		}
		if (kind == SITE_REFUSED)
			*why = refused;
		else if (!slow && is_straight(planner, insn) &&
			 (insn->kind != CODE_CALL_INDIRECT || !program__has_shadow_stack(planner->program))) {
			slow = insn;
			slow_bias = stretch.frame_sz;
		}
		if (!stretch_grow(planner, insn, &stretch))
			break;
	}
	if (!slow)
		return false;
	*site = site_at(planner, slow, slow_bias, PLAN_STEPPED);
	*why = slow_why;
	return true;
}
