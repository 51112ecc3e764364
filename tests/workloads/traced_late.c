/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As traced.c, but a library publishes the traces, which the server loads a second after the warm-up.  One request in
 * 25 sleeps.
 */
#include "common.h"

#include <pthread.h>

#define LOADED_NS 1000000000ULL

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void (*publish)(uint64_t sent_ts);

static void load(void)
{
	*(void **)&publish = library_symbol("libwltracer.so", "tracer_publish");
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts = clock_now_ns(), count_from_ts = atomic_load(&worker->run->board->count_from_ts);

	if (count_from_ts && start_ts >= count_from_ts + LOADED_NS) {
		pthread_once(&once, load);
		publish(request->sent_ts);
	}
	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	start_ts = clock_now_ns();
	sleep_for_ns(random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS));
	return clock_now_ns() - start_ts;
}

static const struct workload workload = {
	.name = "traced_late",
	.category = "sleep",
	.connection_cnt = 4,
	.rate_hz = 150,
	.default_duration_s = 6,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
