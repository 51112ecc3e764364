/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two locks in memory from malloc(): the background thread `compactor` holds `ledger` for some milliseconds, some three
 * times a second, and `index` for a shorter time in between.  Every request takes both briefly.  Planted: the time
 * inside pthread_mutex_lock().
 */
#include "common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t *ledger, *index_lock;

static pthread_mutex_t *lock_make(void)
{
	pthread_mutex_t *lock = malloc(sizeof(*lock));

	if (lock)
		pthread_mutex_init(lock, NULL);
	return lock;
}

/* 0: it is not in the heap. */
static uint64_t heap_offset(const void *addr)
{
	uint64_t start, end, offset = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &start, &end) == 2 && (uint64_t)addr >= start &&
		    (uint64_t)addr < end)
			offset = (uint64_t)addr - start;
	if (maps)
		fclose(maps);
	return offset;
}

static void hold(pthread_mutex_t *lock, uint64_t ns)
{
	pthread_mutex_lock(lock);
	sleep_for_ns(ns);
	pthread_mutex_unlock(lock);
}

static void *compactor_body(void *arg)
{
	struct run *run = arg;
	uint64_t random_state = clock_now_ns();

	thread_name("compactor");
	thread_pin(CPU_SERVER);
	run_set_culprit(run);
	for (;;) {
		sleep_for_ns(random_between(&random_state, 100 * NS_PER_MS, 200 * NS_PER_MS));
		hold(ledger, random_between(&random_state, 10 * NS_PER_MS, 18 * NS_PER_MS));
		sleep_for_ns(random_between(&random_state, 100 * NS_PER_MS, 200 * NS_PER_MS));
		hold(index_lock, random_between(&random_state, 5 * NS_PER_MS, 7 * NS_PER_MS));
	}
	return NULL;
}

static int server_start(struct run *run)
{
	pthread_t thread;

	ledger = lock_make();
	index_lock = lock_make();
	if (!ledger || !index_lock)
		return -ENOMEM;
	atomic_store(&run->board->extra[0], heap_offset(ledger));
	return thread_start_named(&thread, compactor_body, run);
}

static uint64_t take(pthread_mutex_t *lock)
{
	uint64_t start_ts = clock_now_ns(), waited_ns;

	pthread_mutex_lock(lock);
	waited_ns = clock_now_ns() - start_ts;
	spin_work(2 * NS_PER_US);
	pthread_mutex_unlock(lock);
	return waited_ns;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	(void)worker;
	(void)request;
	spin_work(100 * NS_PER_US);
	return take(ledger) + take(index_lock);
}

static void report(const struct run *run, FILE *out)
{
	fprintf(out, ",\"lock\":\"[heap]+0x%lx\"", atomic_load(&run->board->extra[0]));
}

static const struct workload workload = {
	.name = "heaplocks",
	.category = "lock",
	.culprit_comm = "compactor",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.server_start = server_start,
	.handle = handle,
	.report = report,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
