// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/random.h"
#include "model/stack_beat.h"
#include "unit.h"

#include <string.h>

static const char *const functions[] = {"main;a", "main;b", "main;c", "d"};

static double drawn(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* share: of the ticks that are the kernel's; bias: so much more often is it in the first function. */
static enum stack_beat_kind after(uint64_t *state, int ticks, double share, double stated, double bias)
{
	struct stack_beat beat = {0};

	for (int i = 0; i < ticks; i++) {
		bool is_kernel = drawn(state) < share;
		size_t function = is_kernel && drawn(state) < bias ? 0 : random_next(state) % 4;

		stack_beat__add(&beat, is_kernel, stated, functions[function]);
	}
	return stack_beat__found(&beat);
}

static void equal_clocks_do_not_beat(void)
{
	uint64_t state = 7;
	int alarms = 0;

	for (int i = 0; i < 300; i++)
		alarms += after(&state, 1000 + i * 20, 0.3, 0.3, 0) != STACK_BEAT_NONE;
	CU_ASSERT_EQUAL(alarms, 0);
}

static void a_beat_is_found(void)
{
	uint64_t state = 8;
	struct stack_beat none = {0};

	CU_ASSERT_EQUAL(after(&state, 4000, 0.45, 0.3, 0), STACK_BEAT_RATE);
	CU_ASSERT_EQUAL(after(&state, 4000, 0, 0.3, 0), STACK_BEAT_RATE);
	CU_ASSERT_EQUAL(after(&state, 4000, 0.3, 0.3, 0.3), STACK_BEAT_PROFILE);
	/* Too few to say. */
	CU_ASSERT_EQUAL(after(&state, 900, 0.9, 0.3, 1), STACK_BEAT_NONE);
	CU_ASSERT_EQUAL(stack_beat__found(&none), STACK_BEAT_NONE);
}

int suite_stack_beat(void)
{
	static const struct unit_test tests[] = {
		{"equal clocks do not beat", equal_clocks_do_not_beat},
		{"a beat is found", a_beat_is_found},
	};

	return unit_suite("stack_beat", tests, sizeof(tests) / sizeof(tests[0]));
}
