// SPDX-License-Identifier: GPL-2.0-or-later
/* The part of the self-test whose intervals are calls of a function: everything that can happen to a thread. */
#include "capture/breakpoints.h"
#include "selftest/selftest_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXACT_CALLS 40   /* fit into the ring */
#define LOSS_CALLS  5000 /* do not */

static const struct {
	const char *name;
	enum hook_feature feature;
	const char *unit;
} deeds[DEED_CNT] = {
#define DEED(id, name, feature, unit, measure, states) {name, HOOK_FEATURE_##feature, unit},
#include "selftest/deed.def"
};

/* What the witness says it did, to be found among the records. */
struct sighting {
	uint32_t type, tid;
	uint64_t before_ts, after_ts;
	uint32_t cnt;
};

static bool matches(const struct wl_interval_record *record, const struct sighting *sighting)
{
	return record->type == sighting->type && record->tid == sighting->tid &&
	       record->end_ts >= sighting->before_ts && record->begin_ts <= sighting->after_ts;
}

static uint32_t sightings(const struct stage *stage, const struct sighting *sighting,
			  const struct wl_interval_record **first)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < stage->intervals.cnt; i++)
		if (matches(&stage->intervals.items[i], sighting) && !cnt++ && first)
			*first = &stage->intervals.items[i];
	return cnt;
}

static bool seen_enough(const struct stage *stage, const void *want)
{
	const struct sighting *sighting = want;

	return sightings(stage, sighting, NULL) >= sighting->cnt;
}

static void judge_seen(struct stage *stage, enum deed_kind kind, const struct deed_report *report,
		       struct check_rounds *rounds)
{
	struct sighting sighting = {stage_type(0), report->tid, report->before_ts, report->after_ts, 1};
	const struct wl_interval_record *record = NULL;
	struct check_round round;

	if (!stage_await(stage, seen_enough, &sighting)) {
		rounds->tried++;
		rounds->unseen++;
		return;
	}
	sightings(stage, &sighting, &record);
	deed_judge(kind, record, report, &round);
	check_rounds_add(rounds, &round, record_flagged(record));
}

static void check_deed(struct stage *stage, enum deed_kind kind)
{
	struct check *check = stage_check(stage, deeds[kind].name, deeds[kind].feature, deeds[kind].unit);
	struct check_rounds rounds = {};
	struct witness_answer answer;
	uint32_t nothing = 0;

	if (!check)
		return;
	while (!check_rounds_enough(&rounds) && nothing < CHECK_ROUNDS) {
		stage_forget(stage);
		if (!stage_ask(stage, check, WITNESS_DO, kind, &answer))
			return;
		if (!answer.report.why[0]) {
			judge_seen(stage, kind, &answer.report, &rounds);
			continue;
		}
		/* Once more, perhaps, if it was done and had no effect. */
		nothing += answer.report.before_ts ? 1 : CHECK_ROUNDS;
	}
	if (rounds.tried)
		check_conclude(check, &rounds);
	else
		check_skip(check, "%s", answer.report.why);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static void check_calls(struct stage *stage)
{
	struct check *check = stage_check(stage, "probe.calls", HOOK_FEATURE_PROBE, "calls");
	struct witness_answer answer;
	struct sighting sighting;

	if (!check)
		return;
	stage_forget(stage);
	if (!stage_ask(stage, check, WITNESS_BURST, EXACT_CALLS, &answer))
		return;
	sighting = (struct sighting){stage_type(1), answer.report.tid, answer.report.before_ts, answer.report.after_ts,
				     EXACT_CALLS};
	stage_await(stage, seen_enough, &sighting);
	check_exact(check, EXACT_CALLS, sightings(stage, &sighting, NULL));
	for (size_t i = 0; i < stage->intervals.cnt && check->ok; i++) {
		const struct wl_interval_record *record = &stage->intervals.items[i];
		const char *wrong = record_wrong(record, answer.report.before_ts, answer.report.after_ts);

		if (wrong && !record_flagged(record))
			check_fail(check, "one of the intervals is wrong: %s", wrong);
	}
}

/* Calls of this process's own, which nothing is attached to. */
static void check_registers(struct stage *stage)
{
	struct check *check = stage_check(stage, "probe.registers", HOOK_FEATURE_PROBE, "calls");
	uint64_t hits;
	double hit_ns;
	int err;

	if (!check)
		return;
	snprintf(check->hook, sizeof(check->hook), "breakpoint");
	err = breakpoints__measure(&hit_ns, &hits);
	if (err)
		check_skip(check,
			   "functions cannot be counted before they are probed: no breakpoint register can be had: %s",
			   strerror(-err));
	else
		check_exact(check, BREAKPOINT_MEASURED, hits);
}

/* More than the ring holds, and nobody reads meanwhile. */
static void check_loss(struct stage *stage)
{
	struct check *check = stage_check(stage, "loss", HOOK_FEATURE_PROBE, "records");
	struct capture_counts before, after;
	struct witness_answer answer;
	uint64_t emitted, lost, received;

	if (!check)
		return;
	stage_forget(stage);
	received = stage->interval_cnt;
	capture__counts(stage->capture, &before);
	if (!stage_ask(stage, check, WITNESS_BURST, LOSS_CALLS, &answer))
		return;
	stage_await(stage, stage_accounted, NULL);
	capture__counts(stage->capture, &after);
	received = stage->interval_cnt - received;
	emitted = after.loss[WL_LOSS_INTERVAL].emitted - before.loss[WL_LOSS_INTERVAL].emitted;
	lost = after.loss[WL_LOSS_INTERVAL].lost - before.loss[WL_LOSS_INTERVAL].lost;
	check_exact(check, LOSS_CALLS, received + lost);
	if (check->ok && (!lost || emitted != LOSS_CALLS))
		check_fail(check, "a full ring lost %" PRIu64 " of %" PRIu64 " records, which cannot be", lost,
			   emitted);
}

/* --- a child ------------------------------------------------------------------------------------------------------ */

struct task_sighting {
	uint32_t pid, event;
};

static const struct wl_task_record *task_find(const struct stage *stage, const struct task_sighting *sighting)
{
	for (size_t i = 0; i < stage->tasks.cnt; i++)
		if (stage->tasks.items[i].pid == sighting->pid && stage->tasks.items[i].event == sighting->event)
			return &stage->tasks.items[i];
	return NULL;
}

static bool task_seen(const struct stage *stage, const void *want)
{
	return task_find(stage, want) != NULL;
}

static void check_task(struct stage *stage, const char *name, uint32_t event, const struct deed_report *report)
{
	struct check *check = stage_check(stage, name, HOOK_FEATURE_TASKS, "events");
	struct task_sighting sighting = {report->other_tid, event};
	const struct wl_task_record *record;

	if (!check)
		return;
	stage_await(stage, task_seen, &sighting);
	record = task_find(stage, &sighting);
	check_exact(check, 1, record != NULL);
	if (record &&
	    (record->ts + CHECK_CLOCK_NS < report->before_ts || record->ts > report->after_ts + CHECK_CLOCK_NS))
		check_fail(check, "it was seen at another time than it happened");
}

/* A forked child makes an interval of its own, becomes another program and ends. */
static void check_child(struct stage *stage)
{
	struct witness_answer forked, slept = {}, ended;
	struct check *check;
	int err;

	check = stage_check(stage, "probe.child", HOOK_FEATURE_PROBE, "ns");
	stage_forget(stage);
	if (!check || !stage_ask(stage, check, WITNESS_FORK, 0, &forked))
		return;
	if (forked.report.why[0]) {
		check_fail(check, "%s", forked.report.why);
		return;
	}
	/* The list may move when it grows. */
	size_t idx = check - stage->list->items;

	check_task(stage, "task.fork", WL_TASK_SEEN, &forked.report);
	check = &stage->list->items[idx];
	if (!stage_ask(stage, check, WITNESS_CHILD_GO, 0, &slept))
		return;
	err = witness_answer(&stage->witness, &ended);
	if (err || ended.report.why[0]) {
		check_fail(check, "the child did not end as it should: %s", err ? strerror(-err) : ended.report.why);
	} else if (stage->adopt_err) {
		check_fail(check, "the child could not be probed: %s", strerror(-stage->adopt_err));
	} else {
		struct check_rounds rounds = {};

		judge_seen(stage, DEED_SLEEP, &slept.report, &rounds);
		check_conclude(check, &rounds);
		if (rounds.flagged)
			check_skip(check, "the kernel left out an event of the only round there is");
	}
	check_task(stage, "task.exec", WL_TASK_EXEC, &ended.report);
	check_task(stage, "task.exit", WL_TASK_EXIT, &ended.report);
}

void selftest_functions(struct stage *stage)
{
	check_calls(stage);
	check_registers(stage);
	for (int kind = 0; kind < DEED_CNT; kind++)
		check_deed(stage, kind);
	check_child(stage);
	check_loss(stage);
}
