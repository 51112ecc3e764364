// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/govern.h"

#include <math.h>

#define SECOND_NS 1e9
/* While hooks are attached all the time, a load that begins has to be noticed soon. */
#define LOOK_ENDLESS_NS 100000000ULL
#define LOOK_WINDOWS_NS 500000000ULL
/* What a look finds in less time than this says nothing. */
#define ATTACHED_MIN_NS 3e6
/* Of a CPU, with that budget or a larger one. */
#define NOTHING 0.01
/* A target that uses less of a CPU: hooks that run on the whole machine are not measured against it. */
#define IDLE 0.05
/* A debt is paid back within about so long, a credit reaches as far. */
#define DEBT_S   2.5
#define CREDIT_S 1
/* A debt of so much of the budget forbids to hold hooks. */
#define HOLD_S 5
/* Detaching for less than the rest of the time saves no more than attaching costs. */
#define SHARE_HIGHEST 0.7
#define SHARE_LOWEST  0.002
#define GROWTH        2
#define GROWTH_IDLE   4
/* Until it is known what hooks cost: of the time, with that budget or a larger one. */
#define SHARE_FIRST  0.05
#define BUDGET_FIRST 0.03
/* Of the budget: what is aimed at. */
#define AIM 0.95
/* Of the newest look, in what is known from looks. */
#define NEWEST 0.7

/* The part of what the first budget grants whatever the target does. */
static double of_first(double budget)
{
	return fmin(budget / BUDGET_FIRST, 1);
}

double govern_nothing(double budget)
{
	return NOTHING * of_first(budget);
}

double govern_share_first(double budget)
{
	return SHARE_FIRST * of_first(budget);
}

void govern__init(struct govern *govern, double budget, const struct govern_seen *seen)
{
	*govern = (struct govern){
		.budget = budget,
		.nothing_ns = govern_nothing(budget) * SECOND_NS,
		.last = *seen,
		.on_ns = NAN,
		.attached_factor = 1,
		.share = 1,
	};
}

uint64_t govern__look_ns(const struct govern *govern)
{
	return govern->share >= 1 ? LOOK_ENDLESS_NS : LOOK_WINDOWS_NS;
}

static double mix(double known, double newest)
{
	return isnan(known) ? newest : (1 - NEWEST) * known + NEWEST * newest;
}

static void learn(struct govern *govern, const struct govern_seen *seen, double spent_ns)
{
	double attached_ns = seen->attached_ns - govern->last.attached_ns;
	double selecting_ns = seen->selecting_ns - govern->last.selecting_ns;
	double on_ns = spent_ns / attached_ns * SECOND_NS;

	if (attached_ns < ATTACHED_MIN_NS)
		return;
	/* One window tells little of the next ones, unless it says that they cost more. */
	govern->on_ns = govern->share >= 1 || on_ns > govern->on_ns ? on_ns : mix(govern->on_ns, on_ns);
	if (govern->share < 1 && selecting_ns > 0)
		govern->attached_factor = mix(govern->attached_factor, fmin(fmax(attached_ns / selecting_ns, 1), 100));
}

static void charge(struct govern *govern, double spent_ns, double own_ns)
{
	govern->debt_ns += (govern->idle ? 0 : spent_ns) - own_ns;
	govern->debt_ns = fmax(govern->debt_ns, -CREDIT_S * govern->own_ns);
}

static double affordable(const struct govern *govern)
{
	double may_ns = fmax(govern->own_ns - govern->debt_ns / DEBT_S, 0);

	if (govern->idle || isnan(govern->on_ns) || govern->on_ns <= fmax(may_ns, govern->nothing_ns))
		return 1;
	return may_ns / govern->on_ns / govern->attached_factor;
}

double govern__look(struct govern *govern, const struct govern_seen *seen)
{
	double seconds = (double)(seen->ts - govern->last.ts) / SECOND_NS, share;
	double spent_ns = seen->spent_ns - govern->last.spent_ns;
	double opening_ns = seen->open_ns - govern->last.open_ns;
	double rest_ns = seen->rest_ns - govern->last.rest_ns;
	double own_ns = AIM * govern->budget * (seen->cpu_ns - govern->last.cpu_ns);

	if (seconds <= 0)
		return govern->share;
	govern->idle = seen->cpu_ns - govern->last.cpu_ns < IDLE * (double)(seen->ts - govern->last.ts);
	/* Not while it is idle: what it does not use then is no credit for a load that begins. */
	if (!govern->idle)
		own_ns = fmax(own_ns - rest_ns, AIM * govern->nothing_ns * seconds);
	govern->own_ns = mix(govern->share < 1 && govern->own_ns > 0 ? govern->own_ns : NAN, own_ns / seconds);
	charge(govern, spent_ns + opening_ns, own_ns);
	learn(govern, seen, spent_ns);
	share = affordable(govern);
	govern->last = *seen;
	if (govern->share < 1)
		share = fmin(share, (govern->idle || govern->on_ns <= govern->nothing_ns ? GROWTH_IDLE : GROWTH) *
					    govern->share);
	share = share < SHARE_HIGHEST ? share : 1;
	govern->share = fmax(share, SHARE_LOWEST);
	return govern->share;
}

bool govern__may_hold(const struct govern *govern)
{
	return govern->debt_ns <= HOLD_S * fmax(govern->own_ns, govern->nothing_ns);
}
