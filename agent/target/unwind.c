// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/unwind.h"

#include "base/random.h"
#include "target/proc_file.h"
#include "target/unwind_module.h"
#include "target/unwind_rules.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Words that are looked at for a return address. */
#define SCAN_WORDS 256

#define VDSO "[vdso]"

/* Addresses in code of no file that were looked at: direct-mapped, a power of two. */
#define MADE_CNT 1024

struct unwinder {
	pid_t pid;
	int mem_fd; /* the process's memory; -1: not opened, or not to be had */
	bool mem_tried;
	uint64_t made_calls[MADE_CNT]; /* address << 1 | a call ends there */
	target_mappings mappings;
	VEC(struct unwind_module *) modules;
	struct unwind_module **of_mapping; /* NULL: not opened yet */
	struct file_tables *tables;
	bool has_own_tables;
};

/* --- modules ------------------------------------------------------------------------------------------------------ */

static bool has_code_of(const struct target_mapping *mapping, const struct unwind_module *module)
{
	if (!mapping->exec || mapping->ino != module->ino || mapping->dev != module->dev)
		return false;
	return mapping->ino ? true : module->is_vdso && !strcmp(mapping->path, VDSO);
}

static void modules_sweep(struct unwinder *unwinder)
{
	size_t kept = 0;

	for (size_t i = 0; i < unwinder->modules.cnt; i++) {
		struct unwind_module *module = unwinder->modules.items[i];

		if (module->used)
			unwinder->modules.items[kept++] = module;
		else
			unwind_module__free(module);
	}
	unwinder->modules.cnt = kept;
	while (unwinder->has_own_tables && file_tables__drop(unwinder->tables))
		;
}

/* Addresses mean something else from now on. */
static int set_mappings(struct unwinder *unwinder, target_mappings *mappings)
{
	struct unwind_module **of_mapping = calloc(mappings->cnt + 1, sizeof(struct unwind_module *));

	if (!of_mapping) {
		target_mappings_free(mappings);
		return -ENOMEM;
	}
	for (size_t m = 0; m < unwinder->modules.cnt; m++) {
		struct unwind_module *module = unwinder->modules.items[m];

		module->used = false;
		/* Another process may lead to a file that could not be opened. */
		for (size_t i = 0; module->image && i < mappings->cnt; i++) {
			if (!has_code_of(&mappings->items[i], module))
				continue;
			of_mapping[i] = module;
			module->used = true;
		}
	}
	modules_sweep(unwinder);
	free(unwinder->of_mapping);
	target_mappings_free(&unwinder->mappings);
	unwinder->of_mapping = of_mapping;
	unwinder->mappings = *mappings;
	memset(unwinder->made_calls, 0, sizeof(unwinder->made_calls));
	return 0;
}

int unwinder__new(pid_t pid, target_mappings *mappings, struct file_tables *tables, struct unwinder **made)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));
	int err;

	if (unwinder)
		unwinder->tables = tables ?: file_tables__new();
	if (!unwinder || !unwinder->tables) {
		free(unwinder);
		target_mappings_free(mappings);
		return -ENOMEM;
	}
	unwinder->has_own_tables = !tables;
	unwinder->pid = pid;
	unwinder->mem_fd = -1;
	err = set_mappings(unwinder, mappings);
	if (err) {
		unwinder__free(unwinder);
		return err;
	}
	*made = unwinder;
	return 0;
}

void unwinder__free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	for (size_t i = 0; i < unwinder->modules.cnt; i++)
		unwind_module__free(unwinder->modules.items[i]);
	vec_free(&unwinder->modules);
	target_mappings_free(&unwinder->mappings);
	if (unwinder->mem_fd >= 0)
		close(unwinder->mem_fd);
	free(unwinder->of_mapping);
	if (unwinder->has_own_tables)
		file_tables__free(unwinder->tables);
	free(unwinder);
}

bool unwinder__is_changed(const struct unwinder *unwinder)
{
	for (size_t i = 0; i < unwinder->modules.cnt; i++) {
		const struct unwind_module *module = unwinder->modules.items[i];

		if (module->image && elf_image__is_changed(module->image))
			return true;
	}
	return false;
}

int unwinder__refresh(struct unwinder *unwinder)
{
	target_mappings mappings = {0};
	int err = target_mappings_read(unwinder->pid, &mappings);

	if (err)
		return err;
	if (!target_mappings_fit(&unwinder->mappings, &mappings))
		return set_mappings(unwinder, &mappings);
	target_mappings_free(&mappings);
	return 0;
}

int unwinder__move(struct unwinder *unwinder, pid_t pid, target_mappings *mappings)
{
	if (unwinder->mem_fd >= 0 && pid != unwinder->pid)
		close(unwinder->mem_fd);
	if (pid != unwinder->pid) {
		unwinder->pid = pid;
		unwinder->mem_fd = -1;
		unwinder->mem_tried = false;
	}
	return set_mappings(unwinder, mappings);
}

const target_mappings *unwinder__mappings(const struct unwinder *unwinder)
{
	return &unwinder->mappings;
}

/* The mapping of executable code at that address: its index, or -1. */
static ssize_t code_at(const struct unwinder *unwinder, uint64_t addr)
{
	const struct target_mapping *mapping = target_mapping_find(&unwinder->mappings, addr);

	return mapping && mapping->exec ? mapping - unwinder->mappings.items : -1;
}

bool unwinder__is_code(const struct unwinder *unwinder, uint64_t addr)
{
	return code_at(unwinder, addr) >= 0;
}

const char *unwinder__place(const struct unwinder *unwinder, uint64_t addr, char *buf, size_t sz)
{
	return target_mapping_name(&unwinder->mappings, addr, true, buf, sz);
}

static struct unwind_module *module_new(const struct unwinder *unwinder, const struct target_mapping *mapping)
{
	char path[PATH_MAX];

	if (!strcmp(mapping->path, VDSO))
		return unwind_module__vdso(unwinder->tables);
	if (target_mapping_file(unwinder->pid, mapping, path, sizeof(path)))
		path[0] = '\0'; /* none can be opened by that name */
	return unwind_module__open(unwinder->tables, path);
}

/* NULL when out of memory. */
static struct unwind_module *module_of(struct unwinder *unwinder, size_t mapping_idx)
{
	const struct target_mapping *mapping = &unwinder->mappings.items[mapping_idx];
	struct unwind_module *module = unwinder->of_mapping[mapping_idx];

	if (module)
		return module;
	module = module_new(unwinder, mapping);
	if (!module)
		return NULL;
	if (vec_push(&unwinder->modules, module)) {
		unwind_module__free(module);
		return NULL;
	}
	module->dev = mapping->dev;
	module->ino = mapping->ino;
	for (size_t i = 0; i < unwinder->mappings.cnt; i++) {
		const struct target_mapping *other = &unwinder->mappings.items[i];

		if (i == mapping_idx ||
		    (other->exec && mapping->ino && other->ino == mapping->ino && other->dev == mapping->dev))
			unwinder->of_mapping[i] = module;
	}
	return module;
}

/* --- one step ----------------------------------------------------------------------------------------------------- */

/* NULL: nothing is known there. */
static const struct unwind_rule *rule_at(struct unwinder *unwinder, uint64_t addr)
{
	ssize_t idx = code_at(unwinder, addr);
	struct unwind_module *module = idx < 0 ? NULL : module_of(unwinder, (size_t)idx);
	const struct target_mapping *mapping;
	const struct eh_frame *frame;
	uint64_t file_addr;
	bool is_late;

	frame = module ? unwind_module__frame(module, &is_late) : NULL;
	if (!frame)
		return NULL;
	mapping = &unwinder->mappings.items[idx];
	if (!unwind_module__addr(module, addr - mapping->start + mapping->file_off, &file_addr))
		return NULL;
	return file_tables__rule(unwinder->tables, frame, file_addr);
}

const struct unwind_rule *unwinder__rule(struct unwinder *unwinder, uint64_t addr)
{
	return rule_at(unwinder, addr);
}

static bool is_after_call_in_memory(struct unwinder *unwinder, uint64_t addr)
{
	uint64_t *known = &unwinder->made_calls[random_mix(addr) & (MADE_CNT - 1)];
	uint8_t code[UNWIND_CALL_SZ_MAX];

	if (*known >> 1 == addr)
		return *known & 1;
	if (!unwinder->mem_tried) {
		unwinder->mem_tried = true;
		unwinder->mem_fd = proc_mem_open(unwinder->pid);
	}
	if (unwinder->mem_fd < 0 || addr > INT64_MAX || addr < sizeof(code))
		return false;
	*known = addr << 1;
	if (proc_mem_read(unwinder->mem_fd, addr - sizeof(code), code, sizeof(code)))
		*known |= unwind_call_sz(code + sizeof(code), sizeof(code)) > 0;
	return *known & 1;
}

bool unwinder__is_made(struct unwinder *unwinder, uint64_t addr)
{
	ssize_t idx = code_at(unwinder, addr);
	const struct unwind_module *module;

	if (idx < 0)
		return false;
	if (!unwinder->mappings.items[idx].path[0])
		return true;
	module = module_of(unwinder, (size_t)idx);
	return module && !module->image && unwinder->mappings.items[idx].path[0] != '[';
}

static bool is_return_address(struct unwinder *unwinder, uint64_t addr)
{
	/* The byte before it is the call's, and the call may be the last instruction of a mapping. */
	ssize_t idx = addr ? code_at(unwinder, addr - 1) : -1;
	const struct target_mapping *mapping;
	struct unwind_module *module;

	if (idx < 0)
		return false;
	module = module_of(unwinder, idx);
	if (!module)
		return false;
	if (!module->image)
		return is_after_call_in_memory(unwinder, addr);
	mapping = &unwinder->mappings.items[idx];
	return unwind_module__is_after_call(module, addr - mapping->start + mapping->file_off);
}

#if defined(__aarch64__)
#define FP_REG      29
#define SIGNED_BITS 0xffff000000000000ULL /* return addresses may be signed where no user address has bits */
#else
#define FP_REG      6
#define SIGNED_BITS 0ULL
#endif

static uint64_t code_addr(uint64_t word)
{
	return word & ~SIGNED_BITS;
}

struct walk {
	struct unwinder *unwinder;
	struct unwind_memory memory;
	struct unwind_regs regs;
	bool guessed; /* a frame was found by scanning: what the registers say may be stale */
};

/* 0; 1: the thread began here; -ENODATA: the bytes end; another -errno: this way leads nowhere. */
static int step_by_cfi(struct walk *walk, struct unwind_frame *frame)
{
	const struct unwind_rule *rule = rule_at(walk->unwinder, unwind_frame_addr(frame));
	struct unwind_regs caller;
	uint64_t pc, sp;
	int err;

	if (!rule)
		return -ENOENT;
	if (rule->start)
		return 1;
	err = unwind_rule__apply(rule, &walk->memory, &walk->regs, &caller);
	if (err)
		return err;
	pc = code_addr(caller.values[WL_STACK_REG_PC]);
	sp = caller.values[WL_STACK_REG_SP];
	if (!pc)
		return 1;
	/* A signal's frame may lie on a stack of its own. */
	if (!rule->signal &&
	    (sp < walk->regs.values[WL_STACK_REG_SP] || (sp == walk->regs.values[WL_STACK_REG_SP] && pc == frame->pc)))
		return -EINVAL;
	if (code_at(walk->unwinder, rule->signal ? pc : pc - 1) < 0)
		return -EINVAL;
	if (walk->guessed && !rule->signal && !is_return_address(walk->unwinder, pc))
		return -EINVAL;
	caller.values[WL_STACK_REG_PC] = pc;
	caller.known |= 1ULL << WL_STACK_REG_PC;
	walk->regs = caller;
	*frame = (struct unwind_frame){.pc = pc, .cfa = sp, .how = UNWIND_BY_CFI, .exact = rule->signal};
	return 0;
}

static void take_frame(struct walk *walk, struct unwind_frame *frame, enum unwind_how how, uint64_t pc, uint64_t sp)
{
	walk->regs.values[WL_STACK_REG_PC] = pc;
	walk->regs.values[WL_STACK_REG_SP] = sp;
	walk->regs.known |= 1ULL << WL_STACK_REG_PC | 1ULL << WL_STACK_REG_SP;
	*frame = (struct unwind_frame){.pc = pc, .cfa = sp, .how = how};
}

/* The frame pointer leads to the caller's, and the return address lies above that, on both architectures. */
static int step_by_frame_pointer(struct walk *walk, struct unwind_frame *frame)
{
	uint64_t fp = walk->regs.values[FP_REG], sp = walk->regs.values[WL_STACK_REG_SP], next_fp, pc;

	if (!(walk->regs.known >> FP_REG & 1) || fp < sp || fp % sizeof(uint64_t))
		return -EINVAL;
	if (unwind_memory__read(&walk->memory, fp, &next_fp) ||
	    unwind_memory__read(&walk->memory, fp + sizeof(uint64_t), &pc))
		return -EINVAL;
	pc = code_addr(pc);
	if (!is_return_address(walk->unwinder, pc))
		return -EINVAL;
	walk->regs.values[FP_REG] = next_fp;
	take_frame(walk, frame, UNWIND_BY_FRAME_POINTER, pc, fp + 2 * sizeof(uint64_t));
	return 0;
}

#if defined(__x86_64__)
/* A function begins so near before its code at most. */
#define FUNCTION_SZ 65536
#define CALL_SZ     5 /* of a direct call */

static bool code_before(struct unwinder *unwinder, uint64_t addr, uint8_t code[CALL_SZ])
{
	ssize_t idx = addr ? code_at(unwinder, addr - 1) : -1;
	const struct unwind_module *module = idx < 0 ? NULL : module_of(unwinder, (size_t)idx);
	const struct target_mapping *mapping;

	if (!module || (!module->image && unwinder->mem_fd < 0))
		return false;
	if (!module->image)
		return proc_mem_read(unwinder->mem_fd, addr - CALL_SZ, code, CALL_SZ);
	mapping = &unwinder->mappings.items[idx];
	return unwind_module__code_before(module, addr - mapping->start + mapping->file_off, code, CALL_SZ) == CALL_SZ;
}

/*
 * A function that calls none may have no frame at all (Go's leaves): the frame pointer is its caller's still, and would
 * lead to the caller's caller.  Its return address lies at the stack pointer, behind a direct call of that very
 * function.
 */
static int step_from_leaf(struct walk *walk, struct unwind_frame *frame)
{
	uint64_t sp = walk->regs.values[WL_STACK_REG_SP], pc, begin;
	uint8_t code[CALL_SZ];
	int32_t to;

	if (frame->how != UNWIND_BY_REGISTERS || unwind_memory__read(&walk->memory, sp, &pc) ||
	    !is_return_address(walk->unwinder, pc) || !code_before(walk->unwinder, pc, code) || code[0] != 0xe8)
		return -EINVAL;
	memcpy(&to, code + 1, sizeof(to));
	begin = pc + (uint64_t)(int64_t)to;
	if (frame->pc - begin >= FUNCTION_SZ)
		return -EINVAL;
	take_frame(walk, frame, UNWIND_BY_FRAME_POINTER, pc, sp + sizeof(uint64_t));
	return 0;
}
#else
/* The return address of a leaf is in a register, and the frame pointer leads to its caller's caller: rare, and left. */
static int step_from_leaf(struct walk *walk, struct unwind_frame *frame)
{
	(void)walk;
	(void)frame;
	return -EINVAL;
}
#endif

static int step_by_scan(struct walk *walk, struct unwind_frame *frame)
{
	uint64_t sp = walk->regs.values[WL_STACK_REG_SP], pc;

	sp = (sp + 7) & ~7ULL;
	for (int i = 0; i < SCAN_WORDS; i++, sp += sizeof(uint64_t)) {
		int err = unwind_memory__read(&walk->memory, sp, &pc);

		if (err)
			return err;
		pc = code_addr(pc);
		if (!is_return_address(walk->unwinder, pc))
			continue;
		walk->guessed = true;
		take_frame(walk, frame, UNWIND_BY_SCAN, pc, sp + sizeof(uint64_t));
		return 0;
	}
	return -ENOENT;
}

/* Likewise, by whatever leads on. */
static int step(struct walk *walk, struct unwind_frame *frame)
{
	int err = step_by_cfi(walk, frame);

	if (err >= 0 || err == -ENODATA)
		return err;
	if (!step_from_leaf(walk, frame) || !step_by_frame_pointer(walk, frame))
		return 0;
	return step_by_scan(walk, frame);
}

size_t unwinder__frames(struct unwinder *unwinder, const struct unwind_input *input,
			struct unwind_frame frames[UNWIND_FRAMES_MAX], enum unwind_end *end)
{
	struct walk walk = {
		.unwinder = unwinder,
		.memory = {.bytes = input->stack, .addr = input->regs[WL_STACK_REG_SP], .sz = input->stack_sz},
		.regs = {.known = (1ULL << WL_STACK_REGS) - 1},
	};
	struct unwind_frame frame = {
		.pc = input->regs[WL_STACK_REG_PC],
		.cfa = input->regs[WL_STACK_REG_SP],
		.how = UNWIND_BY_REGISTERS,
		.exact = true,
	};
	size_t cnt = 0;
	int err = 0;

	memcpy(walk.regs.values, input->regs, sizeof(walk.regs.values));
	while (!err && cnt < UNWIND_FRAMES_MAX) {
		if (cnt < input->frame_regs_max)
			input->frame_regs[cnt] = walk.regs;
		frames[cnt++] = frame;
		err = step(&walk, &frame);
	}
	*end = !err ? UNWIND_TOO_DEEP : err > 0 ? UNWIND_START : err == -ENODATA ? UNWIND_CUT : UNWIND_NOT_KNOWN;
	return cnt;
}
