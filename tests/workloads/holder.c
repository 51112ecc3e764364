/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The holder of a lock is preempted by another process: `indexer` holds the lock, `batch` has its CPU.  The workers are
 * elsewhere, so that nothing but the lock connects them with `batch`.
 */
#include "holder.h"

static int batch_body(struct run *run)
{
	thread_name("batch");
	thread_pin(CPU_SERVER);
	thread_urgent(PRIO_HOG);
	run_set_culprit(run);
	atomic_store(&run->board->helper_ready, 1);
	hog_loop(run);
	return 0;
}

static void *indexer_body(void *arg)
{
	thread_name("indexer");
	thread_pin(CPU_SERVER);
	holder_loop(arg);
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, indexer_body, run);
}

static int thread_start(struct worker *worker)
{
	(void)worker;
	return thread_pin(CPU_LOAD);
}

static const struct workload workload = {
	.name = "holder",
	.category = "runq",
	.culprit_comm = "batch",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.prepare = holder_prepare,
	.helper = batch_body,
	.server_start = server_start,
	.thread_start = thread_start,
	.handle = table_handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
