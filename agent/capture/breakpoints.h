/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often a thread executes some instructions, counted by the processor's breakpoint registers: nothing is written
 * into the program's text, and nothing is left of it but the time it took.  A register gives up after BREAKPOINT_HITS,
 * so that what is executed millions of times a second costs no more than what is executed that often.
 */
#ifndef WHYLATE_CAPTURE_BREAKPOINTS_H
#define WHYLATE_CAPTURE_BREAKPOINTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BREAKPOINT_CNT  4 /* registers for instructions: x86 has as many, arm64 at least two */
#define BREAKPOINT_HITS 16

struct breakpoint_thread {
	pid_t tid;
	uint64_t addrs[BREAKPOINT_CNT]; /* runtime addresses; 0: none */
};

struct breakpoint_count {
	uint64_t hits;
	uint64_t running_ns; /* how long threads ran while theirs was set, what the hits themselves took included */
};

/*
 * Watches all of the threads for window_ns of wall clock time and adds what was counted to counts[i] for addrs[i].  A
 * thread that is gone, or whose registers are in use by a debugger, counts nothing.  0, or -errno when not a single
 * register could be had (-ENOSPC, -EOPNOTSUPP, -EACCES; -ESRCH: all threads are gone; -ENOMEM).
 */
int breakpoints__watch(const struct breakpoint_thread *threads, size_t cnt, uint64_t window_ns,
		       struct breakpoint_count counts[BREAKPOINT_CNT]);

/*
 * Has the calling thread hit BREAKPOINT_MEASURED times: what one costs it, in ns, and how many were counted.  0 or
 * -errno; -EOPNOTSUPP: the kernel takes the breakpoint, but the thread never stops at it.
 */
#define BREAKPOINT_MEASURED 128
int breakpoints__measure(double *hit_ns, uint64_t *hits);

#endif
