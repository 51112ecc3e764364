// SPDX-License-Identifier: GPL-2.0-or-later
/* Values by place: late requests spend more of their time at some. */
#include "analysis/value_places.h"
#include "unit.h"

#define REQUESTS 60

/* One sample of each request, of which one half is late. */
static void fill(struct value_row *rows, unsigned typical_at_loop, const uint64_t by_place[3], uint64_t late_more)
{
	for (uint32_t r = 0; r < REQUESTS; r++) {
		bool late = r % 2;
		uint32_t place = late ? r / 2 % 10 ? 1 : 0 : r / 2 % 30 < typical_at_loop ? 1 : 0;

		rows[r] = (struct value_row){.value = by_place[place] + (late ? late_more : 0),
					     .weight = late ? 1 : 5,
					     .place = place,
					     .unit = r,
					     .profile = late};
	}
}

static int differs_by_place(const struct value_row *rows)
{
	static const struct value_variable_facts variable = {VALUE_SIGNED, VALUE_TAG_ARGS, 8};
	static const bool is_slow[] = {false, true};
	const struct value_input input = {
		.variables = &variable, .variable_cnt = 1, .is_slow = is_slow, .profile_cnt = 2, .by_unit = true};

	return value_differs_by_place(&input, rows, REQUESTS);
}

static void the_time_at_a_place_is_no_difference_of_a_value(void)
{
	static const uint64_t got[] = {0, 32, 0};
	struct value_row rows[REQUESTS];

	fill(rows, 6, got, 0);
	CU_ASSERT_EQUAL(differs_by_place(rows), 1);
	/* Late requests have another value at the same place. */
	fill(rows, 6, got, 7);
	CU_ASSERT_EQUAL(differs_by_place(rows), 0);
	/* No typical request was where late ones spend their time. */
	fill(rows, 0, got, 0);
	CU_ASSERT_EQUAL(differs_by_place(rows), 0);
}

static void too_few_samples_at_a_place_explain_nothing(void)
{
	static const uint64_t got[] = {0, 32, 0};
	struct value_row rows[REQUESTS];

	/* One typical request was there, with another value. */
	fill(rows, 1, got, 0);
	for (uint32_t r = 0; r < REQUESTS; r++)
		if (!rows[r].profile && rows[r].place)
			rows[r].value = 31;
	CU_ASSERT_EQUAL(differs_by_place(rows), 0);
}

int suite_value_places(void)
{
	static const struct unit_test tests[] = {
		{"the time at a place is no difference of a value", the_time_at_a_place_is_no_difference_of_a_value},
		{"too few samples at a place explain nothing", too_few_samples_at_a_place_explain_nothing},
	};

	return unit_suite("value_places", tests, sizeof(tests) / sizeof(tests[0]));
}
