/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a stretch of time: who was in which state, who woke whom, who handed work to whom (the tuples of
 * VProfiler §3.3.1).  Filled from records as they come or from the tables of a
 * shard; read by path_walk().  No I/O, one thread only.
 *
 * Order: everything may arrive a little out of order; an append costs as many moves as places it is late.
 * Memory: graph__bytes() says how much; graph__forget() and graph__shrink() drop what is old.
 * Names are numbers that the caller understands (an index into its strings, a system call); 0 is none.  `mark` belongs
 * to the caller, for "this row is written already" and the like; an append takes it as it is.
 * Pointers that come from here hold until the next append, forget or shrink.
 */
#ifndef WHYLATE_MODEL_GRAPH_H
#define WHYLATE_MODEL_GRAPH_H

#include <whylate/record.h>

#include <stdbool.h>
#include <stddef.h>

#define GRAPH_NO_CPU    UINT16_MAX
#define GRAPH_NO_DEVICE 0

/*
 * One thread in one state.  A thread's segments must not overlap (path_walk() clips them if they do); empty ones are
 * not taken.  A blocked one ends at its wake-up, what follows until the thread runs is a runnable one (RUNQ_*,
 * THROTTLED).  Where there is no segment nothing is known; the state UNKNOWN says the same of a stretch by name.
 */
struct graph_segment {
	uint64_t begin_ts, end_ts;
	uint64_t sid;    /* the interval it worked for, 0: none known */
	uint64_t object; /* futex address, descriptor, faulting address */
	uint32_t pid;    /* of this tid at that time */
	union {
		uint32_t owner_tid; /* futex: who held it when the wait began, 0: not known */
		uint32_t by_tid;    /* runnable: the task that had the CPU (the longest, if several), 0: not known */
	};
	uint32_t by_pid;
	uint32_t by_name; /* names, as above */
	uint32_t type;    /* of the interval `sid` */
	uint32_t object_name;
	uint32_t syscall;
	uint16_t cpu;
	uint8_t state; /* enum wl_state */
	uint8_t mark;
};

/* waker_tid 0: an interrupt, or nobody known. */
struct graph_wakeup {
	uint64_t ts; /* the end of the blocked segment, or within it if the thread was woken and went on waiting */
	uint32_t waker_pid, waker_tid;
	uint32_t waker_name;
	uint16_t cpu;
	uint8_t context;   /* enum wl_context */
	uint8_t certainty; /* enum wl_certainty */
	uint8_t mark;
};

/*
 * One side may be unknown: tid 0 and ts 0.  to_ts: a socket's, pipe's or eventfd's is when the receiver's call got the
 * data, so at or after its wake-up; a block request's its completion, a timer's its expiry, so at or before it; a
 * queue's when the receiver began to work on it, which is when its segments get that sid; a fork's the first segment.
 */
struct graph_handoff {
	uint64_t from_ts, to_ts;
	uint64_t sid;                  /* the interval that goes from one to the other, 0: not known */
	uint64_t object;               /* pipe, eventfd, timer, queue */
	uint64_t from_sid;             /* socket, unix: the interval for which its first byte was sent, 0: not known */
	uint64_t queue_ns, service_ns; /* block */
	uint32_t from_pid, from_tid;
	uint32_t to_pid, to_tid;
	uint32_t from_name;
	uint32_t device;   /* block, as the caller numbers them; GRAPH_NO_DEVICE */
	uint32_t row;      /* the caller's: where it keeps addresses and byte positions */
	uint8_t kind;      /* enum wl_handoff */
	uint8_t certainty; /* enum wl_certainty */
	uint8_t mark;
	uint8_t mixed; /* socket, unix: 1: other bytes of it were sent for other intervals */
};

/* A queue's hand-off, as its sender knows it. */
struct graph_given {
	uint64_t from_ts, to_ts;
	uint64_t sid;
	uint32_t to_tid;
};

/* What a path is walked of; kept by the caller. */
struct graph_interval {
	uint64_t sid;
	uint64_t begin_ts, pickup_ts, end_ts; /* in this order */
	uint32_t pid, tid;                    /* that picked it up */
	uint32_t end_tid;
	uint32_t flags; /* enum wl_interval_flag */
	uint32_t type;  /* a name */
	uint32_t row;   /* the caller's */
};

/* The thread executes, or is interrupted while it does. */
bool state_is_on_cpu(uint8_t state);
bool state_is_interrupt(uint8_t state);
/* It waits for a CPU. */
bool state_is_runnable(uint32_t state);
/* It waits for anything else. */
bool state_is_blocked(uint32_t state);
/* Two futexes of one lock or condition variable, by their addresses. */
#define FUTEX_OBJECT_SZ 64
static inline bool graph_is_same_futex(uint64_t a, uint64_t b)
{
	return a - b + FUTEX_OBJECT_SZ <= 2 * FUTEX_OBJECT_SZ;
}

struct graph;

struct graph *graph__new(void);
void graph__free(struct graph *graph); /* NULL-safe */

/* 0; -EINVAL: times out of order, a state, context, kind or certainty that there is none, tid 0; -ENOMEM. */
int graph__add_segment(struct graph *graph, uint32_t tid, const struct graph_segment *segment);
int graph__add_wakeup(struct graph *graph, uint32_t tid, const struct graph_wakeup *wakeup);
/* One without a receiver is of no use to a path and not kept, unless it is of a block device. */
int graph__add_handoff(struct graph *graph, const struct graph_handoff *handoff);
/* The thread ended: whoever has this tid later is another one. */
int graph__add_exit(struct graph *graph, uint32_t tid, uint64_t ts);

/*
 * From graph__bulk() to graph__settle() segments, wake-ups, hand-offs and exits may come in any order at no extra cost;
 * nothing may be looked up meanwhile.
 */
void graph__bulk(struct graph *graph);
void graph__settle(struct graph *graph);

/* Drops what ended before `ts` and gives its memory back.  How many segments, wake-ups and hand-offs that were. */
size_t graph__forget(struct graph *graph, uint64_t ts);
/* Forgets the oldest until no more than that is used, or nothing is left.  Likewise. */
size_t graph__shrink(struct graph *graph, size_t bytes_max);
size_t graph__bytes(const struct graph *graph);
/* Begin of the oldest segment that may still be there; UINT64_MAX without any.  Takes a look at every thread. */
uint64_t graph__oldest_ts(const struct graph *graph);

/* A thread that is known, as *place goes from 0 over all of them, in no order; 0: that was all. */
uint32_t graph__next_thread(const struct graph *graph, size_t *place);

/* The segments of a thread, by begin, as one array; those that overlap (from_ts, to_ts). */
struct graph_segment *graph__segments(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				      size_t *cnt);
/* The last segment that began before `ts`, or NULL.  *before: how many more are in the array in front of it. */
struct graph_segment *graph__segment_before(const struct graph *graph, uint32_t tid, uint64_t ts, size_t *before);
/* The last wake-up in [from_ts, to_ts], or NULL. */
struct graph_wakeup *graph__wakeup_in(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts);
/* All wake-ups in [from_ts, to_ts], as one array. */
struct graph_wakeup *graph__wakeups(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				    size_t *cnt);
/* The hand-offs to a thread, by to_ts, as one array; those with to_ts in [from_ts, to_ts]. */
struct graph_handoff *graph__handoffs_to(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
					 size_t *cnt);
/* What a thread put into queues of the program in [from_ts, to_ts], by from_ts, as one array. */
const struct graph_given *graph__given_by(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
					  size_t *cnt);
/* Whether the thread ended in [from_ts, to_ts]. */
bool graph__exit_in(const struct graph *graph, uint32_t tid, uint64_t from_ts, uint64_t to_ts);
#define GRAPH_ONLY_DEVICE 0 /* no device has this number */
/*
 * Of the other processes, the one whose block requests the device served for longest during [from_ts, to_ts]: its
 * longest request there, or NULL; *ns: how long all of them took, overlaps counted once.
 * GRAPH_ONLY_DEVICE: the one device that had requests then; NULL if several had.
 * Looks at a bounded number of requests.  A request that somebody waited for is known by two addresses, here and among
 * the hand-offs to its waiter; `row` is the same.
 */
struct graph_handoff *graph__block_rival(const struct graph *graph, uint32_t device, uint32_t pid, uint64_t from_ts,
					 uint64_t to_ts, uint64_t *ns);
/* The block requests that were done in (from_ts, to_ts], as one array. */
struct graph_handoff *graph__blocks(const struct graph *graph, uint64_t from_ts, uint64_t to_ts, size_t *cnt);

#endif
