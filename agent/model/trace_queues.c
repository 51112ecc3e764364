// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues of the program, which no hook sees: that a request passed from one thread to another shows in who was told of
 * its arrival, who woke whom, and who answered it.
 */
#include "model/trace_internal.h"

/* Segments, and wake-ups, of one interval that are looked at. */
#define LOOKS_MAX 4096
/* Threads that a request passes through before it is read. */
#define PASSAGES_MAX 4

void trace__note_arrival(struct trace *trace, const struct wl_wakeup_record *record)
{
	/* A sid's lowest bits are a CPU's number. */
	trace->arrivals[(record->arrived_sid >> 12 ^ record->arrived_sid << 9) % TRACE_ARRIVALS] =
		(struct trace_arrival){.sid = record->arrived_sid, .ts = record->ts, .tid = record->tid};
}

static const struct trace_arrival *arrival_of(const struct trace *trace, uint64_t sid)
{
	const struct trace_arrival *arrival = &trace->arrivals[(sid >> 12 ^ sid << 9) % TRACE_ARRIVALS];

	return arrival->sid == sid ? arrival : NULL;
}

/* A lock that somebody holds is not where work comes from: the queue's own, for instance. */
static bool waits_for_work(const struct graph_segment *segment)
{
	return (segment->state == WL_STATE_BLOCKED_FUTEX && !segment->owner_tid) ||
	       segment->state == WL_STATE_BLOCKED_POLL || segment->state == WL_STATE_BLOCKED_PIPE;
}

static void label(struct graph_segment *segment, uint64_t sid, uint32_t type)
{
	segment->sid = sid;
	segment->type = type;
}

/*
 * Of an interval that was not selected and was read elsewhere only the last stretch, its reply, has its sid.  What the
 * thread did before that, since its last interval and since it last waited for work, was for the same one.
 */
static void label_back(struct graph_segment *segments, size_t reply)
{
	for (size_t i = reply; i-- > 0 && !segments[i].sid && !waits_for_work(&segments[i]);)
		label(&segments[i], segments[reply].sid, segments[reply].type);
}

/* The thread's segments that overlap that time, the last of them if they are too many. */
static struct graph_segment *segments_in(const struct trace *trace, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
					 size_t *cnt)
{
	struct graph_segment *segments = graph__segments(trace->graph, tid, from_ts, to_ts, cnt);

	if (*cnt <= LOOKS_MAX)
		return segments;
	segments += *cnt - LOOKS_MAX;
	*cnt = LOOKS_MAX;
	return segments;
}

/* When the thread began to work on it: after its last other interval, and after it was woken for it. */
static uint64_t taken_over_ts(struct graph_segment *segments, size_t cnt, const struct graph_interval *interval,
			      uint64_t handed_ts)
{
	uint64_t taken_ts = handed_ts;
	size_t first = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!segments[i].sid || segments[i].sid == interval->sid)
			continue;
		label_back(segments, i);
		first = i + 1;
		if (segments[i].end_ts > taken_ts)
			taken_ts = segments[i].end_ts;
	}
	for (size_t i = first; i < cnt; i++) {
		if (segments[i].begin_ts > taken_ts || segments[i].end_ts <= taken_ts)
			continue;
		if (waits_for_work(&segments[i]))
			return segments[i].end_ts;
	}
	return taken_ts;
}

/* The receiver has it until until_ts. */
static int pass(struct trace *trace, struct trace_passage *passage, uint64_t until_ts)
{
	const struct graph_interval *interval = passage->interval;
	struct graph_segment *segments;
	size_t cnt;

	segments = segments_in(trace, passage->to_tid, interval->begin_ts, until_ts, &cnt);
	passage->taken_ts = taken_over_ts(segments, cnt, interval, passage->handed_ts);
	if (passage->taken_ts > until_ts)
		passage->taken_ts = until_ts;
	for (size_t i = 0; i < cnt; i++)
		if (!segments[i].sid && segments[i].begin_ts >= passage->taken_ts)
			label(&segments[i], interval->sid, interval->type);
	return trace__add_queue(trace, passage);
}

/* What the thread did for the interval before it handed it over: since its arrival, and since it last waited. */
static void label_giver(struct trace *trace, const struct trace_passage *passage)
{
	const struct graph_interval *interval = passage->interval;
	struct graph_segment *segments;
	size_t cnt;

	segments = segments_in(trace, passage->from_tid, interval->begin_ts, passage->handed_ts, &cnt);
	while (cnt-- && segments[cnt].begin_ts >= interval->begin_ts && !segments[cnt].sid &&
	       !waits_for_work(&segments[cnt]))
		label(&segments[cnt], interval->sid, interval->type);
}

/*
 * When the thread, told of the interval, turned to something else or waited for more work, at the latest until_ts; 0:
 * it has not even run until then.
 */
static uint64_t let_go_ts(const struct trace *trace, const struct graph_interval *interval, uint32_t tid,
			  uint64_t since_ts, uint64_t until_ts)
{
	struct graph_segment *segments;
	uint64_t end_ts = until_ts;
	bool ran = false;
	size_t cnt;

	segments = graph__segments(trace->graph, tid, since_ts, until_ts, &cnt);
	for (size_t i = 0; i < cnt && i < LOOKS_MAX; i++) {
		if (ran &&
		    ((segments[i].sid && segments[i].sid != interval->sid) || state_is_blocked(segments[i].state)))
			return segments[i].begin_ts;
		ran |= segments[i].begin_ts >= since_ts && segments[i].state == WL_STATE_RUNNING;
		end_ts = segments[i].end_ts;
	}
	if (!ran)
		return 0;
	/* What it has been at since then is not over, so no segment says it yet. */
	return end_ts < until_ts ? end_ts : until_ts;
}

/* --- before it was read ------------------------------------------------------------------------------------------- */

/*
 * Who of its process woke a thread that waited for work, after the arrival: by preference the thread that was told of
 * it, otherwise the last one, which is ambiguous if several did.
 */
static struct graph_wakeup *woken_for_it(const struct trace *trace, const struct graph_interval *interval, uint32_t tid,
					 uint64_t until_ts, const struct trace_arrival *arrival,
					 enum wl_certainty *certainty)
{
	struct graph_wakeup *wakeups, *found = NULL;
	size_t cnt;

	*certainty = WL_CERTAINTY_INFERRED;
	wakeups = graph__wakeups(trace->graph, tid, interval->begin_ts, until_ts, &cnt);
	for (size_t looks = 0; cnt-- && looks < LOOKS_MAX; looks++) {
		const struct graph_segment *wait;
		size_t before;

		if (!wakeups[cnt].waker_tid || wakeups[cnt].waker_tid == tid || wakeups[cnt].waker_pid != interval->pid)
			continue;
		wait = graph__segment_before(trace->graph, tid, wakeups[cnt].ts, &before);
		if (!wait || !waits_for_work(wait))
			continue;
		if (arrival && wakeups[cnt].waker_tid == arrival->tid) {
			*certainty = WL_CERTAINTY_INFERRED;
			return &wakeups[cnt];
		}
		if (!found)
			found = &wakeups[cnt];
		else if (found->waker_tid != wakeups[cnt].waker_tid)
			*certainty = WL_CERTAINTY_AMBIGUOUS;
	}
	return found;
}

/* A thread that was created for it has nothing else to do: that is a hand-off already. */
static bool was_made_for_it(struct trace *trace, const struct graph_interval *interval)
{
	struct graph_handoff *handoffs;
	struct graph_segment *segments;
	size_t handoff_cnt, cnt;

	handoffs =
		graph__handoffs_to(trace->graph, interval->tid, interval->begin_ts, interval->pickup_ts, &handoff_cnt);
	while (handoff_cnt && handoffs[handoff_cnt - 1].kind != WL_HANDOFF_FORK)
		handoff_cnt--;
	if (!handoff_cnt)
		return false;
	segments = segments_in(trace, interval->tid, handoffs[handoff_cnt - 1].to_ts, interval->pickup_ts, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (!segments[i].sid)
			label(&segments[i], interval->sid, interval->type);
	return true;
}

int trace__queue_before(struct trace *trace, const struct graph_interval *interval)
{
	const struct trace_arrival *arrival = arrival_of(trace, interval->sid);
	struct trace_passage passage = {.interval = interval, .to_tid = interval->tid};
	uint64_t until_ts = interval->pickup_ts;
	int err = 0;

	if (was_made_for_it(trace, interval))
		return 0;
	for (int i = 0; !err && i < PASSAGES_MAX; i++) {
		struct graph_wakeup *wakeup;

		/* Where nobody was told, whoever woke the reader had it: who woke that one may have done so for
		 * anything. */
		if (arrival ? arrival->tid == passage.to_tid || arrival->ts > until_ts : i > 0)
			break;
		wakeup = woken_for_it(trace, interval, passage.to_tid, until_ts, arrival, &passage.certainty);
		if (wakeup) {
			passage.from_tid = wakeup->waker_tid;
			passage.handed_ts = wakeup->ts;
		} else if (arrival && !i) {
			/* Its reader was busy, and came by itself. */
			passage.from_tid = arrival->tid;
			passage.handed_ts = let_go_ts(trace, interval, arrival->tid, arrival->ts, until_ts);
			if (!passage.handed_ts)
				break;
		} else {
			break;
		}
		err = pass(trace, &passage, until_ts);
		label_giver(trace, &passage);
		passage.to_tid = passage.from_tid;
		until_ts = passage.handed_ts;
	}
	return err;
}

/* --- between reading and answering -------------------------------------------------------------------------------- */

/* Where the reader woke that thread, it handed the interval over then; otherwise when it turned to something else. */
static uint64_t handed_over_ts(const struct trace *trace, const struct graph_interval *interval)
{
	struct graph_wakeup *wakeup =
		graph__wakeup_in(trace->graph, interval->end_tid, interval->pickup_ts, interval->end_ts);
	struct graph_segment *segments;
	size_t cnt;

	if (wakeup && wakeup->waker_tid == interval->tid)
		return wakeup->ts;
	segments = graph__segments(trace->graph, interval->tid, interval->pickup_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < LOOKS_MAX; i++)
		if (segments[i].begin_ts > interval->pickup_ts &&
		    (segments[i].sid != interval->sid || state_is_blocked(segments[i].state)))
			return segments[i].begin_ts;
	return interval->pickup_ts;
}

int trace__queue_within(struct trace *trace, const struct graph_interval *interval)
{
	struct trace_passage passage = {
		.interval = interval,
		.from_tid = interval->tid,
		.to_tid = interval->end_tid,
		.handed_ts = handed_over_ts(trace, interval),
		.certainty = WL_CERTAINTY_INFERRED,
	};
	struct graph_segment *segments;
	size_t cnt;

	/* What the reader did later is labelled with its last interval, for want of another. */
	segments = graph__segments(trace->graph, interval->tid, passage.handed_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < LOOKS_MAX; i++)
		if (segments[i].sid == interval->sid && segments[i].begin_ts >= passage.handed_ts)
			label(&segments[i], 0, 0);
	return pass(trace, &passage, interval->end_ts);
}
