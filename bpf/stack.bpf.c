// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks of followed threads while they work for selected intervals, and of any task while it delays one: at the ticks
 * of two clocks, the kernel's own and ours, and when a followed thread gives up the CPU to wait.  What leaves are
 * registers, bytes and the kernel's return addresses; the agent unwinds and names them.  Attached only while they are
 * wanted.
 *
 * A wait's length is exact, so only its stack is sampled: its identity is the inferred call path (instruction pointer
 * and depth from the thread's base; Mytkowicz, Coughlin and Diwan, OOPSLA 2009), with the return addresses nearest to
 * the stack pointer.  That key goes with each wait; the stack itself is copied where the key is new, or due for a
 * check.
 */
#include "compat.h"
#include "delay.h"
#include "follow.h"
#include "opens.h"
#include "python.h"
#include "ring.h"
#include "stack_waits.h"
#include "thread.h"

struct stack_controls stack_controls;

/* Waits for no selected interval are looked at so often per thread: they matter where others wait for them. */
#define DELAYING_GAP_NS      1000000
#define TASK_UNINTERRUPTIBLE 2
/* The kernel's tick comes at multiples of its period; what comes later than this part of it is another timer. */
#define TICK_LATE_OF 8

/* Processes of which the agent has got a stack: the first one wakes it up, so that it reads their maps in time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} stack_pids SEC(".maps");

static __always_inline struct wl_python_record *python__record(void)
{
	struct stack_cpu *scratch = this_scratch(SCRATCH_SAMPLE);

	return scratch ? &scratch->python : NULL;
}

#include "values.h"

/* The selected interval that the thread works for: false if there is none. */
static __always_inline bool works_for_selected(struct thread *thread, u64 *its_sid, u64 *context, u32 *rate)
{
	u64 sid = thread->current_sid;
	struct open_interval *open;

	if (!sid || !thread->current_recorded)
		return false;
	/* Of an earlier window there may be a mark left, but no interval. */
	open = open_find(sid);
	if (!open || open->paused)
		return false;
	*its_sid = sid;
	*context = open->context;
	*rate = open->rate;
	return true;
}

/* All of the target's threads are wanted, whatever they are at. */
static __always_inline bool is_wanted_always(struct thread *thread)
{
	return stack_controls.always && thread && !thread->outside;
}

static __always_inline bool is_new_process(u32 pid)
{
	u32 one = 1;

	if (bpf_map_lookup_elem(&stack_pids, &pid))
		return false;
	bpf_map_update_elem(&stack_pids, &pid, &one, BPF_ANY);
	return true;
}

/* The frames of Python code that python__walk() has found go before the stack. */
static __always_inline void python__send(struct stack_cpu *scratch, struct wl_stack_record *record)
{
	if (!scratch->python.cnt)
		return;
	scratch->python.ts = record->ts;
	if (stack__output(&scratch->python.header, WL_RECORD_PYTHON, sizeof(scratch->python), false, WL_LOSS_STACK))
		record->flags |= WL_STACK_PYTHON;
}

/* Registers and stack; everything else is the caller's.  Was it sent? */
static __always_inline bool stack__send(void *ctx, struct stack_cpu *scratch, struct task_struct *task,
					struct thread *thread)
{
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u32 tid = task->pid;
	long kernel_sz;
	bool wake;
	u64 sz;

	/* Two loads: one instruction may not read either. */
	barrier_var(tid);
	if (thread)
		tid = thread->tid;
	record->pid = task->tgid;
	record->tid = tid;
	kernel_sz = bpf_get_stack(ctx, record->kernel, sizeof(record->kernel), 0);
	record->kernel_cnt = kernel_sz > 0 ? kernel_sz / sizeof(u64) : 0;
	sz = sizeof(*record) + copy_user(scratch, task, SCRATCH_SAMPLE);
	python__send(scratch, record);
	wake = is_new_process(record->pid);
	/* Older verifiers (6.1) keep the bound of the sum itself only. */
	barrier_var(sz);
	return sz <= sizeof(*record) + WL_STACK_SZ_MAX &&
	       stack__output(&record->header, WL_RECORD_STACK, sz, wake, WL_LOSS_STACK);
}

/* Of the task that is `current`, before the stack of the tick, for which the reader looks for them. */
VERIFIED_ONCE int values__send(u64 ts)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct wl_values_record *record;
	u64 sz;

	if (!cfg_knobs.values || !regs || !has_user_stack(task))
		return 0;
	record = read_values(task, regs, ts);
	if (!record)
		return 0;
	sz = offsetof(struct wl_values_record, words) + record->cnt * sizeof(record->words[0]);
	barrier_var(sz);
	if (sz <= sizeof(*record))
		stack__output(&record->header, WL_RECORD_VALUES, sz, false, WL_LOSS_VALUE);
	return 0;
}

/* --- ticks -------------------------------------------------------------------------------------------------------- */

/* Thread time between two ticks on a CPU, of both clocks together: rates add. */
static __always_inline u64 tick_period_ns(void)
{
	u64 own_ns = stack_controls.own_ns, kernel_ns = stack_controls.kernel_ns;

	return own_ns && kernel_ns ? own_ns * kernel_ns / (own_ns + kernel_ns) : own_ns + kernel_ns;
}

static __always_inline int tick(void *ctx, struct stack_cpu *scratch, struct task_struct *task, u32 flags)
{
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	struct thread *thread = thread_of(task);
	u64 no_python = 0;

	record->sid = 0;
	record->context = 0;
	record->delays = delays_of(task, thread);
	if (thread && works_for_selected(thread, &record->sid, &record->context, &record->rate)) {
		/* Its own is one of those that are open on the thread. */
		if (record->delays)
			record->delays--;
	} else {
		record->rate = controls.selection;
		if (!record->delays && !is_wanted_always(thread))
			return 0;
	}
	/* The threads that are followed have been named. */
	if (!thread)
		task__name(task->tgid, task->pid, task->comm);
	record->ts = bpf_ktime_get_ns();
	record->period_ns = tick_period_ns();
	record->key = 0;
	record->state = WL_STATE_RUNNING;
	record->flags = flags;
	python__walk(thread ? &thread->python_thread : &no_python);
	values__send(record->ts);
	stack__send(ctx, scratch, task, thread);
	return 0;
}

SEC("perf_event")
int on_stack_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_cpu *scratch = this_scratch(SCRATCH_SAMPLE);

	if (!task->pid || !scratch || at_rest())
		return 0;
	return tick(ctx, scratch, task, (s64)PT_REGS_IP(&ctx->regs) < 0 ? WL_STACK_IN_KERNEL : 0);
}

#if defined(__TARGET_ARCH_x86)
/* Other timers come by this vector, too; the first one of a period that comes in time is the tick. */
SEC("tp_btf/local_timer_entry")
int BPF_PROG(on_stack_kernel_tick)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_cpu *scratch = this_scratch(SCRATCH_SAMPLE);
	u64 period_ns = stack_controls.kernel_ns, now, slot;

	if (!period_ns || !task->pid || !scratch || at_rest())
		return 0;
	now = bpf_ktime_get_ns();
	slot = now / period_ns;
	if (slot == scratch->tick_slot || now - slot * period_ns > period_ns / TICK_LATE_OF)
		return 0;
	scratch->tick_slot = slot;
	return tick(ctx, scratch, task, WL_STACK_IN_KERNEL | WL_STACK_KERNEL_TICK);
}
#endif

/* --- waits -------------------------------------------------------------------------------------------------------- */

/* States in which the system call does not tell where in the kernel it waits: long ones, which pay for a look. */
#define KERNEL_KEYED (bit(WL_STATE_BLOCKED_DISK) | bit(WL_STATE_BLOCKED_OTHER) | bit(WL_STATE_FAULT_MAJOR))
/* Innermost return addresses, the sampler's own included, that tell one such place from another. */
#define KERNEL_KEY_DEPTH 16

static __always_inline u64 kernel_key(void *ctx, struct wl_stack_record *record)
{
	u64 key = 0;
	long sz;

	sz = bpf_get_stack(ctx, record->kernel, KERNEL_KEY_DEPTH * sizeof(u64), 0);
	for (int i = 0; i < KERNEL_KEY_DEPTH; i++)
		if (sz > (long)(i * sizeof(u64)))
			key = (key ^ record->kernel[i]) * 0xff51afd7ed558ccdULL;
	return mix(key);
}

/* In its loop, between requests: a thread that waits for the next one is in nobody's way. */
static __always_inline bool is_idle(struct thread *thread, u32 state)
{
	return !thread->outside && !thread->recording &&
	       (state == WL_STATE_BLOCKED_NET || state == WL_STATE_BLOCKED_POLL);
}

/* A wait for a timer, or one that no signal ends (a disk, a lock of the kernel's). */
static __always_inline bool is_long(struct task_struct *task, unsigned int task_state)
{
	long nr = call_of(task, (struct pt_regs *)bpf_task_pt_regs(task));

	return task_state & TASK_UNINTERRUPTIBLE ||
	       (nr >= 0 && cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)] == WAIT_SLEEP);
}

/* Is the thread, which works for no selected interval, not to be looked at again so soon?  Long waits count apart. */
static __always_inline bool was_just_seen(struct task_struct *task, struct thread *thread, unsigned int task_state,
					  u64 now)
{
	if (now >= thread->stack_next_ts) {
		thread->stack_next_ts = now + DELAYING_GAP_NS;
		return false;
	}
	if (now < thread->stack_long_ts || !is_long(task, task_state))
		return true;
	thread->stack_long_ts = now + DELAYING_GAP_NS;
	return false;
}

static __always_inline void wait_begins(void *ctx, struct task_struct *task, struct thread *thread,
					unsigned int task_state)
{
	struct stack_cpu *scratch = this_scratch(SCRATCH_SAMPLE);
	struct known_stack fresh = {.hits = 1, .check_at = CHECK_FIRST}, *known;
	struct wl_stack_record *record;
	struct wl_wait wait = {};
	u64 now, key;

	thread->stack_ts = 0;
	if (!scratch || !stack_controls.gap_ns || at_rest())
		return;
	now = bpf_ktime_get_ns();
	thread->stack_sid = 0;
	thread->stack_context = 0;
	if (!works_for_selected(thread, &thread->stack_sid, &thread->stack_context, &thread->stack_rate)) {
		thread->stack_rate = controls.selection;
		if (!is_wanted_always(thread) && was_just_seen(task, thread, task_state, now))
			return;
	}
	thread->stack_state = blocked_state(task, &wait);
	if (thread->in_fault)
		thread->stack_state = WL_STATE_FAULT_MAJOR;
	else if (!thread->stack_sid && is_idle(thread, thread->stack_state) && !is_wanted_always(thread))
		return;
	thread->stack_object = wait.object;
	thread->stack_sysno = wait.sysno;
	thread->stack_cpu = bpf_get_smp_processor_id();
	record = (struct wl_stack_record *)scratch->record;
	/* What it waits for: the kernel's part of the stack depends on it. */
	key = call_path_key(task, (void *)record->stack) ^ thread->stack_state;
	if (KERNEL_KEYED & bit(thread->stack_state & STATE_MASK))
		key += kernel_key(ctx, record);
	key += python__walk(&thread->python_thread);
	thread->stack_key = key;
	thread->stack_ts = now;
	known = bpf_map_lookup_elem(&known_stacks, &key);
	if ((known && !is_copied(known)) || !take_copy(scratch, now))
		return;
	record->ts = now;
	record->sid = thread->stack_sid;
	record->context = thread->stack_context;
	record->period_ns = 0;
	record->key = key;
	record->rate = thread->stack_rate;
	record->delays = 0;
	record->state = thread->stack_state;
	record->flags = WL_STACK_IN_KERNEL | WL_STACK_WAITS;
	if (stack__send(ctx, scratch, task, thread) && !known)
		bpf_map_update_elem(&known_stacks, &key, &fresh, BPF_ANY);
}

/* Whether this runs before or after the program that moves the thread's state on is not said. */
static __always_inline u64 woken_ts(struct thread *thread, u64 now)
{
	u64 word = thread->word;

	if (!(bit(word_state(word)) & RUNQ_STATES))
		word = *thread__past(thread, 1);
	return (bit(word_state(word)) & RUNQ_STATES) && word_ts(word) < now ? word_ts(word) : now;
}

/*
 * A wait that is for no selected interval matters if one went on nowhere meanwhile, which it may have delayed.  Those
 * that spin for a lock seem to go on.
 */
static __always_inline u32 delayed_meanwhile(struct thread *thread, u64 since_ts)
{
	u32 cnt = owed__cnt(thread->tid);

	cnt = cnt ? cnt : hidden_cnt();
	if (cnt)
		return cnt;
	return *(volatile u64 *)&controls.waited_ts > since_ts || (stack_controls.spins && !thread->outside);
}

static __always_inline void wait_ends(struct thread *thread)
{
	u64 now = bpf_ktime_get_ns(), woken = woken_ts(thread, now), floor_ns = stack_controls.floor_ns;
	struct wl_stack_wait_record record = {
		.ts = thread->stack_ts,
		.sid = thread->stack_sid,
		.key = thread->stack_key,
		.context = thread->stack_context,
		.object = thread->stack_object,
		.pid = thread->pid,
		.tid = thread->tid,
		.rate = thread->stack_rate,
		.state = thread->stack_state,
		.sysno = thread->stack_sysno,
		.begin_cpu = thread->stack_cpu,
	};

	thread->stack_ts = 0;
	if (now <= record.ts)
		return;
	/* Own waits come often; one that matters to others is known by them, or is long. */
	if (!record.sid || now - record.ts >= DELAYING_GAP_NS)
		record.delays = delayed_meanwhile(thread, record.ts);
	else
		record.delays = owed__cnt(thread->tid);
	if (!record.sid && !record.delays && !is_wanted_always(thread))
		return;
	/* Short ones in proportion to their length (Duffield, Lund and Thorup 2005): sums stay unbiased. */
	if (now - record.ts < floor_ns) {
		record.chance = ((now - record.ts) << 32) / floor_ns;
		if (!record.chance || bpf_get_prandom_u32() >= record.chance)
			return;
	}
	if (woken < record.ts)
		woken = record.ts;
	record.blocked_ns = woken - record.ts;
	record.runq_ns = now - woken;
	stack__output(&record.header, WL_RECORD_STACK_WAIT, sizeof(record), false, WL_LOSS_STACK);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_stack_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct thread *thread;

	if (at_rest())
		return 0;
	thread = thread_of(prev);
	if (thread && !preempt && prev_state)
		wait_begins(ctx, prev, thread, prev_state);
	thread = thread_of(next);
	if (thread && thread->stack_ts)
		wait_ends(thread);
	return 0;
}

/* From one run queue to another; where a task that is woken is put, this comes first and it is in none yet. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_stack_migrate, struct task_struct *task, int dest_cpu)
{
	struct thread *thread = at_rest() ? NULL : thread_of(task);

	if (thread)
		delay__migrate(thread, dest_cpu);
	return 0;
}
