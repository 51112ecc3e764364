/* SPDX-License-Identifier: GPL-2.0-or-later */
/* longjmp out of chains of functions, from the bottom and half way up, in two threads. */
#include "safety.h"

#include <pthread.h>
#include <setjmp.h>

struct chain {
	jmp_buf home;
	uint64_t x;
	int leave_at; /* the depth from which it jumps; -1: it returns */
	volatile uint64_t reached;
};

KEPT static uint64_t step(struct chain *chain, int depth);

KEPT static uint64_t left(struct chain *chain, int depth)
{
	return step(chain, depth + 1) + 1;
}

KEPT static uint64_t right(struct chain *chain, int depth)
{
	uint64_t sum = step(chain, depth + 1);

	return sum + 2;
}

KEPT static uint64_t step(struct chain *chain, int depth)
{
	chain->reached++;
	if (depth == chain->leave_at)
		longjmp(chain->home, depth + 1);
	if (depth == 12)
		return chain->x;
	return depth % 2 ? left(chain, depth) : right(chain, depth);
}

KEPT static void one_round(uint64_t x)
{
	struct chain chain = {.x = x, .leave_at = (int)(x % 14) - 1};
	volatile uint64_t kept = safety_mix(x);
	int jumped_from = setjmp(chain.home) - 1;

	if (jumped_from < 0) {
		uint64_t sum = step(&chain, 0);

		safety_check(chain.leave_at < 0 && sum == x + 6 * 1 + 6 * 2, "a result of %llx", (unsigned long long)x);
	} else {
		safety_check(jumped_from == chain.leave_at && chain.reached == (uint64_t)jumped_from + 1,
			     "a jump from %d of %d", jumped_from, chain.leave_at);
	}
	safety_check(kept == safety_mix(x), "a variable of the caller");
}

static void *thread_body(void *seed)
{
	for (uint64_t i = (uintptr_t)seed; safety_goes_on(); i += 2) {
		one_round(safety_mix(i) >> 8);
		safety_sleep_us(300);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	safety_begin(argc, argv);
	if (pthread_create(&other, NULL, thread_body, (void *)1))
		return 1;
	thread_body((void *)2);
	pthread_join(other, NULL);
	return safety_verdict();
}
