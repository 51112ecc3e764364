/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wake-ups that mean nothing: `compactor` holds `table_lock` for some milliseconds, some four times a second, and
 * meanwhile `poker` wakes whoever waits for the lock every 400 µs, without having had it.  Planted: the time inside
 * pthread_mutex_lock(), which is the compactor's doing.
 */
#include "common.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

extern pthread_mutex_t table_lock;
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void *poker_body(void *arg)
{
	(void)arg;
	thread_name("poker");
	thread_pin(CPU_LOAD);
	thread_urgent(PRIO_HOG);
	for (;;) {
		sleep_for_ns(400 * NS_PER_US);
		/* glibc waits on the first word. */
		syscall(SYS_futex, &table_lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	}
	return NULL;
}

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
	int err = thread_start_named(&thread, compactor_body, run);

	return err ? err : thread_start_named(&thread, poker_body, run);
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
	.name = "spurious",
	.category = "lock",
	.culprit_comm = "compactor",
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
