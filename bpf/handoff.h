/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Contexts (DESIGN §12): by which chain of call paths a request got to where it is, and to which request an event loop
 * comes back with a reply.
 *
 * A connection that the target opened is tied to the request for which its thread connected it, or wrote to it.  What
 * is read from it is that request's, whatever the thread worked for meanwhile.  In an event loop (a thread that waits
 * in epoll, or for clients in poll() or select(), see poll.h) the request then goes on in a new context: (the context
 * in which it asked, kind of connection, inferred call path of the call that asked).  A thread that waits for its reply
 * in the call itself goes on in the context it was in.
 *
 * A hand-off that the chain has already leads back to where it was (Whodunit §4.1).  The table is bounded: what finds
 * no room is in context WL_CONTEXT_ID_OTHER, and counted.
 *
 * An event loop may read several requests before it asks for any.  Then the one is meant whose first bytes it sends on,
 * as a proxy does.  Where none has them, and they were read since the loop got its CPU, or several requests ask on one
 * connection at a time, the connection is tied to none, and counted.
 */
#ifndef WHYLATE_BPF_HANDOFF_H
#define WHYLATE_BPF_HANDOFF_H

#include "first.h"
#include "opens.h"
#include "ring.h"
#include "stack_copy.h"

#define CONTEXTS_MAX  4096
#define CONTEXT_DEPTH 8
/* Fewer bytes than these tell nothing apart. */
#define SAME_MIN 8

/* A context, or where a hand-off leads that its chain has already. */
struct context_node {
	u64 id; /* the key of the table, or that of a context before it */
	u64 parent, step;
	u32 depth;
	u32 is_sent;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CONTEXTS_MAX);
	__type(key, u64);
	__type(value, struct context_node);
} context_nodes SEC(".maps") __weak;

/* --- who asks ----------------------------------------------------------------------------------------------------- */

static __always_inline struct asking *thread__asking(struct thread *thread, u64 sid)
{
	return &thread->asking[(sid >> 12) & (ASKING_MAX - 1)];
}

/* The thread has read a request. */
static __always_inline void thread__reads(struct thread *thread, u64 sid)
{
	struct asking *asking = thread__asking(thread, sid);

	if (asking->sid && asking->since_ts == thread->switched_in_ts)
		thread->crowded_ts = thread->switched_in_ts;
	asking->sid = sid;
	asking->since_ts = thread->switched_in_ts;
}

/* It has asked, or has ended. */
static __always_inline void thread__asked(struct thread *thread, u64 sid)
{
	struct asking *asking = thread__asking(thread, sid);

	if (asking->sid == sid)
		asking->sid = 0;
}

/* Requests other than the current one that may ask now. */
enum others {
	OTHERS_NONE,
	OTHERS_BEFORE, /* read before the thread got its CPU: as likely as not they wait for something else */
	OTHERS_NOW,    /* read since */
};

VERIFIED_ONCE u32 thread__others_ask(const struct thread *thread)
{
	u32 others = OTHERS_NONE;
	u64 since_ts;

	if (!thread)
		return OTHERS_NOW;
	since_ts = thread->switched_in_ts;
	if (thread->crowded_ts == since_ts)
		return OTHERS_NOW;
	for (int i = 0; i < ASKING_MAX; i++) {
		if (!thread->asking[i].sid || thread->asking[i].sid == thread->current_sid)
			continue;
		if (thread->asking[i].since_ts == since_ts)
			return OTHERS_NOW;
		others = OTHERS_BEFORE;
	}
	return others;
}

/*
 * What a proxy sends on begins as the request that it has read: so much of it is compared.  Without a branch for each
 * byte, which the verifier would follow.
 */
#define SAME_MAX 128

struct same_search {
	struct thread *thread;
	u64 found; /* sid, 0: none */
	u64 found_ts;
	u32 len; /* that has to be the same: method and target of an HTTP request, or all there is of another one */
	u8 sent[SAME_MAX];
};

/* 1 where value is less than limit, both below 2^31. */
static __always_inline u32 is_less(u32 value, u32 limit)
{
	u32 difference = value - limit;

	barrier_var(difference);
	return difference >> 31;
}

/* How many bytes there are before the second blank. */
static __always_inline u32 len_before_blank(const u8 *bytes)
{
	u32 blanks = 0, len = 0;

	for (u32 i = 0; i < SAME_MAX; i++) {
		blanks += is_less(bytes[i] ^ ' ', 1);
		len += is_less(blanks, 2);
	}
	return len;
}

static __always_inline bool sends_first_of(const struct open_interval *open, const struct same_search *search)
{
	u32 differing = 0;

	if (open->first_len < search->len)
		return false;
	for (u32 i = 0; i < SAME_MAX; i++)
		differing |= (open->first[i] ^ search->sent[i]) & -is_less(i, search->len);
	return !differing;
}

/* Of those that begin alike the one that was read first. */
static long compare_asking(u32 idx, struct same_search *search)
{
	u64 sid = search->thread->asking[idx & (ASKING_MAX - 1)].sid;
	struct open_interval *open = sid ? open_find(sid) : NULL;

	if (!open || !sends_first_of(open, search) || (search->found && search->found_ts <= open->pickup_ts))
		return 0;
	search->found = sid;
	search->found_ts = open->pickup_ts;
	return 0;
}

/* The request of which the call under way sends the same bytes on, `tied` before others; 0: none that is known. */
VERIFIED_ONCE u64 thread__sends_on(struct thread *thread, u64 tied)
{
	struct same_search search = {.thread = thread};
	struct open_interval *open;
	struct user_vector buffer;
	u64 len;

	if (!thread || !cfg_knobs.first_bytes)
		return 0;
	call_buffer(&buffer);
	len = buffer.len < SAME_MAX ? buffer.len : SAME_MAX;
	barrier_var(len);
	if (len < SAME_MIN || len > SAME_MAX || bpf_probe_read_user(search.sent, len, (void *)buffer.base))
		return 0;
	search.len = len_before_blank(search.sent);
	if (search.len > len)
		search.len = len;
	if (search.len < SAME_MIN)
		return 0;
	open = tied ? open_find(tied) : NULL;
	if (open && sends_first_of(open, &search))
		return tied;
	bpf_loop(ASKING_MAX, compare_asking, &search, 0);
	return search.found;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

/* Sends what the new context is, with the stack of the call under way.  False: it is to be tried again. */
static __always_inline bool context__send(struct stack_cpu *scratch, struct task_struct *task, u64 id, u64 parent,
					  u32 kind)
{
	struct wl_stack_record *record = (struct wl_stack_record *)scratch->record;
	u32 cpu = bpf_get_smp_processor_id(), got;
	void *ring = ring__of_cpu(cpu);

	record->ts = bpf_ktime_get_ns();
	record->sid = 0;
	record->period_ns = 0;
	record->key = id;
	record->context = parent;
	record->pid = task->tgid;
	record->tid = task->pid;
	record->rate = 0;
	record->delays = 0;
	record->state = kind;
	record->flags = WL_STACK_IN_KERNEL | WL_STACK_HANDOFF;
	record->kernel_cnt = 0;
	got = copy_user(scratch, task, SCRATCH_HANDOFF);
	record->header.kind = WL_RECORD_STACK;
	record->header.cpu = cpu;
	if (!ring || got > WL_STACK_SZ_MAX)
		return false;
	record->header.sz = sizeof(*record) + got;
	return !bpf_ringbuf_output(ring, record, sizeof(*record) + got, BPF_RB_NO_WAKEUP);
}

struct context_search {
	u64 at, step;
	u64 found; /* 0: the chain does not have that hand-off */
};

static long context_before(u32 idx, struct context_search *search)
{
	struct context_node *node = bpf_map_lookup_elem(&context_nodes, &search->at);

	if (!node)
		return 1;
	if (node->step == search->step) {
		search->found = search->at;
		return 1;
	}
	search->at = node->parent;
	return 0;
}

static __always_inline u64 context__make(struct stack_cpu *scratch, u64 parent, u32 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 step = mix(call_path_key(task, (void *)((struct wl_stack_record *)scratch->record)->stack) + kind + 1);
	struct context_search search = {.at = parent, .step = step};
	struct context_node fresh = {.parent = parent, .step = step, .depth = 1}, *node, *before;
	struct cpu_context *cpu = this_cpu();
	u64 id = mix(parent + 1) ^ step;

	if (id <= WL_CONTEXT_ID_OTHER)
		id = mix(step);
	node = bpf_map_lookup_elem(&context_nodes, &id);
	if (node && node->is_sent)
		return node->id;
	if (node) {
		fresh.id = node->id;
	} else {
		if (cpu)
			__sync_fetch_and_add(&cpu->loss[WL_LOSS_CONTEXT].emitted, 1);
		fresh.id = id;
		before = parent ? bpf_map_lookup_elem(&context_nodes, &parent) : NULL;
		if (before)
			fresh.depth = before->depth + 1;
		bpf_loop(CONTEXT_DEPTH, context_before, &search, 0);
		if (search.found)
			fresh.id = search.found;
		else if (fresh.depth > CONTEXT_DEPTH)
			fresh.id = parent;
	}
	fresh.is_sent = fresh.id != id || context__send(scratch, task, id, parent, kind);
	if (!bpf_map_update_elem(&context_nodes, &id, &fresh, BPF_ANY))
		return fresh.id;
	if (cpu)
		__sync_fetch_and_add(&cpu->loss[WL_LOSS_CONTEXT].lost, 1);
	return WL_CONTEXT_ID_OTHER;
}

/* The context of what the running thread hands on now, out of `parent`, by that kind of hand-off. */
VERIFIED_ONCE u64 context__behind(u64 parent, u32 kind)
{
	struct stack_cpu *scratch = this_scratch(SCRATCH_HANDOFF);
	u64 id;

	if (parent == WL_CONTEXT_ID_OTHER)
		return parent;
	/* An interrupt, or another task in the middle of this, has it: rare enough to stay where it is. */
	if (!scratch || __sync_val_compare_and_swap(&scratch->busy, 0, 1))
		return parent;
	id = context__make(scratch, parent, kind);
	*(volatile u32 *)&scratch->busy = 0;
	return id;
}

/* --- connections that the target opened -------------------------------------------------------------------------- */

/* The current request asks for something on the connection. */
VERIFIED_ONCE int conn_tie(struct conn *conn, struct thread *thread, bool sends)
{
	struct cpu_context *cpu = this_cpu();
	struct open_interval *open;
	u64 sid;

	if (!conn || !thread)
		return 0;
	sid = thread->current_sid;
	if (cpu && sends)
		__sync_fetch_and_add(&cpu->asks, 1);
	thread__asked(thread, sid);
	conn->request.sid = sid;
	conn->request.window = controls.window;
	conn->type = thread->current_type;
	conn->recorded = thread->current_recorded;
	conn->context = 0;
	conn->awaits = 1;
	open = conn->recorded ? open_find(sid) : NULL;
	if (open)
		conn->context = open->context;
	return 0;
}

/* The request goes on with the reply in a context of its own, where the thread is, or may be, an event loop. */
static __always_inline void conn_hand_on(struct conn *conn, const struct thread *thread, u32 kind)
{
	/* A goroutine waits for the reply in the call itself. */
	if (conn->recorded && !thread->goroutine && (thread->is_loop || thread->asks < ASKS_UNKNOWN))
		conn->context = context__behind(conn->context, kind);
}

static __always_inline void conn_untie(struct conn *conn)
{
	struct cpu_context *cpu = this_cpu();

	conn->request.sid = 0;
	conn->awaits = 0;
	if (cpu) {
		__sync_fetch_and_add(&cpu->asks, 1);
		__sync_fetch_and_add(&cpu->asks_unsure, 1);
	}
}

#endif
