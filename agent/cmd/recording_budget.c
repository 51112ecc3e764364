// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the probes of the symbol list cost the target is kept under the budget (DESIGN §5.5): hits by what a hit of
 * their class costs, and the time that the kernel side's programs take, which is measured.  Functions that are only
 * timed are let go, the dearest first; probes that say what a request is stay, whatever they cost.  Whatever else the
 * recording costs, half of the budget is the functions'.
 */
#include "base/log.h"
#include "cmd/recording_internal.h"
#include "cmd/recording_list.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIRST_LOOK_NS 250000000ULL
#define LOOK_NS       1000000000ULL
/* Of a target that uses less, the share says nothing yet. */
#define CPU_MIN_NS 50000000ULL
/* A run of a probe's program where it cannot be measured: about what it was on the machines where it could. */
#define PROGRAM_NS 150
#define NAMED_MAX  5
/* Who allows as much as the target itself takes wants the functions, whatever they cost. */
#define NO_BUDGET 1.0

struct budget_notes {
	char dropped[640];
	size_t dropped_cnt;
	bool requests_said;
	double requests_share;
};

struct recording_budget {
	uint64_t look_ts, cpu_ns;
	uint64_t hooks_ns;       /* of all programs but those of probes, as of the last look */
	struct probe_hits *last; /* by place in the list */
	struct budget_notes notes;
};

struct list_cost {
	size_t idx;
	double cost_ns;
	double calls_per_s;
};

struct program_costs {
	double hit_ns;     /* a run of a probe's program */
	uint64_t hooks_ns; /* all others so far */
};

static struct program_costs program_costs(struct recording *recording)
{
	struct program_costs programs = {.hit_ns = PROGRAM_NS};
	uint64_t total_ns, probes_ns = 0, probes_cnt = 0;
	const struct capture_cost *costs;
	size_t cnt;

	costs = capture__cost(recording->capture, &cnt, &total_ns);
	for (size_t i = 0; i < cnt; i++) {
		if (strncmp(costs[i].program, "on_probe_", strlen("on_probe_"))) {
			programs.hooks_ns += costs[i].run_ns;
			continue;
		}
		probes_ns += costs[i].run_ns;
		probes_cnt += costs[i].run_cnt;
	}
	if (probes_cnt)
		programs.hit_ns = (double)probes_ns / (double)probes_cnt;
	return programs;
}

static int dearest_first(const void *left, const void *right)
{
	const struct list_cost *a = left, *b = right;

	return (a->cost_ns < b->cost_ns) - (a->cost_ns > b->cost_ns);
}

/* "f (2400000 calls a second, 160 % of the target's CPU time)" and so on, the dearest first. */
static void name_dropped(const struct recording *recording, const struct list_cost *costs, size_t cnt, double cpu_ns,
			 char *text, size_t sz)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < cnt && i < NAMED_MAX && len < sz; i++)
		len += (size_t)snprintf(text + len, sz - len,
					"%s%.60s (%.0f calls a second, %.2g %% of the target's CPU time)",
					i ? ", " : "", recording_list_name(recording, costs[i].idx),
					costs[i].calls_per_s, 100 * costs[i].cost_ns / cpu_ns);
	if (cnt > NAMED_MAX && len < sz)
		snprintf(text + len, sz - len, " and %zu more", cnt - NAMED_MAX);
}

/* costs: of those that may go, the dearest first. */
static int let_go(struct recording *recording, const struct list_cost *costs, size_t cnt, double sum_ns,
		  double allowed_ns, double cpu_ns)
{
	struct recording_budget *budget = recording->budget;
	bool *drop = calloc(recording->targets.targets.cnt, sizeof(*drop));
	char names[512];
	size_t dropped = 0, noted = strlen(budget->notes.dropped);
	int err;

	if (!drop)
		return -ENOMEM;
	while (dropped < cnt && sum_ns > allowed_ns && costs[dropped].cost_ns > 0) {
		sum_ns -= costs[dropped].cost_ns;
		drop[costs[dropped++].idx] = true;
	}
	name_dropped(recording, costs, dropped, cpu_ns, names, sizeof(names));
	log_warn("over the budget of %g %%, no longer probed and unmeasured from now on: %s",
		 100 * recording->options->budget, names);
	snprintf(budget->notes.dropped + noted, sizeof(budget->notes.dropped) - noted,
		 "%s%.1f s after the beginning: %s", noted ? "; " : "",
		 (double)(monotonic_ns() - recording->begin_ts) / 1e9, names);
	budget->notes.dropped_cnt += dropped;
	err = recording_list_drop(recording, drop);
	free(drop);
	return err;
}

static void say_requests(struct recording *recording, double requests_share)
{
	struct budget_notes *notes = &recording->budget->notes;

	notes->requests_share = fmax(notes->requests_share, requests_share);
	if (notes->requests_said || requests_share <= recording->options->budget)
		return;
	notes->requests_said = true;
	log_warn("the probes that say what a request is cost %.2g %% of the target's CPU time by themselves, over the "
		 "budget of %g %%: they stay",
		 100 * requests_share, 100 * recording->options->budget);
}

/* Judges what has happened since the last look. */
static int judge(struct recording *recording, const struct probe_hits *hits, double cpu_ns, double seconds)
{
	size_t cnt = recording->targets.targets.cnt, may_go = 0;
	const struct program_costs programs = program_costs(recording);
	struct recording_budget *budget = recording->budget;
	struct list_cost *costs = calloc(cnt, sizeof(*costs));
	double requests_ns = 0, hooks_ns = 0, functions_ns = 0, budget_ns = cpu_ns * recording->options->budget,
	       allowed_ns;
	int err = 0;

	if (!costs)
		return -ENOMEM;
	if (programs.hooks_ns > budget->hooks_ns)
		hooks_ns = (double)(programs.hooks_ns - budget->hooks_ns);
	budget->hooks_ns = programs.hooks_ns;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t entries = hits[i].entries - budget->last[i].entries;
		uint64_t hit_cnt = entries + hits[i].exits - budget->last[i].exits;
		double cost_ns = (double)(hits[i].cost_ns - budget->last[i].cost_ns) +
				 (hits[i].cost_ns > 0 ? (double)hit_cnt * programs.hit_ns : 0);

		if (!recording_list_may_go(recording, i)) {
			requests_ns += cost_ns;
			continue;
		}
		costs[may_go++] = (struct list_cost){i, cost_ns, (double)entries / seconds};
		functions_ns += cost_ns;
	}
	say_requests(recording, requests_ns / cpu_ns);
	allowed_ns = fmax(budget_ns - requests_ns - hooks_ns, budget_ns / 2);
	qsort(costs, may_go, sizeof(*costs), dearest_first);
	if (functions_ns > allowed_ns && recording->options->budget < NO_BUDGET)
		err = let_go(recording, costs, may_go, functions_ns, allowed_ns, cpu_ns);
	free(costs);
	return err;
}

int recording_budget_keep(struct recording *recording)
{
	struct recording_budget *budget = recording->budget;
	uint64_t now = monotonic_ns(), cpu_ns;
	struct probe_hits *hits;
	int err = 0;

	/* Rounds keep theirs. */
	if (!recording->list || recording->rounds || recording->probes_lost)
		return 0;
	if (!budget) {
		budget = recording->budget = calloc(1, sizeof(*budget));
		if (budget)
			budget->last = calloc(recording->targets.targets.cnt, sizeof(*budget->last));
		if (!budget || !budget->last)
			return -ENOMEM;
		budget->cpu_ns = recording->target_cpu_begin_ns;
		budget->look_ts = recording->begin_ts;
	}
	if (now - budget->look_ts < (budget->look_ts == recording->begin_ts ? FIRST_LOOK_NS : LOOK_NS))
		return 0;
	cpu_ns = target_cpu_ns(&recording->processes);
	if (cpu_ns < budget->cpu_ns + CPU_MIN_NS)
		return 0;
	hits = calloc(recording->targets.targets.cnt, sizeof(*hits));
	if (!hits)
		return -ENOMEM;
	if (recording_list_hits(recording, hits))
		err = judge(recording, hits, (double)(cpu_ns - budget->cpu_ns), (double)(now - budget->look_ts) / 1e9);
	free(budget->last);
	budget->last = hits;
	budget->cpu_ns = cpu_ns;
	budget->look_ts = now;
	return err;
}

void recording_budget_free(struct recording *recording)
{
	if (recording->budget)
		free(recording->budget->last);
	free(recording->budget);
	recording->budget = NULL;
}

int recording_budget_write_notes(struct recording *recording, uint32_t *note)
{
	const struct budget_notes *notes = recording->budget ? &recording->budget->notes : NULL;
	char key[32];
	int err = 0;

	if (notes && notes->dropped_cnt) {
		snprintf(key, sizeof(key), "note.%u", (*note)++);
		err = recording_say(recording, key,
				    "%zu functions of the symbol list are unmeasured for a part of the recording, over "
				    "the budget of %g %%: %s",
				    notes->dropped_cnt, 100 * recording->options->budget, notes->dropped);
	}
	if (!err && notes && notes->requests_said) {
		snprintf(key, sizeof(key), "note.%u", (*note)++);
		err = recording_say(recording, key,
				    "the probes that say what a request is cost up to %.2g %% of the target's CPU time "
				    "by themselves, over the budget of %g %%",
				    100 * notes->requests_share, 100 * recording->options->budget);
	}
	return err;
}
