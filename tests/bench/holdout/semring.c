// SPDX-License-Identifier: GPL-2.0-or-later
/* A ring between two semaphores, as textbooks have it: one of them is the lock. */
#include "staged.h"

#include <semaphore.h>

#define RING_SZ 64

static struct job *ring[RING_SZ];
static unsigned int head, tail;
static sem_t empty, full, mutex;

static void put(struct job *job)
{
	sem_wait(&empty);
	sem_wait(&mutex);
	ring[tail++ % RING_SZ] = job;
	sem_post(&mutex);
	sem_post(&full);
}

static struct job *take(void)
{
	struct job *job;

	sem_wait(&full);
	sem_wait(&mutex);
	job = ring[head++ % RING_SZ];
	sem_post(&mutex);
	sem_post(&empty);
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	sem_init(&empty, 0, RING_SZ);
	sem_init(&full, 0, 0);
	sem_init(&mutex, 0, 1);
	staged_run(argv);
}
