/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traced by OpenTelemetry: each request's trace is published in the thread context (OTEP 4947) while a thread works for
 * it.  One request in 25 sleeps.
 */
#include "common.h"
#include "lib/trace.h"

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts;

	trace_publish(request->sent_ts);
	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	start_ts = clock_now_ns();
	sleep_for_ns(random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS));
	return clock_now_ns() - start_ts;
}

static const struct workload workload = {
	.name = "traced",
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
