// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Waits for the lock of an address space (mm->mmap_lock): mmap(), munmap(), mprotect() and some page faults take it.
 * The semaphore's owner word has the task that holds it for writing, or one of those that hold it for reading.
 */
#include "thread.h"

struct rw_semaphore___owned {
	struct {
		s64 counter;
	} owner;
} __attribute__((preserve_access_index));

struct mm_struct___locked {
	struct rw_semaphore___owned mmap_lock;
} __attribute__((preserve_access_index));

/* The low bits say how it is held. */
#define OWNER_FLAGS 7

/* A number and no pointer to the verifier, which does no sums with pointers. */
static __always_inline struct mm_struct *current_mm(void)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), mm);
}

static __always_inline bool is_mmap_lock(struct mm_struct *mm, void *lock)
{
	return mm && (u64)lock - (u64)mm == bpf_core_field_offset(struct mm_struct___locked, mmap_lock);
}

/* 0: a real-time kernel's semaphore has no such word; or it is free by now. */
static __always_inline u32 owner_of(struct mm_struct *mm)
{
	struct mm_struct___locked *locked = (void *)mm;
	struct task_struct *task;

	if (!bpf_core_field_exists(locked->mmap_lock.owner))
		return 0;
	task = (void *)(BPF_CORE_READ(locked, mmap_lock.owner.counter) & ~(u64)OWNER_FLAGS);
	return task ? BPF_CORE_READ(task, pid) : 0;
}

static __always_inline struct thread *waiting_thread(void *lock, struct mm_struct **mm)
{
	struct cpu_context *cpu = this_cpu();

	*mm = current_mm();
	return cpu && cpu->followed && !at_rest() && is_mmap_lock(*mm, lock) ? current_thread(cpu) : NULL;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, unsigned int flags)
{
	struct mm_struct *mm;
	struct thread *thread = waiting_thread(lock, &mm);
	u32 owner_tid;

	if (!thread)
		return 0;
	owner_tid = owner_of(mm);
	thread->mmap_owner_tid = owner_tid != thread->kernel_tid ? owner_tid : 0;
	thread->waits_for_mmap = 1;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int ret)
{
	struct mm_struct *mm;
	struct thread *thread = waiting_thread(lock, &mm);

	if (thread)
		thread->waits_for_mmap = 0;
	return 0;
}
