// SPDX-License-Identifier: GPL-2.0-or-later
/* When what happens in rounds of refinement. */
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "rounds/rounds_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS    1000000000ULL
#define LOOK_NS_MIN  500000000ULL
#define LOOK_NS_MAX  (5 * SECOND_NS)
#define CHECK_NS     100000000ULL /* between looks at what the probes cost */
#define COUNT_NS     150000000ULL
#define NO_SELECTION 1 /* of 2^32 */
/* Reading the program, and deciding what to probe next, may wait that long for a CPU that nobody wants. */
#define WORK_NS      SECOND_NS
#define RELIEF_SHARE 0.6
#define ANSWER_BYTES 1024 /* of stdin, looked at in one go */

static int rounds_open(struct recording *recording)
{
	const struct rounds_options *options = recording->options->client_options;
	struct rounds *rounds;

	rounds = recording->client = calloc(1, sizeof(*rounds));
	if (rounds)
		rounds->hot = recording->hot = hot_paths__new();
	if (!rounds || !rounds->hot) {
		log_error("out of memory");
		return -ENOMEM;
	}
	rounds->options = *options;
	rounds->chosen = FACTOR_NONE;
	rounds->phase = ROUNDS_OVER;
	return recording->program ? 0 : recording_open_program(recording);
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

static bool rounds_probing(const struct recording *recording)
{
	const struct rounds *rounds = recording->client;

	return rounds && rounds->phase != ROUNDS_LOOKING && rounds->phase != ROUNDS_RESTING &&
	       rounds->phase != ROUNDS_OVER;
}

static struct round_mark mark_now(struct recording *recording)
{
	capture__counts(recording->capture, &recording->counts);
	return (struct round_mark){
		.ts = monotonic_ns(),
		.seen = recording->counts.seen,
		.cpu_ns = recording_cpu_ns(recording),
	};
}

static double per_second(uint64_t from, uint64_t to, const struct round_mark *begin, const struct round_mark *end)
{
	return end->ts > begin->ts && to >= from ? (double)(to - from) * 1e9 / (double)(end->ts - begin->ts) : 0;
}

static int rounds_begin(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	uint64_t duration_ns = recording->options->duration_ns, look_ns;

	if (!rounds)
		return 0;
	snprintf(rounds->analysis.dir, sizeof(rounds->analysis.dir), "%s", recording->dir);
	look_ns = duration_ns / (2 * rounds->options.rounds);
	look_ns = look_ns < LOOK_NS_MIN ? LOOK_NS_MIN : look_ns > LOOK_NS_MAX ? LOOK_NS_MAX : look_ns;
	if (look_ns > duration_ns / 3)
		look_ns = duration_ns / 3;
	rounds->slot_ns = (duration_ns - look_ns) / rounds->options.rounds;
	rounds->phase = ROUNDS_LOOKING;
	rounds->begin = mark_now(recording);
	rounds->slot_end_ts = rounds->begin.ts + look_ns;
	return 0;
}

/* What the session table says of the round; the newest row of a key holds. */
static int write_round(struct recording *recording, const struct round_mark *end, double cost_ns)
{
	const struct rounds *rounds = recording->client;
	double cpu_ns = fmax((double)(end->cpu_ns - rounds->begin.cpu_ns), 1);
	double rate = per_second(rounds->begin.seen, end->seen, &rounds->begin, end);
	char key[64];

	snprintf(key, sizeof(key), "round.%u", rounds->round);
	journal__say(&recording->journal, key, "%" PRIu64 " %" PRIu64, rounds->begin.ts, end->ts);
	snprintf(key, sizeof(key), "round.%u.intervals_per_s", rounds->round);
	journal__say(&recording->journal, key, "%.6g", rate);
	snprintf(key, sizeof(key), "round.%u.probes", rounds->round);
	journal__say(&recording->journal, key, "%u", rounds_probe_cnt(rounds));
	snprintf(key, sizeof(key), "round.%u.cost_share", rounds->round);
	return journal__say(&recording->journal, key, "%.6g", fmin(1, cost_ns / cpu_ns));
}

static void say_round(const struct recording *recording, const struct round_mark *end, double cost_ns)
{
	const struct rounds *rounds = recording->client;
	double rate = per_second(rounds->begin.seen, end->seen, &rounds->begin, end);
	double cpu_ns = fmax((double)(end->cpu_ns - rounds->begin.cpu_ns), 1);
	char change[48] = "";

	if (recording->options->quiet)
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

/* Nothing is selected, and the time does not count. */
static void pause_recording(struct recording *recording)
{
	struct rounds *rounds = recording->client;

	rounds->rate = capture__rate(recording->capture);
	capture__set_rate(recording->capture, NO_SELECTION);
	rounds->paused_ts = rounds->pause_begin_ts = monotonic_ns();
	rounds->pause_cnt++;
}

static void end_pause(struct rounds *rounds)
{
	if (rounds->pause_begin_ts)
		rounds->pauses_ns += monotonic_ns() - rounds->pause_begin_ts;
	rounds->pause_begin_ts = 0;
}

static void resume_recording(struct recording *recording)
{
	struct rounds *rounds = recording->client;

	capture__set_rate(recording->capture, rounds->rate);
	end_pause(rounds);
	if (recording->until_ts != UINT64_MAX)
		recording->until_ts += monotonic_ns() - rounds->paused_ts;
}

/* Functions are of no use to go on with: what is known by category goes on being recorded. */
static void give_up(struct recording *recording, const char *why)
{
	((struct rounds *)recording->client)->phase = ROUNDS_OVER;
	log_progress_end();
	log_warn("%s: causes are told by category, without functions", why);
}

/* Nothing is selected yet: how often is what called that is to be timed? */
static int begin_round(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err;

	rounds->spent_ns = 0;
	recording_take_time(recording, WORK_NS);
	err = rounds_count(recording);
	/* The rest is counted by probes. */
	if (!err)
		err = rounds_attach(recording, true);
	program__forget_tables(recording->program);
	/* Reading the program, and analysing the round before, leave many small holes. */
	malloc_trim(0);
	rounds->phase = ROUNDS_COUNTING;
	rounds->begin = mark_now(recording);
	rounds->slot_end_ts = rounds->begin.ts + (rounds->sets.cnt ? COUNT_NS : 0);
	return err;
}

static int begin_probing(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err = rounds->sets.cnt ? rounds_detach(recording) : 0, cnt = 0;

	if (!err)
		cnt = rounds_fit(recording, 1);
	if (!err && cnt < 0)
		err = cnt;
	if (!err && cnt && !recording->options->quiet) {
		log_progress_end();
		log_info("  %d functions are called too often to be timed within the budget", cnt);
	}
	if (!err)
		err = rounds_attach(recording, false);
	resume_recording(recording);
	rounds->phase = ROUNDS_PROBING;
	rounds->begin = mark_now(recording);
	rounds->slot_end_ts = rounds->round >= rounds->options.rounds ? UINT64_MAX : rounds->begin.ts + rounds->slot_ns;
	rounds->look_ts = rounds->begin.ts + CHECK_NS;
	if (!err && !rounds_probe_cnt(rounds))
		give_up(recording, "the functions in which requests' work begins cannot be probed, or are called too "
				   "often (--budget)");
	return err;
}

static int end_looking(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	struct round_mark end = mark_now(recording);
	int err = write_round(recording, &end, 0);

	rounds->baseline_per_s = per_second(rounds->begin.seen, end.seen, &rounds->begin, &end);
	rounds->cpu_ns_per_s = per_second(rounds->begin.cpu_ns, end.cpu_ns, &rounds->begin, &end);
	if (!recording->options->stacks_hz)
		recording_stacks_stop(recording);
	say_round(recording, &end, 0);
	if (err)
		return err;
	pause_recording(recording);
	recording_take_time(recording, WORK_NS);
	err = rounds_find_roots(recording);
	if (err == -ENOENT) {
		give_up(recording, hot_paths__sample_cnt(rounds->hot)
					   ? "no function was found in which the work of requests begins"
					   : "no stack of a thread at work for a request could be sampled");
		resume_recording(recording);
		return 0;
	}
	rounds->round = 1;
	return err ? err : begin_round(recording);
}

/* The probes go, the round's figures stay. */
static int close_round(struct recording *recording, bool detach)
{
	struct round_mark end = mark_now(recording);
	double cost_ns = rounds_measure(recording);
	int err = write_round(recording, &end, cost_ns);

	say_round(recording, &end, cost_ns);
	return err || !detach ? err : rounds_detach(recording);
}

static int start_analysis(struct recording *recording)
{
	struct rounds *rounds = recording->client;

	pause_recording(recording);
	rounds->phase = ROUNDS_ANALYSING;
	return rounds_analysis_start(recording);
}

/* With other probes: the tree of a round has to be of one set of them. */
static int begin_again(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err;

	if (recording->until_ts != UINT64_MAX)
		recording->until_ts += monotonic_ns() - rounds->begin.ts;
	pause_recording(recording);
	err = rounds_detach(recording);
	if (!err && program__distrusts_returns(recording->program))
		err = rounds_replan(recording);
	if (!err)
		err = rounds_attach(recording, false);
	resume_recording(recording);
	rounds->begin = mark_now(recording);
	if (rounds->slot_end_ts != UINT64_MAX)
		rounds->slot_end_ts = rounds->begin.ts + rounds->slot_ns;
	return err;
}

/* `cnt` probes less. */
static int relieve(struct recording *recording, int cnt)
{
	int err = begin_again(recording);

	if (!err && !recording->options->quiet) {
		log_progress_end();
		log_info("  %d probes taken away: they cost more than all of them together may", cnt);
	}
	return err;
}

/* Looks at what probing costs: what is too dear goes, and when the round's share is used up, all of it. */
static int check_cost(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	double cost_ns = rounds_measure(recording), seconds = (double)(monotonic_ns() - rounds->begin.ts) / 1e9;
	const struct refine_input input = rounds_input(recording, NULL);
	double allowed_ns =
		fmax(rounds->cpu_ns_per_s, 2e8) * recording->options->budget * (double)rounds->slot_ns / 1e9;
	int cnt = 0, err;

	/* What is relieved goes faster, and then costs more again. */
	if (cost_ns / seconds > input.budget_ns_per_s)
		cnt = rounds_fit(recording, RELIEF_SHARE);
	err = cnt < 0 ? cnt : 0;
	if (cnt > 0) {
		err = relieve(recording, cnt);
	} else if (!err && rounds->spent_ns + cost_ns > allowed_ns) {
		pause_recording(recording);
		err = close_round(recording, true);
		resume_recording(recording);
		rounds->phase = ROUNDS_RESTING;
	}
	rounds->look_ts = monotonic_ns() + CHECK_NS;
	return err;
}

/* --- what next ---------------------------------------------------------------------------------------------------- */

static int decide(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	struct refine_function *list;
	struct refine_plan plan = {0};
	struct refine_input input;
	struct factors factors;
	int err = rounds_factors(rounds, &factors);

	list = rounds_list(rounds);
	err = err ? err : list ? 0 : -ENOMEM;
	input = rounds_input(recording, list);
	input.factors = &factors;
	input.only = rounds->chosen;
	if (!err)
		err = refine_decide(&plan, &input);
	if (!err && !recording->options->quiet)
		rounds_say_factors(rounds, &plan);
	if (!err)
		err = rounds_apply(recording, &plan, true);
	if (!err && !recording->options->quiet)
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
static int go_on(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err = 0;

	rounds_analysis_free(rounds);
	if (rounds->sets.cnt)
		err = rounds_detach(recording);
	rounds->round++;
	return err ? err : begin_round(recording);
}

static int next_round(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err;

	recording_take_time(recording, WORK_NS);
	err = decide(recording);

	if (err || rounds_probe_cnt(rounds))
		return err ? err : go_on(recording);
	/* The round that found this out stays the last one. */
	rounds_analysis_free(rounds);
	if (rounds->sets.cnt)
		err = rounds_detach(recording);
	resume_recording(recording);
	rounds->phase = ROUNDS_OVER;
	if (!recording->options->quiet)
		log_info("  no function contributes enough to be probed any longer");
	return err;
}

/* A function that can be chosen: only variances can be broken down further, and of some nothing was measured. */
static const struct factor_line *choice(const struct rounds *rounds, size_t number)
{
	const struct factor_report *report = rounds->analysis.findings.report.factors;
	const struct factor_line *line;

	if (!number || number > report->line_cnt)
		return NULL;
	line = &report->lines[number - 1];
	return line->functions[1] || isnan(line->contribution) ? NULL : line;
}

static void ask(const struct rounds *rounds)
{
	log_progress_end();
	fprintf(stderr, "Which function is to be opened next?\n");
	for (size_t number = 1; number <= rounds->analysis.findings.report.factors->line_cnt; number++) {
		const struct factor_line *line = choice(rounds, number);

		char *name = line ? utf8_printable(line->functions[0], utf8_locale()) : NULL;

		if (line)
			fprintf(stderr, "%4zu  %3.0f %%  %s%s\n", number, line->contribution * 100, name ? name : "?",
				line->body[0] ? " itself" : "");
		free(name);
	}
	fprintf(stderr, "A number, u and a number to take out one that you understand, or Enter to leave the choice "
			"to whylate: ");
}

/* Takes what has come on stdin: true when a line is complete.  After the last one nobody is asked any more. */
static bool read_answer(struct rounds *rounds)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct round_answer *answer = &rounds->answer;
	char c;

	/* Whatever comes, the rings are looked at again soon. */
	for (int i = 0; i < ANSWER_BYTES && poll(&input, 1, 0) > 0; i++) {
		ssize_t got = read(STDIN_FILENO, &c, 1);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			return false;
		if (got <= 0) {
			rounds->options.interactive = false;
			return true;
		}
		if (c == '\n')
			return true;
		if (answer->len < sizeof(answer->text) - 1)
			answer->text[answer->len] = isprint((unsigned char)c) ? c : ' ';
		answer->len++;
	}
	return false;
}

/* The line of that number is understood. */
static void take_out(struct rounds *rounds, const struct factor_line *line)
{
	char name[1024];

	snprintf(name, sizeof(name), "%s%s", line->functions[0], line->body[0] ? FACTOR_ITSELF : "");
	if (factor_names_add(rounds->options.understood, name))
		log_warn("out of memory: %s stays in", name);
	else
		rounds->again = true;
}

/* False: it has not been given yet, or makes no sense and is asked for again. */
static bool take_answer(struct rounds *rounds)
{
	const struct factor_line *line = NULL;
	struct round_answer answer;
	bool is_cut, is_empty;
	const char *text;
	char *end;

	if (!read_answer(rounds))
		return false;
	answer = rounds->answer;
	rounds->answer = (struct round_answer){0};
	rounds->chosen = FACTOR_NONE;
	text = answer.text + strspn(answer.text, " ");
	is_cut = answer.len >= sizeof(answer.text);
	is_empty = !*text && !is_cut;
	if (!is_empty) {
		bool understood = *text == 'u';
		unsigned long number = strtoul(text + understood, &end, 10);

		line = end[strspn(end, " ")] || is_cut ? NULL : choice(rounds, number);
		if (line && understood) {
			take_out(rounds, line);
			return false;
		}
		if (line)
			rounds->chosen = line->symbols[0];
		else
			fprintf(stderr, "There is no function of number %s%s\n", text, is_cut ? "…" : "");
	}
	if (!rounds->options.interactive)
		log_info("nobody answers any more: the choice is whylate's");
	else if (!line && !is_empty)
		ask(rounds);
	return line || is_empty || !rounds->options.interactive;
}

static int end_analysis(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err = rounds_analysis_wait(rounds);

	if (err || !rounds->analysis.findings.report.factors || !rounds->analysis.findings.report.factors->intervals) {
		/* Nothing came while functions were probed; perhaps it will. */
		log_progress_end();
		log_warn("round %u saw no request to analyse%s%s", rounds->round, err ? ": " : "",
			 err ? strerror(-err) : "");
		return go_on(recording);
	}
	if (!rounds->options.interactive)
		return next_round(recording);
	rounds->phase = ROUNDS_CHOOSING;
	ask(rounds);
	return 0;
}

/* The same round without what the user understands by now. */
static int analyse_again(struct recording *recording)
{
	struct rounds *rounds = recording->client;

	rounds->again = false;
	rounds_analysis_free(rounds);
	rounds->phase = ROUNDS_ANALYSING;
	return rounds_analysis_start(recording);
}

static int rounds_step(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	uint64_t now;
	int err;

	if (!rounds)
		return 0;
	now = monotonic_ns();
	if (rounds->phase == ROUNDS_COUNTING || rounds->phase == ROUNDS_ANALYSING || rounds->phase == ROUNDS_CHOOSING) {
		recording->until_ts += recording->until_ts == UINT64_MAX ? 0 : now - rounds->paused_ts;
		rounds->paused_ts = now;
	}
	switch (rounds->phase) {
	case ROUNDS_LOOKING:
		return now >= rounds->slot_end_ts ? end_looking(recording) : 0;
	case ROUNDS_COUNTING:
		return now >= rounds->slot_end_ts ? begin_probing(recording) : 0;
	case ROUNDS_PROBING:
		if (now >= rounds->slot_end_ts) {
			err = close_round(recording, false);
			return err ? err : start_analysis(recording);
		}
		return now >= rounds->look_ts ? check_cost(recording) : 0;
	case ROUNDS_RESTING:
		return now >= rounds->slot_end_ts ? start_analysis(recording) : 0;
	case ROUNDS_ANALYSING:
		if (rounds_analysis_done(rounds))
			return end_analysis(recording);
		rounds_analysis_hurry(rounds, now);
		return 0;
	case ROUNDS_CHOOSING:
		if (take_answer(rounds))
			return next_round(recording);
		return rounds->again ? analyse_again(recording) : 0;
	case ROUNDS_OVER:
		break;
	}
	return 0;
}

static int rounds_distrust_returns(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err = 0;

	if (!rounds)
		return 0;
	if (rounds->phase == ROUNDS_PROBING) {
		err = begin_again(recording);
		if (!err && !rounds_probe_cnt(rounds))
			give_up(recording, "what was probed can no longer be");
		return err;
	}
	/* What is counted has no return probes. */
	if (rounds->phase != ROUNDS_COUNTING && rounds->sets.cnt)
		err = rounds_detach(recording);
	return err ? err : rounds_replan(recording);
}

static int rounds_end(struct recording *recording)
{
	struct rounds *rounds = recording->client;
	int err = 0;

	if (!rounds)
		return 0;
	if (rounds->phase == ROUNDS_PROBING)
		err = close_round(recording, false);
	else if (rounds->phase == ROUNDS_LOOKING)
		give_up(recording, "the recording ended before a function was probed");
	rounds->phase = ROUNDS_OVER;
	rounds_analysis_free(rounds);
	end_pause(rounds);
	if (!err && rounds->pause_cnt)
		err = journal__say(&recording->journal, "note.pauses",
				   "no request was selected for %.2f s in %u pauses, while calls were counted, probes "
				   "moved and rounds analysed: no figure tells how long requests took then",
				   (double)rounds->pauses_ns / 1e9, rounds->pause_cnt);
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
