// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_order.h"

#include "analysis/value_stats.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

ORDER(compare_functions, struct value_function, BY(b->calibrated, a->calibrated), BY(b->cost, a->cost),
      BY(a->function, b->function));

ORDER(compare_evidence, struct value_function, BY(b->evidence, a->evidence), BY(a->depth, b->depth),
      compare_functions(a, b));

/*
 * A caller costs as much as its callee and what it does itself: costs this close tell neither from the other, the
 * variables do, and of equals the callee, whose anomaly is the more specific one, comes first.
 */
#define SAME_COST 0.9

static void order_by_evidence(struct value_function *functions, size_t cnt)
{
	for (size_t first = 0, end; first < cnt; first = end) {
		for (end = first + 1;
		     end < cnt && functions[end].calibrated >= SAME_COST * functions[first].calibrated;)
			end++;
		qsort(functions + first, end - first, sizeof(*functions), compare_evidence);
	}
}

/*
 * Rule 4 (vProf §5.2): what costs most is normal, and only addresses were sampled in it, for how long they stay; or
 * nothing was, or nothing that ever changes.  Likewise where what differs is only handed on: it is given more, and
 * tests none of it.
 */
static bool is_by_default(const struct value_ranking *ranking, const struct value_input *input,
			  const struct value_function *function)
{
	const struct value_verdict *verdict;

	if (function->pattern != VALUE_PATTERN_NONE)
		return false;
	if (function->variable == VALUE_NONE)
		return function->by == VALUE_BY_RANKS && function->ratio < VALUE_DEFAULT_DISCOUNT;
	verdict = &ranking->verdicts[function->variable];
	if (verdict->is_anomalous)
		return verdict->dimension == VALUE_DIM_VALUE &&
		       input->variables[function->variable].tags & VALUE_TAG_ARGS;
	return !function->has_basic;
}

/* What costs most may be a callee, in which not all of the time is spent. */
#define COSTLY 0.5

static void note_default(struct value_ranking *ranking, const struct value_input *input)
{
	struct value_function *functions = ranking->functions;
	size_t cnt = ranking->function_cnt;
	double most = 0;

	for (size_t f = 0; f < cnt; f++)
		most = fmax(most, functions[f].cost);
	for (size_t f = 0; f < cnt; f++)
		if (functions[f].cost >= COSTLY * most && is_by_default(ranking, input, &functions[f]))
			functions[f].pattern = VALUE_PATTERN_SCALABILITY_BY_DEFAULT;
}

/* --- libraries without variables ---------------------------------------------------------------------------------- */

static bool is_sampled(const struct value_ranking *ranking, const struct value_input *input, uint32_t module)
{
	for (size_t v = 0; v < input->variable_cnt; v++)
		if (input->variable_modules[v] == module &&
		    ranking->verdicts[v].normal_distinct + ranking->verdicts[v].slow_distinct)
			return true;
	return false;
}

/* The module of each function; VALUE_NONE: one without a schema, or none. */
static void find_modules(uint32_t *modules, const struct value_input *input)
{
	for (size_t f = 0; f < input->function_cnt; f++)
		modules[f] = VALUE_NONE;
	for (size_t r = 0; r < input->row_cnt; r++) {
		uint32_t *module = &modules[input->functions[input->rows[r].place]];

		if (*module == VALUE_NONE)
			*module = input->place_modules[input->rows[r].place];
	}
}

static bool differs(const struct value_ranking *ranking, const struct value_function *function)
{
	return function->variable != VALUE_NONE &&
	       (ranking->verdicts[function->variable].is_anomalous || ranking->verdicts[function->variable].is_suspect);
}

/*
 * The profile of vProf's section 5 is that of a program, without its libraries.  Ours has these, too: a function of a
 * module of which no variable is sampled comes behind all functions in which a variable differs.
 */
static int put_libraries_behind(struct value_ranking *ranking, const struct value_input *input)
{
	struct value_function *functions = ranking->functions, *put;
	uint32_t *modules;
	size_t upto = ranking->function_cnt, kept = 0, put_cnt = 0;

	while (upto && !differs(ranking, &functions[upto - 1]))
		upto--;
	if (!upto || !input->place_modules)
		return 0;
	modules = malloc(input->function_cnt * sizeof(*modules));
	put = malloc(upto * sizeof(*put));
	for (size_t f = 0; modules && put && f < upto; f++) {
		if (!f)
			find_modules(modules, input);
		if (is_sampled(ranking, input, modules[functions[f].function]))
			functions[kept++] = functions[f];
		else
			put[put_cnt++] = functions[f];
	}
	for (size_t p = 0; p < put_cnt; p++)
		functions[kept++] = put[p];
	upto = modules && put ? upto : 0;
	free(modules);
	free(put);
	return upto ? 0 : -ENOMEM;
}

int value_order(struct value_ranking *ranking, const struct value_input *input)
{
	if (ranking->function_cnt)
		qsort(ranking->functions, ranking->function_cnt, sizeof(*ranking->functions), compare_functions);
	order_by_evidence(ranking->functions, ranking->function_cnt);
	note_default(ranking, input);
	return put_libraries_behind(ranking, input);
}
