/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which intervals are selected, and what of their thread's time goes to an open one. */
#ifndef WHYLATE_BPF_INTERVAL_ACCOUNT_H
#define WHYLATE_BPF_INTERVAL_ACCOUNT_H

#include "handoff.h"
#include "open_waits.h"
#include "opens.h"
#include "thread.h"

/* States that keep their name while the interval's thread works for others. */
#define PAUSED_KEEP (EXTERNAL_STATES | bit(WL_STATE_BLOCKED_POLL))

static __always_inline u64 sid__next(struct cpu_context *cpu)
{
	return (__sync_fetch_and_add(&cpu->sid_seq, 1) + 1) << SID_CPU_BITS |
	       (bpf_get_smp_processor_id() & ((1 << SID_CPU_BITS) - 1));
}

/* Decides; *rate is what the record will say of it. */
static __always_inline bool sid__selected(u64 sid, u32 *rate)
{
	u64 selection = controls.selection, end_ts, now;

	*rate = selection;
	if (selection == SELECTION_NONE || (u32)mix(sid) > selection >> 32)
		return false;
	end_ts = controls.select_end_ts;
	if (!end_ts)
		return true;
	now = bpf_ktime_get_ns();
	return now >= controls.select_begin_ts && now < end_ts;
}

/* A fault that never said how it ended (an error, a signal) has ended at the latest when its thread makes a call. */
static __always_inline void thread__end_stale_fault(struct thread *thread)
{
	u64 pending_ns;

	if (!thread->in_fault)
		return;
	thread->in_fault = 0;
	nest__pop(thread);
	pending_ns = thread->length_ns[STATE_FAULT_PENDING];
	thread->length_ns[STATE_FAULT_PENDING] = 0;
	thread->length_ns[WL_STATE_RUNNING] += pending_ns;
}

struct split_search {
	struct open_interval *open;
	struct thread *thread;
	u64 own_ts, end_ts;
	u64 queue_ns;
};

/* What the thread was at until end_ts goes to the interval, or is queue. */
static __always_inline void open__split_entry(struct split_search *search, u64 word)
{
	struct open_interval *open = search->open;
	u64 from_ts = later(word_ts(word), open->begin_ts), length_ns, own_ns = 0;
	u32 state = word_state(word);

	if (from_ts >= search->end_ts)
		return;
	length_ns = search->end_ts - from_ts;
	if (EXTERNAL_STATES & bit(state)) {
		open->sum.length_ns[state] += length_ns;
		open->sum.count[state] += word_ts(word) >= open->begin_ts;
		return;
	}
	if (RUNNING_STATES & bit(state) && search->end_ts > search->own_ts)
		own_ns = search->end_ts - later(from_ts, search->own_ts);
	open->sum.length_ns[WL_STATE_RUNNING] += own_ns;
	search->queue_ns += length_ns - own_ns;
}

/* A callback of bpf_loop(), because the verifier would walk every path through an open loop. */
static long split_entry(u32 back, struct split_search *search)
{
	u64 word = *thread__past(search->thread, back);

	open__split_entry(search, word);
	if (word_ts(word) < search->end_ts)
		search->end_ts = word_ts(word);
	return search->end_ts <= search->open->begin_ts;
}

/*
 * Splits the time from begin_ts to pickup_ts, before the interval was picked up, by what the thread was doing then. Its
 * own running belongs to the interval from own_ts on; before, it was busy with something else.
 */
VERIFIED_ONCE int open__split_before(struct open_interval *open, struct thread *thread, u64 own_ts)
{
	struct split_search search = {.open = open, .thread = thread, .own_ts = own_ts};
	u32 state;

	if (!open || !thread)
		return 0;
	search.end_ts = open->pickup_ts;
	if (search.end_ts > open->begin_ts)
		bpf_loop(HISTORY_LEN, split_entry, &search, 0);
	if (search.end_ts > open->begin_ts) {
		search.queue_ns += search.end_ts - open->begin_ts;
		open->flags |= WL_INTERVAL_HISTORY;
	}
	/* A goroutine that can be read for waits for a thread, as a thread does for a CPU. */
	state = thread->goroutine ? WL_STATE_RUNQ_WAKEUP : WL_STATE_QUEUE;
	open->sum.length_ns[state] += search.queue_ns;
	open->sum.count[state] += search.queue_ns > 0;
	return 0;
}

struct ran_search {
	struct thread *thread;
	u64 from_ts, end_ts;
	u64 ran_ns;
};

static long ran_entry(u32 back, struct ran_search *search)
{
	u64 word = *thread__past(search->thread, back), from_ts = later(word_ts(word), search->from_ts);

	if (from_ts < search->end_ts) {
		if (word_state(word) == WL_STATE_RUNNING)
			search->ran_ns += search->end_ts - from_ts;
		search->end_ts = from_ts;
	}
	return word_ts(word) <= search->from_ts;
}

/* How long the thread ran its own code since from_ts, as far as its history goes back. */
VERIFIED_ONCE u64 thread__ran_since(struct thread *thread, u64 from_ts, u64 end_ts)
{
	struct ran_search search = {.thread = thread, .from_ts = from_ts, .end_ts = end_ts};

	if (!thread)
		return 0;
	bpf_loop(HISTORY_LEN, ran_entry, &search, 0);
	return search.ran_ns;
}

/* What passed since it was last accounted for belongs to nobody that is known. */
static __always_inline void open__gap(struct open_interval *open, u32 state, u64 now)
{
	u64 gap_ns = now > open->accounted_ts ? now - open->accounted_ts : 0;

	open->sum.length_ns[state & STATE_MASK] += gap_ns;
	open->sum.count[state & STATE_MASK]++;
	open->accounted_ts += gap_ns;
}

/*
 * Adds what has happened on the thread since accounted_ts until `now`, the instant of thread->fresh (0: it could not be
 * read), and returns until when.
 */
VERIFIED_ONCE u64 open__add_fresh(struct open_interval *open, struct thread *thread, u64 now)
{
	u64 queue_ns = 0;
	u32 keep;

	if (!open || !thread)
		return 0;
	keep = open->paused ? PAUSED_KEEP : ~0U;
	if (!now) {
		open->flags |= WL_INTERVAL_TORN;
		return bpf_ktime_get_ns();
	}
	/* Its goroutine was on another thread meanwhile, whose counters are not at hand. */
	if (cfg_knobs.goroutines && open->counted_tid != thread->kernel_tid) {
		open__gap(open, open->paused ? WL_STATE_QUEUE : WL_STATE_UNKNOWN, now);
		open->base = thread->fresh;
		open->counted_tid = thread->kernel_tid;
		open->accounted_ts = now;
		return now;
	}
	for (int i = 0; i < STATE_SLOTS; i++) {
		u64 delta_ns = thread->fresh.length_ns[i] - open->base.length_ns[i];

		if (keep & bit(i)) {
			open->sum.length_ns[i] += delta_ns;
			open->sum.count[i] += thread->fresh.count[i] - open->base.count[i];
		} else {
			queue_ns += delta_ns;
		}
		open->base.length_ns[i] = thread->fresh.length_ns[i];
		open->base.count[i] = thread->fresh.count[i];
	}
	for (int i = 0; i < WL_TALLY_CNT; i++) {
		open->sum.tally[i] += thread->fresh.tally[i] - open->base.tally[i];
		open->base.tally[i] = thread->fresh.tally[i];
	}
	for (int i = 0; i < WL_HW_SLOTS; i++) {
		if (!open->paused)
			open->sum.hw[i] += thread->fresh.hw[i] - open->base.hw[i];
		open->base.hw[i] = thread->fresh.hw[i];
	}
	open->sum.length_ns[WL_STATE_QUEUE] += queue_ns;
	open->sum.count[WL_STATE_QUEUE] += queue_ns > 0;
	open->accounted_ts = now;
	return now;
}

/* Likewise until now. */
static __always_inline u64 open__account(struct open_interval *open, struct thread *thread)
{
	return open__add_fresh(open, thread, thread__snapshot(thread, &thread->fresh, false));
}

#endif
