// SPDX-License-Identifier: GPL-2.0-or-later
/* Who is followed: the threads of the target and of its children, from the start and as they come and go. */
#include "follow.h"
#include "goroutine.h"
#include "interval.h"
#include "wait.h"

/*
 * Trace mode: what a thread that is blocked already waits for.  A lock that it holds or waits for since before the
 * hooks were attached is on the path of intervals that begin later.  A thread that is woken meanwhile is left as it is.
 */
static __always_inline void thread__describe_wait(struct thread *thread, struct task_struct *task)
{
	u64 word = *(volatile u64 *)&thread->word, owner_at, *last;
	struct wl_wait wait = {};
	u32 state;

	if (word_state(word) != WL_STATE_BLOCKED_OTHER || task_is_queued(task))
		return;
	state = wait_of_task(task, &wait, &owner_at);
	if (owner_at)
		bpf_copy_from_user_task(&wait.owner_tid, sizeof(wait.owner_tid), (void *)owner_at, task, 0);
	if (*(volatile u64 *)&thread->word != word)
		return;
	thread->wait = wait;
	if (__sync_val_compare_and_swap(&thread->word, word, (word & ~(u64)STATE_MASK) | state) != word)
		return;
	last = thread__past(thread, 0);
	if (*last == word)
		*last = (word & ~(u64)STATE_MASK) | state;
}

/*
 * Run after the hooks are attached: adopts the threads of the target that exist; in a window, meets all that are
 * followed.  A thread that is switched between the look at its state and the hooks' first sight of it is in the wrong
 * state until its next switch, and in no interval yet.
 */
SEC("iter.s/task")
int adopt_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct following following = {};
	struct thread *thread;

	if (!task)
		return 0;
	following.state = BPF_CORE_READ(task, __state) == 0 ? WL_STATE_RUNNING : WL_STATE_BLOCKED_OTHER;
	follow_membership(task, thread_of(task), &following);
	thread = cfg_knobs.trace ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;
	if (thread)
		thread__describe_wait(thread, task);
	return 0;
}

/*
 * A process was moved to another cgroup, or one of its threads: the task itself is looked at now, its other threads
 * when the agent runs adopt_threads() again.
 */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_cgroup_attach, void *cgroup, const char *path, struct task_struct *task)
{
	struct following following = {};

	if (!cfg_knobs.cgroup_id)
		return 0;
	following.state = BPF_CORE_READ(task, __state) == 0 ? WL_STATE_RUNNING : WL_STATE_BLOCKED_OTHER;
	follow_membership(task, thread_of(task), &following);
	__sync_fetch_and_add(&controls.cgroup_moves, 1);
	return 0;
}

/*
 * A server behind the target makes a thread or a process for a connection: what has held that up is what its creator
 * did.
 */
static __always_inline void follow_new_outsider(struct thread *creator, struct task_struct *child,
						const struct following *following)
{
	struct cpu_context *cpu = cfg_knobs.trace && !at_rest() ? this_cpu() : NULL;
	u32 pid = bpf_get_current_pid_tgid() >> 32;

	if (!cpu)
		return;
	if (!creator && bpf_map_lookup_elem(&creator_pids, &pid))
		creator = follow_current(cpu);
	if (!creator || creator->outside != OUTSIDE_FOLLOWED)
		return;
	thread__cut(creator);
	follow_outsider(cpu, child, following);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct following following = {.state = WL_STATE_RUNQ_WAKEUP, .creator_tid = parent->pid};
	struct thread *thread = thread_of(parent);
	bool inside;

	/* It begins in its parent's cgroup, or in another one (CLONE_INTO_CGROUP). */
	if (cfg_knobs.cgroup_id)
		inside = task_is_target(child);
	else
		inside =
			thread && thread->outside == OUTSIDE_NOT && (child->tgid == parent->tgid || cfg_knobs.children);
	if (!inside) {
		following.outside = OUTSIDE_FOLLOWED;
		follow_new_outsider(thread, child, &following);
		return 0;
	}
	if (thread)
		thread__cut(thread);
	follow(child, &following);
	return 0;
}

struct linux_binprm___path {
	const char *interp;
} __attribute__((preserve_access_index));

/* By which the agent finds the file of a program that ends before its mappings are read. */
static __always_inline void program__send(struct task_struct *task, struct linux_binprm___path *bprm)
{
	struct wl_program_record *record = ring__reserve(WL_LOSS_TASK, WL_RECORD_PROGRAM, sizeof(*record));

	if (!record)
		return;
	record->ts = bpf_ktime_get_ns();
	record->ino = BPF_CORE_READ(task, mm, exe_file, f_inode, i_ino);
	record->pid = task->tgid;
	record->parent_pid = BPF_CORE_READ(task, real_parent, tgid);
	__builtin_memset(record->path, 0, sizeof(record->path));
	bpf_probe_read_kernel_str(record->path, sizeof(record->path), BPF_CORE_READ(bprm, interp));
	ring__submit(record);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm___path *bprm)
{
	struct thread *thread = thread_of(task);

	if (cfg_knobs.stacks && (thread || !at_rest()))
		program__send(task, bprm);
	if (!thread)
		return 0;
	/* Its stack is another one now. */
	thread__end_calls(thread);
	if (thread->function_sp)
		interval__abandon(thread, thread->function_sid);
	thread->function_sp = 0;
	task__send(bpf_ktime_get_ns(), WL_TASK_EXEC, task, 0, thread->outside);
	return 0;
}

/* A thread has its creator's name until it, or its creator, gives it one. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct wl_task_record *record =
		thread_of(task) ? ring__reserve(WL_LOSS_TASK, WL_RECORD_TASK, sizeof(*record)) : NULL;

	if (!record)
		return 0;
	record->ts = bpf_ktime_get_ns();
	record->event = WL_TASK_RENAMED;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->parent_pid = record->creator_tid = record->outside = 0;
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), comm);
	ring__submit(record);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct thread *thread = thread_of(task);

	if (!thread)
		return 0;
	if (cfg_knobs.goroutines)
		goroutine__leave(thread, false);
	thread__end_calls(thread);
	if (thread->current_sid)
		interval__abandon(thread, thread->current_sid);
	if (thread->function_sp && thread->function_sid != thread->current_sid)
		interval__abandon(thread, thread->function_sid);
	thread__cut(thread);
	if (thread->outside == OUTSIDE_FOLLOWED)
		__sync_fetch_and_add(&controls.outside_cnt, -1);
	task__send(bpf_ktime_get_ns(), WL_TASK_EXIT, task, 0, thread->outside);
	return 0;
}
