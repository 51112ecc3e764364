/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Over a thousand functions of different shapes, called in an order of chance by two threads: leaves, callers of two
 * others, ones that keep their arguments on the stack, ones that end in a tail call.
 */
#include "safety.h"

#include <pthread.h>

#define LEAF(n)                                            \
	KEPT static uint64_t leaf_##n(uint64_t x)          \
	{                                                  \
		return safety_mix(x + 0x##n) + 0x##n##ULL; \
	}
#define CALLER(n)                                   \
	KEPT static uint64_t caller_##n(uint64_t x) \
	{                                           \
		uint64_t sum = leaf_##n(x);         \
                                                    \
		return sum ^ leaf_##n(x + 1);       \
	}
#define KEEPER(n)                                                         \
	KEPT static uint64_t keeper_##n(uint64_t x)                       \
	{                                                                 \
		volatile uint64_t kept[4] = {x, x + 1, x + 2, x + 0x##n}; \
		uint64_t sum = 0;                                         \
                                                                          \
		for (int i = 0; i < 4; i++)                               \
			sum = leaf_##n(sum + kept[i]);                    \
		return sum;                                               \
	}
#define TAIL(n)                                   \
	KEPT static uint64_t tail_##n(uint64_t x) \
	{                                         \
		return caller_##n(x + 3);         \
	}
/* clang-format off */
#define SHAPES(n) LEAF(n) CALLER(n) KEEPER(n) TAIL(n)
#define ROW(n)                                                                                   \
	SHAPES(n##0) SHAPES(n##1) SHAPES(n##2) SHAPES(n##3) SHAPES(n##4) SHAPES(n##5) SHAPES(n##6) \
	SHAPES(n##7) SHAPES(n##8) SHAPES(n##9) SHAPES(n##a) SHAPES(n##b) SHAPES(n##c) SHAPES(n##d) \
	SHAPES(n##e) SHAPES(n##f)
#define ALL_ROWS                                                                                  \
	ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(a) ROW(b) ROW(c) ROW(d) \
	ROW(e) ROW(f) ROW(10) ROW(11) ROW(12) ROW(13)
/* clang-format on */

ALL_ROWS

struct shapes {
	uint64_t (*caller)(uint64_t), (*keeper)(uint64_t), (*tail)(uint64_t);
};

#undef SHAPES
#define SHAPES(n) {caller_##n, keeper_##n, tail_##n},

static const struct shapes shapes[] = {ALL_ROWS};

static uint64_t expected_leaf(uint64_t n, uint64_t x)
{
	return safety_mix(x + n) + n;
}

static uint64_t expected_caller(uint64_t n, uint64_t x)
{
	return expected_leaf(n, x) ^ expected_leaf(n, x + 1);
}

static uint64_t expected_keeper(uint64_t n, uint64_t x)
{
	uint64_t kept[4] = {x, x + 1, x + 2, x + n}, sum = 0;

	for (int i = 0; i < 4; i++)
		sum = expected_leaf(n, sum + kept[i]);
	return sum;
}

KEPT static void one_round(uint64_t x)
{
	uint64_t n = x % (sizeof(shapes) / sizeof(shapes[0]));

	safety_check(shapes[n].caller(x) == expected_caller(n, x), "caller_%llx", (unsigned long long)n);
	safety_check(shapes[n].keeper(x) == expected_keeper(n, x), "keeper_%llx", (unsigned long long)n);
	safety_check(shapes[n].tail(x) == expected_caller(n, x + 3), "tail_%llx", (unsigned long long)n);
}

static void *thread_body(void *seed)
{
	for (uint64_t i = (uintptr_t)seed; safety_goes_on(); i += 2) {
		one_round(safety_mix(i) >> 8);
		if (i / 2 % 16 == 0)
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
