/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of stacks become samples, which are kept and forgotten with their intervals.
 *
 * A tick has its stack; a wait has that of its key, or the copy that was sent when it began.  A sample of a thread that
 * works for a selected interval waits here until the interval has ended: if it is kept, so is the sample, with the
 * interval's weight.  A sample of a thread that delays intervals is kept if a kept interval was under way meanwhile;
 * its own interval, if it has one that is not kept, is not told then.
 *
 * Records come out of several rings: nothing is decided before everything that was sent until then has come.  Memory is
 * bounded: the oldest samples go first, and are counted.  taken = given + forgotten + open.  One thread only, no I/O.
 */
#ifndef WHYLATE_MODEL_STACK_SAMPLES_H
#define WHYLATE_MODEL_STACK_SAMPLES_H

#include <whylate/record.h>

#include "model/stack_texts.h"

/* What variables held at one tick; one allocation, the sample's. */
struct stack_values {
	size_t cnt;
	struct stack_value {
		uint64_t value;
		uint32_t variable; /* STACK_NO_VARIABLE: only the place counts */
		uint32_t place;
		uint32_t depth; /* 0: the innermost frame */
		uint32_t turn;  /* it is read there at one of so many ticks */
	} items[];
};

#define STACK_NO_VARIABLE UINT32_MAX

struct stack_sample {
	uint64_t ts;
	uint64_t end_ts;  /* of a wait; 0: a tick */
	double period_ns; /* of a tick, without any weight */
	double weight_ns; /* of its state, in all intervals, that it stands for */
	uint64_t sid;     /* 0: none */
	uint64_t context; /* of that interval */
	uint64_t object;
	uint32_t pid, tid, cpu;
	uint32_t delays; /* of a tick or a wait without an interval: selected intervals that it delays, at most */
	uint32_t rate;   /* of its interval, or as it was */
	enum wl_state state;
	bool kernel_tick;            /* a tick of the kernel's clock, not of ours */
	struct stack_text *user;     /* never NULL */
	struct stack_text *kernel;   /* NULL: in user space, or not known */
	struct stack_values *values; /* of a tick; NULL: none were taken */
};

struct stack_sinks {
	/* A sample that is kept. 0 or -errno, which ends the call under way. */
	int (*give)(void *owner, const struct stack_sample *sample);
	/* Every sample, kept or not, before it is decided, of weight_ns by its interval's selection; may be NULL. */
	int (*see)(void *owner, const struct stack_sample *sample);
	/* The key's waits have another stack than the one that is known, or it is known no longer. */
	void (*doubt)(void *owner, uint64_t key, bool is_ambiguous);
	void *owner;
};

struct stack_sample_counts {
	uint64_t stacks, waits;     /* records taken */
	uint64_t complete, guessed; /* stacks up to the beginning; with frames that are guesses */
	uint64_t taken, given;      /* samples */
	uint64_t forgotten;         /* with an interval that was not kept, or that made no difference to one */
	uint64_t crowded;           /* of them, those that found no room until their interval ended */
	uint64_t open;
	uint64_t keys;           /* of waits, that were seen at all */
	uint64_t checks, wrong;  /* stacks that were copied again; of them, those that had changed */
	uint64_t wrong_keys;     /* keys of which that was ever so */
	uint64_t unknown;        /* waits whose stack is not known */
	uint64_t impossible;     /* records that cannot be true */
	uint64_t values_crowded; /* samples that lost their values, for want of room until their interval ended */
};

struct stack_samples;

/* The texts are the caller's, and live longer.  NULL: out of memory. */
struct stack_samples *stack_samples__new(struct stack_texts *texts, const struct stack_sinks *sinks);
void stack_samples__free(struct stack_samples *samples); /* NULL-safe */

/*
 * A stack and what unwinding made of it: the texts' references and the values (NULL: none) become the samples', also on
 * failure. 0 or -ENOMEM.
 */
int stack_samples__take(struct stack_samples *samples, const struct wl_stack_record *record, struct stack_text *user,
			struct stack_text *kernel, struct stack_values *values);
int stack_samples__take_wait(struct stack_samples *samples, const struct wl_stack_wait_record *record);
/* An interval has ended, and stands for `weight` of its like; 0: it is not kept. 0 or -ENOMEM. */
int stack_samples__interval(struct stack_samples *samples, uint64_t sid, uint64_t begin_ts, uint64_t end_ts,
			    double weight);
/* Everything that was sent until then has been taken. 0, -ENOMEM or the sink's. */
int stack_samples__advance(struct stack_samples *samples, uint64_t polled_ts);
/* Nothing more will come. */
int stack_samples__finish(struct stack_samples *samples);
void stack_samples__counts(const struct stack_samples *samples, struct stack_sample_counts *counts);

#endif
