// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any DWARF expressions and any location list as the places of variables, and as the frame base of a
 * function of any code, types that refer to one another in any way, in a file that is otherwise in order; then any
 * operations as the unwinder evaluates them.
 */
#include "dwarf_file.h"
#include "target/unwind_rules.h"
#include "values/plan.h"
#include "values/schema_build.h"
#include "values/step.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

#define EXPRESSION_MAX 100

/* code, tag, children, then pairs of attribute and form. */
static const uint8_t abbrevs[] = {
	1,  0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0,    0,          /* unit: name, low_pc, high_pc */
	2,  0x24, 0, 0x03, 0x08, 0x3e, 0x0b, 0x0b, 0x0b, 0,    0,          /* base type: name, encoding, size */
	3,  0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x40, 0x18, 0, 0, /* subprogram: + frame base */
	4,  0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0,    0,          /* variable: name, type, location */
	5,  0x16, 0, 0x49, 0x13, 0,    0,                                  /* typedef: type */
	6,  0x26, 0, 0x49, 0x13, 0,    0,                                  /* const: type */
	7,  0x0f, 0, 0x49, 0x13, 0,    0,                                  /* pointer: type */
	8,  0x13, 1, 0x03, 0x08, 0x0b, 0x0b, 0,    0,                      /* struct: name, size */
	9,  0x17, 1, 0x03, 0x08, 0x0b, 0x0b, 0,    0,                      /* union: name, size */
	10, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0,    0,          /* member: name, type, where */
	11, 0x0d, 0, 0x49, 0x13, 0x38, 0x0b, 0,    0,                      /* nameless member: type, where */
	12, 0x1c, 0, 0x49, 0x13, 0x38, 0x0b, 0,    0,                      /* base: type, where */
	13, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x17, 0,    0,          /* variable: name, type, location list */
	0,
};

/* Types: each is of a kind, and refers to others. */
#define TYPES 6
enum { TYPEDEF, CONST, POINTER, STRUCT, UNION, BASE, TYPE_KIND_CNT };

struct type {
	uint8_t kind, refs[3], offs[3], size;
};

struct expression {
	const uint8_t *bytes;
	uint8_t sz;
};

/* Only the kind says how long its entry is: where each one lies is known before they are put. */
static uint32_t type_sz(const struct type *type)
{
	static const uint32_t sizes[TYPE_KIND_CNT] = {
		[TYPEDEF] = 5, [CONST] = 5, [POINTER] = 5, [STRUCT] = 25, [UNION] = 25, [BASE] = 7};

	return sizes[type->kind % TYPE_KIND_CNT];
}

static void put_type(struct file *file, const struct type *type, const uint32_t offs[TYPES])
{
	size_t begin = file->sz;
	uint8_t kind = type->kind % TYPE_KIND_CNT;

	switch (kind) {
	case BASE:
		put_number(file, 2, 1);
		put(file, "int", 4);
		put_number(file, 5, 1);
		put_number(file, type->size, 1);
		break;
	case STRUCT:
	case UNION:
		put_number(file, kind == STRUCT ? 8 : 9, 1);
		put(file, "s", 2);
		put_number(file, type->size, 1);
		put_number(file, 10, 1);
		put(file, "m", 2);
		put_number(file, offs[type->refs[0] % TYPES], 4);
		put_number(file, type->offs[0], 1);
		for (int i = 1; i < 3; i++) {
			put_number(file, 10 + (uint64_t)i, 1);
			put_number(file, offs[type->refs[i] % TYPES], 4);
			put_number(file, type->offs[i], 1);
		}
		put_number(file, 0, 1);
		break;
	default:
		put_number(file, 5 + kind, 1);
		put_number(file, offs[type->refs[0] % TYPES], 4);
	}
	NEED(file->sz - begin == type_sz(type));
}

static void put_listed(struct file *file, const char *name, uint32_t type_off)
{
	put_number(file, 13, 1);
	put(file, name, strlen(name) + 1);
	put_number(file, type_off, 4);
	put_number(file, 0, 4);
}

static void put_variable(struct file *file, const char *name, uint32_t type_off, const struct expression *place)
{
	put_number(file, 4, 1);
	put(file, name, strlen(name) + 1);
	put_number(file, type_off, 4);
	put_number(file, place->sz, 1);
	put(file, place->bytes, place->sz);
}

static void put_info(struct file *info, const struct expression *base, const struct expression *place,
		     const struct type types[TYPES])
{
	uint32_t type_off, offs[TYPES], next;

	put_unit_begin(info);
	put_number(info, 1, 1);
	put(info, "unit.c", 7);
	put_number(info, TEXT_ADDR, 8);
	put_number(info, TEXT_SZ, 8);
	type_off = (uint32_t)info->sz;
	put_number(info, 2, 1);
	put(info, "int", 4);
	put_number(info, 5, 1);
	put_number(info, 4, 1);
	next = (uint32_t)info->sz;
	for (int t = 0; t < TYPES; t++) {
		offs[t] = next;
		next += type_sz(&types[t]);
	}
	for (int t = 0; t < TYPES; t++)
		put_type(info, &types[t], offs);
	put_variable(info, "global", type_off, place);
	put_variable(info, "typed", offs[0], place);
	put_number(info, 3, 1);
	put(info, "function", 9);
	put_number(info, TEXT_ADDR, 8);
	put_number(info, TEXT_SZ, 8);
	put_number(info, base->sz, 1);
	put(info, base->bytes, base->sz);
	put_variable(info, "local", type_off, place);
	put_variable(info, "other", type_off, base);
	put_variable(info, "typed", offs[1], place);
	put_listed(info, "listed", type_off);
	put_listed(info, "both", offs[2]);
	put_number(info, 0, 2); /* ends of the function and of the unit */
	put_unit_end(info);
}

static void make(struct file *file, const struct expression *base, const struct expression *place,
		 const struct type types[TYPES], const struct expression *list, const uint8_t text[TEXT_SZ])
{
	struct file info = {0};

	put_info(&info, base, place, types);
	dwarf_file_make(file, abbrevs, sizeof(abbrevs), &info, list->bytes, list->sz, text);
}

struct taking {
	const struct value_schema *schema;
	size_t cnt;
};

static int take(void *owner, uint32_t variable, uint64_t bytes, bool is_word)
{
	struct taking *taking = owner;

	(void)is_word;

	uint8_t size;

	NEED(variable < taking->schema->variables.cnt);
	size = taking->schema->variables.items[variable].size;
	NEED(size == 8 || !(bytes >> (8 * size)));
	taking->cnt++;
	return 0;
}

/* What the kernel is told to read of a caller is within its tables. */
static void read_of_caller(const struct value_reader *reader, uint64_t addr)
{
	struct value_frame_rule rule = {.reg = WL_STACK_REG_SP, .off = 32, .known = true};
	struct value_caller caller = {.read_cnt = 0};

	NEED(!value_caller_make(&caller, reader, addr, &rule));
	NEED(caller.read_cnt <= VALUE_FRAME_READS_MAX);
	for (uint32_t r = 0; r < caller.read_cnt; r++)
		NEED(caller.reads[r].reg < WL_STACK_REGS && caller.reads[r].sz <= 8);
	value_caller_free(&caller);
}

static void read_values(const struct value_schema *schema, const uint8_t *bytes, size_t sz)
{
	static uint8_t stack[256];
	struct unwind_regs regs = {.known = UINT64_MAX};
	struct value_memory memory = {.stack = {.bytes = stack, .addr = 0x7000, .sz = sizeof(stack)}};
	struct value_frame frame = {.cfa = 0x7080, .regs = &regs};
	struct value_read_counts counts = {0};
	struct taking taking = {.schema = schema};
	struct value_reader *reader;

	for (size_t i = 0; i < WL_STACK_REGS; i++)
		regs.values[i] = 0x7000 + (i < sz ? bytes[i] : 0);
	NEED(!value_reader__new(schema, &reader));
	for (frame.addr = TEXT_ADDR; frame.addr < TEXT_ADDR + TEXT_SZ; frame.addr += 7) {
		NEED(!value_reader__locals(reader, &frame, &memory, &counts, take, &taking));
		read_of_caller(reader, frame.addr);
	}
	NEED(!value_reader__globals(reader, 0, &memory, &counts, take, &taking));
	value_reader__free(reader);
}

/* What the kernel is told to read is within its tables, and is no more than the plan has. */
static void plan_reads(const struct value_schema *schema)
{
	struct value_planned *planned = calloc(schema->variables.cnt + 1, sizeof(*planned));
	struct value_plan plan = {.limits = {4, 6, 2}};

	NEED(planned && !value_plan_add(&plan, schema, 0, planned));
	for (size_t r = 0; r < plan.ranges.cnt; r++) {
		const struct value_range *range = &plan.ranges.items[r];

		NEED(range->begin < range->end && range->first + range->cnt <= plan.reads.cnt);
	}
	for (size_t r = 0; r < plan.reads.cnt; r++)
		NEED(plan.reads.items[r].reg < WL_STACK_REGS && plan.reads.items[r].sz <= 8);
	for (uint32_t p = 0, cnt; p < plan.parts.cnt; p += cnt)
		NEED((cnt = value_plan_fits(&plan, p)) >= 1);
	for (size_t v = 0; v < schema->variables.cnt; v++)
		NEED(planned[v].part == VALUE_NO_PART || planned[v].part < plan.parts.cnt);
	value_plan_free(&plan);
	free(planned);
}

/* How many variables have a place. */
static size_t check_file(const struct file *file, const uint8_t *bytes, size_t sz)
{
	const struct value_schema_opts opts = {.all_locals = true};
	struct value_schema schema;
	char path[64];
	size_t cnt;

	dwarf_file_path(file, path, sizeof(path));
	if (!value_schema_read(&schema, open(path, O_RDONLY | O_CLOEXEC), &opts)) {
		for (size_t i = 0; i < schema.variables.cnt; i++) {
			const struct value_variable *variable = &schema.variables.items[i];

			NEED(variable->name && variable->file && variable->size >= 1 && variable->size <= 8);
			NEED(variable->first_location + variable->location_cnt <= schema.locations.cnt);
		}
		read_values(&schema, bytes, sz);
		plan_reads(&schema);
	}
	cnt = schema.variables.cnt;
	value_schema_free(&schema);
	return cnt;
}

static void evaluate(const uint8_t *bytes, size_t sz)
{
	static const uint8_t stack[64];
	const struct unwind_memory memory = {.bytes = stack, .addr = 0x7000, .sz = sizeof(stack)};
	struct unwind_regs regs = {.known = 0xffff};
	struct unwind_op ops[32] = {0};
	size_t cnt = 0;
	uint64_t value;

	for (size_t i = 0; i < WL_STACK_REGS; i++)
		regs.values[i] = 0x7000 + 8 * i;
	for (; cnt < 32 && sz >= 3; cnt++, bytes += 3, sz -= 3)
		ops[cnt] = (struct unwind_op){.atom = bytes[0],
					      .number = bytes[1] & 0x80 ? (Dwarf_Word)(int8_t)bytes[1] : bytes[1],
					      .number2 = bytes[2],
					      .offset = cnt * 3};
	(void)unwind_evaluate(ops, cnt, &memory, &regs, 0x7020, &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static const uint8_t frame_base[] = {0x9c /* DW_OP_call_frame_cfa */}, fbreg[] = {0x91, 0x70};
	/* In the whole function in a register; the end of the list. */
	static const uint8_t one_place[8 + 8 + 2 + 1 + 16] = {[8] = TEXT_SZ, [16] = 1, [18] = 0x55};
	static bool tried;
	struct expression base = {frame_base, 1}, place = {fbreg, 2}, list = {one_place, sizeof(one_place)};
	struct type types[TYPES] = {{.kind = POINTER, .refs = {1}},
				    {.kind = STRUCT, .refs = {2, 1, 1}, .size = 8},
				    {.kind = BASE, .size = 4}};
	uint8_t text[TEXT_SZ] = {0x90};
	struct file file = {0};
	size_t used, types_sz = sizeof(types);

	/* The file is one that is understood: global, typed, local, other, listed, both. */
	if (!tried) {
		make(&file, &base, &place, types, &list, text);
		NEED(check_file(&file, bytes, 0) >= 3);
		tried = true;
	}
	if (sz < 3 + types_sz)
		return 0;
	base.sz = bytes[0] % EXPRESSION_MAX;
	place.sz = bytes[1] % EXPRESSION_MAX;
	list.sz = bytes[2];
	memcpy(types, bytes + 3, types_sz);
	used = 3 + types_sz + base.sz + place.sz + list.sz;
	if (used > sz)
		return 0;
	base.bytes = bytes + 3 + types_sz;
	place.bytes = base.bytes + base.sz;
	list.bytes = place.bytes + place.sz;
	memcpy(text, bytes + used, sz - used < TEXT_SZ ? sz - used : TEXT_SZ);
	make(&file, &base, &place, types, &list, text);
	check_file(&file, bytes, sz);
	evaluate(bytes, sz);
	return 0;
}
