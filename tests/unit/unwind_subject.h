/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of all shapes, compiled without frame pointers and without sanitizers, for the unwinder to find its way in. */
#ifndef WHYLATE_TESTS_UNWIND_SUBJECT_H
#define WHYLATE_TESTS_UNWIND_SUBJECT_H

#include <whylate/record.h>

#include "target/unwind.h"

#define SUBJECT_FRAMES_MAX 256
#define SUBJECT_KEPT       6

/* A thread's own view of itself. */
struct subject_view {
	uint64_t regs[WL_STACK_REGS];
	uint8_t stack[WL_STACK_SZ_MAX];
	size_t stack_sz;
	size_t stack_wanted;
	uint64_t backtrace[SUBJECT_FRAMES_MAX]; /* by libgcc, innermost first: return addresses */
	/* Likewise, what the registers subject_kept hold in these frames. */
	uint64_t kept[SUBJECT_FRAMES_MAX][SUBJECT_KEPT];
	size_t backtrace_cnt;
};

/* Registers that calls preserve, by DWARF's numbers. */
extern const uint8_t subject_kept[SUBJECT_KEPT];

/* Takes the view of whoever calls it: its registers as they are when this returns. */
void subject_look(struct subject_view *view);

/* Calls look() below frames of the given shape. */
enum subject_shape {
	SUBJECT_PLAIN,
	SUBJECT_BIG,     /* a frame of some KiB */
	SUBJECT_ALLOCA,  /* its size is known at run time only */
	SUBJECT_ALIGNED, /* realigned: the stack pointer is no help */
	SUBJECT_POINTER, /* by a function pointer */
	SUBJECT_QSORT,   /* from within the C library */
	SUBJECT_SHAPE_CNT,
};
void subject_call(enum subject_shape shape, struct subject_view *view);
/* All shapes, one in the other, `rounds` times. */
void subject_call_nested(int rounds, struct subject_view *view);

#endif
