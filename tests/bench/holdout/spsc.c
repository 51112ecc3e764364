// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring for one reader and one worker, without any lock or atomic instruction; a semaphore wakes the worker. */
#define WORKERS 1
#include "staged.h"

#include <semaphore.h>

#define RING_SZ 64

static struct job *ring[RING_SZ];
static unsigned int head, tail;
static sem_t filled;

static void put(struct job *job)
{
	unsigned int at = __atomic_load_n(&tail, __ATOMIC_RELAXED);

	while (at - __atomic_load_n(&head, __ATOMIC_ACQUIRE) == RING_SZ)
		usleep(10);
	ring[at % RING_SZ] = job;
	__atomic_store_n(&tail, at + 1, __ATOMIC_RELEASE);
	sem_post(&filled);
}

static struct job *take(void)
{
	unsigned int at = __atomic_load_n(&head, __ATOMIC_RELAXED);
	struct job *job;

	while (sem_wait(&filled) && errno == EINTR)
		;
	job = ring[at % RING_SZ];
	__atomic_store_n(&head, at + 1, __ATOMIC_RELEASE);
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	sem_init(&filled, 0, 0);
	staged_run(argv);
}
