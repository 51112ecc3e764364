/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the agent tells the kernel side about each probe: an entry of the map probe_specs.  A site's attach cookie names
 * the spec and says how far the site's stack pointer is from the frame.
 */
#ifndef WHYLATE_BPF_PROBE_SPEC_H
#define WHYLATE_BPF_PROBE_SPEC_H

#include "knobs.h"

#define PROBE_SPECS_MAX 8192

/* The link names no process: whoever runs the file comes by. */
#define PROBE_COOKIE_WIDE (1U << 31)

#define PROBE_COOKIE(spec, bias)  ((u64)(u32)(bias) << 32 | (u32)(spec))
#define PROBE_COOKIE_SPEC(cookie) ((u32)(cookie) & ~PROBE_COOKIE_WIDE)
#define PROBE_COOKIE_BIAS(cookie) ((s64)(cookie) >> 32)

enum spec_role {
	SPEC_FUNCTION,
	SPEC_INTERVAL,
	SPEC_BEGIN,
	SPEC_END,
	SPEC_WORK,
	SPEC_ACQUIRE,
	SPEC_RELEASE,
	SPEC_ENQUEUE,
	SPEC_DEQUEUE,
	SPEC_WATCH, /* the values are sent, and nothing is made of them */
};

enum spec_flag {
	SPEC_TIMED = 1,     /* calls in selected intervals are invocations */
	SPEC_CALL_ADDR = 2, /* with the address that they return to */
	SPEC_AT_EXIT = 4,   /* the role happens at the exit */
	SPEC_URETPROBE = 8, /* the exit is a uretprobe */
	SPEC_ON_STACK = 16, /* calls are kept track of even where no selected interval is worked for */
	SPEC_OFF = 32,      /* it is detached: the probes that are still there do nothing */
	SPEC_WIDE = 64, /* hits of links that name no process count, those of others do not; without it, vice versa */
};

enum operand_kind {
	OPERAND_NONE,
	OPERAND_CONST,
	OPERAND_REG,
	OPERAND_MEMORY, /* sz bytes at reg + idx << idx_shift + value */
	OPERAND_TID,
};

#define OPERAND_NO_REG (-1)

/* One value of the target: what a register, memory or a constant says, and perhaps what lies where that points to. */
struct operand {
	u8 kind;      /* enum operand_kind */
	u8 sz;        /* 1, 2, 4, 8: what is kept of it */
	u8 is_signed; /* then extended by its sign */
	u8 shift;     /* of a register, to the right */
	u8 idx_shift;
	u8 deref_sz;  /* 4 or 8: in place of the value, so many bytes at value + deref_off; 0: the value itself */
	u8 at_exit;   /* a register that has its value at the exit */
	u8 is_string; /* it points to a text, for which it stands */
	s16 reg_off;  /* in struct pt_regs */
	s16 idx_off;
	s32 deref_off;
	s64 value;
};

#define SPEC_OPERANDS 2

struct probe_spec {
	u32 role; /* enum spec_role */
	u32 func;
	u32 flags;                              /* enum spec_flag */
	u32 line;                               /* lower half of an interval's type */
	struct operand operands[SPEC_OPERANDS]; /* key, object or task; queue or type */
};

struct probe_hit_count {
	u64 entries, exits;
};

_Static_assert(sizeof(struct operand) == 24, "operand");
_Static_assert(sizeof(struct probe_spec) == 64, "probe spec");

#endif
