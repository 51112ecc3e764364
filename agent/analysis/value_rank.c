// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_rank.h"

#include "analysis/value_stats.h"
#include "base/order.h"
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

ORDER(compare_rows, struct value_row, BY(a->variable, b->variable), BY(a->profile, b->profile), BY(a->unit, b->unit),
      BY(a->ts, b->ts), BY(a->depth, b->depth));

static void sort_rows(struct value_input *input, int (*compare)(const void *, const void *))
{
	if (input->row_cnt)
		qsort(input->rows, input->row_cnt, sizeof(*input->rows), compare);
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
/* Normal profiles must lack so many samples that they would have by chance, where only slow ones have any. */
#define ONLY_SLOW_EXPECTED 5
/* So many times, in normal profiles and in slow ones, a value must stay for a while before that is compared. */
#define COST_RUNS_MIN 5
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

/* So many samples of a clock must be on one line over time, in so many steps. */
#define CLOCK_SAMPLES_MIN 10
#define CLOCK_STEPS_MIN   5
#define CLOCK_CORRELATION 0.995
#define CLOCK_RATE_OFF    0.2

/* The slope of a variable over time in one profile; NAN: its values are on no rising line, INFINITY: not known. */
static double slope_of(const struct value_variable_facts *facts, const struct value_row *rows, size_t cnt,
		       size_t samples_min, size_t steps_min)
{
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0, n = (double)cnt, least = INFINITY, most = -INFINITY, spread;
	size_t steps = 0;

	if (cnt < samples_min)
		return INFINITY;
	for (size_t i = 0; i < cnt; i++) {
		least = fmin(least, value_number(facts, rows[i].value));
		most = fmax(most, value_number(facts, rows[i].value));
		steps += i && rows[i].value != rows[i - 1].value;
	}
	if (steps < steps_min || !(most > least))
		return NAN;
	for (size_t i = 0; i < cnt; i++) {
		double at = (double)(int64_t)(rows[i].ts - rows[0].ts),
		       value = value_number(facts, rows[i].value) - least;

		x += at / n;
		y += value / n;
		xx += at * at / n;
		xy += at * value / n;
		yy += value * value / n;
	}
	xx -= x * x;
	yy -= y * y;
	xy -= x * y;
	spread = sqrt(xx * yy);
	return spread > 0 && xy / spread >= CLOCK_CORRELATION ? xy / xx : NAN;
}

/* Fewer do if all recordings are on one line whose slope is that of a clock in s, ms, us or ns. */
#define TIME_SAMPLES_MIN 4
#define TIME_RATE_OFF    0.01

static bool tells_time(double slope)
{
	for (double unit = 1e-9; unit < 2 && isfinite(slope); unit *= 1000)
		if (fabs(slope / unit - 1) < TIME_RATE_OFF)
			return true;
	return false;
}

/*
 * A variable that grows with time alike in all profiles is a clock or counts ticks of one: that recordings were made at
 * different times is no difference of the program.
 */
static bool is_clock(const struct value_input *input, const struct value_row *rows, size_t cnt)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	double least = INFINITY, most = -INFINITY;
	bool sides[2] = {false, false};

	if (facts->kind == VALUE_POINTER)
		return false;
	if (tells_time(slope_of(facts, rows, cnt, TIME_SAMPLES_MIN, TIME_SAMPLES_MIN - 1)))
		return true;
	for (size_t i = 0, end; i < cnt; i = end) {
		double slope;

		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile;)
			end++;
		slope = slope_of(facts, rows + i, end - i, CLOCK_SAMPLES_MIN, CLOCK_STEPS_MIN);
		if (isnan(slope))
			return false;
		if (isinf(slope))
			continue;
		sides[input->is_slow[rows[i].profile]] = true;
		least = fmin(least, slope);
		most = fmax(most, slope);
	}
	return sides[0] && sides[1] && most <= least * (1 + CLOCK_RATE_OFF);
}

/* By so much the distance of slow from normal recordings must exceed that of normal ones from each other. */
#define BETWEEN_NORMAL 0.05

/*
 * The mean distance between normal recordings, each and the one before: ports, process ids, times of the start and
 * addresses differ in every run.  0 where there is one.
 */
static double between_normal(struct side *alone, size_t cnt, enum value_dimension dim)
{
	double sum = 0;
	size_t pairs = 0;

	for (size_t i = 1; i < cnt; i++) {
		struct value_set a = set_of(&alone[i - 1], dim, false), b = set_of(&alone[i], dim, false);
		double distance = value_hellinger(&a, &b);

		if (isnan(distance))
			continue;
		sum += distance;
		pairs++;
	}
	return pairs ? sum / (double)pairs : 0;
}

/*
 * The least ratio counts; of equal ones that of the greater distance, then the first.  `alone`: of each normal
 * recording.
 */
static void decide(struct value_verdict *verdict, const struct value_input *input, struct side sides[2],
		   struct side *alone, size_t alone_cnt)
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
		if (!input->by_unit && dim == VALUE_DIM_COST && ratio < VALUE_DEFAULT_DISCOUNT && normal.cnt &&
		    (normal.cnt < COST_RUNS_MIN || slow.cnt < COST_RUNS_MIN))
			ratio = VALUE_DEFAULT_DISCOUNT;
		if (ratio < VALUE_DEFAULT_DISCOUNT && alone_cnt > 1 &&
		    distance <= between_normal(alone, alone_cnt, dim) + BETWEEN_NORMAL)
			ratio = VALUE_DEFAULT_DISCOUNT;
		verdict->ratios[dim] = ratio;
		if (isnan(ratio))
			continue;
		if (isnan(distance))
			distance = 1;
		if (dim == VALUE_DIM_COST)
			verdict->cost_distance = distance;
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

static void side_free(struct side *side)
{
	for (int dim = 0; dim < VALUE_DIM_CNT; dim++)
		vec_free(&side->dims[dim]);
}

static void set_normal(struct value_verdict *verdict)
{
	verdict->ratio = VALUE_DEFAULT_DISCOUNT;
	verdict->is_anomalous = false;
}

/*
 * The rows are those of one variable, by profile, unit and time.  `expected`: so many samples the normal profiles have
 * if its function has them as often there.
 */
static int judge(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
		 size_t cnt, double expected)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	struct side sides[2] = {{.units = {0}}};
	VEC(struct side) alone = {0};
	struct value_set normal, slow;
	int err = 0;

	for (size_t i = 0, end; i < cnt && !err; i = end) {
		bool is_slow = input->is_slow[rows[i].profile], is_alone = !is_slow && !input->by_unit;

		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile && rows[end].unit == rows[i].unit;)
			end++;
		err = take_unit(input, &sides[is_slow], facts, rows + i, end - i);
		verdict->varies |= rows[i].value != rows->value;
		for (size_t k = i + 1; k < end && !verdict->varies; k++)
			verdict->varies = rows[k].value != rows[k - 1].value;
		if (!err && is_alone && (!i || rows[i - 1].profile != rows[i].profile))
			err = vec_push(&alone, ((struct side){.units = {0}})) ? -ENOMEM : 0;
		if (!err && is_alone)
			err = take_unit(input, &alone.items[alone.cnt - 1], facts, rows + i, end - i);
	}
	if (!err) {
		decide(verdict, input, sides, alone.items, alone.cnt);
		/* One value throughout is the same in both, also where requests are too short to tell for how long. */
		if (isnan(verdict->ratio) && !verdict->varies && sides[0].units[VALUE_DIM_VALUE] > 0 &&
		    sides[1].units[VALUE_DIM_VALUE] >= SLOW_UNITS_MIN)
			set_normal(verdict);
		if (!isnan(verdict->ratio) &&
		    ((!sides[0].units[VALUE_DIM_VALUE] && expected > 0 && expected < ONLY_SLOW_EXPECTED) ||
		     (!input->by_unit && is_clock(input, rows, cnt))))
			set_normal(verdict);
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
	for (size_t a = 0; a < alone.cnt; a++)
		side_free(&alone.items[a]);
	vec_free(&alone);
	for (int s = 0; s < 2; s++)
		side_free(&sides[s]);
	return err;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* Costs of one function in one profile. */
struct cost {
	double pc, variable;
	double depth; /* sum over the ticks of `variable` */
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

ORDER(compare_ticks, struct value_row, BY(a->tick, b->tick), BY(a->depth, b->depth), BY(a->place, b->place));

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

	for (size_t first = 0, end; first < input->row_cnt; first = end) {
		const struct value_row *rows = &input->rows[first];
		bool has_global = false;

		end = tick_end(input, first);
		for (size_t i = 0; i < end - first && !has_global; i++)
			has_global = is_global(input, &rows[i]);
		if (!rows->depth)
			cost_of(ranker, rows->profile, input->functions[rows->place])->pc += rows->weight;
		for (size_t i = 0; i < end - first; i++)
			if ((has_global || rows[i].variable != VALUE_NONE) && !is_counted(input, rows, i, has_global)) {
				struct cost *cost = cost_of(ranker, rows[i].profile, input->functions[rows[i].place]);

				cost->variable += rows[i].weight;
				cost->depth += rows[i].weight * rows[i].depth;
			}
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

/*
 * How much an anomaly says of the function that has it: a local that its loops test, or its conditions, any other
 * local value, an address or what all functions see.
 */
static uint8_t evidence_of(const struct ranker *ranker, uint32_t variable)
{
	const struct value_variable_facts *facts = &ranker->input->variables[variable];

	if (!ranker->ranking->verdicts[variable].is_anomalous)
		return 0;
	if (facts->kind == VALUE_POINTER || facts->tags & VALUE_TAG_GLOBAL)
		return 1;
	if (facts->tags & VALUE_TAG_LOOP)
		return 4;
	return facts->tags & VALUE_TAG_COND ? 3 : 2;
}

static void offer(struct ranker *ranker, struct value_function *function, uint32_t variable)
{
	if (isnan(ranker->ranking->verdicts[variable].ratio))
		return;
	if (ranker->input->variables[variable].kind != VALUE_POINTER && ranker->ranking->verdicts[variable].varies &&
	    ranker->input->variables[variable].tags & (VALUE_TAG_LOOP | VALUE_TAG_COND))
		function->has_basic = true;
	if (evidence_of(ranker, variable) > function->evidence)
		function->evidence = evidence_of(ranker, variable);
	if (function->variable == VALUE_NONE || is_better(ranker, variable, function->variable))
		function->variable = variable;
	if (ranker->input->variables[variable].tags & (VALUE_TAG_LOOP | VALUE_TAG_COND) &&
	    (function->tested == VALUE_NONE || is_better(ranker, variable, function->tested)))
		function->tested = variable;
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

	if (function->by != VALUE_BY_VARIABLE || function->tested == VALUE_NONE)
		return VALUE_PATTERN_NONE;
	verdict = &ranker->ranking->verdicts[function->tested];
	tags = ranker->input->variables[function->tested].tags;
	if (!verdict->is_anomalous)
		return VALUE_PATTERN_NONE;
	/* Where two dimensions are equally anomalous the first rule counts. */
	if (tags & (VALUE_TAG_LOOP | VALUE_TAG_COND) && verdict->ratios[VALUE_DIM_COST] <= verdict->ratio &&
	    verdict->cost_distance >= verdict->distance)
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

ORDER(compare_functions, struct value_function, BY(b->calibrated, a->calibrated), BY(b->cost, a->cost),
      BY(a->function, b->function));

static int compare_evidence(const void *left, const void *right)
{
	const struct value_function *a = left, *b = right;

	if (a->evidence != b->evidence)
		return a->evidence < b->evidence ? 1 : -1;
	if (a->evidence && a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return compare_functions(left, right);
}

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
 * Rule 4 (vProf §5.2): what costs most is normal, and no value of a basic type could say more: none is tested, or it is
 * a constant.
 */
static void note_default(const struct ranker *ranker, struct value_function *function)
{
	if (function->variable == VALUE_NONE || function->has_basic || function->pattern != VALUE_PATTERN_NONE)
		return;
	if (!ranker->ranking->verdicts[function->variable].is_anomalous)
		function->pattern = VALUE_PATTERN_SCALABILITY_BY_DEFAULT;
}

static void rank_functions(struct ranker *ranker)
{
	const struct value_input *input = ranker->input;
	struct value_function *functions = ranker->ranking->functions;
	struct value_function *costliest = NULL;
	size_t kept = 0;

	for (size_t f = 0; f < input->function_cnt; f++)
		functions[f] =
			(struct value_function){.function = (uint32_t)f, .variable = VALUE_NONE, .tested = VALUE_NONE};
	find_variables(ranker, functions);
	for (size_t f = 0; f < input->function_cnt; f++) {
		struct value_function *function = &functions[f];

		for (size_t p = 0; p < input->profile_cnt; p++) {
			if (!input->is_slow[p])
				continue;
			function->pc_cost += cost_of(ranker, p, f)->pc;
			function->variable_cost += cost_of(ranker, p, f)->variable;
			function->depth += cost_of(ranker, p, f)->depth;
		}
		function->depth = function->variable_cost > 0 ? function->depth / function->variable_cost : 0;
		function->cost = fmax(function->pc_cost, function->variable_cost);
		if (function->cost > 0) {
			discount_function(ranker, function);
			functions[kept++] = *function;
		}
	}
	ranker->ranking->function_cnt = kept;
	qsort(functions, kept, sizeof(*functions), compare_functions);
	order_by_evidence(functions, kept);
	for (size_t f = 0; f < kept; f++)
		if (!costliest || functions[f].cost > costliest->cost)
			costliest = &functions[f];
	if (costliest)
		note_default(ranker, costliest);
}

/* So many samples of the variable normal profiles have if its function has them as often there; 0: it never runs. */
static double expected_in_normal(const struct ranker *ranker, const struct value_row *rows, size_t cnt)
{
	const struct value_input *input = ranker->input;
	double of_normal = 0, of_slow = 0, own = 0;

	for (size_t p = 0; p < input->profile_cnt; p++)
		*(input->is_slow[p] ? &of_slow : &of_normal) +=
			raw_cost(cost_of(ranker, p, input->functions[rows->place]));
	for (size_t i = 0; i < cnt; i++)
		own += input->is_slow[rows[i].profile] ? rows[i].weight : 0;
	return of_slow > 0 ? own / of_slow * of_normal : 0;
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
	if (!err) {
		sort_rows(input, compare_ticks);
		sum_costs(&ranker);
		sort_rows(input, compare_rows);
	}
	for (size_t i = 0, end; i < input->row_cnt && !err; i = end) {
		const struct value_row *rows = input->rows + i;

		for (end = i + 1; end < input->row_cnt && input->rows[end].variable == rows->variable;)
			end++;
		if (rows->variable != VALUE_NONE)
			err = judge(&ranking->verdicts[rows->variable], input, rows, end - i,
				    expected_in_normal(&ranker, rows, end - i));
	}
	if (!err) {
		sort_rows(input, compare_ticks);
		rank_functions(&ranker);
	}
	free(ranker.costs);
	return err;
}
