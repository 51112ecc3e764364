/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A slow code path: 3 % of the requests compute for some milliseconds instead of 200 µs.  A server thread per CPU, so
 * that they do not wait for each other.  Planted: the thread's CPU time over the request.
 */
#include "common.h"

static __attribute__((noinline)) void fast_path(void)
{
	spin_work(200 * NS_PER_US);
}

static __attribute__((noinline)) void slow_path(struct worker *worker)
{
	spin_work(random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS));
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t cpu_ns = thread_cpu_ns();

	if (request_chosen(request, 30))
		slow_path(worker);
	else
		fast_path();
	return thread_cpu_ns() - cpu_ns;
}

static const struct workload workload = {
	.name = "cpu",
	.category = "oncpu",
	.connection_cnt = 2,
	.rate_hz = 200,
	.default_duration_s = 6,
	.spread = 1,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
