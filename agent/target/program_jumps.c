// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jumps into the middle of somebody else's function, and code that switches stacks.  To disassemble a whole module for
 * them would take seconds: instead every byte is asked whether such an instruction could begin there, which finds all
 * that there are and, rarely, one that is none.  Short jumps reach neighbours only, and those are disassembled when
 * they are asked about.
 */
#include "base/order.h"
#include "target/function_code.h"
#include "target/program_internal.h"

#include <errno.h>

#define CHUNK_SZ            (1U << 20)
#define OVERLAP_SZ          8   /* a far jump that begins in one chunk may end in the next */
#define NEAR_SZ             256 /* further behind the entry no probe is placed */
#define SHORT_REACH         130
#define SWITCH_PROLOGUE_MAX 192 /* within so much of its code a function that switches stacks has done so */

ORDER(addr_cmp, uint64_t, BY(*a, *b));

static bool is_of_interest(const struct module *module, uint64_t from, uint64_t target)
{
	uint32_t to = module_function_at(module, target);
	const struct program_function *function;

	if (to == PROGRAM_NONE)
		return false;
	function = &module->functions.items[to].public;
	return target != function->addr && target - function->addr <= NEAR_SZ &&
	       (from < function->addr || from - function->addr >= function->size);
}

/* What may begin at each byte: `sz` bytes can be read, of which the first `step` are asked about.  0 or -errno. */
typedef int (*scan_fn)(struct module *module, const uint8_t *bytes, size_t sz, size_t step, uint64_t addr);

static int jumps_scan(struct module *module, const uint8_t *bytes, size_t sz, size_t step, uint64_t addr)
{
	int err = 0;

	for (size_t i = 0; i < step && !err; i++) {
		uint64_t target, distance;

		if (!code_looks_like_jump(bytes + i, sz - i, addr + i, &target))
			continue;
		distance = target > addr + i ? target - (addr + i) : addr + i - target;
		if (distance > SHORT_REACH && is_of_interest(module, addr + i, target))
			err = vec_push(&module->jumped_into, target);
	}
	return err;
}

static int stack_setters_scan(struct module *module, const uint8_t *bytes, size_t sz, size_t step, uint64_t addr)
{
	int err = 0;

	for (size_t i = 0; i < step && !err; i++)
		if (code_looks_like_stack_switch(bytes + i, sz - i))
			err = vec_push(&module->stack_setters, addr + i);
	return err;
}

static int segment_scan(struct module *module, const struct elf_segment *segment, uint8_t *bytes, scan_fn scan)
{
	int err = 0;

	for (uint64_t off = 0; off < segment->file_sz && !err; off += CHUNK_SZ) {
		uint64_t left = segment->file_sz - off, step = left < CHUNK_SZ ? left : CHUNK_SZ;
		uint64_t sz = left < CHUNK_SZ + OVERLAP_SZ ? left : CHUNK_SZ + OVERLAP_SZ;

		if (elf_image__read(module->image, segment->file_off + off, bytes, sz) != (ssize_t)sz)
			return -ENOENT;
		err = scan(module, bytes, sz, step, segment->addr + off);
	}
	return err;
}

static int code_scan(struct module *module, scan_fn scan)
{
	uint8_t *bytes = malloc(CHUNK_SZ + OVERLAP_SZ);
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(module->image, &segments);
	int err = bytes ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++)
		if (segments[i].exec)
			err = segment_scan(module, &segments[i], bytes, scan);
	free(bytes);
	return err;
}

static int jumps_find(struct module *module)
{
	int err = code_scan(module, jumps_scan);

	if (!err)
		vec_sort(&module->jumped_into, addr_cmp);
	module->has_jumped_into = !err;
	return err;
}

static bool far_jump_into(const struct module *module, uint64_t first, uint64_t last)
{
	size_t low = search_first(0, module->jumped_into.cnt, mid, module->jumped_into.items[mid] >= first);

	return low < module->jumped_into.cnt && module->jumped_into.items[low] <= last;
}

/* What looked like one at addr: is it an instruction of the function around it?  Yes where that cannot be told. */
static bool is_instruction(struct program *program, const struct module *module, uint64_t addr)
{
	uint32_t idx = module_function_at(module, addr);
	const struct program_function *function;
	code_insns insns = {0};
	uint8_t *bytes;
	bool is_one = true;

	if (idx == PROGRAM_NONE)
		return true;
	function = &module->functions.items[idx].public;
	bytes = malloc(function->size + 1);
	if (bytes &&
	    elf_image__read_addr(module->image, function->addr, bytes, function->size) == (ssize_t)function->size &&
	    !code__sweep(program->code, bytes, function->size, function->addr, &insns))
		is_one = code_insn_at(&insns, addr);
	vec_free(&insns);
	free(bytes);
	return is_one;
}

static bool short_jump_into(struct program *program, const struct module *module, uint64_t first, uint64_t last)
{
	uint32_t own = module_function_at(module, first);
	uint64_t begin = first > SHORT_REACH ? first - SHORT_REACH : 0;
	uint8_t bytes[2 * SHORT_REACH + NEAR_SZ + 2];
	size_t want = last + SHORT_REACH - begin;
	ssize_t len;

	if (last - first > NEAR_SZ)
		return true;
	/* A segment may begin or end nearer than that. */
	while ((len = elf_image__read_addr(module->image, begin, bytes, want)) < 0 && begin < first) {
		begin++;
		want--;
	}
	for (ssize_t i = 0; i + 1 < len; i++) {
		uint64_t target;

		if (code_looks_like_jump(bytes + i, 2, begin + i, &target) && target >= first && target <= last &&
		    module_function_at(module, begin + i) != own && is_instruction(program, module, begin + i))
			return true;
	}
	return false;
}

/* Right at its beginning, while the arguments are what the caller gave. */
static bool is_stack_setter(struct program *program, const struct module *module, uint64_t addr)
{
	uint32_t idx = module_function_at(module, addr);

	return (idx == PROGRAM_NONE || addr - module->functions.items[idx].public.addr <= SWITCH_PROLOGUE_MAX) &&
	       is_instruction(program, module, addr);
}

bool module_sets_stack(struct program *program, struct module *module)
{
	if (module->sets_stack_known)
		return module->sets_stack;
	if (module_open(program, module) || code_scan(module, stack_setters_scan))
		return true;
	/* Few have any: the functions of all others need not be known for this. */
	if (module->stack_setters.cnt && module_functions_load(program, module))
		return true;
	for (size_t i = 0; i < module->stack_setters.cnt && !module->sets_stack; i++)
		module->sets_stack = is_stack_setter(program, module, module->stack_setters.items[i]);
	module->sets_stack_known = true;
	return module->sets_stack;
}

bool program__is_jumped_into(struct program *program, uint32_t idx, uint64_t first, uint64_t last)
{
	struct module *module = program_module_of(program, idx);

	if (!module || module_functions_load(program, module))
		return true;
	if (!module->has_jumped_into && jumps_find(module))
		return true;
	return far_jump_into(module, first, last) || short_jump_into(program, module, first, last);
}

bool module_sets_stack_in(struct program *program, struct module *module, uint64_t addr, uint64_t size)
{
	if (module_sets_stack(program, module))
		for (size_t i = 0; i < module->stack_setters.cnt; i++)
			if (module->stack_setters.items[i] - addr < size &&
			    is_stack_setter(program, module, module->stack_setters.items[i]))
				return true;
	return false;
}
