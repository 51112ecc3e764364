// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/words.h"

#include <string.h>

const char *words_way(const struct cause *cause, const struct cause_way *way)
{
	if (way->own)
		return way->category == WL_CATEGORY_FAULT_MINOR || way->category == WL_CATEGORY_FAULT_MAJOR
			       ? "as page faults of the request's own work"
			       : "as the request's own work";
	if (way->spins)
		return way->category == WL_CATEGORY_RUNQ
			       ? "while requests waited for the CPU of threads that spun for a lock"
			       : "while requests spun for a lock";
	switch (way->category) {
	case WL_CATEGORY_RUNQ:
		return way->wait == WL_CATEGORY_RUNQ ? "while requests waited for its CPU"
						     : "while what requests waited for waited for its CPU";
	case WL_CATEGORY_LOCK:
		return way->other ? "while requests waited for a lock that it held"
				  : "while requests waited for a lock or a channel themselves";
	case WL_CATEGORY_QUEUE:
		return "while requests were queued behind it";
	case WL_CATEGORY_IO_DISK:
		return "while requests waited for a disk";
	case WL_CATEGORY_IO_NET:
		if (cause_root_is(&cause->root, ROOT_NETWORK))
			return "while requests waited for bytes that were under way";
		return !way->other && cause->root.kind != ROOT_PEER
			       ? "while requests waited for a socket or in their event loop"
			       : "while requests waited for its reply";
	case WL_CATEGORY_SLEEP:
		return "asleep";
	case WL_CATEGORY_THROTTLED:
		return "throttled";
	case WL_CATEGORY_ONCPU:
		return "running on a thread that requests were handed to";
	case WL_CATEGORY_IRQ_HARD:
		return "interrupting requests for a device";
	case WL_CATEGORY_IRQ_SOFT:
		return "interrupting requests as a softirq";
	case WL_CATEGORY_IRQ_TIMER:
		return "interrupting requests for a timer";
	case WL_CATEGORY_IRQ_IPI:
		return "interrupting requests for another CPU";
	default:
		return cause_root_is(&cause->root, ROOT_STOPPED) ? "while their threads were stopped"
								 : "in waits of another kind";
	}
}

static bool has_stacks(const struct report *report)
{
	for (size_t i = 0; i < report->cause_cnt; i++)
		if (report->causes[i].root.call_path_cnt)
			return true;
	return false;
}

static const char *code_advice(const struct report *report, const struct cause *cause)
{
	bool stranger = cause->culprit_pid >= 0 && cause->culprit_pid != report->dataset->pid;

	if (!cause->root.call_path_cnt)
		return has_stacks(report) ? "its call path was not sampled: record longer"
					  : "its call path was not sampled: record with --stacks";
	if (cause->category == WL_CATEGORY_RUNQ && stranger && !cause->root.type)
		return "keep it off the target's CPUs (taskset, cpu.weight, nice)";
	if (cause->category == WL_CATEGORY_LOCK)
		return "hold the lock for less of this call path";
	if (cause->category == WL_CATEGORY_QUEUE)
		return "cut this call path into pieces, or run it on a thread of its own";
	return "how often this call path runs, and on how much data";
}

/* Most of it are waits for pages that are read. */
static bool is_read(const struct cause *cause)
{
	return cause->category == WL_CATEGORY_FAULT_MAJOR ||
	       (cause->category == WL_CATEGORY_IO_DISK && cause->object &&
		(!strncmp(cause->object, "read", 4) || !strncmp(cause->object, "pread", 5)));
}

const char *words_advice(const struct report *report, const struct cause *cause)
{
	const struct cause_root *root = &cause->root;

	if (cause_root_is(root, ROOT_STOPPED))
		return "who sends it SIGSTOP or traces it: job control, a checkpoint, a debugger";
	switch (root->kind) {
	case ROOT_CODE:
		return code_advice(report, cause);
	case ROOT_DISK:
		if (cause_root_is(root, ROOT_RECLAIM))
			return "more memory, or less of it in use";
		if (cause_root_is(root, ROOT_DIRTY_PAGES))
			return "write less, or in pieces with sync_file_range(); vm.dirty_ratio; a faster disk";
		if (is_read(cause))
			return "read less here, or before it is needed (readahead); more memory for the page cache; a "
			       "faster disk";
		return "write or sync less here, do it on another thread, or use a faster disk";
	case ROOT_PEER:
		if (cause_root_is(root, ROOT_CLIENT))
			return "the client and the network between, not this server's code";
		if (cause_root_is(root, ROOT_NETWORK))
			return "segments sent again (nstat TcpRetransSegs), drops (ip -s link), TCP_NODELAY at the "
			       "sender";
		return "record the other end as well, and report on both recordings together";
	case ROOT_TIMER:
		return "whether this sleep, retry or timeout is needed";
	case ROOT_QUOTA:
		return root->object ? "memory.high of its cgroup" : "cpu.max of its cgroup";
	case ROOT_FULL_MACHINE:
		return "more CPUs, or less work on this machine";
	default:
		if (cause->category == WL_CATEGORY_IO_NET)
			return "its steps (whylate explain): a timer of the program's own may have ended it, or a "
			       "process that was not followed yet";
		return "`whylate doctor` lists what this kernel cannot measure";
	}
}
