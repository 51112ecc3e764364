// SPDX-License-Identifier: GPL-2.0-or-later
#include "stall.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define NAP_NS   2000000UL
#define STALL_NS 25000000UL
/* Where the workloads have their load, not their server: a pause hits all CPUs, and the watch must disturb nobody. */
#define WATCHED_CPU 1

struct stall {
	uint64_t begin_ts, end_ts;
};

struct stall_watch {
	pthread_t thread;
	bool running;
	atomic_uint stall_cnt;
	atomic_bool done;
	struct stall stalls[STALLS_MAX];
};

struct start {
	struct stall_watch *watch;
	int cpu;
};

static void *watch_cpu(void *arg)
{
	struct sched_param param = {.sched_priority = 99};
	struct start start = *(struct start *)arg;
	struct stall_watch *watch = start.watch;
	struct timespec nap = {.tv_nsec = NAP_NS};
	cpu_set_t one;

	free(arg);
	CPU_ZERO(&one);
	CPU_SET(start.cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &param))
		return NULL;
	while (!atomic_load(&watch->done)) {
		uint64_t begin_ts = now_ns(), end_ts;

		nanosleep(&nap, NULL);
		end_ts = now_ns();
		if (end_ts - begin_ts >= NAP_NS + STALL_NS) {
			unsigned int idx = atomic_fetch_add(&watch->stall_cnt, 1);

			if (idx < STALLS_MAX)
				watch->stalls[idx] = (struct stall){begin_ts, end_ts};
		}
	}
	return NULL;
}

struct stall_watch *stall_watch__new(void)
{
	struct stall_watch *watch = calloc(1, sizeof(*watch));
	struct start *start = malloc(sizeof(*start));

	if (watch && start) {
		*start = (struct start){watch, WATCHED_CPU};
		watch->running = !pthread_create(&watch->thread, NULL, watch_cpu, start);
	}
	if (!watch || !watch->running)
		free(start);
	return watch;
}

void stall_watch__stop(struct stall_watch *watch)
{
	if (!watch)
		return;
	atomic_store(&watch->done, true);
	if (watch->running)
		pthread_join(watch->thread, NULL);
	watch->running = false;
}

void stall_watch__free(struct stall_watch *watch)
{
	stall_watch__stop(watch);
	free(watch);
}

bool stall_watch__touched(const struct stall_watch *watch, uint64_t begin_ts, uint64_t end_ts)
{
	unsigned int cnt = watch ? atomic_load(&watch->stall_cnt) : 0;

	for (unsigned int i = 0; i < cnt && i < STALLS_MAX; i++)
		if (begin_ts < watch->stalls[i].end_ts && end_ts > watch->stalls[i].begin_ts)
			return true;
	return false;
}
