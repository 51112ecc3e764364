// SPDX-License-Identifier: GPL-2.0-or-later
/* Which hooks stay attached between windows. */
#include "base/clock.h"
#include "capture/internal.h"
#include "unit.h"

#define MS 1000000ULL

/* Of two programs of a feature, `per_s` runs a second; three windows a second, a run at rest takes 100 ns. */
static bool leaves(enum hook_feature feature, double per_s, uint64_t attach_ns)
{
	struct capture capture = {.window_cnt = 30, .started_ns = monotonic_ns() - 10000 * MS};
	bool does;

	capture.rest_ns = 100;
	capture.stays[feature].attach_ns = attach_ns;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(
			vec_push(&capture.costs, ((struct program_cost){.feature = feature, .per_s = per_s / 2})), 0);
	/* Another feature's runs are none of its own. */
	CU_ASSERT_EQUAL_FATAL(
		vec_push(&capture.costs, ((struct program_cost){.feature = HOOK_FEATURE_BLOCK, .per_s = 1e9})), 0);
	does = capture__leaves(&capture, feature);
	vec_free(&capture.costs);
	return does;
}

/* Attached in 0.3 ms, so 0.6 ms a window: 18,000 runs a second cost as much. */
static void hooks_stay_where_that_costs_less(void)
{
	CU_ASSERT(!leaves(HOOK_FEATURE_SOFTIRQ, 0, 300000));
	CU_ASSERT(!leaves(HOOK_FEATURE_SOFTIRQ, 17000, 300000));
	CU_ASSERT(leaves(HOOK_FEATURE_SOFTIRQ, 19000, 300000));
	CU_ASSERT(!leaves(HOOK_FEATURE_MMAP_LOCK, 110000, 2 * MS));
	CU_ASSERT(leaves(HOOK_FEATURE_MMAP_LOCK, 130000, 2 * MS));
}

int suite_hook_stay(void)
{
	static const struct unit_test tests[] = {
		{"hooks stay where that costs less", hooks_stay_where_that_costs_less},
	};

	return unit_suite("hook stay", tests, sizeof(tests) / sizeof(tests[0]));
}
