/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Locks that the symbol list names (roles acquire and release): who holds them, who waits for them.
 *
 * A lock is its address.  In another process the same address is the same lock only where the memory is shared, so a
 * holder in another process is believed only of a shared mapping.
 */
#ifndef WHYLATE_BPF_LOCK_H
#define WHYLATE_BPF_LOCK_H

#include "context.h"

#define VM_SHARED 0x8
/* Stacks that lie farther apart than this are two. */
#define STACK_REACH (8 << 20)

struct vm_area_struct;

struct holder {
	u32 pid, tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct holder);
} holders SEC(".maps") __weak;

struct vm_area_struct___flags {
	unsigned long vm_flags;
} __attribute__((preserve_access_index));

static long note_sharing(struct task_struct *task, struct vm_area_struct *vma, u64 *shared)
{
	*shared = ((struct vm_area_struct___flags *)(void *)vma)->vm_flags & VM_SHARED;
	return 0;
}

/* Who acquired the lock last and has not given it back; 0: not known. */
static __noinline u32 lock__owner(struct thread *thread, u64 object)
{
	struct holder *holder = bpf_map_lookup_elem(&holders, &object);
	u64 shared = 0;
	u32 tid;

	if (!holder || !thread || holder->tid == thread->tid)
		return 0;
	tid = holder->tid;
	if (holder->pid == thread->pid)
		return tid;
	if (bpf_find_vma(bpf_get_current_task_btf(), object, note_sharing, &shared, 0))
		return 0;
	return shared ? tid : 0;
}

static __always_inline void lock__acquired(struct thread *thread, u64 object)
{
	struct holder holder = {.pid = thread->pid, .tid = thread->tid};

	bpf_map_update_elem(&holders, &object, &holder, BPF_ANY);
}

static __always_inline void lock__released(struct thread *thread, u64 object)
{
	struct holder *holder = bpf_map_lookup_elem(&holders, &object);

	if (holder && holder->tid == thread->tid)
		bpf_map_delete_elem(&holders, &object);
}

/*
 * The thread, which is current and about to block, waits for a lock that is being acquired: fills thread->wait.  A
 * stack pointer above the call's frame says that the call was left without a return.
 */
static __always_inline bool lock__waited_for(struct thread *thread, u64 user_sp)
{
	if (!thread->acquire_object)
		return false;
	if (user_sp > thread->acquire_frame && user_sp - thread->acquire_frame < STACK_REACH) {
		thread->acquire_object = 0;
		return false;
	}
	thread->wait.object = thread->acquire_object;
	thread->wait.owner_tid = lock__owner(thread, thread->acquire_object);
	return true;
}

#endif
