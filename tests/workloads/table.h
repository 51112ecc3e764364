/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table that every request takes briefly: what is planted is the time inside pthread_mutex_lock(). */
#ifndef WORKLOADS_TABLE_H
#define WORKLOADS_TABLE_H

#include "compactor.h"

/* Not static: a report may name it. */
extern pthread_mutex_t table_lock;
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static inline uint64_t table_handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, waited_ns;

	(void)worker;
	(void)request;
	spin_work(100 * NS_PER_US);
	start_ts = clock_now_ns();
	pthread_mutex_lock(&table_lock);
	waited_ns = clock_now_ns() - start_ts;
	spin_work(2 * NS_PER_US);
	pthread_mutex_unlock(&table_lock);
	return waited_ns;
}

/* The thread `compactor`: holds the table for some milliseconds, some four times a second, and needs no CPU meanwhile.
 */
static inline void *compactor_body(void *arg)
{
	compact(arg, &table_lock, (struct range){150 * NS_PER_MS, 350 * NS_PER_MS},
		(struct range){10 * NS_PER_MS, 18 * NS_PER_MS});
	return NULL;
}

#endif
