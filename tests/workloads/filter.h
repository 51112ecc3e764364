/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread `filter`, on the other CPU, that server threads hand their work to in one way or another, and wait for. */
#ifndef WORKLOADS_FILTER_H
#define WORKLOADS_FILTER_H

#include "common.h"

static inline void filter_begin(void)
{
	thread_name("filter");
	thread_pin(CPU_LOAD);
}

static inline void filter_work(struct run *run, uint64_t work_ns)
{
	if (work_ns)
		run_set_culprit(run);
	spin_work(work_ns);
}

/* What it is to do for a request: nothing, or for 1.5 % of them some milliseconds. */
static inline uint64_t filter_work_ns(struct worker *worker, const struct request *request)
{
	return request_chosen(request, 15) ? random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS) : 0;
}

#endif
