// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/value_pattern.h"

#include "analysis/value_stats.h"

#include <math.h>

/* What the variables of a function say of its pattern. */
enum sign {
	SIGN_UNIFORM = 1,  /* a condition comes to the same for each element */
	SIGN_STAYS = 2,    /* what a loop or a condition tests stays the same for longer */
	SIGN_MOVES = 4,    /* what a loop tests has other values, or changes in other steps */
	SIGN_MORE = 8,     /* there are many more values: those of more elements */
	SIGN_DIFFERS = 16, /* what a loop or a condition tests is anomalous */
	SIGN_UNSURE = 32, /* as SIGN_MOVES, but too few normal values are known to tell whether the loop goes farther */
};

/* More of them than normal profiles have, whose samples show all that there are. */
#define MORE_TIMES     4
#define MORE_MIN       16
#define SAMPLES_OF_ONE 3
/* What stays has few runs, of which no test can tell much: its samples do, where it changed all the time before. */
#define STUCK_TIMES   10
#define STUCK_SAMPLES 50

/* A loop whose variable stays in the range that normal profiles show, of so many samples, makes no more steps. */
#define RANGE_SAMPLES 16
#define RANGE_BEYOND  0.05
/* A flag has that share of values that normal profiles do not have. */
#define GIVEN_BEYOND 0.5
/* … and what all elements have. */
#define UNIFORM_BEYOND 0.9

static bool may_go_farther(const struct value_verdict *verdict)
{
	return isnan(verdict->values_beyond) || verdict->normal_cnt < RANGE_SAMPLES ||
	       verdict->values_beyond >= RANGE_BEYOND;
}

/*
 * Of n samples of one distribution the next one is beyond the range of the others with a probability of 2/(n + 1).  An
 * anomaly without any normal value (NAN) is one because normal profiles lack it: there the loop made no steps.
 */
static bool goes_farther(const struct value_verdict *verdict)
{
	return may_go_farther(verdict) &&
	       !(verdict->normal_cnt < RANGE_SAMPLES &&
		 verdict->values_beyond < 2 / ((double)verdict->normal_cnt + 1) && !verdict->is_suspect);
}

/* Have normal samples shown all values that there are? */
static bool shows_all(const struct value_verdict *verdict)
{
	return verdict->normal_cnt >= SAMPLES_OF_ONE * verdict->normal_distinct;
}

static bool has_more(const struct value_verdict *verdict)
{
	return verdict->slow_distinct >= MORE_MIN && verdict->normal_distinct > 0 &&
	       verdict->slow_distinct >= MORE_TIMES * verdict->normal_distinct && shows_all(verdict);
}

double value_step(const struct value_variable_facts *facts, const struct value_verdict *verdict)
{
	bool goes = facts->kind == VALUE_POINTER || facts->tags & (VALUE_TAG_LOOP | VALUE_TAG_STEP);

	return goes && verdict->slow_distinct >= MORE_MIN ? verdict->slow_stay : INFINITY;
}

/* It is the same while the function goes on from one element to the next. */
static bool is_stuck(const struct value_verdict *verdict, double step)
{
	return verdict->slow_cnt >= STUCK_SAMPLES && verdict->normal_distinct > 1 &&
	       verdict->slow_stay >= STUCK_TIMES * verdict->normal_stay && verdict->slow_stay >= STUCK_TIMES * step;
}

/* A loop goes on, and what its exit tests does not go on with it (vProf's first rule as it is written). */
static bool stands_still(const struct value_variable_facts *facts, const struct value_verdict *verdict)
{
	return facts->tags & VALUE_TAG_LOOP && verdict->slow_cnt >= STUCK_SAMPLES && verdict->normal_distinct > 1 &&
	       verdict->ratios[VALUE_DIM_COST] < VALUE_DEFAULT_DISCOUNT &&
	       verdict->slow_stay >= STUCK_TIMES * verdict->normal_stay;
}

/*
 * `p->type` is the same for all that p goes through, or a local that a loop sets anew and a condition tests for all
 * that the loop goes through, which no normal profile shows: they lack the value.
 */
static bool is_uniform(const struct value_input *input, const struct value_verdict *verdicts, uint32_t variable,
		       double step)
{
	const struct value_verdict *verdict = &verdicts[variable];
	uint32_t number = input->bases ? input->bases[variable] : VALUE_NONE;
	uint8_t tags = input->variables[variable].tags;

	if (verdict->slow_cnt < STUCK_SAMPLES ||
	    (verdict->normal_cnt &&
	     !(verdict->normal_cnt >= RANGE_SAMPLES && shows_all(verdict) && verdict->values_beyond >= UNIFORM_BEYOND)))
		return false;
	if (number != VALUE_NONE)
		return verdicts[number].slow_distinct >= MORE_MIN &&
		       verdict->slow_stay >= STUCK_TIMES * verdicts[number].slow_stay;
	return verdict->normal_cnt && tags & VALUE_TAG_COND && tags & VALUE_TAG_STEP &&
	       verdict->slow_stay >= STUCK_TIMES * step;
}

bool value_is_given(const struct value_variable_facts *facts, const struct value_verdict *verdict)
{
	return facts->tags & VALUE_TAG_COND && !(facts->tags & VALUE_TAG_GLOBAL) && verdict->is_flag &&
	       verdict->is_anomalous && verdict->values_beyond >= GIVEN_BEYOND;
}

bool value_is_of_many(const struct value_verdict *verdict)
{
	return verdict->slow_distinct >= MORE_MIN && verdict->slow_stay <= 2;
}

/* Addresses that stay for shorter are those of more elements. */
static bool visits_more(const struct value_variable_facts *facts, const struct value_verdict *verdict)
{
	return facts->kind == VALUE_POINTER && verdict->slow_stay < verdict->normal_stay && value_is_of_many(verdict) &&
	       verdict->slow_distinct >= MORE_TIMES * verdict->normal_distinct;
}

/* What a loop changes, and no exit tests, goes farther with more elements. */
static bool makes_more(const struct value_variable_facts *facts, const struct value_verdict *verdict, bool differs)
{
	if (!(facts->tags & VALUE_TAG_STEP))
		return false;
	return facts->kind == VALUE_POINTER ? visits_more(facts, verdict) : differs && may_go_farther(verdict);
}

static bool is_least(double ratio, double least)
{
	return ratio < VALUE_DEFAULT_DISCOUNT && ratio <= least;
}

uint8_t value_signs(const struct value_input *input, const struct value_verdict *verdicts, uint32_t variable,
		    double least, double step)
{
	const struct value_verdict *verdict = &verdicts[variable];
	uint8_t tags = input->variables[variable].tags;
	bool differs = verdict->is_suspect || is_least(verdict->ratios[VALUE_DIM_VALUE], least) ||
		       is_least(verdict->ratios[VALUE_DIM_DELTA], least);

	if (tags & VALUE_TAG_GLOBAL || !(verdict->is_suspect || is_least(verdict->ratio, least)))
		return 0;
	if (!(tags & (VALUE_TAG_LOOP | VALUE_TAG_COND)))
		return has_more(verdict) || makes_more(&input->variables[variable], verdict, differs) ? SIGN_MORE : 0;
	if (is_uniform(input, verdicts, variable, step))
		return SIGN_UNIFORM;
	if (verdict->slow_stay > verdict->normal_stay &&
	    (is_least(verdict->ratios[VALUE_DIM_COST], least) || is_stuck(verdict, step) ||
	     stands_still(&input->variables[variable], verdict)))
		return SIGN_STAYS;
	if (visits_more(&input->variables[variable], verdict))
		return SIGN_MORE;
	if (tags & VALUE_TAG_LOOP && differs)
		return goes_farther(verdict) ? SIGN_MOVES : may_go_farther(verdict) ? SIGN_UNSURE : SIGN_DIFFERS;
	/* Values that are compared, between those of normal profiles, are finer steps; an argument is another one. */
	return has_more(verdict) && may_go_farther(verdict) ? SIGN_MORE : SIGN_DIFFERS;
}

/*
 * The rules in their order.  Where a loop of the function is known to make more steps, or goes through more elements,
 * all that does not change in it stays for longer with each call: that is no sign of its own.  A condition that sees
 * more elements is not wrong.
 */
enum value_pattern value_pattern_of(uint8_t signs)
{
	if (signs & SIGN_UNIFORM || (signs & SIGN_STAYS && !(signs & (SIGN_MOVES | SIGN_MORE))))
		return VALUE_PATTERN_MISSING_CONSTRAINT;
	if (signs & (SIGN_MOVES | SIGN_MORE | SIGN_UNSURE))
		return VALUE_PATTERN_SCALABILITY;
	return signs & SIGN_DIFFERS ? VALUE_PATTERN_WRONG_CONSTRAINT : VALUE_PATTERN_NONE;
}
