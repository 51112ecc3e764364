/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread that gives up the CPU waits for: by its system call, and by the file that it names. */
#ifndef WHYLATE_BPF_WAIT_H
#define WHYLATE_BPF_WAIT_H

#include "compat.h"
#include "file_lock.h"

#define FUTEX_WAIT         0
#define FUTEX_WAKE         1
#define FUTEX_UNLOCK_PI    7
#define FUTEX_WAKE_BITSET  10
#define FUTEX_COMMAND_MASK 0x7f

#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD   0x00200000

/* The system call that the task, which is `current`, is in; -1: in none.  Kernel threads and io_uring's workers, whose
 * registers look like those of read(0), make none. */
static __always_inline long call_of(struct task_struct *task, struct pt_regs *regs)
{
	long nr = regs && !(task->flags & (PF_KTHREAD | PF_IO_WORKER)) ? syscall_nr(regs) : -1;

	return nr < KNOB_SYSCALLS ? nr : -1;
}

#define __TASK_STOPPED 0x4
#define __TASK_TRACED  0x8

/* A signal or a debugger has stopped the task: whatever call it is in, that is not what it waits for. */
static __always_inline bool task_is_stopped(struct task_struct *task)
{
	return BPF_CORE_READ(task, __state) & (__TASK_STOPPED | __TASK_TRACED);
}

/* What a read or a write on that descriptor waits for. */
static __always_inline u32 wait_of_file(struct task_struct *task, u64 fd)
{
	struct file *file = file_of(task, fd);
	u32 mode;

	if (!file)
		return WL_STATE_BLOCKED_OTHER;
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	switch (mode) {
	case S_IFSOCK:
		return WL_STATE_BLOCKED_NET;
	case S_IFIFO:
		return WL_STATE_BLOCKED_PIPE;
	case S_IFREG:
	case S_IFBLK:
		return WL_STATE_BLOCKED_DISK;
	}
	return WL_STATE_BLOCKED_OTHER;
}

/* What a call waits for that locks the file of that descriptor: fills the object and its owner. */
static __always_inline u32 wait_of_file_lock(struct task_struct *task, struct wl_wait *wait, bool by_flock)
{
	struct file *file = file_of(task, wait->object);

	if (file) {
		wait->object = file_lock__id(file);
		wait->owner_tid = file_lock__holder(file, by_flock);
	}
	return WL_STATE_BLOCKED_FUTEX;
}

/* glibc's mutex: FUTEX_WAIT for the value 2 on its first word; the third word is the owner's tid.  0: it is none. */
static __always_inline u64 mutex_owner_at(u64 futex, u64 op, u64 value)
{
	return (op & FUTEX_COMMAND_MASK) == FUTEX_WAIT && (u32)value == 2 ? futex + 8 : 0;
}

/*
 * The futex that the task, which is `current`, wakes others at, in a process of that pid: where a waiter was moved
 * there by FUTEX_REQUEUE, nothing else says so.  0: it does not.
 */
static __always_inline u64 woken_futex(struct task_struct *task, u32 pid)
{
	struct pt_regs *regs;
	u64 op;
	long nr;

	if ((u32)task->tgid != pid)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	nr = call_of(task, regs);
	if (nr < 0 || cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)] != WAIT_FUTEX)
		return 0;
	op = syscall_arg(regs, 1) & FUTEX_COMMAND_MASK;
	return op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET || op == FUTEX_UNLOCK_PI ? syscall_arg(regs, 0) : 0;
}

/*
 * Why the task, which is blocked or about to be, blocks; fills the wait, without the owner of a mutex.  *owner_at:
 * where the task's memory has that owner's tid, 0: nowhere.
 */
static __always_inline u32 wait_of_task(struct task_struct *task, struct wl_wait *wait, u64 *owner_at)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 class = WAIT_OTHER, state;
	long nr = call_of(task, regs);

	wait->object = 0;
	wait->owner_tid = 0;
	wait->sysno = nr;
	*owner_at = 0;
	if (task_is_stopped(task)) {
		wait->sysno = -1;
		return wait->state = WL_STATE_BLOCKED_STOPPED;
	}
	if (nr >= 0) {
		class = cfg_knobs.wait_class[nr & (KNOB_SYSCALLS - 1)];
		wait->object = syscall_arg(regs, 0);
	}
	switch (class) {
	case WAIT_FUTEX:
		state = WL_STATE_BLOCKED_FUTEX;
		*owner_at = mutex_owner_at(wait->object, syscall_arg(regs, 1), syscall_arg(regs, 2));
		break;
	case WAIT_LOCK:
		state = WL_STATE_BLOCKED_FUTEX;
		break;
	case WAIT_FLOCK:
	case WAIT_FCNTL:
		state = wait_of_file_lock(task, wait, class == WAIT_FLOCK);
		break;
	case WAIT_DISK:
		state = WL_STATE_BLOCKED_DISK;
		break;
	case WAIT_NET:
		state = WL_STATE_BLOCKED_NET;
		break;
	case WAIT_POLL:
	case WAIT_SELECT:
	case WAIT_LOOP:
		state = WL_STATE_BLOCKED_POLL;
		break;
	case WAIT_SLEEP:
		state = WL_STATE_BLOCKED_SLEEP;
		break;
	case WAIT_FILE:
		state = wait_of_file(task, wait->object);
		break;
	case WAIT_SPLICE:
	case WAIT_TEE:
		/* For bytes, or for room to put them. */
		state = wait_of_file(task, wait->object);
		if (state == WL_STATE_BLOCKED_DISK || state == WL_STATE_BLOCKED_OTHER)
			state = wait_of_file(task, syscall_arg(regs, class == WAIT_TEE ? 1 : 2));
		break;
	case WAIT_MESSAGE:
		state = WL_STATE_BLOCKED_PIPE;
		break;
	case WAIT_RING:
		/* Who ends it says what it was for; without segments nobody tells. */
		state = cfg_knobs.trace ? WL_STATE_BLOCKED_POLL : WL_STATE_BLOCKED_OTHER;
		break;
	default:
		state = WL_STATE_BLOCKED_OTHER;
	}
	/* Whatever the call, waiting for I/O to complete is waiting for the disk; io_uring says so of sockets, too. */
	if (class != WAIT_RING && BPF_CORE_READ_BITFIELD(task, in_iowait))
		state = WL_STATE_BLOCKED_DISK;
	wait->state = state;
	return state;
}

/* The same of the task that is `current` and gives up the CPU, with the owner. */
static __always_inline u32 blocked_state(struct task_struct *task, struct wl_wait *wait)
{
	u64 owner_at;
	u32 state = wait_of_task(task, wait, &owner_at);

	if (owner_at)
		bpf_probe_read_user(&wait->owner_tid, sizeof(wait->owner_tid), (void *)owner_at);
	return state;
}

#endif
