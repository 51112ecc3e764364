/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two locks, one after the other at the same address: the table is thrown away and made anew in the same memory some
 * twenty times a second.  `reader` holds the lock of the one for a moment, `rebuilder` that of every other one for some
 * milliseconds.  Planted: the time inside pthread_mutex_lock(), which is the rebuilder's doing.
 */
#include "common.h"

#include <string.h>

/* Whoever uses the table counts, and it is made anew only when nobody does. */
static struct {
	pthread_mutex_t lock;
	char rows[64];
} table;
static atomic_uint users, rebuilt;

static void table_use(void)
{
	for (;;) {
		atomic_fetch_add(&users, 1);
		if (!atomic_load(&rebuilt))
			return;
		atomic_fetch_sub(&users, 1);
		sleep_for_ns(20 * NS_PER_US);
	}
}

static void table_make_anew(void)
{
	atomic_store(&rebuilt, 1);
	if (!atomic_load(&users)) {
		pthread_mutex_destroy(&table.lock);
		memset(&table, 0xff, sizeof(table));
		pthread_mutex_init(&table.lock, NULL);
	}
	atomic_store(&rebuilt, 0);
}

static void hold(uint64_t ns)
{
	table_use();
	pthread_mutex_lock(&table.lock);
	sleep_for_ns(ns);
	pthread_mutex_unlock(&table.lock);
	atomic_fetch_sub(&users, 1);
}

static void *reader_body(void *arg)
{
	(void)arg;
	thread_name("reader");
	thread_pin(CPU_SERVER);
	for (;;) {
		sleep_for_ns(50 * NS_PER_MS);
		hold(NS_PER_MS);
		table_make_anew();
	}
	return NULL;
}

static void *rebuilder_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();

	thread_name("rebuilder");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 150 * NS_PER_MS, 350 * NS_PER_MS));
		hold(random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS));
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;
	int err;

	pthread_mutex_init(&table.lock, NULL);
	err = thread_start_named(&thread, reader_body, run);
	return err ? err : thread_start_named(&thread, rebuilder_body, run);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, waited_ns;

	(void)worker;
	(void)request;
	spin_work(100 * NS_PER_US);
	table_use();
	start_ts = clock_now_ns();
	pthread_mutex_lock(&table.lock);
	waited_ns = clock_now_ns() - start_ts;
	spin_work(2 * NS_PER_US);
	pthread_mutex_unlock(&table.lock);
	atomic_fetch_sub(&users, 1);
	return waited_ns;
}

static const struct workload workload = {
	.name = "reused",
	.category = "lock",
	.culprit_comm = "rebuilder",
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
