// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/call_times.h"

#include "base/random.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define CALLS_MAX 64

struct scene {
	struct call calls[CALLS_MAX];
	size_t call_cnt;
	call_stretches stretches;
	struct variance_tree *tree;
	struct call_times times;
};

static void scene_init(struct scene *scene)
{
	*scene = (struct scene){.tree = variance_tree__new()};
	CU_ASSERT_PTR_NOT_NULL_FATAL(scene->tree);
}

static void scene_free(struct scene *scene)
{
	vec_free(&scene->stretches);
	call_times__free(&scene->times);
	variance_tree__free(scene->tree);
}

static struct call *call(struct scene *scene, uint32_t tid, uint32_t func, uint64_t begin_ts, uint64_t end_ts)
{
	struct call *made = &scene->calls[scene->call_cnt++];

	*made = (struct call){
		.begin_ts = begin_ts, .end_ts = end_ts, .tid = tid, .func = func, .seq = (uint32_t)scene->call_cnt};
	return made;
}

static void stretch(struct scene *scene, uint64_t begin_ts, uint64_t end_ts, uint32_t tid, uint32_t behind_tid)
{
	const struct call_stretch made = {begin_ts, end_ts, tid, behind_tid};

	CU_ASSERT_EQUAL_FATAL(vec_push(&scene->stretches, made), 0);
}

static void make(struct scene *scene)
{
	calls_sort(scene->calls, scene->call_cnt);
	CU_ASSERT_EQUAL_FATAL(call_times__make(&scene->times, scene->tree, scene->calls, scene->call_cnt,
					       scene->stretches.items, scene->stretches.cnt),
			      0);
}

/* "1:100 1/2:30 …": functions along the path (another thread's after '|'), and their time. */
static void expect(const struct scene *scene, const char *expected)
{
	char text[1024] = "";

	for (size_t i = 0; i < scene->times.times.cnt; i++) {
		const struct tree_time *time = &scene->times.times.items[i];
		char path[256] = "", longer[256];
		struct tree_node node;
		uint64_t doing_ns = 0;

		for (uint32_t at = time->node; at != TREE_ROOT; at = node.parent) {
			variance_tree__node_at(scene->tree, at, &node);
			snprintf(longer, sizeof(longer), "%s%u%.200s", node.call.behind ? "|" : "/", node.call.func,
				 path);
			strcpy(path, longer);
		}
		for (int d = 0; d < TREE_DOING_CNT; d++)
			doing_ns += time->doing_ns[d];
		CU_ASSERT_EQUAL(doing_ns, time->ns);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%llu", i ? " " : "", path,
			 (unsigned long long)time->ns);
	}
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected))
		printf("%s\n", text);
}

static void calls_nest_by_their_times(void)
{
	struct scene scene;
	struct call *blocked;

	scene_init(&scene);
	/* As they come: the end of a call after those beneath it. */
	blocked = call(&scene, 7, 3, 20, 40);
	blocked->doing_ns[TREE_DISK] = 15;
	call(&scene, 7, 3, 50, 60);
	call(&scene, 7, 2, 10, 70);
	call(&scene, 7, 4, 70, 70); /* nothing */
	call(&scene, 7, 1, 0, 100);
	call(&scene, 7, 1, 100, 110);
	call(&scene, 8, 5, 0, 100); /* a thread that is not on the path */
	stretch(&scene, 0, 200, 7, 0);
	make(&scene);
	expect(&scene, "/1:110 /1/2:60 /1/2/3:30");
	CU_ASSERT_EQUAL(scene.times.times.items[0].calls, 2);
	CU_ASSERT_EQUAL(scene.times.times.items[2].doing_ns[TREE_DISK], 15);
	CU_ASSERT_EQUAL(scene.times.times.items[2].doing_ns[TREE_RUNNING], 15);
	scene_free(&scene);
}

/* Calls that were there before, or go on after; and one that outlasts its caller. */
static void only_what_is_on_the_path_counts(void)
{
	struct scene scene;

	scene_init(&scene);
	call(&scene, 7, 1, 0, 100)->doing_ns[TREE_RUNNABLE] = 40;
	call(&scene, 7, 2, 10, 20);
	call(&scene, 7, 2, 90, 130);
	stretch(&scene, 15, 40, 7, 0);
	stretch(&scene, 40, 60, 9, 0);
	stretch(&scene, 60, 95, 7, 0);
	make(&scene);
	expect(&scene, "/1:60 /1/2:10");
	CU_ASSERT_EQUAL(scene.times.times.items[0].doing_ns[TREE_RUNNABLE], 24);
	/* The next interval knows nothing of it. */
	scene.call_cnt = 0;
	call(&scene, 9, 2, 45, 50);
	make(&scene);
	expect(&scene, "/2:5");
	scene_free(&scene);
}

/* 1 calls lock(), which waits for what thread 8 does: 5, in which 6, and nothing known at last. */
static void what_others_do_meanwhile_is_behind_the_wait(void)
{
	struct tree_interval interval = {.weight = 1, .latency_ns = 100};
	struct scene scene;

	scene_init(&scene);
	call(&scene, 7, 1, 0, 90);
	call(&scene, 7, 2, 20, 80);
	call(&scene, 8, 5, 10, 70);
	call(&scene, 8, 6, 40, 60);
	call(&scene, 8, 6, 85, 95);
	stretch(&scene, 0, 25, 7, 0);
	stretch(&scene, 25, 75, 7, 8);
	stretch(&scene, 75, 100, 7, 0);
	make(&scene);
	expect(&scene, "/1:90 /1/2:60 /1/2|5:45 /1/2|5/6:20");
	CU_ASSERT_EQUAL(variance_tree__add(scene.tree, &interval, scene.times.times.items, scene.times.times.cnt), 0);
	scene_free(&scene);
}

static void stretches_follow_the_newest_call(void)
{
	static const struct call_stretch expected[] = {{5, 30, 7, 0},  {30, 50, 8, 0}, {50, 60, 7, 0},
						       {60, 70, 8, 0}, {70, 90, 9, 0}, {90, 100, 8, 0}};
	struct scene scene;

	scene_init(&scene);
	call(&scene, 7, 1, 0, 60); /* hands over at 30, waits for 8 */
	call(&scene, 7, 2, 10, 55);
	call(&scene, 8, 3, 30, 50);
	call(&scene, 9, 4, 70, 90);
	calls_sort(scene.calls, scene.call_cnt);
	CU_ASSERT_EQUAL(call_stretches_make(&scene.stretches, scene.calls, scene.call_cnt, 5, 100, 7, 8), 0);
	CU_ASSERT_EQUAL_FATAL(scene.stretches.cnt, 6);
	CU_ASSERT_EQUAL(memcmp(scene.stretches.items, expected, sizeof(expected)), 0);
	/* One thread: one stretch. */
	scene.stretches.cnt = 0;
	CU_ASSERT_EQUAL(call_stretches_make(&scene.stretches, scene.calls, 2, 5, 100, 7, 7), 0);
	CU_ASSERT_EQUAL(scene.stretches.cnt, 1);
	/* Nothing known: it is where it was picked up. */
	scene.stretches.cnt = 0;
	CU_ASSERT_EQUAL(call_stretches_make(&scene.stretches, scene.calls, 0, 5, 100, 7, 9), 0);
	CU_ASSERT_EQUAL_FATAL(scene.stretches.cnt, 1);
	CU_ASSERT_EQUAL(scene.stretches.items[0].tid, 7);
	scene_free(&scene);
}

/* Whatever the calls are, the tree takes what comes out: parts never exceed the whole. */
static void any_calls_make_a_partition(void)
{
	uint64_t state = 11;

	for (int round = 0; round < 3000; round++) {
		struct tree_interval interval = {.weight = 1, .latency_ns = 1000};
		uint64_t stretch_cnt = 1 + random_next(&state) % 6, at = 0, first;
		struct scene scene;

		scene_init(&scene);
		for (uint64_t i = random_next(&state) % CALLS_MAX; i; i--) {
			uint64_t begin_ts = random_next(&state) % 1000;
			struct call *made = call(&scene, (uint32_t)(1 + random_next(&state) % 3),
						 (uint32_t)(random_next(&state) % 4), begin_ts,
						 begin_ts + random_next(&state) % 500);

			made->doing_ns[TREE_NET] = random_next(&state) % 600;
			made->call_addr = random_next(&state) % 2;
		}
		interval.queue_ns = first = random_next(&state) % 300;
		for (at = first; stretch_cnt && at < 1000; stretch_cnt--) {
			uint64_t end_ts = stretch_cnt == 1 ? 1000 : at + random_next(&state) % (1001 - at);

			stretch(&scene, at, end_ts, (uint32_t)(1 + random_next(&state) % 2),
				random_next(&state) % 3 ? 0 : 3);
			at = end_ts;
		}
		make(&scene);
		CU_ASSERT_EQUAL(
			variance_tree__add(scene.tree, &interval, scene.times.times.items, scene.times.times.cnt), 0);
		scene.stretches.cnt = 0;
		CU_ASSERT_EQUAL(call_stretches_make(&scene.stretches, scene.calls, scene.call_cnt, first, 1000, 1, 2),
				0);
		at = first;
		for (size_t s = 0; s < scene.stretches.cnt; s++) {
			CU_ASSERT_EQUAL(scene.stretches.items[s].begin_ts, at);
			CU_ASSERT(scene.stretches.items[s].end_ts > at);
			at = scene.stretches.items[s].end_ts;
		}
		CU_ASSERT_EQUAL(at, 1000);
		make(&scene);
		CU_ASSERT_EQUAL(
			variance_tree__add(scene.tree, &interval, scene.times.times.items, scene.times.times.cnt), 0);
		scene_free(&scene);
	}
}

int suite_call_times(void)
{
	static const struct unit_test tests[] = {
		{"calls nest by their times", calls_nest_by_their_times},
		{"only what is on the path counts", only_what_is_on_the_path_counts},
		{"what others do meanwhile is behind the wait", what_others_do_meanwhile_is_behind_the_wait},
		{"stretches follow the newest call", stretches_follow_the_newest_call},
		{"any calls make a partition", any_calls_make_a_partition},
	};

	return unit_suite("analysis: times of calls", tests, sizeof(tests) / sizeof(tests[0]));
}
