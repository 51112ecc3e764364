/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No server: four threads call handle_request() a thousand times a second together, for intervals from a symbol list.
 * A tenth of the calls recurse three deep and still are one interval each; 3 % sleep for some milliseconds inside, at
 * whatever depth.  `intervals` is the number of outermost calls.  Planted: the clock around the sleep.
 */
#include "common.h"

#define THREAD_CNT 4

/* Not static: it has to be found by name. */
uint64_t handle_request(int kind);

enum { KIND_SLOW = 1, KIND_DEPTH = 2 };

static __thread uint64_t random_state;

/* Neither inlined, nor cloned, nor turned into a loop: every call has to go through the symbol. */
__attribute__((noinline, noclone)) uint64_t handle_request(int kind)
{
	uint64_t slept_ns = 0, start_ts;

	spin_work(20 * NS_PER_US);
	if (kind >= KIND_DEPTH) {
		slept_ns = handle_request(kind - KIND_DEPTH);
		asm volatile("" : "+r"(slept_ns));
	} else if (kind & KIND_SLOW) {
		start_ts = clock_now_ns();
		sleep_for_ns(random_between(&random_state, 8 * NS_PER_MS, 18 * NS_PER_MS));
		slept_ns = clock_now_ns() - start_ts;
	}
	return slept_ns;
}

static void *caller_body(void *arg)
{
	struct worker *worker = arg;

	random_state = worker->random_state;
	thread_name("worker-%d", worker->idx);
	while (!run_stopped(worker->run)) {
		int kind = random_next(&random_state) % 1000 < 30 ? KIND_SLOW : 0;
		uint64_t start_ts, slept_ns;

		if (random_next(&random_state) % 10 == 0)
			kind += 2 * KIND_DEPTH;
		start_ts = clock_now_ns();
		slept_ns = handle_request(kind);
		run_sample(worker->run, start_ts, clock_now_ns(), slept_ns);
		sleep_for_ns(random_between(&random_state, 2 * NS_PER_MS, 5 * NS_PER_MS));
	}
	return NULL;
}

static int serve(struct run *run)
{
	static struct worker workers[THREAD_CNT];
	int err;

	for (int i = 0; i < THREAD_CNT; i++) {
		workers[i].run = run;
		workers[i].idx = i;
		workers[i].random_state = clock_now_ns() * (uint64_t)(2 * i + 1);
		err = thread_start_named(&workers[i].thread, caller_body, &workers[i]);
		if (err)
			return err;
	}
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}

static const struct workload workload = {
	.name = "uprobe_target",
	.category = "sleep",
	.rate_hz = 2000,
	.default_duration_s = 6,
	.serve = serve,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
