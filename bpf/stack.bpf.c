// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User stacks of followed threads while they work for selected intervals: at a clock's ticks, and when they give up the
 * CPU to wait.  What leaves are registers and bytes; the agent unwinds them.  Attached only while they are wanted.
 */
#include "compat.h"
#include "ring.h"
#include "thread.h"
#include "uretprobe.h"
#include "wait.h"

/* Read a piece at a time, none of which crosses a page: one that is not there ends the stack. */
#define PIECE_SZ 1024

struct stack_controls stack_controls;

struct stack_cpu {
	u64 next_wait_ts; /* no wait is sampled before */
	u32 waits;        /* passed over since the last one */
	u32 zero;
	/* A wl_stack_record, its stack, and room for what the verifier thinks possible. */
	u64 record[(sizeof(struct wl_stack_record) + WL_STACK_SZ_MAX + PIECE_SZ) / sizeof(u64)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_cpu);
} stack_cpus SEC(".maps");

static __always_inline struct stack_cpu *this_stack_cpu(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&stack_cpus, &key);
}

/* A sample lost is a sample fewer, not an interval that lacks something: lost_mark stays. */
static __always_inline void stack__output(struct wl_record_header *header, u16 kind, u64 sz)
{
	struct cpu_context *cpu = this_cpu();
	u32 id = bpf_get_smp_processor_id();
	void *ring = ring__of_cpu(id);
	u64 backlog;

	if (!cpu)
		return;
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_STACK].emitted, 1);
	header->kind = kind;
	header->sz = sz;
	header->cpu = id;
	if (ring) {
		backlog = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
		if (backlog <= stack_controls.backlog_sz &&
		    !bpf_ringbuf_output(ring, header, sz, ring__wake_flag(cpu, backlog)))
			return;
	}
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_STACK].lost, 1);
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
static __noinline u32 copy_stack(struct stack_cpu *scratch, u64 sp, u64 sz)
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
};

static long put_back(u32 idx, struct returns *returns)
{
	struct return_instance___address *instance = returns->next;
	struct stack_cpu *scratch = this_stack_cpu();
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
static __always_inline void put_back_returns(struct wl_stack_record *record, u64 sp, u32 sz)
{
	struct return_instance___address *innermost = return_instances();
	struct returns returns = {.next = innermost, .sp = sp, .sz = sz};

	if (!innermost)
		return;
	returns.trampoline = trampoline_addr();
	if (!returns.trampoline)
		return;
	if (record->regs[WL_STACK_REG_PC] == returns.trampoline)
		record->regs[WL_STACK_REG_PC] = BPF_CORE_READ(innermost, orig_ret_vaddr);
	bpf_loop(RETURNS_MAX, put_back, &returns, 0);
}

/* The selected interval that the thread works for: false if there is none. */
static __always_inline bool works_for_selected(struct thread *thread, struct wl_stack_record *record)
{
	u64 sid = thread->current_sid;
	struct open_interval *open;

	if (!sid || !thread->current_recorded)
		return false;
	/* Of an earlier window there may be a mark left, but no interval. */
	open = bpf_map_lookup_elem(&opens, &sid);
	if (!open || open->paused)
		return false;
	record->sid = sid;
	record->rate = open->rate;
	return true;
}

static __always_inline bool is_wanted(struct thread *thread, struct wl_stack_record *record)
{
	record->sid = 0;
	record->rate = 0;
	if (works_for_selected(thread, record))
		return true;
	return stack_controls.always && !thread->outside;
}

/* Registers and stack; everything else is the caller's. */
static __always_inline void stack__send(struct stack_cpu *scratch, struct task_struct *task, struct thread *thread)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u64 sp, sz = stack_controls.max_sz;
	u32 got;

	if (!regs)
		return;
	if (sz > WL_STACK_SZ_MAX)
		sz = WL_STACK_SZ_MAX;
	record->ts = bpf_ktime_get_ns();
	record->pid = thread->pid;
	record->tid = thread->tid;
	sp = copy_registers(record->regs, regs);
	sz = stack_limit(task, sp, sz);
	got = copy_stack(scratch, sp, sz);
	put_back_returns(record, sp, got);
	if (got < sz)
		record->flags |= WL_STACK_CUT;
	record->stack_sz = got;
	if (got <= WL_STACK_SZ_MAX)
		stack__output(&record->header, WL_RECORD_STACK, sizeof(*record) + got);
}

SEC("perf_event")
int on_stack_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_cpu *scratch = this_stack_cpu();
	struct wl_stack_record *record;
	struct thread *thread;

	if (!task->mm || !scratch)
		return 0;
	thread = thread_of(task);
	record = (struct wl_stack_record *)scratch->record;
	if (!thread || !is_wanted(thread, record))
		return 0;
	record->running_ns = stack_controls.tick_ns;
	record->object = 0;
	record->stands_for = 1;
	record->state = WL_STATE_RUNNING;
	record->sysno = -1;
	record->flags = (s64)PT_REGS_IP(&ctx->regs) < 0 ? WL_STACK_IN_KERNEL : 0;
	stack__send(scratch, task, thread);
	return 0;
}

static __always_inline void wait_begins(struct task_struct *task, struct thread *thread)
{
	struct stack_cpu *scratch = this_stack_cpu();
	struct wl_stack_record *record;
	struct wl_wait wait = {};
	u64 now;

	if (!scratch || !stack_controls.gap_ns || !task->mm)
		return;
	record = (struct wl_stack_record *)scratch->record;
	if (!is_wanted(thread, record))
		return;
	scratch->waits++;
	now = bpf_ktime_get_ns();
	if (now < scratch->next_wait_ts)
		return;
	/* Not in step with anything that the target does. */
	scratch->next_wait_ts =
		now + stack_controls.gap_ns / 2 + ((u64)bpf_get_prandom_u32() * stack_controls.gap_ns >> 32);
	record->running_ns = 0;
	record->stands_for = scratch->waits;
	record->state = blocked_state(task, &wait);
	record->object = wait.object;
	record->sysno = wait.sysno;
	if (thread->in_fault)
		record->state = WL_STATE_FAULT_MAJOR;
	record->flags = WL_STACK_IN_KERNEL | WL_STACK_WAITS;
	scratch->waits = 0;
	stack__send(scratch, task, thread);
	thread->stack_ts = record->ts;
}

/* Whether this runs before or after the program that moves the thread's state on is not said. */
static __always_inline u64 woken_ts(struct thread *thread, u64 now)
{
	u64 word = thread->word;

	if (!(bit(word_state(word)) & RUNQ_STATES))
		word = *thread__past(thread, 1);
	return (bit(word_state(word)) & RUNQ_STATES) && word_ts(word) < now ? word_ts(word) : now;
}

static __always_inline void wait_ends(struct thread *thread)
{
	struct wl_stack_wait_record record = {.ts = thread->stack_ts, .pid = thread->pid, .tid = thread->tid};
	u64 now = bpf_ktime_get_ns(), woken = woken_ts(thread, now);

	thread->stack_ts = 0;
	if (woken < record.ts)
		woken = record.ts;
	record.blocked_ns = woken - record.ts;
	record.runq_ns = now - woken;
	stack__output(&record.header, WL_RECORD_STACK_WAIT, sizeof(record));
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_stack_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread *thread = thread_of(prev);

	if (thread && !preempt && prev_state)
		wait_begins(prev, thread);
	thread = thread_of(next);
	if (thread && thread->stack_ts)
		wait_ends(thread);
	return 0;
}
