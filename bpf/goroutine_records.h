/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of a goroutine, and what the agent is told of it while it is on no thread. */
#ifndef WHYLATE_BPF_GOROUTINE_RECORDS_H
#define WHYLATE_BPF_GOROUTINE_RECORDS_H

#include "context.h"
#include "go_layout.h"
#include "opens.h"
#include "thread.h"

#define GOROUTINES_MAX 32768

enum goroutine_state {
	GOROUTINE_UNKNOWN,
	GOROUTINE_RUNS,
	GOROUTINE_WAITS,
	GOROUTINE_READY, /* in a run queue of the runtime */
};

struct goroutine_key {
	u64 g;
	u32 pid;
	u32 zero;
};

struct goroutine {
	u64 goid;
	u64 start_pc;
	u32 pid;
	u32 tid; /* WL_GOROUTINE_TID | number; 0: it is new */
	u32 window;
	u32 state;     /* enum goroutine_state */
	u64 since_ts;  /* it is in that state */
	u64 waited_ns; /* READY: the wait before */
	u32 runs_on;   /* RUNS: the thread's own tid */
	u32 wait;      /* WAITS, READY: enum wl_go_wait */
	u32 waker_tid; /* READY: who put it there, 0: nobody known */
	u32 waiting;   /* so many of controls.waiting are its */
	/* As of a thread. */
	u64 current_sid, segment_sid, datagram_sk, datagram_sid;
	u32 current_type, current_recorded, segment_type, datagram_recorded, recording;
	u32 zero;
	/* A wait for bytes, not told yet, which may have been there for some of it; from_ts 0: none. */
	u64 from_ts, to_ts;
	u64 by_ns;
	u32 by_tid; /* who had the thread, or its CPU, before, for by_ns since this one was ready */
	u32 by_pid;
	u64 waker_sid;  /* READY, RUNS: the recorded interval that its waker worked for, 0: none */
	u64 stack_key;  /* WAITS, READY: of the call path of its wait; 0: none was taken */
	u64 arrived_ns; /* from the arrival of the request that it has read to when a thread ran it */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GOROUTINES_MAX);
	__type(key, struct goroutine_key);
	__type(value, struct goroutine);
} goroutines SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct go_layout);
} go_layouts SEC(".maps") __weak;

extern u32 goroutine_cnt;

static const volatile struct goroutine zero_goroutine;

static __always_inline bool has_goroutines(const struct thread *thread)
{
	return cfg_knobs.goroutines && !thread->outside && !at_rest();
}

static __always_inline struct go_layout *go_layout_of(u32 pid)
{
	return bpf_map_lookup_elem(&go_layouts, &pid);
}

static __always_inline u32 wait_state(u32 wait)
{
	switch (wait) {
#define GO_WAIT(id, text, wait_state) \
	case WL_GO_WAIT_##id:         \
		return WL_STATE_##wait_state;
#include <whylate/go_wait.def>
	}
	return WL_STATE_BLOCKED_OTHER;
}

static __always_inline struct open_interval *goroutine__open(struct goroutine *goroutine)
{
	u64 sid = goroutine->current_sid;
	struct open_interval *open;

	if (!sid || !goroutine->current_recorded)
		return NULL;
	open = open_find(sid);
	return open && open->tid == goroutine->tid ? open : NULL;
}

/* A stretch of a goroutine that no thread was at. */
struct go_stretch {
	u64 begin_ts, end_ts;
	u32 state;
	u32 other_tid; /* BLOCKED: nobody; RUNQ: who had the thread that ran it then, or its CPU */
	u32 other_pid;
	u32 zero;
	u64 object;
	u64 other_ns;
};

static __always_inline void goroutine__put_tid(struct word_writer *writer, struct goroutine *goroutine)
{
	u64 word = WL_THREAD_WORD(goroutine->pid, goroutine->tid, 0);

	if (writer->ring->thread == word)
		return;
	writer->ring->thread = word;
	words__put(writer, word);
}

static __always_inline bool goroutine__pack(struct goroutine *goroutine, struct go_stretch *stretch)
{
	bool ready = bit(stretch->state & STATE_MASK) & RUNQ_STATES;
	u32 more = ready && !stretch->other_tid ? 0 : 2;
	u64 length_ns = stretch->end_ts - stretch->begin_ts;
	struct word_writer writer;

	if (!WL_WORD_FITS(length_ns, WL_WORD_LENGTH_BITS) || !words__take(&writer))
		return false;
	goroutine__put_tid(&writer, goroutine);
	words__for(&writer, goroutine->segment_sid, goroutine->segment_type);
	words__at(&writer, stretch->begin_ts);
	words__put(&writer, WL_SEGMENT_WORD(stretch->state, 0, more, length_ns));
	if (more && ready) {
		words__put(&writer, stretch->other_ns);
		words__put(&writer, (u64)stretch->other_pid << 32 | stretch->other_tid);
	} else if (more) {
		words__put(&writer, stretch->object);
		words__put(&writer, (u64)(u32)-1 << 32);
	}
	writer.ring->ts = stretch->end_ts;
	words__end(&writer, WL_LOSS_SEGMENT);
	return true;
}

static __noinline int goroutine__send_stretch(struct goroutine *goroutine, struct go_stretch *stretch)
{
	struct wl_segment_record *record;

	if (!goroutine || !stretch || stretch->end_ts <= stretch->begin_ts || goroutine__pack(goroutine, stretch))
		return 0;
	record = ring__reserve_many(WL_LOSS_SEGMENT, WL_RECORD_SEGMENT, sizeof(*record));
	if (!record)
		return 0;
	record->begin_ts = stretch->begin_ts;
	record->end_ts = stretch->end_ts;
	record->sid = goroutine->segment_sid;
	record->object = stretch->object;
	record->other_ns = stretch->other_ns;
	record->pid = goroutine->pid;
	record->tid = goroutine->tid;
	record->state = stretch->state;
	record->flags = 0;
	record->sysno = -1;
	record->other_pid = stretch->other_pid;
	record->other_tid = stretch->other_tid;
	record->type = goroutine->segment_sid ? goroutine->segment_type : 0;
	ring__submit(record);
	return 0;
}

static __always_inline void goroutine__tell_wait(struct goroutine *goroutine, u32 wait, u64 begin_ts, u64 end_ts)
{
	struct go_stretch stretch = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.state = wait_state(wait),
		.object = WL_GO_WAIT | wait,
	};

	goroutine__send_stretch(goroutine, &stretch);
}

/* Because of whom, it knows itself. */
static __always_inline void goroutine__tell_ready(struct goroutine *goroutine, u64 begin_ts, u64 end_ts)
{
	struct go_stretch stretch = {
		.begin_ts = begin_ts,
		.end_ts = end_ts,
		.state = WL_STATE_RUNQ_WAKEUP,
		.other_tid = goroutine->by_tid,
		.other_pid = goroutine->by_pid,
		.other_ns = goroutine->by_ns,
	};

	goroutine__send_stretch(goroutine, &stretch);
}

/* waker_tid 0: nobody known, a timer of the runtime's mostly. */
static __noinline int goroutine__send_wakeup(struct goroutine *goroutine, u64 ts, u32 waker_tid)
{
	u32 context = waker_tid ? WL_CONTEXT_TASK : WL_CONTEXT_TIMER, state;
	struct wl_wakeup_record *record;
	struct word_writer writer;

	if (!goroutine)
		return 0;
	state = wait_state(goroutine->wait);
	if (words__take(&writer)) {
		goroutine__put_tid(&writer, goroutine);
		words__at(&writer, ts);
		words__put(&writer, WL_WAKEUP_WORD(context, WL_FILE_NONE, state, 0, 0, 0));
		words__put(&writer, (u64)goroutine->pid << 32 | waker_tid);
		words__end(&writer, WL_LOSS_WAKEUP);
		return 0;
	}
	record = ring__reserve_many(WL_LOSS_WAKEUP, WL_RECORD_WAKEUP, sizeof(*record));
	if (!record)
		return 0;
	record->ts = ts;
	record->arrived_sid = record->io_ts = 0;
	record->pid = record->waker_pid = goroutine->pid;
	record->tid = goroutine->tid;
	record->waker_tid = waker_tid;
	record->context = context;
	record->waker_sysno = -1;
	record->waker_file = WL_FILE_NONE;
	record->state = state;
	ring__submit(record);
	return 0;
}

/* The agent finds a name for it by its function. */
static __noinline int goroutine__send_start(struct goroutine *goroutine)
{
	struct wl_task_record *record;
	struct wl_goroutine_start start = {};

	if (!goroutine)
		return 0;
	record = ring__reserve(WL_LOSS_TASK, WL_RECORD_TASK, sizeof(*record));
	if (!record)
		return 0;
	start.goid = goroutine->goid;
	start.start_pc = goroutine->start_pc;
	record->ts = bpf_ktime_get_ns();
	record->event = WL_TASK_SEEN;
	record->pid = record->parent_pid = goroutine->pid;
	record->tid = goroutine->tid;
	record->creator_tid = 0;
	record->outside = 0;
	__builtin_memcpy(record->comm, &start, sizeof(start));
	ring__submit(record);
	return 0;
}

#endif
