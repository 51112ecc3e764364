// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/window_plan.h"

#include "base/random.h"

#include <string.h>

#define MS_NS      1000000ULL
#define STRATUM_NS (1000 * MS_NS)
/* Attaching takes some milliseconds, about; then each thread must be met once before its state is known. */
#define LEAD_NS      (6 * MS_NS)
#define WARM_NS      (1 * MS_NS)
#define DRAIN_ASK_NS (1 * MS_NS)
/* How long to wait for what is open: at least, at most, and after many times in vain. */
#define DRAIN_NS      (1000 * MS_NS)
#define DRAIN_MAX_NS  (10000 * MS_NS)
#define DRAIN_VAIN_NS (50 * MS_NS)
#define VAIN_MAX      5
/* Above this rate, whoever asks for it wants to see what is rare, too. */
#define SHARE_MAX 0.05

double window_share(double rate)
{
	/* Every request of as few moments as possible: what costs is that the hooks are there, more than to record. */
	return rate <= SHARE_MAX ? rate : 1;
}

static double random_unit(struct window_plan *plan)
{
	return (double)(random_next(&plan->random) >> 11) / 9007199254740992.0;
}

/* The last one ends with the recording, unless hardly anything is left of that. */
static uint64_t draw_stratum(struct window_plan *plan)
{
	uint64_t length_ns = (uint64_t)((0.75 + random_unit(plan) / 2) * (double)plan->stratum_ns);
	uint64_t left_ns = plan->end_ts > plan->stratum_begin_ts ? plan->end_ts - plan->stratum_begin_ts : 0;

	if (left_ns >= length_ns + plan->stratum_ns / 2 || left_ns < plan->stratum_ns / 4)
		return length_ns;
	return left_ns > plan->stratum_ns * 5 / 4 ? left_ns / 2 : left_ns;
}

/* The stratum's window lies anywhere in it, but for the time that opening it takes; not before `now`. */
static void place_window(struct window_plan *plan, uint64_t now)
{
	uint64_t from = plan->stratum_begin_ts > now ? plan->stratum_begin_ts : now;
	uint64_t need_ns = plan->length_ns + LEAD_NS, span = plan->stratum_end_ts - from;
	uint64_t room = span > need_ns ? span - need_ns : 0;

	plan->open_ts = from + (uint64_t)(random_unit(plan) * (double)room);
}

/* It opens ahead of the stratum, to select from its beginning on. */
static void place_endless(struct window_plan *plan, uint64_t now)
{
	plan->length_ns = 0;
	plan->stratum_end_ts = UINT64_MAX;
	plan->open_ts = plan->stratum_begin_ts > now + LEAD_NS ? plan->stratum_begin_ts - LEAD_NS : now;
}

void window_plan__init(struct window_plan *plan, double rate, double share, uint64_t begin_ts, uint64_t duration_ns,
		       uint64_t seed)
{
	memset(plan, 0, sizeof(*plan));
	plan->rate = rate;
	plan->share = plan->next_share = share;
	plan->random = seed;
	plan->stratum_ns = duration_ns && duration_ns < STRATUM_NS ? duration_ns : STRATUM_NS;
	plan->end_ts = duration_ns ? begin_ts + duration_ns : UINT64_MAX;
	plan->stratum_begin_ts = begin_ts;
	if (share >= 1) {
		plan->state = WINDOW_SELECTING;
		plan->endless = true;
		plan->stratum_end_ts = plan->select_end_ts = UINT64_MAX;
		plan->open_ts = plan->select_ts = begin_ts;
		return;
	}
	plan->rested = true;
	plan->stratum_end_ts = begin_ts + draw_stratum(plan);
	plan->length_ns = (uint64_t)(share * (double)(plan->stratum_end_ts - begin_ts));
	place_window(plan, begin_ts);
}

void window_plan__set_share(struct window_plan *plan, double share)
{
	plan->next_share = share < 1 ? share : 1;
}

void window_plan__times(const struct window_plan *plan, uint64_t now, uint64_t *selecting_ns, uint64_t *attached_ns)
{
	uint64_t until_ts = now < plan->select_end_ts ? now : plan->select_end_ts;

	*selecting_ns = plan->selecting_ns;
	*attached_ns = plan->attached_ns;
	if (plan->state == WINDOW_CLOSED)
		return;
	*attached_ns += now - plan->open_ts;
	if (plan->state != WINDOW_WARMING)
		*selecting_ns += until_ts - plan->select_ts;
}

static uint64_t drain_limit(const struct window_plan *plan)
{
	uint64_t limit = 4 * plan->longest_ns;
	uint32_t vain = plan->drains_in_vain < VAIN_MAX ? plan->drains_in_vain : VAIN_MAX;

	if (limit < DRAIN_NS)
		limit = DRAIN_NS;
	if (limit > DRAIN_MAX_NS)
		limit = DRAIN_MAX_NS;
	limit >>= vain;
	return limit > DRAIN_VAIN_NS ? limit : DRAIN_VAIN_NS;
}

/*
 * The next stratum begins where this one ended, so that no time goes unrepresented.  It is as much longer as the window
 * that ends was attached for too long, within twice its share, and long enough for its own window to lie ahead.  After
 * an endless one, what was too long is how long it waited for what was open.
 */
static void next_stratum(struct window_plan *plan, uint64_t now)
{
	uint64_t held_ns = now - (plan->endless ? plan->select_end_ts : plan->open_ts), need_ns, length_ns;

	plan->attached_ns += now - plan->open_ts;
	plan->selecting_ns += plan->select_end_ts - plan->select_ts;
	plan->rested = true;
	plan->share = plan->next_share;
	plan->stratum_begin_ts = plan->stratum_end_ts;
	if (plan->share >= 1) {
		place_endless(plan, now);
		return;
	}
	length_ns = draw_stratum(plan);
	plan->length_ns = (uint64_t)(plan->share * (double)length_ns);
	need_ns = plan->length_ns + LEAD_NS;
	if (length_ns < (uint64_t)((double)held_ns / (2 * plan->share)))
		length_ns = (uint64_t)((double)held_ns / (2 * plan->share));
	plan->stratum_end_ts = plan->stratum_begin_ts + length_ns;
	if (plan->stratum_end_ts < now + need_ns)
		plan->stratum_end_ts = now + need_ns;
	place_window(plan, now);
}

static uint64_t warm_until(const struct window_plan *plan, uint64_t now)
{
	uint64_t warm_ts = now + WARM_NS;

	return plan->share >= 1 && plan->stratum_begin_ts > warm_ts ? plan->stratum_begin_ts : warm_ts;
}

bool window_plan__step(struct window_plan *plan, uint64_t now, bool drained)
{
	switch (plan->state) {
	case WINDOW_CLOSED:
		if (now < plan->open_ts)
			return false;
		plan->open_ts = now;
		plan->select_ts = 0;
		plan->state = WINDOW_WARMING;
		plan->endless = plan->share >= 1;
		plan->window_cnt += !plan->endless;
		return true;
	case WINDOW_WARMING:
		/* The first time that it is asked in this state, the hooks have just been attached. */
		if (!plan->select_ts)
			plan->select_ts = warm_until(plan, now);
		if (now < plan->select_ts)
			return false;
		plan->select_ts = now;
		plan->select_end_ts = plan->endless ? UINT64_MAX : now + plan->length_ns;
		plan->state = WINDOW_SELECTING;
		return true;
	case WINDOW_SELECTING:
		if (plan->endless ? plan->next_share >= 1 : now < plan->select_end_ts)
			return false;
		plan->select_end_ts = now;
		if (plan->endless)
			plan->stratum_end_ts = now;
		plan->drain_end_ts = now + drain_limit(plan);
		plan->state = WINDOW_DRAINING;
		return true;
	case WINDOW_DRAINING:
		if (!drained && now < plan->drain_end_ts)
			return false;
		plan->drains_in_vain = drained ? 0 : plan->drains_in_vain + 1;
		plan->state = WINDOW_CLOSED;
		next_stratum(plan, now);
		return true;
	}
	return false;
}

uint64_t window_plan__next_ts(const struct window_plan *plan, uint64_t now)
{
	switch (plan->state) {
	case WINDOW_CLOSED:
		return plan->open_ts;
	case WINDOW_WARMING:
		return plan->select_ts ? plan->select_ts : now;
	case WINDOW_SELECTING:
		return plan->select_end_ts;
	default:
		return now + DRAIN_ASK_NS < plan->drain_end_ts ? now + DRAIN_ASK_NS : plan->drain_end_ts;
	}
}

void window_plan__saw(struct window_plan *plan, uint64_t latency_ns)
{
	if (latency_ns > plan->longest_ns)
		plan->longest_ns = latency_ns;
}

double window_plan__inside(const struct window_plan *plan)
{
	double inside = plan->rate / plan->share;

	return inside < 1 ? inside : 1;
}

double window_plan__probability(const struct window_plan *plan)
{
	double span = (double)(plan->stratum_end_ts - plan->stratum_begin_ts);

	return window_plan__inside(plan) * (plan->endless ? 1 : (double)plan->length_ns / span);
}
