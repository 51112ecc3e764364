/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock that records, shards and the agent share with bpf_ktime_get_ns(). */
#ifndef WHYLATE_BASE_CLOCK_H
#define WHYLATE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, ns. */
static inline uint64_t monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* Since 1970, ns. */
static inline uint64_t realtime_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* CPU time of the calling process, ns: what it takes without what it waits for a CPU. */
/* CPU time of this thread. */
static inline uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline uint64_t process_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* A signal ends the sleep early. */
static inline void sleep_ns(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&time, NULL);
}

#endif
