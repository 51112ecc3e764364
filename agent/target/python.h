/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPython in a process: where it keeps the frames of its threads, for the kernel side to read while they are there, and
 * the names of the code objects that are found in them.  Versions 3.9 to 3.13; others are refused.  Nothing that the
 * process's memory says is trusted.  One thread only.
 */
#ifndef WHYLATE_TARGET_PYTHON_H
#define WHYLATE_TARGET_PYTHON_H

#include <whylate/record.h>

#include "bpf/python_layout.h"
#include "target/target.h"

struct python;

/*
 * Of a process by what it has mapped.  0, or -errno: -ENOENT there is none, -ENOTSUP another version or a build without
 * a lock, -ESRCH, -EACCES its memory cannot be read, -EAGAIN it has not begun.
 */
int python__open(pid_t pid, const target_mappings *mappings, struct python **python);
void python__free(struct python *python); /* NULL-safe */
const struct python_layout *python__layout(const struct python *python);
/* 0x030b for 3.11 */
uint16_t python__version(const struct python *python);
/* Does the address lie in the lock that lets one thread at a time run Python code: the main interpreter's GIL? */
bool python__is_gil(const struct python *python, uint64_t addr);
/*
 * "Shop.build (app.py:12)" of the code object at that address, with the line where the function begins; NULL: there is
 * none that can be read.  Valid until the next call.
 */
const char *python__name(struct python *python, uint64_t code);

/* Processes of the host whose program is called python3…, at most `max`, those with the highest PIDs: how many. */
size_t python_processes(pid_t *pids, size_t max);

/* What a frame of the C stack is to the frames of Python code. */
enum python_frame {
	PYTHON_FRAME_OTHER,
	PYTHON_FRAME_EVAL,        /* a call of the interpreter's loop, which runs one Python frame or more */
	PYTHON_FRAME_INTERPRETER, /* the interpreter's own code */
};

/* A frame of a call path: of the C stack, or of Python code. */
struct python_merged {
	uint64_t code; /* 0: the C frame of that index */
	size_t idx;
};

/*
 * A C stack and its thread's frames of Python code (wl_python_record), both innermost first, as one call path: calls of
 * the loop make room for the Python frames that they ran, and what the interpreter did between two of them and before
 * the first is left out.  Returns how many, at most max.
 */
size_t python_merge(const enum python_frame *frames, size_t frame_cnt, const uint64_t *code, size_t code_cnt,
		    struct python_merged *merged, size_t max);
/* Is a function of that name the interpreter's loop? */
bool python_is_loop(const char *function);

#endif
