// SPDX-License-Identifier: GPL-2.0-or-later
#include "selftest/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define bit(state) (1ULL << WL_STATE_##state)
#define DEED_SOFTIRQS                                                                                            \
	(bit(SOFTIRQ_HI) | bit(SOFTIRQ_TIMER) | bit(SOFTIRQ_NET_TX) | bit(SOFTIRQ_NET_RX) | bit(SOFTIRQ_BLOCK) | \
	 bit(SOFTIRQ_IRQ_POLL) | bit(SOFTIRQ_TASKLET) | bit(SOFTIRQ_SCHED) | bit(SOFTIRQ_HRTIMER) | bit(SOFTIRQ_RCU))
#define UNCERTAIN (WL_INTERVAL_MOVED | WL_INTERVAL_TORN | WL_INTERVAL_LOSSY | WL_INTERVAL_HISTORY)

static const struct {
	enum deed_measure measure;
	uint64_t states;
} deeds[DEED_CNT] = {
#define DEED(id, name, feature, unit, measure, states) {DEED_MEASURE_##measure, states},
#include "selftest/deed.def"
};

static void say(struct check *check, const char *fmt, va_list args)
{
	vsnprintf(check->why, sizeof(check->why), fmt, args);
}

void check_skip(struct check *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(check, fmt, args);
	va_end(args);
	check->skipped = true;
	check->ok = false;
}

void check_fail(struct check *check, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(check, fmt, args);
	va_end(args);
	check->skipped = check->ok = false;
}

void check_exact(struct check *check, uint64_t witness, uint64_t seen)
{
	check_near(check, witness, seen, 0);
}

void check_near(struct check *check, uint64_t witness, uint64_t seen, uint64_t apart_max)
{
	check->witness = witness;
	check->low = witness > apart_max ? witness - apart_max : 0;
	check->seen = seen;
	check->ok = seen >= check->low && seen <= witness + apart_max;
	if (!check->ok)
		check_fail(check, "%" PRIu64 " seen, there were %" PRIu64, seen, witness);
}

bool record_flagged(const struct wl_interval_record *record)
{
	return record->flags & UNCERTAIN;
}

static uint64_t states_ns(const struct wl_interval_record *record, uint64_t states)
{
	uint64_t sum_ns = 0;

	for (int i = 0; i < WL_STATE_CNT; i++)
		if (states >> i & 1)
			sum_ns += record->length_ns[i];
	return sum_ns;
}

static uint64_t states_count(const struct wl_interval_record *record, uint64_t states)
{
	uint64_t sum = 0;

	for (int i = 0; i < WL_STATE_CNT; i++)
		if (states >> i & 1)
			sum += record->count[i];
	return sum;
}

const char *record_wrong(const struct wl_interval_record *record, uint64_t before_ts, uint64_t after_ts)
{
	if (record->end_ts < record->begin_ts)
		return "it ends before it begins";
	if (states_ns(record, ~0ULL) != record->end_ts - record->begin_ts)
		return "its parts do not sum to its length";
	if (record->begin_ts + CHECK_CLOCK_NS < before_ts)
		return "it begins before the witness began";
	if (record->end_ts > after_ts + CHECK_CLOCK_NS)
		return "it ends after the witness was done";
	return NULL;
}

static uint64_t less(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

/*
 * A wait must be in its own state: what the witness measured, less what the thread did beside waiting (it ran, it was
 * interrupted, it waited for a CPU), with a fifth to spare.
 */
static uint64_t wait_low(const struct wl_interval_record *record, uint64_t wait_ns)
{
	uint64_t waiting = bit(BLOCKED_FUTEX) | bit(BLOCKED_DISK) | bit(BLOCKED_NET) | bit(BLOCKED_POLL) |
			   bit(BLOCKED_PIPE) | bit(BLOCKED_SLEEP) | bit(BLOCKED_STOPPED) | bit(BLOCKED_OTHER) |
			   bit(UNKNOWN);

	return less(wait_ns, states_ns(record, ~waiting)) / 5 * 4;
}

static const char *wait_wrong(enum deed_kind kind, const struct wl_interval_record *record,
			      const struct deed_report *report)
{
	if (kind == DEED_LOCK && record->lock.object != report->object)
		return "it names another lock";
	if (kind == DEED_LOCK && record->lock.owner_tid != report->other_tid)
		return "it names another owner of the lock";
	if (kind == DEED_PREEMPT && record->culprit.tid != report->other_tid)
		return "it names another culprit";
	return NULL;
}

void deed_judge(enum deed_kind kind, const struct wl_interval_record *record, const struct deed_report *report,
		struct check_round *round)
{
	uint64_t states = deeds[kind].states, wall_ns = report->after_ts - report->before_ts;
	enum deed_measure measure = deeds[kind].measure;

	memset(round, 0, sizeof(*round));
	round->wrong = record_wrong(record, report->before_ts, report->after_ts);
	switch (measure) {
	case DEED_MEASURE_COUNT:
	case DEED_MEASURE_CPU:
	case DEED_MEASURE_SWITCH:
		round->witness = report->inner;
		round->low = report->inner;
		round->high = report->outer;
		round->seen = measure == DEED_MEASURE_SWITCH ? record->tally[WL_TALLY_SWITCH_VOLUNTARY]
							     : states_count(record, states);
		/* What came while another task had the CPU was not on top of this thread. */
		if (measure == DEED_MEASURE_CPU &&
		    (record->tally[WL_TALLY_SWITCH_INVOLUNTARY] || record->tally[WL_TALLY_SWITCH_VOLUNTARY]))
			round->low = report->inner > 0;
		round->length_ns = states_ns(record, states);
		if (!round->wrong && states && !round->length_ns && round->seen)
			round->wrong = "it has a count and no length";
		if (!round->wrong && round->length_ns > wall_ns + CHECK_CLOCK_NS)
			round->wrong = "they took longer than the call they were in";
		break;
	case DEED_MEASURE_ACCOUNT:
		round->witness = report->inner;
		round->low = report->inner / 5 * 4;
		/* When the limit is lifted, the thread still waits for its turn: nobody tells when that was. */
		round->high = wall_ns + CHECK_CLOCK_NS;
		round->seen = states_ns(record, states);
		break;
	case DEED_MEASURE_WAIT:
		round->witness = report->wake_ts - report->begin_ts;
		round->low = kind == DEED_PREEMPT ? round->witness / 5 * 4 : wait_low(record, round->witness);
		if (round->low < round->witness / 2)
			round->low = round->witness / 2;
		round->high = wall_ns + CHECK_CLOCK_NS;
		round->seen = states_ns(record, states);
		if (!round->wrong)
			round->wrong = wait_wrong(kind, record, report);
		break;
	case DEED_MEASURE_DISK:
		round->witness = report->end_ts - report->begin_ts;
		round->low = wait_low(record, round->witness);
		round->high = round->witness + CHECK_CLOCK_NS;
		round->seen = states_ns(record, states);
		break;
	}
}

void check_rounds_add(struct check_rounds *rounds, const struct check_round *round, bool flagged)
{
	rounds->tried++;
	if (flagged)
		rounds->flagged++;
	else if (rounds->cnt < CHECK_ROUNDS_MAX)
		rounds->rounds[rounds->cnt++] = *round;
}

static bool round_holds(const struct check_round *round)
{
	return !round->wrong && round->seen >= round->low && round->seen <= round->high;
}

bool check_rounds_enough(const struct check_rounds *rounds)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < rounds->cnt; i++)
		held += round_holds(&rounds->rounds[i]);
	return rounds->tried >= CHECK_ROUNDS_MAX || rounds->unseen >= CHECK_ROUNDS ||
	       (held >= CHECK_ROUNDS && held == rounds->cnt && !rounds->unseen);
}

/* What was wrong with a round that does not hold. */
static void describe(const struct check *check, const struct check_round *round, char *text, size_t sz)
{
	if (round->wrong)
		snprintf(text, sz, "%s", round->wrong);
	else
		snprintf(text, sz, "%" PRIu64 " %s seen, expected %" PRIu64 " to %" PRIu64, round->seen, check->unit,
			 round->low, round->high);
}

static double share_seen(const struct check_round *round)
{
	return round->witness ? (double)round->seen / round->witness : 0;
}

/* Of the rounds that hold, the one in the middle by what was seen of it: it stands for the tier beside other tiers. */
static const struct check_round *middle_round(const struct check_rounds *rounds)
{
	const struct check_round *held[CHECK_ROUNDS_MAX];
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < rounds->cnt; i++) {
		const struct check_round *round = &rounds->rounds[i];
		uint32_t at = cnt;

		if (!round_holds(round))
			continue;
		for (; at && share_seen(held[at - 1]) > share_seen(round); at--)
			held[at] = held[at - 1];
		held[at] = round;
		cnt++;
	}
	return cnt ? held[cnt / 2] : NULL;
}

void check_conclude(struct check *check, const struct check_rounds *rounds)
{
	const struct check_round *good = middle_round(rounds), *bad = NULL;
	uint32_t missed = rounds->unseen, seen = rounds->cnt + rounds->unseen;
	char text[CHECK_WHY_LEN / 2] = "no interval was seen";

	for (uint32_t i = 0; i < rounds->cnt; i++) {
		const struct check_round *round = &rounds->rounds[i];

		if (round_holds(round))
			continue;
		bad = bad ? bad : round;
		missed++;
	}
	if (bad)
		describe(check, bad, text, sizeof(text));
	check->ok = good && missed * 5 <= seen;
	if (good || bad) {
		const struct check_round *shown = check->ok || !bad ? good : bad;

		check->witness = shown->witness;
		check->low = shown->low < shown->witness ? shown->low : shown->witness;
		check->seen = shown->seen;
		check->length_ns = shown->length_ns;
	}
	if (!seen)
		check_fail(check, "all %u intervals were flagged: this kernel leaves out too many events",
			   rounds->flagged);
	else if (missed)
		snprintf(check->why, sizeof(check->why), "%s (%u of %u rounds%s)", text, missed, seen,
			 rounds->flagged ? ", others flagged" : "");
	else if (rounds->flagged)
		snprintf(check->why, sizeof(check->why), "%u of %u intervals were flagged and left out",
			 rounds->flagged, rounds->tried);
}
