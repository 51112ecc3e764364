// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/drift.h"
#include "base/random.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define HOUR_NS 3600000000000ULL
#define BEGIN   (20000 * 24 * HOUR_NS)
#define CNT_MAX (40 * 24 * 6)

static uint64_t wall_ns[CNT_MAX];
static double values[CNT_MAX], weights[CNT_MAX];

static double normal(uint64_t *state)
{
	double u = ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
	double v = ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Segments of 10 minutes over so many days: noise, more by `peak` from 02:00 to 04:00, a level that moves by `slope` a
 * day. */
static size_t make(size_t days, double peak, double slope, uint64_t seed)
{
	uint64_t state = seed;

	for (size_t i = 0; i < days * 144; i++) {
		wall_ns[i] = BEGIN + i * HOUR_NS / 6;
		values[i] = 5 + 0.3 * normal(&state) + slope * (double)i / 144;
		if (i % 144 / 6 == 2 || i % 144 / 6 == 3)
			values[i] += peak;
		weights[i] = 1;
	}
	return days * 144;
}

static void few_days_tell_nothing(void)
{
	struct drift drift;
	size_t cnt = make(2, 3, 1, 1);

	CU_ASSERT_EQUAL(drift_find(&drift, wall_ns, values, weights, cnt), 0);
	CU_ASSERT(!drift.found && isnan(drift.p) && drift.days == 2);
	CU_ASSERT_EQUAL(drift_find(&drift, wall_ns, values, weights, 0), 0);
	CU_ASSERT(!drift.found);
}

static void a_drift_is_found_with_its_slope(void)
{
	struct drift drift;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		size_t cnt = make(21, 1, 0.1, seed);

		/* A day without requests, and one that went wild. */
		for (size_t i = 5 * 144; i < 7 * 144; i++)
			values[i] = i < 6 * 144 ? NAN : 50;
		CU_ASSERT_EQUAL(drift_find(&drift, wall_ns, values, weights, cnt), 0);
		CU_ASSERT_EQUAL(drift.days, 20);
		CU_ASSERT(drift.found);
		CU_ASSERT_DOUBLE_EQUAL(drift.per_day, 0.1, 0.02);
		CU_ASSERT_DOUBLE_EQUAL(drift.last - drift.first, 20 * drift.per_day, 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(drift.first, 5.1, 0.3);
	}
}

static void chance_does_not_drift(void)
{
	struct drift drift;
	size_t found = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		CU_ASSERT_EQUAL(drift_find(&drift, wall_ns, values, weights, make(10, 1, 0, seed)), 0);
		found += drift.found;
	}
	CU_ASSERT(found <= 8);
}

int suite_drift(void)
{
	static const struct unit_test tests[] = {
		{"few days tell nothing", few_days_tell_nothing},
		{"a drift is found with its slope", a_drift_is_found_with_its_slope},
		{"chance does not drift", chance_does_not_drift},
	};

	return unit_suite("drift", tests, sizeof(tests) / sizeof(tests[0]));
}
