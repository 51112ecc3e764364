// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What hooks cost is kept under the budget (DESIGN §5.5); what probes cost is, by budget.c.  Most of what the
 * hooks cost they cost because they are there, so there is one knob that turns all of it: the share of the time in
 * which they are attached.  Where they have to stay, the rate of selection is lowered, as far as that helps.  In both
 * cases the weights make up for what is not seen.
 */
#include "base/log.h"
#include "session/list.h"
#include "session/recording.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SECOND_NS     1000000000ULL
#define LOOK_NS       SECOND_NS
#define RATE_FIRST_NS (2 * SECOND_NS)
/* A target that does next to nothing costs next to nothing, whatever the ratio. */
#define CPU_MIN_NS 50000000ULL
/* What BPF_STATS tell of less says nothing. */
#define LOADS_MIN 200

bool recording_has_budget(const struct recording *recording)
{
	return recording->options->budget < 1;
}

/* --- the share of the time ---------------------------------------------------------------------------------------- */

/* Per unit of load, before BPF_STATS have told: counters mode, and trace mode. */
#define LOAD_NS       800
#define LOAD_TRACE_NS 2500

/* What a unit of load costs while hooks are attached, the way to the programs included. */
static double load_ns(const struct recording *recording, const struct capture_hooks_cost *cost)
{
	if (cost->open_load < LOADS_MIN)
		return recording->options->trace ? LOAD_TRACE_NS : LOAD_NS;
	return ((double)cost->open_ns + (double)cost->open_runs * capture__way_ns(recording->capture)) /
	       (double)cost->open_load;
}

/* What the hooks that stay between windows have cost there, the way to the programs included. */
static double rest_ns(const struct capture_hooks_cost *cost, double between_windows_ns)
{
	if (!cost->closed_measured_ns || between_windows_ns < 0)
		return 0;
	return (double)cost->closed_ns * (between_windows_ns / (double)cost->closed_measured_ns);
}

/* Of the target's CPU time, what probes and our own clock leave of the budget, but at least half of it. */
static double hooks_may_take(const struct recording *recording)
{
	double budget = recording->options->budget;

	return fmax(budget - recording_budget_probes_share(recording) - recording->governor.clock_share, budget / 2);
}

static struct govern_seen see(struct recording *recording, uint64_t now)
{
	uint64_t load = capture__load(recording->capture), selecting_ns, attached_ns;
	struct governor *governor = &recording->governor;
	struct capture_hooks_cost cost;

	capture__hooks_cost(recording->capture, &cost);
	window_plan__times(&recording->windows.plan, now, &selecting_ns, &attached_ns);
	governor->spent_ns += (double)(load - governor->load) * load_ns(recording, &cost);
	governor->load = load;
	return (struct govern_seen){
		.ts = now,
		.spent_ns = governor->spent_ns,
		.open_ns = (double)capture__switching_ns(recording->capture),
		.rest_ns = rest_ns(&cost, (double)(now - recording->clock.begin_ts) - (double)attached_ns),
		.cpu_ns = (double)(recording_cpu_ns(recording) - recording->target.cpu_begin_ns),
		.attached_ns = (double)attached_ns,
		.selecting_ns = (double)selecting_ns,
	};
}

static void say_windows(struct recording *recording, double cost_share, double share)
{
	struct governor *governor = &recording->governor;

	if (governor->over_share > 0)
		return;
	governor->over_share = cost_share;
	governor->over_s = (double)(monotonic_ns() - recording->clock.begin_ts) / 1e9;
	log_warn("hooks cost %.1f %% of the target's CPU time, over the budget of %g %%: from now on they are attached "
		 "in windows, %.2g %% of the time (with --duty 100%% they would stay)",
		 100 * cost_share, 100 * recording->options->budget, 100 * share);
}

static void govern_share(struct recording *recording, uint64_t now)
{
	struct governor *governor = &recording->governor;
	struct window_plan *plan = &recording->windows.plan;
	struct govern_seen seen, last = governor->govern.last;
	double share;

	if (now < governor->next_ts)
		return;
	seen = see(recording, now);
	governor->govern.budget = hooks_may_take(recording);
	share = govern__look(&governor->govern, &seen);
	governor->next_ts = now + govern__look_ns(&governor->govern);
	log_debug("budget: %.2f s: share %.3g; hooks %.3g ms/s while attached, spent %.3g ms of %.3g allowed, attached "
		  "%.3g, "
		  "selecting %.3g ms, debt %.3g ms%s",
		  (double)(now - recording->clock.begin_ts) / 1e9, share, governor->govern.on_ns / 1e6,
		  (seen.spent_ns - last.spent_ns) / 1e6, governor->govern.own_ns * (seen.ts - last.ts) / 1e15,
		  (seen.attached_ns - last.attached_ns) / 1e6, (seen.selecting_ns - last.selecting_ns) / 1e6,
		  governor->govern.debt_ns / 1e6, governor->govern.idle ? ", idle" : "");
	if (share < 1 && plan->next_share >= 1)
		say_windows(recording, (seen.spent_ns - last.spent_ns) / fmax(seen.cpu_ns - last.cpu_ns, 1), share);
	if (governor->of_windows)
		window_plan__set_share(plan, share);
}

bool recording_may_hold(const struct recording *recording)
{
	/* Windows that the options ask for see what they select to its end, whatever it costs. */
	return !recording->governor.of_windows || !recording_has_budget(recording) ||
	       govern__may_hold(&recording->governor.govern);
}

/* Less is not worth a note. */
#define SLOWDOWN_WORTH 0.1

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
	uint64_t cost_ns = selection_cost_ns(recording), cpu_ns = recording_cpu_ns(recording), used_ns, spent_ns, rate;
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

	governor->of_windows |= recording->windows.on && recording->windows.plan.endless;
	governor->cpu_ns = recording->target.cpu_begin_ns;
	governor->next_ts = recording->clock.begin_ts + (recording->windows.on ? 0 : RATE_FIRST_NS);
	if (recording->windows.on) {
		struct govern_seen seen;

		governor->load = capture__load(recording->capture);
		seen = see(recording, recording->clock.begin_ts);
		govern__init(&governor->govern, recording->options->budget, &seen);
		governor->govern.share = recording->windows.plan.share;
		governor->next_ts += govern__look_ns(&governor->govern);
	}
}

void recording_govern(struct recording *recording)
{
	struct governor *governor = &recording->governor;
	uint64_t now = monotonic_ns();

	if (recording->windows.on) {
		govern_share(recording, now);
		return;
	}
	/* A client that probes governs itself. */
	if (now < governor->next_ts)
		return;
	governor->next_ts = now + LOOK_NS;
	if (!recording_client_probing(recording))
		govern_rate(recording);
}

void recording_govern_anew(struct recording *recording)
{
	recording->governor.rate_share = 0;
	recording->governor.ungovernable = false;
	recording->governor.govern.debt_ns = 0;
}

/* What hooks took while they were attached, of what the target takes in as much time. */
static double slowdown(const struct recording *recording)
{
	const struct govern_seen *seen = &recording->governor.govern.last;
	double lasted_ns = (double)(seen->ts - recording->clock.begin_ts);

	return seen->attached_ns > 0 && seen->cpu_ns > 0 ? seen->spent_ns / seen->attached_ns * lasted_ns / seen->cpu_ns
							 : 0;
}

int recording_govern_write_notes(struct recording *recording)
{
	const struct governor *governor = &recording->governor;
	double slower = recording_windows_rested(recording) ? slowdown(recording) : 0;

	if (governor->rate_changes)
		journal__note(
			&recording->journal,
			"recording every selected interval cost more than %g %% of the target's CPU time: the rate "
			"was lowered to %.3g %%",
			100 * recording->options->budget, 100.0 * capture__rate(recording->capture) / CAPTURE_RATE_ALL);
	if (governor->over_share > 0) {
		journal__note(&recording->journal,
			      "the hooks cost %.1f %% of the target's CPU time, over the budget of %g %%: from "
			      "%.1f s after the beginning on they were attached in windows, at the end %.2g %% "
			      "of the time; what is rarer than the windows is mostly not seen",
			      100 * governor->over_share, 100 * recording->options->budget, governor->over_s,
			      100 * recording->windows.plan.share);
	}
	if (slower >= SLOWDOWN_WORTH)
		journal__note(&recording->journal,
			      "while hooks were attached they took %.1f %% of the target's CPU time, on the whole "
			      "machine: requests in windows were slower by up to that share, and clients that wait "
			      "for replies sent fewer of them than between windows",
			      100 * slower);
	return recording->journal.err;
}
