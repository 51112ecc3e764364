// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/path_internal.h"

#include "base/names.h"
#include "base/vec.h"

#include <string.h>

/* What is done to a thread from outside delays everybody who waits for it. */
static bool is_inflicted(enum wl_category category)
{
	return category == WL_CATEGORY_IRQ_HARD || category == WL_CATEGORY_IRQ_SOFT ||
	       category == WL_CATEGORY_IRQ_TIMER || category == WL_CATEGORY_IRQ_IPI || category == WL_CATEGORY_RUNQ ||
	       category == WL_CATEGORY_THROTTLED;
}

enum wl_category path_wait_category(uint8_t state)
{
	return state == WL_STATE_BLOCKED_PIPE ? WL_CATEGORY_IO_NET : state_category(state);
}

bool walk__is_own(const struct walk *walk, const struct frame *frame, const struct graph_segment *segment)
{
	const struct graph_interval *interval = walk->interval;

	if (segment->sid)
		return segment->sid == interval->sid;
	/* Who only sends the reply waited for something to do before. */
	if (segment->state == WL_STATE_BLOCKED_FUTEX && frame->tid == interval->end_tid && walk__is_passed_on(walk))
		return false;
	return (frame->tid == interval->tid || frame->tid == interval->end_tid) && frame->at_ts > interval->pickup_ts;
}

static bool same_step(const struct path_step *a, const struct path_step *b)
{
	return a->sid == b->sid && a->object == b->object && a->pid == b->pid && a->tid == b->tid &&
	       a->culprit_pid == b->culprit_pid && a->culprit_tid == b->culprit_tid &&
	       a->culprit_name == b->culprit_name && a->object_name == b->object_name && a->syscall == b->syscall &&
	       a->state == b->state && a->category == b->category && a->wait == b->wait && a->sure == b->sure &&
	       a->certainty == b->certainty && a->via == b->via && a->kind == b->kind && a->transit == b->transit &&
	       a->depth == b->depth && !memcmp(a->hop_tids, b->hop_tids, sizeof(a->hop_tids));
}

/* The steps come latest first.  One that goes on as the one after it becomes part of it. */
int walk__push_step(struct walk *walk, struct frame *frame, struct path_step step, uint64_t begin_ts)
{
	struct path *path = walk->path;
	struct path_step *last = path->steps.cnt ? &path->steps.items[path->steps.cnt - 1] : NULL;

	for (size_t i = 1; i < frame->depth && i <= PATH_HOPS_MAX; i++)
		step.hop_tids[i - 1] = walk->frames[i].tid;
	step.begin_ts = begin_ts;
	step.end_ts = frame->at_ts;
	frame->at_ts = begin_ts;
	if (step.begin_ts >= step.end_ts)
		return 0;
	if (step.certainty == WL_CERTAINTY_AMBIGUOUS)
		path->flags |= PATH_AMBIGUOUS;
	if (last && last->begin_ts == step.end_ts && same_step(last, &step)) {
		last->begin_ts = begin_ts;
		return 0;
	}
	walk->full = path->steps.cnt + 2 >= PATH_STEPS_MAX;
	return vec_push(&path->steps, step);
}

struct path_step frame__step(const struct frame *frame, const struct graph_segment *segment)
{
	struct path_step step = {
		.tid = frame->tid,
		.pid = segment ? segment->pid : frame->pid,
		.state = segment ? segment->state : WL_STATE_UNKNOWN,
		.wait = frame->wait,
		.certainty = frame->certainty,
		.via = frame->via,
		.kind = frame->kind,
		.depth = frame->depth,
	};

	if (segment) {
		step.sid = segment->sid;
		step.type = segment->type;
		step.object = segment->object;
		step.object_name = segment->object_name;
		step.syscall = segment->syscall;
	}
	if (frame->behind == WL_CATEGORY_LOCK) {
		step.object = frame->object;
		step.object_name = frame->object_name;
	}
	return step;
}

void frame__set_category(const struct frame *frame, struct path_step *step, enum wl_category category)
{
	step->category = category;
	if (!frame->depth)
		step->wait = category;
	step->sure = frame->certainty == WL_CERTAINTY_AMBIGUOUS ? frame->sure : category;
}

enum wl_category frame__category(const struct frame *frame, uint8_t state, bool own)
{
	enum wl_category category = state_category(state);

	if (!frame->depth || own || is_inflicted(category))
		return category;
	if (frame->behind == WL_CATEGORY_LOCK || frame->behind == WL_CATEGORY_IO_DISK)
		return frame->behind;
	return category == WL_CATEGORY_ONCPU || category == WL_CATEGORY_OTHER ? frame->behind : category;
}

static void blame_runner(struct path_step *step, const struct graph_segment *segment)
{
	step->culprit_pid = segment->by_pid;
	step->culprit_tid = segment->by_tid;
	step->culprit_name = segment->by_name;
}

/* Segments of the goroutine ahead that are looked at for one wait: a goroutine may wait for seconds. */
#define AHEAD_MAX 64

/* What has the CPU that the goroutine ahead needs. */
static const struct graph_segment *runner_ahead(const struct frame *frame, const struct graph_segment *wait,
						const struct graph_segment *ahead)
{
	bool waits = state_category(ahead->state) == WL_CATEGORY_RUNQ && ahead->by_tid != frame->tid;

	return waits ? ahead : wait;
}

static bool same_runner(const struct graph_segment *a, const struct graph_segment *b)
{
	return a->by_pid == b->by_pid && a->by_tid == b->by_tid && a->by_name == b->by_name;
}

/*
 * A goroutine that can run waits for the thread of another one, which may wait for a CPU itself.  Returns since when
 * that has not changed, begin_ts at the earliest.
 */
static uint64_t blame_runner_of(const struct walk *walk, const struct frame *frame, struct path_step *step,
				const struct graph_segment *segment, uint64_t begin_ts)
{
	const struct graph_segment *ahead, *runner = segment;
	size_t cnt, at;

	blame_runner(step, segment);
	if (frame->tid < WL_GOROUTINE_TID || segment->by_tid < WL_GOROUTINE_TID)
		return begin_ts;
	ahead = graph__segments(walk->graph, segment->by_tid, begin_ts, frame->at_ts, &cnt);
	if (!cnt || cnt > AHEAD_MAX)
		return begin_ts;
	if (ahead[cnt - 1].end_ts >= frame->at_ts)
		runner = runner_ahead(frame, segment, &ahead[cnt - 1]);
	for (at = cnt; at && same_runner(runner, runner_ahead(frame, segment, &ahead[at - 1])); at--)
		;
	if (runner != segment) {
		blame_runner(step, runner);
		if (step->certainty < WL_CERTAINTY_INFERRED)
			step->certainty = WL_CERTAINTY_INFERRED;
	}
	if (!at || ahead[at - 1].end_ts <= begin_ts)
		return begin_ts;
	/* Segments may overlap by a tie of clocks: the time before the last look is always less. */
	return at < cnt && ahead[at].begin_ts < ahead[at - 1].end_ts ? ahead[at].begin_ts : ahead[at - 1].end_ts;
}

int walk__push_doings(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts)
{
	struct path_step step = frame__step(frame, segment);
	bool own = segment && walk__is_own(walk, frame, segment);

	frame__set_category(frame, &step, frame__category(frame, step.state, own));
	if (!segment || segment->state == WL_STATE_UNKNOWN)
		walk->path->flags |= PATH_GAP;
	if (segment && step.category == WL_CATEGORY_RUNQ) {
		begin_ts = blame_runner_of(walk, frame, &step, segment, begin_ts);
	} else if (frame->depth && !own && !is_inflicted(step.category)) {
		step.culprit_pid = step.pid;
		step.culprit_tid = step.tid;
	} else if (segment && segment->state == WL_STATE_BLOCKED_FUTEX) {
		step.culprit_tid = segment->owner_tid;
	}
	return walk__push_step(walk, frame, step, begin_ts);
}

/* What the one that continues it does meanwhile is no matter: as a rule it has stopped the thread itself. */
int walk__push_stopped(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts)
{
	struct graph_wakeup *wakeup = graph__wakeup_in(walk->graph, frame->tid, segment->begin_ts + 1, segment->end_ts);
	struct path_step step = frame__step(frame, segment);
	int err = wakeup ? walk__push_edge(walk, frame, wakeup, NULL) : 0;

	frame__set_category(frame, &step, WL_CATEGORY_OTHER);
	if (wakeup) {
		step.culprit_pid = wakeup->waker_pid;
		step.culprit_tid = wakeup->waker_tid;
		step.culprit_name = wakeup->waker_name;
	}
	return err ? err : walk__push_step(walk, frame, step, begin_ts);
}

int walk__push_queue(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts)
{
	struct path_step step = frame__step(frame, segment);
	enum wl_category category = state_category(step.state);
	bool waits = frame->generator || frame->depth || frame->at_ts <= walk->interval->pickup_ts;

	if (segment && segment->state == WL_STATE_BLOCKED_STOPPED)
		return walk__push_stopped(walk, frame, segment, begin_ts);
	if (segment && is_inflicted(category)) {
		frame__set_category(frame, &step, category);
		if (category == WL_CATEGORY_RUNQ)
			begin_ts = blame_runner_of(walk, frame, &step, segment, begin_ts);
		return walk__push_step(walk, frame, step, begin_ts);
	}
	if (!segment || segment->state == WL_STATE_UNKNOWN)
		walk->path->flags |= PATH_GAP;
	/* On a thread without a history it is not even known to be queueing. */
	frame__set_category(frame, &step, segment || waits ? WL_CATEGORY_QUEUE : WL_CATEGORY_OTHER);
	if (segment) {
		step.culprit_pid = step.pid;
		step.culprit_tid = step.tid;
	}
	if (frame->generator)
		step.kind = frame->generator->kind;
	return walk__push_step(walk, frame, step, begin_ts);
}

int walk__push_wait(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts,
		    const struct graph_wakeup *wakeup)
{
	struct path_step step = frame__step(frame, segment);
	enum wl_category category = path_wait_category(segment->state);

	if (frame->depth && frame->behind == WL_CATEGORY_LOCK && category != WL_CATEGORY_LOCK)
		return walk__push_doings(walk, frame, segment, begin_ts);
	if (wakeup->certainty > step.certainty)
		step.certainty = wakeup->certainty;
	frame__set_category(frame, &step, category);
	step.object = segment->object;
	step.object_name = segment->object_name;
	step.culprit_pid = wakeup->waker_pid;
	step.culprit_tid = wakeup->waker_tid;
	step.culprit_name = wakeup->waker_name;
	return walk__push_step(walk, frame, step, begin_ts);
}

int walk__push_other(struct walk *walk, struct frame *frame, uint64_t begin_ts, enum path_flag why)
{
	struct path_step step = frame__step(frame, NULL);

	walk->path->flags |= why;
	frame__set_category(frame, &step, WL_CATEGORY_OTHER);
	return walk__push_step(walk, frame, step, begin_ts);
}
