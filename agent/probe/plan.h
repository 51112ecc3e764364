/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The planner (DESIGN §5, 1-3): where exactly to probe a function so that a hit costs little, counts each call once and
 * leaves the target unharmed.  A pure function of the code; nothing is attached here.
 *
 * frame: the stack pointer at the function's first instruction (on x86 the return address lies there).  It names the
 * invocation.  Wherever a site is, rsp + sp_bias == frame; after a uretprobe, rsp == frame + 8 on x86.
 */
#ifndef WHYLATE_PROBE_PLAN_H
#define WHYLATE_PROBE_PLAN_H

#include "base/vec.h"
#include "target/program.h"

#include <stdbool.h>
#include <stdint.h>

enum plan_cost {
	PLAN_EMULATED, /* the kernel does what the instruction does: about half a microsecond a hit */
	PLAN_STEPPED,  /* the kernel executes a copy in single-step mode: about ten in a virtual machine */
	PLAN_COST_CNT
};

struct plan_site {
	uint64_t file_off;
	uint32_t sp_bias; /* bytes; 0 at function entry and at `ret` */
	enum plan_cost cost;
};

enum plan_exit { PLAN_EXIT_NONE, PLAN_EXIT_URETPROBE, PLAN_EXIT_SITES };

/* What a probe reads; all zero: only the time of the entry. */
struct plan_needs {
	bool exit;  /* the end of the call, too */
	bool whole; /* that end and no earlier one: not the jump by which it hands its caller on to another function */
	uint8_t args;      /* bit i: argument register i (rdi, rsi, rdx, rcx, r8, r9) at entry */
	bool memory;       /* what an argument points at, at entry */
	bool flags;        /* CPU flags at entry */
	bool no_long_nops; /* this kernel steps multi-byte nops (before 6.18): they are no fast sites */
};

struct plan {
	uint32_t function;
	bool possible;   /* false: not at all, see why */
	const char *why; /* why not; or why the entry is a slow site; NULL: nothing to say.  Static text */
	struct plan_site entry;
	enum plan_exit exit;
	const char *exit_why;   /* why no uretprobe, and why nothing at all; NULL: nothing to say */
	uint64_t uretprobe_off; /* PLAN_EXIT_URETPROBE: there [rsp] is the return address; entry.file_off where that is
				   one */
	/* PLAN_EXIT_SITES: every `ret` and tail jump, by file offset; of a whole call there is no tail jump. */
	VEC(struct plan_site) exits;
};

/*
 * 0, also when the function cannot be probed (`possible` is false and `why` tells), or -errno when the planner itself
 * fails (-ENOMEM; -EINVAL: no such function).  The plan is the caller's: plan_free().
 */
int plan_make(struct program *program, uint32_t function, const struct plan_needs *needs, struct plan *plan);
void plan_free(struct plan *plan);
/* Where its entry site lies in the live process, now: each call executes it once.  0: nowhere. */
uint64_t plan_runtime_addr(struct program *program, const struct plan *plan);

/*
 * A single site that somebody else chose (a USDT marker): its cost class, or why the kernel or good sense forbids it.
 * 0, -ENOTSUP with why (static text), or -errno.
 */
int plan_site_check(struct program *program, uint32_t module, uint64_t file_off, enum plan_cost *cost,
		    const char **why);

const char *plan_cost_name(enum plan_cost cost); /* "emulated", "stepped" */
const char *plan_exit_name(enum plan_exit exit); /* "none", "uretprobe", "sites" */

/* The plan in words, a line each (site, instruction, cost class; exits; reasons).  0 or -ENOMEM; plan_lines_free(). */
typedef VEC(char *) plan_lines;
int plan_describe(struct program *program, const struct plan *plan, plan_lines *lines);
void plan_lines_free(plan_lines *lines);
/* "push   %rbp": the instruction at a file offset in the assembler's words; "?" when there is none. */
void plan_instruction(struct program *program, uint32_t module, uint64_t file_off, char *buf, size_t sz);

#endif
