/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Critical sections of one function, read from its machine code (Whodunit §3): which values that come from outside of
 * a section are written to shared memory in it, and which of those that are read from shared memory in it are used
 * behind it.  Sections within sections count as the outermost.  Constants and what was computed are no such values.
 * What it finds is likely, not certain: rounds/queues.h looks at the values themselves.
 */
#ifndef WHYLATE_PROBE_SECTIONS_H
#define WHYLATE_PROBE_SECTIONS_H

#include "target/call_sites.h"

/* What a call does. */
enum section_call {
	SECTION_CALL_NONE,
	SECTION_CALL_LOCK,
	SECTION_CALL_TRY_LOCK,
	SECTION_CALL_UNLOCK,
	SECTION_CALL_WAIT,     /* for the condition of a section */
	SECTION_CALL_WAKE,     /* a thread that waits */
	SECTION_CALL_DOWN,     /* a semaphore: it waits */
	SECTION_CALL_UP,       /* … and wakes */
	SECTION_CALL_EXCHANGE, /* a short function that exchanges what lies in memory: a lock of the program's own */
	SECTION_CALL_ENDS,     /* it does not return: it throws, or ends the process */
};

/* Tags of call targets: what the call does, and which argument is the lock (-1: none is). */
#define SECTION_TAG(calls, lock_arg) ((uint32_t)(calls) | (uint32_t)((lock_arg) + 1) << 8)
#define SECTION_TAG_CALLS(tag)       ((tag) & 0xff)
#define SECTION_TAG_LOCK_ARG(tag)    ((int)((tag) >> 8) - 1)

/* Likely where there is a queue without a lock. */
static inline bool section_call_exchanges(uint32_t calls)
{
	return calls == SECTION_CALL_EXCHANGE || calls == SECTION_CALL_DOWN || calls == SECTION_CALL_UP;
}

/* Where a value lies at one instruction. */
struct section_place {
	uint8_t reg; /* CODE_NO_REG: nowhere */
	bool in_memory;
	uint8_t sz;   /* 4 or 8 bytes */
	int32_t disp; /* in_memory: at reg + disp */
};

/* One value that goes into shared memory, or comes out. */
struct section_use {
	bool out;
	uint64_t addr; /* of the call that takes the outermost lock, or gives it back; 0: the value is known by arg only
			*/
	int lock_arg;  /* of the call at addr: the argument that is the lock; -1: none is */
	struct section_place place; /* at addr */
	int arg;           /* in: argument that the value is; out: argument that points to where it is left; -1: none */
	int32_t off;       /* out: behind that pointer */
	bool returned;     /* out: by the function */
	bool handed;       /* it passes through a function that is called in the section */
	bool only_written; /* out: what it points to is written and not read, as of new memory */
	bool lockless;     /* found by sections_find_lockless() */
};

struct sections {
	VEC(struct section_use) uses; /* each once */
	bool locks, unlocks; /* it takes a lock for its caller, or gives it back, and does nothing else with locks */
	int lock_arg;        /* … which is that argument of its own; -1: none */
	bool waits, wakes;
	bool takes;     /* it calls a function that takes a lock */
	bool exchanges; /* what lies in memory, or by a call; or it calls a semaphore */
};

/*
 * targets: of the function's module, with tags by SECTION_TAG().  0, also where its code is not understood, or -ENOMEM.
 * sections_free() in any case.
 */
int sections_find(struct program *program, uint32_t function, const struct call_targets *targets,
		  struct sections *sections);
/*
 * Likewise of a function that calls none which takes a lock, but exchanges what lies in memory at once, as queues
 * without locks do and locks that are the program's own, or calls a semaphore: as if the whole of it were a section.
 * That is less likely: values are looked for near such an instruction, or are arguments and results.
 */
int sections_find_lockless(struct program *program, uint32_t function, const struct call_targets *targets,
			   struct sections *sections);
void sections_free(struct sections *sections);

#endif
