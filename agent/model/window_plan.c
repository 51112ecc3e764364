// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/window_plan.h"

#include "base/random.h"

#include <string.h>

#define MS_NS      1000000ULL
#define STRATUM_NS (1000 * MS_NS)
/*
 * At higher shares a stratum is as long as makes its window that long, within these bounds: to attach and to detach
 * takes some ten milliseconds of a CPU.  From WINDOW_SHARE on windows become shorter, so that they meet each episode.
 */
#define WINDOW_NS      (40 * MS_NS)
#define WINDOW_SHARE   0.2
#define STRATUM_MIN_NS (100 * MS_NS)
/*
 * Attaching takes some milliseconds, and several times as long while no CPU is idle; then each thread must be met once
 * before its state is known.  A window that began late would begin late while CPUs are busy, so the lead follows what
 * attaching took: up at once, down slowly.
 */
#define LEAD_MIN_NS  (6 * MS_NS)
#define LEAD_MAX_NS  (60 * MS_NS)
#define LEAD_DECAY   32
#define WARM_NS      (1 * MS_NS)
#define DRAIN_ASK_NS (1 * MS_NS)
/* Detaching for less than this saves nothing. */
#define APART_NS (12 * MS_NS)
/* What is open holds the hooks at most so long, and at least so long if the budget forbids it. */
#define HOLD_MAX_NS (60000 * MS_NS)
#define HOLD_MIN_NS (50 * MS_NS)
#define VAIN_MAX    6
/* A higher rate is asked for to see what is rare, too. */
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

static uint64_t stratum_ns(const struct window_plan *plan)
{
	double length_ns = (double)WINDOW_NS / plan->share;

	if (plan->share > WINDOW_SHARE)
		length_ns *= WINDOW_SHARE / plan->share;

	if (length_ns < (double)STRATUM_MIN_NS)
		length_ns = (double)STRATUM_MIN_NS;
	return length_ns < (double)plan->stratum_max_ns ? (uint64_t)length_ns : plan->stratum_max_ns;
}

/* The last one ends with the recording, unless hardly anything is left of that. */
static uint64_t draw_stratum(struct window_plan *plan)
{
	uint64_t mean_ns = stratum_ns(plan), length_ns = (uint64_t)((0.75 + random_unit(plan) / 2) * (double)mean_ns);
	uint64_t left_ns = plan->end_ts > plan->stratum_begin_ts ? plan->end_ts - plan->stratum_begin_ts : 0;

	if (left_ns >= length_ns + mean_ns / 2 || left_ns < mean_ns / 4)
		return length_ns;
	return left_ns > mean_ns * 5 / 4 ? left_ns / 2 : left_ns;
}

/*
 * The next stratum begins where the last one ended, so that no time goes unrepresented, and is long enough for its
 * window to lie ahead.  The window lies anywhere in it, but not before hooks can be attached.  A
 * window without end begins with the stratum.
 */
static void place_window(struct window_plan *plan, uint64_t now)
{
	uint64_t from, room;

	if (plan->share >= 1) {
		plan->length_ns = 0;
		plan->stratum_end_ts = UINT64_MAX;
		plan->due_ts = plan->stratum_begin_ts;
		return;
	}
	plan->stratum_end_ts = plan->stratum_begin_ts + draw_stratum(plan);
	plan->length_ns = (uint64_t)(plan->share * (double)(plan->stratum_end_ts - plan->stratum_begin_ts));
	from = now + plan->lead_ns > plan->stratum_begin_ts ? now + plan->lead_ns : plan->stratum_begin_ts;
	if (plan->stratum_end_ts < from + plan->length_ns)
		plan->stratum_end_ts = from + plan->length_ns;
	room = plan->stratum_end_ts - from - plan->length_ns;
	plan->due_ts = from + (uint64_t)(random_unit(plan) * (double)room);
}

static void remember(struct window_plan *plan)
{
	uint64_t at = plan->past_cnt++ % WINDOWS_REMEMBERED;

	plan->window_cnt += !plan->endless;
	plan->past[at].select_ts = plan->select_ts;
	plan->past[at].id = plan->endless ? 0 : plan->window_cnt;
}

void window_plan__init(struct window_plan *plan, double rate, double share, uint64_t begin_ts, uint64_t duration_ns,
		       uint64_t seed)
{
	memset(plan, 0, sizeof(*plan));
	plan->rate = rate;
	plan->share = plan->next_share = share;
	plan->random = seed;
	plan->stratum_max_ns = duration_ns && duration_ns < STRATUM_NS ? duration_ns : STRATUM_NS;
	plan->lead_ns = LEAD_MIN_NS;
	plan->end_ts = duration_ns ? begin_ts + duration_ns : UINT64_MAX;
	plan->stratum_begin_ts = begin_ts;
	place_window(plan, begin_ts);
	if (share >= 1) {
		plan->state = WINDOW_SELECTING;
		plan->endless = true;
		plan->select_end_ts = UINT64_MAX;
		plan->open_ts = plan->select_ts = begin_ts;
		remember(plan);
		return;
	}
	plan->rested = true;
}

void window_plan__set_share(struct window_plan *plan, double share)
{
	plan->next_share = share < 1 ? share : 1;
}

void window_plan__times(const struct window_plan *plan, uint64_t now, uint64_t *selecting_ns, uint64_t *attached_ns)
{
	*selecting_ns = plan->selecting_ns;
	*attached_ns = plan->attached_ns;
	if (plan->state != WINDOW_CLOSED)
		*attached_ns += now - plan->open_ts;
	if (plan->state == WINDOW_SELECTING && now > plan->select_ts)
		*selecting_ns += (now < plan->select_end_ts ? now : plan->select_end_ts) - plan->select_ts;
}

static void learn_lead(struct window_plan *plan, uint64_t took_ns)
{
	if (took_ns < plan->lead_ns)
		took_ns = plan->lead_ns - (plan->lead_ns - took_ns) / LEAD_DECAY;
	plan->lead_ns = took_ns < LEAD_MIN_NS ? LEAD_MIN_NS : took_ns > LEAD_MAX_NS ? LEAD_MAX_NS : took_ns;
}

/*
 * Hooks are attached.  The window is announced ahead of its time: it begins when it is due, whenever the agent has a
 * CPU again.  A window that waited for the agent would begin late while CPUs are busy and in time while the target
 * stands still.
 */
static bool announce(struct window_plan *plan, uint64_t ready_ts, uint64_t now)
{
	uint64_t from_ts = ready_ts > plan->due_ts ? ready_ts : plan->due_ts;

	plan->endless = plan->share >= 1;
	if (plan->endless && now < from_ts)
		return false;
	plan->select_ts = from_ts;
	plan->select_end_ts = plan->endless ? UINT64_MAX : from_ts + plan->length_ns;
	plan->state = WINDOW_SELECTING;
	remember(plan);
	return true;
}

static void end_selecting(struct window_plan *plan, uint64_t now)
{
	if (plan->endless || now < plan->select_end_ts)
		plan->select_end_ts = now;
	if (plan->select_end_ts > plan->select_ts)
		plan->selecting_ns += plan->select_end_ts - plan->select_ts;
	if (plan->endless)
		plan->stratum_end_ts = now;
	plan->stratum_begin_ts = plan->stratum_end_ts;
	plan->share = plan->next_share;
	plan->rested = true;
	plan->state = WINDOW_DRAINING;
	if (!plan->held_ts)
		plan->held_ts = now;
	place_window(plan, now);
}

/* For what never ends: each time in vain for half as long. */
static bool is_held(const struct window_plan *plan, uint64_t now, bool may_hold)
{
	uint32_t vain = plan->holds_in_vain < VAIN_MAX ? plan->holds_in_vain : VAIN_MAX;

	return now - (may_hold ? plan->held_ts : plan->select_end_ts) < (may_hold ? HOLD_MAX_NS >> vain : HOLD_MIN_NS);
}

/* True: the hooks are detached. */
static bool end_draining(struct window_plan *plan, uint64_t now, bool drained, bool may_hold)
{
	if (drained) {
		plan->held_ts = 0;
		plan->holds_in_vain = 0;
	}
	if (now + APART_NS + plan->lead_ns - LEAD_MIN_NS >= plan->due_ts || (!drained && is_held(plan, now, may_hold)))
		return false;
	plan->holds_in_vain += !drained;
	plan->held_ts = 0;
	plan->attached_ns += now - plan->open_ts;
	plan->state = WINDOW_CLOSED;
	return true;
}

bool window_plan__step(struct window_plan *plan, uint64_t now, bool drained, bool may_hold)
{
	switch (plan->state) {
	case WINDOW_CLOSED:
		if (now + plan->lead_ns < plan->due_ts)
			return false;
		plan->open_ts = now;
		plan->warm_ts = 0;
		plan->open_cnt++;
		plan->state = WINDOW_WARMING;
		return true;
	case WINDOW_WARMING:
		/* The first time that it is asked in this state, the hooks have just been attached. */
		if (!plan->warm_ts) {
			plan->warm_ts = now + WARM_NS;
			learn_lead(plan, plan->warm_ts - plan->open_ts);
		}
		return announce(plan, plan->warm_ts, now);
	case WINDOW_SELECTING:
		if (plan->endless ? plan->next_share >= 1 : now < plan->select_end_ts)
			return false;
		end_selecting(plan, now);
		return true;
	case WINDOW_DRAINING:
		if (now + LEAD_MIN_NS >= plan->due_ts && announce(plan, now, now))
			return true;
		return end_draining(plan, now, drained, may_hold);
	}
	return false;
}

uint64_t window_plan__next_ts(const struct window_plan *plan, uint64_t now)
{
	switch (plan->state) {
	case WINDOW_CLOSED:
		return plan->due_ts > plan->lead_ns ? plan->due_ts - plan->lead_ns : 0;
	case WINDOW_WARMING:
		if (!plan->warm_ts)
			return now;
		return plan->warm_ts > plan->due_ts ? plan->warm_ts : plan->due_ts;
	case WINDOW_SELECTING:
		return plan->select_end_ts;
	default:
		return now + DRAIN_ASK_NS < plan->due_ts ? now + DRAIN_ASK_NS : plan->due_ts;
	}
}

uint64_t window_plan__window_of(const struct window_plan *plan, uint64_t begin_ts)
{
	uint64_t low = plan->past_cnt > WINDOWS_REMEMBERED ? plan->past_cnt - WINDOWS_REMEMBERED : 0;
	uint64_t high = plan->past_cnt;

	if (low == high)
		return 0;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (plan->past[middle % WINDOWS_REMEMBERED].select_ts <= begin_ts)
			low = middle;
		else
			high = middle;
	}
	return plan->past[low % WINDOWS_REMEMBERED].id;
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
