/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two clocks sample the same work: the kernel's tick, which is in phase with timers and with what wakes by them, and a
 * jittered one.  Where they do not agree, the kernel's tick beats with the work.  Pure; one thread only.
 */
#ifndef WHYLATE_MODEL_STACK_BEAT_H
#define WHYLATE_MODEL_STACK_BEAT_H

#include <stdbool.h>
#include <stdint.h>

#define STACK_BEAT_LEAVES 64

struct stack_beat {
	uint64_t cnt[2];                       /* ticks: jittered, of the kernel */
	uint64_t leaves[2][STACK_BEAT_LEAVES]; /* by hash of the function on the CPU */
	double expected, variance;             /* of cnt[1], if there is no beat */
};

enum stack_beat_kind {
	STACK_BEAT_NONE,
	STACK_BEAT_RATE,    /* the kernel's tick finds more at work, or less */
	STACK_BEAT_PROFILE, /* it finds something else at work */
};

/* kernel_share: of the ticks, by the rates in force. */
void stack_beat__add(struct stack_beat *beat, bool is_kernel, double kernel_share, const char *frames);
enum stack_beat_kind stack_beat__found(const struct stack_beat *beat);

#endif
