/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to look: at low rates the hooks are attached for a small share of the time only, because on a server with
 * requests of a few microseconds the hooks alone cost several per cent, whatever is selected.
 *
 * Time is cut into strata of a second or so, and each holds one window at a random place (stratified cluster sampling,
 * Cochran, Sampling Techniques, §5 and §9).  A window selects requests as they arrive with the probability `inside`,
 * for `length`; each of them stands for stratum / (length · inside) of its like.  The strata cover the time without
 * gaps, so that sums over the weighted rows estimate those over all requests.  A window lies within its stratum, so the
 * stratum's edges are looked at less than its middle; strata are of random lengths, so that no beat of the target's
 * falls on their edges each time.
 *
 *   | stratum             | next stratum …
 *   |      open  select=====drain  close
 *
 * After the last selection the hooks stay until what was selected is done, because the late ones are what it is all
 * about; but not for ever, and where waiting is in vain (requests that are never answered), for less and less time.
 *
 * A share of 1 is one window without end, until the share is set to less.
 * Pure: times in CLOCK_MONOTONIC ns come in as arguments.
 */
#ifndef WHYLATE_MODEL_WINDOW_PLAN_H
#define WHYLATE_MODEL_WINDOW_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum window_state {
	WINDOW_CLOSED,
	WINDOW_WARMING, /* open; what the threads are at is being learnt */
	WINDOW_SELECTING,
	WINDOW_DRAINING,
};

struct window_plan {
	double rate;  /* of all requests */
	double share; /* of the time: selecting */
	double next_share;
	uint64_t stratum_ns; /* on average */
	uint64_t end_ts;     /* of the recording; UINT64_MAX: it has none */
	uint64_t random;

	enum window_state state;
	bool endless; /* so is the window under way, or the last one */
	uint64_t stratum_begin_ts, stratum_end_ts;
	uint64_t length_ns; /* of the stratum's window: selecting */
	uint64_t open_ts;   /* planned, then as it was */
	uint64_t select_ts, select_end_ts;
	uint64_t drain_end_ts;
	uint64_t window_cnt;                /* but endless ones */
	uint64_t selecting_ns, attached_ns; /* in all windows that are over, endless ones too */
	bool rested;                        /* there was, or is to be, time between windows */
	uint64_t longest_ns;                /* the longest request seen */
	uint32_t drains_in_vain;            /* in a row */
};

/* The share of time to select in for a rate, 1: all the time. */
double window_share(double rate);

/*
 * duration_ns: 0 for a recording without end; otherwise the last stratum ends with it.  The first one begins at
 * begin_ts.  share 1: its hooks are attached, and it selects already.
 */
void window_plan__init(struct window_plan *plan, double rate, double share, uint64_t begin_ts, uint64_t duration_ns,
		       uint64_t seed);

/* From the next stratum on; an endless window ends for a share below 1. */
void window_plan__set_share(struct window_plan *plan, double share);

/* In all windows, that under way included. */
void window_plan__times(const struct window_plan *plan, uint64_t now, uint64_t *selecting_ns, uint64_t *attached_ns);

/*
 * What to do now: true if the state changed, and the caller does what the new state says: open (WARMING), select with
 * the probability of window_plan__inside() (SELECTING), select no more (DRAINING), detach (CLOSED).
 * drained: nothing selected is open any more; asked for while DRAINING only.
 */
bool window_plan__step(struct window_plan *plan, uint64_t now, bool drained);

/* When to ask again at the latest. */
uint64_t window_plan__next_ts(const struct window_plan *plan, uint64_t now);

/* A recorded request took that long. */
void window_plan__saw(struct window_plan *plan, uint64_t latency_ns);

/* Of those that arrive while SELECTING: the probability to be selected. */
double window_plan__inside(const struct window_plan *plan);
/* … and of any request of this stratum, which is the inverse of its weight. */
double window_plan__probability(const struct window_plan *plan);

#endif
