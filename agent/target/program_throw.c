// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether control can leave a function other than by returning to its caller: an exception, the unwinding of a
 * cancelled thread, a longjmp, a switch of stacks.  The answer "never" is a proof over everything that is called
 * beneath.
 */
#include "target/function_code.h"
#include "target/hazard.h"
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

#define VISITS_MAX 2000

bool c_library_is_alone_in(const char *name)
{
	return hazard_is(HAZARD_PROMISED, name) || hazard_is(HAZARD_CANCELLATION_POINT, name);
}

struct proof {
	struct program *program;
	VEC(uint32_t) visited; /* all that have been reached; also the queue */
	VEC(uint8_t) seen;     /* by id */
	bool cancels;
};

static int reach(struct proof *proof, uint32_t id)
{
	if (vec_extend(&proof->seen, (size_t)id + 1))
		return -ENOMEM;
	if (proof->seen.items[id])
		return 0;
	proof->seen.items[id] = 1;
	return vec_push(&proof->visited, id);
}

static bool is_c_library(const struct proof *proof, const struct function *function)
{
	const char *module = proof->program->modules.items[function->public.module]->name;

	return !strncmp(module, "libc.so.6", 9) || !strncmp(module, "ld-linux", 8);
}

/* Needs no look at its code. */
static bool is_harmless(const struct proof *proof, const struct function *function)
{
	const char *name = function->public.name;

	if (function->throws == THROW_NEVER || function->is_leaf || function->public.is_ifunc ||
	    hazard_is(HAZARD_ENDS_PROCESS, name))
		return true;
	if (!is_c_library(proof, function))
		return false;
	name += strspn(name, "_");
	return hazard_is(HAZARD_PROMISED, name) || (!proof->cancels && hazard_is(HAZARD_CANCELLATION_POINT, name));
}

/* Can this one, for itself, be the reason? */
static bool is_reason(struct proof *proof, struct function *function)
{
	return function->throws == THROW_PERHAPS || hazard_is(HAZARD_CONTINUES_ELSEWHERE, function->public.name) ||
	       program__calls_indirectly(proof->program, function->public.id) || function->unresolved_calls;
}

/*
 * Everything that is called beneath, until one is found of which not all callees are known.  When none is found, the
 * proof holds for all that have been visited.
 */
static bool prove_never(struct proof *proof, uint32_t id)
{
	if (reach(proof, id))
		return false;
	for (size_t i = 0; i < proof->visited.cnt; i++) {
		struct function *function = program_function_of(proof->program, proof->visited.items[i]);

		if (is_harmless(proof, function))
			continue;
		if (proof->visited.cnt > VISITS_MAX || is_reason(proof, function))
			return false;
		for (uint32_t j = 0; j < function->static_cnt; j++) {
			const struct function *callee = program_function_of(proof->program, function->edges[j].callee);

			if ((callee->throws == THROW_PERHAPS && !is_harmless(proof, callee)) ||
			    reach(proof, callee->public.id))
				return false;
		}
	}
	for (size_t i = 0; i < proof->visited.cnt; i++)
		program_function_of(proof->program, proof->visited.items[i])->throws = THROW_NEVER;
	return true;
}

bool program__leaves_elsewhere(struct program *program, uint32_t id)
{
	const struct function *function = program_function_of(program, id);
	struct module *module = function ? program_module_of(program, function->public.module) : NULL;

	return module && (hazard_is(HAZARD_CONTINUES_ELSEWHERE, function->public.name) ||
			  module_sets_stack_in(program, module, function->public.addr, function->public.size));
}

bool program__may_throw(struct program *program, uint32_t id)
{
	struct function *function = program_function_of(program, id);
	struct proof proof = {.program = program};

	if (!function)
		return true;
	if (function->throws == THROW_UNKNOWN) {
		proof.cancels = program_has_mark(program, ELF_MARK_CANCELS);
		if (!prove_never(&proof, id))
			function->throws = THROW_PERHAPS;
		vec_free(&proof.visited);
		vec_free(&proof.seen);
	}
	return function->throws == THROW_PERHAPS;
}

void program__throws_forget(struct program *program)
{
	program->linked_known = false;
	for (size_t i = 0; i < program->modules.cnt; i++)
		for (size_t j = 0; j < program->modules.items[i]->functions.cnt; j++)
			program->modules.items[i]->functions.items[j].throws = THROW_UNKNOWN;
}
