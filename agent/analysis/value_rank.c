// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_rank.h"

#include "analysis/value_stats.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double value_number(const struct value_variable_facts *facts, uint64_t bytes)
{
	unsigned bits = facts->size * 8u;
	double wide;
	float narrow;

	if (facts->kind == VALUE_FLOAT && facts->size == 8) {
		memcpy(&wide, &bytes, sizeof(wide));
		return wide;
	}
	if (facts->kind == VALUE_FLOAT) {
		memcpy(&narrow, &bytes, sizeof(narrow));
		return narrow;
	}
	if (facts->kind != VALUE_SIGNED && facts->kind != VALUE_ENUM)
		return (double)bytes;
	if (bits < 64 && bytes >> (bits - 1) & 1)
		bytes |= ~0ULL << bits;
	return (double)(int64_t)bytes;
}

/* --- one variable ------------------------------------------------------------------------------------------------- */

typedef VEC(struct value_point) value_points;

/* The samples of a variable in all normal or all slow profiles, by dimension. */
struct side {
	value_points dims[VALUE_DIM_CNT];
	double units[VALUE_DIM_CNT]; /* that they are of */
};

static int compare_rows(const void *left, const void *right)
{
	const struct value_row *a = left, *b = right;

	if (a->variable != b->variable)
		return a->variable < b->variable ? -1 : 1;
	if (a->profile != b->profile)
		return a->profile < b->profile ? -1 : 1;
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return (a->depth > b->depth) - (a->depth < b->depth);
}

static int take_point(value_points *points, double value, double weight)
{
	/* No order includes a float that is no number. */
	if (isnan(value))
		return 0;
	return vec_push(points, ((struct value_point){value, weight})) ? -ENOMEM : 0;
}

/* So many late requests must have samples of a variable. */
#define SLOW_UNITS_MIN 5
/* With fewer samples of a request, for how long a value stays is not known. */
#define COST_SAMPLES_MIN 3

/*
 * The samples of one unit: values, differences, and for how long each stays.  A longer request has more samples, so of
 * requests it is the share of them that counts.
 */
static int take_unit(const struct value_input *input, struct side *side, const struct value_variable_facts *facts,
		     const struct value_row *rows, size_t cnt)
{
	bool has_cost = !input->by_unit || cnt >= COST_SAMPLES_MIN;
	double whole = input->by_unit ? (double)cnt : 1;
	size_t run = 1;
	int err = 0;

	side->units[VALUE_DIM_VALUE]++;
	side->units[VALUE_DIM_DELTA] += cnt > 1;
	side->units[VALUE_DIM_COST] += has_cost;
	for (size_t i = 0; i < cnt && !err; i++, run++) {
		double number = value_number(facts, rows[i].value);

		if (facts->kind != VALUE_POINTER) {
			err = take_point(&side->dims[VALUE_DIM_VALUE], number, rows[i].weight);
			if (!err && i)
				err = take_point(&side->dims[VALUE_DIM_DELTA],
						 number - value_number(facts, rows[i - 1].value), rows[i].weight);
		}
		if (i + 1 == cnt || rows[i + 1].value != rows[i].value) {
			if (!err && has_cost)
				err = take_point(&side->dims[VALUE_DIM_COST], (double)run / whole, rows[i].weight);
			run = 0;
		}
	}
	return err;
}

static double quantile(const struct value_set *set, double p)
{
	double total = 0, upto = 0;

	for (size_t i = 0; i < set->cnt; i++)
		total += set->points[i].weight;
	for (size_t i = 0; i < set->cnt; i++) {
		upto += set->points[i].weight;
		if (upto >= p * total * (1 - 1e-12))
			return set->points[i].value;
	}
	return NAN;
}

static struct value_set set_of(struct side *side, enum value_dimension dim, bool by_unit)
{
	return (struct value_set){.points = side->dims[dim].items,
				  .cnt = side->dims[dim].cnt,
				  .effective = by_unit ? side->units[dim] : 0};
}

/* The least ratio counts; of equal ones that of the greater distance, then the first. */
static void decide(struct value_verdict *verdict, const struct value_input *input, struct side sides[2])
{
	verdict->ratio = verdict->distance = NAN;
	for (int dim = 0; dim < VALUE_DIM_CNT; dim++) {
		struct value_set normal = set_of(&sides[0], dim, input->by_unit),
				 slow = set_of(&sides[1], dim, input->by_unit);
		double ratio = value_discount(&normal, &slow), distance = value_hellinger(&normal, &slow);

		/* A few requests differ from the others in much, above all in what grows with time. */
		if (input->by_unit && sides[1].units[dim] < SLOW_UNITS_MIN)
			ratio = NAN;
		/* Typical requests are too short for adjacent samples: their absence tells nothing. */
		if (input->by_unit && dim != VALUE_DIM_VALUE && !normal.cnt)
			ratio = NAN;
		verdict->ratios[dim] = ratio;
		if (isnan(ratio))
			continue;
		if (isnan(distance))
			distance = 1;
		if (isnan(verdict->ratio) || ratio < verdict->ratio ||
		    (ratio == verdict->ratio && ratio < VALUE_DEFAULT_DISCOUNT && distance > verdict->distance)) {
			verdict->ratio = ratio;
			verdict->distance = distance;
			verdict->dimension = dim;
		}
	}
	verdict->is_anomalous = verdict->ratio < VALUE_DEFAULT_DISCOUNT;
}

/* Where the slow samples are beyond what any normal one is. */
static void find_places(struct value_verdict *verdict, const struct value_input *input,
			const struct value_variable_facts *facts, const struct value_row *rows, size_t cnt, double lo,
			double hi)
{
	struct {
		uint32_t place;
		double weight;
	} most[16] = {{0}};
	size_t most_cnt = 0;
	double beyond = 0, total = 0;

	for (size_t i = 0; i < cnt; i++) {
		double number = value_number(facts, rows[i].value);
		size_t m = 0;

		if (!input->is_slow[rows[i].profile])
			continue;
		total += rows[i].weight;
		if (facts->kind != VALUE_POINTER && number >= lo && number <= hi &&
		    verdict->dimension == VALUE_DIM_VALUE)
			continue;
		beyond += rows[i].weight;
		while (m < most_cnt && most[m].place != rows[i].place)
			m++;
		if (m == most_cnt && m < sizeof(most) / sizeof(most[0]))
			most[most_cnt++].place = rows[i].place;
		if (m < most_cnt)
			most[m].weight += rows[i].weight;
	}
	verdict->beyond_share = total > 0 ? beyond / total : NAN;
	for (size_t p = 0; p < sizeof(verdict->places) / sizeof(verdict->places[0]); p++) {
		size_t best = 0;

		verdict->places[p] = VALUE_NONE;
		for (size_t m = 1; m < most_cnt; m++)
			if (most[m].weight > most[best].weight)
				best = m;
		if (best < most_cnt && most[best].weight > 0)
			verdict->places[p] = most[best].place;
		if (best < most_cnt)
			most[best].weight = 0;
	}
}

/* The rows are those of one variable, by profile, unit and time. */
static int judge(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
		 size_t cnt)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	struct side sides[2] = {{.units = {0}}};
	struct value_set normal, slow;
	int err = 0;

	for (size_t i = 0, end; i < cnt && !err; i = end) {
		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile && rows[end].unit == rows[i].unit;)
			end++;
		err = take_unit(input, &sides[input->is_slow[rows[i].profile]], facts, rows + i, end - i);
	}
	if (!err) {
		decide(verdict, input, sides);
		normal = set_of(&sides[0], VALUE_DIM_VALUE, false);
		slow = set_of(&sides[1], VALUE_DIM_VALUE, false);
		verdict->normal_cnt = sides[0].dims[VALUE_DIM_VALUE].cnt;
		verdict->slow_cnt = sides[1].dims[VALUE_DIM_VALUE].cnt;
		verdict->normal_lo = quantile(&normal, 0.05);
		verdict->normal_hi = quantile(&normal, 0.95);
		verdict->slow_median = quantile(&slow, 0.5);
		find_places(verdict, input, facts, rows, cnt, normal.cnt ? normal.points[0].value : INFINITY,
			    normal.cnt ? normal.points[normal.cnt - 1].value : -INFINITY);
	}
	for (int s = 0; s < 2; s++)
		for (int dim = 0; dim < VALUE_DIM_CNT; dim++)
			vec_free(&sides[s].dims[dim]);
	return err;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* Costs of one function in one profile. */
struct cost {
	double pc, variable;
};

struct ranker {
	struct value_input *input;
	struct value_ranking *ranking;
	struct cost *costs; /* profile by profile, of all functions */
};

static struct cost *cost_of(const struct ranker *ranker, size_t profile, size_t function)
{
	return &ranker->costs[profile * ranker->input->function_cnt + function];
}

static double raw_cost(const struct cost *cost)
{
	return cost->pc > cost->variable ? cost->pc : cost->variable;
}

static int compare_ticks(const void *left, const void *right)
{
	const struct value_row *a = left, *b = right;

	if (a->tick != b->tick)
		return a->tick < b->tick ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* Has a frame farther in of the same tick counted for that function already? */
static bool is_counted(const struct value_input *input, const struct value_row *rows, size_t at, bool with_globals)
{
	for (size_t i = 0; i < at; i++)
		if ((with_globals || rows[i].variable != VALUE_NONE) &&
		    input->functions[rows[i].place] == input->functions[rows[at].place])
			return true;
	return false;
}

static bool is_global(const struct value_input *input, const struct value_row *row)
{
	return row->variable != VALUE_NONE && input->variables[row->variable].tags & VALUE_TAG_GLOBAL;
}

static size_t tick_end(const struct value_input *input, size_t first)
{
	size_t end = first + 1;

	while (end < input->row_cnt && input->rows[end].tick == input->rows[first].tick)
		end++;
	return end;
}

/*
 * Each tick counts once for a function: by its program counter, and by any value at a distinct one (vProf §5.1).  A
 * global can be read at each frame.
 */
static void sum_costs(struct ranker *ranker)
{
	struct value_input *input = ranker->input;

	if (input->row_cnt)
		qsort(input->rows, input->row_cnt, sizeof(*input->rows), compare_ticks);
	for (size_t first = 0, end; first < input->row_cnt; first = end) {
		const struct value_row *rows = &input->rows[first];
		bool has_global = false;

		end = tick_end(input, first);
		for (size_t i = 0; i < end - first && !has_global; i++)
			has_global = is_global(input, &rows[i]);
		if (!rows->depth)
			cost_of(ranker, rows->profile, input->functions[rows->place])->pc += rows->weight;
		for (size_t i = 0; i < end - first; i++)
			if ((has_global || rows[i].variable != VALUE_NONE) && !is_counted(input, rows, i, has_global))
				cost_of(ranker, rows[i].profile, input->functions[rows[i].place])->variable +=
					rows[i].weight;
	}
}

/* Of two variables the more anomalous one; where they are equally so, that whose use says more. */
static bool is_better(const struct ranker *ranker, uint32_t a, uint32_t b)
{
	const struct value_verdict *x = &ranker->ranking->verdicts[a], *y = &ranker->ranking->verdicts[b];
	const struct value_variable_facts *of_x = &ranker->input->variables[a], *of_y = &ranker->input->variables[b];
	static const uint8_t by_use[] = {VALUE_TAG_LOOP, VALUE_TAG_COND, VALUE_TAG_ARGS};

	if (x->ratio != y->ratio)
		return x->ratio < y->ratio;
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

static void offer(struct ranker *ranker, struct value_function *function, uint32_t variable)
{
	if (isnan(ranker->ranking->verdicts[variable].ratio))
		return;
	if (ranker->input->variables[variable].kind != VALUE_POINTER)
		function->has_basic = true;
	if (function->variable == VALUE_NONE || is_better(ranker, variable, function->variable))
		function->variable = variable;
}

/* A local counts for the function that has it, a global for all frames of the ticks at which it was sampled. */
static void find_variables(struct ranker *ranker, struct value_function *functions)
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
				offer(ranker, &functions[input->functions[input->rows[at].place]], row->variable);
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

static enum value_pattern pattern_of(const struct ranker *ranker, const struct value_function *function)
{
	const struct value_verdict *verdict;
	uint8_t tags;

	if (function->by != VALUE_BY_VARIABLE)
		return VALUE_PATTERN_NONE;
	verdict = &ranker->ranking->verdicts[function->variable];
	tags = ranker->input->variables[function->variable].tags;
	if (!verdict->is_anomalous)
		return VALUE_PATTERN_NONE;
	if (tags & (VALUE_TAG_LOOP | VALUE_TAG_COND) && verdict->dimension == VALUE_DIM_COST)
		return VALUE_PATTERN_MISSING_CONSTRAINT;
	if (tags & VALUE_TAG_LOOP)
		return VALUE_PATTERN_SCALABILITY;
	return tags & VALUE_TAG_COND ? VALUE_PATTERN_WRONG_CONSTRAINT : VALUE_PATTERN_NONE;
}

static void discount_function(const struct ranker *ranker, struct value_function *function)
{
	double ratio;

	function->ratio = 0;
	if (function->variable != VALUE_NONE) {
		function->by = VALUE_BY_VARIABLE;
		function->ratio = ranker->ranking->verdicts[function->variable].ratio;
	} else {
		ratio = discount_by_ranks(ranker, function->function);
		function->by = isnan(ratio) ? VALUE_BY_NOTHING : VALUE_BY_RANKS;
		function->ratio = isnan(ratio) ? 0 : ratio;
	}
	function->calibrated = (1 - function->ratio) * function->cost;
	function->pattern = pattern_of(ranker, function);
}

static int compare_functions(const void *left, const void *right)
{
	const struct value_function *a = left, *b = right;

	if (a->calibrated != b->calibrated)
		return a->calibrated < b->calibrated ? 1 : -1;
	if (a->cost != b->cost)
		return a->cost < b->cost ? 1 : -1;
	return (a->function > b->function) - (a->function < b->function);
}

/* Rule 4 (vProf §5.2): what costs most is normal, and no value of a basic type could say more. */
static void note_default(const struct ranker *ranker, struct value_function *function)
{
	const struct value_verdict *verdict;

	if (function->variable == VALUE_NONE || function->has_basic || function->pattern != VALUE_PATTERN_NONE)
		return;
	verdict = &ranker->ranking->verdicts[function->variable];
	if (!verdict->is_anomalous && verdict->dimension == VALUE_DIM_COST)
		function->pattern = VALUE_PATTERN_SCALABILITY_BY_DEFAULT;
}

static void rank_functions(struct ranker *ranker)
{
	const struct value_input *input = ranker->input;
	struct value_function *functions = ranker->ranking->functions;
	struct value_function *costliest = NULL;
	size_t kept = 0;

	for (size_t f = 0; f < input->function_cnt; f++)
		functions[f] = (struct value_function){.function = (uint32_t)f, .variable = VALUE_NONE};
	find_variables(ranker, functions);
	for (size_t f = 0; f < input->function_cnt; f++) {
		struct value_function *function = &functions[f];

		for (size_t p = 0; p < input->profile_cnt; p++) {
			if (!input->is_slow[p])
				continue;
			function->pc_cost += cost_of(ranker, p, f)->pc;
			function->variable_cost += cost_of(ranker, p, f)->variable;
		}
		function->cost = fmax(function->pc_cost, function->variable_cost);
		if (function->cost > 0) {
			discount_function(ranker, function);
			functions[kept++] = *function;
		}
	}
	ranker->ranking->function_cnt = kept;
	qsort(functions, kept, sizeof(*functions), compare_functions);
	for (size_t f = 0; f < kept; f++)
		if (!costliest || functions[f].cost > costliest->cost)
			costliest = &functions[f];
	if (costliest)
		note_default(ranker, costliest);
}

int value_rank(struct value_ranking *ranking, struct value_input *input, struct arena *arena)
{
	struct ranker ranker = {.input = input, .ranking = ranking};
	int err = 0;

	*ranking = (struct value_ranking){
		.verdicts = arena__alloc(arena, input->variable_cnt, sizeof(*ranking->verdicts)),
		.functions = arena__alloc(arena, input->function_cnt, sizeof(*ranking->functions)),
	};
	ranker.costs = calloc(input->profile_cnt * input->function_cnt + 1, sizeof(*ranker.costs));
	if (!ranking->verdicts || !ranking->functions || !ranker.costs)
		err = -ENOMEM;
	for (size_t v = 0; v < input->variable_cnt && !err; v++)
		ranking->verdicts[v].ratio = NAN;
	if (!err && input->row_cnt)
		qsort(input->rows, input->row_cnt, sizeof(*input->rows), compare_rows);
	for (size_t i = 0, end; i < input->row_cnt && !err; i = end) {
		for (end = i + 1; end < input->row_cnt && input->rows[end].variable == input->rows[i].variable;)
			end++;
		if (input->rows[i].variable != VALUE_NONE)
			err = judge(&ranking->verdicts[input->rows[i].variable], input, input->rows + i, end - i);
	}
	if (!err) {
		sum_costs(&ranker);
		rank_functions(&ranker);
	}
	free(ranker.costs);
	return err;
}
