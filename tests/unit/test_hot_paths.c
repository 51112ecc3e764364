// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/hot_paths.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define SHARED 0.9
#define LEAST  0.01

/* A stack as people write it, outermost first; each letter is a function, its call's address follows from the two. */
static void add_of(struct hot_paths *paths, uint32_t thread, const char *stack, double ns, bool running, bool complete)
{
	struct hot_frame frames[128] = {0};
	struct hot_sample sample = {.thread = thread,
				    .frames = frames,
				    .frame_cnt = strlen(stack),
				    .complete = complete,
				    .running = running,
				    .ns = ns};

	for (size_t i = 0; i < sample.frame_cnt; i++) {
		struct hot_frame *frame = &frames[sample.frame_cnt - 1 - i];

		frame->function = stack[i] == '?' ? HOT_PATHS_NONE : (uint32_t)stack[i];
		frame->call_addr = stack[i + 1] ? (uint64_t)stack[i] << 8 | (uint64_t)stack[i + 1] : 0;
	}
	CU_ASSERT_EQUAL_FATAL(hot_paths__add(paths, &sample), 0);
}

static void add(struct hot_paths *paths, uint32_t thread, const char *stack, double ns)
{
	add_of(paths, thread, stack, ns, true, true);
}

/* The functions of the roots, heaviest first. */
static void roots_must_be(const struct hot_paths *paths, const char *functions)
{
	struct hot_root *roots;
	char found[64] = "";
	size_t cnt;

	CU_ASSERT_EQUAL_FATAL(hot_paths__roots(paths, SHARED, LEAST, &roots, &cnt), 0);
	CU_ASSERT_FATAL(cnt < sizeof(found));
	for (size_t i = 0; i < cnt; i++)
		found[i] = (char)roots[i].function;
	CU_ASSERT_STRING_EQUAL(found, functions);
	free(roots);
}

static void below_an_event_loop_the_roots_begin(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_root *roots;
	size_t cnt;

	/* start, main, loop; then read, write, and rarely a timer */
	for (int i = 0; i < 100; i++) {
		add(paths, 1, i % 2 ? "smlRp" : "smlRq", 3);
		add(paths, 1, "smlW", 2);
	}
	add(paths, 1, "smlT", 1);
	roots_must_be(paths, "RW");
	CU_ASSERT_EQUAL_FATAL(hot_paths__roots(paths, SHARED, 0, &roots, &cnt), 0);
	CU_ASSERT_EQUAL_FATAL(cnt, 3);
	CU_ASSERT_EQUAL(roots[0].parent, 'l');
	CU_ASSERT_EQUAL(roots[0].call_addr, 'l' << 8 | 'R');
	CU_ASSERT_DOUBLE_EQUAL(roots[0].running_ns, 300, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(roots[0].share, 300.0 / 501, 1e-9);
	CU_ASSERT_EQUAL(roots[2].function, 'T');
	free(roots);
	CU_ASSERT_EQUAL(hot_paths__sample_cnt(paths), 201);
	hot_paths__free(paths);
}

static void kinds_of_threads_have_roots_of_their_own(void)
{
	struct hot_paths *paths = hot_paths__new();

	/* A listener's main thread, and workers that begin elsewhere; two kinds of these. */
	for (int i = 0; i < 50; i++) {
		add(paths, 1, i % 2 ? "smaA" : "smaB", 1);
		for (uint32_t tid = 2; tid < 5; tid++)
			add(paths, tid, i % 3 ? "cwxX" : "cwxY", 1);
		for (uint32_t tid = 5; tid < 8; tid++)
			add(paths, tid, i % 4 ? "cwyU" : "cwyV", 1);
	}
	/* w calls x in some threads and y in others, and never both in one: x and y are no requests. */
	roots_must_be(paths, "UXYVAB");
	hot_paths__free(paths);
}

static void what_one_thread_does_by_turns_is_a_request(void)
{
	struct hot_paths *paths = hot_paths__new();

	for (int i = 0; i < 60; i++)
		for (uint32_t tid = 2; tid < 5; tid++)
			add(paths, tid, (i + (int)tid) % 2 ? "cwxX" : "cwyY", 1);
	roots_must_be(paths, "xy");
	hot_paths__free(paths);
}

static void a_single_path_has_its_end_as_root(void)
{
	struct hot_paths *paths = hot_paths__new();

	roots_must_be(paths, "");
	add(paths, 1, "smlR", 1);
	roots_must_be(paths, "R");
	hot_paths__free(paths);
}

static void incomplete_stacks_tell_of_functions_only(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_function weights;

	add_of(paths, 1, "Rp", 7, false, false);
	roots_must_be(paths, "");
	CU_ASSERT_FATAL(hot_paths__function(paths, 'p', &weights));
	CU_ASSERT_DOUBLE_EQUAL(weights.blocked_ns, 7, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weights.self_blocked_ns, 7, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(weights.running_ns, 0, 1e-9);
	CU_ASSERT_FATAL(hot_paths__function(paths, 'R', &weights));
	CU_ASSERT_DOUBLE_EQUAL(weights.self_blocked_ns, 0, 1e-9);
	CU_ASSERT(!hot_paths__function(paths, 's', &weights));
	CU_ASSERT(!hot_paths__function(paths, HOT_PATHS_NONE, &weights));
	hot_paths__free(paths);
}

static void recursion_counts_once(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_function weights;
	struct hot_edge *edges;
	size_t cnt;

	add(paths, 1, "smfgfgf", 5);
	CU_ASSERT_FATAL(hot_paths__function(paths, 'f', &weights));
	CU_ASSERT_DOUBLE_EQUAL(weights.running_ns, 5, 1e-9);
	CU_ASSERT_EQUAL(weights.sample_cnt, 1);
	CU_ASSERT_EQUAL_FATAL(hot_paths__edges(paths, 'f', &edges, &cnt), 0);
	CU_ASSERT_EQUAL_FATAL(cnt, 1);
	CU_ASSERT_EQUAL(edges[0].sample_cnt, 1);
	CU_ASSERT_DOUBLE_EQUAL(edges[0].running_ns, 5, 1e-9);
	free(edges);
	hot_paths__free(paths);
}

static void edges_are_told_by_call_and_children_are_not(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_frame frames[2] = {{.function = 2}, {.function = 1, .call_addr = 100}};
	struct hot_sample sample = {.frames = frames, .frame_cnt = 2, .running = true, .ns = 10};
	struct hot_edge *edges;
	size_t cnt;

	hot_paths__add(paths, &sample);
	frames[1].call_addr = 200;
	sample.ns = 30;
	hot_paths__add(paths, &sample);
	frames[0].function = 3;
	sample.running = false;
	sample.ns = 35;
	hot_paths__add(paths, &sample);
	/* Neither a guess, nor a frame whose call is not known, nor one whose function is not makes an edge. */
	frames[1].guessed = true;
	hot_paths__add(paths, &sample);
	frames[1] = (struct hot_frame){.function = 1};
	hot_paths__add(paths, &sample);
	frames[1] = (struct hot_frame){.function = HOT_PATHS_NONE, .call_addr = 300};
	hot_paths__add(paths, &sample);

	CU_ASSERT_EQUAL_FATAL(hot_paths__edges(paths, HOT_PATHS_NONE, &edges, &cnt), 0);
	CU_ASSERT_EQUAL_FATAL(cnt, 3);
	CU_ASSERT(edges[0].callee == 3 && edges[0].blocked_ns == 35 && edges[0].call_addr == 200);
	CU_ASSERT(edges[1].callee == 2 && edges[1].running_ns == 30 && edges[1].call_addr == 200);
	CU_ASSERT(edges[2].callee == 2 && edges[2].running_ns == 10 && edges[2].call_addr == 100);
	free(edges);
	CU_ASSERT_EQUAL_FATAL(hot_paths__children(paths, 1, &edges, &cnt), 0);
	CU_ASSERT_EQUAL_FATAL(cnt, 2);
	/* Together the two calls weigh more than the other callee. */
	CU_ASSERT(edges[0].callee == 2 && edges[0].running_ns == 40 && edges[0].call_addr == 200);
	CU_ASSERT_EQUAL(edges[0].sample_cnt, 2);
	CU_ASSERT_EQUAL(edges[1].callee, 3);
	free(edges);
	CU_ASSERT_EQUAL_FATAL(hot_paths__children(paths, 9, &edges, &cnt), 0);
	CU_ASSERT_EQUAL(cnt, 0);
	free(edges);
	hot_paths__free(paths);
}

static void functions_come_by_weight(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_function *functions;
	double self_ns = 0;
	size_t cnt;

	add(paths, 1, "sab", 1);
	add(paths, 1, "sac", 2);
	add_of(paths, 2, "sd?", 4, false, true);
	CU_ASSERT_EQUAL_FATAL(hot_paths__functions(paths, &functions, &cnt), 0);
	CU_ASSERT_EQUAL_FATAL(cnt, 5);
	CU_ASSERT_EQUAL(functions[0].function, 's');
	CU_ASSERT_DOUBLE_EQUAL(functions[0].running_ns + functions[0].blocked_ns, 7, 1e-9);
	for (size_t i = 0; i < cnt; i++)
		self_ns += functions[i].self_running_ns + functions[i].self_blocked_ns;
	/* What ran in no function that is known is nobody's own. */
	CU_ASSERT_DOUBLE_EQUAL(self_ns, 3, 1e-9);
	free(functions);
	hot_paths__free(paths);
}

/* Weights of children never exceed those of their parent, for any stacks. */
static void weights_add_up_for_any_stacks(void)
{
	struct hot_paths *paths = hot_paths__new();
	struct hot_function parent;
	struct hot_edge *edges;
	double total = 0;
	size_t cnt;

	srand(3);
	for (int i = 0; i < 5000; i++) {
		size_t len = 1 + (size_t)rand() % 30;
		double ns = rand() % 1000;
		char stack[32] = "s";

		for (size_t j = 1; j < len; j++)
			stack[j] = (char)('a' + rand() % 6);
		stack[len] = '\0';
		add_of(paths, (uint32_t)rand() % 20, stack, ns, rand() % 2, rand() % 4);
		total += ns;
	}
	for (uint32_t function = 'a'; function < 'g'; function++) {
		CU_ASSERT_FATAL(hot_paths__function(paths, function, &parent));
		CU_ASSERT(parent.running_ns + parent.blocked_ns <= total);
		CU_ASSERT(parent.self_running_ns <= parent.running_ns && parent.self_blocked_ns <= parent.blocked_ns);
		CU_ASSERT_EQUAL_FATAL(hot_paths__children(paths, function, &edges, &cnt), 0);
		CU_ASSERT_EQUAL(cnt, 6);
		for (size_t i = 0; i < cnt; i++) {
			CU_ASSERT(edges[i].running_ns <= parent.running_ns);
			CU_ASSERT(edges[i].blocked_ns <= parent.blocked_ns);
			CU_ASSERT(edges[i].sample_cnt <= parent.sample_cnt);
		}
		free(edges);
	}
	CU_ASSERT_FATAL(hot_paths__function(paths, 's', &parent));
	CU_ASSERT_DOUBLE_EQUAL(parent.running_ns + parent.blocked_ns, total, 1e-6 * total);
	hot_paths__free(paths);
}

int suite_hot_paths(void)
{
	static const struct unit_test tests[] = {
		{"below an event loop the roots begin", below_an_event_loop_the_roots_begin},
		{"kinds of threads have roots of their own", kinds_of_threads_have_roots_of_their_own},
		{"what one thread does by turns is a request", what_one_thread_does_by_turns_is_a_request},
		{"a single path has its end as root", a_single_path_has_its_end_as_root},
		{"incomplete stacks tell of functions only", incomplete_stacks_tell_of_functions_only},
		{"recursion counts once", recursion_counts_once},
		{"edges are told by call and children are not", edges_are_told_by_call_and_children_are_not},
		{"functions come by weight", functions_come_by_weight},
		{"weights add up for any stacks", weights_add_up_for_any_stacks},
	};

	return unit_suite("hot_paths", tests, sizeof(tests) / sizeof(tests[0]));
}
