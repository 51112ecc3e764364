/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Differences between kernels from 6.1 on, all in one place.  Each says which release made the difference.
 *
 * What changed before 6.1 needs nothing here, and is why this does not load there: task_struct.__state (5.14, `state`
 * before), prev_state as an argument of sched_switch (5.18), handle_mm_fault() with registers (5.9), sk_type and
 * sk_protocol as whole fields (5.6).  Where the user's registers lie changed with FRED (7.0, 16 bytes lower):
 * bpf_task_pt_regs() knows, and nothing here computes it.  The socket tracepoints (6.3) and uprobe_multi (6.6) are
 * tiers of capture/hook.def.
 */
#ifndef WHYLATE_BPF_COMPAT_H
#define WHYLATE_BPF_COMPAT_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* 6.18 throttles tasks one by one, on their way to user space (task_struct.throttled); before, whole cfs_rq
 * hierarchies. */
struct task_struct___task_throttle {
	bool throttled;
} __attribute__((preserve_access_index));

static __always_inline bool task_is_throttled(struct task_struct *task)
{
	struct task_struct___task_throttle *newer = (void *)task;

	if (bpf_core_field_exists(newer->throttled))
		return BPF_CORE_READ(newer, throttled);
	if (bpf_core_field_exists(struct cfs_rq, throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

/* In thread_info since 5.16 on all architectures that keep it in the task; before, and elsewhere, in task_struct. */
struct task_struct___own_cpu {
	unsigned int cpu;
} __attribute__((preserve_access_index));

static __always_inline u32 task_cpu(struct task_struct *task)
{
	struct task_struct___own_cpu *older = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ(older, cpu);
}

/* Bytes since 7.2; before, int, which libbpf does not make a byte of by itself because it has a sign. */
struct task_struct___byte_flags {
	u8 on_cpu, on_rq;
} __attribute__((preserve_access_index));

static __always_inline bool task_is_on_cpu(struct task_struct *task)
{
	struct task_struct___byte_flags *newer = (void *)task;

	return bpf_core_field_size(task->on_cpu) == sizeof(newer->on_cpu) ? newer->on_cpu : task->on_cpu;
}

/* It wants a CPU, or has one. */
static __always_inline bool task_is_queued(struct task_struct *task)
{
	struct task_struct___byte_flags *newer = (void *)task;

	if (bpf_core_field_size(task->on_rq) == sizeof(newer->on_rq))
		return newer->on_rq || newer->on_cpu;
	return task->on_rq || task->on_cpu;
}

/* Only what tells where a task is in a hierarchy; ancestors[] is of 6.1, and lies in an anonymous union since 6.17. */
struct kernfs_node___id {
	u64 id;
} __attribute__((preserve_access_index));

struct cgroup_root___id {
	int hierarchy_id;
} __attribute__((preserve_access_index));

struct cgroup___place {
	struct kernfs_node___id *kn;
	int level;
	struct cgroup_root___id *root;
	struct cgroup___place *ancestors[1];
} __attribute__((preserve_access_index));

struct cgrp_cset_link___place {
	struct cgroup___place *cgrp;
	struct list_head cgrp_link;
} __attribute__((preserve_access_index));

#define CGROUP_DEPTH_MAX 32

/*
 * Is the cgroup that one, or below it?  Only ids of one hierarchy can be compared.  In a cgroup namespace the agent
 * does not know how deep the cgroup lies, so all ancestors are asked, the cgroup itself included.
 */
static __always_inline bool cgroup_is_below(struct cgroup___place *cgroup, u64 id)
{
	int level = cgroup ? BPF_CORE_READ(cgroup, level) : -1;

	for (int i = 0; i < CGROUP_DEPTH_MAX && i <= level; i++) {
		struct cgroup___place *ancestor = NULL;

		if (bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
					  (void *)cgroup + bpf_core_field_offset(struct cgroup___place, ancestors) +
						  i * sizeof(ancestor)) ||
		    !ancestor)
			return false;
		if (BPF_CORE_READ(ancestor, kn, id) == id)
			return true;
	}
	return false;
}

#define CGROUP_HIERARCHIES_MAX 32

/*
 * The task's cgroup in a hierarchy of version 1; NULL.  The list has one of each hierarchy, also of those without a
 * controller, and changes when one is mounted.
 */
static __always_inline struct cgroup___place *task_cgroup_v1(struct task_struct *task, u32 hierarchy)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	u64 at = (u64)BPF_CORE_READ(set, cgrp_links.next), end = (u64)set + bpf_core_field_offset(set->cgrp_links);

	for (u32 i = 0; i < CGROUP_HIERARCHIES_MAX && at && at != end; i++) {
		struct cgrp_cset_link___place *link =
			(void *)(at - bpf_core_field_offset(struct cgrp_cset_link___place, cgrp_link));
		struct cgroup___place *cgroup = BPF_CORE_READ(link, cgrp);

		if (cgroup && (u32)BPF_CORE_READ(cgroup, root, hierarchy_id) == hierarchy)
			return cgroup;
		at = (u64)BPF_CORE_READ(link, cgrp_link.next);
	}
	return NULL;
}

static __always_inline struct cgroup___place *task_cgroup_v2(struct task_struct *task)
{
	return (struct cgroup___place *)BPF_CORE_READ(task, cgroups, dfl_cgrp);
}

static __always_inline long syscall_nr(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	return regs->syscallno;
#else
#error "syscall_nr() for this architecture"
#endif
}

static __always_inline u64 syscall_arg(struct pt_regs *regs, int arg)
{
#if defined(__TARGET_ARCH_x86)
	return arg == 0 ? regs->di : arg == 1 ? regs->si : regs->dx;
#elif defined(__TARGET_ARCH_arm64)
	/* The first argument's register holds the result later on; orig_x0 keeps it. */
	return arg == 0 ? regs->orig_x0 : regs->regs[arg];
#endif
}

#define AF_UNIX         1
#define AF_INET         2
#define AF_INET6        10
#define IPPROTO_TCP     6
#define IPPROTO_UDP     17
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT    2
#define TCP_CLOSE       7
#define TCP_CLOSE_WAIT  8
#define TCP_LISTEN      10
#define SOCK_DGRAM      2
#define MSG_PEEK        2

/* What handle_mm_fault() returns (enum vm_fault_reason) and is told (enum fault_flag): no difference since 5.9. */
#define FAULT_MAJOR      0x004
#define FAULT_RETRY      0x400
#define FAULT_FLAG_TRIED 0x20

#define S_IFMT   00170000
#define S_IFSOCK 0140000
#define S_IFREG  0100000
#define S_IFBLK  0060000
#define S_IFIFO  0010000

struct file___opened {
	void *private_data;
} __attribute__((preserve_access_index));

/* An open file of the task, NULL if it has no such descriptor. */
static __always_inline struct file *file_of(struct task_struct *task, u64 fd)
{
	struct file **files = BPF_CORE_READ(task, files, fdt, fd);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), files + fd))
		return NULL;
	return file;
}

static __always_inline u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

#endif
