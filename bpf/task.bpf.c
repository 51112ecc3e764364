// SPDX-License-Identifier: GPL-2.0-only
/* Who is followed: the threads of the target and of its children, from the start and as they come and go. */
#include "interval.h"
#include "ring.h"
#include "thread.h"

static __always_inline void send_task(u32 event, struct task_struct *task)
{
	struct wl_task_record *record = ring__reserve(WL_LOSS_TASK, WL_RECORD_TASK, sizeof(*record));

	if (!record)
		return;
	record->ts = bpf_ktime_get_ns();
	record->event = event;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->parent_pid = task->real_parent->tgid;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	ring__submit(record);
}

static __always_inline struct thread *follow(struct task_struct *task, u32 state)
{
	struct thread *thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 now = bpf_ktime_get_ns();

	if (!thread) {
		struct cpu_context *cpu = this_cpu();

		if (cpu)
			count_loss(cpu, WL_LOSS_NO_CONTEXT);
		return NULL;
	}
	if (thread->word)
		return thread;
	thread->window = controls.window;
	thread->pid = task->tgid;
	thread->tid = task->pid;
	thread->run_state = WL_STATE_RUNNING;
	thread->blocked = state == WL_STATE_BLOCKED_OTHER;
	thread->activity_ts = now;
	thread->history[thread->history_pos++ & (HISTORY_LEN - 1)] = now << STATE_BITS | state;
	thread->word = now << STATE_BITS | state;
	send_task(WL_TASK_SEEN, task);
	return thread;
}

/*
 * Run once, after the scheduler hooks are attached: adopts the threads that exist.  A thread that is switched between
 * the look at its state and the hooks' first sight of it is in the wrong state until its next switch, and in no
 * interval yet.
 */
SEC("iter/task")
int adopt_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 pid;

	if (!task)
		return 0;
	pid = task->tgid;
	if (!bpf_map_lookup_elem(&targets, &pid))
		return 0;
	follow(task, BPF_CORE_READ(task, __state) == 0 ? WL_STATE_RUNNING : WL_STATE_BLOCKED_OTHER);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (!thread_of(parent))
		return 0;
	if (child->tgid != parent->tgid && !cfg_knobs.children)
		return 0;
	follow(child, WL_STATE_RUNQ_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	if (thread_of(task))
		send_task(WL_TASK_EXEC, task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct thread *thread = thread_of(task);

	if (!thread)
		return 0;
	if (thread->current_sid)
		interval__abandon(thread, thread->current_sid);
	if (thread->function_sp && thread->function_sid != thread->current_sid)
		interval__abandon(thread, thread->function_sid);
	send_task(WL_TASK_EXIT, task);
	return 0;
}
