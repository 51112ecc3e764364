// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/reader.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Spans that may begin between an address and the ones that have it. */
#define SPANS_MAX 65536
/* rax, x0: what a call returns is no value from before it. */
#define VALUE_RESULT_REG 0

/* One location of a local, by its beginning; `furthest` is the largest end so far. */
struct span {
	uint64_t begin, end, furthest;
	uint32_t variable, location;
};

struct global {
	uint64_t addr; /* as linked */
	uint32_t variable;
};

struct value_reader {
	const struct value_schema *schema;
	VEC(struct span) spans;
	VEC(struct global) globals; /* by addr */
};

ORDER(compare_globals, struct global, BY(a->addr, b->addr));

ORDER(compare_spans, struct span, BY(a->begin, b->begin), BY(a->variable, b->variable));

int value_reader__new(const struct value_schema *schema, struct value_reader **made)
{
	struct value_reader *reader = calloc(1, sizeof(*reader));
	uint64_t furthest = 0;

	if (!reader)
		return -ENOMEM;
	reader->schema = schema;
	for (uint32_t v = 0; v < schema->variables.cnt; v++) {
		const struct value_variable *variable = &schema->variables.items[v];

		if (variable->tags & VALUE_TAG_GLOBAL) {
			const struct value_location *location = &schema->locations.items[variable->first_location];

			if (variable->location_cnt && location->place == VALUE_AT_ADDRESS &&
			    vec_push(&reader->globals, ((struct global){(uint64_t)location->off, v})))
				goto no_memory;
			continue;
		}
		for (uint32_t l = 0; l < variable->location_cnt; l++) {
			const struct value_location *location = &schema->locations.items[variable->first_location + l];

			if (vec_push(&reader->spans, ((struct span){.begin = location->pc_begin,
								    .end = location->pc_end,
								    .variable = v,
								    .location = variable->first_location + l})))
				goto no_memory;
		}
	}
	vec_sort(&reader->spans, compare_spans);
	vec_sort(&reader->globals, compare_globals);
	for (size_t i = 0; i < reader->spans.cnt; i++) {
		furthest = reader->spans.items[i].end > furthest ? reader->spans.items[i].end : furthest;
		reader->spans.items[i].furthest = furthest;
	}
	*made = reader;
	return 0;
no_memory:
	value_reader__free(reader);
	return -ENOMEM;
}

void value_reader__free(struct value_reader *reader)
{
	if (!reader)
		return;
	vec_free(&reader->spans);
	vec_free(&reader->globals);
	free(reader);
}

/* --- one value ---------------------------------------------------------------------------------------------------- */

bool value_register_is_kept(uint8_t reg)
{
#if defined(__aarch64__)
	return (reg >= 19 && reg <= 29) || reg == WL_STACK_REG_SP;
#else
	return reg == 3 || reg == 6 || reg == WL_STACK_REG_SP || (reg >= 12 && reg <= 15);
#endif
}

/*
 * Where the compiler knows what the callee and all that it calls change (gcc -fipa-ra, of functions of the same file),
 * it keeps values in other registers, too: then the place holds before the call and where it returns to.  `addr` lies
 * in the call, whose last byte it is.
 */
static bool outlasts_call(uint64_t addr, const struct value_location *location)
{
	return location->reg != VALUE_RESULT_REG && location->pc_end > addr + 1;
}

static bool register_value(const struct value_frame *frame, const struct value_location *location, uint64_t *value)
{
	const struct unwind_regs *regs = frame->regs;
	uint8_t reg = location->reg;

	/* By the unwinding tables it is not known. */
	if (frame->is_caller && !value_register_is_kept(reg))
		regs = outlasts_call(frame->addr, location) ? frame->innermost : NULL;
	if (!regs || reg >= UNWIND_REGS || reg == WL_STACK_REG_PC || !(regs->known >> reg & 1))
		return false;
	*value = regs->values[reg];
	return true;
}

static uint64_t low_bytes(uint64_t word, uint8_t size)
{
	return size < sizeof(word) ? word & ((1ULL << (8 * size)) - 1) : word;
}

static bool read_memory(const struct value_memory *memory, uint64_t addr, uint8_t size, uint64_t *value, bool *is_word)
{
	const struct unwind_memory *stack = &memory->stack;

	*is_word = false;
	if (addr >= stack->addr && addr - stack->addr <= stack->sz && stack->sz - (addr - stack->addr) >= size) {
		*value = 0;
		memcpy(value, stack->bytes + (addr - stack->addr), size);
		return true;
	}
	for (size_t i = 0; i < memory->word_cnt; i++) {
		if (memory->words[i].addr == addr && memory->words[i].size >= size) {
			*value = low_bytes(memory->words[i].bytes, size);
			*is_word = true;
			return true;
		}
	}
	return false;
}

enum outcome { READ, NO_REGISTER, NO_MEMORY, NOT_SET };

/* What lies at the location: the variable, or the pointer that leads to it. */
static enum outcome at_location(const struct value_location *location, uint8_t size, const struct value_frame *frame,
				const struct value_memory *memory, uint64_t *value, bool *is_word)
{
	uint64_t base = 0;

	switch (location->place) {
	case VALUE_IN_REGISTER:
		return register_value(frame, location, value) ? READ : NO_REGISTER;
	case VALUE_IS_SUM:
		if (!register_value(frame, location, &base))
			return NO_REGISTER;
		*value = base + (uint64_t)location->off;
		return READ;
	case VALUE_AT_REGISTER:
		if (!register_value(frame, location, &base))
			return NO_REGISTER;
		break;
	case VALUE_AT_CFA:
		if (!frame->cfa)
			return NO_REGISTER;
		base = frame->cfa;
		break;
	default:
		base = frame->bias;
		break;
	}
	return read_memory(memory, base + (uint64_t)location->off, size, value, is_word) ? READ : NO_MEMORY;
}

static int read_one(const struct value_schema *schema, uint32_t number, const struct value_location *location,
		    const struct value_frame *frame, const struct value_memory *memory,
		    struct value_read_counts *counts, value_taker take, void *owner)
{
	const struct value_variable *variable = &schema->variables.items[number];
	bool is_member = variable->member_off >= 0, is_word = false;
	uint64_t value = 0;
	enum outcome outcome =
		at_location(location, is_member ? sizeof(uint64_t) : variable->size, frame, memory, &value, &is_word);

	if (outcome == READ && is_member &&
	    !read_memory(memory, value + (uint64_t)variable->member_off, variable->size, &value, &is_word))
		outcome = NO_MEMORY;
	if (outcome == READ && variable->kind == VALUE_BOOL && low_bytes(value, variable->size) > 1)
		outcome = NOT_SET;
	counts->not_set += outcome == NOT_SET;
	counts->read += outcome == READ;
	counts->no_register += outcome == NO_REGISTER;
	counts->no_memory += outcome == NO_MEMORY;
	return outcome == READ ? take(owner, number, low_bytes(value, variable->size), is_word) : 0;
}

/* What holds at an address, from the innermost scope outwards. */
struct span_walk {
	const struct value_reader *reader;
	uint64_t addr;
	size_t left, steps;
};

static void walk_begin(struct span_walk *walk, const struct value_reader *reader, uint64_t addr)
{
	const struct span *spans = reader->spans.items;

	*walk = (struct span_walk){.reader = reader, .addr = addr};
	/* The first one that begins beyond the address. */
	walk->left = search_first(0, reader->spans.cnt, mid, spans[mid].begin > addr);
}

static const struct span *walk_next(struct span_walk *walk)
{
	const struct span *spans = walk->reader->spans.items;

	/* A schema that lies has a span around all others. */
	while (walk->left && spans[walk->left - 1].furthest > walk->addr && walk->steps++ < SPANS_MAX)
		if (spans[--walk->left].end > walk->addr)
			return &spans[walk->left];
	return NULL;
}

int value_reader__locals(const struct value_reader *reader, const struct value_frame *frame,
			 const struct value_memory *memory, struct value_read_counts *counts, value_taker take,
			 void *owner)
{
	const struct span *span;
	struct span_walk walk;
	int err = 0;

	walk_begin(&walk, reader, frame->addr);
	while (!err && (span = walk_next(&walk)))
		err = read_one(reader->schema, span->variable, &reader->schema->locations.items[span->location], frame,
			       memory, counts, take, owner);
	return err;
}

int value_reader__caller_reads(const struct value_reader *reader, uint64_t addr, const struct value_frame_rule *rule,
			       value_read_taker take, void *owner)
{
	const struct value_schema *schema = reader->schema;
	const struct span *span;
	struct value_read read;
	struct span_walk walk;
	int err = 0;

	walk_begin(&walk, reader, addr);
	while (!err && (span = walk_next(&walk)))
		if (schema->variables.items[span->variable].member_off >= 0 &&
		    value_read_make(&schema->variables.items[span->variable], &schema->locations.items[span->location],
				    rule, &read) &&
		    (value_register_is_kept(read.reg) || outlasts_call(addr, &schema->locations.items[span->location])))
			err = take(owner, span->variable, &read);
	return err;
}

int value_reader__globals(const struct value_reader *reader, uint64_t bias, const struct value_memory *memory,
			  struct value_read_counts *counts, value_taker take, void *owner)
{
	int err = 0;

	for (size_t w = 0; w < memory->word_cnt && reader->globals.cnt && !err; w++) {
		struct global key = {.addr = memory->words[w].addr - bias};
		const struct global *found = bsearch(&key, reader->globals.items, reader->globals.cnt,
						     sizeof(*reader->globals.items), compare_globals);
		uint8_t size = found ? reader->schema->variables.items[found->variable].size : 0;

		if (!found || memory->words[w].size < size)
			continue;
		counts->read++;
		err = take(owner, found->variable, low_bytes(memory->words[w].bytes, size), true);
	}
	return err;
}
