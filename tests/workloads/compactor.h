/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A background thread that holds a lock now and then. */
#ifndef WORKLOADS_COMPACTOR_H
#define WORKLOADS_COMPACTOR_H

#include "common.h"

struct range {
	uint64_t least_ns, most_ns;
};

/* The body of the thread `compactor`, the culprit: holds the lock for `hold` after every `pause`, and needs no CPU. */
static inline void compact(struct run *run, pthread_mutex_t *lock, struct range pause, struct range hold)
{
	uint64_t random_state = clock_now_ns();

	thread_name("compactor");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, pause.least_ns, pause.most_ns));
		pthread_mutex_lock(lock);
		sleep_for_ns(random_between(&random_state, hold.least_ns, hold.most_ns));
		pthread_mutex_unlock(lock);
	}
}

#endif
