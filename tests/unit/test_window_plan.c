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
	bool no_hold; /* the budget does not allow hooks to stay */
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

		if (window_plan__step(&run->plan, run->now, drained, !run->no_hold)) {
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

/* To the next change into that state. */
static void run_to(struct run *run, enum window_state state)
{
	for (int i = 0; i < 8; i++)
		if (run_on(run) == state)
			return;
	CU_FAIL_FATAL("the plan never gets there");
}

static void low_rates_are_windows(void)
{
	CU_ASSERT_EQUAL(window_share(0.01), 0.01);
	CU_ASSERT_EQUAL(window_share(0.05), 0.05);
	CU_ASSERT_EQUAL(window_share(0.06), 1);
	CU_ASSERT_EQUAL(window_share(1), 1);
}

/* Windows of 30 ms on average, in strata of a tenth of a second to one. */
static bool length_is(const struct run *run, double share)
{
	double length_ns = (double)(run->plan.select_end_ts - run->plan.select_ts);
	double stratum_ns = fmin(fmax(0.04 * SEC_NS * fmin(1, 0.2 / share) / share, 0.1 * SEC_NS), SEC_NS);

	return length_ns >= share * 0.75 * stratum_ns - 1 && length_ns <= share * 1.25 * stratum_ns;
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
		run.drain_ns = seed * 100 * MS_NS;
		while (run.plan.stratum_begin_ts < run.begin_ts + 30 * SEC_NS) {
			run_to(&run, WINDOW_SELECTING);
			until_ts = run.plan.stratum_end_ts;
			sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts) *
			       window_plan__inside(&run.plan) / window_plan__probability(&run.plan);
			run_to(&run, WINDOW_DRAINING);
		}
		CU_ASSERT_DOUBLE_EQUAL(sum, per_ns * (double)(until_ts - run.begin_ts), sum * 1e-6);
		/* However long drains are. */
		CU_ASSERT(until_ts >= run.begin_ts + 30 * SEC_NS && until_ts < run.begin_ts + 31 * SEC_NS);
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

				run_to(&run, WINDOW_SELECTING);
				beat_ts = run.plan.select_ts - (run.plan.select_ts - run.begin_ts) % SEC_NS + phase_ns;
				if (beat_ts < run.plan.select_ts)
					beat_ts += SEC_NS;
				if (beat_ts < run.plan.select_end_ts && beat_ts < run.begin_ts + SECONDS * SEC_NS)
					sum += 1 / window_plan__probability(&run.plan);
				run_to(&run, WINDOW_DRAINING);
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
	CU_ASSERT(!window_plan__step(&run.plan, run.now, false, true));
	CU_ASSERT(window_plan__next_ts(&run.plan, run.now) > run.now + 1000 * SEC_NS);
	window_plan__times(&run.plan, run.now, &selecting_ns, &attached_ns);
	CU_ASSERT_EQUAL(selecting_ns, 3 * SEC_NS);
	CU_ASSERT_EQUAL(attached_ns, 3 * SEC_NS);

	window_plan__set_share(&run.plan, 0.25);
	run.drain_ns = 50 * MS_NS;
	CU_ASSERT_EQUAL(run_on(&run), WINDOW_DRAINING);
	sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts);
	CU_ASSERT(run.plan.rested);
	CU_ASSERT_EQUAL(run.plan.window_cnt, 0);
	/* However long it was: a tenth of a second of windows follows, not a second. */
	CU_ASSERT(run.plan.stratum_end_ts <= run.begin_ts + 3 * SEC_NS + 5 * SEC_NS / 30);
	run.drain_ns = 0;
	for (int i = 0; i < 5; i++) {
		if (i == 4)
			window_plan__set_share(&run.plan, 2);
		run_to(&run, WINDOW_SELECTING);
		CU_ASSERT(!run.plan.endless);
		CU_ASSERT(length_is(&run, 0.25));
		sum += per_ns * (double)(run.plan.select_end_ts - run.plan.select_ts) /
		       window_plan__probability(&run.plan);
		run_to(&run, WINDOW_DRAINING);
	}
	CU_ASSERT_EQUAL(run.plan.window_cnt, 5);

	until_ts = run.plan.stratum_begin_ts;
	run_to(&run, WINDOW_SELECTING);
	CU_ASSERT(run.plan.endless);
	CU_ASSERT(run.plan.select_ts >= until_ts && run.plan.select_ts <= until_ts + 6 * MS_NS);
	CU_ASSERT_EQUAL(window_plan__probability(&run.plan), 1);
	CU_ASSERT_EQUAL(run.plan.window_cnt, 5);
	CU_ASSERT_DOUBLE_EQUAL(sum, per_ns * (double)(until_ts - run.begin_ts), sum * 1e-6);
	CU_ASSERT_EQUAL(window_plan__window_of(&run.plan, run.begin_ts + SEC_NS), 0);
	CU_ASSERT_EQUAL(window_plan__window_of(&run.plan, until_ts + SEC_NS), 0);
	for (uint64_t i = 1; i <= 5; i++) {
		uint64_t select_ts = run.plan.past[i].select_ts;

		CU_ASSERT_EQUAL(window_plan__window_of(&run.plan, select_ts), i);
		CU_ASSERT_EQUAL(window_plan__window_of(&run.plan, select_ts - 1), i - 1);
	}
}

/* A rate below the share: each window selects as much less. */
static void a_rate_within_windows(void)
{
	struct run run;

	run_init_share(&run, 0.1, 1, 0, 12);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__probability(&run.plan), 0.1, 1e-9);
	window_plan__set_share(&run.plan, 0.5);
	run_to(&run, WINDOW_SELECTING);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__inside(&run.plan), 0.2, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(window_plan__probability(&run.plan), 0.1, 1e-6);
}

/* Every moment of a stratum has the same chance: the windows' places are uniform. */
static void places_are_uniform(void)
{
	enum { CNT = 4000, BINS = 8 };
	uint32_t bins[BINS] = {0};
	double chi2 = 0;
	struct run run;

	run_init(&run, 0.01, 0, 42);
	for (int i = 0; i < CNT; i++) {
		uint64_t room = run.plan.stratum_end_ts - run.plan.stratum_begin_ts - run.plan.length_ns;
		uint64_t at = run.plan.due_ts - run.plan.stratum_begin_ts;

		CU_ASSERT_FATAL(at < room);
		bins[at * BINS / room]++;
		run_to(&run, WINDOW_DRAINING);
	}
	for (int i = 0; i < BINS; i++)
		chi2 += pow(bins[i] - CNT / (double)BINS, 2) / (CNT / (double)BINS);
	CU_ASSERT(chi2 < 35); /* 7 degrees of freedom: more than 35 has a probability of 1e-5; the seed is fixed */
}

/* What never ends holds the hooks for a minute, then for less and less; without a budget for that, hardly at all. */
static void waiting_in_vain_gets_shorter(void)
{
	uint64_t before = 61 * SEC_NS;
	struct run run;

	run_init(&run, 0.01, 0, 4);
	run.drain_ns = UINT64_MAX / 2;
	for (int i = 0; i < 9; i++) {
		uint64_t held_ns;

		do
			run_to(&run, WINDOW_DRAINING);
		while (run_on(&run) != WINDOW_CLOSED);
		held_ns = run.now - run.plan.open_ts;
		CU_ASSERT(held_ns <= before + SEC_NS / 10);
		if (!i)
			CU_ASSERT_DOUBLE_EQUAL(held_ns, 60 * SEC_NS, SEC_NS / 10);
		before = held_ns;
	}
	CU_ASSERT(before < 2 * SEC_NS);
	run.no_hold = true;
	for (int i = 0; i < 9; i++) {
		run_to(&run, WINDOW_CLOSED);
		CU_ASSERT(run.now - run.plan.select_end_ts <= 51 * MS_NS);
	}
}

/* --- slowness in episodes ----------------------------------------------------------------------------------------- */

/* Requests come at one rate; those that arrive in a stall end with it, all others take a millisecond. */
struct episodes {
	uint64_t seconds, every_ns, stall_ns;
	uint64_t stuck_ns; /* after so much of a stall, all clients wait and nothing more arrives */
	uint64_t space_ns; /* between two requests */
};

struct estimate {
	double cnt, sum_ns, slow;
	double censored;
};

/* Each stall begins at a random place in the first half of its turn. */
static bool stall_at(const struct episodes *episodes, uint64_t seed, uint64_t at_ns, uint64_t *into_ns)
{
	uint64_t turn = at_ns / episodes->every_ns, hash = (turn + 1) * (seed * 2 + 1) * 0x9e3779b97f4a7c15ULL;
	uint64_t begin_ns = (uint64_t)((double)(hash >> 11) / 9007199254740992.0 * (double)episodes->every_ns / 2);

	*into_ns = at_ns % episodes->every_ns - begin_ns;
	return at_ns % episodes->every_ns >= begin_ns && *into_ns < episodes->stall_ns;
}

/* Adds the requests that arrive between two moments; the last end of one is returned. */
static uint64_t add_requests(struct estimate *estimate, const struct episodes *episodes, uint64_t seed,
			     uint64_t from_ns, uint64_t to_ns, double weight)
{
	uint64_t last_ns = 0, end_ns = episodes->seconds * SEC_NS;

	for (uint64_t at_ns = (from_ns / episodes->space_ns + 1) * episodes->space_ns; at_ns < to_ns && at_ns < end_ns;
	     at_ns += episodes->space_ns) {
		uint64_t latency_ns = MS_NS, into_ns;

		if (stall_at(episodes, seed, at_ns, &into_ns)) {
			if (into_ns > episodes->stuck_ns)
				continue;
			latency_ns += episodes->stall_ns - into_ns;
		}
		last_ns = at_ns + latency_ns > last_ns ? at_ns + latency_ns : last_ns;
		estimate->cnt += weight;
		estimate->sum_ns += weight * (double)latency_ns;
		estimate->slow += latency_ns > 10 * MS_NS ? weight : 0;
	}
	return last_ns;
}

static void observe(struct estimate *estimate, const struct episodes *episodes, double share, uint64_t seed)
{
	uint64_t open_until_ts = 0;
	struct run run;

	run_init_share(&run, 1, share, episodes->seconds * SEC_NS, seed * 7919);
	while (run.now < run.begin_ts + episodes->seconds * SEC_NS) {
		uint64_t last_ns;

		run.drain_ns = open_until_ts > run.drain_from_ts ? open_until_ts - run.drain_from_ts : 0;
		switch (run_on(&run)) {
		case WINDOW_SELECTING:
			last_ns = add_requests(estimate, episodes, seed, run.plan.select_ts - run.begin_ts,
					       run.plan.select_end_ts - run.begin_ts,
					       1 / window_plan__probability(&run.plan));
			if (run.begin_ts + last_ns > open_until_ts)
				open_until_ts = run.begin_ts + last_ns;
			break;
		case WINDOW_CLOSED:
			estimate->censored += run.now < open_until_ts;
			break;
		default:
			break;
		}
	}
}

/*
 * On average over recordings nothing is over- or underestimated, whatever the duty, and nothing is cut.
 */
static void episodes_are_seen_as_often_as_they_come(void)
{
	static const double shares[] = {0.02, 0.05, 0.1, 0.3};
	const struct episodes episodes = {600, 60 * SEC_NS, 2 * SEC_NS, 2 * SEC_NS, 2 * MS_NS};
	enum { SEEDS = 100 };

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double cnt = 0, mean = 0, slow = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct estimate truth = {0}, estimate = {0};

			add_requests(&truth, &episodes, seed, 0, episodes.seconds * SEC_NS, 1);
			observe(&estimate, &episodes, shares[i], seed);
			cnt += estimate.cnt / truth.cnt / SEEDS;
			mean += estimate.sum_ns / estimate.cnt / (truth.sum_ns / truth.cnt) / SEEDS;
			slow += estimate.slow / estimate.cnt / (truth.slow / truth.cnt) / SEEDS;
			CU_ASSERT_EQUAL(estimate.censored, 0);
		}
		CU_ASSERT_DOUBLE_EQUAL(cnt, 1, 0.01);
		CU_ASSERT_DOUBLE_EQUAL(mean, 1, 0.05);
		CU_ASSERT_DOUBLE_EQUAL(slow, 1, 0.05);
	}
}

/*
 * A stall of half a second every four, in which all clients wait after 160 ms: what is slow arrives in 4 % of the time.
 * At 30 % a recording of 100 s tells the mean to 15 %, in at least 19 of 20.
 */
static void many_short_windows_meet_each_episode(void)
{
	const struct episodes episodes = {100, 4 * SEC_NS, SEC_NS / 2, 160 * MS_NS, 2 * MS_NS};
	enum { SEEDS = 200 };
	int off = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct estimate truth = {0}, estimate = {0};

		add_requests(&truth, &episodes, seed, 0, episodes.seconds * SEC_NS, 1);
		observe(&estimate, &episodes, 0.3, seed);
		off += fabs(estimate.sum_ns / estimate.cnt / (truth.sum_ns / truth.cnt) - 1) > 0.15;
	}
	CU_ASSERT(off <= SEEDS / 20);
}

/* ------------------------------------------------------------------------------------------------------------------ */

/* An agent that comes late for everything selects later, not more, and never goes back in time. */
static void a_late_agent_is_no_matter(void)
{
	uint64_t before = 0;
	struct run run;

	run_init(&run, 0.01, 0, 5);
	run.late_ns = 30 * MS_NS;
	for (int i = 0; i < 200; i++) {
		run_to(&run, WINDOW_SELECTING);
		CU_ASSERT(run.plan.select_ts > before);
		before = run.plan.select_ts;
		CU_ASSERT(length_is(&run, 0.01));
		CU_ASSERT(window_plan__probability(&run.plan) > 0);
		CU_ASSERT(window_plan__probability(&run.plan) <= 0.01 * 1.0001);
		run_to(&run, WINDOW_DRAINING);
	}
}

/* CPUs are busy for the first fifth of each turn. */
#define TURN_NS (1310 * MS_NS)
#define BUSY_NS (262 * MS_NS)

static bool busy_at(const struct run *run, uint64_t ts)
{
	return (ts - run->begin_ts) % TURN_NS < BUSY_NS;
}

/*
 * Attaching takes five times as long while CPUs are busy: windows that began late for it would begin when CPUs are idle
 * again, and the busy time would be seen too rarely.
 */
static void busy_times_are_seen_as_often_as_they_come(void)
{
	static const double shares[] = {0.002, 0.02, 0.1};
	enum { SEEDS = 400, SECONDS = 60 };

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		double estimate = 0;
		uint64_t late_cnt = 0, cnt = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct run run;

			run_init_share(&run, 1, shares[i], SECONDS * SEC_NS, seed * 7919);
			while (run.plan.stratum_begin_ts < run.begin_ts + SECONDS * SEC_NS) {
				uint64_t next_ts = window_plan__next_ts(&run.plan, run.now);

				run.attach_ns =
					busy_at(&run, next_ts > run.now ? next_ts : run.now) ? 25 * MS_NS : 5 * MS_NS;
				if (run_on(&run) != WINDOW_SELECTING)
					continue;
				cnt++;
				late_cnt += run.plan.select_ts > run.plan.due_ts + 5 * MS_NS;
				if (busy_at(&run, (run.plan.select_ts + run.plan.select_end_ts) / 2))
					estimate += (double)(run.plan.select_end_ts - run.plan.select_ts) /
						    window_plan__probability(&run.plan);
			}
		}
		estimate /= (double)SEEDS * SECONDS * SEC_NS;
		CU_ASSERT_DOUBLE_EQUAL(estimate, BUSY_NS / (double)TURN_NS, 0.005);
		CU_ASSERT(late_cnt < cnt / 20);
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
	{"waiting in vain gets shorter", waiting_in_vain_gets_shorter},
	{"episodes are seen as often as they come", episodes_are_seen_as_often_as_they_come},
	{"many short windows meet each episode", many_short_windows_meet_each_episode},
	{"a late agent is no matter", a_late_agent_is_no_matter},
	{"busy times are seen as often as they come", busy_times_are_seen_as_often_as_they_come},
	{"short recordings have a window", short_recordings_have_a_window},
};

int suite_window_plan(void)
{
	return unit_suite("window_plan", tests, sizeof(tests) / sizeof(tests[0]));
}
