// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct job {
	parallel_fn fn;
	void *ctx;
	size_t task_cnt;
	atomic_size_t next;
	atomic_int err;
};

struct worker {
	struct job *job;
	unsigned idx;
	pthread_t thread;
};

unsigned parallel_workers(void)
{
	long cpu_cnt = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpu_cnt < 1)
		return 1;
	return cpu_cnt < PARALLEL_WORKERS_MAX ? (unsigned)cpu_cnt : PARALLEL_WORKERS_MAX;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct job *job = worker->job;
	size_t task;
	int err, none;

	while (!atomic_load(&job->err) && (task = atomic_fetch_add(&job->next, 1)) < job->task_cnt) {
		err = job->fn(job->ctx, task, worker->idx);
		none = 0;
		if (err)
			atomic_compare_exchange_strong(&job->err, &none, err);
	}
	return NULL;
}

int parallel_run(size_t task_cnt, parallel_fn fn, void *ctx)
{
	struct job job = {.fn = fn, .ctx = ctx, .task_cnt = task_cnt};
	struct worker workers[PARALLEL_WORKERS_MAX];
	unsigned worker_cnt = parallel_workers(), started = 1;

	/* A thread that cannot be made costs time, not the result: the caller itself is worker 0. */
	workers[0] = (struct worker){.job = &job};
	for (; started < worker_cnt && started < task_cnt; started++) {
		workers[started] = (struct worker){.job = &job, .idx = started};
		if (pthread_create(&workers[started].thread, NULL, work, &workers[started]))
			break;
	}
	work(&workers[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	return atomic_load(&job.err);
}
