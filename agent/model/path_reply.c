// SPDX-License-Identifier: GPL-2.0-or-later
/* Event loops: a thread that asked another one for the interval does other things until the reply comes. */
#include "model/path_internal.h"

#define FORK_LOOKS_MAX    4
#define REQUEST_LOOKS_MAX 16
#define REPLY_LOOKS_MAX   64
#define IDLE_LOOKS_MAX    8
#define NOTICE_LOOKS_MAX  4096
#define WAIT_LOOKS_MAX    8
#define DATA_LOOKS_MAX    8
#define ANSWER_LOOKS_MAX  64
#define POOL_LOOKS_MAX    64
#define POOL_REACH_NS     100000000ULL

static bool is_message(const struct graph_handoff *handoff)
{
	return handoff->kind == WL_HANDOFF_SOCKET || handoff->kind == WL_HANDOFF_UNIX ||
	       handoff->kind == WL_HANDOFF_PIPE;
}

/* The interval's thread worked for it when it forked: a process per request (CGI, a filter). */
static bool is_forked_for(const struct walk *walk, const struct frame *frame, const struct graph_handoff *handoff)
{
	const struct graph_segment *segment;
	size_t before;

	if (handoff->kind != WL_HANDOFF_FORK)
		return false;
	segment = graph__segment_before(walk->graph, frame->tid, handoff->from_ts, &before);
	return segment && segment->end_ts >= handoff->from_ts && segment->sid == walk->interval->sid;
}

/*
 * What the interval's thread sent to the other one, for the interval, before that one sent its reply, or the fork that
 * made it; NULL: nothing.
 */
static struct graph_handoff *request_to(const struct walk *walk, const struct frame *frame,
					const struct graph_handoff *reply)
{
	return newest_handoff(walk->graph, reply->from_tid, walk->interval->begin_ts, reply->from_ts, REQUEST_LOOKS_MAX,
			      last,
			      last->from_tid == frame->tid && ((last->sid == walk->interval->sid && is_message(last)) ||
							       is_forked_for(walk, frame, last)));
}

/*
 * The thread left the interval at since_ts, after it had asked another thread for something, and went on with it when
 * the reply was there: a proxy and its upstream.
 */
bool walk__find_reply(const struct walk *walk, struct frame *frame, uint64_t since_ts)
{
	uint64_t until_ts = frame->at_ts + RECEIVED_AFTER_NS;

	until_ts = until_ts > frame->own_end_ts ? until_ts : frame->own_end_ts;
	frame->reply = newest_handoff(walk->graph, frame->tid, since_ts,
				      until_ts < walk->look_ts ? until_ts : walk->look_ts, REPLY_LOOKS_MAX, last,
				      is_message(last) && last->from_tid && last->from_tid != frame->tid &&
					      last->from_ts > since_ts && last->from_ts <= frame->at_ts &&
					      request_to(walk, frame, last));
	return frame->reply;
}

/*
 * A task of another process or an interrupt ended the wait, and the thread went on with a request that it had not
 * before: the bytes that came are the other request's.
 */
bool walk__is_for_another(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait)
{
	const struct graph_wakeup *wakeup = graph__wakeup_in(walk->graph, frame->tid, wait->begin_ts + 1, wait->end_ts);
	size_t cnt;
	const struct graph_segment *next = graph__segments(walk->graph, frame->tid, wait->end_ts, walk->look_ts, &cnt);

	if (!wakeup || wakeup->context == WL_CONTEXT_TIMER || (wakeup->waker_tid && wakeup->waker_pid == wait->pid))
		return false;
	for (size_t i = 0; i < cnt && i < NOTICE_LOOKS_MAX && next[i].state != WL_STATE_BLOCKED_POLL; i++)
		if (next[i].begin_ts >= wait->end_ts && next[i].sid && next[i].sid != wait->sid)
			return next[i].sid != walk->interval->sid;
	return false;
}

/* When the thread last ran for the interval before at_ts; low_ts: not known. */
static uint64_t left_at(const struct walk *walk, const struct frame *frame)
{
	size_t cnt;
	const struct graph_segment *segments =
		graph__segments(walk->graph, frame->tid, frame->low_ts, frame->at_ts, &cnt);

	for (size_t i = 0; i < cnt && i < NOTICE_LOOKS_MAX; i++) {
		const struct graph_segment *segment = &segments[cnt - 1 - i];

		if (segment->sid == walk->interval->sid && state_is_on_cpu(segment->state))
			return segment->end_ts;
	}
	return frame->low_ts;
}

/*
 * The event loop gave the interval to a worker thread of its process, through memory, and was woken by it (an eventfd,
 * a pipe to itself, a signal): what the worker did until then is why, whatever else the loop did meanwhile.
 */
bool walk__find_notice(const struct walk *walk, struct frame *frame, const struct graph_segment *wait)
{
	struct graph_wakeup *wakeup =
		wait ? graph__wakeup_in(walk->graph, frame->tid, wait->begin_ts + 1, wait->end_ts) : NULL;
	const struct graph_segment *doings;
	uint64_t since_ts;
	size_t cnt;

	frame->notice = NULL;
	if (!wakeup || !wakeup->waker_tid || wakeup->waker_tid == frame->tid || wakeup->ts > frame->at_ts)
		return false;
	since_ts = left_at(walk, frame);
	if (since_ts == frame->low_ts || wakeup->ts <= since_ts)
		return false;
	doings = graph__segments(walk->graph, wakeup->waker_tid, since_ts, wakeup->ts, &cnt);
	if (!cnt || doings[cnt - 1].pid != wait->pid)
		return false;
	frame->notice = wakeup;
	frame->asked_ts = since_ts;
	return true;
}

/* A loop that is busy anyway is not woken by who tells it: the one that woke it before may be the other worker. */
bool walk__find_last_notice(const struct walk *walk, struct frame *frame)
{
	size_t cnt, waits = 0;
	const struct graph_segment *segments =
		graph__segments(walk->graph, frame->tid, frame->low_ts, frame->at_ts, &cnt);

	for (size_t i = 0; i < cnt && i < NOTICE_LOOKS_MAX && waits < WAIT_LOOKS_MAX; i++) {
		if (segments[cnt - 1 - i].state != WL_STATE_BLOCKED_POLL)
			continue;
		if (walk__find_notice(walk, frame, &segments[cnt - 1 - i]))
			return true;
		waits++;
	}
	return false;
}

/* When this thread woke the worker last before it told, else asked_ts. */
static uint64_t woke_at(const struct walk *walk, const struct frame *frame, uint32_t worker_tid, uint64_t told_ts)
{
	size_t cnt;
	const struct graph_wakeup *wakeups = graph__wakeups(walk->graph, worker_tid, frame->asked_ts, told_ts, &cnt);

	for (size_t i = 0; i < cnt && i < NOTICE_LOOKS_MAX; i++)
		if (wakeups[cnt - 1 - i].waker_tid == frame->tid)
			return wakeups[cnt - 1 - i].ts;
	return frame->asked_ts;
}

/* The worker had it since this thread woke it, or since the thread last ran for the interval. */
static void set_worker(struct walk *walk, struct frame *frame, uint32_t worker_tid, uint64_t told_ts)
{
	frame->queue_ts = told_ts;
	frame->asked_ts = woke_at(walk, frame, worker_tid, told_ts);
	walk->worker_tid = worker_tid;
}

/*
 * A loop that is busy is woken by nobody: that a worker thread of its process wrote to its pipe, socket or eventfd
 * tells that it was done.
 */
bool walk__find_told(const struct walk *walk, struct frame *frame, uint64_t since_ts)
{
	frame->reply = newest_handoff(walk->graph, frame->tid, since_ts, frame->at_ts, REPLY_LOOKS_MAX, last,
				      (is_message(last) || last->kind == WL_HANDOFF_EVENTFD) && last->from_tid &&
					      last->from_tid != frame->tid && last->from_pid == walk->interval->pid &&
					      last->from_ts > since_ts && last->from_ts <= frame->at_ts);
	return frame->reply;
}

int walk__push_told(struct walk *walk, struct frame *frame, uint64_t since_ts)
{
	frame->asked_ts = since_ts;
	set_worker(walk, frame, frame->reply->from_tid, frame->reply->from_ts);
	return walk__push_edge(walk, frame, NULL, frame->reply);
}

int walk__push_notice(struct walk *walk, struct frame *frame)
{
	set_worker(walk, frame, frame->notice->waker_tid, frame->notice->ts);
	return walk__push_edge(walk, frame, frame->notice, NULL);
}

/* Both messages are needed to find them again. */
int walk__push_reply(struct walk *walk, struct frame *frame)
{
	struct graph_handoff *request = request_to(walk, frame, frame->reply);
	int err = walk__push_edge(walk, frame, NULL, frame->reply);

	frame->queue_ts = frame->reply->from_ts > frame->low_ts ? frame->reply->from_ts : frame->low_ts;
	frame->asked_ts = request->from_ts;
	return err ? err : walk__push_edge(walk, frame, NULL, request);
}

/* Had the worker nothing to do right before at_ts? */
static bool is_idle(const struct walk *walk, uint32_t tid, uint64_t at_ts)
{
	size_t before;
	const struct graph_segment *segment = graph__segment_before(walk->graph, tid, at_ts, &before);

	return !segment || segment->end_ts < at_ts || segment->state == WL_STATE_BLOCKED_FUTEX ||
	       segment->state == WL_STATE_BLOCKED_POLL;
}

/* What that thread did since then: it had what this one waited for. */
static int follow(struct walk *walk, const struct frame *frame, uint32_t pid, uint32_t tid, uint64_t since_ts,
		  enum path_via via, uint8_t kind)
{
	const struct graph_segment wait = {.state = WL_STATE_BLOCKED_NET, .pid = frame->pid};

	return walk__follow(walk, &wait, pid, tid, since_ts, via, kind, WL_CERTAINTY_INFERRED);
}

/*
 * The loop's worker that the interval was given to; where that one had nothing to do, another one of its pool that had:
 * it told the loop of other intervals' ends.  NULL: none was busy right before at_ts.
 */
static const struct graph_wakeup *busy_worker(const struct walk *walk, const struct frame *frame, uint32_t pid)
{
	const struct graph_wakeup *busy = NULL, *wakeups;
	uint64_t from_ts = frame->low_ts > POOL_REACH_NS ? frame->low_ts - POOL_REACH_NS : 0;
	size_t cnt;

	wakeups = graph__wakeups(walk->graph, frame->tid, from_ts, frame->own_end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < POOL_LOOKS_MAX; i++) {
		const struct graph_wakeup *wakeup = &wakeups[cnt - 1 - i];

		if (!wakeup->waker_tid || wakeup->waker_tid == frame->tid || wakeup->waker_pid != pid ||
		    is_idle(walk, wakeup->waker_tid, frame->at_ts))
			continue;
		if (wakeup->waker_tid == walk->worker_tid)
			return wakeup;
		busy = busy ? busy : wakeup;
	}
	return busy;
}

/*
 * The interval's own wait, back to begin_ts, for something that is not known; a message from another host that the
 * thread got before it went on with the interval is kept for its address.
 */
int walk__idle(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts)
{
	struct path_step step = frame__step(frame, segment);
	const struct graph_wakeup *worker = NULL;
	struct graph_handoff *handoff;
	size_t cnt;
	int err = 0;

	/* The worker was at it, or at others that were before it. */
	if (walk->worker_tid && !frame->depth)
		worker = busy_worker(walk, frame, segment->pid);
	if (worker)
		return follow(walk, frame, worker->waker_pid, worker->waker_tid, begin_ts, PATH_VIA_WAKEUP, 0);
	handoff = graph__handoffs_to(walk->graph, frame->tid, frame->at_ts, frame->own_end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < IDLE_LOOKS_MAX && !err; i++)
		if (!handoff[cnt - 1 - i].from_tid && is_message(&handoff[cnt - 1 - i]))
			err = walk__push_edge(walk, frame, NULL, &handoff[cnt - 1 - i]);
	frame__set_category(frame, &step, WL_CATEGORY_IO_NET);
	return err ? err : walk__push_step(walk, frame, step, begin_ts);
}

/* From when it asked until the reply came: what the thread did that replied. */
int walk__follow_reply(struct walk *walk, struct frame *frame)
{
	const struct graph_handoff *reply = frame->reply;
	const struct graph_wakeup *notice = frame->notice;
	uint64_t asked_ts = frame->asked_ts > frame->low_ts ? frame->asked_ts : frame->low_ts;

	frame->reply = NULL;
	frame->notice = NULL;
	if (notice)
		return follow(walk, frame, notice->waker_pid, notice->waker_tid, asked_ts, PATH_VIA_WAKEUP, 0);
	return follow(walk, frame, reply->from_pid, reply->from_tid, asked_ts, PATH_VIA_HANDOFF, reply->kind);
}

/* In its event loop when the reply came: until it was awake the reply was under way. */
int walk__to_reply(struct walk *walk, struct frame *frame, const struct graph_segment *segment)
{
	struct path_step step = frame__step(frame, segment);
	int err = walk__push_reply(walk, frame);

	frame__set_category(frame, &step, WL_CATEGORY_IO_NET);
	step.kind = frame->reply->kind;
	step.transit = 1;
	return err ? err : walk__push_step(walk, frame, step, frame->queue_ts);
}

bool frame__changes_in_circles(struct frame *frame)
{
	frame->change_cnt = frame->at_ts < frame->change_ts ? 0 : frame->change_cnt + 1;
	frame->change_ts = frame->at_ts;
	return frame->change_cnt > PATH_DEPTH_MAX;
}

int walk__gap(struct walk *walk, struct frame *frame, const struct graph_segment *segment)
{
	struct graph_handoff *made = newest_handoff(walk->graph, frame->tid, frame->at_ts, frame->at_ts, FORK_LOOKS_MAX,
						    last, last->kind == WL_HANDOFF_FORK && last->from_tid);
	int err;

	if (!made || walk__on_stack(walk, made->from_tid) || frame__changes_in_circles(frame))
		return walk__push_doings(walk, frame, NULL,
					 segment && segment->end_ts > frame->low_ts ? segment->end_ts : frame->low_ts);
	err = walk__push_edge(walk, frame, NULL, made);
	frame->via = PATH_VIA_HANDOFF;
	frame->kind = made->kind;
	frame->pid = made->from_pid;
	frame->tid = made->from_tid;
	walk__seek(walk, frame);
	return err;
}

/* --- data -----------------------------------------------------------------------------------------------------------
 */

/* The first that the thread got after wake_ts, and before until_ts. */
static struct graph_handoff *data_to(const struct walk *walk, uint32_t tid, uint64_t wake_ts, uint64_t until_ts)
{
	struct graph_handoff *handoff;
	size_t cnt;

	handoff = graph__handoffs_to(walk->graph, tid, wake_ts, until_ts, &cnt);
	for (size_t i = 0; i < cnt && i < DATA_LOOKS_MAX; i++)
		if (handoff[i].kind != WL_HANDOFF_BLOCK && handoff[i].kind != WL_HANDOFF_TIMER)
			return handoff[i].from_tid ? &handoff[i] : NULL;
	return NULL;
}

/*
 * Sent while the thread was waiting, or on the way when it began to: the first that it got once it was awake.  A thread
 * may also poll for others, as Varnish's does: then it is the first that the thread got for which the path came here,
 * which it woke.
 */
struct graph_handoff *walk__data_for(const struct walk *walk, const struct frame *frame,
				     const struct graph_segment *segment, uint64_t wake_ts)
{
	struct graph_handoff *data = data_to(walk, frame->tid, wake_ts, walk->look_ts);
	uint64_t until_ts = wake_ts + RECEIVED_AFTER_NS;

	if (data && data->from_ts <= wake_ts)
		return data;
	if (segment->state != WL_STATE_BLOCKED_POLL || frame->via != PATH_VIA_WAKEUP || walk->frame_cnt < 2)
		return NULL;
	data = data_to(walk, walk->frames[walk->frame_cnt - 2].tid, wake_ts,
		       until_ts < walk->look_ts ? until_ts : walk->look_ts);
	return data && data->from_tid != frame->tid && data->from_ts >= segment->begin_ts ? data : NULL;
}

bool walk__nobody_ended(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait)
{
	const struct graph_wakeup *wakeup = graph__wakeup_in(walk->graph, frame->tid, wait->begin_ts + 1, frame->at_ts);

	return walk->worker_tid && (!wakeup || !wakeup->waker_tid) &&
	       !walk__data_for(walk, frame, wait, wakeup ? wakeup->ts : frame->at_ts);
}

/* --- answers of others -------------------------------------------------------------------------------------------- */

/*
 * A broker's goroutine reads the request, another one the answer of the client that it was passed on to, and perhaps a
 * third one sends it: which one had it when is known, so that the interval is not `moved`.
 */
bool walk__is_passed_on(const struct walk *walk)
{
	const struct graph_interval *interval = walk->interval;

	return interval->end_tid >= WL_GOROUTINE_TID && interval->end_tid != interval->tid &&
	       !(interval->flags & WL_INTERVAL_MOVED);
}

/* The goroutine that ended this one's wait for something to do right before at_ts; NULL: none did. */
struct graph_wakeup *walk__passed_by(const struct walk *walk, const struct frame *frame)
{
	const struct graph_segment *wait = frame->segment;
	struct graph_wakeup *wakeup;

	if (!walk__is_passed_on(walk) || frame->tid != walk->interval->end_tid || !wait ||
	    wait->end_ts < frame->at_ts || wait->state != WL_STATE_BLOCKED_FUTEX)
		return NULL;
	wakeup = graph__wakeup_in(walk->graph, frame->tid, wait->begin_ts + 1, frame->at_ts);
	return wakeup && wakeup->waker_tid >= WL_GOROUTINE_TID && wakeup->waker_tid != frame->tid ? wakeup : NULL;
}

/*
 * At at_ts the goroutine was about to read the answer for which it worked for the interval from then on: it waited for
 * its bytes, of which the graph has the sending, then for a thread, and ran.
 */
bool walk__reads_answer(const struct walk *walk, const struct frame *frame)
{
	const struct graph_segment *segment = frame->segment;

	if (!walk__is_passed_on(walk) || frame->tid < WL_GOROUTINE_TID || !segment || segment->end_ts < frame->at_ts)
		return false;
	for (size_t back = 0; back < ANSWER_LOOKS_MAX && !segment->sid; back++, segment--) {
		if (segment->state == WL_STATE_BLOCKED_NET)
			return walk__data_for(walk, frame, segment, segment->end_ts);
		if (state_is_blocked(segment->state) || back >= frame->before || segment[-1].end_ts < segment->begin_ts)
			return false;
	}
	return false;
}

bool walk__is_answer(const struct walk *walk, const struct graph_handoff *handoff)
{
	return walk__is_passed_on(walk) && is_message(handoff) && handoff->from_pid != walk->interval->pid;
}

/* The last one that the goroutine has read: several, which it reads at a time, are for one request each. */
struct graph_handoff *walk__answer_to(const struct walk *walk, const struct frame *frame)
{
	if (frame->tid < WL_GOROUTINE_TID || frame->tid == walk->interval->tid || !walk__is_passed_on(walk))
		return NULL;
	return newest_handoff(walk->graph, frame->tid, frame->low_ts, frame->at_ts, ANSWER_LOOKS_MAX, last,
			      walk__is_answer(walk, last) && last->from_tid);
}

/* The answer was there before the goroutine turned to it: until then its sender was at it. */
int walk__push_answer(struct walk *walk, struct frame *frame)
{
	frame->reply = frame->generator;
	frame->generator = NULL;
	frame->next_tid = 0;
	frame->asked_ts = frame->low_ts;
	return walk__push_edge(walk, frame, NULL, frame->reply);
}
