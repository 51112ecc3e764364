/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk (path.c) and the steps that it leaves behind (path_steps.c); for these two only. */
#ifndef WHYLATE_MODEL_PATH_INTERNAL_H
#define WHYLATE_MODEL_PATH_INTERNAL_H

#include "model/path.h"

/* What a thread received once it was awake may come a little after the time that is walked. */
#define RECEIVED_AFTER_NS 10000000ULL

/* One thread on the way, whose time down to low_ts is to be explained.  The last frame's at_ts is how far all of it is.
 */
struct frame {
	uint64_t low_ts, at_ts;
	struct graph_segment *segment; /* the last one that began before at_ts, or NULL */
	size_t before;                 /* how many of its thread are in front of it */
	uint64_t queue_ts;             /* down to here nobody works on the interval; >= at_ts: somebody does */
	uint64_t own_end_ts;           /* of the own segment walked last: where its hand-off lies, at the latest */
	uint32_t next_tid;             /* that had the interval before queue_ts, 0: this thread, or nobody known */
	struct graph_handoff *generator;
	struct graph_handoff *reply; /* what it had asked another thread for came at queue_ts; asked at asked_ts */
	struct graph_wakeup *notice; /* or another thread of the process told that it was done, at queue_ts */
	uint64_t asked_ts;
	uint64_t change_ts; /* when it last changed its thread, and how often at that very time */
	uint32_t change_cnt;
	uint64_t object; /* of the lock behind which this thread is */
	uint32_t object_name, syscall;
	uint32_t tid, pid;
	uint8_t behind; /* enum wl_category of the wait that led here */
	uint8_t wait, sure, certainty, via, kind, depth;
	bool own; /* it worked for the interval at some time: when it does not, the interval queues */
};

struct walk {
	struct path *path;
	const struct graph *graph;
	const struct graph_interval *interval;
	uint64_t look_ts; /* what a thread received is looked for up to here */
	struct frame frames[PATH_DEPTH_MAX];
	size_t frame_cnt;
	uint32_t worker_tid; /* who told the interval's event loop that it was done, 0: nobody */
	bool full;           /* PATH_STEPS_MAX is reached */
};

/* Whether the thread works for the interval.  Nothing known to the contrary will do on the threads it is known to be
 * on. */
bool walk__is_own(const struct walk *walk, const struct frame *frame, const struct graph_segment *segment);

/* The category of a followed wait: at the other end of a pipe, there is somebody. */
enum wl_category path_wait_category(uint8_t state);
/* The category of a thread's own doings: see path.h. */
enum wl_category frame__category(const struct frame *frame, uint8_t state, bool own);

/* What every step of the frame says; its thread's doings are those of `segment`, or nobody knows (NULL). */
struct path_step frame__step(const struct frame *frame, const struct graph_segment *segment);
void frame__set_category(const struct frame *frame, struct path_step *step, enum wl_category category);

/* Each explains the time from begin_ts to the frame's at_ts, which becomes begin_ts.  0 or -ENOMEM. */
int walk__push_step(struct walk *walk, struct frame *frame, struct path_step step, uint64_t begin_ts);
/* The thread did what the segment says (NULL: nobody knows). */
int walk__push_doings(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts);
/* Nobody worked on the interval; the thread that it waited for did what the segment says (NULL: nobody knows). */
int walk__push_queue(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts);
/* A wait that is not followed further, although somebody ended it. */
int walk__push_wait(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts,
		    const struct graph_wakeup *wakeup);
/* A signal stopped the thread. */
int walk__push_stopped(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts);
int walk__push_other(struct walk *walk, struct frame *frame, uint64_t begin_ts, enum path_flag why);

/* An edge that the path of the last frame goes along. */
int walk__push_edge(struct walk *walk, const struct frame *frame, struct graph_wakeup *wakeup,
		    struct graph_handoff *handoff);
/*
 * Down to low_ts, the time before at_ts is explained by another thread, for which the one of the last frame waits as
 * the segment says.
 */
int walk__follow(struct walk *walk, const struct graph_segment *segment, uint32_t pid, uint32_t tid, uint64_t low_ts,
		 enum path_via via, uint8_t kind, uint8_t certainty);

/*
 * The newest hand-off to a thread from from_ts to to_ts for which `condition` is true; the condition calls it
 * `handoff`.  Only the last `looks` hand-offs are tested.  NULL: none.
 */
#define newest_handoff(graph, tid, from_ts, to_ts, looks, handoff, condition)                                          \
	({                                                                                                             \
		size_t cnt_, looked_ = 0;                                                                              \
		struct graph_handoff *handoffs_ = graph__handoffs_to(graph, tid, from_ts, to_ts, &cnt_), *met_ = NULL; \
                                                                                                                       \
		while (!met_ && looked_ < cnt_ && looked_ < (looks)) {                                                 \
			struct graph_handoff *handoff = &handoffs_[cnt_ - 1 - looked_++];                              \
                                                                                                                       \
			if (condition)                                                                                 \
				met_ = handoff;                                                                        \
		}                                                                                                      \
		met_;                                                                                                  \
	})

bool walk__on_stack(const struct walk *walk, uint32_t tid);
/* Finds the frame's segment at at_ts anew. */
void walk__seek(const struct walk *walk, struct frame *frame);

/* path_reply.c: counts a change of the frame's thread; true: there were too many at one moment. */
bool frame__changes_in_circles(struct frame *frame);
/*
 * The frame's thread has no history right before at_ts.  A server may have made it for the connection, thread or
 * process: until then its creator had what it was to do.  segment: the thread's last one before, or NULL.
 */
int walk__gap(struct walk *walk, struct frame *frame, const struct graph_segment *segment);
/* Whether a reply came after since_ts to what the thread had asked for the interval; frame->reply. */
bool walk__find_reply(const struct walk *walk, struct frame *frame, uint64_t since_ts);
/* The reply and its request are edges; the interval is queued back to the reply. */
int walk__push_reply(struct walk *walk, struct frame *frame);
/*
 * Likewise of a worker thread that ended this thread's wait in its event loop (NULL: there was none); frame->notice and
 * asked_ts.
 */
bool walk__find_notice(const struct walk *walk, struct frame *frame, const struct graph_segment *wait);
/* … one of its last waits before at_ts. */
bool walk__find_last_notice(const struct walk *walk, struct frame *frame);
int walk__push_notice(struct walk *walk, struct frame *frame);
/* … a worker thread that wrote to what the loop polls, after since_ts: frame->reply. */
bool walk__find_told(const struct walk *walk, struct frame *frame, uint64_t since_ts);
int walk__push_told(struct walk *walk, struct frame *frame, uint64_t since_ts);
bool walk__is_for_another(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait);
/* A worker has told the loop later, and nobody is known who ended this wait. */
bool walk__nobody_ended(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait);
/* From the reply, or the notice, back to the request. */
int walk__follow_reply(struct walk *walk, struct frame *frame);
/* In its event loop when the reply came: until it was awake the reply was under way. */
int walk__to_reply(struct walk *walk, struct frame *frame, const struct graph_segment *segment);
/*
 * In its event loop, and no reply is known, back to begin_ts: what the worker did that has told the loop later, or the
 * interval's own wait.
 */
int walk__idle(struct walk *walk, struct frame *frame, const struct graph_segment *segment, uint64_t begin_ts);

/*
 * path_pool.c: whether the thread has put the interval into a queue of the program.  frame->next_tid: who had it last,
 * until queue_ts; frame->generator: how the thread got it back, NULL: not known.
 */
bool walk__find_taker(const struct walk *walk, struct frame *frame);

/* path_lock.c */
bool walk__woken_in_vain(const struct walk *walk, const struct frame *frame, const struct graph_segment *wait,
			 const struct graph_wakeup *wakeup);
/* Who ended the last of the waits that one with a timeout is tried again by; `timeout`: nobody, or it is no such wait.
 */
struct graph_wakeup *walk__last_waker(const struct walk *walk, const struct frame *frame,
				      const struct graph_segment *wait, struct graph_wakeup *timeout);

/* What ended the wait of a thread for data at wake_ts; NULL: not known. */
bool walk__is_passed_on(const struct walk *walk);
struct graph_wakeup *walk__passed_by(const struct walk *walk, const struct frame *frame);
struct graph_handoff *walk__answer_to(const struct walk *walk, const struct frame *frame);
bool walk__is_answer(const struct walk *walk, const struct graph_handoff *handoff);
int walk__push_answer(struct walk *walk, struct frame *frame);
bool walk__reads_answer(const struct walk *walk, const struct frame *frame);
struct graph_handoff *walk__data_for(const struct walk *walk, const struct frame *frame,
				     const struct graph_segment *segment, uint64_t wake_ts);

#endif
