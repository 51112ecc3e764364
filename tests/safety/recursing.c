/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recursion, thousands of calls deep, of one function and of two that call each other; deeper than any limit of probes.
 */
#include "safety.h"

#include <pthread.h>

enum { DEPTH_MAX = 3000, STACK_SZ = 64 << 20 };

KEPT static uint64_t down(uint64_t x, unsigned int depth)
{
	return depth ? down(x + 1, depth - 1) + x : x;
}

KEPT static uint64_t pong(uint64_t x, unsigned int depth);

KEPT static uint64_t ping(uint64_t x, unsigned int depth)
{
	uint64_t sum = depth ? pong(x + 1, depth - 1) : 0;

	return sum + x;
}

KEPT static uint64_t pong(uint64_t x, unsigned int depth)
{
	uint64_t sum = depth ? ping(x + 1, depth - 1) : 0;

	return sum + 2 * x;
}

static uint64_t expected_down(uint64_t x, uint64_t depth)
{
	return (depth + 1) * x + depth * (depth + 1) / 2;
}

static uint64_t expected_ping(uint64_t x, uint64_t depth)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i <= depth; i++)
		sum += (1 + i % 2) * (x + i);
	return sum;
}

KEPT static void one_round(uint64_t x)
{
	unsigned int depth = (unsigned int)(x % DEPTH_MAX);

	x >>= 32;
	safety_check(down(x, depth) == expected_down(x, depth), "down from %u", depth);
	safety_check(ping(x, depth) == expected_ping(x, depth), "ping from %u", depth);
}

static void *thread_body(void *seed)
{
	for (uint64_t i = (uintptr_t)seed; safety_goes_on(); i += 2) {
		one_round(safety_mix(i));
		safety_sleep_us(3000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t threads[2];

	safety_begin(argc, argv);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SZ);
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], &attr, thread_body, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return safety_verdict();
}
