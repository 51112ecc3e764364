// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The part of the self-test in trace mode: of what the witness does, the stretches, wake-ups and edges are looked at,
 * and what is on its stack meanwhile.
 */
#include "base/clock.h"
#include "model/graph.h"
#include "selftest/selftest_internal.h"

#include <inttypes.h>
#include <string.h>

#define TICK_NS 1000000ULL /* between two stacks */
/* With fewer than one stack in so many ticks nothing is judged: some kernels sample less than once a jiffy. */
#define STACKS_LEAST 16

/* What the witness did, and whether it was seen: fills `round` and returns whether the kernel left out events. */
typedef bool (*trace_judge)(const struct stage *stage, const struct deed_report *report, struct check_round *round);

/* The longest wait of the main thread that lies within its deed; NULL: none was seen. */
static const struct wl_segment_record *longest_wait(const struct stage *stage, const struct deed_report *report)
{
	const struct wl_segment_record *longest = NULL;

	for (size_t i = 0; i < stage->segments.cnt; i++) {
		const struct wl_segment_record *segment = &stage->segments.items[i];

		if (segment->tid != report->tid || !state_is_blocked(segment->state) ||
		    segment->end_ts < report->before_ts || segment->begin_ts > report->after_ts)
			continue;
		if (!longest || segment->end_ts - segment->begin_ts > longest->end_ts - longest->begin_ts)
			longest = segment;
	}
	return longest;
}

/* The wait for the lock is one segment, with the lock's address and its owner. */
static bool judge_segment(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_segment_record *wait = longest_wait(stage, report);

	round->witness = report->wake_ts - report->begin_ts;
	round->low = round->witness / 2;
	round->high = report->after_ts - report->before_ts;
	if (!wait)
		return false;
	round->seen = wait->end_ts - wait->begin_ts;
	if (wait->state != WL_STATE_BLOCKED_FUTEX)
		round->wrong = "it is not a wait for a futex";
	else if (wait->object != report->object)
		round->wrong = "it names another lock";
	else if (wait->other_tid != report->other_tid)
		round->wrong = "it names another owner of the lock";
	return wait->flags & WL_SEGMENT_SUSPECT;
}

/* That of the deed; NULL: it was not seen. */
static const struct wl_interval_record *deed_interval(const struct stage *stage, const struct deed_report *report)
{
	for (size_t i = 0; i < stage->intervals.cnt; i++)
		if (stage->intervals.items[i].tid == report->tid &&
		    stage->intervals.items[i].end_ts >= report->before_ts &&
		    stage->intervals.items[i].begin_ts <= report->after_ts)
			return &stage->intervals.items[i];
	return NULL;
}

/* Each segment of the thread begins where the one before ended: they sum to the call's own interval. */
static bool judge_partition(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_interval_record *interval = deed_interval(stage, report);
	bool suspect = false;

	if (!interval)
		return false;
	for (size_t i = 0; i < stage->segments.cnt; i++) {
		const struct wl_segment_record *segment = &stage->segments.items[i];
		uint64_t begin_ts = segment->begin_ts, end_ts = segment->end_ts;

		if (segment->tid != report->tid || end_ts <= interval->begin_ts || begin_ts >= interval->end_ts)
			continue;
		begin_ts = begin_ts > interval->begin_ts ? begin_ts : interval->begin_ts;
		end_ts = end_ts < interval->end_ts ? end_ts : interval->end_ts;
		round->seen += end_ts - begin_ts;
		suspect |= (segment->flags & WL_SEGMENT_SUSPECT) != 0;
	}
	round->witness = round->low = round->high = interval->end_ts - interval->begin_ts;
	return suspect || record_flagged(interval);
}

static const struct wl_wakeup_record *wakeup_by(const struct stage *stage, const struct deed_report *report,
						uint32_t waker_tid)
{
	for (size_t i = 0; i < stage->wakeups.cnt; i++) {
		const struct wl_wakeup_record *wakeup = &stage->wakeups.items[i];

		if (wakeup->tid == report->tid && wakeup->waker_tid == waker_tid &&
		    wakeup->context == WL_CONTEXT_TASK && wakeup->ts >= report->before_ts &&
		    wakeup->ts <= report->after_ts)
			return wakeup;
	}
	return NULL;
}

/* Whoever let go of the lock woke the thread. */
static bool judge_wakeup(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_segment_record *wait = longest_wait(stage, report);

	round->witness = round->low = round->high = 1;
	round->seen = wakeup_by(stage, report, report->other_tid) != NULL;
	return wait && wait->flags & WL_SEGMENT_SUSPECT;
}

/* Whoever wrote to the pipe woke the thread, and was at a pipe then. */
static bool judge_pipe(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_segment_record *wait = longest_wait(stage, report);
	const struct wl_wakeup_record *wakeup = NULL;

	for (size_t i = 0; i < stage->wakeups.cnt && !wakeup; i++)
		if (stage->wakeups.items[i].tid == report->tid && stage->wakeups.items[i].ts >= report->before_ts &&
		    stage->wakeups.items[i].ts <= report->after_ts &&
		    stage->wakeups.items[i].waker_file == WL_FILE_PIPE)
			wakeup = &stage->wakeups.items[i];
	round->witness = round->low = round->high = 1;
	round->seen = wakeup != NULL;
	return wait && wait->flags & WL_SEGMENT_SUSPECT;
}

static bool at_one_position(const struct wl_socket_record *one, const struct wl_socket_record *two)
{
	return one->conn == two->conn && one->pos == two->pos;
}

/*
 * The bytes were sent by one thread and received by the other, at one position.  The sender may be preempted when it
 * has woken the receiver, and its call return when all else is over.  Others that are followed send meanwhile, too.
 */
static bool judge_socket(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_socket_record *sent = NULL, *received = NULL;

	for (size_t i = 0; i < stage->sockets.cnt; i++) {
		const struct wl_socket_record *socket = &stage->sockets.items[i];

		if (socket->direction == WL_RECEIVED && socket->tid == report->tid && socket->ts >= report->before_ts &&
		    socket->ts <= report->after_ts)
			received = socket;
	}
	for (size_t i = 0; received && i < stage->sockets.cnt; i++) {
		const struct wl_socket_record *socket = &stage->sockets.items[i];

		if (socket->direction == WL_SENT && socket->tid != report->tid && socket->ts >= report->before_ts &&
		    (!sent || at_one_position(socket, received)))
			sent = socket;
	}
	round->witness = round->low = round->high = 2;
	round->seen = (sent != NULL) + (received != NULL);
	if (sent && received && !at_one_position(sent, received))
		round->wrong = "its two ends do not belong together";
	return false;
}

/* A request to the disk was done while the thread waited for it. */
static bool judge_disk(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < stage->blocks.cnt; i++) {
		const struct wl_block_record *block = &stage->blocks.items[i];

		if (block->complete_ts < report->begin_ts || block->complete_ts > report->after_ts)
			continue;
		cnt++;
		if ((block->queue_ts && block->queue_ts > block->complete_ts) ||
		    (block->issue_ts && block->issue_ts > block->complete_ts))
			round->wrong = "a request was done before it began";
	}
	round->witness = round->low = 1;
	round->high = UINT64_MAX;
	round->seen = cnt;
	return false;
}

/* The sleep was ended by its own timer, when it was over. */
static bool judge_timer(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	for (size_t i = 0; i < stage->timers.cnt; i++) {
		const struct wl_timer_record *timer = &stage->timers.items[i];

		if (timer->tid != report->tid || timer->ts < report->before_ts || timer->ts > report->after_ts)
			continue;
		round->seen++;
		if (timer->expire_ts > timer->ts || timer->expire_ts + CHECK_CLOCK_NS < report->wake_ts)
			round->wrong = "it expired at another time";
		else if (!timer->own)
			round->wrong = "it is not said to be the call's own";
	}
	round->witness = round->low = round->high = 1;
	return false;
}

/*
 * The call ran, and stacks of that lead to the function that was called, but for a tick while it began or ended.  How
 * many there are is the kernel's to say: it samples less where that takes long, and hardly ever on some emulated CPUs.
 */
static bool judge_stacks(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_interval_record *interval = deed_interval(stage, report);

	if (!interval)
		return false;
	for (size_t i = 0; i < stage->stacks.cnt; i++) {
		const struct stage_stack *stack = &stage->stacks.items[i];

		if (stack->sid != interval->sid || stack->flags & WL_STACK_WAITS)
			continue;
		round->witness++;
		round->seen += stack->leads_to_deed;
		if (stack->state != WL_STATE_RUNNING || stack->tid != report->tid)
			round->wrong = "a stack is not of the thread that ran";
	}
	round->high = round->witness;
	round->low = round->witness - round->witness / 10 - (round->witness > 1);
	if (round->witness > (interval->end_ts - interval->begin_ts) / TICK_NS * 2 + 2)
		round->wrong = "there are more stacks than ticks";
	return record_flagged(interval) ||
	       round->witness < interval->length_ns[WL_STATE_RUNNING] / TICK_NS / STACKS_LEAST || !round->witness;
}

static bool leads_to_deed(const struct stage *stage, uint64_t key)
{
	for (size_t i = 0; i < stage->deed_keys.cnt; i++)
		if (stage->deed_keys.items[i] == key)
			return true;
	return false;
}

/* The sleep began with a stack that leads to the function that was called, and its length is told when it is over. */
static bool judge_stack_wait(const struct stage *stage, const struct deed_report *report, struct check_round *round)
{
	const struct wl_interval_record *interval = deed_interval(stage, report);

	round->witness = report->wake_ts - report->begin_ts;
	round->low = round->witness / 2;
	round->high = report->after_ts - report->before_ts;
	for (size_t i = 0; interval && i < stage->stack_waits.cnt; i++) {
		const struct wl_stack_wait_record *wait = &stage->stack_waits.items[i];

		if (wait->sid != interval->sid || wait->state != WL_STATE_BLOCKED_SLEEP)
			continue;
		round->seen = wait->blocked_ns;
		if (!leads_to_deed(stage, wait->key))
			round->wrong = "its stack does not lead to the function that was called";
	}
	return interval && record_flagged(interval);
}

static const struct {
	const char *name;
	enum hook_feature feature;
	const char *unit;
	enum deed_kind deed;
	trace_judge judge;
} trace_checks[] = {
	{"trace.segment", HOOK_FEATURE_SCHED, "ns", DEED_LOCK, judge_segment},
	{"trace.partition", HOOK_FEATURE_SCHED, "ns", DEED_PIPE, judge_partition},
	{"trace.wakeup", HOOK_FEATURE_SCHED, "wake-ups", DEED_LOCK, judge_wakeup},
	{"trace.pipe", HOOK_FEATURE_SCHED, "wake-ups", DEED_PIPE, judge_pipe},
	{"trace.socket", HOOK_FEATURE_EDGE, "ends", DEED_NET, judge_socket},
	{"trace.sendfile", HOOK_FEATURE_EDGE, "ends", DEED_SENDFILE, judge_socket},
	{"trace.disk", HOOK_FEATURE_BLOCK, "requests", DEED_DISK, judge_disk},
	{"trace.timer", HOOK_FEATURE_EXPIRY, "timers", DEED_SLEEP, judge_timer},
	{"stack.running", HOOK_FEATURE_STACK, "stacks", DEED_TIMER, judge_stacks},
	{"stack.wait", HOOK_FEATURE_STACK, "ns", DEED_SLEEP, judge_stack_wait},
};

/* Small stacks, so that all of them fit into a ring. */
static const struct capture_stacks stack_sampling = {
	.hz = (uint32_t)(1000000000 / TICK_NS), .max_sz = 4096, .waits = true};

/* The interval of the deed comes last. */
static bool deed_recorded(const struct stage *stage, const void *want)
{
	return deed_interval(stage, want) != NULL;
}

static bool later(const struct stage *stage, const void *want)
{
	(void)stage;
	return monotonic_ns() > *(const uint64_t *)want;
}

static void check_trace(struct stage *stage, size_t idx)
{
	struct check *check =
		stage_check(stage, trace_checks[idx].name, trace_checks[idx].feature, trace_checks[idx].unit);
	struct check_rounds rounds = {};
	struct witness_answer answer;
	int err = check && trace_checks[idx].feature == HOOK_FEATURE_STACK
			  ? capture__sample_stacks(stage->capture, &stack_sampling)
			  : 0;

	if (err) {
		check_fail(check, "stacks cannot be sampled: %s", strerror(-err));
		return;
	}
	while (check && !check_rounds_enough(&rounds)) {
		struct check_round round = {};
		uint64_t soon_ts;
		bool flagged;

		stage_forget(stage);
		if (!stage_ask(stage, check, WITNESS_DO, trace_checks[idx].deed, &answer))
			return;
		if (answer.report.why[0]) {
			check_skip(check, "%s", answer.report.why);
			return;
		}
		if (!stage_await(stage, deed_recorded, &answer.report)) {
			rounds.tried++;
			rounds.unseen++;
			continue;
		}
		/* The rings of other CPUs, where a disk was done or a timer expired. */
		soon_ts = monotonic_ns() + 10000000;
		stage_await(stage, later, &soon_ts);
		flagged = trace_checks[idx].judge(stage, &answer.report, &round);
		check_rounds_add(&rounds, &round, flagged);
	}
	if (check)
		check_conclude(check, &rounds);
}

/* Those of stacks are the last ones: sampling goes on until the capture ends. */
void selftest_trace(struct stage *stage)
{
	for (size_t i = 0; i < sizeof(trace_checks) / sizeof(trace_checks[0]); i++)
		check_trace(stage, i);
}
