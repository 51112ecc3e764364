/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that variables lie in, read at the moment of a tick: what is neither in the registers nor on the stack, which
 * are copied anyway.  A plan says by ranges of program counters what to read at the innermost frame, relative to its
 * registers, through one pointer at most; of the globals each tick reads some, in turn.  A read that faults is counted
 * and not made again.
 *
 * Callers are reached by unwinding rules of single addresses, which the agent gives for frames that it has met in
 * stacks: a frame that is met for the first time ends the way.  The agent takes words by their address, from a frame
 * that it has unwound itself, so a wrong way costs reads, and no value is wrong.
 */
#ifndef WHYLATE_BPF_VALUES_H
#define WHYLATE_BPF_VALUES_H

#include "compat.h"
#include "knobs.h"

/* Enough for VALUE_RANGES_MAX of them. */
#define VALUE_SEARCH_STEPS 17

struct value_cpu {
	u64 regs[WL_STACK_REGS];
	u32 global_pos; /* the next one in turn */
	u32 read_pos;   /* likewise, of ranges with more reads than are made at once */
	u32 frame_pos;  /* likewise, of callers */
	u32 zero;
	struct wl_values_record record;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value_cpu);
} value_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VALUE_RANGES_MAX);
	__type(key, u32);
	__type(value, struct value_range);
} value_ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VALUE_READS_MAX);
	__type(key, u32);
	__type(value, struct value_read);
} value_reads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VALUE_GLOBALS_MAX);
	__type(key, u32);
	__type(value, struct value_global);
} value_globals SEC(".maps");

/* Where the modules of the plan are in a process. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct value_image);
} value_images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, VALUE_STEPS_MAX);
	__type(key, struct value_step_key);
	__type(value, struct value_step);
} value_steps SEC(".maps");

static __always_inline struct value_cpu *this_value_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&value_cpus, &key);
}

static __always_inline void read_value(struct wl_values_record *record, u64 addr, u64 size)
{
	u32 at = record->cnt;
	struct wl_value_word *word;

	barrier_var(at);
	barrier_var(size);
	if (at >= WL_VALUE_WORDS_MAX || !size || size > sizeof(u64))
		return;
	/* Both limits may be tested by one subtraction, which Linux 6.1 does not understand. */
	barrier_var(size);
	size &= 2 * sizeof(u64) - 1;
	word = &record->words[at];
	word->addr = addr;
	word->bytes = 0;
	word->sz = size;
	word->zero = 0;
	if (bpf_probe_read_user(&word->bytes, size, (const void *)addr)) {
		record->faulted++;
		return;
	}
	record->cnt = at + 1;
}

struct value_search {
	u64 addr; /* as linked */
	u32 base, low, high;
	u32 first, cnt; /* of the range; cnt 0: none */
};

static long search_range(u32 idx, struct value_search *search)
{
	u32 mid = search->low + (search->high - search->low) / 2, key = search->base + mid;
	struct value_range *range;

	if (search->low >= search->high)
		return 1;
	range = bpf_map_lookup_elem(&value_ranges, &key);
	if (!range)
		return 1;
	if (search->addr < range->begin) {
		search->high = mid;
	} else if (search->addr >= range->end) {
		search->low = mid + 1;
	} else {
		search->first = range->first;
		search->cnt = range->cnt;
		return 1;
	}
	return 0;
}

/* In turn, from `pos` on. */
struct value_turn {
	u32 first, cnt, pos;
};

static __always_inline void read_by_register(struct value_cpu *cpu, const struct value_read *read)
{
	u32 reg = read->reg;
	u64 addr;

	barrier_var(reg);
	if (reg >= WL_STACK_REGS)
		return;
	addr = cpu->regs[reg] + (s64)read->off;
	if (read->deref) {
		if (bpf_probe_read_user(&addr, sizeof(addr), (const void *)addr)) {
			cpu->record.faulted++;
			return;
		}
		addr += (s64)read->off2;
	}
	read_value(&cpu->record, addr, read->sz);
}

static long read_local(u32 idx, struct value_turn *turn)
{
	struct value_cpu *cpu = this_value_cpu();
	u32 key = turn->first + (turn->pos + idx) % turn->cnt;
	struct value_read *read;

	read = bpf_map_lookup_elem(&value_reads, &key);
	if (!cpu || !read)
		return 1;
	read_by_register(cpu, read);
	return 0;
}

/* A loop's context lies on the stack. */
struct value_walk {
	struct value_image *image;
};

static long read_global(u32 idx, struct value_walk *walk)
{
	struct value_image *image = walk->image;
	struct value_cpu *cpu = this_value_cpu();
	u32 cnt = stack_controls.value_global_cnt, key, module;
	struct value_global *global;

	if (!cpu || !image || idx >= cnt)
		return 1;
	key = cpu->global_pos++ % cnt;
	global = bpf_map_lookup_elem(&value_globals, &key);
	if (!global)
		return 1;
	module = global->module;
	barrier_var(module);
	if (module >= VALUE_MODULES_MAX || !image->modules[module].end)
		return 0;
	read_value(&cpu->record, global->addr + image->modules[module].bias, global->sz);
	return 0;
}

static __always_inline void read_locals(struct value_cpu *cpu, const struct value_image *image)
{
	u64 pc = cpu->regs[WL_STACK_REG_PC];
	struct value_search search = {};
	struct value_turn turn = {};

	for (int m = 0; m < VALUE_MODULES_MAX; m++) {
		const struct value_module *module = &image->modules[m];

		if (pc < module->begin || pc >= module->end)
			continue;
		search.addr = pc - module->bias;
		search.base = module->first_range;
		search.high = module->range_cnt;
		break;
	}
	if (!search.high)
		return;
	bpf_loop(VALUE_SEARCH_STEPS, search_range, &search, 0);
	if (!search.cnt)
		return;
	turn.first = search.first;
	turn.cnt = search.cnt;
	turn.pos = search.cnt > VALUE_READS_AT_ONCE ? cpu->read_pos++ % search.cnt : 0;
	bpf_loop(search.cnt < VALUE_READS_AT_ONCE ? search.cnt : VALUE_READS_AT_ONCE, read_local, &turn, 0);
}

/* --- callers ------------------------------------------------------------------------------------------------------ */

static __always_inline void read_caller(struct value_cpu *cpu, const struct value_step *step)
{
	u32 cnt = step->read_cnt, at_once = VALUE_FRAME_READS_AT_ONCE(cfg_knobs.values - 1), at, pos = 0;

	if (cnt > at_once)
		pos = cpu->frame_pos++;
	for (u32 i = 0; i < VALUE_FRAME_READS_AT_ONCE(0); i++) {
		if (i >= cnt || i >= at_once)
			break;
		at = (pos + i) % cnt;
		barrier_var(at);
		if (at < VALUE_FRAME_READS_MAX)
			read_by_register(cpu, &step->reads[at]);
	}
}

/* The registers become those of the caller; false: they do not. */
static __always_inline bool step_out(struct value_cpu *cpu, const struct value_step *step)
{
	u32 reg = step->cfa_reg;
	u64 cfa;

	barrier_var(reg);
	if (reg >= WL_STACK_REGS)
		return false;
	cfa = cpu->regs[reg] + (s64)step->cfa_off;
	for (int i = 0; i < VALUE_SAVED_MAX; i++) {
		if (i >= step->saved_cnt)
			break;
		reg = step->saved[i].reg;
		barrier_var(reg);
		if (reg >= WL_STACK_REGS ||
		    bpf_probe_read_user(&cpu->regs[reg], sizeof(u64), (const void *)(cfa + (s64)step->saved[i].off)))
			return false;
	}
	reg = step->ra;
	barrier_var(reg);
	if (reg >= WL_STACK_REGS)
		return false;
	cpu->regs[WL_STACK_REG_PC] = cpu->regs[reg];
#if defined(__TARGET_ARCH_arm64)
	cpu->regs[WL_STACK_REG_PC] &= ~0xffff000000000000ULL; /* it may be signed */
#endif
	cpu->regs[WL_STACK_REG_SP] = cfa;
	return true;
}

static long climb(u32 idx, struct value_step_key *at)
{
	struct value_cpu *cpu = this_value_cpu();
	struct value_step *step;

	if (!cpu)
		return 1;
	at->addr = cpu->regs[WL_STACK_REG_PC];
	at->is_caller = idx > 0;
	step = bpf_map_lookup_elem(&value_steps, at);
	if (!step)
		return 1;
	if (idx)
		read_caller(cpu, step);
	return !step_out(cpu, step);
}

/*
 * Until the agent has looked at a process, it is taken for a fork of its parent, which has its code at the same
 * addresses.  After an exec that is wrong, and the agent does not unwind it as the parent.
 */
static __always_inline struct value_image *value_image_of(struct task_struct *task)
{
	u32 pid = task->tgid;
	struct value_image *image = bpf_map_lookup_elem(&value_images, &pid);

	if (image)
		return image;
	pid = BPF_CORE_READ(task, real_parent, tgid);
	return bpf_map_lookup_elem(&value_images, &pid);
}

/* Fills the record; NULL: there is nothing to send. */
static __always_inline struct wl_values_record *read_values(struct task_struct *task, struct pt_regs *regs, u64 ts)
{
	struct value_image *image = value_image_of(task);
	struct value_cpu *cpu = this_value_cpu();
	struct value_walk walk = {.image = image};
	struct value_step_key innermost = {};

	if (!image || !cpu)
		return NULL;
	innermost.program = image->program;
	copy_registers(cpu->regs, regs);
	cpu->record.ts = ts;
	cpu->record.pid = task->tgid;
	cpu->record.tid = task->pid;
	cpu->record.cnt = 0;
	cpu->record.faulted = 0;
	read_locals(cpu, image);
	if (cfg_knobs.values > 1)
		bpf_loop(cfg_knobs.values, climb, &innermost, 0);
	bpf_loop(VALUE_GLOBALS_AT_ONCE, read_global, &walk, 0);
	return cpu->record.cnt || cpu->record.faulted ? &cpu->record : NULL;
}

#endif
