/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is followed, and what the agent is told of it. */
#ifndef WHYLATE_BPF_FOLLOW_H
#define WHYLATE_BPF_FOLLOW_H

#include "ring.h"
#include "thread.h"

struct following {
	u32 state;       /* what it is at, as far as that can be seen */
	u32 creator_tid; /* the thread that has created it just now, 0: it existed */
	u32 outside;     /* enum outside */
};

/* Is it one of the target's, as the target is now? */
static __noinline int task_is_target(struct task_struct *task)
{
	u32 pid;

	if (!task)
		return 0;
	if (cfg_knobs.cgroup_id) {
		struct cgroup___place *cgroup = cfg_knobs.cgroup_hierarchy
							? task_cgroup_v1(task, cfg_knobs.cgroup_hierarchy)
							: task_cgroup_v2(task);

		return cgroup_is_below(cgroup, cfg_knobs.cgroup_id);
	}
	pid = task->tgid;
	return bpf_map_lookup_elem(&targets, &pid) != NULL;
}

static __noinline int task__send(u64 ts, u32 event, struct task_struct *task, u32 creator_tid, u32 outside)
{
	struct wl_task_record *record;

	if (!task)
		return 0;
	record = ring__reserve(WL_LOSS_TASK, WL_RECORD_TASK, sizeof(*record));
	if (!record)
		return 0;
	/* A new thread's history begins at the very moment that its creation is said to be. */
	record->ts = ts;
	record->event = event;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->parent_pid = BPF_CORE_READ(task, real_parent, tgid);
	record->creator_tid = creator_tid;
	record->outside = outside != OUTSIDE_NOT;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), task->comm);
	/* A new process does what is to be probed in a moment. */
	if (cfg_knobs.probes && event == WL_TASK_SEEN && creator_tid && task->tgid == task->pid)
		ring__submit_now(record);
	else
		ring__submit(record);
	return 0;
}

static __always_inline struct thread *follow(struct task_struct *task, const struct following *following)
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
	thread->tid = thread->kernel_tid = task->pid;
	thread->outside = following->outside;
	thread->run_state = WL_STATE_RUNNING;
	thread->blocked = following->state == WL_STATE_BLOCKED_OTHER;
	thread->activity_ts = now;
	thread->history[thread->history_pos++ & (HISTORY_LEN - 1)] = now << STATE_BITS | following->state;
	thread->word = now << STATE_BITS | following->state;
	task__send(now, WL_TASK_SEEN, task, following->creator_tid, following->outside);
	return thread;
}

/*
 * The task is in the target's cgroup, or is not: it is followed from now on, or no longer one of the target's.  Returns
 * its context, if it has any.
 */
static __always_inline struct thread *follow_membership(struct task_struct *task, struct thread *thread,
							const struct following *following)
{
	bool inside = task_is_target(task);

	if (!thread)
		return inside ? follow(task, following) : NULL;
	if (!inside) {
		if (thread->outside == OUTSIDE_NOT && cfg_knobs.cgroup_id)
			thread->outside = OUTSIDE_LEFT;
	} else if (thread->outside != OUTSIDE_NOT) {
		if (thread->outside == OUTSIDE_FOLLOWED)
			__sync_fetch_and_add(&controls.outside_cnt, -1);
		thread->outside = OUTSIDE_NOT;
		task__send(bpf_ktime_get_ns(), WL_TASK_SEEN, task, 0, OUTSIDE_NOT);
	}
	return thread;
}

/* Processes whose threads, or young children, came to be followed: they may make more of them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} creator_pids SEC(".maps") __weak;

#define YOUNG_NS 1000000000ULL

static __always_inline void note_creator(struct task_struct *task)
{
	u32 pid = task->tgid, one = 1;

	if (task->pid == task->tgid && bpf_ktime_get_ns() - task->start_time < YOUNG_NS)
		pid = BPF_CORE_READ(task, real_parent, tgid);
	bpf_map_update_elem(&creator_pids, &pid, &one, BPF_ANY);
}

/* Follows a task outside the target.  NULL beyond the limit, which is counted. */
static __always_inline struct thread *follow_outsider(struct cpu_context *cpu, struct task_struct *task,
						      const struct following *following)
{
	struct thread *thread;

	if (__sync_fetch_and_add(&controls.outside_cnt, 1) >= cfg_knobs.outside_max) {
		__sync_fetch_and_add(&controls.outside_cnt, -1);
		/* What is missing is a thread's history, no record: intervals are not flagged for it. */
		__sync_fetch_and_add(&cpu->loss[WL_LOSS_SCOPE].lost, 1);
		return NULL;
	}
	thread = follow(task, following);
	if (thread)
		note_creator(task);
	else
		__sync_fetch_and_add(&controls.outside_cnt, -1);
	return thread;
}

/*
 * Scope grows by need (trace mode): the running task woke or fed a followed thread, so what it did before matters from
 * now on.
 */
static __always_inline struct thread *follow_current(struct cpu_context *cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct following following = {.state = WL_STATE_RUNNING, .outside = OUTSIDE_FOLLOWED};
	struct thread *thread;

	if (!task->pid)
		return NULL;
	thread = thread_of(task);
	if (thread)
		return thread;
	thread = follow_outsider(cpu, task, &following);
	if (thread)
		cpu->followed = 1;
	return thread;
}

#endif
