// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_rank.h"

#include "analysis/value_callee.h"
#include "analysis/value_judge.h"
#include "analysis/value_order.h"
#include "analysis/value_pattern.h"
#include "analysis/value_stats.h"
#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

ORDER(compare_rows, struct value_row, BY(a->variable, b->variable), BY(a->profile, b->profile), BY(a->unit, b->unit),
      BY(a->ts, b->ts), BY(a->depth, b->depth));

static void sort_rows(struct value_input *input, int (*compare)(const void *, const void *))
{
	if (input->row_cnt)
		qsort(input->rows, input->row_cnt, sizeof(*input->rows), compare);
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* Costs of one function in one profile. */
struct cost {
	double pc, variable;
	double own;    /* of `variable`, by a local of its own */
	double depth;  /* sum over the ticks of `variable` */
	double frames; /* ticks at which it has a frame */
};

struct ranker {
	struct value_input *input;
	struct value_ranking *ranking;
	struct cost *costs; /* profile by profile, of all functions */
	struct cost
		*by_states;   /* likewise state by state, of normal and of slow profiles; NULL: all is sampled always */
	double *ticks;        /* of each state, normal and slow, weighted */
	double normal_weight; /* that a normal tick has: weighted ticks by it are as many samples */
	struct value_callee *callees; /* by function */
};

static struct cost *cost_of(const struct ranker *ranker, size_t profile, size_t function)
{
	return &ranker->costs[profile * ranker->input->function_cnt + function];
}

static struct cost *cost_in(const struct ranker *ranker, size_t state, bool is_slow, size_t function)
{
	return &ranker->by_states[(state * 2 + is_slow) * ranker->input->function_cnt + function];
}

static double raw_cost(const struct cost *cost)
{
	return cost->pc > cost->variable ? cost->pc : cost->variable;
}

ORDER(compare_ticks, struct value_row, BY(a->tick, b->tick), BY(a->depth, b->depth), BY(a->place, b->place));

static bool is_global(const struct value_input *input, const struct value_row *row)
{
	return row->variable != VALUE_NONE && input->variables[row->variable].tags & VALUE_TAG_GLOBAL;
}

/* What a library keeps for itself says nothing of the functions that call it. */
static bool sees_global(const struct value_input *input, const struct value_row *frame, const struct value_row *row)
{
	return is_global(input, row) && (!input->variable_modules ||
					 input->variable_modules[row->variable] == input->place_modules[frame->place]);
}

enum { HAS_VALUE = 1, HAS_LOCAL = 2 };

/* Has the frame a value of its own, or a global's of the same tick? */
static uint8_t what_it_has(const struct value_input *input, const struct value_row *rows, size_t cnt, size_t at)
{
	if (rows[at].variable != VALUE_NONE && !is_global(input, &rows[at]))
		return HAS_VALUE | HAS_LOCAL;
	for (size_t i = 0; i < cnt; i++)
		if (sees_global(input, &rows[at], &rows[i]))
			return HAS_VALUE;
	return 0;
}

/* Has a frame farther in of the same tick counted for that function already? Where `has` is not NULL: with `wanted`. */
static bool is_counted(const struct value_input *input, const struct value_row *rows, size_t at, const uint8_t *has,
		       uint8_t wanted)
{
	for (size_t i = 0; i < at; i++)
		if (input->functions[rows[i].place] == input->functions[rows[at].place] && (!has || has[i] & wanted))
			return true;
	return false;
}

static size_t tick_end(const struct value_input *input, size_t first)
{
	size_t end = first + 1;

	while (end < input->row_cnt && input->rows[end].tick == input->rows[first].tick)
		end++;
	return end;
}

static void add_cost(const struct ranker *ranker, const struct value_row *row, const struct cost *more)
{
	const struct value_input *input = ranker->input;
	uint32_t function = input->functions[row->place];
	struct cost *sums[] = {cost_of(ranker, row->profile, function), NULL};

	if (ranker->by_states)
		sums[1] = cost_in(ranker, row->state, input->is_slow[row->profile], function);
	for (int s = 0; s < 2 && sums[s]; s++) {
		sums[s]->pc += more->pc;
		sums[s]->variable += more->variable;
		sums[s]->own += more->own;
		sums[s]->depth += more->depth;
		sums[s]->frames += more->frames;
	}
}

/*
 * Each tick counts once for a function: by its program counter, and by any value at a distinct one (vProf §5.1).  A
 * global can be read at each frame.
 */
static int sum_costs(struct ranker *ranker)
{
	struct value_input *input = ranker->input;
	VEC(uint8_t) has = {0};
	double normal = 0, squares = 0;

	for (size_t first = 0, end; first < input->row_cnt; first = end) {
		const struct value_row *rows = &input->rows[first];
		size_t cnt;

		end = tick_end(input, first);
		cnt = end - first;
		has.cnt = 0;
		if (vec_extend(&has, cnt)) {
			vec_free(&has);
			return -ENOMEM;
		}
		for (size_t i = 0; i < cnt; i++)
			has.items[i] = what_it_has(input, rows, cnt, i);
		if (!input->is_slow[rows->profile]) {
			normal += rows->weight;
			squares += rows->weight * rows->weight;
		}
		if (!rows->depth)
			add_cost(ranker, rows, &(struct cost){.pc = rows->weight});
		if (ranker->by_states)
			ranker->ticks[rows->state * 2 + input->is_slow[rows->profile]] += rows->weight;
		for (size_t i = 0; i < cnt; i++) {
			double weight = rows[i].weight;

			if (ranker->by_states && !is_counted(input, rows, i, NULL, 0))
				add_cost(ranker, &rows[i], &(struct cost){.frames = weight});
			if (has.items[i] & HAS_LOCAL && !is_counted(input, rows, i, has.items, HAS_LOCAL))
				add_cost(ranker, &rows[i], &(struct cost){.own = weight});
			if (has.items[i] & HAS_VALUE && !is_counted(input, rows, i, has.items, HAS_VALUE))
				add_cost(ranker, &rows[i],
					 &(struct cost){.variable = weight, .depth = weight * rows[i].depth});
		}
	}
	ranker->normal_weight = normal > 0 ? squares / normal : 1;
	vec_free(&has);
	return 0;
}

/* --- variables that are not read all the time ----------------------------------------------------------------------
 */

static bool is_recorded(const struct value_input *input, size_t state, uint32_t variable)
{
	return input->is_recorded(input->owner, (uint32_t)state, variable);
}

/* Which functions have a variable that is read, state by state. */
static void mark_recorded(const struct ranker *ranker, bool *seen, bool *marks)
{
	const struct value_input *input = ranker->input;

	for (size_t r = 0; r < input->row_cnt; r++) {
		const struct value_row *row = &input->rows[r];

		if (row->variable == VALUE_NONE || seen[row->variable])
			continue;
		seen[row->variable] = true;
		for (size_t state = 0; state < input->state_cnt; state++) {
			bool *of_state = marks + state * input->function_cnt;

			if (!is_recorded(input, state, row->variable))
				continue;
			/* A global can be read at each frame. */
			if (is_global(input, row))
				memset(of_state, true, input->function_cnt);
			else
				of_state[input->functions[row->place]] = true;
		}
	}
}

/*
 * Ticks at which none of a function's variables could be read would have had values as the others did: its
 * variable-based costs stand for them, too.
 */
static int weigh_by_turns(struct ranker *ranker)
{
	const struct value_input *input = ranker->input;
	bool *seen = calloc(input->variable_cnt + 1, sizeof(*seen));
	bool *marks = calloc(input->state_cnt * input->function_cnt + 1, sizeof(*marks));
	int err = seen && marks ? 0 : -ENOMEM;

	if (!err)
		mark_recorded(ranker, seen, marks);
	for (size_t f = 0; f < input->function_cnt && !err; f++) {
		double factors[2] = {1, 1};

		for (int slow = 0; slow < 2; slow++) {
			double all = 0, read = 0;

			for (size_t state = 0; state < input->state_cnt; state++) {
				all += cost_in(ranker, state, slow, f)->frames;
				if (marks[state * input->function_cnt + f])
					read += cost_in(ranker, state, slow, f)->frames;
			}
			factors[slow] = read > 0 ? all / read : 1;
		}
		for (size_t p = 0; p < input->profile_cnt; p++) {
			cost_of(ranker, p, f)->variable *= factors[input->is_slow[p]];
			cost_of(ranker, p, f)->own *= factors[input->is_slow[p]];
			cost_of(ranker, p, f)->depth *= factors[input->is_slow[p]];
		}
	}
	free(seen);
	free(marks);
	return err;
}

/* --- the variables of functions ------------------------------------------------------------------------------------
 */

/* Of two variables the more anomalous one; where they are equally so, that whose use says more. */
static bool is_better(const struct ranker *ranker, uint32_t a, uint32_t b)
{
	const struct value_verdict *x = &ranker->ranking->verdicts[a], *y = &ranker->ranking->verdicts[b];
	const struct value_variable_facts *of_x = &ranker->input->variables[a], *of_y = &ranker->input->variables[b];
	static const uint8_t by_use[] = {VALUE_TAG_LOOP, VALUE_TAG_COND, VALUE_TAG_STEP, VALUE_TAG_ARGS};

	if (x->ratio != y->ratio)
		return x->ratio < y->ratio;
	if (x->is_suspect != y->is_suspect)
		return x->is_suspect;
	if ((of_x->tags ^ of_y->tags) & VALUE_TAG_GLOBAL)
		return of_y->tags & VALUE_TAG_GLOBAL;
	if ((of_x->kind == VALUE_POINTER) != (of_y->kind == VALUE_POINTER))
		return of_y->kind == VALUE_POINTER;
	for (size_t i = 0; i < sizeof(by_use); i++)
		if ((of_x->tags ^ of_y->tags) & by_use[i])
			return of_x->tags & by_use[i];
	if (x->distance != y->distance)
		return x->distance > y->distance;
	return x->slow_cnt > y->slow_cnt;
}

/*
 * How much an anomaly says of the function that has it: a local that its loops test, or its conditions, or that a loop
 * changes; any other local value; an address or what all functions see.
 */
static uint8_t evidence_of(const struct ranker *ranker, uint32_t variable)
{
	const struct value_variable_facts *facts = &ranker->input->variables[variable];

	if (ranker->ranking->verdicts[variable].is_suspect)
		return 1;
	if (!ranker->ranking->verdicts[variable].is_anomalous)
		return 0;
	if (facts->kind == VALUE_POINTER || facts->tags & VALUE_TAG_GLOBAL)
		return 1;
	if (facts->tags & VALUE_TAG_LOOP)
		return 5;
	if (facts->tags & VALUE_TAG_COND)
		return 4;
	return facts->tags & VALUE_TAG_STEP ? 3 : 2;
}

/* Has it values, several, and normal ones to compare them with? */
static bool tells_something(const struct ranker *ranker, uint32_t variable)
{
	const struct value_verdict *verdict = &ranker->ranking->verdicts[variable];

	return ranker->input->variables[variable].kind != VALUE_POINTER && verdict->varies && verdict->normal_cnt &&
	       verdict->slow_cnt;
}

static void offer(struct ranker *ranker, struct value_function *function, uint32_t variable)
{
	if (isnan(ranker->ranking->verdicts[variable].ratio))
		return;
	function->has_basic |= tells_something(ranker, variable);
	function->step = fmin(function->step,
			      value_step(&ranker->input->variables[variable], &ranker->ranking->verdicts[variable]));
	if (evidence_of(ranker, variable) > function->evidence)
		function->evidence = evidence_of(ranker, variable);
	if (function->variable == VALUE_NONE || is_better(ranker, variable, function->variable))
		function->variable = variable;
	if (ranker->input->variables[variable].tags & (VALUE_TAG_LOOP | VALUE_TAG_COND) &&
	    (function->tested == VALUE_NONE || is_better(ranker, variable, function->tested)))
		function->tested = variable;
}

/* A local counts for the function that has it, a global for all frames of the ticks at which it was sampled. */
static void visit_variables(struct ranker *ranker, struct value_function *functions,
			    void (*visit)(struct ranker *ranker, struct value_function *function, uint32_t variable))
{
	const struct value_input *input = ranker->input;

	for (size_t first = 0, end; first < input->row_cnt; first = end) {
		end = tick_end(input, first);
		for (size_t i = first; i < end; i++) {
			const struct value_row *row = &input->rows[i];
			bool everywhere = is_global(input, row);

			if (row->variable == VALUE_NONE)
				continue;
			for (size_t at = everywhere ? first : i; at < (everywhere ? end : i + 1); at++)
				if (!everywhere || sees_global(input, &input->rows[at], row))
					visit(ranker, &functions[input->functions[input->rows[at].place]],
					      row->variable);
		}
	}
}

static size_t rank_in(const struct ranker *ranker, size_t profile, size_t function)
{
	double own = raw_cost(cost_of(ranker, profile, function));
	size_t rank = 1;

	for (size_t f = 0; f < ranker->input->function_cnt; f++)
		rank += raw_cost(cost_of(ranker, profile, f)) > own;
	return rank;
}

/* In how many comparisons of a normal with a slow profile the function ranks higher in the normal one. */
static double discount_by_ranks(const struct ranker *ranker, size_t function)
{
	const struct value_input *input = ranker->input;
	size_t higher = 0, cnt = 0;
	double ratio;

	for (size_t normal = 0; normal < input->profile_cnt; normal++) {
		for (size_t slow = 0; slow < input->profile_cnt && !input->is_slow[normal]; slow++) {
			if (!input->is_slow[slow] || !(raw_cost(cost_of(ranker, slow, function)) > 0))
				continue;
			cnt++;
			higher += rank_in(ranker, normal, function) < rank_in(ranker, slow, function);
		}
	}
	ratio = cnt ? (double)higher / (double)cnt : NAN;
	return ratio < VALUE_VALID_DISCOUNT ? 0 : ratio;
}

static void take_signs(struct ranker *ranker, struct value_function *function, uint32_t variable)
{
	const struct value_verdict *verdict = &ranker->ranking->verdicts[variable];
	const uint32_t by[] = {function->variable, function->tested};

	function->is_given |= value_is_given(&ranker->input->variables[variable], verdict);
	function->is_for_many |= value_is_of_many(verdict);
	for (int i = 0; i < 2; i++)
		if (by[i] != VALUE_NONE)
			function->signs[i] |= value_signs(ranker->input, ranker->ranking->verdicts, variable,
							  ranker->ranking->verdicts[by[i]].ratio, function->step);
}

static void discount_function(const struct ranker *ranker, struct value_function *function)
{
	const struct value_verdict *verdict = NULL;
	double ratio;

	function->ratio = 0;
	if (function->variable != VALUE_NONE)
		verdict = &ranker->ranking->verdicts[function->variable];
	if (verdict) {
		function->by = VALUE_BY_VARIABLE;
		function->ratio = verdict->ratio;
	}
	/* What no test can decide the ranks do. */
	if (!verdict || verdict->is_suspect) {
		ratio = discount_by_ranks(ranker, function->function);
		function->by = isnan(ratio) ? VALUE_BY_NOTHING : VALUE_BY_RANKS;
		function->ratio = isnan(ratio) ? 0 : ratio;
	}
	function->calibrated = (1 - function->ratio) * function->cost;
}

static int rank_functions(struct ranker *ranker)
{
	const struct value_input *input = ranker->input;
	struct value_function *functions = ranker->ranking->functions;
	size_t kept = 0;

	for (size_t f = 0; f < input->function_cnt; f++)
		functions[f] = (struct value_function){
			.function = (uint32_t)f, .variable = VALUE_NONE, .tested = VALUE_NONE, .step = INFINITY};
	visit_variables(ranker, functions, offer);
	visit_variables(ranker, functions, take_signs);
	for (size_t f = 0; f < input->function_cnt; f++) {
		const uint8_t *signs = functions[f].signs;

		functions[f].pattern = value_pattern_by_callee(value_pattern_of(signs[0] ? signs[0] : signs[1]),
							       functions, ranker->callees, (uint32_t)f);
	}
	for (size_t f = 0; f < input->function_cnt; f++) {
		struct value_function *function = &functions[f];
		double of_depth = 0;

		for (size_t p = 0; p < input->profile_cnt; p++) {
			if (!input->is_slow[p])
				continue;
			function->pc_cost += cost_of(ranker, p, f)->pc;
			/* A global of which nothing is known makes no caller costly. */
			function->variable_cost += function->variable == VALUE_NONE ? cost_of(ranker, p, f)->own
										    : cost_of(ranker, p, f)->variable;
			function->depth += cost_of(ranker, p, f)->depth;
			of_depth += cost_of(ranker, p, f)->variable;
		}
		function->depth = of_depth > 0 ? function->depth / of_depth : 0;
		function->cost = fmax(function->pc_cost, function->variable_cost);
		if (function->cost > 0) {
			discount_function(ranker, function);
			functions[kept++] = *function;
		}
	}
	ranker->ranking->function_cnt = kept;
	return value_order(ranker->ranking, input);
}

/* Costs of a function, normal and slow, while the variable was read.  False: no normal tick was then. */
static bool sum_recorded(const struct ranker *ranker, const struct value_row *row, double of[2])
{
	const struct value_input *input = ranker->input;
	uint32_t function = input->functions[row->place];
	double normal_ticks = 0;

	if (!ranker->by_states) {
		for (size_t p = 0; p < input->profile_cnt; p++)
			of[input->is_slow[p]] += raw_cost(cost_of(ranker, p, function));
		return true;
	}
	for (size_t state = 0; state < input->state_cnt; state++) {
		if (!is_recorded(input, state, row->variable))
			continue;
		normal_ticks += ranker->ticks[state * 2];
		for (int slow = 0; slow < 2; slow++)
			of[slow] += raw_cost(cost_in(ranker, state, slow, function));
	}
	return normal_ticks > 0;
}

/* As value_judge() wants it. */
static double expected_in_normal(const struct ranker *ranker, const struct value_row *rows, size_t cnt)
{
	const struct value_input *input = ranker->input;
	double of[2] = {0, 0}, own = 0;

	if (!sum_recorded(ranker, rows, of))
		return NAN;
	for (size_t i = 0; i < cnt; i++)
		own += input->is_slow[rows[i].profile] ? rows[i].weight : 0;
	return of[1] > 0 ? own / of[1] * of[0] / ranker->normal_weight : 0;
}

int value_rank(struct value_ranking *ranking, struct value_input *input, struct arena *arena)
{
	struct ranker ranker = {.input = input, .ranking = ranking};
	int err = 0;

	*ranking = (struct value_ranking){
		.verdicts = arena__alloc(arena, input->variable_cnt, sizeof(*ranking->verdicts)),
		.functions = arena__alloc(arena, input->function_cnt, sizeof(*ranking->functions)),
	};
	ranker.callees = calloc(input->function_cnt + 1, sizeof(*ranker.callees));
	ranker.costs = calloc(input->profile_cnt * input->function_cnt + 1, sizeof(*ranker.costs));
	if (input->is_recorded && input->state_cnt > 1) {
		ranker.by_states = calloc(input->state_cnt * 2 * input->function_cnt + 1, sizeof(*ranker.by_states));
		ranker.ticks = calloc(input->state_cnt * 2, sizeof(*ranker.ticks));
		err = ranker.by_states && ranker.ticks ? 0 : -ENOMEM;
	}
	if (!ranking->verdicts || !ranking->functions || !ranker.costs || !ranker.callees)
		err = -ENOMEM;
	for (size_t v = 0; v < input->variable_cnt && !err; v++)
		ranking->verdicts[v].ratio = NAN;
	if (!err) {
		sort_rows(input, compare_ticks);
		err = sum_costs(&ranker);
		if (!err)
			err = value_callees_find(ranker.callees, input);
		if (!err && ranker.by_states)
			err = weigh_by_turns(&ranker);
		sort_rows(input, compare_rows);
	}
	for (size_t i = 0, end; i < input->row_cnt && !err; i = end) {
		const struct value_row *rows = input->rows + i;

		for (end = i + 1; end < input->row_cnt && input->rows[end].variable == rows->variable;)
			end++;
		if (rows->variable != VALUE_NONE)
			err = value_judge(&ranking->verdicts[rows->variable], input, rows, end - i,
					  expected_in_normal(&ranker, rows, end - i));
	}
	if (!err) {
		sort_rows(input, compare_ticks);
		err = rank_functions(&ranker);
	}
	free(ranker.callees);
	free(ranker.costs);
	free(ranker.by_states);
	free(ranker.ticks);
	return err;
}
