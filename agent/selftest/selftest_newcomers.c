// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The part of the self-test whose processes come while it records: children of the witness, which are probed from
 * their first instruction to their last, and somebody else who runs its program, of whom nothing is to be recorded.
 * For that the witness has a program file of its own.
 */
#include "capture/probes.h"
#include "selftest/selftest_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PACED_CALLS    300 /* while the links are exchanged */
#define AFTER_CALLS    40  /* after that */
#define STRANGER_CALLS 50  /* both times */
#define PATIENCE       4   /* times as long as anything else is awaited */
/* One thread calls: at the moment of the exchange it is in one call at most. */
#define TORN_MAX 1

static const char *const newcomers_name = "probe.newcomers", *const stranger_name = "probe.stranger";

static bool says_why_not(struct check *check, int err, const struct witness_answer *answer)
{
	if (err || answer->report.why[0])
		check_fail(check, "a witness process failed: %s", err ? strerror(-err) : answer->report.why);
	return err || answer->report.why[0];
}

/* Of all calls since the capture began, whosever they are: nobody but the witness is to have any. */
struct tally {
	uint64_t intervals, entries, exits;
};

static struct tally tally(const struct stage *stage)
{
	struct tally now = {.intervals = stage->interval_cnt};
	struct probe_hits hits[STAGE_PROBE_CNT];

	capture__probe_hits(stage->capture, stage->probes, hits);
	for (size_t i = 0; i < STAGE_PROBE_CNT; i++) {
		now.entries += hits[i].entries;
		now.exits += hits[i].exits;
	}
	return now;
}

/* So many calls since then, each seen once, but for so many whose hits two links may have shared. */
static void check_calls(struct stage *stage, struct check *check, uint64_t cnt, uint64_t torn_max,
			const struct tally *before)
{
	struct tally now;
	uint64_t entries, exits;

	stage_await(stage, stage_accounted, NULL);
	now = tally(stage);
	entries = now.entries - before->entries;
	exits = now.exits - before->exits;
	check_near(check, cnt, now.intervals - before->intervals, torn_max);
	if (check->ok &&
	    (entries < check->low || entries > cnt + torn_max || exits < check->low || exits > cnt + torn_max))
		check_fail(check, "%" PRIu64 " entries and %" PRIu64 " exits were counted of %" PRIu64 " calls",
			   entries, exits, cnt);
}

/* --- children ----------------------------------------------------------------------------------------------------- */

/* The children that come make their calls, then the one that was there before the probes makes one. */
static bool children_call(struct stage *stage, struct check *check, uint64_t *call_cnt)
{
	struct witness_answer brood, slept, ended = {};

	if (!stage_ask(stage, check, WITNESS_BROOD, 0, &brood) || says_why_not(check, 0, &brood) ||
	    !stage_ask(stage, check, WITNESS_CHILD_GO, 0, &slept) ||
	    says_why_not(check, witness_answer(&stage->witness, &ended), &ended))
		return false;
	*call_cnt = brood.report.inner + 1;
	return true;
}

static void check_newcomers(struct stage *stage)
{
	struct check *check = stage_check(stage, newcomers_name, HOOK_FEATURE_PROBE, "calls");
	struct capture_unprobed unprobed;
	struct tally before;
	uint64_t call_cnt;

	if (!check)
		return;
	stage_forget(stage);
	before = tally(stage);
	if (!children_call(stage, check, &call_cnt))
		return;
	check_calls(stage, check, call_cnt, 0, &before);
	unprobed = capture__unprobed(stage->capture);
	if (check->ok && stage->adopt_err)
		check_fail(check, "a child could not be probed: %s", strerror(-stage->adopt_err));
	if (check->ok && unprobed.cnt)
		check_fail(check, "%" PRIu64 " children had no probes at first", unprobed.cnt);
}

/* --- somebody else ------------------------------------------------------------------------------------------------ */

static bool text_is_whole(const struct stage *stage, const void *want)
{
	struct witness *const *stranger = want;
	struct witness_answer answer;

	(void)stage;
	return !witness_order(*stranger, WITNESS_TEXT, 0) && !witness_answer(*stranger, &answer) &&
	       answer.report.object == witness_text();
}

/* Both call, and what the stranger answers is heard; the witness's own answer is not awaited. */
static bool both_call(struct stage *stage, struct check *check, struct witness *stranger, enum witness_task task,
		      uint32_t cnt)
{
	struct witness_answer answer = {};
	int err = witness_order(&stage->witness, task, cnt);

	if (!err)
		err = witness_order(stranger, WITNESS_BURST, STRANGER_CALLS);
	if (!err)
		err = witness_answer(stranger, &answer);
	return !says_why_not(check, err, &answer);
}

static bool witness_is_done(struct stage *stage, struct check *check)
{
	struct witness_answer answer = {};

	return !says_why_not(check, witness_answer(&stage->witness, &answer), &answer);
}

/*
 * No call but the one of that moment is missed or taken for two when the links are exchanged; and the stranger is rid
 * of them.
 */
static void meet(struct stage *stage, struct check *check, struct witness *stranger)
{
	struct tally before;
	bool is_whole = false;

	stage_forget(stage);
	before = tally(stage);
	if (text_is_whole(stage, &stranger)) {
		check_fail(check, "somebody else who runs the program has no probe in it: each link names a process");
		return;
	}
	if (!both_call(stage, check, stranger, WITNESS_PACED, PACED_CALLS))
		return;
	/* Some kernels take seconds to take a probe out. */
	for (int i = 0; i < PATIENCE && !is_whole; i++)
		is_whole = stage_await(stage, text_is_whole, &stranger);
	if (!witness_is_done(stage, check) || !both_call(stage, check, stranger, WITNESS_BURST, AFTER_CALLS) ||
	    !witness_is_done(stage, check))
		return;
	check_calls(stage, check, PACED_CALLS + AFTER_CALLS, TORN_MAX, &before);
	if (check->ok && !is_whole)
		check_fail(check, "somebody else who runs the program still has probes in it");
}

static void check_stranger(struct stage *stage, int program_fd)
{
	struct check *check = stage_check(stage, stranger_name, HOOK_FEATURE_PROBE, "calls");
	struct witness stranger;
	int err;

	if (!check)
		return;
	err = witness_start(&stranger, program_fd);
	if (err) {
		check_fail(check, "a second witness process could not be started: %s", strerror(-err));
		return;
	}
	meet(stage, check, &stranger);
	witness_stop(&stranger);
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

static void open_and_check(struct stage *stage, int program_fd)
{
	struct witness_answer forked = {};
	int err = witness_start(&stage->witness, program_fd);
	struct check *check;

	if (!err)
		err = witness_order(&stage->witness, WITNESS_FORK, 0);
	if (!err)
		err = witness_answer(&stage->witness, &forked);
	if (err || forked.report.why[0]) {
		check = stage_line(stage, newcomers_name, "", "");
		if (check)
			says_why_not(check, err, &forked);
	} else if (stage_open(stage, newcomers_name, STAGE_NEWCOMERS)) {
		check_newcomers(stage);
		check_stranger(stage, program_fd);
	}
	stage_close(stage);
	witness_stop(&stage->witness);
}

static void skip_all(struct stage *stage, const char *why)
{
	const char *const names[] = {newcomers_name, stranger_name};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct check *check = stage_line(stage, names[i], features[HOOK_FEATURE_PROBE].name, "calls");

		if (check)
			check_skip(check, "%s", why);
	}
}

void selftest_newcomers(const struct selftest_options *options, checks *list, uint32_t probe_tier)
{
	struct stage stage = {.options = options, .list = list};
	char why[CHECK_WHY_LEN];
	int program_fd;

	if (probe_tier != 1) {
		skip_all(&stage, "there is no link that names no process without uprobe_multi: children are probed "
				 "when they are seen");
		return;
	}
	program_fd = witness_program();
	if (program_fd < 0) {
		snprintf(why, sizeof(why), "no program file of its own for the witness process: %s",
			 strerror(-program_fd));
		skip_all(&stage, why);
		return;
	}
	open_and_check(&stage, program_fd);
	close(program_fd);
}
