/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traced by OpenTelemetry: each request's trace is published in the thread context (OTEP 4947) while a thread works for
 * it.  One request in 25 sleeps.
 */
#include "common.h"

#include <string.h>

struct context_record {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	_Atomic uint8_t valid;
	uint8_t reserved;
	uint16_t attrs_sz;
};

__thread struct context_record *otel_thread_ctx_v1;
static __thread struct context_record record;

/* Trace "traced!!" and the bytes of the time when it was sent; the span is that time. */
static void publish(const struct request *request)
{
	atomic_store(&record.valid, 0);
	memcpy(record.trace_id, "traced!!", 8);
	memcpy(record.trace_id + 8, &request->sent_ts, 8);
	memcpy(record.span_id, &request->sent_ts, 8);
	atomic_store(&record.valid, 1);
	otel_thread_ctx_v1 = &record;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts;

	publish(request);
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
