/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of user stacks, unwound, become samples with a weight.  What was running stands for the clock's period; the
 * stack of a wait is held until the record of the wait's end says for how long it was, and stands for the waits that
 * were passed over, too.  Both stand for the intervals that were not selected.
 *
 * The two records of a wait may come in either order, as they may come out of two rings.  Memory is bounded: what
 * loses its place to another one is counted.  One thread only, no I/O.
 */
#ifndef WHYLATE_MODEL_STACK_SAMPLES_H
#define WHYLATE_MODEL_STACK_SAMPLES_H

#include <whylate/record.h>

#include "target/unwind.h"

struct stack_sample {
	uint64_t ts;
	uint64_t end_ts;  /* of a wait; 0: a tick */
	double period_ns; /* of a tick: weight_ns without the selection's weight */
	uint64_t sid;     /* 0: none */
	uint64_t object;
	uint32_t pid, tid;
	uint32_t cpu;
	enum wl_state state;
	double weight_ns;
	const struct unwind_frame *frames; /* innermost first */
	size_t frame_cnt;
	bool complete; /* up to the beginning of the thread */
};

/* 0 or -errno, which ends the call under way. */
typedef int (*stack_sink)(void *owner, const struct stack_sample *sample);

struct stack_sample_counts {
	uint64_t stacks, waits;     /* records taken */
	uint64_t complete, guessed; /* stacks up to the beginning; with frames that are guesses */
	uint64_t open;              /* waits whose end has not come */
	uint64_t displaced;         /* waits, or ends of waits, that lost their place */
	uint64_t impossible;        /* records that cannot be true */
};

struct stack_samples;

struct stack_samples *stack_samples__new(stack_sink sink, void *owner); /* NULL: out of memory */
void stack_samples__free(struct stack_samples *samples);                /* NULL-safe */

/* A stack and what unwinding made of it. 0, -ENOMEM or the sink's. */
int stack_samples__take(struct stack_samples *samples, const struct wl_stack_record *record,
			const struct unwind_frame *frames, size_t frame_cnt, enum unwind_end end);
int stack_samples__take_wait(struct stack_samples *samples, const struct wl_stack_wait_record *record);
void stack_samples__counts(const struct stack_samples *samples, struct stack_sample_counts *counts);

#endif
