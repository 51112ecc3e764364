// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the probes of the symbol list cost the target is kept under the budget (DESIGN §5.5): hits by what a hit of
 * their class costs, and the time that the kernel side's programs take, which is measured.  Functions that are only
 * timed are let go, the dearest first; probes that say what a request is stay, whatever they cost.  Whatever else the
 * recording costs, half of the budget is the functions'.
 *
 * A breakpoint that is hit millions of times a second stops the target's work for as long as it is there, and it takes
 * the kernel tenths of a second to take it out again.  So functions are counted first, without one.
 */
#include "base/log.h"
#include "base/order.h"
#include "session/client.h"
#include "session/list.h"
#include "session/recording.h"

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
#define PROGRAM_NS 300
#define NAMED_MAX  5
/* For the longest list of functions, more or less. */
#define COUNT_S_MAX 4

struct budget_notes {
	char dropped[640], forgone[640];
	size_t dropped_cnt, forgone_cnt;
	bool requests_said;
	double requests_share;
};

struct recording_budget {
	uint64_t look_ts, cpu_ns;
	uint64_t hooks_ns;       /* of all programs but those of probes, as of the last look */
	double probes_share;     /* of the target's CPU time, what probes took at the last look */
	struct probe_hits *last; /* by place in the list */
	struct budget_notes notes;
};

struct list_cost {
	size_t idx;
	double cost_ns;
	double calls_per_s;
	bool counted, at_least; /* by breakpoint registers, which cannot keep up with it */
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
		if (!capture__is_of_probe(costs[i].program)) {
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

ORDER(dearest_first, struct list_cost, BY(b->cost_ns, a->cost_ns));

/* "f (2400000 calls a second, 160 % of the target's CPU time)" and so on, the dearest first. */
static void name_dropped(const struct recording *recording, const struct list_cost *costs, size_t cnt, double cpu_ns,
			 char *text, size_t sz)
{
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < cnt && i < NAMED_MAX && len < sz; i++)
		len += (size_t)snprintf(
			text + len, sz - len, "%s%.60s (%s%.0f calls a second, %.*f %% of the target's CPU time)",
			i ? ", " : "", recording_list_name(recording, costs[i].idx),
			costs[i].at_least  ? "at least "
			: costs[i].counted ? "about "
					   : "",
			costs[i].calls_per_s, costs[i].cost_ns < cpu_ns / 10 ? 2 : 0, 100 * costs[i].cost_ns / cpu_ns);
	if (cnt > NAMED_MAX && len < sz)
		snprintf(text + len, sz - len, " and %zu more", cnt - NAMED_MAX);
}

/* costs: the dearest first. How many of them go, and which; 0 to all. */
static size_t choose_dropped(const struct list_cost *costs, size_t cnt, double sum_ns, double allowed_ns, bool *drop)
{
	size_t dropped = 0;

	while (dropped < cnt && sum_ns > allowed_ns && costs[dropped].cost_ns > 0) {
		sum_ns -= costs[dropped].cost_ns;
		drop[costs[dropped++].idx] = true;
	}
	return dropped;
}

/* costs: of those that may go, the dearest first. */
static int let_go(struct recording *recording, const struct list_cost *costs, size_t cnt, double sum_ns,
		  double allowed_ns, double cpu_ns)
{
	struct recording_budget *budget = recording->budget;
	bool *drop = calloc(recording->symbols.targets.targets.cnt, sizeof(*drop));
	char names[512];
	size_t dropped, noted = strlen(budget->notes.dropped);
	int err;

	if (!drop)
		return -ENOMEM;
	dropped = choose_dropped(costs, cnt, sum_ns, allowed_ns, drop);
	name_dropped(recording, costs, dropped, cpu_ns, names, sizeof(names));
	log_warn("over the budget of %g %%, no longer probed and unmeasured from now on: %s",
		 100 * recording->options->budget, names);
	snprintf(budget->notes.dropped + noted, sizeof(budget->notes.dropped) - noted,
		 "%s%.1f s after the beginning: %s", noted ? "; " : "",
		 (double)(monotonic_ns() - recording->clock.begin_ts) / 1e9, names);
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
	size_t cnt = recording->symbols.targets.targets.cnt, may_go = 0;
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
		costs[may_go++] =
			(struct list_cost){.idx = i, .cost_ns = cost_ns, .calls_per_s = (double)entries / seconds};
		functions_ns += cost_ns;
	}
	say_requests(recording, requests_ns / cpu_ns);
	budget->probes_share = (requests_ns + functions_ns) / cpu_ns;
	allowed_ns = fmax(budget_ns - requests_ns - hooks_ns, budget_ns / 2);
	qsort(costs, may_go, sizeof(*costs), dearest_first);
	if (functions_ns > allowed_ns && recording_has_budget(recording))
		err = let_go(recording, costs, may_go, functions_ns, allowed_ns, cpu_ns);
	free(costs);
	return err;
}

/* --- before ------------------------------------------------------------------------------------------------------- */

/* Two digits are what so few calls tell. */
static double rounded(double value)
{
	double unit = value > 0 ? pow(10, floor(log10(value)) - 1) : 1;

	return round(value / unit) * unit;
}

/* costs: of a second of the target's CPU time, of which it uses cpu_s a second. */
static size_t judge_rates(const struct recording *recording, const struct call_rate *rates, const size_t *idxs,
			  size_t cnt, double cpu_s, struct list_cost *costs, double *sum_ns)
{
	size_t known = 0;

	for (size_t i = 0; i < cnt; i++) {
		double calls_per_cpu_s = (double)rates[i].calls / ((double)rates[i].seen_ns / 1e9);

		if (!rates[i].calls || !rates[i].seen_ns)
			continue;
		costs[known++] = (struct list_cost){
			.idx = idxs[i],
			.cost_ns = calls_per_cpu_s *
				   (capture__call_cost_ns(recording_list_plan(recording, idxs[i])) + 2 * PROGRAM_NS),
			.calls_per_s = rounded(calls_per_cpu_s * cpu_s),
			.counted = true,
			.at_least = rates[i].at_least,
		};
		*sum_ns += costs[known - 1].cost_ns;
	}
	qsort(costs, known, sizeof(*costs), dearest_first);
	return known;
}

static int forgo(struct recording *recording, const struct list_cost *costs, size_t cnt, double sum_ns, double took_s)
{
	struct budget_notes *notes = &recording->budget->notes;
	bool *drop = calloc(recording->symbols.targets.targets.cnt, sizeof(*drop));
	int err = drop ? 0 : -ENOMEM;

	if (!err)
		notes->forgone_cnt = choose_dropped(costs, cnt, sum_ns, 1e9 * recording->options->budget / 2, drop);
	if (!err && notes->forgone_cnt) {
		name_dropped(recording, costs, notes->forgone_cnt, 1e9, notes->forgone, sizeof(notes->forgone));
		log_warn("over the budget of %g %% by what was counted for %.1f s, not probed and unmeasured: %s",
			 100 * recording->options->budget, took_s, notes->forgone);
		err = recording_list_forgo(recording, drop);
	}
	free(drop);
	return err;
}

static int count_and_forgo(struct recording *recording, const size_t *idxs, const uint64_t *addrs, size_t cnt)
{
	struct call_rate *rates = calloc(cnt, sizeof(*rates));
	struct list_cost *costs = calloc(cnt, sizeof(*costs));
	uint64_t begin_ts = monotonic_ns(), begin_ns = recording_cpu_ns(recording);
	int err = rates && costs ? 0 : -ENOMEM;

	if (!err)
		err = session__count_calls(recording, COUNT_S_MAX, addrs, cnt, rates);
	if (!err) {
		double took_s = (double)(monotonic_ns() - begin_ts) / 1e9, sum_ns = 0;
		double cpu_s = (double)(recording_cpu_ns(recording) - begin_ns) / 1e9 / took_s;
		size_t known = judge_rates(recording, rates, idxs, cnt, cpu_s, costs, &sum_ns);

		err = forgo(recording, costs, known, sum_ns, took_s);
	} else if (err != -ENOMEM) {
		log_info("how often functions are called cannot be counted before they are probed (%s): those that are "
			 "over the budget are detached a moment later",
			 strerror(-err));
		err = 0;
	}
	free(rates);
	free(costs);
	return err;
}

static int open_budget(struct recording *recording)
{
	struct recording_budget *budget;

	if (recording->budget)
		return 0;
	budget = recording->budget = calloc(1, sizeof(*budget));
	if (budget)
		budget->last = calloc(recording->symbols.targets.targets.cnt, sizeof(*budget->last));
	return budget && budget->last ? 0 : -ENOMEM;
}

int recording_budget_try(struct recording *recording)
{
	size_t all = recording->symbols.targets.targets.cnt, cnt = 0, *idxs;
	uint64_t *addrs;
	int err;

	if (!recording->list || recording_client_probes(recording) || !recording_has_budget(recording))
		return 0;
	idxs = calloc(all, sizeof(*idxs));
	addrs = calloc(all, sizeof(*addrs));
	err = idxs && addrs ? open_budget(recording) : -ENOMEM;
	for (size_t i = 0; !err && i < all; i++) {
		if (!recording_list_may_go(recording, i))
			continue;
		idxs[cnt] = i;
		addrs[cnt++] = plan_runtime_addr(recording->program, recording_list_plan(recording, i));
	}
	if (!err && cnt)
		err = count_and_forgo(recording, idxs, addrs, cnt);
	free(idxs);
	free(addrs);
	return err;
}

/* --- meanwhile ---------------------------------------------------------------------------------------------------- */

int recording_budget_keep(struct recording *recording)
{
	uint64_t now = monotonic_ns(), cpu_ns;
	struct recording_budget *budget;
	struct probe_hits *hits;
	int err;

	/* Rounds keep theirs. */
	if (!recording->list || recording_client_probes(recording) || recording->probes_lost)
		return 0;
	err = open_budget(recording);
	if (err)
		return err;
	budget = recording->budget;
	if (!budget->look_ts) {
		budget->cpu_ns = recording->target.cpu_begin_ns;
		budget->look_ts = recording->clock.begin_ts;
	}
	if (now - budget->look_ts < (budget->look_ts == recording->clock.begin_ts ? FIRST_LOOK_NS : LOOK_NS))
		return 0;
	cpu_ns = recording_cpu_ns(recording);
	if (cpu_ns < budget->cpu_ns + CPU_MIN_NS)
		return 0;
	hits = calloc(recording->symbols.targets.targets.cnt, sizeof(*hits));
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

double recording_budget_probes_share(const struct recording *recording)
{
	return recording->budget ? recording->budget->probes_share : 0;
}

void recording_budget_free(struct recording *recording)
{
	if (recording->budget)
		free(recording->budget->last);
	free(recording->budget);
	recording->budget = NULL;
}

int recording_budget_write_notes(struct recording *recording)
{
	const struct budget_notes *notes = recording->budget ? &recording->budget->notes : NULL;

	if (notes && notes->forgone_cnt)
		journal__note(&recording->journal,
			      "%zu functions of the symbol list are unmeasured, over the budget of %g %% by what "
			      "was counted before the recording: %s",
			      notes->forgone_cnt, 100 * recording->options->budget, notes->forgone);
	if (notes && notes->dropped_cnt)
		journal__note(&recording->journal,
			      "%zu functions of the symbol list are unmeasured for a part of the recording, over "
			      "the budget of %g %%: %s",
			      notes->dropped_cnt, 100 * recording->options->budget, notes->dropped);
	if (notes && notes->requests_said)
		journal__note(&recording->journal,
			      "the probes that say what a request is cost up to %.2g %% of the target's CPU time "
			      "by themselves, over the budget of %g %%",
			      100 * notes->requests_share, 100 * recording->options->budget);
	return recording->journal.err;
}
