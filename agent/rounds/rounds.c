// SPDX-License-Identifier: GPL-2.0-or-later
/* When what happens in rounds of refinement. */
#include "base/clock.h"
#include "base/log.h"
#include "rounds/rounds_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS   1000000000ULL
#define LOOK_NS_MIN 500000000ULL
#define LOOK_NS_MAX (5 * SECOND_NS)
#define CHECK_NS    100000000ULL /* between looks at what the probes cost */
#define COUNT_NS    150000000ULL
/* Reading the program, and deciding what to probe next, may wait that long for a CPU that nobody wants. */
#define WORK_NS      SECOND_NS
#define RELIEF_SHARE 0.6

static int rounds_open(struct recording *recording, const void *options, void **client)
{
	struct rounds *rounds = calloc(1, sizeof(*rounds));

	*client = rounds;
	if (rounds)
		rounds->hot = hot_paths__new();
	if (!rounds || !rounds->hot) {
		log_error("out of memory");
		return -ENOMEM;
	}
	rounds->recording = recording;
	rounds->record = session__options(recording);
	rounds->options = *(const struct rounds_options *)options;
	rounds->chosen = FACTOR_NONE;
	rounds->phase = ROUNDS_OVER;
	session__learn(recording, rounds->hot);
	return session__program(recording, &rounds->program);
}

static void rounds_free(void *client)
{
	struct rounds *rounds = client;

	if (!rounds)
		return;
	rounds_analysis_free(rounds);
	for (size_t i = 0; i < rounds->functions.cnt; i++) {
		plan_free(&rounds->functions.items[i].plan);
		plan_free(&rounds->functions.items[i].count_plan);
	}
	for (size_t i = 0; i < rounds->sets.cnt; i++)
		free(rounds->sets.items[i].functions);
	vec_free(&rounds->functions);
	vec_free(&rounds->sets);
	vec_free(&rounds->children);
	idmap__free(&rounds->function_ids);
	hot_paths__free(rounds->hot);
	free(rounds);
}

static bool rounds_probing(const void *client)
{
	const struct rounds *rounds = client;

	return rounds->phase != ROUNDS_LOOKING && rounds->phase != ROUNDS_RESTING && rounds->phase != ROUNDS_OVER;
}

static double per_second(uint64_t from, uint64_t to, const struct session_moment *begin,
			 const struct session_moment *end)
{
	return end->ts > begin->ts && to >= from ? (double)(to - from) * 1e9 / (double)(end->ts - begin->ts) : 0;
}

static int rounds_begin(void *client)
{
	struct rounds *rounds = client;
	uint64_t duration_ns = rounds->record->duration_ns, look_ns;

	snprintf(rounds->analysis.dir, sizeof(rounds->analysis.dir), "%s", session__dir(rounds->recording));
	look_ns = duration_ns / (2 * rounds->options.rounds);
	look_ns = look_ns < LOOK_NS_MIN ? LOOK_NS_MIN : look_ns > LOOK_NS_MAX ? LOOK_NS_MAX : look_ns;
	if (look_ns > duration_ns / 3)
		look_ns = duration_ns / 3;
	rounds->slot_ns = (duration_ns - look_ns) / rounds->options.rounds;
	rounds->phase = ROUNDS_LOOKING;
	rounds->begin = session__now(rounds->recording);
	rounds->slot_end_ts = rounds->begin.ts + look_ns;
	return 0;
}

/* What the session table says of the round; the newest row of a key holds. */
static int write_round(struct rounds *rounds, const struct session_moment *end, double cost_ns)
{
	double cpu_ns = fmax((double)(end->cpu_ns - rounds->begin.cpu_ns), 1);
	double rate = per_second(rounds->begin.seen, end->seen, &rounds->begin, end);
	char key[64];

	snprintf(key, sizeof(key), "round.%u", rounds->round);
	journal__say(session__journal(rounds->recording), key, "%" PRIu64 " %" PRIu64, rounds->begin.ts, end->ts);
	snprintf(key, sizeof(key), "round.%u.intervals_per_s", rounds->round);
	journal__say(session__journal(rounds->recording), key, "%.6g", rate);
	snprintf(key, sizeof(key), "round.%u.probes", rounds->round);
	journal__say(session__journal(rounds->recording), key, "%u", rounds_probe_cnt(rounds));
	snprintf(key, sizeof(key), "round.%u.cost_share", rounds->round);
	return journal__say(session__journal(rounds->recording), key, "%.6g", fmin(1, cost_ns / cpu_ns));
}

static void say_round(const struct rounds *rounds, const struct session_moment *end, double cost_ns)
{
	double rate = per_second(rounds->begin.seen, end->seen, &rounds->begin, end);
	double cpu_ns = fmax((double)(end->cpu_ns - rounds->begin.cpu_ns), 1);
	char change[48] = "";

	if (rounds->record->quiet)
		return;
	log_progress_end();
	if (!rounds->round) {
		log_info("round 0: %.0f requests a second, and %" PRIu64 " stacks to learn from", rate,
			 hot_paths__sample_cnt(rounds->hot));
		return;
	}
	if (rounds->baseline_per_s > 0)
		snprintf(change, sizeof(change), " (%+.1f %%)", 100 * (rate / rounds->baseline_per_s - 1));
	log_info("round %u: %u functions probed for %.2f s; %.0f requests a second%s; probes cost %.1f %% of the "
		 "target's CPU time meanwhile",
		 rounds->round, rounds_probe_cnt(rounds), (double)(end->ts - rounds->begin.ts) / 1e9, rate, change,
		 100 * fmin(1, cost_ns / cpu_ns));
}

/* Functions are of no use to go on with: what is known by category goes on being recorded. */
static void give_up(struct rounds *rounds, const char *why)
{
	rounds->phase = ROUNDS_OVER;
	log_progress_end();
	log_warn("%s: causes are told by category, without functions", why);
}

/* Nothing is selected yet: how often is what called that is to be timed? */
static int begin_round(struct rounds *rounds)
{
	int err;

	rounds->spent_ns = 0;
	session__take_time(rounds->recording, WORK_NS);
	err = rounds_count(rounds);
	/* The rest is counted by probes. */
	if (!err)
		err = rounds_attach(rounds, true);
	program__forget_tables(rounds->program);
	/* Reading the program, and analysing the round before, leave many small holes. */
	malloc_trim(0);
	rounds->phase = ROUNDS_COUNTING;
	rounds->begin = session__now(rounds->recording);
	rounds->slot_end_ts = rounds->begin.ts + (rounds->sets.cnt ? COUNT_NS : 0);
	return err;
}

static int begin_probing(struct rounds *rounds)
{
	int err = rounds->sets.cnt ? rounds_detach(rounds) : 0, cnt = 0;

	if (!err)
		cnt = rounds_fit(rounds, 1);
	if (!err && cnt < 0)
		err = cnt;
	if (!err && cnt && !rounds->record->quiet) {
		log_progress_end();
		log_info("  %d functions are called too often to be timed within the budget", cnt);
	}
	if (!err)
		err = rounds_attach(rounds, false);
	session__resume(rounds->recording);
	rounds->phase = ROUNDS_PROBING;
	rounds->begin = session__now(rounds->recording);
	rounds->slot_end_ts = rounds->round >= rounds->options.rounds ? UINT64_MAX : rounds->begin.ts + rounds->slot_ns;
	rounds->look_ts = rounds->begin.ts + CHECK_NS;
	if (!err && !rounds_probe_cnt(rounds))
		give_up(rounds, "the functions in which requests' work begins cannot be probed, or are called too "
				"often (--budget)");
	return err;
}

static int end_looking(struct rounds *rounds)
{
	struct session_moment end = session__now(rounds->recording);
	int err = write_round(rounds, &end, 0);

	rounds->baseline_per_s = per_second(rounds->begin.seen, end.seen, &rounds->begin, &end);
	rounds->cpu_ns_per_s = per_second(rounds->begin.cpu_ns, end.cpu_ns, &rounds->begin, &end);
	if (!rounds->record->stacks_hz)
		session__stop_stacks(rounds->recording);
	say_round(rounds, &end, 0);
	if (err)
		return err;
	session__pause(rounds->recording);
	session__take_time(rounds->recording, WORK_NS);
	err = rounds_find_roots(rounds);
	if (err == -ENOENT) {
		give_up(rounds, hot_paths__sample_cnt(rounds->hot)
					? "no function was found in which the work of requests begins"
					: "no stack of a thread at work for a request could be sampled");
		session__resume(rounds->recording);
		return 0;
	}
	rounds->round = 1;
	return err ? err : begin_round(rounds);
}

/* The probes go, the round's figures stay. */
static int close_round(struct rounds *rounds, bool detach)
{
	struct session_moment end = session__now(rounds->recording);
	double cost_ns = rounds_measure(rounds);
	int err = write_round(rounds, &end, cost_ns);

	say_round(rounds, &end, cost_ns);
	return err || !detach ? err : rounds_detach(rounds);
}

static int start_analysis(struct rounds *rounds)
{

	session__pause(rounds->recording);
	rounds->phase = ROUNDS_ANALYSING;
	return rounds_analysis_start(rounds);
}

/* With other probes: the tree of a round has to be of one set of them. */
static int begin_again(struct rounds *rounds)
{
	int err;

	session__extend(rounds->recording, monotonic_ns() - rounds->begin.ts);
	session__pause(rounds->recording);
	err = rounds_detach(rounds);
	if (!err && program__distrusts_returns(rounds->program))
		err = rounds_replan(rounds);
	if (!err)
		err = rounds_attach(rounds, false);
	session__resume(rounds->recording);
	rounds->begin = session__now(rounds->recording);
	if (rounds->slot_end_ts != UINT64_MAX)
		rounds->slot_end_ts = rounds->begin.ts + rounds->slot_ns;
	return err;
}

/* `cnt` probes less. */
static int relieve(struct rounds *rounds, int cnt)
{
	int err = begin_again(rounds);

	if (!err && !rounds->record->quiet) {
		log_progress_end();
		log_info("  %d probes taken away: they cost more than all of them together may", cnt);
	}
	return err;
}

/* Looks at what probing costs: what is too dear goes, and when the round's share is used up, all of it. */
static int check_cost(struct rounds *rounds)
{
	double cost_ns = rounds_measure(rounds), seconds = (double)(monotonic_ns() - rounds->begin.ts) / 1e9;
	const struct refine_input input = rounds_input(rounds, NULL);
	double allowed_ns = fmax(rounds->cpu_ns_per_s, 2e8) * rounds->record->budget * (double)rounds->slot_ns / 1e9;
	int cnt = 0, err;

	/* What is relieved goes faster, and then costs more again. */
	if (cost_ns / seconds > input.budget_ns_per_s)
		cnt = rounds_fit(rounds, RELIEF_SHARE);
	err = cnt < 0 ? cnt : 0;
	if (cnt > 0) {
		err = relieve(rounds, cnt);
	} else if (!err && rounds->spent_ns + cost_ns > allowed_ns) {
		session__pause(rounds->recording);
		err = close_round(rounds, true);
		session__resume(rounds->recording);
		rounds->phase = ROUNDS_RESTING;
	}
	rounds->look_ts = monotonic_ns() + CHECK_NS;
	return err;
}

/* --- what next ---------------------------------------------------------------------------------------------------- */

static int decide(struct rounds *rounds)
{
	struct refine_function *list;
	struct refine_plan plan = {0};
	struct refine_input input;
	struct factors factors;
	int err = rounds_factors(rounds, &factors);

	list = rounds_list(rounds);
	err = err ? err : list ? 0 : -ENOMEM;
	input = rounds_input(rounds, list);
	input.factors = &factors;
	input.only = rounds->chosen;
	if (!err)
		err = refine_decide(&plan, &input);
	if (!err && !rounds->record->quiet)
		rounds_say_factors(rounds, &plan);
	if (!err)
		err = rounds_apply(rounds, &plan, true);
	if (!err && !rounds->record->quiet)
		log_info("  %zu probes taken away, %zu more set%s", plan.detach.cnt, plan.attach.cnt,
			 plan.done ? "; nothing is left to open" : "");
	/* The last set goes on being probed for the rest of the time. */
	if (plan.done && rounds->chosen == FACTOR_NONE)
		rounds->options.rounds = rounds->round + 1;
	refine_plan_free(&plan);
	factors_free(&factors);
	free(list);
	return err;
}

/* The next round, with the probes that are marked by now. */
static int go_on(struct rounds *rounds)
{
	int err = 0;

	rounds_analysis_free(rounds);
	if (rounds->sets.cnt)
		err = rounds_detach(rounds);
	rounds->round++;
	return err ? err : begin_round(rounds);
}

static int next_round(struct rounds *rounds)
{
	int err;

	session__take_time(rounds->recording, WORK_NS);
	err = decide(rounds);

	if (err || rounds_probe_cnt(rounds))
		return err ? err : go_on(rounds);
	/* The round that found this out stays the last one. */
	rounds_analysis_free(rounds);
	if (rounds->sets.cnt)
		err = rounds_detach(rounds);
	session__resume(rounds->recording);
	rounds->phase = ROUNDS_OVER;
	if (!rounds->record->quiet)
		log_info("  no function contributes enough to be probed any longer");
	return err;
}

static int end_analysis(struct rounds *rounds)
{
	int err = rounds_analysis_wait(rounds);

	if (err || !rounds->analysis.findings.report.factors || !rounds->analysis.findings.report.factors->intervals) {
		/* Nothing came while functions were probed; perhaps it will. */
		log_progress_end();
		log_warn("round %u saw no request to analyse%s%s", rounds->round, err ? ": " : "",
			 err ? strerror(-err) : "");
		return go_on(rounds);
	}
	if (!rounds->options.interactive)
		return next_round(rounds);
	rounds->phase = ROUNDS_CHOOSING;
	rounds_ask(rounds);
	return 0;
}

/* The same round without what the user understands by now. */
static int analyse_again(struct rounds *rounds)
{

	rounds->again = false;
	rounds_analysis_free(rounds);
	rounds->phase = ROUNDS_ANALYSING;
	return rounds_analysis_start(rounds);
}

static int rounds_step(void *client)
{
	struct rounds *rounds = client;
	uint64_t now = monotonic_ns();
	int err;

	switch (rounds->phase) {
	case ROUNDS_LOOKING:
		return now >= rounds->slot_end_ts ? end_looking(rounds) : 0;
	case ROUNDS_COUNTING:
		return now >= rounds->slot_end_ts ? begin_probing(rounds) : 0;
	case ROUNDS_PROBING:
		if (now >= rounds->slot_end_ts) {
			err = close_round(rounds, false);
			return err ? err : start_analysis(rounds);
		}
		return now >= rounds->look_ts ? check_cost(rounds) : 0;
	case ROUNDS_RESTING:
		return now >= rounds->slot_end_ts ? start_analysis(rounds) : 0;
	case ROUNDS_ANALYSING:
		if (rounds_analysis_done(rounds))
			return end_analysis(rounds);
		rounds_analysis_hurry(rounds, now);
		return 0;
	case ROUNDS_CHOOSING:
		if (rounds_take_answer(rounds))
			return next_round(rounds);
		return rounds->again ? analyse_again(rounds) : 0;
	case ROUNDS_OVER:
		break;
	}
	return 0;
}

static int rounds_distrust_returns(void *client)
{
	struct rounds *rounds = client;
	int err = 0;

	if (rounds->phase == ROUNDS_PROBING) {
		err = begin_again(rounds);
		if (!err && !rounds_probe_cnt(rounds))
			give_up(rounds, "what was probed can no longer be");
		return err;
	}
	/* What is counted has no return probes. */
	if (rounds->phase != ROUNDS_COUNTING && rounds->sets.cnt)
		err = rounds_detach(rounds);
	return err ? err : rounds_replan(rounds);
}

static int rounds_end(void *client)
{
	struct rounds *rounds = client;
	uint64_t pauses_ns;
	uint32_t pause_cnt;
	int err = 0;

	if (rounds->phase == ROUNDS_PROBING)
		err = close_round(rounds, false);
	else if (rounds->phase == ROUNDS_LOOKING)
		give_up(rounds, "the recording ended before a function was probed");
	rounds->phase = ROUNDS_OVER;
	rounds_analysis_free(rounds);
	pauses_ns = session__pauses(rounds->recording, &pause_cnt);
	if (!err && pause_cnt)
		err = journal__say(session__journal(rounds->recording), "note.pauses",
				   "no request was selected for %.2f s in %u pauses, while calls were counted, probes "
				   "moved and rounds analysed: no figure tells how long requests took then",
				   (double)pauses_ns / 1e9, pause_cnt);
	return err;
}

const struct session_client rounds_client = {
	.probes = true,
	.why_always = "functions are probed in rounds",
	.stacks_hz = ROUNDS_STACKS_HZ,
	.open = rounds_open,
	.begin = rounds_begin,
	.step = rounds_step,
	.distrust_returns = rounds_distrust_returns,
	.is_probing = rounds_probing,
	.end = rounds_end,
	.free = rounds_free,
};
