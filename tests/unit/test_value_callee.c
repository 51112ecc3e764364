// SPDX-License-Identifier: GPL-2.0-or-later
/* Patterns by how far a loop goes, and by what a function calls. */
#include "analysis/value_callee.h"
#include "analysis/value_rank.h"
#include "unit.h"

#include <string.h>

enum { OUTER, INNER, OTHER, FUNCTIONS };
enum { COUNTER, FLAG, ELEMENT, BODY, VARIABLES };

#define TICKS 120

static const uint32_t functions[] = {OUTER, INNER, OTHER};

struct subject {
	struct value_row rows[8 * TICKS];
	size_t cnt;
	struct value_variable_facts facts[VARIABLES];
	struct value_ranking ranking;
	struct value_verdict verdicts[VARIABLES];
	struct arena *arena;
};

static void begin(struct subject *subject)
{
	*subject = (struct subject){.facts = {[COUNTER] = {VALUE_SIGNED, VALUE_TAG_LOOP, 8},
					      [FLAG] = {VALUE_SIGNED, VALUE_TAG_COND, 4},
					      [ELEMENT] = {VALUE_SIGNED, VALUE_TAG_ARGS, 4},
					      [BODY] = {VALUE_POINTER, VALUE_TAG_ARGS, 8}}};
}

static struct value_input input_of(struct subject *subject)
{
	static const bool is_slow[] = {false, true};

	return (struct value_input){.variables = subject->facts,
				    .variable_cnt = VARIABLES,
				    .functions = functions,
				    .function_cnt = FUNCTIONS,
				    .rows = subject->rows,
				    .row_cnt = subject->cnt,
				    .is_slow = is_slow,
				    .profile_cnt = 2};
}

static void add(struct subject *subject, uint32_t tick, uint8_t depth, uint32_t place, uint32_t variable,
		uint64_t value)
{
	subject->rows[subject->cnt++] = (struct value_row){.ts = tick,
							   .tick = tick,
							   .value = value,
							   .weight = 1,
							   .variable = variable,
							   .place = place,
							   .profile = tick >= TICKS,
							   .depth = depth};
}

static enum value_pattern pattern_of(struct subject *subject, uint32_t function)
{
	struct value_input input = input_of(subject);
	enum value_pattern pattern = VALUE_PATTERN_CNT;

	subject->arena = arena__new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(subject->arena);
	CU_ASSERT_EQUAL_FATAL(value_rank(&subject->ranking, &input, subject->arena), 0);
	for (size_t f = 0; f < subject->ranking.function_cnt; f++)
		if (subject->ranking.functions[f].function == function)
			pattern = subject->ranking.functions[f].pattern;
	memcpy(subject->verdicts, subject->ranking.verdicts, sizeof(subject->verdicts));
	arena__free(subject->arena);
	return pattern;
}

/* A loop to 100 that is sampled at other elements than before, or goes on to 1000. */
static void a_loop_that_goes_no_farther_is_no_scalability(void)
{
	static struct subject subject;

	for (int farther = 0; farther < 2; farther++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			uint32_t all = tick * 7919 % 101;

			add(&subject, tick, 0, OUTER, COUNTER,
			    tick < TICKS ? (tick % 2 ? 100 : 0)
			    : farther    ? 10 * all
					 : all);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER),
				farther ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_WRONG_CONSTRAINT);
	}
}

/* A hundred values where there were four: compared, between those or beyond them; handed on, between those. */
static void finer_steps_are_not_more_elements(void)
{
	static struct subject subject;

	for (int test = 0; test < 3; test++) {
		begin(&subject);
		subject.facts[COUNTER].tags = test == 2 ? VALUE_TAG_ARGS : VALUE_TAG_COND;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++)
			add(&subject, tick, 0, OUTER, COUNTER,
			    tick < TICKS ? tick % 4 * 400 : tick * 7919 % 1200 * (test == 1 ? 2 : 1));
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER),
				test ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_WRONG_CONSTRAINT);
	}
}

/* A depth that no exit tests, of 0 to 11 and then of 0 to 37, or the other way round: a loop changes it, or it is
 * handed on. */
static void what_a_loop_counts_untested_goes_farther_with_more_elements(void)
{
	static struct subject subject;

	for (int step = 0; step < 2; step++) {
		for (int farther = 0; farther < 2; farther++) {
			begin(&subject);
			subject.facts[COUNTER].tags = step ? VALUE_TAG_STEP : VALUE_TAG_ARGS;
			for (uint32_t tick = 0; tick < 2 * TICKS; tick++)
				add(&subject, tick, 0, OUTER, COUNTER,
				    tick < TICKS ? tick * 7919 % (farther ? 12 : 38)
						 : tick * 7919 % (farther ? 38 : 12));
			CU_ASSERT_EQUAL(pattern_of(&subject, OUTER) == VALUE_PATTERN_SCALABILITY, step && farther);
		}
	}
}

/* What the exit of a loop tests has the values that it ever had, and stays for 20 samples each: or for as long as ever.
 */
static void a_loop_that_goes_on_without_progress_lacks_a_constraint(void)
{
	static struct subject subject;

	for (int still = 0; still < 2; still++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			uint32_t all = tick < TICKS ? tick * 7 % 12 : still ? tick / 20 % 12 : tick * 7 % 12 / 2;

			add(&subject, tick, 0, OUTER, COUNTER, all);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER),
				still ? VALUE_PATTERN_MISSING_CONSTRAINT : VALUE_PATTERN_WRONG_CONSTRAINT);
	}
}

/*
 * A condition's variable sticks while the loop's own one has a hundred and twenty slow samples and ten normal ones:
 * within the range that those show, or mostly beyond it.
 */
static void a_loop_not_known_to_go_farther_hides_no_missing_constraint(void)
{
	static struct subject subject;

	for (int farther = 0; farther < 2; farther++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			add(&subject, tick, 0, OUTER, FLAG, slow ? tick / 20 % 5 : tick % 5);
			if (slow)
				add(&subject, tick, 0, OUTER, COUNTER, (farther ? 900 : 41) + tick * 7 % 8);
			else if (tick % 12 == 0)
				add(&subject, tick, 0, OUTER, COUNTER, tick / 12 * 10);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER),
				farther ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_MISSING_CONSTRAINT);
		CU_ASSERT_EQUAL(subject.verdicts[COUNTER].normal_cnt, 10);
	}
}

enum given { NOTHING, FEW, NUMBERS, ALL, GIVEN_CNT };

/*
 * A loop whose counter goes farther and that hands each element to a function, which tests a flag: it is as ever, it is
 * 1 for a third of the elements, it is a number, it is 1 for most.
 */
static void what_normal_runs_never_hand_on_is_a_missing_constraint(void)
{
	static const enum value_pattern wanted[] = {VALUE_PATTERN_SCALABILITY, VALUE_PATTERN_SCALABILITY,
						    VALUE_PATTERN_SCALABILITY, VALUE_PATTERN_MISSING_CONSTRAINT};
	static struct subject subject;

	for (int given = 0; given < GIVEN_CNT; given++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;
			uint32_t flag = given == FEW ? tick % 3 == 0 : given == NUMBERS ? 2 : tick % 16 > 0;

			add(&subject, tick, 0, INNER, FLAG, slow && given ? flag : 0);
			add(&subject, tick, 1, OUTER, COUNTER, slow ? 1000 + tick : tick % 10);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER), wanted[given]);
		CU_ASSERT_EQUAL(pattern_of(&subject, INNER),
				given ? VALUE_PATTERN_WRONG_CONSTRAINT : VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	}
}

/* The loop has no variable: that it is one shows in the callee, which has another element each time. */
static void elements_of_the_callee_show_the_loop(void)
{
	static struct subject subject;

	for (int many = 0; many < 2; many++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			add(&subject, tick, 0, INNER, FLAG, tick >= TICKS);
			add(&subject, tick, 0, INNER, ELEMENT, many ? tick % 40 : 5);
			add(&subject, tick, 1, OUTER, BODY, 4096);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER),
				many ? VALUE_PATTERN_MISSING_CONSTRAINT : VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	}
}

/* `inner` is called in slow runs only, or in both; of a function that no normal run has nothing is known. */
static void a_call_that_normal_runs_do_not_make_is_a_wrong_constraint(void)
{
	static struct subject subject;

	for (int test = 0; test < 3; test++) {
		begin(&subject);
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			if (tick < TICKS) {
				add(&subject, tick, 0, test == 1 ? INNER : OTHER, VALUE_NONE, 0);
				add(&subject, tick, 1, test == 2 ? OTHER : OUTER, BODY, 4096);
				continue;
			}
			add(&subject, tick, 0, INNER, VALUE_NONE, 0);
			add(&subject, tick, 1, OUTER, BODY, 4096);
		}
		CU_ASSERT_EQUAL(pattern_of(&subject, OUTER) == VALUE_PATTERN_WRONG_CONSTRAINT, test == 0);
	}
}

static void callees_are_counted_once_a_tick(void)
{
	static struct subject subject;
	struct value_callee callees[FUNCTIONS];
	struct value_input input;

	begin(&subject);
	for (uint32_t tick = TICKS; tick < TICKS + 10; tick++) {
		/* `inner` has two values, and calls itself; the frame between is missing in one of five. */
		add(&subject, tick, 0, INNER, FLAG, 0);
		add(&subject, tick, 0, INNER, ELEMENT, 0);
		add(&subject, tick, 1, INNER, FLAG, 0);
		add(&subject, tick, tick % 5 ? 2 : 3, OUTER, VALUE_NONE, 0);
	}
	add(&subject, 0, 0, OTHER, VALUE_NONE, 0);
	input = input_of(&subject);
	CU_ASSERT_EQUAL_FATAL(value_callees_find(callees, &input), 0);
	CU_ASSERT_EQUAL(callees[OUTER].function, INNER);
	CU_ASSERT_DOUBLE_EQUAL(callees[OUTER].share, 0.8, 1e-9);
	CU_ASSERT_EQUAL(callees[OUTER].slow, 10);
	CU_ASSERT_EQUAL(callees[INNER].slow, 10);
	CU_ASSERT_EQUAL(callees[INNER].function, VALUE_NONE);
	CU_ASSERT_EQUAL(callees[OTHER].normal, 1);
	CU_ASSERT_EQUAL(callees[OTHER].slow, 0);
}

int suite_value_callee(void)
{
	static const struct unit_test tests[] = {
		{"a loop that goes no farther is no scalability", a_loop_that_goes_no_farther_is_no_scalability},
		{"what a loop counts untested goes farther with more elements",
		 what_a_loop_counts_untested_goes_farther_with_more_elements},
		{"finer steps are not more elements", finer_steps_are_not_more_elements},
		{"a loop that goes on without progress lacks a constraint",
		 a_loop_that_goes_on_without_progress_lacks_a_constraint},
		{"a loop not known to go farther hides no missing constraint",
		 a_loop_not_known_to_go_farther_hides_no_missing_constraint},
		{"what normal runs never hand on is a missing constraint",
		 what_normal_runs_never_hand_on_is_a_missing_constraint},
		{"elements of the callee show the loop", elements_of_the_callee_show_the_loop},
		{"a call that normal runs do not make is a wrong constraint",
		 a_call_that_normal_runs_do_not_make_is_a_wrong_constraint},
		{"callees are counted once a tick", callees_are_counted_once_a_tick},
	};

	return unit_suite("value_callee", tests, sizeof(tests) / sizeof(tests[0]));
}
