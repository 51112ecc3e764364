// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/plan.h"

#include "probe/plan_internal.h"
#include "target/hazard.h"

#include <errno.h>
#include <string.h>

#define STACK_CHECK_INSNS 8

enum site_kind planner_judge(const struct planner *planner, const struct code_insn *insn, const char **why)
{
	uint8_t bytes[CODE_INSN_MAX];
	ssize_t len = program__read_code(planner->program, planner->function->module, insn->addr, bytes, insn->len);

	*why = "its instructions cannot be read";
	return len == insn->len ? site_judge(bytes, len, why) : SITE_REFUSED;
}

/* Why it cannot be probed whatever its code is; NULL. */
static const char *refuse_kind(const struct planner *planner)
{
	uint64_t addr = planner->function->addr;
	const struct program_function *before = program__function(
		planner->program, program__function_at(planner->program, planner->function->module, addr - 1));

	if (planner->module->gone)
		return "its module is no longer mapped";
	if (planner->function->is_part)
		return "it is a piece of another function, which is never called";
	if (program__is_signal_return(planner->program, planner->function->id))
		return "nobody calls it: it is where signal handlers return to";
	if (planner->function->is_ifunc)
		return "it only chooses an implementation, once, when the program starts: probe that one";
	if (before && before->addr < addr && before->size > addr - before->addr)
		return "it begins in the middle of another function, whose calls would count as its own";
	return NULL;
}

/*
 * A loop of its own that begins at its first instruction passes there in every round.  Where it is a call of itself in
 * the last place, this makes no difference to its callers, but its calls cannot be told apart by their frames.
 */
static bool loops_to_entry(const struct planner *planner, const struct code_insn *except)
{
	for (size_t i = 0; i < planner->code.piece_cnt; i++)
		for (size_t j = 0; j < planner->code.pieces[i].insns.cnt; j++) {
			const struct code_insn *insn = &planner->code.pieces[i].insns.items[j];

			if ((insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH) && insn != except &&
			    insn->target == planner->function->addr)
				return true;
		}
	return false;
}

/*
 * Go begins a function by asking whether its stack suffices: if not, it branches to where that is mended, and from
 * there back to the entry.  The branch, when there is one like that and nothing else leads to the entry; NULL.
 */
static const struct code_insn *stack_check_find(const struct planner *planner)
{
	const code_insns *insns = &planner->code.pieces[0].insns;
	const struct code_insn *check = NULL, *mend;

	for (size_t i = 0; i < insns->cnt && i < STACK_CHECK_INSNS && !check; i++)
		if (insns->items[i].kind == CODE_BRANCH)
			check = &insns->items[i];
	mend = check ? code_insn_at(insns, check->target) : NULL;
	if (!planner->module->is_go || !mend)
		return NULL;
	while (mend < insns->items + insns->cnt && (mend->kind == CODE_PLAIN || mend->kind == CODE_CALL))
		mend++;
	if (mend == insns->items + insns->cnt || mend->kind != CODE_JUMP || mend->target != planner->function->addr ||
	    loops_to_entry(planner, mend))
		return NULL;
	return check;
}

/* Why a return probe would harm the target; NULL: it does not. */
static const char *uretprobe_harm(const struct planner *planner)
{
	if (planner->module->is_go)
		return "Go moves its stacks, and does not know the return address that a return probe puts there";
	if (program__has_shadow_stack(planner->program))
		return "the program has a shadow stack, which a changed return address does not match";
	if (program__distrusts_returns(planner->program))
		return "what was loaded meanwhile makes return probes unsafe, while others are under way most of all";
	if (planner->function->overlaps)
		return "it shares code with another function";
	if (hazard_is(HAZARD_REMEMBERS_CALLER, planner->function->name))
		return "it remembers where it was called from, which a return probe changes";
	if (program__signals_on_stacks(planner->program))
		return "signals are handled on other stacks, where the kernel loses the return probes of this one";
	if (!program__may_throw(planner->program, planner->function->id))
		return NULL;
	if (program__switches_stacks(planner->program))
		return "the program switches stacks, which the kernel's return probes take for a longjmp";
	/*
	 * An exception passes where somebody beneath catches it.  Beneath the functions of a C program there are only
	 * its own: a library that catches may call them back, but throwing through them would lose what they hold.
	 */
	if (program__catches(planner->program) && (planner->module->idx || planner->module->unwinds))
		return "an exception may leave it, and the unwinder does not get past a return probe";
	if (program__loads(planner->program) &&
	    (planner->module->unwinds || (program__is_linked(planner->program, planner->module->idx) &&
					  program__has_guests(planner->program, planner->function->id))))
		return "what the program loads later may throw an exception through it, and the unwinder does not get "
		       "past a return probe";
	if (program__cleans_up(planner->program))
		return "a thread that is cancelled cleans up frame by frame, and not beyond a return probe";
	return NULL;
}

/* Why no call of it ends by returning; NULL. */
static const char *never_returns(const struct planner *planner)
{
	if (program__is_outermost(planner->program, planner->function->id))
		return "nothing has called it: a program or a thread begins there, and where a return address would be "
		       "there is none";
	if (program__leaves_elsewhere(planner->program, planner->function->id))
		return "it does not return to its caller, but goes on with another stack or further up";
	return NULL;
}

/* The function's first instruction for a site; false: it does not do for one. */
static bool first_site(const struct planner *planner, struct plan *plan)
{
	const char *refused;
	enum site_kind kind = planner_judge(planner, &planner->code.pieces[0].insns.items[0], &refused);

	if (kind == SITE_REFUSED || planner->stack_check)
		return false;
	plan->entry = (struct plan_site){.file_off = planner->function->file_off,
					 .cost = kind == SITE_STEPPED ? PLAN_STEPPED : PLAN_EMULATED};
	plan->why = kind == SITE_STEPPED ? "the first fast instruction ends it" : NULL;
	return true;
}

static bool is_exit(const struct plan *plan, uint64_t file_off)
{
	for (size_t i = 0; i < plan->exits.cnt; i++)
		if (plan->exits.items[i].file_off == file_off)
			return true;
	return false;
}

/* One instruction would be entry and exit: the entry moves to the first. */
static void entry_and_exit_apart(const struct planner *planner, struct plan *plan)
{
	if (!is_exit(plan, plan->entry.file_off))
		return;
	if (!is_exit(plan, planner->function->file_off) && first_site(planner, plan))
		return;
	plan->exit = PLAN_EXIT_NONE;
	plan->exits.cnt = 0;
	plan->exit_why = "it is too small: it ends where it begins";
}

static int exit_plan(const struct planner *planner, struct plan *plan)
{
	struct plan_site site;
	const char *harm, *why;
	int err;

	plan->exit_why = never_returns(planner);
	if (plan->exit_why)
		return 0;
	harm = uretprobe_harm(planner);
	if (!harm && planner_entry(planner, true, &site, &why)) {
		/* One breakpoint serves both, so that its cost is paid once. */
		plan->exit = PLAN_EXIT_URETPROBE;
		plan->entry = site;
		plan->why = why;
		plan->uretprobe_off = site.file_off;
		return 0;
	}
	err = planner_exits(planner, plan);
	if (err == -ENOTSUP) {
		plan->exits.cnt = 0;
		return 0;
	}
	if (err)
		return err;
	plan->exit = PLAN_EXIT_SITES;
	plan->exit_why = harm ? harm : "nowhere is the return address still at hand";
	entry_and_exit_apart(planner, plan);
	return 0;
}

static int plan_fill(struct planner *planner, struct plan *plan)
{
	int err = program__function_code(planner->program, plan->function, &planner->code);

	if (err == -ENOMEM)
		return err;
	if (err || !planner->code.pieces[0].insns.cnt) {
		plan->why = planner->function->size ? "its instructions cannot be read" : "its size is not known";
		return 0;
	}
	if (planner->code.is_piece) {
		plan->why = "it is a piece of another function, which is never called";
		return 0;
	}
	planner->stack_check = stack_check_find(planner);
	if (!planner->stack_check && loops_to_entry(planner, NULL)) {
		plan->why = "a loop of its own begins at its first instruction: every round would count as a call";
		return 0;
	}
	plan->possible = planner_entry(planner, false, &plan->entry, &plan->why);
	if (!plan->possible || !planner->needs->exit)
		return 0;
	return exit_plan(planner, plan);
}

int plan_make(struct program *program, uint32_t function, const struct plan_needs *needs, struct plan *plan)
{
	struct planner planner = {.program = program, .needs = needs, .function = program__function(program, function)};
	int err;

	memset(plan, 0, sizeof(*plan));
	plan->function = function;
	if (!planner.function)
		return -EINVAL;
	planner.module = program__module(program, planner.function->module);
	plan->why = refuse_kind(&planner);
	if (plan->why)
		return 0;
	err = plan_fill(&planner, plan);
	function_code_free(&planner.code);
	if (err)
		plan_free(plan);
	return err;
}

void plan_free(struct plan *plan)
{
	vec_free(&plan->exits);
}

uint64_t plan_runtime_addr(struct program *program, const struct plan *plan)
{
	const struct program_function *function = program__function(program, plan->function);
	const struct program_module *module = function ? program__module(program, function->module) : NULL;

	if (!module || module->gone || module->awaited || !plan->possible)
		return 0;
	return module->bias + function->addr + (plan->entry.file_off - function->file_off);
}

int plan_site_check(struct program *program, uint32_t module, uint64_t file_off, enum plan_cost *cost, const char **why)
{
	uint8_t bytes[CODE_INSN_MAX];
	uint64_t addr;
	ssize_t len;
	size_t insn_len;
	int err = program__addr_at(program, module, file_off, &addr);

	*why = "it is not in the code of that file";
	if (err)
		return -ENOTSUP;
	len = program__read_code(program, module, addr, bytes, sizeof(bytes));
	insn_len = len > 0 ? code__len(program__code(program), bytes, len) : 0;
	*why = "there is no instruction";
	if (!insn_len)
		return -ENOTSUP;
	switch (site_judge(bytes, insn_len, why)) {
	case SITE_REFUSED:
		return -ENOTSUP;
	case SITE_CALLABLE_NOP:
		*why = "the kernel may turn this nop into a call, which overwrites what is kept below the stack "
		       "pointer";
		return -ENOTSUP;
	case SITE_STEPPED:
		*cost = PLAN_STEPPED;
		return 0;
	default:
		*cost = PLAN_EMULATED;
		return 0;
	}
}
