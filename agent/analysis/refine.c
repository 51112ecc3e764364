// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/refine.h"

#include "base/idmap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What is to be looked into: a function that is opened, or a callee of one some levels down. */
struct opening {
	uint32_t func;
	uint32_t level;
	double hits_per_s;
};

struct refinement {
	struct refine_plan *plan;
	const struct refine_input *input;
	struct idmap known;                /* function → index into input->functions */
	struct idmap wanted;               /* function → to be attached */
	VEC(struct refine_child) children; /* of the function that is looked into, heaviest first */
	VEC(struct opening) openings;
	double *contribution; /* by index into input->functions: of its variance, or of a pair's covariance */
	uint32_t attached_cnt;
};

const char *refine_verdict_text(enum refine_verdict verdict)
{
	static const char *const texts[REFINE_VERDICT_CNT] = {
		[REFINE_OPEN] = "its callees are probed next",
		[REFINE_LEAF] = "it calls nothing that can be probed",
		[REFINE_EXPLAINED] = "a wait whose object and culprit are known",
		[REFINE_UNINFORMATIVE] = "it contributes too little",
		[REFINE_OPENED] = "its callees are probed: this is what they leave",
		[REFINE_BUDGET] = "probing its callees would cost more than the budget",
	};

	return verdict < REFINE_VERDICT_CNT ? texts[verdict] : "";
}

static const struct refine_function *function_of(const struct refinement *refinement, uint32_t func)
{
	uint32_t at;

	return idmap__find(&refinement->known, func, 0, &at) ? &refinement->input->functions[at] : NULL;
}

static double function_cost(const struct refine_function *function)
{
	return function->attached ? function->hits_per_s * function->cost_ns : 0;
}

static void note_contribution(struct refinement *refinement, uint32_t func, double contribution)
{
	uint32_t at;

	if (func != FACTOR_NONE && idmap__find(&refinement->known, func, 0, &at))
		refinement->contribution[at] = fmax(refinement->contribution[at], contribution);
}

static int refinement__init(struct refinement *refinement)
{
	const struct refine_input *input = refinement->input;
	uint32_t at;

	refinement->contribution = calloc(input->function_cnt + 1, sizeof(*refinement->contribution));
	if (!refinement->contribution)
		return -ENOMEM;
	for (size_t i = 0; i < input->function_cnt; i++) {
		if (idmap__id(&refinement->known, input->functions[i].func, 0, &at))
			return -ENOMEM;
		refinement->attached_cnt += input->functions[i].attached;
		refinement->contribution[at] = input->functions[i].understood;
		refinement->plan->cost_ns_per_s += function_cost(&input->functions[i]);
	}
	for (size_t f = 0; input->factors && f < input->factors->list.cnt; f++) {
		const struct factor *factor = &input->factors->list.items[f];

		note_contribution(refinement, factor->funcs[0], factor->contribution);
		note_contribution(refinement, factor->funcs[1], factor->contribution);
	}
	return 0;
}

static void refinement__free(struct refinement *refinement)
{
	idmap__free(&refinement->known);
	idmap__free(&refinement->wanted);
	vec_free(&refinement->children);
	vec_free(&refinement->openings);
	free(refinement->contribution);
}

static int detach(struct refinement *refinement, const struct refine_function *function, const char *why)
{
	refinement->plan->cost_ns_per_s -= function_cost(function);
	refinement->attached_cnt--;
	return vec_push(&refinement->plan->detach, ((struct refine_detach){.func = function->func, .why = why}));
}

static int detach_uninformative(struct refinement *refinement)
{
	const struct refine_input *input = refinement->input;
	int err = 0;

	for (size_t i = 0; i < input->function_cnt && !err; i++) {
		const struct refine_function *function = &input->functions[i];

		if (!function->attached || function->root || function->understood ||
		    refinement->contribution[i] > input->rule.d)
			continue;
		err = detach(refinement, function,
			     function->hits_per_s > 0 ? refine_verdict_text(REFINE_UNINFORMATIVE)
						      : "it was not called once");
	}
	return err;
}

/* Those met on stacks most first; in the order in which they came where nothing is known of them. */
static int compare_children(const void *left, const void *right)
{
	const struct refine_child *a = left, *b = right;
	double of_a = isnan(a->weight) ? 0 : a->weight, of_b = isnan(b->weight) ? 0 : b->weight;

	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	return (a->func > b->func) - (a->func < b->func);
}

static int list_children(struct refinement *refinement, uint32_t func)
{
	const struct refine_child *children;
	size_t cnt = 0;
	int err = refinement->input->children(refinement->input->ctx, func, &children, &cnt);

	refinement->children.cnt = 0;
	if (err)
		return err;
	if (vec_reserve(&refinement->children, cnt))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		if (children[i].func != func && !isnan(children[i].cost_ns))
			refinement->children.items[refinement->children.cnt++] = children[i];
	vec_sort(&refinement->children, compare_children);
	return 0;
}

struct outcome {
	size_t probed, added, refused;
};

static bool fits(const struct refinement *refinement, double cost_ns_per_s)
{
	const struct refine_input *input = refinement->input;

	return refinement->attached_cnt < input->probes_max &&
	       refinement->plan->cost_ns_per_s + cost_ns_per_s <= input->budget_ns_per_s &&
	       cost_ns_per_s <= input->alone_max * input->budget_ns_per_s;
}

static int attach(struct refinement *refinement, const struct refine_child *child, uint32_t parent,
		  double cost_ns_per_s)
{
	uint32_t id;

	if (idmap__id(&refinement->wanted, child->func, 0, &id))
		return -ENOMEM;
	refinement->plan->cost_ns_per_s += cost_ns_per_s;
	refinement->attached_cnt++;
	return vec_push(&refinement->plan->attach, ((struct refine_attach){child->func, parent}));
}

static int open_below(struct refinement *refinement, const struct opening *below)
{
	for (size_t i = 0; i < refinement->openings.cnt; i++)
		if (refinement->openings.items[i].func == below->func)
			return 0;
	return vec_push(&refinement->openings, *below);
}

/*
 * One level: the callees that are not probed yet, as far as the budget goes; first those that stacks say something of,
 * of all functions, so that the others take only what is left.
 */
static int attach_children(struct refinement *refinement, const struct opening *opening, bool hot,
			   struct outcome *outcome)
{
	const struct refine_input *input = refinement->input;
	int err = list_children(refinement, opening->func);

	for (size_t i = 0; i < refinement->children.cnt && !err; i++) {
		const struct refine_child *child = &refinement->children.items[i];
		const struct refine_function *known = function_of(refinement, child->func);
		double hits_per_s = isnan(child->hits_per_s) ? opening->hits_per_s : child->hits_per_s;
		struct opening below = {child->func, opening->level + 1, hits_per_s};
		bool is_new, refused = false;
		uint32_t id;

		if ((opening->level > 1 || hot) && !(child->weight >= input->weight_min))
			continue;
		if (known && known->dull)
			continue;
		is_new = !idmap__find(&refinement->wanted, child->func, 0, &id);
		if (is_new && !(known && known->attached)) {
			refused = !fits(refinement, hits_per_s * child->cost_ns);
			outcome->refused += refused;
			outcome->added += !refused;
			if (!refused && attach(refinement, child, opening->func, hits_per_s * child->cost_ns))
				return -ENOMEM;
		} else {
			outcome->probed++;
		}
		/* Further down only where it was met, of the others there are too many.  What is too dear is no level.
		 */
		below.level -= refused && opening->level > 1;
		if (is_new && below.level <= input->levels && child->weight >= input->weight_min)
			err = open_below(refinement, &below);
	}
	return err;
}

static int open_function(struct refinement *refinement, const struct refine_function *function, bool hot,
			 enum refine_verdict *verdict)
{
	struct opening first = {function->func, 1, function->hits_per_s};
	struct outcome outcome = {0};
	size_t next = 0;
	int err;

	refinement->openings.cnt = 0;
	err = vec_push(&refinement->openings, first);
	while (!err && next < refinement->openings.cnt) {
		struct opening opening = refinement->openings.items[next++];

		err = attach_children(refinement, &opening, hot, &outcome);
	}
	*verdict = outcome.added                        ? REFINE_OPEN
		   : outcome.refused                    ? REFINE_BUDGET
		   : outcome.probed || function->opened ? REFINE_OPENED
							: REFINE_LEAF;
	return err;
}

static int judge(struct refinement *refinement, const struct factor *factor, bool hot, enum refine_verdict *verdict)
{
	const struct refine_function *function = function_of(refinement, factor->funcs[0]);
	bool named = refinement->input->only != FACTOR_NONE;

	*verdict = REFINE_UNINFORMATIVE;
	if (!function || (!named && !(factor->contribution > refinement->input->rule.d)))
		return 0;
	/* What its callees leave is a reason to probe more of them; what they do not leave is theirs. */
	if (function->opened && !factor->body[0]) {
		*verdict = REFINE_OPENED;
		return 0;
	}
	if (function->explained && !named) {
		*verdict = REFINE_EXPLAINED;
		return 0;
	}
	return open_function(refinement, function, hot, verdict);
}

/*
 * By score, as selected; but those about which nothing is left to do take up no place, or else a few small leaves would
 * keep what is large and not yet opened from being so.
 */
static int decide_all(struct refinement *refinement, bool hot)
{
	const struct refine_input *input = refinement->input;
	struct refine_plan *plan = refinement->plan;
	uint32_t opened = 0;
	int err = 0;

	for (size_t f = 0; input->factors && f < input->factors->list.cnt && !err; f++) {
		const struct factor *factor = &input->factors->list.items[f];
		struct refine_decision decision = {factor->funcs[0], factor->contribution, REFINE_UNINFORMATIVE};

		/* Only variances can be broken down further. */
		if (factor->funcs[1] != FACTOR_NONE || (input->only != FACTOR_NONE && factor->funcs[0] != input->only))
			continue;
		if (opened >= input->rule.k && !factor->rank)
			continue;
		err = judge(refinement, factor, hot, &decision.verdict);
		opened += decision.verdict == REFINE_OPEN;
		if (!err && !hot &&
		    (factor->rank || decision.verdict == REFINE_OPEN || decision.verdict == REFINE_BUDGET))
			err = vec_push(&plan->decisions, decision);
	}
	return err;
}

static bool is_opened_by(const struct refine_plan *plan, uint32_t func)
{
	for (size_t i = 0; i < plan->attach.cnt; i++)
		if (plan->attach.items[i].parent == func)
			return true;
	return false;
}

int refine_decide(struct refine_plan *plan, const struct refine_input *input)
{
	struct refinement refinement = {.plan = plan, .input = input};
	int err;

	*plan = (struct refine_plan){.done = true};
	err = refinement__init(&refinement);
	if (!err)
		err = detach_uninformative(&refinement);
	if (!err)
		err = decide_all(&refinement, true);
	if (!err)
		err = decide_all(&refinement, false);
	plan->done = !plan->attach.cnt;
	for (size_t i = 0; i < plan->decisions.cnt; i++)
		if (plan->decisions.items[i].verdict == REFINE_OPENED &&
		    is_opened_by(plan, plan->decisions.items[i].func))
			plan->decisions.items[i].verdict = REFINE_OPEN;
	refinement__free(&refinement);
	return err;
}

void refine_plan_free(struct refine_plan *plan)
{
	vec_free(&plan->decisions);
	vec_free(&plan->attach);
	vec_free(&plan->detach);
}

/* The attached function that is to go first; NULL: there is none. */
static const struct refine_function *dearest(const struct refinement *refinement, const bool *gone, size_t *at)
{
	const struct refine_input *input = refinement->input;
	const struct refine_function *worst = NULL;
	double worst_ratio = 0;

	for (size_t i = 0; i < input->function_cnt; i++) {
		const struct refine_function *function = &input->functions[i];
		/* What contributes nothing is measured against the threshold's half: no cost at all is no reason. */
		double floor = input->rule.d > 0 ? input->rule.d / 2 : 0.01;
		double worth = fmax(refinement->contribution[i], isnan(function->weight) ? 0 : function->weight);
		double ratio = function_cost(function) / fmax(worth, floor);

		if (!function->attached || gone[i] || !(ratio > 0))
			continue;
		if (worst && ratio <= worst_ratio)
			continue;
		worst = function;
		worst_ratio = ratio;
		*at = i;
	}
	return worst;
}

int refine_relieve(struct refine_plan *plan, const struct refine_input *input)
{
	struct refinement refinement = {.plan = plan, .input = input};
	bool *gone = calloc(input->function_cnt + 1, sizeof(*gone));
	int err = gone ? 0 : -ENOMEM;
	size_t at = 0;

	plan->cost_ns_per_s = 0;
	if (!err)
		err = refinement__init(&refinement);
	while (!err && plan->cost_ns_per_s > input->budget_ns_per_s) {
		const struct refine_function *function = dearest(&refinement, gone, &at);

		if (!function)
			break;
		gone[at] = true;
		err = detach(&refinement, function, "its probes cost too much of the budget for what they tell");
	}
	refinement__free(&refinement);
	free(gone);
	return err;
}
