/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of plan*.c share. */
#ifndef WHYLATE_PROBE_PLAN_INTERNAL_H
#define WHYLATE_PROBE_PLAN_INTERNAL_H

#include "probe/plan.h"
#include "probe/site.h"
#include "target/function_code.h"

struct planner {
	struct program *program;
	const struct program_function *function;
	const struct program_module *module;
	const struct plan_needs *needs;
	struct function_code code;
	const struct code_insn
		*stack_check; /* execution may come to the entry anew until it has passed this branch; NULL */
};

/* The kind of one instruction of the function; why (static text) when it is refused. */
enum site_kind planner_judge(const struct planner *planner, const struct code_insn *insn, const char **why);

/*
 * Where the entry is probed.  at_return_address: only where [rsp] still is the return address.  True and the site, with
 * `why` set where it is a slow one; false and why there is none.
 */
bool planner_entry(const struct planner *planner, bool at_return_address, struct plan_site *site, const char **why);
/* All that end a call, to plan->exits.  0; -ENOTSUP and plan->exit_why: they cannot be told or not be probed; -ENOMEM.
 */
int planner_exits(const struct planner *planner, struct plan *plan);

#endif
