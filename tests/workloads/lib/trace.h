/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenTelemetry's thread context (OTEP 4947): whoever includes this defines it. */
#ifndef WHYLATE_WORKLOADS_TRACE_H
#define WHYLATE_WORKLOADS_TRACE_H

#include <stdatomic.h>
#include <stdint.h>
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

/* Trace "traced!!" and the bytes of the time when the request was sent; the span is that time. */
static inline void trace_publish(uint64_t sent_ts)
{
	atomic_store(&record.valid, 0);
	memcpy(record.trace_id, "traced!!", 8);
	memcpy(record.trace_id + 8, &sent_ts, 8);
	memcpy(record.span_id, &sent_ts, 8);
	atomic_store(&record.valid, 1);
	otel_thread_ctx_v1 = &record;
}

#endif
