/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A contended lock: the background thread `compactor` holds `table_lock` for some milliseconds, some four times a
 * second, and needs no CPU meanwhile.  Every request takes it briefly.  Planted: the time inside pthread_mutex_lock().
 */
#include "common.h"

/* Not static: a report may name it. */
extern pthread_mutex_t table_lock;
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void *compactor_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();

	thread_name("compactor");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		pthread_mutex_lock(&table_lock);
		sleep_for_ns(random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS));
		pthread_mutex_unlock(&table_lock);
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	return thread_start_named(&thread, compactor_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
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

static const struct workload workload = {
	.name = "mutex",
	.category = "lock",
	.culprit_comm = "compactor",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.server_start = server_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
