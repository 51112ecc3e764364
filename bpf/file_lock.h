/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks on files, by flock() and fcntl(): which file, and which process holds it. */
#ifndef WHYLATE_BPF_FILE_LOCK_H
#define WHYLATE_BPF_FILE_LOCK_H

#include "compat.h"

struct file_lock_context___lock {
	struct list_head flc_flock;
	struct list_head flc_posix;
} __attribute__((preserve_access_index));

/* Until 6.8 */
struct file_lock___6_8 {
	struct list_head fl_list;
	int fl_pid;
} __attribute__((preserve_access_index));

/* Since 6.9 (69603f8b0a0f: a file_lock has its core in common with a lease) */
struct file_lock_core___6_9 {
	struct list_head flc_list;
	int flc_pid;
} __attribute__((preserve_access_index));

struct super_block___dev {
	u32 s_dev;
} __attribute__((preserve_access_index));

/* The same number for all descriptors of a file, in all processes; see WL_FILE_LOCK. */
static __always_inline u64 file_lock__id(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block___dev *sb = (void *)BPF_CORE_READ(inode, i_sb);
	u32 dev = BPF_CORE_READ(sb, s_dev);

	return wl_file_lock(dev >> 20, dev, BPF_CORE_READ(inode, i_ino));
}

/* The process that holds the first lock of the list, in the initial namespace; 0: none does, or it is not known. */
static __always_inline u32 first_holder(struct list_head *list)
{
	struct list_head *first = NULL;
	int pid = 0;

	if (bpf_probe_read_kernel(&first, sizeof(first), &list->next) || !first || first == list)
		return 0;
	if (bpf_core_type_exists(struct file_lock_core___6_9)) {
		struct file_lock_core___6_9 *lock =
			(void *)first - bpf_core_field_offset(struct file_lock_core___6_9, flc_list);

		pid = BPF_CORE_READ(lock, flc_pid);
	} else if (bpf_core_type_exists(struct file_lock___6_8)) {
		struct file_lock___6_8 *lock = (void *)first - bpf_core_field_offset(struct file_lock___6_8, fl_list);

		pid = BPF_CORE_READ(lock, fl_pid);
	}
	/* -1: a lock of an open file description, which no process holds alone. */
	return pid > 0 ? pid : 0;
}

static __always_inline u32 file_lock__holder(struct file *file, bool by_flock)
{
	struct file_lock_context___lock *context = (void *)BPF_CORE_READ(file, f_inode, i_flctx);

	if (!context || !bpf_core_type_exists(struct file_lock_context___lock))
		return 0;
	return first_holder(by_flock ? &context->flc_flock : &context->flc_posix);
}

#endif
