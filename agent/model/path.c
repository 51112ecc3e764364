// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/path_internal.h"

#include "base/vec.h"

#define GENERATOR_LOOKS_MAX 16
#define HANDOFF_LOOKS_MAX   8

int walk__push_edge(struct walk *walk, const struct frame *frame, struct graph_wakeup *wakeup,
		    struct graph_handoff *handoff)
{
	const struct path_edge edge = {
		.wakeup = wakeup,
		.handoff = handoff,
		.tid = frame->tid,
		.depth = frame->depth,
	};

	return vec_push(&walk->path->edges, edge);
}

/* The thread waits for the disk until now, and nothing says for which request. */
static int push_disk_edge(struct walk *walk, const struct frame *frame, uint64_t begin_ts)
{
	const struct path_edge edge = {
		.disk_from_ts = begin_ts,
		.disk_to_ts = frame->at_ts,
		.tid = frame->tid,
		.depth = frame->depth,
	};

	return vec_push(&walk->path->edges, edge);
}

/* A segment that ended before may be of another process's thread, whose tid was used again. */
void walk__seek(const struct walk *walk, struct frame *frame)
{
	frame->segment = graph__segment_before(walk->graph, frame->tid, frame->at_ts, &frame->before);
	if (frame->segment && (!frame->pid || frame->segment->end_ts >= frame->at_ts))
		frame->pid = frame->segment->pid;
}

/* Back to the last segment that began before at_ts, unless it was another thread's of the same tid. */
static void rewind_to(const struct walk *walk, struct frame *frame)
{
	bool moved = false;

	while (frame->segment && frame->segment->begin_ts >= frame->at_ts) {
		frame->segment = frame->before ? frame->segment - 1 : NULL;
		frame->before -= frame->before > 0;
		moved = true;
	}
	if (!frame->segment || (!moved && frame->segment->end_ts >= frame->at_ts))
		return;
	/* An exit at the very end of what is asked for is its own. */
	if (frame->segment->pid != frame->pid ||
	    graph__exit_in(walk->graph, frame->tid, frame->segment->end_ts, frame->at_ts - !moved))
		frame->segment = NULL;
}

bool walk__on_stack(const struct walk *walk, uint32_t tid)
{
	for (size_t i = 0; i < walk->frame_cnt; i++)
		if (walk->frames[i].tid == tid)
			return true;
	return false;
}

/*
 * Down to low_ts, the time before at_ts is explained by another thread, for which the one of the last frame waits as
 * the segment says.
 */
int walk__follow(struct walk *walk, const struct graph_segment *segment, uint32_t pid, uint32_t tid, uint64_t low_ts,
		 enum path_via via, uint8_t kind, uint8_t certainty)
{
	struct frame *from = &walk->frames[walk->frame_cnt - 1], *to;
	enum wl_category category = path_wait_category(segment->state);

	if (walk__on_stack(walk, tid))
		return walk__push_other(walk, from, low_ts, PATH_LOOP);
	if (walk->frame_cnt == PATH_DEPTH_MAX)
		return walk__push_other(walk, from, low_ts, PATH_TOO_LONG);
	to = &walk->frames[walk->frame_cnt++];
	*to = (struct frame){
		.low_ts = low_ts,
		.at_ts = from->at_ts,
		.queue_ts = UINT64_MAX,
		.own_end_ts = from->at_ts,
		.pid = pid,
		.tid = tid,
		.behind = category,
		.wait = from->depth ? from->wait : category,
		.certainty = certainty > from->certainty ? certainty : from->certainty,
		.via = via,
		.kind = kind,
		.depth = (uint8_t)(from->depth + 1),
	};
	to->sure =
		from->certainty == WL_CERTAINTY_AMBIGUOUS ? from->sure : frame__category(from, segment->state, false);
	if (category == WL_CATEGORY_LOCK) {
		to->object = segment->object;
		to->object_name = segment->object_name;
		to->syscall = segment->syscall;
	}
	from->at_ts = low_ts;
	walk__seek(walk, to);
	return 0;
}

static bool waits_for_data(uint8_t state)
{
	return state == WL_STATE_BLOCKED_NET || state == WL_STATE_BLOCKED_POLL || state == WL_STATE_BLOCKED_PIPE ||
	       state == WL_STATE_BLOCKED_OTHER;
}

/* The last request or timer that was done when the thread was woken. */
static struct graph_handoff *device_for(const struct walk *walk, uint32_t tid, const struct graph_segment *segment,
					uint64_t wake_ts)
{
	return newest_handoff(walk->graph, tid, segment->begin_ts, wake_ts, HANDOFF_LOOKS_MAX, last,
			      last->kind == WL_HANDOFF_BLOCK || last->kind == WL_HANDOFF_TIMER);
}

/* Back to low_ts the thread waits because of whom the hand-off comes from. */
static int push_culprit(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts,
			uint8_t certainty, const struct graph_handoff *handoff)
{
	struct path_step step = frame__step(frame, segment);

	if (certainty > step.certainty)
		step.certainty = certainty;
	frame__set_category(frame, &step, path_wait_category(segment->state));
	step.kind = handoff->kind;
	step.culprit_pid = handoff->from_pid;
	step.culprit_tid = handoff->from_tid;
	step.culprit_name = handoff->from_name;
	return walk__push_step(walk, frame, step, low_ts);
}

/* A wait for a timer that another thread has armed. */
static int push_timer(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts,
		      const struct graph_handoff *handoff)
{
	/* What the holder of a lock waits for is its own affair. */
	if (frame->depth && frame->behind == WL_CATEGORY_LOCK)
		return walk__push_doings(walk, frame, segment, low_ts);
	return push_culprit(walk, frame, segment, low_ts, handoff->certainty, handoff);
}

/* Of those that the disk served between the two, who had it for at least half of that time; NULL: nobody. */
static struct graph_handoff *rival_in(const struct walk *walk, uint32_t pid, uint32_t device, uint64_t from_ts,
				      uint64_t to_ts)
{
	uint64_t rival_ns = 0;
	struct graph_handoff *rival = NULL;

	if (from_ts < to_ts)
		rival = graph__block_rival(walk->graph, device, pid, from_ts, to_ts, &rival_ns);
	return rival && rival_ns * 2 >= to_ts - from_ts ? rival : NULL;
}

/* A wait for a device, which may have served somebody else for most of that time. */
static int push_device(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts,
		       struct graph_handoff *handoff)
{
	uint64_t begin_ts = handoff->to_ts - handoff->queue_ns - handoff->service_ns;
	uint8_t certainty = handoff->certainty;
	struct graph_handoff *rival = NULL;
	int err = walk__push_edge(walk, frame, NULL, handoff);

	if (err)
		return err;
	if (handoff->kind == WL_HANDOFF_TIMER && handoff->from_tid && handoff->from_tid != frame->tid)
		return push_timer(walk, frame, segment, low_ts, handoff);
	if (handoff->kind == WL_HANDOFF_BLOCK && segment->state == WL_STATE_BLOCKED_DISK)
		rival = rival_in(walk, segment->pid, handoff->device, begin_ts, handoff->to_ts);
	/* That both were with the device at the same time is known, that one delayed the other follows from it. */
	if (certainty < WL_CERTAINTY_INFERRED)
		certainty = WL_CERTAINTY_INFERRED;
	if (rival)
		err = push_culprit(walk, frame, segment, begin_ts > low_ts ? begin_ts : low_ts, certainty, rival);
	if (err || frame->at_ts <= low_ts)
		return err;
	return walk__push_doings(walk, frame, segment, low_ts);
}

/*
 * What a wait for a disk ended with was not seen: no request that was done woke the thread (it waited for room in the
 * disk's queue, say, or the kernel did not tell).  Where the whole machine used one disk meanwhile, it was that one.
 */
static int push_disk(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts)
{
	struct graph_handoff *rival;
	int err;

	rival = rival_in(walk, segment->pid, GRAPH_ONLY_DEVICE, segment->begin_ts, frame->at_ts);
	if (rival) {
		err = push_disk_edge(walk, frame, segment->begin_ts);
		return err ? err : push_culprit(walk, frame, segment, low_ts, WL_CERTAINTY_INFERRED, rival);
	}
	return walk__push_doings(walk, frame, segment, low_ts);
}

/* Data came from another thread: first the time it was under way, then what the sender did before it sent them. */
static int follow_data(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts,
		       struct graph_handoff *handoff)
{
	struct path_step step = frame__step(frame, segment);
	uint64_t sent_ts = handoff->from_ts > low_ts ? handoff->from_ts : low_ts;
	int err = walk__push_edge(walk, frame, NULL, handoff);

	/* Bytes may arrive before the call returns that sends them. */
	if (sent_ts > frame->at_ts)
		sent_ts = frame->at_ts;

	if (err)
		return err;
	if (handoff->certainty > step.certainty)
		step.certainty = handoff->certainty;
	frame__set_category(frame, &step, path_wait_category(segment->state));
	step.kind = handoff->kind;
	step.transit = 1;
	err = walk__push_step(walk, frame, step, sent_ts);
	if (err || frame->at_ts <= low_ts)
		return err;
	return walk__follow(walk, segment, handoff->from_pid, handoff->from_tid, low_ts, PATH_VIA_HANDOFF,
			    handoff->kind, handoff->certainty);
}

/* Algorithm 2, lines 5 to 7: what the waker did meanwhile. */
static int follow_wakeup(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t low_ts,
			 struct graph_wakeup *wakeup)
{
	const struct graph_segment *doings;
	size_t cnt;
	int err = walk__push_edge(walk, frame, wakeup, NULL);

	if (err)
		return err;
	if (walk__woken_in_vain(walk, frame, segment, wakeup))
		return walk__follow(walk, segment, segment->pid, segment->owner_tid, low_ts, PATH_VIA_OWNER, 0,
				    WL_CERTAINTY_INFERRED);
	doings = graph__segments(walk->graph, wakeup->waker_tid, low_ts, frame->at_ts, &cnt);
	if (wakeup->waker_tid == frame->tid)
		return walk__push_doings(walk, frame, segment, low_ts);
	if (!cnt || doings[cnt - 1].pid != wakeup->waker_pid)
		return walk__push_wait(walk, frame, segment, low_ts, wakeup);
	return walk__follow(walk, segment, wakeup->waker_pid, wakeup->waker_tid, low_ts, PATH_VIA_WAKEUP, 0,
			    wakeup->certainty);
}

static int walk_blocked(struct walk *walk, struct frame *frame, const struct graph_segment *segment)
{
	uint64_t low_ts = segment->begin_ts > frame->low_ts ? segment->begin_ts : frame->low_ts, wake_ts = frame->at_ts;
	struct graph_handoff *data = NULL, *device;
	struct graph_wakeup *wakeup;
	int err = 0;

	if (segment->state == WL_STATE_BLOCKED_STOPPED)
		return walk__push_stopped(walk, frame, segment, low_ts);
	/* Nobody is behind a sleep; what the holder of a lock waits for at the disk is its own affair. */
	if (segment->state == WL_STATE_BLOCKED_SLEEP) {
		device = device_for(walk, frame->tid, segment, wake_ts);
		err = device ? walk__push_edge(walk, frame, NULL, device) : 0;
		return err ? err : walk__push_doings(walk, frame, segment, low_ts);
	}
	if (segment->state == WL_STATE_BLOCKED_DISK && frame->behind == WL_CATEGORY_LOCK && frame->depth)
		return walk__push_doings(walk, frame, segment, low_ts);
	wakeup = graph__wakeup_in(walk->graph, frame->tid, segment->begin_ts + 1, frame->at_ts);
	if (wakeup)
		wake_ts = wakeup->ts > low_ts ? wakeup->ts : low_ts;
	/* Woken, and it went on waiting: for that nobody is named. */
	if (wake_ts < frame->at_ts)
		err = walk__push_doings(walk, frame, segment, wake_ts);
	if (err || frame->at_ts <= low_ts)
		return err;
	if (!wakeup || !wakeup->waker_tid)
		wakeup = walk__last_waker(walk, frame, segment, wakeup);
	if (wakeup && wakeup->waker_tid)
		return follow_wakeup(walk, frame, segment, low_ts, wakeup);
	if (waits_for_data(segment->state) && (!wakeup || wakeup->context != WL_CONTEXT_TIMER))
		data = walk__data_for(walk, frame, segment, wake_ts);
	device = data ? NULL : device_for(walk, frame->tid, segment, wake_ts);
	if (data)
		return follow_data(walk, frame, segment, data->to_tid == frame->tid ? low_ts : frame->low_ts, data);
	if (device)
		return push_device(walk, frame, segment, low_ts, device);
	if (!wakeup)
		walk->path->flags |= PATH_NO_EDGE;
	else
		err = walk__push_edge(walk, frame, wakeup, NULL);
	if (err)
		return err;
	if (segment->state == WL_STATE_BLOCKED_DISK)
		return push_disk(walk, frame, segment, low_ts);
	return walk__push_doings(walk, frame, segment, low_ts);
}

/* The end of the last own segment of that thread before at_ts, if it is after low_ts; 0: none. */
static uint64_t own_before(const struct walk *walk, const struct frame *frame)
{
	struct frame scout = *frame;

	while (scout.at_ts > frame->low_ts) {
		rewind_to(walk, &scout);
		if (!scout.segment || scout.segment->end_ts <= frame->low_ts)
			return 0;
		if (scout.segment->end_ts < scout.at_ts)
			scout.at_ts = scout.segment->end_ts;
		if (walk__is_own(walk, &scout, scout.segment))
			return scout.at_ts;
		scout.at_ts = scout.segment->begin_ts;
	}
	return 0;
}

static bool is_generator(const struct walk *walk, const struct frame *frame, const struct graph_handoff *handoff)
{
	bool made_for_it = handoff->kind == WL_HANDOFF_QUEUE || handoff->kind == WL_HANDOFF_FORK;

	if (!handoff->from_tid || handoff->from_ts > frame->at_ts)
		return false;
	return handoff->sid ? handoff->sid == walk->interval->sid : made_for_it && handoff->to_ts >= frame->at_ts;
}

static struct graph_handoff *generator_of(const struct walk *walk, const struct frame *frame)
{
	return newest_handoff(walk->graph, frame->tid, frame->low_ts, frame->own_end_ts, GENERATOR_LOOKS_MAX, last,
			      is_generator(walk, frame, last));
}

/*
 * Nobody works on the interval right before at_ts.  Algorithm 2, lines 9 to 24: it waits since this thread last worked
 * on it, or since its generator handed it over, or, where neither is known, since another thread it was on let go of
 * it.
 */
static int find_queue(struct walk *walk, struct frame *frame)
{
	struct graph_wakeup *passed = walk__passed_by(walk, frame);
	uint64_t since_ts = passed ? 0 : own_before(walk, frame);
	struct frame pickup = {.low_ts = frame->low_ts, .at_ts = frame->at_ts, .tid = walk->interval->tid};

	frame->generator = NULL;
	frame->next_tid = 0;
	if (passed) {
		frame->next_tid = passed->waker_tid;
		frame->queue_ts = passed->ts > frame->low_ts ? passed->ts : frame->low_ts;
		return walk__push_edge(walk, frame, passed, NULL);
	}
	if (since_ts > frame->low_ts && walk__find_reply(walk, frame, since_ts))
		return walk__push_reply(walk, frame);
	if (since_ts && walk__find_taker(walk, frame))
		return frame->generator ? walk__push_edge(walk, frame, NULL, frame->generator) : 0;
	if (since_ts > frame->low_ts && walk__find_told(walk, frame, since_ts))
		return walk__push_told(walk, frame, since_ts);
	if (since_ts > frame->low_ts && walk__find_last_notice(walk, frame))
		return walk__push_notice(walk, frame);
	if (!since_ts)
		frame->generator = generator_of(walk, frame) ?: walk__answer_to(walk, frame);
	if (frame->generator) {
		since_ts = frame->generator->from_ts;
		frame->next_tid = frame->generator->from_tid;
		frame->queue_ts = since_ts > frame->low_ts ? since_ts : frame->low_ts;
		return walk__is_answer(walk, frame->generator) ? walk__push_answer(walk, frame)
							       : walk__push_edge(walk, frame, NULL, frame->generator);
	}
	if (!since_ts && !frame->depth && frame->tid != walk->interval->tid) {
		walk__seek(walk, &pickup);
		since_ts = own_before(walk, &pickup);
		frame->next_tid = since_ts ? walk->interval->tid : 0;
	}
	frame->queue_ts = since_ts > frame->low_ts ? since_ts : frame->low_ts;
	return 0;
}

/* The thread that had the interval before takes the frame over. */
static void change_thread(const struct walk *walk, struct frame *frame)
{
	uint8_t certainty = frame->generator ? frame->generator->certainty : WL_CERTAINTY_INFERRED;

	if (certainty == WL_CERTAINTY_AMBIGUOUS && frame->certainty < certainty)
		frame->sure = WL_CATEGORY_QUEUE;
	frame->certainty = certainty > frame->certainty ? certainty : frame->certainty;
	frame->via = PATH_VIA_GENERATOR;
	frame->kind = frame->generator ? frame->generator->kind : WL_HANDOFF_QUEUE;
	frame->pid = frame->generator ? frame->generator->from_pid : walk->interval->pid;
	frame->tid = frame->next_tid;
	frame->generator = frame->reply = NULL;
	frame->notice = NULL;
	frame->next_tid = 0;
	frame->queue_ts = UINT64_MAX;
	frame->own = true;
	frame->own_end_ts = frame->at_ts;
	walk__seek(walk, frame);
}

static int walk_queue(struct walk *walk, struct frame *frame)
{
	const struct graph_segment *segment = frame->segment;
	uint64_t begin_ts;

	if (segment && segment->end_ts <= frame->queue_ts)
		segment = NULL;
	if (!segment) {
		begin_ts = frame->queue_ts;
		/* Until it was picked up it waits; later nothing is known. */
		if (frame->at_ts > walk->interval->pickup_ts && begin_ts < walk->interval->pickup_ts)
			begin_ts = walk->interval->pickup_ts;
		return walk__push_queue(walk, frame, NULL, begin_ts);
	}
	if (segment->end_ts < frame->at_ts)
		return walk__push_queue(walk, frame, NULL, segment->end_ts);
	begin_ts = segment->begin_ts > frame->queue_ts ? segment->begin_ts : frame->queue_ts;
	/*
	 * A thread that waits in its event loop is busy with nobody: the interval waits for what it asked for.  Had the
	 * worker told it before, it would not wait.
	 */
	if (segment->state == WL_STATE_BLOCKED_POLL && !frame->generator && !frame->reply &&
	    begin_ts >= walk->interval->pickup_ts)
		return walk__idle(walk, frame, segment, begin_ts);
	return walk__push_queue(walk, frame, segment, begin_ts);
}

/* The interval's thread waits in its event loop: for a reply, a worker, another interval, or anything else. */
static int walk_loop(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts)
{
	if (walk__find_reply(walk, frame, segment->begin_ts))
		return walk__to_reply(walk, frame, segment);
	if (walk__find_taker(walk, frame))
		return frame->generator ? walk__push_edge(walk, frame, NULL, frame->generator) : 0;
	if (walk__find_notice(walk, frame, segment) && frame->asked_ts < segment->begin_ts)
		return walk__push_notice(walk, frame);
	frame->notice = NULL;
	if (walk__is_for_another(walk, frame, segment) || walk__nobody_ended(walk, frame, segment))
		return walk__idle(walk, frame, segment, begin_ts);
	return walk_blocked(walk, frame, segment);
}

/* Explains some of the last frame's time. */
static int walk_on(struct walk *walk, struct frame *frame)
{
	const struct graph_segment *segment;
	uint64_t begin_ts;
	bool own;

	if (frame->at_ts == frame->queue_ts && (frame->reply || frame->notice))
		return walk__follow_reply(walk, frame);
	if (frame->at_ts == frame->queue_ts && frame->next_tid) {
		if (frame__changes_in_circles(frame))
			return walk__push_other(walk, frame, frame->low_ts, PATH_LOOP);
		change_thread(walk, frame);
		return 0;
	}
	rewind_to(walk, frame);
	if (frame->at_ts > frame->queue_ts)
		return walk_queue(walk, frame);
	segment = frame->segment;
	own = segment && segment->end_ts >= frame->at_ts && walk__is_own(walk, frame, segment);
	/* Also where the thread has no history any more: it may have been made for the interval. */
	if (!own && frame->own && (!segment || segment->end_ts >= frame->at_ts)) {
		if (!walk__reads_answer(walk, frame))
			return find_queue(walk, frame);
		own = true;
	}
	if (!segment || segment->end_ts < frame->at_ts)
		return walk__gap(walk, frame, segment);
	if (own) {
		frame->own = true;
		frame->own_end_ts = frame->at_ts;
	}
	begin_ts = segment->begin_ts > frame->low_ts ? segment->begin_ts : frame->low_ts;
	if (own && segment->state == WL_STATE_BLOCKED_POLL)
		return walk_loop(walk, frame, segment, begin_ts);
	if (state_is_blocked(segment->state))
		return walk_blocked(walk, frame, segment);
	/* Without a sid it is the interval's own from the pick-up on; before, that of who is to read an answer. */
	if (own && !segment->sid && begin_ts < walk->interval->pickup_ts && frame->at_ts > walk->interval->pickup_ts)
		begin_ts = walk->interval->pickup_ts;
	return walk__push_doings(walk, frame, segment, begin_ts);
}

static void turn_round(struct path *path)
{
	for (size_t i = 0, j = path->steps.cnt; i + 1 < j; i++) {
		struct path_step step = path->steps.items[i];

		path->steps.items[i] = path->steps.items[--j];
		path->steps.items[j] = step;
	}
}

static int walk_all(struct walk *walk)
{
	int err = 0;

	while (!err && walk->frame_cnt) {
		struct frame *frame = &walk->frames[walk->frame_cnt - 1];

		if (frame->at_ts <= frame->low_ts) {
			walk->frame_cnt--;
		} else if (walk->full) {
			walk->frames[0].at_ts = frame->at_ts;
			walk->frame_cnt = 0;
			err = walk__push_other(walk, &walk->frames[0], walk->interval->begin_ts, PATH_TOO_LONG);
		} else {
			err = walk_on(walk, frame);
		}
	}
	return err;
}

static int walk_from(struct walk *walk, struct frame frame)
{
	struct path *path = walk->path;
	int err;

	path->sid = walk->interval->sid;
	path->flags = 0;
	path->steps.cnt = path->edges.cnt = 0;
	walk->full = false;
	walk->frame_cnt = 1;
	walk->frames[0] = frame;
	walk__seek(walk, &walk->frames[0]);
	/* Where nothing is known of the thread that ended it. */
	if (!walk->frames[0].pid)
		walk->frames[0].pid = walk->interval->pid;
	err = walk_all(walk);
	turn_round(path);
	return err;
}

int path_walk(struct path *path, const struct graph *graph, const struct graph_interval *interval)
{
	struct walk walk = {.path = path, .graph = graph, .interval = interval, .look_ts = interval->end_ts};
	int err;

	if (interval->begin_ts > interval->pickup_ts || interval->pickup_ts > interval->end_ts)
		return -EINVAL;
	err = walk_from(&walk, (struct frame){
				       .low_ts = interval->begin_ts,
				       .at_ts = interval->end_ts,
				       .queue_ts = UINT64_MAX,
				       .own_end_ts = interval->end_ts,
				       .tid = interval->end_tid,
				       .pid = interval->end_tid == interval->tid ? interval->pid : 0,
				       .own = true,
			       });
	if (interval->flags & WL_INTERVAL_LOSSY)
		path->flags |= PATH_LOSSY;
	return err;
}

int path_walk_thread(struct path *path, const struct graph *graph, uint32_t pid, uint32_t tid, uint64_t begin_ts,
		     uint64_t end_ts)
{
	/* Of no interval: no segment is its own. */
	const struct graph_interval none = {
		.sid = UINT64_MAX, .begin_ts = begin_ts, .pickup_ts = end_ts, .end_ts = end_ts};
	struct walk walk = {.path = path, .graph = graph, .interval = &none, .look_ts = end_ts + RECEIVED_AFTER_NS};

	if (begin_ts > end_ts)
		return -EINVAL;
	return walk_from(&walk, (struct frame){
					.low_ts = begin_ts,
					.at_ts = end_ts,
					.queue_ts = UINT64_MAX,
					.own_end_ts = end_ts,
					.tid = tid,
					.pid = pid,
				});
}

void path__clear(struct path *path)
{
	vec_free(&path->steps);
	vec_free(&path->edges);
}
