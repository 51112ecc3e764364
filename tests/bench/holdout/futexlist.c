// SPDX-License-Identifier: GPL-2.0-or-later
/* A list under a mutex of its own, of a futex word (Drepper's third), with a futex as condition. */
#include "staged.h"

#include <linux/futex.h>

static int word, filled;
static struct job *first, **last = &first;

static void futex(int *at, int operation, int value)
{
	syscall(SYS_futex, at, operation, value, NULL, NULL, 0);
}

static void lock(int *at)
{
	int was = 0;

	if (__atomic_compare_exchange_n(at, &was, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (was != 2)
		was = __atomic_exchange_n(at, 2, __ATOMIC_ACQUIRE);
	while (was) {
		futex(at, FUTEX_WAIT_PRIVATE, 2);
		was = __atomic_exchange_n(at, 2, __ATOMIC_ACQUIRE);
	}
}

static void unlock(int *at)
{
	if (__atomic_exchange_n(at, 0, __ATOMIC_RELEASE) == 2)
		futex(at, FUTEX_WAKE_PRIVATE, 1);
}

static void put(struct job *job)
{
	lock(&word);
	job->next = NULL;
	*last = job;
	last = &job->next;
	__atomic_fetch_add(&filled, 1, __ATOMIC_RELAXED);
	unlock(&word);
	futex(&filled, FUTEX_WAKE_PRIVATE, 1);
}

static struct job *take(void)
{
	struct job *job;
	int seen;

	for (;;) {
		seen = __atomic_load_n(&filled, __ATOMIC_RELAXED);
		lock(&word);
		job = first;
		if (job) {
			first = job->next;
			if (!first)
				last = &first;
		}
		unlock(&word);
		if (job)
			return job;
		futex(&filled, FUTEX_WAIT_PRIVATE, seen);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
