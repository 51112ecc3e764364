/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Notices when the whole machine stands still: a hypervisor that pauses a guest for tens of milliseconds (measured
 * here: 85 and 93 ms on both CPUs at once, every twenty seconds or so, and not accounted as steal).  Such a pause falls
 * on whatever a request was doing, is the latest thing in a short run, and was planted by nobody.
 *
 * A thread per CPU at the highest priority sleeps 2 ms at a time; a sleep that takes 25 ms more is a stall.  The
 * planted interrupts and hogs are shorter than that or of lower priority.
 */
#ifndef WHYLATE_TESTS_STALL_H
#define WHYLATE_TESTS_STALL_H

#include <stdbool.h>
#include <stdint.h>

#define STALLS_MAX 256

struct stall_watch;

/* NULL when it cannot be had; then no interval counts as stalled. */
struct stall_watch *stall_watch__new(void);
/* Stops watching; the stalls remain to be asked for. */
void stall_watch__stop(struct stall_watch *watch);
void stall_watch__free(struct stall_watch *watch);
/* Was there a stall between these two moments (CLOCK_MONOTONIC, ns)? */
bool stall_watch__touched(const struct stall_watch *watch, uint64_t begin_ts, uint64_t end_ts);

#endif
