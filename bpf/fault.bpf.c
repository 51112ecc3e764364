// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Page faults of followed threads, with their length.  The exception's tracepoint is the beginning; the end is where
 * the kernel accounts the fault as minor or major: a software perf event with a period of 1 (no fentry, no kprobe
 * needed), or the return of handle_mm_fault() where fexit or kretprobes are to be had.
 */
#include "compat.h"
#include "thread.h"

/* thread.in_fault */
#define IN_FAULT       1
#define IN_FAULT_MAJOR 2 /* it had to wait for the disk, and is being tried again */

/* `again`: the fault under way waited for its page and is tried once more. */
static __always_inline int fault_begins(u64 addr, bool again)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct task_struct *task;
	struct thread *thread;

	if (!cpu || !cpu->followed)
		return 0;
	task = bpf_get_current_task_btf();
	/* A probe that reads user memory with faults disabled never gets to the accounting. */
	if (task->pagefault_disabled || (s64)addr < 0)
		return 0;
	thread = current_thread(cpu);
	if (!thread || !thread->recording)
		return 0;
	if (thread->in_fault) {
		if (again)
			thread->in_fault = IN_FAULT_MAJOR;
		return 0;
	}
	thread->in_fault = again ? IN_FAULT_MAJOR : IN_FAULT;
	thread->fault_addr = addr;
	nest__push(thread, STATE_FAULT_PENDING);
	return 0;
}

static __always_inline int fault_ends(u32 state)
{
	struct cpu_context *cpu = at_rest() ? NULL : this_cpu();
	struct wl_wait wait = {};
	struct thread *thread;
	u64 length_ns, last_ns = 0;

	if (!cpu || !cpu->followed)
		return 0;
	thread = current_thread(cpu);
	if (!thread || !thread->in_fault)
		return 0;
	if (thread->in_fault == IN_FAULT_MAJOR)
		state = WL_STATE_FAULT_MAJOR;
	thread->in_fault = 0;
	/* In trace mode the last segment of the fault tells what those before it were. */
	if (cfg_knobs.trace && word_state(thread->word) == STATE_FAULT_PENDING) {
		last_ns = word_ts(thread->word);
		thread__relabel(thread, state);
	}
	nest__pop(thread);
	if (last_ns)
		last_ns = word_ts(thread->word) - last_ns;
	length_ns = thread->length_ns[STATE_FAULT_PENDING];
	thread->length_ns[STATE_FAULT_PENDING] = 0;
	thread->length_ns[state] += length_ns;
	length_ns += last_ns;
	thread->count[state]++;
	if (!thread->recording || length_ns < WAIT_NAMED_NS)
		return 0;
	wait.length_ns = length_ns;
	wait.object = thread->fault_addr;
	wait.state = state;
	wait.sysno = -1;
	wait_list__note(&thread->fault, &wait, word_ts(thread->word));
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault_user, unsigned long addr)
{
	return fault_begins(addr, false);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long addr)
{
	return fault_begins(addr, false);
}

SEC("perf_event")
int on_fault_minor(struct bpf_perf_event_data *ctx)
{
	return fault_ends(WL_STATE_FAULT_MINOR);
}

SEC("perf_event")
int on_fault_major(struct bpf_perf_event_data *ctx)
{
	return fault_ends(WL_STATE_FAULT_MAJOR);
}

/*
 * A fault that reads a page gives up its lock meanwhile: the call says RETRY, and the next one finds the page there as
 * if it were a minor fault.  Like the kernel's own accounting, which makes one major fault of the two.
 */
static __always_inline int fault_returns(u64 result)
{
	if (result & FAULT_RETRY)
		return result & FAULT_MAJOR ? fault_begins(0, true) : 0;
	return fault_ends(result & FAULT_MAJOR ? WL_STATE_FAULT_MAJOR : WL_STATE_FAULT_MINOR);
}

SEC("fentry/handle_mm_fault")
int BPF_PROG(on_handle_mm_fault_entry, void *vma, unsigned long addr, unsigned int flags)
{
	return fault_begins(addr, flags & FAULT_FLAG_TRIED);
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(on_handle_mm_fault_exit)
{
	u64 result = 0;

	bpf_get_func_ret(ctx, &result);
	return fault_returns(result);
}

SEC("kprobe/handle_mm_fault")
int BPF_KPROBE(on_handle_mm_fault_call, void *vma, unsigned long addr, unsigned int flags)
{
	return fault_begins(addr, flags & FAULT_FLAG_TRIED);
}

SEC("kretprobe/handle_mm_fault")
int BPF_KRETPROBE(on_handle_mm_fault_return, u64 result)
{
	return fault_returns(result);
}
