// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What hooks cost is kept under the budget (DESIGN §5.5); what probes cost is, by recording_budget.c.  Most of what the
 * hooks cost they cost because they are there, so there is one knob that turns all of it: the share of the time in
 * which they are attached.  Where they have to stay, the rate of selection is lowered, as far as that helps.  In both
 * cases the weights make up for what is not seen.
 */
#include "base/log.h"
#include "session/list.h"
#include "session/session_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS     1000000000ULL
#define FIRST_LOOK_NS (SECOND_NS / 2)
#define LOOK_NS       SECOND_NS
#define RETRY_NS      (SECOND_NS / 20)
#define RATE_FIRST_NS (2 * SECOND_NS)
/* A target that does next to nothing costs next to nothing, whatever the ratio. */
#define CPU_MIN_NS 50000000ULL
#define NOTHING    0.01 /* of a CPU */
/* Of the time with hooks, what has to be measured before it is judged. */
#define MEASURED_MIN_NS 50000000ULL
/* Detaching for less than the rest of the time saves no more than it is known to. */
#define SHARE_HIGHEST 0.8
#define SHARE_LOWEST  0.01

bool recording_has_budget(const struct recording *recording)
{
	return recording->options->budget < 1;
}

/* --- the share of the time ---------------------------------------------------------------------------------------- */

/*
 * What has been since the last look, per second: of the hooks, while they are attached and while not, and of the
 * target; and how much longer windows were attached than they were to select, until what they had selected was done.
 */
struct look {
	double open_ns, closed_ns, cpu_ns;
	double attached_factor;
};

static double per_second(uint64_t ns, uint64_t of_ns)
{
	return of_ns ? (double)ns * 1e9 / (double)of_ns : 0;
}

/* Has enough been measured since the last look? A window is judged as a whole. */
static bool was_measured(struct recording *recording, struct capture_hooks_cost *cost)
{
	const struct window_plan *plan = &recording->plan;

	if (!plan->endless && plan->state != WINDOW_CLOSED)
		return false;
	capture__hooks_cost(recording->capture, cost);
	return cost->open_measured_ns - recording->governor.hooks.open_measured_ns >=
	       (plan->endless ? MEASURED_MIN_NS : 1);
}

/* False: the target has hardly done anything yet. */
static bool look(struct recording *recording, uint64_t now, const struct capture_hooks_cost *cost, struct look *look)
{
	struct governor *governor = &recording->governor;
	struct capture_hooks_cost *last = &governor->hooks;
	const struct window_plan *plan = &recording->plan;
	uint64_t cpu_ns = target_cpu_ns(&recording->processes), selecting_ns, attached_ns;

	if (cpu_ns < governor->cpu_ns + CPU_MIN_NS)
		return false;
	window_plan__times(plan, now, &selecting_ns, &attached_ns);
	*look = (struct look){
		.open_ns = per_second(cost->open_ns - last->open_ns, cost->open_measured_ns - last->open_measured_ns),
		.closed_ns = per_second(cost->closed_ns, cost->closed_measured_ns),
		.cpu_ns = per_second(cpu_ns - governor->cpu_ns, now - governor->look_ts),
		.attached_factor = 1,
	};
	if (!plan->endless)
		look->attached_factor = fmax((double)(attached_ns - governor->attached_ns) /
						     (plan->share * (double)(now - governor->look_ts)),
					     1);
	governor->attached_ns = attached_ns;
	*last = *cost;
	governor->look_ts = now;
	governor->cpu_ns = cpu_ns;
	return true;
}

/* Of the target's CPU time, what probes leave of the budget, but at least half of it. */
static double hooks_may_take(const struct recording *recording)
{
	double budget = recording->options->budget;

	return fmax(budget - recording_budget_probes_share(recording), budget / 2);
}

static double affordable_share(const struct recording *recording, const struct look *look)
{
	double allowed_ns = fmax(hooks_may_take(recording) * look->cpu_ns, NOTHING * 1e9);

	/* Where they cost as much without windows, nothing is known of windows. */
	if (look->open_ns <= allowed_ns || look->open_ns <= look->closed_ns)
		return 1;
	return fmax((allowed_ns - look->closed_ns) / (look->open_ns - look->closed_ns), 0) / look->attached_factor;
}

static void say_windows(struct recording *recording, double cost_share, double share)
{
	struct governor *governor = &recording->governor;

	if (governor->over_share > 0)
		return;
	governor->over_share = cost_share;
	governor->over_s = (double)(monotonic_ns() - recording->begin_ts) / 1e9;
	log_warn("hooks cost %.2g %% of the target's CPU time, over the budget of %g %%: from now on they are attached "
		 "in windows, %.2g %% of the time (with --duty 100%% they would stay)",
		 100 * cost_share, 100 * recording->options->budget, 100 * share);
}

static void govern_share(struct recording *recording, uint64_t now)
{
	struct governor *governor = &recording->governor;
	struct window_plan *plan = &recording->plan;
	struct capture_hooks_cost cost;
	struct look seen;
	double share;

	if (now < governor->next_ts)
		return;
	if (!was_measured(recording, &cost)) {
		governor->next_ts = now + RETRY_NS;
		return;
	}
	governor->next_ts = now + LOOK_NS;
	if (!look(recording, now, &cost, &seen))
		return;
	share = fmax(affordable_share(recording, &seen), SHARE_LOWEST);
	if (plan->endless) {
		share = share < SHARE_HIGHEST ? share : 1;
		if (share < 1)
			say_windows(recording, seen.open_ns / seen.cpu_ns, share);
	} else if (share < 1) {
		/* One window tells little of the next ones. */
		share = fmin(sqrt(share * plan->next_share), SHARE_HIGHEST);
	} else {
		share = fmin(2 * plan->next_share, 1);
	}
	window_plan__set_share(plan, share);
}

/* --- the rate ----------------------------------------------------------------------------------------------------- */

/*
 * What recording intervals has cost so far, beyond what the hooks cost when nothing is selected: every run of a hook
 * that finds nothing to do takes about HOOK_FLOOR_NS, clock reads of the measurement included.
 */
#define HOOK_FLOOR_NS 60

static uint64_t selection_cost_ns(struct recording *recording)
{
	static const char *const programs[] = {
		"on_recv_length", "on_send_length", "on_probe_entry_multi", "on_probe_exit_multi",
		"on_probe_entry", "on_probe_exit",  "on_softirq_entry",     "on_softirq_exit",
	};
	const struct capture_cost *costs;
	uint64_t total_ns, sum_ns = 0;
	size_t cnt;

	costs = capture__cost(recording->capture, &cnt, &total_ns);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t floor_ns = costs[i].run_cnt * HOOK_FLOOR_NS;

		for (size_t j = 0; j < sizeof(programs) / sizeof(programs[0]); j++)
			if (!strcmp(costs[i].program, programs[j]) && costs[i].run_ns > floor_ns)
				sum_ns += costs[i].run_ns - floor_ns;
	}
	return sum_ns;
}

/*
 * Keeps the cost under the budget: selection is the one knob that can be turned without losing sight of anything, and
 * the weights make up for it.  It is turned only for the cost that it can lower.
 */
static void govern_rate(struct recording *recording)
{
	struct governor *governor = &recording->governor;
	uint64_t cost_ns = selection_cost_ns(recording), cpu_ns = target_cpu_ns(&recording->processes), used_ns,
		 spent_ns, rate;
	double share;

	if (cpu_ns <= governor->cpu_ns || cost_ns <= governor->rate_cost_ns)
		return;
	used_ns = cpu_ns - governor->cpu_ns;
	spent_ns = cost_ns - governor->rate_cost_ns;
	if (used_ns < CPU_MIN_NS)
		return;
	governor->cpu_ns = cpu_ns;
	governor->rate_cost_ns = cost_ns;
	rate = capture__rate(recording->capture);
	share = (double)spent_ns / used_ns;
	/* Selecting half as many saved next to nothing: then selecting less still would only cost precision. */
	if (governor->rate_share > 0 && share > 0.8 * governor->rate_share)
		governor->ungovernable = true;
	if (governor->ungovernable || share <= recording->options->budget || rate / 2 < CAPTURE_RATE_ALL / 1000)
		return;
	governor->rate_share = share;
	capture__set_rate(recording->capture, rate / 2);
	governor->rate_changes++;
}

/* ------------------------------------------------------------------------------------------------------------------ */

void recording_govern_begin(struct recording *recording)
{
	struct governor *governor = &recording->governor;

	governor->of_windows = recording->windows && recording->plan.endless;
	governor->look_ts = recording->begin_ts;
	governor->cpu_ns = recording->target_cpu_begin_ns;
	governor->next_ts = recording->begin_ts + (governor->of_windows ? FIRST_LOOK_NS : RATE_FIRST_NS);
}

void recording_govern(struct recording *recording)
{
	struct governor *governor = &recording->governor;
	uint64_t now = monotonic_ns();

	if (governor->of_windows) {
		govern_share(recording, now);
		return;
	}
	/* Windows from the start cost what their share of the time says; a client that probes governs itself. */
	if (recording->windows || now < governor->next_ts)
		return;
	governor->next_ts = now + LOOK_NS;
	if (!recording_client_probing(recording))
		govern_rate(recording);
}

void recording_govern_anew(struct recording *recording)
{
	recording->governor.rate_share = 0;
	recording->governor.ungovernable = false;
	if (recording->governor.of_windows)
		window_plan__set_share(&recording->plan, 1);
}

int recording_govern_write_notes(struct recording *recording, uint32_t *note)
{
	const struct governor *governor = &recording->governor;
	char key[32];
	int err = 0;

	if (governor->rate_changes) {
		snprintf(key, sizeof(key), "note.%u", (*note)++);
		err = recording_say(
			recording, key,
			"recording every selected interval cost more than %g %% of the target's CPU time: the rate "
			"was lowered to %.3g %%",
			100 * recording->options->budget, 100.0 * capture__rate(recording->capture) / CAPTURE_RATE_ALL);
	}
	if (!err && governor->over_share > 0) {
		snprintf(key, sizeof(key), "note.%u", (*note)++);
		err = recording_say(recording, key,
				    "the hooks cost %.2g %% of the target's CPU time, over the budget of %g %%: from "
				    "%.1f s after the beginning on they were attached in windows, at the end %.2g %% "
				    "of the time; what is rarer than the windows is mostly not seen",
				    100 * governor->over_share, 100 * recording->options->budget, governor->over_s,
				    100 * recording->plan.share);
	}
	return err;
}
