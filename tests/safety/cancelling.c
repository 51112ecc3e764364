/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that are cancelled, or end themselves, deep in chains of functions that have something to clean up.  Built
 * with -fexceptions, so that cleaning up is the unwinder's business, as it is in C++.
 */
#include "safety.h"

#include <pthread.h>

struct life {
	int kind; /* 0: returns, 1: pthread_exit(), 2: is cancelled while it sleeps, 3: while it runs */
	uint64_t x;
	volatile int is_deep;
	uint64_t cleaned_up;
};

enum { DEPTH = 6, KIND_CNT = 4 };

static void clean_up(void *arg)
{
	uint64_t *cleaned_up = arg;

	*cleaned_up = *cleaned_up * 3 + 1;
}

KEPT static void end_somehow(struct life *life)
{
	struct timespec moment = {.tv_nsec = 200000};
	uint64_t x = life->x;

	life->is_deep = 1;
	if (life->kind == 1)
		pthread_exit((void *)(uintptr_t)(life->x | 1));
	while (life->kind == 2)
		nanosleep(&moment, NULL);
	while (life->kind == 3) {
		x = safety_mix(x);
		pthread_testcancel();
	}
}

KEPT static uint64_t deeper(struct life *life, int depth)
{
	uint64_t sum = depth;

	pthread_cleanup_push(clean_up, &life->cleaned_up);
	if (depth == DEPTH)
		end_somehow(life);
	else
		sum += deeper(life, depth + 1);
	pthread_cleanup_pop(1);
	return sum;
}

KEPT static void *live(void *arg)
{
	struct life *life = arg;

	return (void *)(uintptr_t)deeper(life, 1);
}

KEPT static void one_round(uint64_t x)
{
	struct life life = {.kind = (int)(x % KIND_CNT), .x = x};
	const uint64_t all_cleaned_up = 364; /* (3^6 - 1) / 2 */
	void *result, *wanted;
	pthread_t thread;

	if (!safety_check(!pthread_create(&thread, NULL, live, &life), "a thread"))
		return;
	while (life.kind > 1 && !life.is_deep)
		safety_sleep_us(20);
	if (life.kind > 1)
		pthread_cancel(thread);
	pthread_join(thread, &result);
	wanted = life.kind == 0 ? (void *)21 : life.kind == 1 ? (void *)(uintptr_t)(x | 1) : PTHREAD_CANCELED;
	safety_check(result == wanted, "the result of a thread of kind %d", life.kind);
	safety_check(life.cleaned_up == all_cleaned_up, "%llu cleaned up by a thread of kind %d",
		     (unsigned long long)life.cleaned_up, life.kind);
}

int main(int argc, char **argv)
{
	safety_begin(argc, argv);
	for (uint64_t i = 0; safety_goes_on(); i++) {
		one_round(safety_mix(i) >> 8);
		safety_sleep_us(300);
	}
	return safety_verdict();
}
