/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which places are the two ends of a queue, judged by the values that passed them: what goes in on one thread comes out
 * on another, each time once (Whodunit §3.4: threads that do both make a free list or a table of it).  Pure.
 */
#ifndef WHYLATE_PROBE_QUEUE_MATCH_H
#define WHYLATE_PROBE_QUEUE_MATCH_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* One value at one place. */
struct queue_value {
	uint64_t ts;
	uint64_t value;
	uint64_t lock; /* address, 0: not known */
	uint32_t pid, tid;
	uint32_t place;
	uint32_t round;
};

typedef VEC(struct queue_value) queue_values;

/* What is known of a place beforehand. */
struct queue_end {
	bool out;
	bool known;      /* waits for what it takes out, or wakes a thread for what it puts in */
	bool polled;     /* out: the function often finds nothing, as of a list of work that it polls */
	uint32_t rounds; /* bit of each round in which it was watched */
};

enum queue_verdict {
	QUEUE_CONFIRMED,
	QUEUE_FEW,       /* values crossed, too few to tell */
	QUEUE_BOTH,      /* threads put in and take out: a free list or a table */
	QUEUE_UNMATCHED, /* most values that are taken out were not put in, or are taken out again, or most stay in */
	QUEUE_NEWEST,    /* the newest comes out first while older ones stay, over and over: a free list */
	QUEUE_RETURN,    /* what another queue handed on comes back, and nobody waits for it: a free list */
};

struct queue_pair {
	uint32_t in, out; /* places */
	enum queue_verdict verdict;
	uint64_t in_cnt, out_cnt; /* values that passed each */
	uint64_t crossed;
	uint64_t same_thread, again, unseen; /* out: on the thread that put it in; once more; never seen to go in */
	uint64_t median_ns;                  /* between going in and coming out */
	uint32_t in_threads, out_threads;
	uint64_t in_set, out_set;       /* bit tid % 64 of each thread */
	uint32_t in_tid, out_tid;       /* one of each */
	uint32_t pid;                   /* their process */
	char in_comm[16], out_comm[16]; /* for the caller, who can look */
	bool lock_known;                /* both ends hold one lock */
};

typedef VEC(struct queue_pair) queue_pairs;

/* values: sorted by time when it returns.  Pairs of places over which anything crossed, most first.  0 or -ENOMEM. */
int queue_pairs_find(const struct queue_end *ends, size_t end_cnt, queue_values *values, queue_pairs *pairs);
const char *queue_verdict_text(enum queue_verdict verdict);

#endif
