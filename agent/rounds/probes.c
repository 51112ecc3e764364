// SPDX-License-Identifier: GPL-2.0-or-later
/* Which functions a round probes, and what that costs. */
#include "base/clock.h"
#include "base/log.h"
#include "rounds/rounds_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARED          0.9  /* of the time beneath a frame: then nearly all stacks have it */
#define LEAST           0.02 /* of the time beneath a function: less is not worth a probe */
#define LEVELS          3    /* of callees that are opened at once, where stacks tell which of them matter */
#define PROBES          500
#define PROBES_NO_MULTI 20 /* each has an exit, or several */
#define COUNT_S_MAX     1
#define PROGRAM_NS      500 /* a hit's own program, entry and exit together */
/* A round's cost may be spent in a part of it; but beyond this share of the target's time nothing is as it was. */
#define COST_SHARE_MAX 0.2
#define SLICE_NS       250000000.0
#define ALONE_MAX      0.25 /* of it for one function: otherwise what it calls is probed in its place */
/* A target that does next to nothing is not made late by next to nothing. */
#define CPU_NS_MIN 200000000.0

static bool is_callable(const struct program_function *function)
{
	return function && !function->is_part && !function->is_ifunc;
}

/* NAN: there is no way to time its calls. */
static double estimate_ns(struct program *program, const struct plan *plan)
{
	const struct program_function *function = program__function(program, plan->function);
	const struct program_module *module = function ? program__module(program, function->module) : NULL;

	if (!is_callable(function) || !plan->possible || plan->exit == PLAN_EXIT_NONE || !module || !module->file ||
	    module->gone)
		return NAN;
	return capture__call_cost_ns(plan) + PROGRAM_NS;
}

/* The function's place, new if need be, with its plan: 0 or -errno. */
static int rounds_function(struct rounds *rounds, uint32_t func, uint32_t *idx)
{
	const struct plan_needs needs = {.exit = true}, count = {0};
	struct round_function made = {.func = func, .parent = RECORDED_UNKNOWN};
	int err;

	if (idmap__id(&rounds->function_ids, func, 0, idx))
		return -ENOMEM;
	if (*idx < rounds->functions.cnt)
		return 0;
	err = plan_make(rounds->program, func, &needs, &made.plan);
	if (!err)
		err = plan_make(rounds->program, func, &count, &made.count_plan);
	if (err == -ENOMEM)
		return err;
	made.estimate_ns = err ? NAN : estimate_ns(rounds->program, &made.plan);
	if (!vec_push(&rounds->functions, made))
		return 0;
	plan_free(&made.plan);
	plan_free(&made.count_plan);
	return -ENOMEM;
}

int rounds_replan(struct rounds *rounds)
{
	const struct plan_needs needs = {.exit = true};
	int err = 0;

	for (size_t i = 0; i < rounds->functions.cnt && err != -ENOMEM; i++) {
		struct round_function *function = &rounds->functions.items[i];

		if (function->plan.exit != PLAN_EXIT_URETPROBE)
			continue;
		plan_free(&function->plan);
		err = plan_make(rounds->program, function->func, &needs, &function->plan);
		function->estimate_ns = err ? NAN : estimate_ns(rounds->program, &function->plan);
		function->attached &= !isnan(function->estimate_ns);
	}
	return err == -ENOMEM ? err : 0;
}

/* What stacks speak of is counted before it is timed, and may be too dear then; of the rest the worst is feared. */
static double hits_of(const struct round_function *function, double weight)
{
	return function->counted ? function->hits_per_s : weight >= LEAST ? 0 : NAN;
}

static int add_child(struct rounds *rounds, uint32_t func, double weight)
{
	uint32_t idx;
	int err;

	for (size_t i = 0; i < rounds->children.cnt; i++) {
		if (rounds->children.items[i].func != func)
			continue;
		rounds->children.items[i].weight = fmax(rounds->children.items[i].weight, weight);
		return 0;
	}
	err = rounds_function(rounds, func, &idx);
	return err ? err
		   : vec_push(&rounds->children, ((struct refine_child){
							 .func = func,
							 .cost_ns = rounds->functions.items[idx].estimate_ns,
							 .hits_per_s = hits_of(&rounds->functions.items[idx], weight),
							 .weight = weight,
						 }));
}

/* What disassembly tells, and what was met on stacks, most of it first. */
static int rounds_children(void *ctx, uint32_t func, const struct refine_child **children, size_t *cnt)
{
	struct rounds *rounds = ctx;
	const struct call_edge *edges = NULL;
	struct hot_edge *hot = NULL;
	size_t hot_cnt = 0, edge_cnt = 0;
	int err = hot_paths__children(rounds->hot, func, &hot, &hot_cnt);

	rounds->children.cnt = 0;
	for (size_t i = 0; i < hot_cnt && !err; i++)
		err = add_child(rounds, hot[i].callee,
				rounds->hot_ns > 0 ? (hot[i].running_ns + hot[i].blocked_ns) / rounds->hot_ns : NAN);
	free(hot);
	/* A function without code that can be read has no callees that are known. */
	if (!err && program__callees(rounds->program, func, &edges, &edge_cnt))
		edge_cnt = 0;
	for (size_t i = 0; i < edge_cnt && !err; i++)
		if (edges[i].callee != func)
			err = add_child(rounds, edges[i].callee, NAN);
	*children = rounds->children.items;
	*cnt = rounds->children.cnt;
	return err;
}

static bool is_attached(const struct rounds *rounds, uint32_t func)
{
	uint32_t idx;

	return idmap__find(&rounds->function_ids, func, 0, &idx) && rounds->functions.items[idx].attached;
}

/* Share of the time of all samples that was spent in it and in no probed callee of it. */
static double weight_of(const struct rounds *rounds, uint32_t func)
{
	struct hot_edge *children = NULL;
	struct hot_function hot;
	size_t cnt = 0;
	double ns;

	if (!(rounds->hot_ns > 0) || !hot_paths__function(rounds->hot, func, &hot))
		return NAN;
	ns = hot.running_ns + hot.blocked_ns;
	if (hot_paths__children(rounds->hot, func, &children, &cnt))
		return NAN;
	for (size_t i = 0; i < cnt; i++)
		if (is_attached(rounds, children[i].callee))
			ns -= children[i].running_ns + children[i].blocked_ns;
	free(children);
	return ns / rounds->hot_ns;
}

struct refine_function *rounds_list(const struct rounds *rounds)
{
	struct refine_function *list = calloc(rounds->functions.cnt + 1, sizeof(*list));

	for (size_t i = 0; list && i < rounds->functions.cnt; i++) {
		const struct round_function *from = &rounds->functions.items[i];

		list[i] = (struct refine_function){
			.func = from->func,
			.attached = from->attached || from->of_list,
			.opened = from->opened,
			.explained = from->explained,
			.dull = from->dull,
			.understood = from->understood,
			.weight = weight_of(rounds, from->func),
			.root = from->root || from->of_list,
			.hits_per_s = from->hits_per_s,
			/* Those of the list are not the rounds' to take away. */
			.cost_ns = from->of_list || isnan(from->estimate_ns) ? 0 : from->estimate_ns,
		};
	}
	return list;
}

/* Per second of probing: what the whole round may cost, if it is spent in a slice of it. */
static double budget_ns(const struct rounds *rounds)
{
	double share = rounds->record->budget * fmax(1, (double)rounds->slot_ns / SLICE_NS);

	return fmax(rounds->cpu_ns_per_s, CPU_NS_MIN) * fmin(share, fmax(COST_SHARE_MAX, rounds->record->budget));
}

struct refine_input rounds_input(struct rounds *rounds, const struct refine_function *functions)
{
	bool multi = session__probes_many(rounds->recording);

	return (struct refine_input){
		.functions = functions,
		.function_cnt = rounds->functions.cnt,
		.rule = rounds->options.rule,
		.budget_ns_per_s = budget_ns(rounds),
		.alone_max = ALONE_MAX,
		.probes_max = multi ? PROBES : PROBES_NO_MULTI,
		.levels = LEVELS,
		.weight_min = LEAST,
		.only = FACTOR_NONE,
		.children = rounds_children,
		.ctx = rounds,
	};
}

int rounds_apply(struct rounds *rounds, const struct refine_plan *plan, bool dull)
{
	uint32_t idx;
	int err = 0;

	for (size_t i = 0; i < plan->detach.cnt && !err; i++) {
		err = rounds_function(rounds, plan->detach.items[i].func, &idx);
		if (!err && rounds->functions.items[idx].attached) {
			rounds->functions.items[idx].attached = false;
			rounds->functions.items[idx].why = plan->detach.items[i].why;
			rounds->functions.items[idx].dull = dull;
		}
	}
	for (size_t i = 0; i < plan->attach.cnt && !err; i++) {
		err = rounds_function(rounds, plan->attach.items[i].func, &idx);
		if (!err) {
			rounds->functions.items[idx].attached = true;
			rounds->functions.items[idx].parent = plan->attach.items[i].parent;
			err = rounds_function(rounds, plan->attach.items[i].parent, &idx);
		}
		if (!err)
			rounds->functions.items[idx].opened = true;
	}
	return err;
}

/* --- where it begins ---------------------------------------------------------------------------------------------- */

static int add_root(struct rounds *rounds, uint32_t func, bool of_list)
{
	struct round_function *function;
	uint32_t idx;
	int err = rounds_function(rounds, func, &idx);

	if (err)
		return err;
	function = &rounds->functions.items[idx];
	function->root = true;
	function->of_list = of_list;
	function->attached = !of_list && !isnan(function->estimate_ns);
	return 0;
}

static int roots_of_list(struct rounds *rounds)
{
	struct session_listed listed;
	int err = 0;

	for (size_t i = 0; !err && session__listed(rounds->recording, i, &listed); i++)
		if (listed.has_func && (listed.role == PROBE_INTERVAL || listed.role == PROBE_FUNCTION))
			err = add_root(rounds, listed.func, true);
	return err;
}

static int roots_of_stacks(struct rounds *rounds)
{
	struct hot_root *roots = NULL;
	bool nameless = false;
	size_t cnt = 0;
	int err = hot_paths__roots(rounds->hot, SHARED, LEAST, &roots, &cnt);

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct program_function *function = program__function(rounds->program, roots[i].function);

		if (!function)
			continue;
		nameless |= function->source == FUNCTION_EH_FRAME;
		err = add_root(rounds, roots[i].function, false);
		if (!err && !rounds->record->quiet)
			log_info("requests' work begins in %s (%s), %.0f %% of their time", function->shown,
				 program__module(rounds->program, function->module)->name, 100 * roots[i].share);
	}
	free(roots);
	if (!err && nameless && !rounds->record->quiet)
		log_info(
			"some of its functions have no names in its files: they are called by module and offset, which "
			"a debugger knows");
	return err;
}

/* The time of all samples, by which the weights of functions are shares. */
static int weigh_samples(struct rounds *rounds)
{
	struct hot_function *functions;
	size_t cnt;
	int err = hot_paths__functions(rounds->hot, &functions, &cnt);

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		rounds->hot_ns += functions[i].self_running_ns + functions[i].self_blocked_ns;
	free(functions);
	return 0;
}

/* The roots as if they were factors, so that what they call is opened by the same rules. */
static int open_roots(struct rounds *rounds)
{
	struct refine_function *list = rounds_list(rounds);
	struct refine_input input = rounds_input(rounds, list);
	struct factors factors = {.graph_height = 1};
	struct refine_plan plan = {0};
	int err = list ? 0 : -ENOMEM;

	for (size_t i = 0; i < rounds->functions.cnt && !err; i++)
		if (rounds->functions.items[i].root)
			err = vec_push(&factors.list,
				       ((struct factor){.funcs = {rounds->functions.items[i].func, FACTOR_NONE},
							.contribution = 1,
							.rank = 1}));
	input.factors = &factors;
	input.rule.k = UINT32_MAX;
	if (!err)
		err = refine_decide(&plan, &input);
	if (!err)
		err = rounds_apply(rounds, &plan, false);
	refine_plan_free(&plan);
	factors_free(&factors);
	free(list);
	return err;
}

int rounds_find_roots(struct rounds *rounds)
{
	int err = hot_paths__teach(rounds->hot, rounds->program);

	err = err < 0 ? err : weigh_samples(rounds);
	if (!err)
		err = roots_of_list(rounds);
	if (!err && !rounds->functions.cnt)
		err = roots_of_stacks(rounds);
	if (!err && !rounds->functions.cnt)
		return -ENOENT;
	return err ? err : open_roots(rounds);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

/* calls of a function per second of the target's time, of which its threads use cpu_s a second. */
static void note_rate(struct round_function *function, const struct call_rate *rate, double cpu_s)
{
	if (!rate->seen_ns)
		return;
	function->counted = true;
	function->hits_per_s = (double)rate->calls / ((double)rate->seen_ns / 1e9) * cpu_s;
}

/*
 * By the processor's breakpoint registers: a probe on a function that is called millions of times a second stops the
 * target's work for as long as it is there.  What cannot be counted like that stays uncounted.
 */
int rounds_count(struct rounds *rounds)
{
	size_t all = rounds->functions.cnt, cnt = 0;
	struct call_rate *rates = calloc(all + 1, sizeof(*rates));
	uint64_t *addrs = calloc(all + 1, sizeof(*addrs));
	size_t *idxs = calloc(all + 1, sizeof(*idxs));
	int err = rates && addrs && idxs ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < all; i++) {
		const struct round_function *function = &rounds->functions.items[i];

		if (!function->attached || function->counted)
			continue;
		idxs[cnt] = i;
		addrs[cnt++] = plan_runtime_addr(rounds->program, &function->count_plan);
	}
	if (!err && cnt)
		err = session__count_calls(rounds->recording, COUNT_S_MAX, addrs, cnt, rates);
	for (size_t i = 0; !err && i < cnt; i++)
		note_rate(&rounds->functions.items[idxs[i]], &rates[i], rounds->cpu_ns_per_s / 1e9);
	if (err && err != -ENOMEM)
		log_debug("calls cannot be counted before functions are probed: %s", strerror(-err));
	free(rates);
	free(addrs);
	free(idxs);
	return err == -ENOMEM ? err : 0;
}

/* --- attaching ---------------------------------------------------------------------------------------------------- */

static void describe(struct rounds *rounds, struct round_function *function, bool count, struct recorded_probe *probe)
{
	const struct program_function *of = program__function(rounds->program, function->func);
	const struct program_module *module = program__module(rounds->program, of->module);

	*probe = (struct recorded_probe){
		.probe =
			{
				.func = function->func,
				.role = PROBE_FUNCTION,
				.want_call_addr = true,
				.file = module->file,
				.plan = count ? &function->count_plan : &function->plan,
			},
		.module = module->name,
		.name = of->shown,
		.addr = of->file_off,
		.size = of->size,
		.height = program__height(rounds->program, function->func),
		.parent_func = function->parent,
	};
}

/* All of them at once, or, where that fails, halves: what cannot be probed alone is given up. */
static int attach_some(struct rounds *rounds, const struct recorded_probe *probes, const uint32_t *functions,
		       size_t cnt)
{
	struct round_set set = {.cnt = cnt};
	int err;

	if (!cnt)
		return 0;
	/* Before anything is attached, so that whatever is attached is known. */
	if (vec_reserve(&rounds->sets, 1) || !(set.functions = malloc(cnt * sizeof(*set.functions))))
		return -ENOMEM;
	memcpy(set.functions, functions, cnt * sizeof(*set.functions));
	err = session__attach(rounds->recording, probes, cnt, rounds->round, &set.set);
	if (!err) {
		rounds->sets.items[rounds->sets.cnt++] = set;
		return 0;
	}
	free(set.functions);
	if (err == -ENOMEM)
		return err;
	if (cnt == 1) {
		rounds->functions.items[*functions].attached = false;
		rounds->functions.items[*functions].estimate_ns = NAN;
		return 0;
	}
	err = attach_some(rounds, probes, functions, cnt / 2);
	return err ? err : attach_some(rounds, probes + cnt / 2, functions + cnt / 2, cnt - cnt / 2);
}

int rounds_attach(struct rounds *rounds, bool count)
{
	size_t all = rounds->functions.cnt, cnt = 0;
	struct recorded_probe *probes = calloc(all + 1, sizeof(*probes));
	uint32_t *functions = calloc(all + 1, sizeof(*functions));
	int err = probes && functions ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < all && !err; i++) {
		if (!rounds->functions.items[i].attached)
			continue;
		if (count && rounds->functions.items[i].counted)
			continue;
		describe(rounds, &rounds->functions.items[i], count, &probes[cnt]);
		functions[cnt++] = i;
	}
	if (!err)
		err = attach_some(rounds, probes, functions, cnt);
	free(functions);
	free(probes);
	return err;
}

int rounds_detach(struct rounds *rounds)
{
	int err = 0;

	rounds->spent_ns += rounds_measure(rounds);
	for (size_t s = 0; s < rounds->sets.cnt; s++) {
		struct round_set *set = &rounds->sets.items[s];
		const char **whys = calloc(set->cnt, sizeof(*whys));

		for (size_t i = 0; whys && i < set->cnt; i++)
			whys[i] = rounds->functions.items[set->functions[i]].why;
		if (!err)
			err = whys ? 0 : -ENOMEM;
		if (!err)
			err = session__detach(rounds->recording, set->set, whys);
		free(whys);
		free(set->functions);
	}
	rounds->sets.cnt = 0;
	for (size_t i = 0; i < rounds->functions.cnt; i++)
		rounds->functions.items[i].why = NULL;
	return err;
}

double rounds_measure(struct rounds *rounds)
{
	double seconds = (double)(monotonic_ns() - rounds->begin.ts) / 1e9, sum_ns = 0;

	for (size_t s = 0; s < rounds->sets.cnt; s++) {
		const struct round_set *set = &rounds->sets.items[s];
		struct probe_hits *hits = calloc(set->cnt, sizeof(*hits));

		if (!hits)
			continue;
		session__hits(rounds->recording, set->set, hits);
		for (size_t i = 0; i < set->cnt; i++) {
			struct round_function *function = &rounds->functions.items[set->functions[i]];

			function->hits_per_s = seconds > 0 ? (double)hits[i].entries / seconds : 0;
			function->counted = true;
			sum_ns += (double)hits[i].cost_ns + (double)hits[i].entries * PROGRAM_NS;
		}
		free(hits);
	}
	return sum_ns;
}

/*
 * One at a time, because what one does not cover any more is worth more in another: until the rest fits.  How many, or
 * -errno.
 */
int rounds_fit(struct rounds *rounds, double share)
{
	int cnt = 0, err = 0;
	bool fits = false;

	while (!fits && !err) {
		struct refine_function *list = rounds_list(rounds);
		struct refine_input input = rounds_input(rounds, list);
		struct refine_plan plan = {0};

		input.budget_ns_per_s *= share;
		err = list ? refine_relieve(&plan, &input) : -ENOMEM;
		fits = !plan.detach.cnt;
		if (!err && !fits) {
			plan.detach.cnt = 1;
			err = rounds_apply(rounds, &plan, false);
			cnt++;
		}
		refine_plan_free(&plan);
		free(list);
	}
	return err ? err : cnt;
}

uint32_t rounds_probe_cnt(const struct rounds *rounds)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < rounds->functions.cnt; i++)
		cnt += rounds->functions.items[i].attached || rounds->functions.items[i].of_list;
	return cnt;
}
