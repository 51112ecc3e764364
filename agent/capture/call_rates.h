/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often functions are called, before anything is written into the target's text: a few at a time are watched by
 * breakpoint registers (breakpoints.h), in a few threads at a time, which are drawn by the CPU time that they use.  So
 * a second of CPU time is a second of CPU time, whichever thread spends it.
 */
#ifndef WHYLATE_CAPTURE_CALL_RATES_H
#define WHYLATE_CAPTURE_CALL_RATES_H

#include "target/target.h"

struct call_rate {
	uint64_t calls;   /* that were met */
	uint64_t seen_ns; /* CPU time in which they were met, less what meeting them took; 0: nobody was looked at */
	bool at_least;    /* they follow one another too fast for that: what it took is in it */
};

struct call_rates_opts {
	const target_processes *processes;
	const target_mappings *mappings; /* of the first of them, in which the addresses are found */
	uint64_t seconds_max;            /* of wall clock time, in all */
	bool (*is_stopped)(void);        /* asked every now and then: the rest is not looked at any more */
};

/*
 * rates[i] of the function whose first instruction, or another that each call executes once, lies at addrs[i] of the
 * first process (0: unknown).  Processes that map the same file somewhere else are looked at there.  0, or -errno where
 * nothing can be counted (-EOPNOTSUPP, -ENOSPC: a debugger has the registers, -EACCES, -ENOMEM).
 */
int call_rates__count(const struct call_rates_opts *opts, const uint64_t *addrs, size_t cnt, struct call_rate *rates);

#endif
