// SPDX-License-Identifier: GPL-2.0-or-later
/* Probes on everything that ends a call: for frames that a return probe would make impassable for an unwinder. */
#include "probe/plan_internal.h"

#include "base/order.h"

#include <errno.h>

static int exit_push(const struct planner *planner, struct plan *plan, const struct code_insn *insn)
{
	struct plan_site site = {0};
	const char *refused;
	enum site_kind kind = planner_judge(planner, insn, &refused);
	int64_t depth;
	int err;

	/* There the frame is gone already; where the unwinder's table knows otherwise, the function is a strange one.
	 */
	err = program__depth(planner->program, planner->function->module, insn->addr, &depth);
	if (err == -ERANGE || (!err && depth)) {
		plan->exit_why = "it returns with something left on its stack";
		return -ENOTSUP;
	}
	if (kind == SITE_REFUSED) {
		plan->exit_why = refused;
		return -ENOTSUP;
	}
	if (program__file_off(planner->program, planner->function->module, insn->addr, &site.file_off)) {
		plan->exit_why = "its end is not in the file";
		return -ENOTSUP;
	}
	site.cost = kind == SITE_EMULATED ? PLAN_EMULATED : PLAN_STEPPED;
	return vec_push(&plan->exits, site);
}

static int insn_exit(const struct planner *planner, struct plan *plan, const struct code_insn *insn)
{
	enum jump_scope scope;

	switch (insn->kind) {
	case CODE_RETURN:
		return exit_push(planner, plan, insn);
	case CODE_JUMP:
	case CODE_JUMP_INDIRECT:
	case CODE_BRANCH:
		scope = function_code_jump(planner->program, &planner->code, insn);
		if (scope == JUMP_WITHIN)
			return 0;
		if (scope == JUMP_UNKNOWN) {
			plan->exit_why = "a jump through a register may lead on or away";
			return -ENOTSUP;
		}
		if (insn->kind == CODE_BRANCH) {
			plan->exit_why = "it ends by a conditional jump, which is also passed when it goes on";
			return -ENOTSUP;
		}
		if (planner->needs->whole) {
			plan->exit_why = "it ends by a jump to another function, the time of which would be missing";
			return -ENOTSUP;
		}
		return exit_push(planner, plan, insn);
	default:
		return 0;
	}
}

ORDER(site_cmp, struct plan_site, BY(a->file_off, b->file_off));

int planner_exits(const struct planner *planner, struct plan *plan)
{
	int err = 0;

	if (planner->code.unclear) {
		plan->exit_why = planner->code.unclear;
		return -ENOTSUP;
	}
	if (planner->function->overlaps) {
		plan->exit_why = "it shares code with another function";
		return -ENOTSUP;
	}
	for (size_t i = 0; i < planner->code.piece_cnt && !err; i++)
		for (size_t j = 0; j < planner->code.pieces[i].insns.cnt && !err; j++)
			err = insn_exit(planner, plan, &planner->code.pieces[i].insns.items[j]);
	if (!err && !plan->exits.cnt) {
		plan->exit_why = "it never returns";
		err = -ENOTSUP;
	}
	vec_sort(&plan->exits, site_cmp);
	return err;
}
