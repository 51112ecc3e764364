/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For fuzzers: any tree of debugging information entries, whose types refer to any offset (themselves, each other, the
 * middle of an entry).
 */
#ifndef WHYLATE_TESTS_FUZZ_DWARF_TREE_H
#define WHYLATE_TESTS_FUZZ_DWARF_TREE_H

#include "dwarf_file.h"

#include <stdbool.h>

#define ENTRIES_MAX 100
#define DEPTH_MAX   60

/* code, tag, children, then pairs of attribute and form. */
static const uint8_t abbrevs[] = {
	1,  0x11, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0,    0,          /* unit: name, low_pc, high_pc */
	2,  0x24, 0, 0x03, 0x08, 0x3e, 0x0b, 0x0b, 0x0b, 0,    0,          /* base type: name, encoding, size */
	3,  0x16, 0, 0x03, 0x08, 0x49, 0x13, 0,    0,                      /* typedef: name, type */
	4,  0x26, 0, 0x49, 0x13, 0,    0,                                  /* const: type */
	5,  0x0f, 0, 0x49, 0x13, 0x0b, 0x0b, 0,    0,                      /* pointer: type, size */
	6,  0x13, 1, 0x03, 0x08, 0x0b, 0x0b, 0,    0,                      /* struct: name, size */
	7,  0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0,    0,          /* member: name, type, offset */
	8,  0x04, 1, 0x03, 0x08, 0x49, 0x13, 0x0b, 0x0b, 0,    0,          /* enumeration: name, type, size */
	9,  0x01, 1, 0x49, 0x13, 0,    0,                                  /* array: type */
	10, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0x40, 0x18, 0, 0, /* subprogram: + frame base */
	11, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0,    0,          /* variable: name, type, location */
	12, 0x05, 0, 0x31, 0x13, 0x02, 0x18, 0,    0,                      /* parameter: abstract origin, location */
	13, 0x0b, 1, 0,    0,                                              /* block */
	14, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0,    0,          /* inlined: abstract origin, pcs */
	15, 0x39, 1, 0x03, 0x08, 0,    0,                                  /* namespace: name */
	16, 0x17, 1, 0x47, 0x13, 0x0b, 0x0b, 0,    0,                      /* union: specification, size */
	17, 0x10, 0, 0x49, 0x13, 0,    0,                                  /* reference: type */
	0,
};
enum { LAST_CODE = 17 };

struct input {
	const uint8_t *bytes;
	size_t sz;
};

static inline uint8_t next(struct input *input)
{
	if (!input->sz)
		return 0;
	input->sz--;
	return *input->bytes++;
}

static inline void put_name(struct file *info, struct input *input)
{
	static const char *const names[] = {"", "a", "b", "count", "size_t", "item<int>", "_ZN1a1bEv", "%s%n\x1b[m"};

	const char *name = names[next(input) % (sizeof(names) / sizeof(names[0]))];

	put(info, name, strlen(name) + 1);
}

/* Within the unit most of the time. */
static inline void put_ref(struct file *info, struct input *input)
{
	put_number(info, (uint32_t)next(input) << 2 | (next(input) & 3), 4);
}

static inline void put_pcs(struct file *info, struct input *input)
{
	put_number(info, TEXT_ADDR + next(input) % TEXT_SZ, 8);
	put_number(info, next(input) % (2 * TEXT_SZ), 8);
}

/* A variable on the stack, at an address, or in a register. */
static inline void put_place(struct file *info, struct input *input)
{
	uint8_t choice = next(input);

	if (choice % 3 == 0) {
		put(info, "\x02\x91", 2);
		put_number(info, choice & 0x7f, 1);
	} else if (choice % 3 == 1) {
		put(info, "\x09\x03", 2);
		put_number(info, TEXT_ADDR + choice, 8);
	} else {
		put_number(info, 1, 1);
		put_number(info, 0x50 + choice % 16U, 1);
	}
}

static inline void put_attributes(struct file *info, struct input *input, unsigned int code)
{
	static const struct {
		bool name, ref, pcs, place, base;
		uint8_t numbers;
	} shapes[LAST_CODE + 1] = {
		[2] = {.name = true, .numbers = 2},
		[3] = {.name = true, .ref = true},
		[4] = {.ref = true},
		[5] = {.ref = true, .numbers = 1},
		[6] = {.name = true, .numbers = 1},
		[7] = {.name = true, .ref = true, .numbers = 1},
		[8] = {.name = true, .ref = true, .numbers = 1},
		[9] = {.ref = true},
		[10] = {.name = true, .pcs = true, .base = true},
		[11] = {.name = true, .ref = true, .place = true},
		[12] = {.ref = true, .place = true},
		[14] = {.ref = true, .pcs = true},
		[15] = {.name = true},
		[16] = {.ref = true, .numbers = 1},
		[17] = {.ref = true},
	};

	put_number(info, code, 1);
	if (shapes[code].name)
		put_name(info, input);
	if (shapes[code].ref)
		put_ref(info, input);
	if (shapes[code].pcs)
		put_pcs(info, input);
	for (int i = 0; i < shapes[code].numbers; i++)
		put_number(info, next(input), 1);
	if (shapes[code].place)
		put_place(info, input);
	if (shapes[code].base)
		put(info, "\x01\x9c", 2); /* DW_OP_call_frame_cfa */
}

static inline bool has_children(unsigned int code)
{
	return code == 6 || (code >= 8 && code <= 10) || (code >= 13 && code <= 16);
}

static inline void put_info(struct file *info, struct input *input)
{
	unsigned int depth = 1;

	put_unit_begin(info);
	put_number(info, 1, 1);
	put(info, "unit.c", 7);
	put_number(info, TEXT_ADDR, 8);
	put_number(info, TEXT_SZ, 8);
	for (int i = 0; i < ENTRIES_MAX && input->sz; i++) {
		unsigned int code = next(input) % (LAST_CODE + 1);

		if (code < 2) {
			/* The unit's own end comes last. */
			if (depth > 1) {
				put_number(info, 0, 1);
				depth--;
			}
		} else if (!has_children(code) || depth < DEPTH_MAX) {
			put_attributes(info, input, code);
			depth += has_children(code);
		}
	}
	for (; depth; depth--)
		put_number(info, 0, 1);
	put_unit_end(info);
}

#endif
