// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions by their costs and the variables that differ in them. */
#include "analysis/value_judge.h"
#include "analysis/value_rank.h"
#include "analysis/value_stats.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { SCAN, WORK, LOG, FUNCTIONS };
enum { ITEMS, FLAG, NODE, CALLS, VARIABLES };

#define TICKS 120

struct ranked {
	struct value_row rows[8 * TICKS];
	size_t cnt;
	const uint32_t *bases;
	bool is_unknown; /* the module of `work` */
	struct value_ranking ranking;
	struct arena *arena;
};

/* With more profiles than two the third one and all later ones are normal, too. */
static const bool profiles[] = {false, true, false, false};

/* Of `variable_modules` NULL all is of one. */
static void rank_modules(struct ranked *ranked, const struct value_variable_facts *variables, size_t variable_cnt,
			 size_t profile_cnt, const uint32_t *variable_modules)
{
	static const uint32_t functions[] = {SCAN, WORK, LOG}, place_modules[] = {0, 1, 1},
			      unknown[] = {0, VALUE_NONE, 1};
	struct value_input input = {.variables = variables,
				    .variable_cnt = variable_cnt,
				    .bases = ranked->bases,
				    .functions = functions,
				    .variable_modules = variable_modules,
				    .place_modules = !variable_modules    ? NULL
						     : ranked->is_unknown ? unknown
									  : place_modules,
				    .function_cnt = FUNCTIONS,
				    .rows = ranked->rows,
				    .row_cnt = ranked->cnt,
				    .is_slow = profiles,
				    .profile_cnt = profile_cnt};

	ranked->arena = arena__new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(ranked->arena);
	CU_ASSERT_EQUAL_FATAL(value_rank(&ranked->ranking, &input, ranked->arena), 0);
}

static void rank_profiles(struct ranked *ranked, const struct value_variable_facts *variables, size_t variable_cnt,
			  size_t profile_cnt)
{
	rank_modules(ranked, variables, variable_cnt, profile_cnt, NULL);
}

static void rank(struct ranked *ranked, const struct value_variable_facts *variables, size_t variable_cnt)
{
	rank_profiles(ranked, variables, variable_cnt, 2);
}

static void add(struct ranked *ranked, uint32_t tick, uint16_t profile, uint8_t depth, uint32_t place,
		uint32_t variable, uint64_t value)
{
	ranked->rows[ranked->cnt++] = (struct value_row){.ts = 1000 + tick,
							 .tick = tick,
							 .value = value,
							 .weight = 1,
							 .variable = variable,
							 .place = place,
							 .unit = tick / 4,
							 .profile = profile,
							 .depth = depth};
}

/* `scan` calls `work`, which costs ten times more and is as ever; slow scans have more items. */
static void a_caller_with_other_values_ranks_before_what_costs_more(void)
{
	static const struct value_variable_facts variables[] = {[ITEMS] = {VALUE_SIGNED, VALUE_TAG_LOOP, 4},
								[FLAG] = {VALUE_BOOL, VALUE_TAG_COND, 1},
								[NODE] = {VALUE_POINTER, VALUE_TAG_ARGS, 8},
								[CALLS] = {VALUE_UNSIGNED, VALUE_TAG_GLOBAL, 8}};
	static struct ranked ranked;
	const struct value_function *first;
	uint32_t tick = 0;

	ranked.cnt = 0;
	for (uint16_t profile = 0; profile < 2; profile++) {
		for (uint32_t i = 0; i < TICKS; i++, tick++) {
			bool in_work = i % 10;

			add(&ranked, tick, profile, 0, in_work ? WORK : SCAN, in_work ? FLAG : ITEMS,
			    in_work ? i & 1 : 8 + i % 4 + 90 * profile);
			if (in_work)
				add(&ranked, tick, profile, 1, SCAN, ITEMS, 8 + i % 4 + 90 * profile);
		}
	}
	rank(&ranked, variables, VARIABLES);
	first = &ranked.ranking.functions[0];
	CU_ASSERT_EQUAL_FATAL(ranked.ranking.function_cnt, 2);
	CU_ASSERT_EQUAL(first->function, SCAN);
	CU_ASSERT_EQUAL(first->variable, ITEMS);
	CU_ASSERT_EQUAL(first->ratio, 0);
	CU_ASSERT_EQUAL(first->pc_cost, TICKS / 10);
	CU_ASSERT_EQUAL(first->variable_cost, TICKS);
	CU_ASSERT_EQUAL(first->calibrated, TICKS);
	CU_ASSERT_EQUAL(first->pattern, VALUE_PATTERN_SCALABILITY);
	CU_ASSERT_EQUAL(ranked.ranking.verdicts[ITEMS].dimension, VALUE_DIM_VALUE);
	CU_ASSERT_EQUAL(ranked.ranking.verdicts[ITEMS].normal_lo, 8);
	CU_ASSERT_EQUAL(ranked.ranking.verdicts[ITEMS].normal_hi, 11);
	CU_ASSERT(ranked.ranking.verdicts[ITEMS].slow_median >= 98);
	CU_ASSERT_EQUAL(ranked.ranking.verdicts[ITEMS].beyond_share, 1);
	CU_ASSERT_EQUAL(ranked.ranking.functions[1].function, WORK);
	CU_ASSERT_EQUAL(ranked.ranking.functions[1].ratio, VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT(isnan(ranked.ranking.verdicts[NODE].ratio));
	arena__free(ranked.arena);
}

/* Values of one variable in `scan`: normal and slow by the tick. */
static enum value_pattern pattern_of(uint8_t kind, uint8_t tags, uint64_t (*value)(uint32_t tick, bool slow))
{
	struct value_variable_facts variable = {kind, tags, 8};
	static struct ranked ranked;
	enum value_pattern pattern;

	ranked.cnt = 0;
	for (uint32_t tick = 0; tick < 2 * TICKS; tick++)
		add(&ranked, tick, tick >= TICKS, 0, SCAN, 0, value(tick, tick >= TICKS));
	for (size_t i = 0; i < ranked.cnt; i++)
		ranked.rows[i].unit = 0;
	rank(&ranked, &variable, 1);
	pattern = ranked.ranking.functions[0].pattern;
	arena__free(ranked.arena);
	return pattern;
}

static uint64_t more(uint32_t tick, bool slow)
{
	return tick * 7919 % 100 + (slow ? 1000 : 0);
}

/* The same values, of which each stays for ten samples. */
static uint64_t stays(uint32_t tick, bool slow)
{
	return (slow ? tick / 10 * 10 : tick) * 7 % 12;
}

static uint64_t same(uint32_t tick, bool slow)
{
	(void)slow;
	return tick * 7919 % 100;
}

/* The other way round: each value stays for ten samples when it is normal. */
static uint64_t stays_less(uint32_t tick, bool slow)
{
	return stays(tick, !slow);
}

/* Of four elements, or of a hundred. */
static uint64_t of_more_elements(uint32_t tick, bool slow)
{
	return slow ? 1000 + tick * 7919 % 100 : tick * 7919 % 4;
}

static uint64_t of_few_elements(uint32_t tick, bool slow)
{
	return slow ? 1000 + tick * 7919 % 8 : tick * 7919 % 4;
}

static uint64_t never_changes(uint32_t tick, bool slow)
{
	(void)tick, (void)slow;
	return 7;
}

static void patterns_follow_the_rules_in_their_order(void)
{
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_LOOP, more), VALUE_PATTERN_SCALABILITY);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_LOOP | VALUE_TAG_COND, more), VALUE_PATTERN_SCALABILITY);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_COND, more), VALUE_PATTERN_WRONG_CONSTRAINT);
	/* Handed on, and not tested. */
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_ARGS, more), VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, 0, more), VALUE_PATTERN_NONE);
	CU_ASSERT_EQUAL(pattern_of(VALUE_POINTER, VALUE_TAG_COND, stays), VALUE_PATTERN_MISSING_CONSTRAINT);
	CU_ASSERT_EQUAL(pattern_of(VALUE_POINTER, VALUE_TAG_LOOP, stays), VALUE_PATTERN_MISSING_CONSTRAINT);
	/* Normal, and of no basic type. */
	CU_ASSERT_EQUAL(pattern_of(VALUE_POINTER, VALUE_TAG_COND, same), VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	CU_ASSERT_EQUAL(pattern_of(VALUE_POINTER, VALUE_TAG_ARGS, same), VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_COND, same), VALUE_PATTERN_NONE);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_COND, never_changes), VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	/* Of a basic type, whatever becomes of it. */
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_ARGS, same), VALUE_PATTERN_NONE);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_GLOBAL, same), VALUE_PATTERN_NONE);
}

static void what_stays_for_less_is_no_missing_constraint(void)
{
	CU_ASSERT_EQUAL(pattern_of(VALUE_POINTER, VALUE_TAG_COND, stays_less), VALUE_PATTERN_WRONG_CONSTRAINT);
}

static void a_condition_that_sees_more_elements_is_not_wrong(void)
{
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_COND, of_more_elements), VALUE_PATTERN_SCALABILITY);
	CU_ASSERT_EQUAL(pattern_of(VALUE_SIGNED, VALUE_TAG_COND, of_few_elements), VALUE_PATTERN_WRONG_CONSTRAINT);
}

/* A loop's counter, and what does not change in the loop: of slow calls, which last for 30 samples, it stays longer. */
static void what_stays_because_a_loop_goes_on_is_no_missing_constraint(void)
{
	static const struct value_variable_facts variables[] = {{VALUE_SIGNED, VALUE_TAG_LOOP, 8},
								{VALUE_SIGNED, VALUE_TAG_COND, 8}};
	static struct ranked ranked;

	for (int counted = 0; counted < 2; counted++) {
		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 4 * TICKS; tick++) {
			bool slow = tick >= 2 * TICKS;
			uint32_t call = slow ? tick / 30 : tick;

			add(&ranked, tick, slow, 0, SCAN, 0,
			    counted && slow ? 1000 * (1 + tick % 30) : tick * 7919 % 9);
			ranked.rows[ranked.cnt - 1].unit = 0;
			add(&ranked, tick, slow, 0, SCAN, 1, call % 5);
			ranked.rows[ranked.cnt - 1].unit = 0;
		}
		rank(&ranked, variables, 2);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[1].dimension, VALUE_DIM_COST);
		CU_ASSERT(ranked.ranking.verdicts[1].is_anomalous);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern,
				counted ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_MISSING_CONSTRAINT);
		arena__free(ranked.arena);
	}
}

/* A loop counts down over clients, each of which has a type, which normal profiles never show. */
static void what_each_element_has_the_same_of_is_a_missing_constraint(void)
{
	enum { CLIENT, TYPE, LEFT };
	static const struct value_variable_facts variables[] = {[CLIENT] = {VALUE_POINTER, VALUE_TAG_ARGS, 8},
								[TYPE] = {VALUE_SIGNED, VALUE_TAG_COND, 4},
								[LEFT] = {VALUE_SIGNED, VALUE_TAG_LOOP, 4}};
	static const uint32_t bases[] = {VALUE_NONE, CLIENT, VALUE_NONE};

	for (int test = 0; test < 3; test++) {
		static struct ranked ranked;

		ranked.cnt = 0;
		ranked.bases = test ? bases : NULL;
		for (uint32_t tick = 0; tick < TICKS; tick++) {
			add(&ranked, tick, 1, 0, SCAN, CLIENT, 4096 + tick);
			add(&ranked, tick, 1, 0, SCAN, TYPE, test == 2 ? tick % 2 : 1);
			add(&ranked, tick, 1, 0, SCAN, LEFT, 1000 - tick);
			add(&ranked, TICKS + tick, 0, 0, LOG, VALUE_NONE, 0);
		}
		for (size_t i = 0; i < ranked.cnt; i++)
			ranked.rows[i].unit = 0;
		rank(&ranked, variables, 3);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, SCAN);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern,
				test == 1 ? VALUE_PATTERN_MISSING_CONSTRAINT : VALUE_PATTERN_SCALABILITY);
		arena__free(ranked.arena);
	}
}

/*
 * A loop goes through more elements, each of which has a state: that of all is another one than any normal element has.
 * What is not set anew for each element is one that the request has.
 */
static void a_state_that_no_normal_element_has_is_a_missing_constraint(void)
{
	enum { AT, STATE };

	for (int test = 0; test < 3; test++) {
		const struct value_variable_facts variables[] = {
			[AT] = {VALUE_SIGNED, VALUE_TAG_LOOP, 4},
			[STATE] = {VALUE_SIGNED, test ? VALUE_TAG_COND | VALUE_TAG_STEP : VALUE_TAG_COND, 4}};
		static struct ranked ranked;

		ranked.cnt = 0;
		ranked.bases = NULL;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			add(&ranked, tick, slow, 0, SCAN, AT, slow ? tick : tick % 9);
			add(&ranked, tick, slow, 0, SCAN, STATE, slow ? (test == 2) : 1 + tick % 3);
		}
		for (size_t i = 0; i < ranked.cnt; i++)
			ranked.rows[i].unit = 0;
		rank(&ranked, variables, 2);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern,
				test == 1 ? VALUE_PATTERN_MISSING_CONSTRAINT : VALUE_PATTERN_SCALABILITY);
		arena__free(ranked.arena);
	}
}

/*
 * A condition's variable changes all the time, and then not for 60 samples; few runs are no test.  Where there are more
 * elements that is why.
 */
static void what_sticks_for_all_elements_is_a_missing_constraint(void)
{
	static const struct value_variable_facts variables[] = {{VALUE_SIGNED, VALUE_TAG_COND, 8},
								{VALUE_POINTER, VALUE_TAG_ARGS, 8},
								{VALUE_SIGNED, VALUE_TAG_COND, 8}};
	static const enum value_pattern wanted[] = {VALUE_PATTERN_WRONG_CONSTRAINT, VALUE_PATTERN_MISSING_CONSTRAINT,
						    VALUE_PATTERN_SCALABILITY};

	for (int elements = 0; elements < 3; elements++) {
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			add(&ranked, tick, slow, 0, SCAN, 0, slow ? 100 + tick / 60 : tick % 7);
			add(&ranked, tick, slow, 0, SCAN, 1, elements ? 4096 + tick % 100 : 4096);
			if (elements == 2)
				add(&ranked, tick, slow, 0, SCAN, 2, of_more_elements(tick, slow));
		}
		for (size_t i = 0; i < ranked.cnt; i++)
			ranked.rows[i].unit = 0;
		rank(&ranked, variables, 3);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[0].ratios[VALUE_DIM_COST], VALUE_DEFAULT_DISCOUNT);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern, wanted[elements]);
		arena__free(ranked.arena);
	}
}

/* What is handed on has a hundred values instead of four; a flag stays a little longer. */
static void the_most_anomalous_variable_decides(void)
{
	static const struct value_variable_facts variables[] = {{VALUE_SIGNED, VALUE_TAG_ARGS, 8},
								{VALUE_SIGNED, VALUE_TAG_COND, 8}};

	for (int both = 0; both < 2; both++) {
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			add(&ranked, tick, slow, 0, SCAN, 1, slow ? tick % 5 < 2 : tick / 2 % 2);
			if (both)
				add(&ranked, tick, slow, 0, SCAN, 0, of_more_elements(tick, slow));
		}
		for (size_t i = 0; i < ranked.cnt; i++)
			ranked.rows[i].unit = 0;
		rank(&ranked, variables, 2);
		CU_ASSERT(ranked.ranking.verdicts[1].is_anomalous);
		CU_ASSERT(!both || ranked.ranking.verdicts[0].ratio < ranked.ranking.verdicts[1].ratio);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern,
				both ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_MISSING_CONSTRAINT);
		arena__free(ranked.arena);
	}
}

/* The same values in other steps: 0, 1, 2, …, 99 and, in every other round when it is slow, 0, 2, …, 98, 1, 3, …, 99.
 */
static uint64_t steps(uint32_t tick, bool slow)
{
	uint32_t at = tick % 100;

	return slow && tick / 100 % 2 ? (at < 50 ? 2 * at : 2 * (at - 50) + 1) : at;
}

/* Which stay for ten samples in every other round when it is slow. */
static uint64_t waits(uint32_t tick, bool slow)
{
	return slow && tick / 100 % 2 ? tick / 10 * 10 : tick;
}

/* Odd rounds are in `work`. */
static struct value_verdict verdict_of(uint8_t kind, uint64_t (*value)(uint32_t tick, bool slow))
{
	struct value_variable_facts variable = {kind, VALUE_TAG_COND, 8};
	struct value_verdict verdict;
	static struct ranked ranked;

	ranked.cnt = 0;
	for (uint32_t tick = 0; tick < 800; tick++) {
		add(&ranked, tick, tick >= 400, 0, tick / 100 % 2 ? WORK : SCAN, 0, value(tick, tick >= 400));
		ranked.rows[ranked.cnt - 1].unit = 0;
	}
	rank(&ranked, &variable, 1);
	verdict = ranked.ranking.verdicts[0];
	arena__free(ranked.arena);
	return verdict;
}

static void places_are_those_of_what_differs(void)
{
	struct value_verdict verdict = verdict_of(VALUE_SIGNED, steps);

	CU_ASSERT_EQUAL(verdict.dimension, VALUE_DIM_DELTA);
	CU_ASSERT(verdict.places[0] == WORK && verdict.places[1] == VALUE_NONE);
	CU_ASSERT(verdict.beyond_share > 0.4 && verdict.beyond_share < 0.51);
	verdict = verdict_of(VALUE_POINTER, waits);
	CU_ASSERT_EQUAL(verdict.dimension, VALUE_DIM_COST);
	CU_ASSERT(verdict.places[0] == WORK && verdict.places[1] == VALUE_NONE);
	CU_ASSERT_EQUAL(verdict.beyond_share, 0.5);
}

/* A value that has a sample at each tick stays for four samples; at one of two ticks, for two. */
static void turns_make_no_value_stay_less(void)
{
	static const struct value_variable_facts variable = {VALUE_POINTER, VALUE_TAG_COND, 8};

	for (uint8_t turn = 1; turn <= 2; turn++) {
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 800; tick++) {
			bool slow = tick >= 400;

			if (slow && tick % 2)
				continue;
			add(&ranked, tick, slow, 0, SCAN, 0, tick / 4);
			ranked.rows[ranked.cnt - 1].unit = 0;
			ranked.rows[ranked.cnt - 1].turn = slow ? turn : 1;
		}
		rank(&ranked, &variable, 1);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[0].ratio, turn == 2 ? VALUE_DEFAULT_DISCOUNT : 0);
		arena__free(ranked.arena);
	}
}

/* Without variables a function is discounted by how it ranks in normal profiles. */
static void ranks_discount_where_no_variable_does(void)
{
	static struct ranked ranked;
	uint32_t tick = 0;

	ranked.cnt = 0;
	/* Normal: work, log; slow: log, work. */
	for (uint32_t i = 0; i < 100; i++)
		add(&ranked, tick++, 0, 0, i < 70 ? WORK : LOG, VALUE_NONE, 0);
	for (uint32_t i = 0; i < 100; i++)
		add(&ranked, tick++, 1, 0, i < 30 ? WORK : LOG, VALUE_NONE, 0);
	rank(&ranked, NULL, 0);
	CU_ASSERT_EQUAL_FATAL(ranked.ranking.function_cnt, 2);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, LOG);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].ratio, 0);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].calibrated, 70);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern, VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
	CU_ASSERT_EQUAL(ranked.ranking.functions[1].pattern, VALUE_PATTERN_NONE);
	CU_ASSERT_EQUAL(ranked.ranking.functions[1].by, VALUE_BY_RANKS);
	CU_ASSERT_EQUAL(ranked.ranking.functions[1].ratio, 1);
	arena__free(ranked.arena);
}

static double ratio_every(const struct value_variable_facts *facts, size_t profile_cnt,
			  uint64_t (*value)(uint32_t tick, uint16_t profile), uint32_t every)
{
	static struct ranked ranked;
	double ratio;

	ranked.cnt = 0;
	for (uint32_t tick = 0; tick < profile_cnt * TICKS; tick += every) {
		uint16_t profile = (uint16_t)(tick / TICKS);

		add(&ranked, tick, profile, 0, SCAN, 0, value(tick, profile));
		ranked.rows[ranked.cnt - 1].unit = profile;
		if (every > 1)
			ranked.rows[ranked.cnt - 1].ts = 256ULL * tick;
	}
	rank_profiles(&ranked, facts, 1, profile_cnt);
	ratio = ranked.ranking.verdicts[0].ratio;
	arena__free(ranked.arena);
	return ratio;
}

static double ratio_of(const struct value_variable_facts *facts, size_t profile_cnt,
		       uint64_t (*value)(uint32_t tick, uint16_t profile))
{
	return ratio_every(facts, profile_cnt, value, 1);
}

static uint64_t clock_ms(uint32_t tick, uint16_t profile)
{
	return 1000000 + 100000 * profile + tick * 10 + tick % 3;
}

/* Fewer samples than tell a rate, but all of them say the time of day. */
static uint64_t time_of_day(uint32_t tick, uint16_t profile)
{
	(void)profile;
	return 1700000000000000000ULL + (uint64_t)tick * 256;
}

static uint64_t faster_when_slow(uint32_t tick, uint16_t profile)
{
	return 1000000 + 100000 * profile + tick * (profile ? 100 : 10);
}

static uint64_t port(uint32_t tick, uint16_t profile)
{
	return 40000 + 17 * profile + tick % 3;
}

static uint64_t port_of_many(uint32_t tick, uint16_t profile)
{
	return profile == 1 ? 100 : tick % 3;
}

/* A time differs between any two recordings, also between normal ones; how fast a count grows does not. */
static void what_differs_in_every_run_is_no_anomaly(void)
{
	static const struct value_variable_facts count = {VALUE_UNSIGNED, VALUE_TAG_COND, 8};

	CU_ASSERT_EQUAL(ratio_of(&count, 2, clock_ms), VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT_EQUAL(ratio_of(&count, 2, faster_when_slow), 0);
	CU_ASSERT_EQUAL(ratio_every(&count, 2, time_of_day, 30), VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT_EQUAL(ratio_of(&count, 2, port), 0);
	CU_ASSERT_EQUAL(ratio_of(&count, 3, port), VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT_EQUAL(ratio_of(&count, 4, port), VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT_EQUAL(ratio_of(&count, 4, port_of_many), 0);
}

/* Normal profiles that have a tenth of the samples would have less than one of these by chance. */
static void what_normal_runs_lack_by_chance_is_no_anomaly(void)
{
	static const struct value_variable_facts variables[] = {{VALUE_SIGNED, VALUE_TAG_COND, 4},
								{VALUE_SIGNED, VALUE_TAG_COND, 4}};

	for (int few = 0; few < 2; few++) {
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < TICKS; tick++)
			add(&ranked, tick, 1, 0, SCAN, tick % 12 ? 0 : 1, tick % 5);
		for (uint32_t tick = 0; tick < (few ? TICKS / 10 : TICKS); tick++)
			add(&ranked, TICKS + tick, 0, 0, SCAN, 0, tick % 5);
		rank(&ranked, variables, 2);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[1].ratio, few ? VALUE_DEFAULT_DISCOUNT : 0);
		arena__free(ranked.arena);
	}
}

/* One request that stands for a hundred has one sample for all that. */
static void one_heavy_normal_sample_shows_no_lack(void)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_COND, 4};

	for (int many = 0; many < 2; many++) {
		static struct ranked ranked;
		uint32_t normal_cnt = many ? 20 : 1;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < TICKS; tick++)
			add(&ranked, tick, 1, 0, SCAN, 0, tick % 5);
		for (uint32_t tick = 0; tick < normal_cnt; tick++) {
			add(&ranked, TICKS + tick, 0, 0, SCAN, VALUE_NONE, 0);
			ranked.rows[TICKS + tick].weight = 100;
		}
		rank(&ranked, &variable, 1);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[0].ratio, many ? 0 : VALUE_DEFAULT_DISCOUNT);
		arena__free(ranked.arena);
	}
}

/* `scan` calls `work`, in which all the time is spent, and both differ. */
static void of_equal_costs_the_better_evidence_ranks_first(void)
{
	static const uint8_t tags[][2] = {{VALUE_TAG_COND, VALUE_TAG_COND},
					  {VALUE_TAG_COND, VALUE_TAG_COND},
					  {VALUE_TAG_COND, VALUE_TAG_LOOP},
					  {VALUE_TAG_ARGS, VALUE_TAG_STEP},
					  {VALUE_TAG_STEP, VALUE_TAG_COND}};

	for (int test = 0; test < 5; test++) {
		const struct value_variable_facts variables[] = {
			{test == 1 ? VALUE_POINTER : VALUE_SIGNED, tags[test][0], 8}, {VALUE_SIGNED, tags[test][1], 8}};
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			add(&ranked, tick, slow, 0, WORK, 0, test == 1 ? stays(tick, slow) : more(tick, slow));
			add(&ranked, tick, slow, 1, SCAN, 1, more(tick, slow));
		}
		for (size_t i = 0; i < ranked.cnt; i++)
			ranked.rows[i].unit = 0;
		rank(&ranked, variables, 2);
		/*
		 * Equal evidence: the callee; an address, a condition against a loop, an argument against a step, or a
		 * step against a condition: the caller.
		 */
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, test ? SCAN : WORK);
		arena__free(ranked.arena);
	}
}

/* Both differ as much: what a loop changes says more of it than what it hands on. */
static void of_equal_anomalies_the_use_decides(void)
{
	static const uint8_t by_use[] = {VALUE_TAG_LOOP, VALUE_TAG_COND, VALUE_TAG_STEP, VALUE_TAG_ARGS, 0};

	for (size_t use = 0; use + 1 < sizeof(by_use); use++) {
		const struct value_variable_facts variables[] = {{VALUE_SIGNED, by_use[use + 1], 8},
								 {VALUE_SIGNED, by_use[use], 8}};
		static struct ranked ranked;

		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			add(&ranked, tick, tick >= TICKS, 0, SCAN, 0, more(tick, tick >= TICKS));
			if (tick % 8)
				add(&ranked, tick, tick >= TICKS, 0, SCAN, 1, more(tick, tick >= TICKS));
		}
		rank(&ranked, variables, 2);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].variable, 1);
		arena__free(ranked.arena);
	}
}

/*
 * `work`, of a library without variables or of none that is known, and `scan`, in which a variable differs; the library
 * costs more, and normal runs have it less often.  Where all variables are as ever, or all is of one module, the costs
 * decide.
 */
static void a_library_without_variables_ranks_behind_what_differs(void)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_COND, 8};
	static const uint32_t own_module = 0, other_module = 1;
	static struct ranked ranked;

	for (int test = -1; test < 3; test++) {
		ranked.cnt = 0;
		ranked.is_unknown = test < 0;
		for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
			bool slow = tick >= TICKS;

			if (tick % 4 < (slow ? 3 : 1))
				add(&ranked, tick, slow, 0, WORK, VALUE_NONE, 0);
			else
				add(&ranked, tick, slow, 0, SCAN, 0, (test == 1 ? same : more)(tick, slow));
		}
		/* Of the library something is sampled. */
		if (test == 2)
			for (uint32_t tick = 0; tick < 8; tick++)
				add(&ranked, 3 * TICKS + tick, tick % 2, 0, LOG, 1, tick);
		rank_modules(&ranked, (struct value_variable_facts[]){variable, variable}, 2, 2,
			     (uint32_t[]){own_module, other_module});
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, test > 0 ? WORK : SCAN);
		CU_ASSERT_EQUAL(ranked.ranking.functions[test > 0 ? 0 : 1].by, VALUE_BY_RANKS);
		arena__free(ranked.arena);
	}
}

/* `scan` calls `work`, in whose frames the global is read; it differs in slow ones. */
static void add_global_of_leaf(struct ranked *ranked)
{
	ranked->cnt = 0;
	for (uint32_t tick = 0; tick < 2 * TICKS; tick++) {
		bool slow = tick >= TICKS;

		add(ranked, tick, slow, 0, WORK, 0, more(tick, slow));
		add(ranked, tick, slow, 1, SCAN, VALUE_NONE, 0);
	}
}

/* A global is an anomaly of the functions in whose frames it was sampled. */
static void globals_count_for_all_frames_of_a_tick(void)
{
	static const struct value_variable_facts variable = {VALUE_UNSIGNED, VALUE_TAG_GLOBAL, 8};
	static struct ranked ranked;

	add_global_of_leaf(&ranked);
	rank(&ranked, &variable, 1);
	CU_ASSERT_EQUAL_FATAL(ranked.ranking.function_cnt, 2);
	for (int f = 0; f < 2; f++) {
		CU_ASSERT_EQUAL(ranked.ranking.functions[f].variable, 0);
		CU_ASSERT_EQUAL(ranked.ranking.functions[f].variable_cost, TICKS);
	}
	arena__free(ranked.arena);
}

/* The discount of a variable that has one value in late requests, and in typical ones another one by thread. */
static double discount_by_threads(const uint64_t typical[2], uint64_t late)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_LOOP, 8};
	static const uint32_t function = 0;
	static struct value_row rows[3 * TICKS];
	struct value_ranking ranking;
	struct value_input input = {.variables = &variable,
				    .variable_cnt = 1,
				    .functions = &function,
				    .function_cnt = 1,
				    .rows = rows,
				    .row_cnt = 3 * TICKS,
				    .is_slow = profiles,
				    .profile_cnt = 2,
				    .by_unit = true};
	struct arena *arena = arena__new();
	double ratio;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	for (uint32_t r = 0; r < 3 * TICKS; r++) {
		uint32_t thread = r % 3;

		rows[r] = (struct value_row){.ts = r,
					     .tick = r,
					     .unit = r,
					     .thread = thread,
					     .weight = 1,
					     .profile = thread == 2,
					     .value = thread == 2 ? late : typical[thread]};
	}
	CU_ASSERT_EQUAL_FATAL(value_rank(&ranking, &input, arena), 0);
	ratio = ranking.verdicts[0].ratio;
	arena__free(arena);
	return ratio;
}

static void what_differs_from_thread_to_thread_is_no_anomaly(void)
{
	/* As the descriptor of a connection does. */
	CU_ASSERT_EQUAL(discount_by_threads((uint64_t[]){4, 5}, 6), VALUE_DEFAULT_DISCOUNT);
	CU_ASSERT_EQUAL(discount_by_threads((uint64_t[]){4, 4}, 6), 0);
}

/* `work` is a library's: its own state is none of the function that calls it. */
static void globals_of_a_library_say_nothing_of_its_callers(void)
{
	static const struct value_variable_facts variable = {VALUE_UNSIGNED, VALUE_TAG_GLOBAL, 8};
	static const uint32_t module = 1;
	static struct ranked ranked;

	add_global_of_leaf(&ranked);
	rank_modules(&ranked, &variable, 1, 2, &module);
	CU_ASSERT_EQUAL_FATAL(ranked.ranking.function_cnt, 1);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, WORK);
	CU_ASSERT_EQUAL(ranked.ranking.functions[0].variable, 0);
	arena__free(ranked.arena);
}

/* One thread has one sample each of the few normal ones: there is no difference of adjacent ones to compare with. */
static void without_adjacent_normal_samples_deltas_tell_nothing(void)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_LOOP, 8};
	static struct ranked ranked;
	const struct value_verdict *verdict = ranked.ranking.verdicts;

	for (int apart = 0; apart < 2; apart++) {
		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < TICKS; tick++)
			add(&ranked, tick, 1, 0, SCAN, 0, apart ? 1000 + tick : 7);
		for (uint32_t i = 0; i < 2; i++)
			add(&ranked, 4 * (TICKS + i), 0, 0, SCAN, 0, 7);
		/* The ranks of functions need a second one. */
		add(&ranked, 4 * (TICKS + 2), 0, 0, LOG, VALUE_NONE, 0);
		rank(&ranked, &variable, 1);
		verdict = ranked.ranking.verdicts;
		CU_ASSERT(isnan(verdict->ratios[VALUE_DIM_DELTA]));
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].pattern,
				apart ? VALUE_PATTERN_SCALABILITY : VALUE_PATTERN_SCALABILITY_BY_DEFAULT);
		CU_ASSERT_EQUAL(verdict->is_anomalous || verdict->is_suspect, apart);
		arena__free(ranked.arena);
	}
}

/* One normal sample is too few for a test; that all slow ones are beyond it is a suspicion, and the ranks discount. */
static void what_no_test_can_decide_the_ranks_do(void)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_LOOP, 8};
	static struct ranked ranked;

	for (int apart = 0; apart < 2; apart++) {
		ranked.cnt = 0;
		for (uint32_t tick = 0; tick < 5; tick++) {
			add(&ranked, tick, 1, 0, SCAN, 0, apart ? 1000 + tick : tick);
			add(&ranked, 100 + tick, 0, 0, LOG, VALUE_NONE, 0);
		}
		add(&ranked, 200, 0, 0, SCAN, 0, 3);
		rank(&ranked, &variable, 1);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[0].ratio, VALUE_DEFAULT_DISCOUNT);
		CU_ASSERT_EQUAL(ranked.ranking.verdicts[0].is_suspect, apart);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].function, SCAN);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].ratio, apart ? 0 : VALUE_DEFAULT_DISCOUNT);
		CU_ASSERT_EQUAL(ranked.ranking.functions[0].by, apart ? VALUE_BY_RANKS : VALUE_BY_VARIABLE);
		arena__free(ranked.arena);
	}
}

static void bytes_become_numbers_by_their_type(void)
{
	const struct value_variable_facts byte = {VALUE_SIGNED, 0, 1}, whole = {VALUE_SIGNED, 0, 8},
					  narrow = {VALUE_FLOAT, 0, 4}, wide = {VALUE_FLOAT, 0, 8},
					  bare = {VALUE_UNSIGNED, 0, 1};
	double pi = 3.25;
	float half = 0.5f;
	uint64_t bytes = 0;

	CU_ASSERT_EQUAL(value_number(&byte, 0xff), -1);
	CU_ASSERT_EQUAL(value_number(&bare, 0xff), 255);
	CU_ASSERT_EQUAL(value_number(&whole, (uint64_t)-5), -5);
	memcpy(&bytes, &half, sizeof(half));
	CU_ASSERT_EQUAL(value_number(&narrow, bytes), 0.5);
	memcpy(&bytes, &pi, sizeof(pi));
	CU_ASSERT_EQUAL(value_number(&wide, bytes), 3.25);
}

int suite_value_rank(void)
{
	static const struct unit_test tests[] = {
		{"a caller with other values ranks first", a_caller_with_other_values_ranks_before_what_costs_more},
		{"patterns follow the rules in their order", patterns_follow_the_rules_in_their_order},
		{"what stays for less is no missing constraint", what_stays_for_less_is_no_missing_constraint},
		{"a condition that sees more elements is not wrong", a_condition_that_sees_more_elements_is_not_wrong},
		{"what stays because a loop goes on is no missing constraint",
		 what_stays_because_a_loop_goes_on_is_no_missing_constraint},
		{"what each element has the same of is a missing constraint",
		 what_each_element_has_the_same_of_is_a_missing_constraint},
		{"a state that no normal element has is a missing constraint",
		 a_state_that_no_normal_element_has_is_a_missing_constraint},
		{"what sticks for all elements is a missing constraint",
		 what_sticks_for_all_elements_is_a_missing_constraint},
		{"the most anomalous variable decides", the_most_anomalous_variable_decides},
		{"places are those of what differs", places_are_those_of_what_differs},
		{"turns make no value stay less", turns_make_no_value_stay_less},
		{"ranks discount where no variable does", ranks_discount_where_no_variable_does},
		{"what differs in every run is no anomaly", what_differs_in_every_run_is_no_anomaly},
		{"one heavy normal sample shows no lack", one_heavy_normal_sample_shows_no_lack},
		{"what differs from thread to thread is no anomaly", what_differs_from_thread_to_thread_is_no_anomaly},
		{"what normal runs lack by chance is no anomaly", what_normal_runs_lack_by_chance_is_no_anomaly},
		{"of equal costs the better evidence ranks first", of_equal_costs_the_better_evidence_ranks_first},
		{"of equal anomalies the use decides", of_equal_anomalies_the_use_decides},
		{"a library without variables ranks behind what differs",
		 a_library_without_variables_ranks_behind_what_differs},
		{"globals count for all frames of a tick", globals_count_for_all_frames_of_a_tick},
		{"bytes become numbers by their type", bytes_become_numbers_by_their_type},
		{"globals of a library say nothing of its callers", globals_of_a_library_say_nothing_of_its_callers},
		{"without adjacent normal samples deltas tell nothing",
		 without_adjacent_normal_samples_deltas_tell_nothing},
		{"what no test can decide the ranks do", what_no_test_can_decide_the_ranks_do},
	};

	return unit_suite("value_rank", tests, sizeof(tests) / sizeof(tests[0]));
}
