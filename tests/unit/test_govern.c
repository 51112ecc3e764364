// SPDX-License-Identifier: GPL-2.0-or-later
/* The governor and the window plan together, on a simulated target. */
#include "model/window_plan.h"
#include "session/govern.h"
#include "unit.h"

#include <math.h>

#define MS_NS  1000000ULL
#define SEC_NS 1000000000ULL
#define STEP   MS_NS

/* A target and what hooks cost on it. */
struct target {
	double (*cpu)(double at_s); /* CPUs that it uses */
	double cost;                /* of hooks, per CPU second of the target */
	double open_ns;             /* of attaching and detaching */
	double idle_ns;             /* per second attached, whatever the target does */
	uint64_t drain_ns;
	double rest_ns; /* of hooks that stay, per second without a window */
};

struct outcome {
	double cpu_ns, spent_ns;
	double selecting_ns;
	double spent_1s_ns; /* the most in any second */
	double share;       /* in the end */
};

/* The agent is late by up to 5 ms with everything. */
static struct outcome simulate_from(double share, const struct target *target, double budget, double seconds,
				    uint64_t seed)
{
	struct window_plan plan;
	struct govern govern;
	struct govern_seen seen = {.ts = 5 * SEC_NS};
	struct outcome outcome = {0};
	uint64_t now = 5 * SEC_NS, end_ts = now + (uint64_t)(seconds * SEC_NS), next_ts, drain_ts = 0, wake_ts = 0;
	double second_ns = 0, opening_ns = 0, rest_ns = 0;

	window_plan__init(&plan, 1, share, now, 0, seed);
	govern__init(&govern, budget, &seen);
	govern.share = share;
	next_ts = now + govern__look_ns(&govern);
	for (; now < end_ts; now += STEP) {
		double at_s = (double)(now - 5 * SEC_NS) / SEC_NS, cpu_ns = target->cpu(at_s) * STEP;
		uint64_t selecting_ns, attached_ns;
		bool drained = now - drain_ts >= target->drain_ns;

		outcome.cpu_ns += cpu_ns;
		if (plan.state != WINDOW_CLOSED)
			outcome.spent_ns += target->cost * cpu_ns + target->idle_ns * STEP / SEC_NS;
		else
			rest_ns += target->rest_ns * STEP / SEC_NS;
		if ((now - 5 * SEC_NS) % SEC_NS == 0) {
			outcome.spent_1s_ns = fmax(outcome.spent_1s_ns, outcome.spent_ns - second_ns);
			second_ns = outcome.spent_ns;
		}
		if (now < wake_ts)
			continue;
		wake_ts = now + (now / STEP * 7919 + seed) % 6 * MS_NS;
		if (window_plan__step(&plan, now, drained, govern__may_hold(&govern))) {
			opening_ns += plan.state == WINDOW_WARMING ? target->open_ns : 0;
			outcome.spent_ns += plan.state == WINDOW_WARMING ? target->open_ns : 0;
			drain_ts = plan.state == WINDOW_DRAINING ? now : drain_ts;
		}
		if (now < next_ts)
			continue;
		window_plan__times(&plan, now, &selecting_ns, &attached_ns);
		seen = (struct govern_seen){
			.ts = now,
			.spent_ns = outcome.spent_ns - opening_ns,
			.open_ns = opening_ns,
			.rest_ns = rest_ns,
			.cpu_ns = outcome.cpu_ns,
			.attached_ns = (double)attached_ns,
			.selecting_ns = (double)selecting_ns,
		};
		outcome.selecting_ns = (double)selecting_ns;
		outcome.share = govern__look(&govern, &seen);
		window_plan__set_share(&plan, outcome.share);
		next_ts = now + govern__look_ns(&govern);
	}
	outcome.spent_ns += rest_ns;
	return outcome;
}

static struct outcome simulate(const struct target *target, double budget, double seconds, uint64_t seed)
{
	return simulate_from(1, target, budget, seconds, seed);
}

static double busy(double at_s)
{
	(void)at_s;
	return 0.9;
}

static double later(double at_s)
{
	return at_s < 2.5 ? 0.001 : 0.9;
}

static double by_turns(double at_s)
{
	return fmod(at_s, 10) < 5 ? 0.001 : 0.9;
}

static double ramp(double at_s)
{
	return 0.02 + at_s / 60;
}

static double light(double at_s)
{
	(void)at_s;
	return 0.12;
}

static double idle(double at_s)
{
	(void)at_s;
	return 0.002;
}

/*
 * Whenever the load begins and however it changes, what hooks cost is the budget or less, and not much less; but for a
 * target that does little, where a hundredth of a CPU is nothing.
 */
static void the_budget_holds_at_any_load(void)
{
	double (*const loads[])(double at_s) = {busy, later, by_turns, ramp};
	static const double costs[] = {0.1, 0.3};

	for (size_t i = 0; i < 8; i++)
		for (uint64_t seed = 1; seed <= 10; seed++) {
			const struct target target = {loads[i / 2], costs[i % 2], 0.2e6, 1e6, seed % 2 * 10 * MS_NS, 0};
			struct outcome outcome = simulate(&target, 0.03, 30, seed);
			double nothing_ns = loads[i / 2] == ramp ? 0.01 * 10 * SEC_NS : 0;

			if (!(outcome.spent_ns < 0.031 * outcome.cpu_ns + nothing_ns))
				printf("load %zu cost %g seed %lu: %g of %g\n", i / 2, costs[i % 2], seed,
				       outcome.spent_ns / 1e9, outcome.cpu_ns / 1e9);
			CU_ASSERT(outcome.spent_ns < 0.031 * outcome.cpu_ns + nothing_ns);
			CU_ASSERT(outcome.spent_ns > 0.015 * outcome.cpu_ns);
		}
}

/* Hooks that stay between windows leave the rest of it; and of a target that does little, what is nothing. */
static void what_stays_is_of_the_budget(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct target target = {busy, 0.3, 3e6, 1e6, seed % 2 * 10 * MS_NS, .rest_ns = 10e6};
		struct outcome outcome = simulate(&target, 0.03, 30, seed);

		CU_ASSERT(outcome.spent_ns < 0.031 * outcome.cpu_ns);
		CU_ASSERT(outcome.spent_ns > 0.02 * outcome.cpu_ns);
		target.cpu = light;
		outcome = simulate(&target, 0.03, 30, seed);
		CU_ASSERT(outcome.spent_ns < 0.0202 * 30 * SEC_NS);
		CU_ASSERT(outcome.selecting_ns > 0.05 * 30 * SEC_NS);
	}
}

/* Also over the first seconds of a load. */
static void a_load_that_begins_is_noticed(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct target target = {later, 0.3, 0.2e6, 1e6, 2 * MS_NS, 0};
		struct outcome outcome = simulate(&target, 0.03, 7.5, seed);

		CU_ASSERT(outcome.spent_ns < 0.035 * outcome.cpu_ns);
		CU_ASSERT(outcome.spent_1s_ns < 0.09 * SEC_NS);
	}
}

/* Under load and a small budget: there is no debt to pay back at first, in which nothing would be seen. */
static void what_begins_in_windows_has_no_debt(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct target target = {busy, 0.3, 0.2e6, 1e6, 2 * MS_NS, 0};
		struct outcome attached = simulate(&target, 0.01, 2, seed);
		struct outcome windows = simulate_from(govern_share_first(0.01), &target, 0.01, 2, seed);

		CU_ASSERT(attached.spent_ns > 0.018 * attached.cpu_ns);
		CU_ASSERT(windows.spent_ns < 0.014 * windows.cpu_ns);
		CU_ASSERT(windows.share > 3 * attached.share);
	}
}

/* What does next to nothing is observed all the time. */
static void an_idle_target_is_seen_all_the_time(void)
{
	const struct target target = {idle, 0.5, 0.2e6, 2e6, 0, 0};
	struct outcome outcome = simulate(&target, 0.03, 20, 1);

	CU_ASSERT_EQUAL(outcome.share, 1);
	CU_ASSERT(outcome.selecting_ns > 19.8 * SEC_NS);
}

/* Of a target that does little, a share that tells something, for a hundredth of a CPU; less with a smaller budget. */
static void a_hundredth_of_a_cpu_is_nothing(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct target target = {light, 0.5, 0.2e6, 1e6, seed % 2 * 10 * MS_NS, 0};
		struct outcome outcome = simulate(&target, 0.03, 20, seed);
		struct outcome frugal = simulate(&target, 0.003, 20, seed);

		CU_ASSERT(outcome.spent_ns < 0.0102 * 20 * SEC_NS);
		CU_ASSERT(outcome.selecting_ns > 0.05 * 20 * SEC_NS);
		CU_ASSERT(frugal.spent_ns < 0.002 * 20 * SEC_NS);
	}
}

static double over_at_ten(double at_s)
{
	return at_s < 10 ? 0.9 : 0.001;
}

/* … and again, once a load is over. */
static void idle_again(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct target target = {over_at_ten, 0.3, 0.2e6, 1e6, 0, 0};
		struct outcome outcome = simulate(&target, 0.03, 20, seed);

		CU_ASSERT_EQUAL(outcome.share, 1);
	}
}

/* Hooks that cost a hundredth of what the budget is need no windows. */
static void a_wide_budget_needs_no_windows(void)
{
	const struct target target = {by_turns, 0.3, 0.2e6, 1e6, 0, 0};
	struct outcome outcome = simulate(&target, 0.5, 30, 1);

	CU_ASSERT(outcome.selecting_ns > 29.8 * SEC_NS);
}

/* Requests that never end may not hold hooks beyond the budget. */
static void what_never_ends_is_not_held(void)
{
	const struct target target = {busy, 0.3, 0.2e6, 1e6, UINT64_MAX, 0};
	struct outcome outcome = simulate(&target, 0.03, 60, 1);

	CU_ASSERT(outcome.spent_ns < 0.034 * outcome.cpu_ns);
	CU_ASSERT(outcome.selecting_ns > 0.001 * 60 * SEC_NS);
}

static const struct unit_test tests[] = {
	{"the budget holds at any load", the_budget_holds_at_any_load},
	{"what stays is of the budget", what_stays_is_of_the_budget},
	{"a load that begins is noticed", a_load_that_begins_is_noticed},
	{"what begins in windows has no debt", what_begins_in_windows_has_no_debt},
	{"an idle target is seen all the time", an_idle_target_is_seen_all_the_time},
	{"a hundredth of a CPU is nothing", a_hundredth_of_a_cpu_is_nothing},
	{"idle again", idle_again},
	{"a wide budget needs no windows", a_wide_budget_needs_no_windows},
	{"what never ends is not held", what_never_ends_is_not_held},
};

int suite_govern(void)
{
	return unit_suite("govern", tests, sizeof(tests) / sizeof(tests[0]));
}
