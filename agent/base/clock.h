/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock that records, shards and the agent share with bpf_ktime_get_ns(). */
#ifndef WHYLATE_BASE_CLOCK_H
#define WHYLATE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC, ns. */
static inline uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

#endif
