// SPDX-License-Identifier: GPL-2.0-or-later
/* Hashes among the sampled variables. */
#include "analysis/value_hash.h"
#include "analysis/value_rank.h"
#include "base/random.h"
#include "unit.h"

#define TICKS  60
#define ROUNDS 200

struct drawn {
	struct value_row rows[4 * TICKS];
	size_t cnt;
	struct value_variable_facts facts;
	uint64_t seed;
};

static void add(struct drawn *drawn, bool slow, uint64_t value)
{
	uint32_t tick = (uint32_t)drawn->cnt;

	if (drawn->facts.size < 8)
		value &= (1ULL << 8 * drawn->facts.size) - 1;
	drawn->rows[drawn->cnt++] =
		(struct value_row){.ts = tick, .tick = tick, .value = value, .weight = 1, .profile = slow};
}

static struct value_input input_of(struct drawn *drawn)
{
	static const bool is_slow[] = {false, true};
	static const uint32_t function = 0;

	return (struct value_input){.variables = &drawn->facts,
				    .variable_cnt = 1,
				    .functions = &function,
				    .function_cnt = 1,
				    .rows = drawn->rows,
				    .row_cnt = drawn->cnt,
				    .is_slow = is_slow,
				    .profile_cnt = 2};
}

static bool is_hash(struct drawn *drawn)
{
	struct value_input input = input_of(drawn);

	return value_is_hash(&input, drawn->rows, drawn->cnt) == 1;
}

static bool is_anomalous(struct drawn *drawn)
{
	struct value_input input = input_of(drawn);
	struct arena *arena = arena__new();
	struct value_ranking ranking;
	bool is;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
	CU_ASSERT_EQUAL_FATAL(value_rank(&ranking, &input, arena), 0);
	is = ranking.verdicts[0].is_anomalous;
	arena__free(arena);
	return is;
}

/* Of two hundred pairs of sets the test takes one of twenty for different, in either of two dimensions. */
static void other_hashes_are_no_anomaly(void)
{
	static struct drawn drawn;
	int anomalous = 0;

	for (uint8_t size = 4; size <= 8; size *= 2) {
		drawn.facts =
			(struct value_variable_facts){size == 4 ? VALUE_SIGNED : VALUE_UNSIGNED, VALUE_TAG_COND, size};
		for (int round = 0; round < ROUNDS; round++) {
			drawn.cnt = 0;
			for (int i = 0; i < 2 * TICKS; i++)
				add(&drawn, i >= TICKS, random_next(&drawn.seed));
			anomalous += is_anomalous(&drawn);
		}
	}
	/* The tests for a hash refuse one of a hundred each. */
	CU_ASSERT(anomalous <= 2 * ROUNDS / 100);
}

static void chains_of_hashes_stay_an_anomaly(void)
{
	static struct drawn drawn = {.facts = {VALUE_UNSIGNED, VALUE_TAG_COND, 4}};

	/* Each stays for ten samples when it is slow. */
	for (int i = 0; i < TICKS; i++)
		add(&drawn, false, random_next(&drawn.seed));
	for (int i = 0; i < 3 * TICKS; i++) {
		uint64_t seed = (uint64_t)i / 3;

		add(&drawn, true, random_next(&seed));
	}
	CU_ASSERT(is_hash(&drawn));
	CU_ASSERT(is_anomalous(&drawn));
}

enum other { CRAFTED, FEW_SAMPLES, FEW_VALUES, COUNTED, NARROW, WALK, OTHERS };

/* In slow profiles: from a part of the range, fewer, repeated, counted, of another width, or each near the one before.
 */
static void other_values_are_no_hashes(void)
{
	static struct drawn drawn;

	for (int other = 0; other < OTHERS; other++) {
		int slow_cnt = other == FEW_SAMPLES ? 40 : TICKS;
		uint64_t near = 0;

		drawn.facts = (struct value_variable_facts){VALUE_UNSIGNED, VALUE_TAG_COND, other == NARROW ? 8 : 4};
		drawn.cnt = 0;
		for (int i = 0; i < TICKS + slow_cnt; i++) {
			uint64_t seed = (uint64_t)i % 20 + 1000, drawn_value = random_next(&drawn.seed);
			bool slow = i >= TICKS;

			near += (1ULL << 32) / 64 + drawn_value % 1000;
			add(&drawn, slow,
			    !slow                 ? drawn_value
			    : other == CRAFTED    ? drawn_value >> 34
			    : other == FEW_VALUES ? random_next(&seed)
			    : other == COUNTED    ? (uint64_t)i
			    : other == NARROW     ? drawn_value >> 32
			    : other == WALK       ? near
						  : drawn_value);
		}
		CU_ASSERT(!is_hash(&drawn));
	}
	drawn.facts.kind = VALUE_POINTER;
	CU_ASSERT(!is_hash(&drawn));
}

int suite_value_hash(void)
{
	static const struct unit_test tests[] = {
		{"other hashes are no anomaly", other_hashes_are_no_anomaly},
		{"chains of hashes stay an anomaly", chains_of_hashes_stay_an_anomaly},
		{"other values are no hashes", other_values_are_no_hashes},
	};

	return unit_suite("value_hash", tests, sizeof(tests) / sizeof(tests[0]));
}
