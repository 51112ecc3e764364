/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No server: one thread calls handle_often() some hundred times a second, for intervals and calls from a symbol list.
 * Each calls often_step() thirty thousand times, which is millions of times a second and dearer to probe than it is to
 * call, and often_rare() three times, which sleeps.  Planted: the clock around the sleeps.
 */
#include "common.h"

#define STEPS  30000
#define RARE   3
#define PROBED __attribute__((noinline, noclone, used))

/* Not static: they have to be found by name. */
uint64_t often_step(uint64_t x);
uint64_t often_rare(uint64_t *random_state);
uint64_t handle_often(uint64_t *random_state);

PROBED uint64_t often_step(uint64_t x)
{
	asm volatile("" : "+r"(x));
	return x * 6364136223846793005ULL + 1442695040888963407ULL;
}

PROBED uint64_t often_rare(uint64_t *random_state)
{
	uint64_t start_ts = clock_now_ns();

	sleep_for_ns(random_between(random_state, 100 * NS_PER_US, 900 * NS_PER_US));
	return clock_now_ns() - start_ts;
}

PROBED uint64_t handle_often(uint64_t *random_state)
{
	uint64_t slept_ns = 0, x = *random_state;

	for (int i = 0; i < STEPS; i++)
		x = often_step(x);
	asm volatile("" : : "r"(x));
	for (int i = 0; i < RARE; i++)
		slept_ns += often_rare(random_state);
	return slept_ns;
}

static int serve(struct run *run)
{
	uint64_t random_state = clock_now_ns();

	while (!run_stopped(run)) {
		uint64_t start_ts = clock_now_ns(), slept_ns = handle_often(&random_state);

		run_sample(run, start_ts, clock_now_ns(), slept_ns);
		sleep_for_ns(NS_PER_MS);
	}
	return 0;
}

static const struct workload workload = {
	.name = "often",
	.category = "sleep",
	.rate_hz = 500,
	.default_duration_s = 6,
	.serve = serve,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
