/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to try again: exponential, capped, with jitter, so that agents that lost their collector together do not come
 * back together.  Times are CLOCK_MONOTONIC ns.
 */
#ifndef WHYLATE_NET_SEND_BACKOFF_H
#define WHYLATE_NET_SEND_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_NS     500000000ULL
#define BACKOFF_CAP_NS       15000000000ULL
#define BACKOFF_ASKED_CAP_NS 900000000000ULL /* of what a Retry-After may ask for */

struct backoff {
	uint32_t failure_cnt; /* in a row */
	uint64_t until_ts;    /* not before; 0: at once */
	uint64_t rng;
};

void backoff__init(struct backoff *backoff, uint64_t seed);
void backoff__succeed(struct backoff *backoff);
/* asked_ns: what the other side asked for, 0: nothing. */
void backoff__fail(struct backoff *backoff, uint64_t now_ts, uint64_t asked_ns);

#endif
