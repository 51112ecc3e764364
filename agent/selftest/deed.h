/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the witness process of a self-test does, and what it knows of it by itself: its own clock (CLOCK_MONOTONIC, ns)
 * and the kernel's accounts (getrusage, /proc/interrupts, /proc/softirqs).
 */
#ifndef WHYLATE_SELFTEST_DEED_H
#define WHYLATE_SELFTEST_DEED_H

#include <whylate/record.h>

#include <stdint.h>

enum deed_kind {
#define DEED(id, name, feature, unit, measure, states) DEED_##id,
#include "selftest/deed.def"
	DEED_CNT
};

enum deed_measure {
	DEED_MEASURE_COUNT,
	DEED_MEASURE_CPU,
	DEED_MEASURE_SWITCH,
	DEED_MEASURE_ACCOUNT,
	DEED_MEASURE_WAIT,
	DEED_MEASURE_DISK,
};

/* How long a wait of known length is at least. */
#define DEED_WAIT_NS 20000000ULL

#define DEED_WHY_LEN 112

struct deed_report {
	uint32_t tid;                       /* who did it */
	uint32_t other_tid;                 /* the lock's owner, the hog of the CPU; 0: nobody */
	uint64_t before_ts, after_ts;       /* around the call of the probed function */
	uint64_t begin_ts, wake_ts, end_ts; /* of a wait: called, to be over, returned */
	uint64_t inner, outer;              /* the kernel's count within the call, and around it */
	uint64_t object;                    /* the lock's address */
	char why[DEED_WHY_LEN];             /* why it cannot be done on this machine, "": it was done */
};

#endif
