/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Observation windows: the hooks are attached for a share of the time, because on a server with requests of a few
 * microseconds the hooks alone cost several per cent, whatever is selected.
 *
 * Time is cut into strata, and each holds one window at a random place (stratified cluster sampling, Cochran, Sampling
 * Techniques, §5 and §9).  A window selects requests as they arrive with the probability `inside`, for `length`; each
 * of them stands for stratum / (length · inside) of its like.  The strata cover the time without gaps, so that sums
 * over the weighted rows estimate those over all requests.  A window lies within its stratum, so the stratum's edges
 * are looked at less than its middle; strata are of random lengths, so that no beat of the target's falls on their
 * edges each time.  A stratum is a second at most, and so short at higher shares that its window is some ten
 * milliseconds: many short windows meet each slow episode, few long ones meet some of them and miss others.
 *
 *   | stratum               | stratum                          | …
 *   |      attach select=====drain----------select=====drain----detach
 *
 * Selection follows the schedule alone.  After a window the hooks stay attached until what it selected has ended
 * (draining); where that lasts until the next window is due, that one selects on schedule and the hooks stay.  If the
 * next window waited for the end of the drain, slow episodes, whose drains are long, would be selected from less often
 * than their weights say.  A drain ends early where it lasts longer than HOLD_MAX_NS or the budget forbids it; what is
 * open then is censored: counted with its weight and its age.
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
	WINDOW_WARMING,   /* open; what the threads are at is being learnt */
	WINDOW_SELECTING, /* from select_ts on, which may be ahead */
	WINDOW_DRAINING,
};

#define WINDOWS_REMEMBERED 1024

struct window_plan {
	double rate;  /* of all requests */
	double share; /* of the time: selecting */
	double next_share;
	uint64_t stratum_max_ns;
	uint64_t end_ts; /* of the recording; UINT64_MAX: it has none */
	uint64_t random;

	enum window_state state;
	bool endless; /* so is the window under way, or the last one */
	/* Of the window that selects, or of the next one */
	uint64_t stratum_begin_ts, stratum_end_ts;
	uint64_t length_ns; /* selecting */
	uint64_t due_ts;    /* selection is to begin */
	uint64_t lead_ns;   /* so long before, the hooks are being attached */

	uint64_t open_ts;                   /* the hooks were attached last */
	uint64_t warm_ts;                   /* selection may begin then, 0: they are being attached */
	uint64_t select_ts, select_end_ts;  /* of the last window that selected */
	uint64_t open_cnt;                  /* hooks were attached so often */
	uint64_t window_cnt;                /* but endless ones */
	uint64_t selecting_ns, attached_ns; /* in all that is over, endless ones too */
	uint64_t held_ts;                   /* since then something selected is open, 0: nothing is */
	uint32_t holds_in_vain;             /* in a row: drains that ended before what was open had */
	bool rested;                        /* there was, or is to be, time between windows */
	struct {
		uint64_t select_ts, id; /* id 0: endless */
	} past[WINDOWS_REMEMBERED];
	uint64_t past_cnt;
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
 * What to do now: true if the state changed, and the caller does what the new state says: open (WARMING), have
 * requests selected that arrive between select_ts and select_end_ts, with the probability of window_plan__inside()
 * (SELECTING), select no more (DRAINING), detach (CLOSED).
 * drained: nothing selected is open any more; may_hold: the budget allows hooks to stay for what is.  Both are asked
 * for while DRAINING only.
 */
bool window_plan__step(struct window_plan *plan, uint64_t now, bool drained, bool may_hold);

/* When to ask again at the latest. */
uint64_t window_plan__next_ts(const struct window_plan *plan, uint64_t now);

/* The window that selected a request which arrived then; 0: an endless one. */
uint64_t window_plan__window_of(const struct window_plan *plan, uint64_t begin_ts);

/* Of those that arrive while SELECTING: the probability to be selected. */
double window_plan__inside(const struct window_plan *plan);
/* … and of any request of this stratum, which is the inverse of its weight. */
double window_plan__probability(const struct window_plan *plan);

#endif
