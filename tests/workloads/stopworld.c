/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stop the world: every 100 ms `collector` waits until no request is being served, and lets none begin for some
 * milliseconds.  Planted: the time inside pthread_rwlock_rdlock().
 */
#include "common.h"

extern pthread_rwlock_t world;
pthread_rwlock_t world = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *collector_body(void *arg)
{
	struct run *run = arg;

	thread_name("collector");
	thread_pin(CPU_LOAD);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(100 * NS_PER_MS);
		pthread_rwlock_wrlock(&world);
		spin_work(6 * NS_PER_MS);
		pthread_rwlock_unlock(&world);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, collector_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts = clock_now_ns(), waited_ns;

	(void)worker;
	(void)request;
	pthread_rwlock_rdlock(&world);
	waited_ns = clock_now_ns() - start_ts;
	spin_work(100 * NS_PER_US);
	pthread_rwlock_unlock(&world);
	return waited_ns;
}

static const struct workload workload = {
	.name = "stopworld",
	.category = "lock",
	.culprit_comm = "collector",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
