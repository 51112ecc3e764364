/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The values of the variables that a schema has at a frame: from the frame's registers, a copy of the stack, and words
 * of memory that were read at the moment of the sample.  What cannot be read is counted, never guessed.
 */
#ifndef WHYLATE_VALUES_READER_H
#define WHYLATE_VALUES_READER_H

#include "target/unwind_rules.h"
#include "values/plan.h"
#include "values/schema.h"

/* `size` bytes of the process's memory, zero-extended. */
struct value_word {
	uint64_t addr, bytes;
	uint8_t size;
};

struct value_memory {
	struct unwind_memory stack;
	const struct value_word *words;
	size_t word_cnt;
};

struct value_frame {
	uint64_t addr; /* by which its code is looked up, as linked; of a caller, within its call */
	uint64_t bias; /* of the module: runtime address - address as linked */
	uint64_t cfa;  /* 0: not known */
	const struct unwind_regs *regs;
	bool is_caller; /* only registers that calls preserve hold what they held before it */
	/* Of the stack's innermost frame, which still has what no call has changed; NULL: not known. */
	const struct unwind_regs *innermost;
};

struct value_read_counts {
	uint64_t read;
	uint64_t no_register; /* its register is not recorded, or not known in that caller */
	uint64_t no_memory;   /* it lies in memory that was not read */
	uint64_t not_set;     /* what lies there is no value of its type: the program has not set it yet */
};

struct value_reader;

/* The schema lives longer.  0 or -ENOMEM. */
int value_reader__new(const struct value_schema *schema, struct value_reader **reader);
void value_reader__free(struct value_reader *reader); /* NULL-safe */

/* Each local that has a place at the frame; 0, or what `take` returned.  `is_word`: the kernel has read it. */
typedef int (*value_taker)(void *owner, uint32_t variable, uint64_t bytes, bool is_word);
int value_reader__locals(const struct value_reader *reader, const struct value_frame *frame,
			 const struct value_memory *memory, struct value_read_counts *counts, value_taker take,
			 void *owner);
/* Does a call leave what is in it as it is? DWARF's number. */
bool value_register_is_kept(uint8_t reg);
/*
 * Each member that a pointer of a caller's frame leads to: how to read it, by registers that this call keeps.  `addr`
 * is that of value_frame; `rule`: where the frame is, NULL: not known.
 */
typedef int (*value_read_taker)(void *owner, uint32_t variable, const struct value_read *read);
int value_reader__caller_reads(const struct value_reader *reader, uint64_t addr, const struct value_frame_rule *rule,
			       value_read_taker take, void *owner);
/* Each global that is among the words. */
int value_reader__globals(const struct value_reader *reader, uint64_t bias, const struct value_memory *memory,
			  struct value_read_counts *counts, value_taker take, void *owner);

#endif
