// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/pauses.h"
#include "unit.h"

static void hold_the_clock(void)
{
	struct pauses pauses = {0};
	uint64_t until = 1000;

	/* Nothing is held while nothing pauses. */
	until += pauses__hold(&pauses, 100);
	CU_ASSERT_EQUAL(until, 1000);
	CU_ASSERT_EQUAL(pauses__ns(&pauses, 150), 0);
	pauses__begin(&pauses, 200);
	until += pauses__hold(&pauses, 230);
	CU_ASSERT_EQUAL(until, 1030);
	CU_ASSERT_EQUAL(pauses__ns(&pauses, 240), 40);
	until += pauses__hold(&pauses, 250);
	until += pauses__end(&pauses, 300);
	/* All of it once, however often it was looked at. */
	CU_ASSERT_EQUAL(until, 1100);
	CU_ASSERT_EQUAL(pauses__ns(&pauses, 900), 100);
	until += pauses__hold(&pauses, 400);
	CU_ASSERT_EQUAL(until, 1100);
	pauses__begin(&pauses, 500);
	until += pauses__end(&pauses, 510);
	CU_ASSERT_EQUAL(until, 1110);
	CU_ASSERT_EQUAL(pauses__ns(&pauses, 900), 110);
	CU_ASSERT_EQUAL(pauses.cnt, 2);
}

static void end_without_beginning(void)
{
	struct pauses pauses = {0};

	CU_ASSERT_EQUAL(pauses__end(&pauses, 300), 0);
	CU_ASSERT_EQUAL(pauses__ns(&pauses, 400), 0);
	CU_ASSERT_EQUAL(pauses.cnt, 0);
}

int suite_pauses(void)
{
	static const struct unit_test tests[] = {
		{"pauses do not count as recorded", hold_the_clock},
		{"an end without a beginning", end_without_beginning},
	};

	return unit_suite("pauses", tests, sizeof(tests) / sizeof(tests[0]));
}
