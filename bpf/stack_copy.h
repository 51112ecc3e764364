/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of user stacks, and the key of an inferred call path: instruction pointer, depth from the thread's base, and
 * the return addresses nearest to the stack pointer (Mytkowicz, Coughlin and Diwan, OOPSLA 2009).
 *
 * A copy is made in the CPU's scratch.  Ticks and waits have one, which nothing interrupts; hand-offs have another one,
 * which they take first, because a tick or another task may come in between.
 */
#ifndef WHYLATE_BPF_STACK_COPY_H
#define WHYLATE_BPF_STACK_COPY_H

#include "compat.h"
#include "context.h"
#include "uretprobe.h"
#include "wait.h"

/* Read a piece at a time, none of which crosses a page: one that is not there ends the stack. */
#define PIECE_SZ 1024

extern struct stack_controls stack_controls;

/* Stacks end within this of their thread's base. */
#define BASE_REACH (8 << 20)

enum scratch { SCRATCH_SAMPLE, SCRATCH_HANDOFF, SCRATCH_CNT };

struct stack_cpu {
	u32 busy, zero;  /* hand-offs: a copy is under way */
	u64 refilled_ts; /* when `copies` was added to last */
	u64 copies;      /* stacks of waits that may be copied now */
	u64 tick_slot;   /* which of the kernel's ticks was sampled last */
	struct wl_python_record python;
	/* A wl_stack_record, its stack, and room for what the verifier thinks possible. */
	u64 record[(sizeof(struct wl_stack_record) + WL_STACK_SZ_MAX + PIECE_SZ) / sizeof(u64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_CNT);
	__type(key, u32);
	__type(value, struct stack_cpu);
} stack_cpus SEC(".maps") __weak;

/* NULL, and no map of them, where requests are calls of a function and no stack is sampled. */
static __always_inline struct stack_cpu *this_scratch(u32 key)
{
	if (!cfg_knobs.stacks && !cfg_knobs.sockets)
		return NULL;
	return bpf_map_lookup_elem(&stack_cpus, &key);
}

static __always_inline u64 copy_registers(u64 *to, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	to[0] = regs->ax;
	to[1] = regs->dx;
	to[2] = regs->cx;
	to[3] = regs->bx;
	to[4] = regs->si;
	to[5] = regs->di;
	to[6] = regs->bp;
	to[7] = regs->sp;
	to[8] = regs->r8;
	to[9] = regs->r9;
	to[10] = regs->r10;
	to[11] = regs->r11;
	to[12] = regs->r12;
	to[13] = regs->r13;
	to[14] = regs->r14;
	to[15] = regs->r15;
	to[16] = regs->ip;
	for (int i = 17; i < WL_STACK_REGS; i++)
		to[i] = 0;
#elif defined(__TARGET_ARCH_arm64)
	for (int i = 0; i < 31; i++)
		to[i] = regs->regs[i];
	to[31] = regs->sp;
	to[32] = regs->pc;
#endif
	return to[WL_STACK_REG_SP];
}

/* Above these there are no frames: the arguments of the program, the C library's own data of the thread. */
static __always_inline u64 stack_limit(struct task_struct *task, u64 sp, u64 sz)
{
	u64 top = BPF_CORE_READ(task, mm, start_stack);

	if (top > sp && top - sp < sz)
		sz = top - sp;
#if defined(__TARGET_ARCH_x86)
	top = BPF_CORE_READ(task, thread.fsbase);
	if (top > sp && top - sp < sz)
		sz = top - sp;
#endif
	return sz;
}

/* How many bytes could be had. */
VERIFIED_ONCE u32 copy_stack(struct stack_cpu *scratch, u64 sp, u64 sz)
{
	struct wl_stack_record *record;
	u32 at = 0;

	if (!scratch || sz > WL_STACK_SZ_MAX)
		return 0;
	record = (struct wl_stack_record *)scratch->record;
	for (int i = 0; i <= WL_STACK_SZ_MAX / PIECE_SZ; i++) {
		u64 piece = PIECE_SZ - ((sp + at) & (PIECE_SZ - 1));

		if (at >= sz || at >= WL_STACK_SZ_MAX)
			break;
		if (piece > sz - at)
			piece = sz - at;
		/* The compiler knows, and would leave out what tells older verifiers (6.1). */
		barrier_var(piece);
		barrier_var(at);
		if (!piece || piece > PIECE_SZ || at >= WL_STACK_SZ_MAX)
			break;
		if (bpf_probe_read_user(&record->stack[at], piece, (const void *)(sp + at)))
			break;
		at += piece;
	}
	return at;
}

/* As many as the agent takes frames. */
#define RETURNS_MAX 128

struct returns {
	struct return_instance___address *next;
	u64 trampoline, sp;
	u32 sz; /* of the copy */
	u32 scratch;
};

static long put_back(u32 idx, struct returns *returns)
{
	struct return_instance___address *instance = returns->next;
	struct stack_cpu *scratch = this_scratch(returns->scratch);
	struct wl_stack_record *record;
	u64 at;

	if (!instance || !scratch)
		return 1;
	record = (struct wl_stack_record *)scratch->record;
	at = BPF_CORE_READ(instance, stack) - returns->sp;
	returns->next = BPF_CORE_READ(instance, next);
	barrier_var(at);
	if (at >= WL_STACK_SZ_MAX || at + sizeof(u64) > returns->sz)
		return 0;
	if (*(u64 *)&record->stack[at] == returns->trampoline)
		*(u64 *)&record->stack[at] = BPF_CORE_READ(instance, orig_ret_vaddr);
	return 0;
}

/*
 * What uretprobes have taken out of the stack goes back into its copy, and into the registers of a call that is just
 * returning: nobody's callers are to be missing.
 */
VERIFIED_ONCE int put_back_returns(u64 sp, u32 sz, u32 which)
{
	struct return_instance___address *innermost = return_instances();
	struct returns returns = {.next = innermost, .sp = sp, .sz = sz, .scratch = which};
	struct stack_cpu *scratch = this_scratch(which);
	struct wl_stack_record *record;

	if (!innermost || !scratch)
		return 0;
	returns.trampoline = trampoline_addr();
	if (!returns.trampoline)
		return 0;
	record = (struct wl_stack_record *)scratch->record;
	if (record->regs[WL_STACK_REG_PC] == returns.trampoline)
		record->regs[WL_STACK_REG_PC] = BPF_CORE_READ(innermost, orig_ret_vaddr);
	bpf_loop(RETURNS_MAX, put_back, &returns, 0);
	return 0;
}

static __always_inline bool has_user_stack(struct task_struct *task)
{
	return task->mm && !(task->flags & (PF_KTHREAD | PF_IO_WORKER));
}

/* The finaliser of MurmurHash3: every bit of x moves every bit of the hash. */
static __always_inline u64 mix(u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return x;
}

/* Where the same code lies at the same addresses: in a process, and in those that it forked. */
static __always_inline u64 image_of(struct task_struct *task)
{
	struct mm_struct *mm = task->mm;

	if (!mm)
		return 0;
	return BPF_CORE_READ(mm, start_code) ^ BPF_CORE_READ(mm, mmap_base) << 17 ^
	       BPF_CORE_READ(mm, exe_file, f_inode, i_ino) << 40;
}

/* Above that address the thread has no frames.  A stack of the program's own making has no base that is known. */
static __always_inline u64 stack_base(struct task_struct *task, u64 sp)
{
	u64 top = BPF_CORE_READ(task, mm, start_stack);

	if (top > sp && top - sp < BASE_REACH)
		return top;
#if defined(__TARGET_ARCH_x86)
	top = BPF_CORE_READ(task, thread.fsbase);
	if (top > sp && top - sp < BASE_REACH)
		return top;
#endif
	return 0;
}

/*
 * Return addresses among the innermost words.  The C library's calls keep data at the stack pointer itself, and frames
 * of equal size are common, so that one word tells too little.  Other pointers would make a key of each value: a word
 * counts if it leads into the program's code, or to where the code lies that the thread is at.
 */
#define KEY_WORDS  32
#define CODE_REACH (16 << 20)

struct key_words {
	u64 at[KEY_WORDS];
};

/* Of the task that is `current`. */
VERIFIED_ONCE u64 return_addresses(struct key_words *words, u64 ip, u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 start = BPF_CORE_READ(task, mm, start_code), end = BPF_CORE_READ(task, mm, end_code), key = 0;

	if (!words || bpf_probe_read_user(words, sizeof(*words), (void *)sp))
		return 0;
	for (int i = 0; i < KEY_WORDS; i++) {
		u64 word = words->at[i];

		if (word - start < end - start ||
		    (word - ip + CODE_REACH < 2 * CODE_REACH && word - sp + BASE_REACH >= 2 * BASE_REACH))
			key = (key ^ word) * 0xff51afd7ed558ccdULL;
	}
	return key;
}

/* By which the agent finds the file of a process that may have ended when its stack is read; of `current`. */
VERIFIED_ONCE int note_program(struct wl_stack_record *record)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!record)
		return 0;
	record->exe_ino = BPF_CORE_READ(task, mm, exe_file, f_inode, i_ino);
	record->exe_start = BPF_CORE_READ(task, mm, start_code);
	record->mmap_base = BPF_CORE_READ(task, mm, mmap_base);
	return 0;
}

/* The user registers and stack of the task, which is `current`; how many bytes of it. */
static __always_inline u32 copy_user(struct stack_cpu *scratch, struct task_struct *task, u32 which)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u64 sp, sz = stack_controls.max_sz;
	u32 got = 0;

	record->exe_ino = record->exe_start = record->mmap_base = 0;
	if (!regs || !has_user_stack(task)) {
		record->flags |= WL_STACK_NO_USER;
	} else {
		if (which == SCRATCH_SAMPLE)
			note_program(record);
		if (sz > WL_STACK_SZ_MAX)
			sz = WL_STACK_SZ_MAX;
		sp = copy_registers(record->regs, regs);
		sz = stack_limit(task, sp, sz);
		got = copy_stack(scratch, sp, sz);
		put_back_returns(sp, got, which);
		if (got < sz)
			record->flags |= WL_STACK_CUT;
	}
	record->stack_sz = got;
	return got;
}

/* Of the inferred call path of the task, which is `current`. */
static __always_inline u64 call_path_key(struct task_struct *task, struct key_words *words)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 ip, sp, key;

	if (!regs || !has_user_stack(task))
		return mix(task->pid);
	ip = PT_REGS_IP_CORE(regs);
	sp = PT_REGS_SP_CORE(regs);
	key = mix(image_of(task) + ip);
	key = mix(key + stack_base(task, sp) - sp);
	return mix(key + return_addresses(words, ip, sp));
}

#endif
