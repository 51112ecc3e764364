/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which tests ran while the hypervisor held the machine: it stood still for 25 ms (stall.h) or lost more of its CPU
 * time than the shares are judged with (`steal` of /proc/stat).
 */
#ifndef WHYLATE_TESTS_DISTURBED_H
#define WHYLATE_TESTS_DISTURBED_H

#include <stdint.h>

/* A moment, and the ticks of all CPUs since boot. */
struct machine_time {
	uint64_t ts, stolen, total;
};

/* Around the whole run. Without a watch only the stolen time is known. */
void disturbed_open(void);
void disturbed_close(void);
/* Around each test. */
void disturbed_begin(void);
void disturbed_end(void);
void machine_time_now(struct machine_time *now);
/* Between the two: the test under way ran then, in another process. */
void disturbed_ran(const struct machine_time *begin, const struct machine_time *end);
/* What disturbed the test of this name; NULL: nothing did. */
const char *disturbed_by(const char *test);

#endif
