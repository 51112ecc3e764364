/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coroutines that switch stacks in the midst of chains of functions, so that calls of one stack end between the calls
 * of another, and in no order; in the second half of each round another thread goes on with them.
 */
#include "safety.h"

#include <pthread.h>
#include <ucontext.h>

enum { COROUTINE_CNT = 8, STACK_SZ = 256 * 1024, DEPTH = 6, SWITCH_CNT = 200 };

struct coroutine {
	ucontext_t context;
	ucontext_t *caller;
	char *stack;
	uint64_t x, result;
	bool done;
};

struct round {
	struct coroutine coroutines[COROUTINE_CNT];
	uint64_t order;
};

/* A thread-local would be looked up once, by the thread that began the function. */
KEPT static void give_way(struct coroutine *self)
{
	swapcontext(&self->context, self->caller);
}

KEPT static uint64_t work(struct coroutine *self, uint64_t x, int depth)
{
	uint64_t sum;

	give_way(self);
	if (!depth)
		return safety_mix(x);
	sum = work(self, x + 1, depth - 1);
	give_way(self);
	return sum + work(self, x + 2, depth / 2 ? depth / 2 - 1 : 0);
}

static uint64_t expected(uint64_t x, int depth)
{
	return depth ? expected(x + 1, depth - 1) + expected(x + 2, depth / 2 ? depth / 2 - 1 : 0) : safety_mix(x);
}

static void coroutine_body(unsigned int high, unsigned int low)
{
	struct coroutine *self = (struct coroutine *)(uintptr_t)((uint64_t)high << 32 | low);

	self->result = work(self, self->x, DEPTH);
	self->done = true;
	give_way(self);
}

KEPT static void resume(struct coroutine *coroutine)
{
	ucontext_t here;

	coroutine->caller = &here;
	swapcontext(&here, &coroutine->context);
}

/* Up to so many turns, in an order of chance; false when all are done. */
KEPT static bool turns(struct round *round, unsigned int cnt)
{
	while (cnt--) {
		struct coroutine *coroutine;
		unsigned int done_cnt = 0;

		round->order = safety_mix(round->order + 1);
		coroutine = &round->coroutines[round->order % COROUTINE_CNT];
		while (coroutine->done && done_cnt++ < COROUTINE_CNT)
			coroutine =
				coroutine == &round->coroutines[COROUTINE_CNT - 1] ? round->coroutines : coroutine + 1;
		if (coroutine->done)
			return false;
		resume(coroutine);
	}
	return true;
}

static void *other_thread(void *arg)
{
	struct round *round = arg;

	while (turns(round, SWITCH_CNT))
		;
	return NULL;
}

static void prepare(struct coroutine *coroutine, uint64_t x)
{
	uint64_t self = (uintptr_t)coroutine;

	coroutine->x = x;
	coroutine->done = false;
	coroutine->result = 0;
	getcontext(&coroutine->context);
	coroutine->context.uc_stack.ss_sp = coroutine->stack;
	coroutine->context.uc_stack.ss_size = STACK_SZ;
	coroutine->context.uc_link = NULL;
	makecontext(&coroutine->context, (void (*)(void))coroutine_body, 2, (unsigned int)(self >> 32),
		    (unsigned int)self);
}

KEPT static void one_round(struct round *round, uint64_t x)
{
	pthread_t other;

	round->order = x;
	for (int i = 0; i < COROUTINE_CNT; i++)
		prepare(&round->coroutines[i], x + (uint64_t)i);
	turns(round, SWITCH_CNT / 2);
	if (x % 2) {
		if (safety_check(!pthread_create(&other, NULL, other_thread, round), "a thread"))
			pthread_join(other, NULL);
	} else {
		other_thread(round);
	}
	for (int i = 0; i < COROUTINE_CNT; i++)
		safety_check(round->coroutines[i].done &&
				     round->coroutines[i].result == expected(x + (uint64_t)i, DEPTH),
			     "the result of coroutine %d", i);
}

int main(int argc, char **argv)
{
	static struct round round;

	for (int i = 0; i < COROUTINE_CNT; i++) {
		round.coroutines[i].stack = malloc(STACK_SZ);
		if (!round.coroutines[i].stack)
			return 1;
	}
	safety_begin(argc, argv);
	for (uint64_t i = 0; safety_goes_on(); i++) {
		one_round(&round, safety_mix(i) >> 8);
		safety_sleep_us(1000);
	}
	for (int i = 0; i < COROUTINE_CNT; i++)
		free(round.coroutines[i].stack);
	return safety_verdict();
}
