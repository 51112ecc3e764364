/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of Python code of the current task, read while it is there: they lie on the heap, and change with each
 * call.  What leaves are the addresses of their code objects, which the agent names.
 */
#ifndef WHYLATE_BPF_PYTHON_H
#define WHYLATE_BPF_PYTHON_H

#include "compat.h"
#include "python_layout.h"

#include <whylate/record.h>

/* By process: those of which the agent has found out where the interpreter lies. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct python_layout);
} pythons SEC(".maps");

/* Threads that are looked at for the current one. */
#define PYTHON_THREADS_MAX 512

/* What is read at an address in the process; 0: it cannot be read. */
static __always_inline u64 python__word(u64 addr)
{
	u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (const void *)addr))
		return 0;
	return word;
}

struct python_search {
	u64 interp, thread, wanted;
	u32 next_interp, first_thread, next_thread, thread_id;
	u64 found;
};

static long python__search_step(u32 idx, struct python_search *search)
{
	if (!search->thread) {
		search->interp = python__word(search->interp + search->next_interp);
		if (!search->interp)
			return 1;
		search->thread = python__word(search->interp + search->first_thread);
		return 0;
	}
	if (python__word(search->thread + search->thread_id) == search->wanted) {
		search->found = search->thread;
		return 1;
	}
	search->thread = python__word(search->thread + search->next_thread);
	return 0;
}

/* The interpreter's own record of the task, 0: it has none.  known: what was found last, which may be no more. */
static __always_inline u64 python__thread(const struct python_layout *layout, struct task_struct *task, u64 known)
{
	struct python_search search = {
		.wanted = thread_pointer(task),
		.next_interp = layout->next_interp,
		.first_thread = layout->first_thread,
		.next_thread = layout->next_thread,
		.thread_id = layout->thread_id,
	};

	if (!search.wanted)
		return 0;
	if (known && python__word(known + search.thread_id) == search.wanted)
		return known;
	search.interp = python__word(layout->runtime + layout->first_interp);
	if (!search.interp)
		return 0;
	search.thread = python__word(search.interp + search.first_thread);
	bpf_loop(PYTHON_THREADS_MAX, python__search_step, &search, 0);
	return search.found;
}

struct python_walk {
	u64 frame, key;
	u32 frame_back, frame_code, frame_mark, mark_shim;
	u64 cnt;
};

/* The CPU's own, NULL: there is none. */
static __always_inline struct wl_python_record *python__record(void);

static long python__walk_step(u32 idx, struct python_walk *walk)
{
	struct wl_python_record *record = python__record();
	u64 word;
	u8 mark = 1;

	if (!walk->frame || !record || idx >= WL_PYTHON_FRAMES_MAX)
		return 1;
	word = python__word(walk->frame + walk->frame_code) & ~7ULL;
	if (walk->frame_mark != PYTHON_NO_OFF &&
	    bpf_probe_read_user(&mark, sizeof(mark), (const void *)(walk->frame + walk->frame_mark)))
		return 1;
	if (!walk->mark_shim)
		word |= mark ? WL_PYTHON_CALL_ENDS : 0;
	else if (mark == walk->mark_shim)
		word = WL_PYTHON_CALL_ENDS;
	record->code[idx & (WL_PYTHON_FRAMES_MAX - 1)] = word;
	walk->key = (walk->key ^ word) * 0xff51afd7ed558ccdULL;
	walk->cnt = idx + 1;
	walk->frame = python__word(walk->frame + walk->frame_back);
	return 0;
}

/*
 * Fills the CPU's record, all but its time, of the current task.  A hash of the frames; 0: there are none.  known as
 * for python__thread(), and renewed.
 */
VERIFIED_ONCE u64 python__walk(u64 *known)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 pid = task->tgid;
	struct python_layout *layout = bpf_map_lookup_elem(&pythons, &pid);
	struct wl_python_record *record = python__record();
	struct python_walk walk = {};
	u64 thread;

	if (!record || !known)
		return 0;
	record->cnt = 0;
	if (!layout)
		return 0;
	thread = python__thread(layout, task, *known);
	*known = thread;
	if (!thread)
		return 0;
	walk.frame = python__word(thread + layout->thread_frame);
	if (walk.frame && layout->cframe_frame != PYTHON_NO_OFF)
		walk.frame = python__word(walk.frame + layout->cframe_frame);
	walk.frame_back = layout->frame_back;
	walk.frame_code = layout->frame_code;
	walk.frame_mark = layout->frame_mark;
	walk.mark_shim = layout->mark_shim;
	bpf_loop(WL_PYTHON_FRAMES_MAX, python__walk_step, &walk, 0);
	record->pid = pid;
	record->tid = task->pid;
	record->cnt = walk.cnt;
	record->cut = walk.frame != 0;
	return walk.cnt ? walk.key | 1 : 0;
}

#endif
