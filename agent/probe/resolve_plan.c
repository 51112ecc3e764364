// SPDX-License-Identifier: GPL-2.0-or-later
/* Plans what the lines named: one plan for a function, whatever its roles; no role twice. */
#include "probe/resolve_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 3

/* Why a target cannot be kept; NULL: it can. */
struct fate {
	const char *why;
	bool said; /* by a verdict that is wrong as a whole, or of no interest */
};

struct planner {
	struct resolver *resolver;
	struct probe_target **order; /* by place, role, and then those that were named before those that a glob found */
	struct fate *fates;          /* by target */
	size_t cnt;
};

static const struct probe_line *line_of(const struct planner *planner, const struct probe_target *target)
{
	return &planner->resolver->lines->items[target->line_idx];
}

static struct fate *fate_of(const struct planner *planner, const struct probe_target *target)
{
	return &planner->fates[target - planner->resolver->out->targets.items];
}

static bool same_place(const struct probe_target *a, const struct probe_target *b)
{
	return a->module == b->module && a->file_off == b->file_off && !a->usdt == !b->usdt;
}

static int target_cmp(const void *left, const void *right, void *lines)
{
	const struct probe_target *a = *(struct probe_target *const *)left;
	const struct probe_target *b = *(struct probe_target *const *)right;
	const struct probe_line *items = ((const probe_lines *)lines)->items;
	enum probe_role role_a = items[a->line_idx].role, role_b = items[b->line_idx].role;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (!a->usdt != !b->usdt)
		return a->usdt ? 1 : -1;
	if (a->file_off != b->file_off)
		return a->file_off < b->file_off ? -1 : 1;
	if (role_a != role_b)
		return role_a < role_b ? -1 : 1;
	if (a->by_glob != b->by_glob)
		return a->by_glob ? 1 : -1;
	return a->line_idx < b->line_idx ? -1 : a->line_idx > b->line_idx;
}

/* Makes the whole line wrong. */
static int refuse_line(struct planner *planner, const struct probe_target *target, int err)
{
	struct probe_verdict *verdict = &planner->resolver->out->verdicts.items[target->line_idx];

	if (verdict->err)
		return 0;
	free(verdict->why);
	verdict->err = err;
	verdict->why = strdup(planner->resolver->why);
	return verdict->why ? 0 : -ENOMEM;
}

/*
 * Two probes of one role on one function (twice the same line, or two names of it) would nest every call in itself.
 * What a line names itself is left out of globs.
 */
static int drop_repeated(struct planner *planner)
{
	int err = 0;

	for (size_t i = 1; i < planner->cnt && !err; i++) {
		const struct probe_target *first = planner->order[i - 1], *again = planner->order[i];
		const struct probe_line *first_line = line_of(planner, first), *again_line = line_of(planner, again);

		if (!same_place(first, again) || first_line->role != again_line->role)
			continue;
		if (first->line_idx == again->line_idx || (again->by_glob && !first->by_glob)) {
			*fate_of(planner, again) = (struct fate){.why = "", .said = true};
			/* So that a third one is compared with the one that stays. */
			planner->order[i] = planner->order[i - 1];
			continue;
		}
		if (again->by_glob)
			resolver_refuse(planner->resolver, 0,
					"'%.128s' is also what '%.128s' of line %u means: "
					"a function can have a role once only",
					again->name, first_line->symbol, first_line->line_no);
		else
			resolver_refuse(planner->resolver, 0,
					"'%.128s' is the same function as '%.128s' of line %u: remove one",
					again_line->symbol, first_line->symbol, first_line->line_no);
		err = refuse_line(planner, again, -EINVAL);
	}
	return err;
}

/* What the planner must see to for this line. */
static struct plan_needs probe_line_needs(const struct probe_line *line)
{
	return (struct plan_needs){
		.exit = probe_line_needs_exit(line),
		.whole = probe_line_needs_exit(line) && line->role != PROBE_FUNCTION,
		.args = probe_line_args(line),
		.memory = line->key.kind == PROBE_EXPR_MEMORY || line->object.kind == PROBE_EXPR_MEMORY ||
			  line->task.kind == PROBE_EXPR_MEMORY || line->queue.kind == PROBE_EXPR_MEMORY ||
			  line->type.kind == PROBE_EXPR_MEMORY || line->type.is_string,
	};
}

static void needs_add(struct plan_needs *needs, const struct probe_line *line)
{
	struct plan_needs more = probe_line_needs(line);

	needs->exit |= more.exit;
	needs->whole |= more.whole;
	needs->args |= more.args;
	needs->memory |= more.memory;
}

int probe_targets_replan(struct program *program, const probe_lines *lines, struct probe_targets *targets)
{
	int err = 0;

	for (size_t i = 0; i < targets->plans.cnt && err != -ENOMEM; i++) {
		struct plan *plan = targets->plans.items[i], made;
		struct plan_needs needs = {0};

		if (plan->exit != PLAN_EXIT_URETPROBE)
			continue;
		for (size_t j = 0; j < targets->targets.cnt; j++)
			if (targets->targets.items[j].plan == plan)
				needs_add(&needs, &lines->items[targets->targets.items[j].line_idx]);
		err = plan_make(program, plan->function, &needs, &made);
		plan_free(plan);
		*plan = err ? (struct plan){.function = plan->function, .why = "it cannot be planned"} : made;
	}
	return err == -ENOMEM ? err : 0;
}

static struct plan *plan_new(struct resolver *resolver, uint32_t func, const struct plan_needs *needs, int *err)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan || vec_push(&resolver->out->plans, plan)) {
		free(plan);
		*err = -ENOMEM;
		return NULL;
	}
	*err = plan_make(resolver->program, func, needs, plan);
	return plan;
}

/* One plan for the targets order[first … end - 1], which are one function. */
static int plan_function(struct planner *planner, size_t first, size_t end)
{
	struct plan_needs needs = {0};
	struct plan *plan;
	int err;

	for (size_t i = first; i < end; i++)
		needs_add(&needs, line_of(planner, planner->order[i]));
	plan = plan_new(planner->resolver, planner->order[first]->func, &needs, &err);
	if (err)
		return err;
	for (size_t i = first; i < end; i++) {
		struct probe_target *target = planner->order[i];
		const struct probe_line *line = line_of(planner, target);
		struct fate *fate = fate_of(planner, target);

		target->func = planner->order[first]->func; /* one number, even where names of it have several */
		target->plan = plan;
		if (fate->why)
			continue;
		if (!plan->possible)
			fate->why = plan->why ? plan->why : "the planner finds no place for a probe";
		/* The entries of a function without known end can still be counted. */
		else if (probe_line_needs_exit(line) && plan->exit == PLAN_EXIT_NONE && line->role != PROBE_FUNCTION)
			fate->why = plan->exit_why ? plan->exit_why : "its end cannot be probed";
	}
	return 0;
}

static uint8_t readable_args(const struct usdt_site *site)
{
	uint8_t args = 0;

	for (unsigned i = 0; i < site->arg_cnt; i++)
		if (site->args[i].kind != USDT_ARG_UNREADABLE)
			args |= 1u << i;
	return args;
}

static int plan_marker(struct planner *planner, struct probe_target *target)
{
	uint8_t args = probe_line_args(line_of(planner, target));
	struct fate *fate = fate_of(planner, target);
	const char *why = NULL;
	int err =
		plan_site_check(planner->resolver->program, target->module, target->file_off, &target->usdt_cost, &why);

	if (err && err != -ENOTSUP)
		return err;
	if (fate->why)
		return 0;
	if (err)
		fate->why = why ? why : "no probe can be placed there";
	else if (args & ~((1u << target->usdt->arg_cnt) - 1))
		fate->why = "the marker has fewer arguments than the line asks for";
	else if (args & ~readable_args(target->usdt))
		fate->why = "an argument that the line asks for is kept where it cannot be read";
	return 0;
}

static int plan_all(struct planner *planner)
{
	int err = 0;

	for (size_t first = 0, end; first < planner->cnt && !err; first = end) {
		for (end = first + 1; end < planner->cnt && same_place(planner->order[first], planner->order[end]);)
			end++;
		if (!planner->order[first]->usdt)
			err = plan_function(planner, first, end);
		for (size_t i = first; i < end && planner->order[first]->usdt && !err; i++)
			err = plan_marker(planner, planner->order[i]);
	}
	return err;
}

/* What to say of a line of which some or all targets were dropped: first … end - 1 are its targets. */
static int complete_verdict(struct planner *planner, uint32_t line_idx, size_t first, size_t end)
{
	const struct probe_target *targets = planner->resolver->out->targets.items;
	struct probe_verdict *verdict = &planner->resolver->out->verdicts.items[line_idx];
	const struct probe_line *line = &planner->resolver->lines->items[line_idx];
	size_t dropped = 0, kept = 0;
	char names[640] = "";

	for (size_t i = first; i < end; i++) {
		const struct fate *fate = &planner->fates[i];

		kept += !fate->why;
		if (!fate->why || fate->said)
			continue;
		if (dropped++ < NAMED_MAX)
			resolver_append(names, sizeof(names), "%s'%.80s': %.110s", dropped > 1 ? "; " : "",
					targets[i].name, fate->why);
	}
	verdict->cnt = verdict->err ? 0 : kept;
	if (verdict->err || (!dropped && kept))
		return 0;
	if (dropped > NAMED_MAX)
		resolver_append(names, sizeof(names), "; and %zu more", dropped - NAMED_MAX);
	free(verdict->why);
	if (!kept && !dropped)
		verdict->err = asprintf(&verdict->why, "every function that '%.128s' matches has that role already",
					line->symbol) < 0
				       ? -ENOMEM
				       : -EINVAL;
	else if (!kept)
		verdict->err =
			asprintf(&verdict->why, "%s: %s",
				 end - first == 1 ? "it cannot be probed" : "none of them can be probed", names) < 0
				? -ENOMEM
				: -ENOTSUP;
	else if (asprintf(&verdict->why, "of %zu functions %zu cannot be probed: %s", end - first, dropped, names) < 0)
		verdict->err = -ENOMEM;
	if (verdict->err != -ENOMEM)
		return 0;
	verdict->why = NULL;
	return -ENOMEM;
}

/* Leaves only what can be probed of lines that are right. */
static int keep_the_rest(struct planner *planner)
{
	struct probe_targets *out = planner->resolver->out;
	size_t kept = 0, first = 0;
	int err = 0;

	for (uint32_t line = 0; line < planner->resolver->lines->cnt && !err; line++) {
		size_t end = first;

		while (end < out->targets.cnt && out->targets.items[end].line_idx == line)
			end++;
		if (end > first)
			err = complete_verdict(planner, line, first, end);
		for (size_t i = first; i < end && !err; i++)
			if (!planner->fates[i].why && !out->verdicts.items[line].err)
				out->targets.items[kept++] = out->targets.items[i];
		first = end;
	}
	out->targets.cnt = kept;
	return err;
}

int resolver_plan(struct resolver *resolver)
{
	struct planner planner = {.resolver = resolver, .cnt = resolver->out->targets.cnt};
	int err = 0;

	if (!planner.cnt)
		return 0;
	planner.order = calloc(planner.cnt, sizeof(*planner.order));
	planner.fates = calloc(planner.cnt, sizeof(*planner.fates));
	if (!planner.order || !planner.fates)
		err = -ENOMEM;
	for (size_t i = 0; i < planner.cnt && !err; i++)
		planner.order[i] = &resolver->out->targets.items[i];
	if (!err) {
		qsort_r(planner.order, planner.cnt, sizeof(*planner.order), target_cmp, (void *)resolver->lines);
		err = drop_repeated(&planner);
	}
	if (!err)
		err = plan_all(&planner);
	if (!err)
		err = keep_the_rest(&planner);
	free(planner.order);
	free(planner.fates);
	return err;
}
