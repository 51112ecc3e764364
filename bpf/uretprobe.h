/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What uretprobes (anybody's) have done to the current thread's stack: in the place of a return address lies that of a
 * trampoline, and the kernel keeps the address in a list of the thread's, the innermost call first.
 */
#ifndef WHYLATE_BPF_URETPROBE_H
#define WHYLATE_BPF_URETPROBE_H

#include "compat.h"

struct xol_area___vaddr {
	unsigned long vaddr;
} __attribute__((preserve_access_index));

struct uprobes_state___xol {
	struct xol_area___vaddr *xol_area;
} __attribute__((preserve_access_index));

struct mm_struct___xol {
	struct uprobes_state___xol uprobes_state;
} __attribute__((preserve_access_index));

struct return_instance___address {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance___address *next;
} __attribute__((preserve_access_index));

struct uprobe_task___returns {
	struct return_instance___address *return_instances;
} __attribute__((preserve_access_index));

struct task_struct___utask {
	struct uprobe_task___returns *utask;
} __attribute__((preserve_access_index));

/* 0: the process has none. */
static __always_inline u64 trampoline_addr(void)
{
	struct mm_struct___xol *mm = (void *)bpf_get_current_task_btf()->mm;
	struct xol_area___vaddr *area;

	if (!bpf_core_field_exists(mm->uprobes_state) || !mm)
		return 0;
	area = BPF_CORE_READ(mm, uprobes_state.xol_area);
	return area ? BPF_CORE_READ(area, vaddr) : 0;
}

/* Each with the place of the return address and the address itself; some may be of calls that were left by longjmp. */
static __always_inline struct return_instance___address *return_instances(void)
{
	struct task_struct___utask *task = (void *)bpf_get_current_task_btf();

	if (!bpf_core_field_exists(task->utask))
		return NULL;
	return BPF_CORE_READ(task, utask, return_instances);
}

#endif
