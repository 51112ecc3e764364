// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/asked.h"

/* The receive and the pickup are two records of one call, between which an interrupt may come. */
#define SAME_CALL_NS 20000ULL
#define CALL_MAX_NS  10000000ULL

static uint64_t distance_ns(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

struct graph_handoff *graph_asked_by(const struct graph *graph, const struct graph_interval *interval)
{
	uint64_t from_ts = interval->pickup_ts > SAME_CALL_NS ? interval->pickup_ts - SAME_CALL_NS : 0;
	struct graph_handoff *nearest = NULL, *handoffs;
	size_t cnt;

	handoffs = graph__handoffs_to(graph, interval->tid, from_ts, interval->pickup_ts + CALL_MAX_NS, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		struct graph_handoff *handoff = &handoffs[i];
		uint64_t away_ns = distance_ns(handoff->to_ts, interval->pickup_ts);

		if (handoff->kind != WL_HANDOFF_SOCKET && handoff->kind != WL_HANDOFF_UNIX)
			continue;
		/* As a rule the receive knows which interval it was for; so does that of a reply, which is sent later.
		 */
		if (handoff->sid == interval->sid && handoff->to_ts >= interval->pickup_ts &&
		    handoff->from_ts <= interval->pickup_ts + SAME_CALL_NS)
			return handoff;
		if (away_ns <= SAME_CALL_NS && (!nearest || away_ns < distance_ns(nearest->to_ts, interval->pickup_ts)))
			nearest = handoff;
	}
	return nearest;
}
