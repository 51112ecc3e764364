// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/window_plan.h"
#include "unit.h"

#include <math.h>

#define MS_NS  1000000ULL
#define SEC_NS 1000000000ULL

/* What an agent would do that comes late by up to `late_ns` and takes `attach_ns` to attach. */
struct run {
	struct window_plan plan;
	uint64_t now, begin_ts;
	uint64_t attach_ns, late_ns, drain_ns;
	uint64_t drain_from_ts;
};

static void run_init_share(struct run *run, double rate, double share, uint64_t duration_ns, uint64_t seed)
{
	*run = (struct run){.now = 5 * SEC_NS, .begin_ts = 5 * SEC_NS, .attach_ns = 4 * MS_NS};
	window_plan__init(&run->plan, rate, share, run->now, duration_ns, seed);
}

static void run_init(struct run *run, double rate, uint64_t duration_ns, uint64_t seed)
{
	run_init_share(run, rate, window_share(rate), duration_ns, seed);
}

/* To the next change of state. */
static enum window_state run_on(struct run *run)
{
	for (int asked = 0; asked < 100000; asked++) {
		bool drained = run->plan.state == WINDOW_DRAINING && run->now >= run->drain_from_ts + run->drain_ns;

		if (window_plan__step(&run->plan, run->now, drained)) {
			if (run->plan.state == WINDOW_WARMING)
				run->now += run->attach_ns;
			else if (run->plan.state == WINDOW_DRAINING)
				run->drain_from_ts = run->now;
			return run->plan.state;
		}
		CU_ASSERT_FATAL(window_plan__next_ts(&run->plan, run->now) >= run->now ||
				run->plan.state == WINDOW_CLOSED);
		if (window_plan__next_ts(&run->plan, run->now) > run->now)
			run->now = window_plan__next_ts(&run->plan, run->now);
		run->now += run->late_ns;
	}
	CU_FAIL_FATAL("the plan stands still");
	return WINDOW_CLOSED;
}

static void low_rates_are_windows(void)
{
	CU_ASSERT_EQUAL(window_share(0.01), 0.01);
	CU_ASSERT_EQUAL(window_share(0.05), 0.05);
	CU_ASSERT_EQUAL(window_share(0.06), 1);
	CU_ASSERT_EQUAL(window_share(1), 1);
}

/* Strata are of three quarters of a second to five quarters. */
static bool length_is(const struct run *run, double share)
{
	double length_ns = (double)(run->plan.select_end_ts - run->plan.select_ts);

	return length_ns >= share * 0.75 * SEC_NS - 1 && length_ns <= share * 1.25 * SEC_NS;
}

static void states_follow_each_other(void)
{
	struct run run;

	run_init(&run, 0.01, 0, 1);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_WARMING);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_SELECTING);
		CU_ASSERT(length_is(&run, 0.01));
		CU_ASSERT(run.plan.select_ts >= run.plan.open_ts + run.attach_ns);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_DRAINING);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_CLOSED);
	}
	CU_ASSERT_EQUAL(run.plan.window_cnt, 100);
}

/* A request that arrives at any time is selected with the probability that its weight says: the weights of requests at
 * a constant rate sum to their number, window by window, because each stands for its whole stratum. */
static void weights_sum_to_what_there_was(void)
{
	const double per_ns = 100e3 / 1e9;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		double sum = 0;
		uint64_t until_ts = 0;
		struct run run;

		run_init(&run, 0.02, 30 * SEC_NS, seed);
		run.drain_ns = seed * MS_NS;
		while (run.plan.stratum_begin_ts < run.begin_ts + 30 * SEC_NS) {
			run_on(&run);
			run_on(&run);
			until_ts = run.plan.stratum_end_ts;
			sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts) *
			       window_plan__inside(&run.plan) / window_plan__probability(&run.plan);
			run_on(&run);
			run_on(&run);
		}
		CU_ASSERT_DOUBLE_EQUAL(sum, per_ns * (double)(until_ts - run.begin_ts), sum * 1e-6);
		/* Strata that had to be longer need not end with the recording. */
		CU_ASSERT(run.drain_ns > 3 * MS_NS || until_ts == run.begin_ts + 30 * SEC_NS);
	}
}

/*
 * What comes at a beat of one a second, at any place in it, is estimated right on average: a window may not lie in a
 * stratum's first moments as often as in its middle, so strata of one length would see some beats never.
 */
static void beats_are_seen_as_often_as_they_come(void)
{
	enum { SEEDS = 400, SECONDS = 60 };

	for (uint64_t phase_ns = 0; phase_ns < SEC_NS; phase_ns += 125 * MS_NS) {
		double sum = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct run run;

			run_init_share(&run, 1, 0.2, SECONDS * SEC_NS, seed * 7919);
			while (run.plan.stratum_begin_ts < run.begin_ts + SECONDS * SEC_NS) {
				uint64_t beat_ts;

				run_on(&run);
				run_on(&run);
				beat_ts = run.plan.select_ts - (run.plan.select_ts - run.begin_ts) % SEC_NS + phase_ns;
				if (beat_ts < run.plan.select_ts)
					beat_ts += SEC_NS;
				if (beat_ts < run.plan.select_end_ts)
					sum += 1 / window_plan__probability(&run.plan);
				run_on(&run);
				run_on(&run);
			}
		}
		/* Of 24,000 beats a fifth is seen: 1.3 % is one standard deviation, or less. */
		CU_ASSERT_DOUBLE_EQUAL(sum / SEEDS / SECONDS, 1, 0.05);
	}
}

/* All the time, then windows, then all the time again: time is represented once, whatever the share is. */
static void the_share_may_change(void)
{
	const double per_ns = 1e-4;
	uint64_t selecting_ns, attached_ns, until_ts;
	double sum = 0;
	struct run run;

	run_init_share(&run, 1, 1, 20 * SEC_NS, 11);
	CU_ASSERT_EQUAL(run.plan.state, WINDOW_SELECTING);
	CU_ASSERT(run.plan.endless && !run.plan.rested);
	CU_ASSERT_EQUAL(window_plan__probability(&run.plan), 1);
	run.now += 3 * SEC_NS;
	CU_ASSERT(!window_plan__step(&run.plan, run.now, false));
	CU_ASSERT(window_plan__next_ts(&run.plan, run.now) > run.now + 1000 * SEC_NS);
	window_plan__times(&run.plan, run.now, &selecting_ns, &attached_ns);
	CU_ASSERT_EQUAL(selecting_ns, 3 * SEC_NS);
	CU_ASSERT_EQUAL(attached_ns, 3 * SEC_NS);

	window_plan__set_share(&run.plan, 0.25);
	run.drain_ns = 50 * MS_NS;
	CU_ASSERT_EQUAL(run_on(&run), WINDOW_DRAINING);
	sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts);
	CU_ASSERT_EQUAL(run_on(&run), WINDOW_CLOSED);
	CU_ASSERT(run.plan.rested);
	CU_ASSERT_EQUAL(run.plan.window_cnt, 0);
	/* However long it was: a second of windows follows, not twelve. */
	CU_ASSERT(run.plan.stratum_end_ts <= run.begin_ts + 3 * SEC_NS + 5 * SEC_NS / 4);
	run.drain_ns = 0;
	for (int i = 0; i < 5; i++) {
		if (i == 4)
			window_plan__set_share(&run.plan, 2);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_WARMING);
		CU_ASSERT(!run.plan.endless);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_SELECTING);
		CU_ASSERT(length_is(&run, 0.25));
		sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts) /
		       window_plan__probability(&run.plan);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_DRAINING);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_CLOSED);
	}
	CU_ASSERT_EQUAL(run.plan.window_cnt, 5);

	until_ts = run.plan.stratum_begin_ts;
	CU_ASSERT_EQUAL(run_on(&run), WINDOW_WARMING);
	CU_ASSERT(run.plan.endless);
	CU_ASSERT_EQUAL(run_on(&run), WINDOW_SELECTING);
	CU_ASSERT(run.plan.select_ts >= until_ts && run.plan.select_ts <= until_ts + 5 * MS_NS);
	CU_ASSERT_EQUAL(window_plan__probability(&run.plan), 1);
	CU_ASSERT_EQUAL(run.plan.window_cnt, 5);
	CU_ASSERT_DOUBLE_EQUAL(sum, per_ns * (double)(until_ts - run.begin_ts), sum * 1e-6);
}

/* A rate below the share: each window selects as much less. */
static void a_rate_within_windows(void)
{
	struct run run;

	run_init_share(&run, 0.1, 1, 0, 12);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__probability(&run.plan), 0.1, 1e-9);
	window_plan__set_share(&run.plan, 0.5);
	for (int i = 0; i < 4; i++)
		run_on(&run);
	CU_ASSERT_EQUAL(run.plan.state, WINDOW_SELECTING);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__inside(&run.plan), 0.2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__probability(&run.plan), 0.1, 1e-6);
}

/* Every moment of a stratum but its first milliseconds has the same chance: the windows' places are uniform. */
static void places_are_uniform(void)
{
	enum { CNT = 4000, BINS = 8 };
	uint32_t bins[BINS] = {0};
	double chi2 = 0;
	struct run run;

	run_init(&run, 0.01, 0, 42);
	for (int i = 0; i < CNT; i++) {
		uint64_t room = run.plan.stratum_end_ts - run.plan.stratum_begin_ts - run.plan.length_ns - 6 * MS_NS;
		uint64_t at = run.plan.open_ts - run.plan.stratum_begin_ts;

		CU_ASSERT_FATAL(at < room);
		bins[at * BINS / room]++;
		for (int state = 0; state < 4; state++)
			run_on(&run);
	}
	for (int i = 0; i < BINS; i++)
		chi2 += pow(bins[i] - CNT / (double)BINS, 2) / (CNT / (double)BINS);
	CU_ASSERT(chi2 < 35); /* 7 degrees of freedom: more than 35 has a probability of 1e-5; the seed is fixed */
}

/* Drains of half a second: fewer windows, each of which stands for more, and the time attached stays bounded. */
static void long_drains_cost_windows_not_weight(void)
{
	const double per_ns = 1e-3;
	double sum = 0;
	struct run run;

	run_init(&run, 0.01, 0, 3);
	run.drain_ns = 500 * MS_NS;
	for (int i = 0; i < 50; i++) {
		run_on(&run);
		run_on(&run);
		sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts) /
		       window_plan__probability(&run.plan);
		run_on(&run);
		run_on(&run);
	}
	CU_ASSERT_DOUBLE_EQUAL(sum, per_ns * (double)(run.plan.stratum_begin_ts - run.begin_ts), sum * 1e-6);
	CU_ASSERT((double)run.plan.attached_ns / (double)(run.plan.stratum_end_ts - run.begin_ts) < 0.021);
}

/* A request that is never answered holds a window open for a second first, then for less and less. */
static void waiting_in_vain_gets_shorter(void)
{
	uint64_t before = 2 * SEC_NS;
	struct run run;

	run_init(&run, 0.01, 0, 4);
	run.drain_ns = UINT64_MAX / 2;
	for (int i = 0; i < 8; i++) {
		uint64_t waited;

		run_on(&run);
		run_on(&run);
		run_on(&run);
		run_on(&run);
		waited = run.now - run.drain_from_ts;
		CU_ASSERT(waited <= before);
		CU_ASSERT(waited >= 30 * MS_NS);
		if (!i)
			CU_ASSERT_DOUBLE_EQUAL(waited, SEC_NS, 2 * MS_NS);
		before = waited;
	}
	CU_ASSERT(before < 100 * MS_NS);
	/* Where requests do take long, it waits for them. */
	window_plan__saw(&run.plan, SEC_NS);
	run.drain_ns = 20 * MS_NS;
	for (int i = 0; i < 4; i++)
		run_on(&run);
	run.drain_ns = 3 * SEC_NS;
	for (int i = 0; i < 4; i++)
		run_on(&run);
	CU_ASSERT_DOUBLE_EQUAL(run.now - run.drain_from_ts, 3 * SEC_NS, 2 * MS_NS);
}

/* An agent that comes late for everything selects later, not more, and never goes back in time. */
static void a_late_agent_is_no_matter(void)
{
	uint64_t before = 0;
	struct run run;

	run_init(&run, 0.01, 0, 5);
	run.late_ns = 30 * MS_NS;
	for (int i = 0; i < 200; i++) {
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_WARMING);
		CU_ASSERT(run.plan.open_ts > before);
		before = run.plan.open_ts;
		run_on(&run);
		CU_ASSERT(length_is(&run, 0.01));
		CU_ASSERT(window_plan__probability(&run.plan) > 0);
		CU_ASSERT(window_plan__probability(&run.plan) <= 0.01 * 1.0001);
		run_on(&run);
		run_on(&run);
	}
}

/* Shorter than a stratum: one window, in the time there is. */
static void short_recordings_have_a_window(void)
{
	for (uint64_t ms = 50; ms < 1000; ms += 50) {
		struct run run;

		run_init(&run, 0.05, ms * MS_NS, ms);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_WARMING);
		CU_ASSERT_EQUAL(run_on(&run), WINDOW_SELECTING);
		CU_ASSERT(run.plan.select_end_ts <= run.begin_ts + ms * MS_NS);
		CU_ASSERT_DOUBLE_EQUAL(window_plan__probability(&run.plan), 0.05, 1e-6);
	}
}

static const struct unit_test tests[] = {
	{"low rates are windows", low_rates_are_windows},
	{"states follow each other", states_follow_each_other},
	{"weights sum to what there was", weights_sum_to_what_there_was},
	{"beats are seen as often as they come", beats_are_seen_as_often_as_they_come},
	{"the share may change", the_share_may_change},
	{"a rate within windows", a_rate_within_windows},
	{"places are uniform", places_are_uniform},
	{"long drains cost windows, not weight", long_drains_cost_windows_not_weight},
	{"waiting in vain gets shorter", waiting_in_vain_gets_shorter},
	{"a late agent is no matter", a_late_agent_is_no_matter},
	{"short recordings have a window", short_recordings_have_a_window},
};

int suite_window_plan(void)
{
	return unit_suite("window_plan", tests, sizeof(tests) / sizeof(tests[0]));
}
