/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of trace mode in order of time.  Each CPU has a ring of its own, and a ring is emptied as a whole, so records
 * wait here until everything that is older than a moment must have come out of the rings; what comes later still is
 * counted and handed over late.
 *
 * A ring's records are nearly in order by themselves: sorting costs little more than one look at each per ring.
 */
#ifndef WHYLATE_MODEL_TRACE_ORDER_H
#define WHYLATE_MODEL_TRACE_ORDER_H

#include <whylate/record.h>

#include "model/graph.h"

struct ended_interval {
	struct graph_interval interval;
	uint32_t keep; /* retention's verdict */
	uint32_t zero;
};

struct trace_item {
	uint64_t ts; /* when it was known: a segment's and an interval's end */
	uint16_t kind;
	uint16_t cpu;
	uint32_t sz;      /* of data, a multiple of 8 */
	const void *data; /* the record, or of an interval: struct ended_interval */
};

struct trace_order;

struct trace_order *trace_order__new(void);
void trace_order__free(struct trace_order *order); /* NULL-safe */

/* Copies the item and its data.  0; -EINVAL: another size; -ENOMEM. */
int trace_order__add(struct trace_order *order, const struct trace_item *item);

/*
 * Hands over everything up to until_ts, oldest first; at one moment segments before edges, and intervals last.
 * `handle` returns 0 or -errno, which ends the call; what was handed over until then is gone.  It must not add any.
 */
typedef int (*trace_order_handler)(void *owner, const struct trace_item *item);
int trace_order__release(struct trace_order *order, uint64_t until_ts, trace_order_handler handle, void *owner);

/* Items that came after others that are younger had been handed over. */
uint64_t trace_order__late_cnt(const struct trace_order *order);
size_t trace_order__bytes(const struct trace_order *order);

#endif
