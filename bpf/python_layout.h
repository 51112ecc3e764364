/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where CPython keeps the frames of a thread: offsets in bytes, for one process.
 *
 * _PyRuntime leads to the interpreters, each to its threads, one of which has the thread pointer of the thread that is
 * looked at (as pthread_self() says).  From there the frames lead from callee to caller.
 */
#ifndef WHYLATE_BPF_PYTHON_LAYOUT_H
#define WHYLATE_BPF_PYTHON_LAYOUT_H

#ifndef __VMLINUX_H__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#define PYTHON_NO_OFF (~0U)

struct python_layout {
	u64 runtime;       /* address of _PyRuntime */
	u32 first_interp;  /* in _PyRuntime: a pointer, as all that follow where nothing else is said */
	u32 next_interp;   /* in an interpreter */
	u32 first_thread;  /* likewise */
	u32 next_thread;   /* in a thread */
	u32 thread_interp; /* likewise */
	u32 thread_id;     /* likewise: pthread_self() */
	u32 thread_frame;  /* likewise: the innermost frame, or what has it */
	u32 cframe_frame;  /* in what thread_frame leads to: the innermost frame; PYTHON_NO_OFF: that is it */
	u32 frame_back;    /* in a frame: its caller's */
	u32 frame_code;    /* likewise */
	u32 frame_mark;    /* likewise: a byte; PYTHON_NO_OFF: each frame has a call of the interpreter's for its own */
	u32 mark_shim;     /* the byte of a frame that has no code, between calls of the interpreter; 0: there is none,
			      and any other value than 0 marks the outermost frame of a call */
};

#endif
