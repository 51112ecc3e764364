// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_judge.h"

#include "analysis/value_hash.h"
#include "analysis/value_places.h"
#include "analysis/value_stats.h"
#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* --- one variable ------------------------------------------------------------------------------------------------- */

typedef VEC(struct value_point) value_points;

/* The samples of a variable in all normal or all slow profiles, by dimension. */
struct side {
	value_points dims[VALUE_DIM_CNT];
	value_points identities;     /* of a pointer */
	double units[VALUE_DIM_CNT]; /* that they are of */
};

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

/* For so many ticks the samples stand: a variable that takes turns is read at one of so many. */
static double ticks_of(const struct value_row *rows, size_t cnt)
{
	double ticks = 0;

	for (size_t i = 0; i < cnt; i++)
		ticks += rows[i].turn > 1 ? rows[i].turn : 1;
	return ticks;
}

/*
 * By what the number of ticks for which a value stays is divided.  A longer request has more of them, so of requests it
 * is the share that counts; of recordings the number.
 */
static double whole_of(const struct value_input *input, const struct value_row *rows, size_t cnt)
{
	return input->by_unit ? ticks_of(rows, cnt) : 1;
}

/* The samples of one unit: values, differences, and for how long each stays. */
static int take_unit(const struct value_input *input, struct side *side, const struct value_variable_facts *facts,
		     const struct value_row *rows, size_t cnt)
{
	bool has_cost = !input->by_unit || cnt >= COST_SAMPLES_MIN;
	double whole = whole_of(input, rows, cnt);
	double run = 0;
	int err = 0;

	side->units[VALUE_DIM_VALUE]++;
	side->units[VALUE_DIM_DELTA] += cnt > 1;
	side->units[VALUE_DIM_COST] += has_cost;
	for (size_t i = 0; i < cnt && !err; i++) {
		double number = value_number(facts, rows[i].value);

		run += ticks_of(&rows[i], 1);
		if (facts->kind != VALUE_POINTER) {
			err = take_point(&side->dims[VALUE_DIM_VALUE], number, rows[i].weight);
			if (!err && i)
				err = take_point(&side->dims[VALUE_DIM_DELTA],
						 number - value_number(facts, rows[i - 1].value), rows[i].weight);
		} else {
			err = take_point(&side->identities, number, rows[i].weight);
		}
		if (i + 1 == cnt || rows[i + 1].value != rows[i].value) {
			if (!err && has_cost)
				err = take_point(&side->dims[VALUE_DIM_COST], run / whole, rows[i].weight);
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

static double mean_of(const struct value_set *set)
{
	double total = 0, sum = 0;

	for (size_t i = 0; i < set->cnt; i++) {
		total += set->points[i].weight;
		sum += set->points[i].weight * set->points[i].value;
	}
	return total > 0 ? sum / total : NAN;
}

ORDER(compare_points, struct value_point, BY(a->value, b->value));

static size_t distinct_of(value_points *points)
{
	size_t cnt = points->cnt > 0;

	vec_sort(points, compare_points);
	for (size_t i = 1; i < points->cnt; i++)
		cnt += points->items[i].value != points->items[i - 1].value;
	return cnt;
}

static size_t distinct_values(struct side *side)
{
	return distinct_of(side->identities.cnt ? &side->identities : &side->dims[VALUE_DIM_VALUE]);
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

/* The samples of a variable in one normal recording, or on one thread in typical requests. */
struct alone {
	struct side side;
	uint32_t of; /* the recording, the thread */
};

typedef VEC(struct alone) alone_sides;

/* By so much the distance of slow from normal recordings must exceed that of normal ones from each other. */
#define BETWEEN_NORMAL 0.05

/*
 * The mean distance between normal recordings, each and the one before: ports, process ids, times of the start and
 * addresses differ in every run.  0 where there is one.
 */
static double between_normal(struct alone *alone, size_t cnt, enum value_dimension dim)
{
	double sum = 0;
	size_t pairs = 0;

	for (size_t i = 1; i < cnt; i++) {
		struct value_set a = set_of(&alone[i - 1].side, dim, false), b = set_of(&alone[i].side, dim, false);
		double distance = value_hellinger(&a, &b);

		if (isnan(distance))
			continue;
		sum += distance;
		pairs++;
	}
	return pairs ? sum / (double)pairs : 0;
}

/* The threads that are compared; value_anderson_darling() takes no more sets. */
#define THREADS_MAX 16

/*
 * Do typical requests of one thread differ from those of another? Then it is the thread that has the value, such as
 * a descriptor of its connection, and late requests are on another one.  0 where they do not.
 */
static double between_threads(struct alone *alone, size_t cnt, enum value_dimension dim)
{
	struct value_set sets[THREADS_MAX];

	for (size_t i = 0; i < cnt; i++)
		sets[i] = set_of(&alone[i].side, dim, true);
	return value_anderson_darling(sets, cnt, true) > value_anderson_darling_critical(cnt)
		       ? between_normal(alone, cnt, dim)
		       : 0;
}

static int take_alone(const struct value_input *input, alone_sides *alone, const struct value_variable_facts *facts,
		      const struct value_row *rows, size_t cnt)
{
	uint32_t of = input->by_unit ? rows->thread : rows->profile;
	size_t at = 0;

	while (at < alone->cnt && alone->items[at].of != of)
		at++;
	if (at == alone->cnt && input->by_unit && at == THREADS_MAX)
		return 0;
	if (at == alone->cnt && vec_push(alone, ((struct alone){.of = of})))
		return -ENOMEM;
	return take_unit(input, &alone->items[at].side, facts, rows, cnt);
}

/*
 * The least ratio counts; of equal ones that of the greater distance, then the first.  `only_cost`: the values
 * themselves tell nothing.
 */
static void decide(struct value_verdict *verdict, const struct value_input *input, struct side sides[2],
		   alone_sides *alone, bool only_cost, bool is_pointer)
{
	verdict->ratio = verdict->distance = NAN;
	for (int dim = 0; dim < VALUE_DIM_CNT; dim++) {
		struct value_set normal = set_of(&sides[0], dim, input->by_unit),
				 slow = set_of(&sides[1], dim, input->by_unit);
		double ratio = value_discount(&normal, &slow), distance = value_hellinger(&normal, &slow);

		/* A few requests differ from the others in much, above all in what grows with time. */
		if (input->by_unit && sides[1].units[dim] < SLOW_UNITS_MIN)
			ratio = NAN;
		/* Without adjacent normal samples nothing is known of them; of a pointer there is nothing else. */
		if ((input->by_unit || !is_pointer) && dim != VALUE_DIM_VALUE && !normal.cnt)
			ratio = NAN;
		if (!input->by_unit && dim == VALUE_DIM_COST && ratio < VALUE_DEFAULT_DISCOUNT && normal.cnt &&
		    (normal.cnt < COST_RUNS_MIN || slow.cnt < COST_RUNS_MIN))
			ratio = VALUE_DEFAULT_DISCOUNT;
		if (ratio < VALUE_DEFAULT_DISCOUNT && alone->cnt > 1 &&
		    distance <= (input->by_unit ? between_threads : between_normal)(alone->items, alone->cnt, dim) +
					BETWEEN_NORMAL)
			ratio = VALUE_DEFAULT_DISCOUNT;
		if (only_cost && dim != VALUE_DIM_COST && ratio < VALUE_DEFAULT_DISCOUNT)
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

struct most {
	struct {
		uint32_t place;
		double weight;
	} items[16];
	size_t cnt;
};

static void count_place(struct most *most, const struct value_row *row)
{
	size_t m = 0;

	while (m < most->cnt && most->items[m].place != row->place)
		m++;
	if (m == most->cnt && m < sizeof(most->items) / sizeof(most->items[0]))
		most->items[most->cnt++].place = row->place;
	if (m < most->cnt)
		most->items[m].weight += row->weight;
}

static void set_places(struct value_verdict *verdict, struct most *most)
{
	for (size_t p = 0; p < sizeof(verdict->places) / sizeof(verdict->places[0]); p++) {
		size_t best = 0;

		verdict->places[p] = VALUE_NONE;
		for (size_t m = 1; m < most->cnt; m++)
			if (most->items[m].weight > most->items[best].weight)
				best = m;
		if (best < most->cnt && most->items[best].weight > 0)
			verdict->places[p] = most->items[best].place;
		if (best < most->cnt)
			most->items[best].weight = 0;
	}
}

/* What a sample of a unit counts in the dimension, as take_unit() has it; NAN: nothing. */
static double measure(const struct value_input *input, enum value_dimension dim, const struct value_row *rows,
		      size_t at, size_t cnt)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	size_t first = at, last = at;

	switch (dim) {
	case VALUE_DIM_VALUE:
		return value_number(facts, rows[at].value);
	case VALUE_DIM_DELTA:
		return at ? value_number(facts, rows[at].value) - value_number(facts, rows[at - 1].value) : NAN;
	default:
		while (first && rows[first - 1].value == rows[at].value)
			first--;
		while (last + 1 < cnt && rows[last + 1].value == rows[at].value)
			last++;
		return ticks_of(&rows[first], last - first + 1) / whole_of(input, rows, cnt);
	}
}

/* Where the slow samples are beyond what any normal one is; where none is, all of them. */
static void find_places(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
			size_t cnt, const struct value_set *normal)
{
	struct most beyond = {.cnt = 0}, all = {.cnt = 0};
	double beyond_weight = 0, total = 0, counted = NAN;

	for (size_t i = 0, end; i < cnt; i = end) {
		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile && rows[end].unit == rows[i].unit;)
			end++;
		for (size_t k = i; k < end && input->is_slow[rows[i].profile]; k++) {
			/* A value that stays counts the same for all of its samples. */
			if (verdict->dimension != VALUE_DIM_COST || k == i || rows[k].value != rows[k - 1].value)
				counted = measure(input, verdict->dimension, rows + i, k - i, end - i);
			count_place(&all, &rows[k]);
			if (isnan(counted))
				continue;
			total += rows[k].weight;
			if (normal->cnt && counted >= normal->points[0].value &&
			    counted <= normal->points[normal->cnt - 1].value)
				continue;
			beyond_weight += rows[k].weight;
			count_place(&beyond, &rows[k]);
		}
	}
	verdict->beyond_share = total > 0 ? beyond_weight / total : NAN;
	set_places(verdict, beyond_weight > 0 ? &beyond : &all);
}

/* The share of slow values that are outside of what normal ones reach; both are sorted by now. */
static double values_beyond(const struct value_set *normal, const struct value_set *slow)
{
	double beyond = 0, total = 0;

	if (!normal->cnt)
		return NAN;
	for (size_t i = 0; i < slow->cnt; i++) {
		double value = slow->points[i].value;

		total += slow->points[i].weight;
		if (value < normal->points[0].value || value > normal->points[normal->cnt - 1].value)
			beyond += slow->points[i].weight;
	}
	return total > 0 ? beyond / total : NAN;
}

static bool is_flag(const struct value_variable_facts *facts, const struct value_row *rows, size_t cnt)
{
	if (facts->kind == VALUE_BOOL || facts->kind == VALUE_ENUM)
		return true;
	if (facts->kind != VALUE_SIGNED && facts->kind != VALUE_UNSIGNED)
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (fabs(value_number(facts, rows[i].value)) > 1)
			return false;
	return true;
}

static void side_free(struct side *side)
{
	for (int dim = 0; dim < VALUE_DIM_CNT; dim++)
		vec_free(&side->dims[dim]);
	vec_free(&side->identities);
}

static void set_normal(struct value_verdict *verdict)
{
	verdict->ratio = VALUE_DEFAULT_DISCOUNT;
	verdict->is_anomalous = false;
}

/* With so few of one side, even sets that are wholly apart do not differ in the test. */
#define UNDECIDED_MAX 2
/* … but then so large a part of the others is beyond them. */
#define SUSPECT_BEYOND 0.95

bool value_is_suspect(const struct value_variable_facts *facts, size_t normal_cnt, size_t slow_cnt, double beyond)
{
	return facts->kind != VALUE_POINTER && !(facts->tags & VALUE_TAG_GLOBAL) && normal_cnt > 0 &&
	       normal_cnt <= UNDECIDED_MAX && slow_cnt >= SLOW_UNITS_MIN && beyond >= SUSPECT_BEYOND;
}

int value_judge(struct value_verdict *verdict, const struct value_input *input, const struct value_row *rows,
		size_t cnt, double expected)
{
	const struct value_variable_facts *facts = &input->variables[rows->variable];
	struct side sides[2] = {{.units = {0}}};
	alone_sides alone = {0};
	struct value_set normal, slow;
	int err = 0, only_cost = 0;

	for (size_t i = 0, end; i < cnt && !err; i = end) {
		bool is_slow = input->is_slow[rows[i].profile];

		for (end = i + 1; end < cnt && rows[end].profile == rows[i].profile && rows[end].unit == rows[i].unit;)
			end++;
		err = take_unit(input, &sides[is_slow], facts, rows + i, end - i);
		verdict->varies |= rows[i].value != rows->value;
		for (size_t k = i + 1; k < end && !verdict->varies; k++)
			verdict->varies = rows[k].value != rows[k - 1].value;
		if (!err && !is_slow)
			err = take_alone(input, &alone, facts, rows + i, end - i);
	}
	if (!err && input->by_unit && facts->kind != VALUE_POINTER)
		only_cost = value_differs_by_place(input, rows, cnt);
	if (!err && !only_cost)
		only_cost = value_is_hash(input, rows, cnt);
	if (only_cost < 0)
		err = only_cost;
	if (!err) {
		decide(verdict, input, sides, &alone, only_cost, facts->kind == VALUE_POINTER);
		/* One value throughout is the same in both, also where requests are too short to tell for how long. */
		if (isnan(verdict->ratio) && !verdict->varies && sides[0].units[VALUE_DIM_VALUE] > 0 &&
		    sides[1].units[VALUE_DIM_VALUE] >= SLOW_UNITS_MIN)
			set_normal(verdict);
		if (!isnan(verdict->ratio) && ((!sides[0].units[VALUE_DIM_VALUE] &&
						(isnan(expected) || (expected > 0 && expected < ONLY_SLOW_EXPECTED))) ||
					       (!input->by_unit && is_clock(input, rows, cnt))))
			set_normal(verdict);
		normal = set_of(&sides[0], VALUE_DIM_VALUE, false);
		slow = set_of(&sides[1], VALUE_DIM_VALUE, false);
		verdict->normal_cnt = sides[0].dims[VALUE_DIM_VALUE].cnt;
		verdict->slow_cnt = sides[1].dims[VALUE_DIM_VALUE].cnt;
		verdict->normal_lo = quantile(&normal, 0.05);
		verdict->normal_hi = quantile(&normal, 0.95);
		verdict->slow_median = quantile(&slow, 0.5);
		verdict->normal_distinct = distinct_values(&sides[0]);
		verdict->slow_distinct = distinct_values(&sides[1]);
		verdict->values_beyond = values_beyond(&normal, &slow);
		verdict->is_flag = is_flag(facts, rows, cnt);
		normal = set_of(&sides[0], VALUE_DIM_COST, false);
		slow = set_of(&sides[1], VALUE_DIM_COST, false);
		verdict->normal_stay = mean_of(&normal);
		verdict->slow_stay = mean_of(&slow);
		normal = set_of(&sides[0], verdict->dimension, false);
		find_places(verdict, input, rows, cnt, &normal);
		verdict->is_suspect =
			!verdict->is_anomalous && verdict->dimension == VALUE_DIM_VALUE &&
			value_is_suspect(facts, verdict->normal_cnt, verdict->slow_cnt, verdict->beyond_share);
	}
	for (size_t a = 0; a < alone.cnt; a++)
		side_free(&alone.items[a].side);
	vec_free(&alone);
	for (int s = 0; s < 2; s++)
		side_free(&sides[s]);
	return err;
}
