/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A lock whose holder has lost its CPU: a background thread takes `table_lock` for a moment, some four times a second,
 * and in that moment wakes a hog that wins against it and keeps the CPU for some milliseconds.  Every request takes the
 * lock briefly.  Planted: the time inside pthread_mutex_lock().
 */
#ifndef WORKLOADS_HOLDER_H
#define WORKLOADS_HOLDER_H

#include "table.h"

#include <semaphore.h>
#include <time.h>

/* Between holder and hog, wherever they live. */
static inline sem_t *holder_signal(struct run *run)
{
	_Static_assert(sizeof(sem_t) <= sizeof(run->board->extra), "a semaphore fits on the board");
	return (sem_t *)(void *)run->board->extra;
}

static inline int holder_prepare(struct run *run)
{
	return sem_init(holder_signal(run), 1, 0);
}

static inline void holder_loop(struct run *run)
{
	uint64_t random_state = clock_now_ns();

	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		pthread_mutex_lock(&table_lock);
		sem_post(holder_signal(run));
		spin_work(200 * NS_PER_US);
		pthread_mutex_unlock(&table_lock);
	}
}

static inline void hog_loop(struct run *run)
{
	uint64_t random_state = clock_now_ns();

	while (!run_stopped(run)) {
		struct timespec deadline;
		uint64_t until_ts;

		clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_sec++;
		if (sem_timedwait(holder_signal(run), &deadline)) /* time to look whether it is over */
			continue;
		until_ts = clock_now_ns() + random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS);
		while (clock_now_ns() < until_ts)
			;
	}
}

#endif
