// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every request sleeps below one of several call paths, for a time that tells which one it was: PATH_NS more with each.
 * The paths are such that little tells them apart: recursion, two functions with the same frame, a frame whose size
 * changes with each call, and a coroutine on a stack of its own.  Planted: the longest of them.
 */
#include "common.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PATH_NS      (2 * NS_PER_MS)
#define PATH_CNT     8
#define COROUTINE_SZ (64 * 1024)

static volatile uint64_t calls;

static KEPT void nap(int path)
{
	sleep_for_ns((path + 1) * PATH_NS);
	calls++;
}

static KEPT void recurse(int path, int depth)
{
	if (depth)
		recurse(path, depth - 1);
	else
		nap(path);
	calls++;
}

static KEPT void twin_one(int path)
{
	nap(path);
	calls += 1;
}

static KEPT void twin_two(int path)
{
	nap(path);
	calls += 2;
}

static KEPT void with_room(int path, size_t sz)
{
	char *room = alloca(sz);

	memset(room, path, sz);
	__asm__ volatile("" : : "r"(room) : "memory");
	nap(path);
	calls += room[0];
}

struct coroutine {
	ucontext_t context, caller;
	int path;
	char stack[COROUTINE_SZ];
};

static KEPT void in_coroutine(int path)
{
	nap(path);
	calls++;
}

static void coroutine_body(unsigned int high, unsigned int low)
{
	struct coroutine *self = (struct coroutine *)(uintptr_t)((uint64_t)high << 32 | low);

	in_coroutine(self->path);
	swapcontext(&self->context, &self->caller);
}

static KEPT void resume(int path)
{
	struct coroutine *coroutine = malloc(sizeof(*coroutine));
	uint64_t addr = (uintptr_t)coroutine;

	if (!coroutine || getcontext(&coroutine->context))
		abort();
	coroutine->path = path;
	coroutine->context.uc_stack.ss_sp = coroutine->stack;
	coroutine->context.uc_stack.ss_size = sizeof(coroutine->stack);
	makecontext(&coroutine->context, (void (*)(void))coroutine_body, 2, (unsigned int)(addr >> 32),
		    (unsigned int)addr);
	swapcontext(&coroutine->caller, &coroutine->context);
	free(coroutine);
	calls++;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts = clock_now_ns();
	int path = request->dice % PATH_CNT;

	if (path < 4)
		recurse(path, path);
	else if (path == 4)
		twin_one(path);
	else if (path == 5)
		twin_two(path);
	else if (path == 6)
		with_room(path, random_between(&worker->random_state, 1, 64) * 16);
	else
		resume(path);
	return path == PATH_CNT - 1 ? clock_now_ns() - start_ts : 0;
}

static const struct workload workload = {
	.name = "callpaths",
	.category = "sleep",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 5,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
