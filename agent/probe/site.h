/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel does with a uprobe on one instruction: arch/x86/kernel/uprobes.c from 6.1 to 7.2 retold, and where it
 * is mistaken (it takes some vector instructions for jumps, a repeated one for many), refused here.
 */
#ifndef WHYLATE_PROBE_SITE_H
#define WHYLATE_PROBE_SITE_H

#include <stddef.h>
#include <stdint.h>

enum site_kind {
	SITE_EMULATED,
	SITE_LONG_NOP, /* of two to eight bytes: emulated from 6.18 on, stepped before */
	/*
	 * Of five bytes.  The same, but 6.18 makes it a call in the end, which writes below the stack pointer: it must
	 * not be where a leaf function keeps its variables there.
	 */
	SITE_CALLABLE_NOP,
	SITE_STEPPED,
	SITE_REFUSED, /* by the kernel or, where that would harm the target, by us */
};

/* `len` bytes are one instruction.  why: static text, set when it is refused. */
enum site_kind site_judge(const uint8_t *bytes, size_t len, const char **why);

#endif
