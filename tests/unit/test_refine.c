// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/refine.h"

#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define FUNCS_MAX 64

/* A program by hand: who calls whom. */
struct scene {
	struct refine_child children[FUNCS_MAX][8];
	size_t child_cnt[FUNCS_MAX];
	int asked[FUNCS_MAX];
	int err;
	struct refine_function functions[FUNCS_MAX];
	size_t function_cnt;
	struct factor list[FUNCS_MAX];
	struct factors factors;
	struct refine_input input;
	struct refine_plan plan;
};

static int list_children(void *ctx, uint32_t func, const struct refine_child **children, size_t *cnt)
{
	struct scene *scene = ctx;

	scene->asked[func]++;
	*children = scene->children[func];
	*cnt = scene->child_cnt[func];
	return scene->err;
}

static void scene_init(struct scene *scene)
{
	static const struct factor_rule rule = FACTOR_RULE_DEFAULT;

	memset(scene, 0, sizeof(*scene));
	scene->factors.list.items = scene->list;
	scene->input = (struct refine_input){
		.factors = &scene->factors,
		.functions = scene->functions,
		.rule = rule,
		.budget_ns_per_s = 1e6,
		.alone_max = 1,
		.probes_max = 100,
		.levels = 1,
		.weight_min = 0.05,
		.only = FACTOR_NONE,
		.children = list_children,
		.ctx = scene,
	};
}

/* A callee whose probes cost 1 µs a hit. */
static void calls(struct scene *scene, uint32_t caller, uint32_t callee, double weight)
{
	scene->children[caller][scene->child_cnt[caller]++] =
		(struct refine_child){.func = callee, .cost_ns = 1000, .hits_per_s = NAN, .weight = weight};
}

static struct refine_function *probed(struct scene *scene, uint32_t func, double hits_per_s)
{
	struct refine_function *function = &scene->functions[scene->function_cnt++];

	*function = (struct refine_function){.func = func, .attached = true, .hits_per_s = hits_per_s, .cost_ns = 1000};
	scene->input.function_cnt = scene->function_cnt;
	return function;
}

/* In the order of their scores. */
static struct factor *factor(struct scene *scene, uint32_t func, double contribution)
{
	struct factor *made = &scene->list[scene->factors.list.cnt++];

	*made = (struct factor){.funcs = {func, FACTOR_NONE}, .contribution = contribution};
	if (contribution > 0.05 && scene->factors.selected_cnt < scene->input.rule.k)
		made->rank = (uint32_t)++scene->factors.selected_cnt;
	return made;
}

static void decide(struct scene *scene)
{
	CU_ASSERT_EQUAL_FATAL(refine_decide(&scene->plan, &scene->input), 0);
}

static bool attaches(const struct scene *scene, uint32_t func)
{
	size_t cnt = 0;

	for (size_t i = 0; i < scene->plan.attach.cnt; i++)
		cnt += scene->plan.attach.items[i].func == func;
	CU_ASSERT(cnt <= 1);
	return cnt;
}

static const char *detaches(const struct scene *scene, uint32_t func)
{
	for (size_t i = 0; i < scene->plan.detach.cnt; i++)
		if (scene->plan.detach.items[i].func == func)
			return scene->plan.detach.items[i].why;
	return NULL;
}

static int verdict(const struct scene *scene, uint32_t func)
{
	for (size_t i = 0; i < scene->plan.decisions.cnt; i++)
		if (scene->plan.decisions.items[i].func == func)
			return (int)scene->plan.decisions.items[i].verdict;
	return -1;
}

/* Its time can be taken out of every interval only as long as its calls are recorded. */
static void what_is_understood_stays_probed(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 1, 1000)->understood = true;
	probed(&scene, 2, 1000);
	probed(&scene, 3, 1000);
	factor(&scene, 2, 0.2);
	decide(&scene);
	CU_ASSERT_PTR_NULL(detaches(&scene, 1));
	CU_ASSERT_PTR_NOT_NULL(detaches(&scene, 3));
	refine_plan_free(&scene.plan);
	scene.plan = (struct refine_plan){0};
	scene.input.budget_ns_per_s = 1e6;
	CU_ASSERT_EQUAL_FATAL(refine_relieve(&scene.plan, &scene.input), 0);
	CU_ASSERT_EQUAL(scene.plan.detach.cnt, 2);
	CU_ASSERT_PTR_NULL(detaches(&scene, 1));
	refine_plan_free(&scene.plan);
}

/* 0 is the root; it calls 1 and 2; 1 calls 3 and 4, and 2 calls nothing. */
static void informative_functions_are_opened(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 0, 100)->root = true;
	probed(&scene, 1, 100);
	probed(&scene, 2, 100);
	scene.functions[0].opened = true;
	calls(&scene, 1, 3, NAN);
	calls(&scene, 1, 4, NAN);
	factor(&scene, 1, 0.7);
	factor(&scene, 2, 0.2);
	factor(&scene, 0, 1);
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_OPEN);
	CU_ASSERT_EQUAL(verdict(&scene, 2), REFINE_LEAF);
	CU_ASSERT_EQUAL(verdict(&scene, 0), REFINE_OPENED);
	CU_ASSERT(attaches(&scene, 3) && attaches(&scene, 4));
	CU_ASSERT_EQUAL(scene.plan.attach.items[0].parent, 1);
	CU_ASSERT_EQUAL(scene.plan.attach.cnt, 2);
	CU_ASSERT_EQUAL(scene.plan.detach.cnt, 0);
	CU_ASSERT_EQUAL(scene.plan.cost_ns_per_s, 5 * 100 * 1000.0);
	CU_ASSERT_FALSE(scene.plan.done);
	refine_plan_free(&scene.plan);
}

static void uninformative_probes_go(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 0, 100)->root = true;
	probed(&scene, 1, 0);
	probed(&scene, 2, 500);
	probed(&scene, 3, 500);
	probed(&scene, 4, 500);
	factor(&scene, 0, 0.03);
	factor(&scene, 2, 0.02);
	/* 3 and 4 vary little each, but together. */
	factor(&scene, 3, 0.02);
	factor(&scene, 4, 0.04);
	factor(&scene, 3, 0.06)->funcs[1] = 4;
	decide(&scene);
	CU_ASSERT_STRING_EQUAL(detaches(&scene, 1), "it was not called once");
	CU_ASSERT_STRING_EQUAL(detaches(&scene, 2), refine_verdict_text(REFINE_UNINFORMATIVE));
	CU_ASSERT_EQUAL(scene.plan.detach.cnt, 2);
	CU_ASSERT(scene.plan.done);
	refine_plan_free(&scene.plan);
}

/* Small leaves with high scores do not keep a large function from being opened. */
static void leaves_take_no_place(void)
{
	struct scene scene;

	scene_init(&scene);
	for (uint32_t func = 1; func <= 4; func++)
		probed(&scene, func, 10);
	calls(&scene, 4, 5, NAN);
	for (uint32_t func = 1; func <= 3; func++)
		factor(&scene, func, 0.06);
	factor(&scene, 4, 0.8);
	CU_ASSERT_EQUAL(scene.list[3].rank, 0);
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_LEAF);
	CU_ASSERT_EQUAL(verdict(&scene, 4), REFINE_OPEN);
	CU_ASSERT(attaches(&scene, 5));
	refine_plan_free(&scene.plan);
}

static void explained_waits_stay_closed(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 1, 10)->explained = true;
	calls(&scene, 1, 2, NAN);
	factor(&scene, 1, 0.9);
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_EXPLAINED);
	CU_ASSERT(scene.plan.done);
	refine_plan_free(&scene.plan);
	/* Unless somebody wants it open. */
	scene.input.only = 1;
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_OPEN);
	CU_ASSERT(attaches(&scene, 2));
	refine_plan_free(&scene.plan);
}

/* The budget has room for 2 more of these hits, and those met on stacks go first. */
static void budget_is_kept(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 1, 200)->root = true;
	calls(&scene, 1, 2, NAN);
	calls(&scene, 1, 3, 0.2);
	calls(&scene, 1, 4, 0.5);
	calls(&scene, 1, 5, NAN);
	scene.children[1][3].hits_per_s = 1;
	factor(&scene, 1, 0.9);
	scene.input.budget_ns_per_s = 3 * 200 * 1000.0 + 1000;
	decide(&scene);
	CU_ASSERT(attaches(&scene, 4) && attaches(&scene, 3) && !attaches(&scene, 2) && attaches(&scene, 5));
	CU_ASSERT(scene.plan.cost_ns_per_s <= scene.input.budget_ns_per_s);
	refine_plan_free(&scene.plan);
	scene.input.budget_ns_per_s = 200 * 1000.0;
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_BUDGET);
	CU_ASSERT_EQUAL(scene.plan.attach.cnt, 0);
	CU_ASSERT(scene.plan.done);
	refine_plan_free(&scene.plan);
	scene.input.budget_ns_per_s = 1e9;
	scene.input.probes_max = 3;
	decide(&scene);
	CU_ASSERT_EQUAL(scene.plan.attach.cnt, 2);
	refine_plan_free(&scene.plan);
	/* What cannot be probed at all makes a leaf. */
	for (size_t i = 0; i < scene.child_cnt[1]; i++)
		scene.children[1][i].cost_ns = NAN;
	decide(&scene);
	CU_ASSERT_EQUAL(verdict(&scene, 1), REFINE_LEAF);
	refine_plan_free(&scene.plan);
}

/* 1 → 2 → 1 …, 2 → 2, 3 ↔ 4: opened once each, and only as deep as told. */
static void recursion_and_levels(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 1, 10);
	calls(&scene, 1, 1, 0.9);
	calls(&scene, 1, 2, 0.9);
	calls(&scene, 1, 7, 0.01);
	calls(&scene, 2, 1, 0.9);
	calls(&scene, 2, 2, 0.9);
	calls(&scene, 2, 3, 0.4);
	calls(&scene, 2, 5, NAN); /* two levels down and never met */
	calls(&scene, 3, 4, 0.4);
	calls(&scene, 4, 3, 0.4);
	calls(&scene, 4, 6, 0.4);
	calls(&scene, 7, 8, 0.9);
	factor(&scene, 1, 0.9);
	scene.input.levels = 3;
	decide(&scene);
	CU_ASSERT(attaches(&scene, 2) && attaches(&scene, 3) && attaches(&scene, 4) && attaches(&scene, 7));
	CU_ASSERT(!attaches(&scene, 1) && !attaches(&scene, 5) && !attaches(&scene, 6) && !attaches(&scene, 8));
	CU_ASSERT_EQUAL(scene.asked[2], 1);
	refine_plan_free(&scene.plan);
	scene.input.levels = 1;
	decide(&scene);
	CU_ASSERT_EQUAL(scene.plan.attach.cnt, 2);
	refine_plan_free(&scene.plan);
	scene.err = -ESRCH;
	CU_ASSERT_EQUAL(refine_decide(&scene.plan, &scene.input), -ESRCH);
	refine_plan_free(&scene.plan);
}

static void over_the_budget_the_dearest_go(void)
{
	struct refine_plan plan = {0};
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 0, 1500)->root = true; /* dear, and worth it */
	probed(&scene, 1, 1000);
	probed(&scene, 2, 900); /* dear, and not */
	probed(&scene, 3, 10);
	probed(&scene, 4, 500)->attached = false;
	factor(&scene, 0, 1);
	factor(&scene, 1, 0.9);
	scene.input.budget_ns_per_s = 2600 * 1000.0;
	CU_ASSERT_EQUAL(refine_relieve(&plan, &scene.input), 0);
	CU_ASSERT_EQUAL_FATAL(plan.detach.cnt, 1);
	CU_ASSERT_EQUAL(plan.detach.items[0].func, 2);
	refine_plan_free(&plan);
	/* The root is no exception. */
	scene.input.budget_ns_per_s = 1020 * 1000.0;
	CU_ASSERT_EQUAL(refine_relieve(&plan, &scene.input), 0);
	CU_ASSERT_EQUAL_FATAL(plan.detach.cnt, 2);
	CU_ASSERT_EQUAL(plan.detach.items[1].func, 0);
	refine_plan_free(&plan);
	scene.input.budget_ns_per_s = 0;
	CU_ASSERT_EQUAL(refine_relieve(&plan, &scene.input), 0);
	CU_ASSERT_EQUAL(plan.detach.cnt, 4);
	refine_plan_free(&plan);
	/* Before anything is known of them, by cost alone. */
	scene.input.factors = NULL;
	scene.input.budget_ns_per_s = 2000 * 1000.0;
	CU_ASSERT_EQUAL(refine_relieve(&plan, &scene.input), 0);
	CU_ASSERT_EQUAL_FATAL(plan.detach.cnt, 1);
	CU_ASSERT_EQUAL(plan.detach.items[0].func, 0);
	refine_plan_free(&plan);
}

/* 1 calls 2, 6 and 7 one beneath the other, which are dear; 7 calls 3 and 4, which are not.  5 was dull earlier. */
static void beneath_the_dear_the_cheap_are_probed(void)
{
	struct scene scene;

	scene_init(&scene);
	probed(&scene, 1, 100);
	probed(&scene, 5, 100)->dull = true;
	scene.functions[1].attached = false;
	calls(&scene, 1, 2, 0.9);
	calls(&scene, 1, 5, 0.9);
	calls(&scene, 2, 6, 0.9);
	calls(&scene, 6, 2, 0.9);
	calls(&scene, 6, 7, 0.9);
	calls(&scene, 7, 3, 0.5);
	calls(&scene, 7, 4, 0.4);
	scene.children[1][0].cost_ns = scene.children[2][0].cost_ns = 10000;
	scene.children[6][0].cost_ns = scene.children[6][1].cost_ns = 10000;
	factor(&scene, 1, 0.9)->body[0] = true;
	scene.functions[0].opened = true;
	scene.input.levels = 2;
	scene.input.budget_ns_per_s = 2e6;
	scene.input.alone_max = 0.25;
	decide(&scene);
	CU_ASSERT(!attaches(&scene, 2) && !attaches(&scene, 6) && !attaches(&scene, 7) && !attaches(&scene, 5));
	CU_ASSERT(attaches(&scene, 3) && attaches(&scene, 4));
	CU_ASSERT_FALSE(scene.plan.done);
	refine_plan_free(&scene.plan);
}

int suite_refine(void)
{
	static const struct unit_test tests[] = {
		{"what is understood stays probed", what_is_understood_stays_probed},
		{"informative functions are opened", informative_functions_are_opened},
		{"uninformative probes go", uninformative_probes_go},
		{"leaves take no place", leaves_take_no_place},
		{"explained waits stay closed", explained_waits_stay_closed},
		{"budget is kept", budget_is_kept},
		{"recursion and levels", recursion_and_levels},
		{"beneath the dear the cheap are probed", beneath_the_dear_the_cheap_are_probed},
		{"over the budget the dearest go", over_the_budget_the_dearest_go},
	};

	return unit_suite("analysis: refinement", tests, sizeof(tests) / sizeof(tests[0]));
}
