/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of an interval on a thread: picked up, perhaps paused while the thread serves others, finished or abandoned.
 *
 * What happens to the thread from outside (interrupts, waiting for a CPU, throttling) delays every interval that waits
 * for it and keeps its category.  What the thread does itself while it works for somebody else (running, faulting,
 * blocking) is `queue` for the intervals that wait meanwhile.  An event loop that sleeps in poll serves nobody: that
 * time stays `blocked.poll`.
 */
#ifndef WHYLATE_BPF_INTERVAL_H
#define WHYLATE_BPF_INTERVAL_H

#include "call.h"
#include "first.h"
#include "interval_account.h"
#include "interval_send.h"
#include "nats.h"
#include "retain.h"
#include "ring.h"
#include "thread.h"

struct pickup {
	u64 sid;
	u64 begin_ts; /* 0: now */
	u32 type;
	u32 flags;
	u32 selected;
	u32 rate; /* as in the record */
	u64 conn;
	u64 read_len; /* bytes that the call under way has read of it; 0: of no socket */
	u64 type_value;
	u32 type_kind; /* enum wl_first: what type_value is */
	u32 zero;
};

/* The thread turns from its current interval to something else at `now`. */
static __always_inline void thread__served(struct thread *thread, u64 now)
{
	u64 served_ns = now - thread->current_since_ts;

	if (!thread->current_sid || !thread->current_since_ts)
		return;
	if (served_ns >= thread->served_ns || thread->served_end_ts < thread->switched_in_ts) {
		thread->served_sid = thread->current_sid;
		thread->served_ns = served_ns;
		thread->served_end_ts = now;
	}
}

/*
 * With roles by which an interval changes its thread, two threads may be at its numbers on two CPUs.  Whoever changes
 * them takes the interval first, and gives it back by writing its own tid.
 */
#define OPEN_BUSY 0

static __always_inline bool open__take_own(struct open_interval *open, struct thread *thread)
{
	u32 tid = thread->tid;

	if (!cfg_knobs.probes)
		return open->tid == tid;
	return __sync_val_compare_and_swap(&open->tid, tid, OPEN_BUSY) == tid;
}

static __always_inline void open__give(struct open_interval *open, struct thread *thread)
{
	if (cfg_knobs.probes)
		*(volatile u32 *)&open->tid = thread->tid;
}

/* From whichever thread has it, whose tid is returned; OPEN_BUSY: it does not let go. */
VERIFIED_ONCE u32 open__take(struct open_interval *open)
{
	if (!open)
		return OPEN_BUSY;
	for (int tries = 0; tries < 64; tries++) {
		u32 tid = *(volatile u32 *)&open->tid;

		if (tid && __sync_val_compare_and_swap(&open->tid, tid, OPEN_BUSY) == tid)
			return tid;
	}
	return OPEN_BUSY;
}

/* Intervals that were taken from a thread: it does not count them as open on it, once it knows. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} taken_cnts SEC(".maps") __weak;

static __always_inline void note_taken(u32 tid)
{
	u32 none = 0, *cnt;

	bpf_map_update_elem(&taken_cnts, &tid, &none, BPF_NOEXIST);
	cnt = bpf_map_lookup_elem(&taken_cnts, &tid);
	if (cnt)
		__sync_fetch_and_add(cnt, 1);
	__sync_fetch_and_add(&controls.taken_cnt, 1);
}

static __always_inline void thread__miss_taken(struct thread *thread)
{
	u32 *cnt, tid = thread->tid, missing;

	if (!cfg_knobs.probes || thread->taken_seen == controls.taken_cnt)
		return;
	thread->taken_seen = controls.taken_cnt;
	cnt = bpf_map_lookup_elem(&taken_cnts, &tid);
	if (!cnt || !*cnt)
		return;
	missing = __sync_lock_test_and_set(cnt, 0);
	thread->recording = thread->recording > missing ? thread->recording - missing : 0;
}

/* At `now`, the instant of thread->fresh, or 0. */
VERIFIED_ONCE int thread__pause_current_at(struct thread *thread, u64 now)
{
	struct open_interval *open;
	u64 sid;

	if (!thread)
		return 0;
	sid = thread->current_sid;
	if (!sid || !thread->current_recorded)
		return 0;
	open = open_find(sid);
	if (!open || !open__take_own(open, thread))
		return 0;
	/* It is in a queue since it was accounted for last. */
	if (open->handed_tid != thread->tid)
		open__add_fresh(open, thread, now);
	open->paused = 1;
	open__give(open, thread);
	return 0;
}

/*
 * Reads the thread's counters, once for the interval that it leaves and the one that it turns to, and pauses the
 * former. Returns when, 0 if they could not be read.
 */
static __always_inline u64 thread__turn(struct thread *thread)
{
	u64 now;

	thread__miss_taken(thread);
	now = thread__snapshot(thread, &thread->fresh, thread->recording == 0);
	thread__pause_current_at(thread, now);
	return now;
}

/* The same where nothing is to be recorded of what it turns to. */
static __always_inline void thread__pause_current(struct thread *thread)
{
	thread__miss_taken(thread);
	if (thread->current_sid && thread->current_recorded)
		thread__pause_current_at(thread, thread__snapshot(thread, &thread->fresh, false));
}

/* Of an interval that was taken over from a thread which then ended it itself: the counters of that thread. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct snapshot);
} handed_bases SEC(".maps") __weak;

/* Back to where the thread put it into a queue, if whoever took it out has added nothing yet. */
VERIFIED_ONCE bool open__take_back(struct open_interval *open, struct thread *thread, u64 sid)
{
	struct snapshot *base;

	if (!open || !thread || open->handed_tid != thread->tid || open->accounted_ts != open->owned_ts)
		return false;
	base = bpf_map_lookup_elem(&handed_bases, &sid);
	if (!base)
		return false;
	open->base = *base;
	open->sum.length_ns[WL_STATE_QUEUE] -= open->handed_ns;
	open->sum.count[WL_STATE_QUEUE]--;
	open->accounted_ts -= open->handed_ns;
	return true;
}

/* The thread begins to work for the interval; true if it is selected and recorded. */
static __always_inline bool interval__pick_up(struct thread *thread, const struct pickup *pickup)
{
	struct open_interval *open;
	u64 sid = pickup->sid, own_ts, now, read_ts = 0;

	thread__works_for(thread, sid, pickup->type);
	thread__reads(thread, sid);
	thread->current_type = pickup->type;
	if (!pickup->selected && !thread__is_watched(thread)) {
		thread->current_sid = sid;
		thread->current_since_ts = 0;
		thread->current_recorded = 0;
		return false;
	}
	thread__end_stale_fault(thread);
	thread__in_no_interrupt(thread);
	if (pickup->selected)
		read_ts = thread__turn(thread);
	else
		thread__pause_current(thread);
	now = read_ts ? read_ts : bpf_ktime_get_ns();
	thread__served(thread, now);
	own_ts = thread->activity_ts;
	thread->activity_ts = now;
	thread->current_sid = sid;
	thread->current_since_ts = now;
	thread->current_recorded = 0;
	if (!pickup->selected)
		return false;

	open = open_make(sid);
	if (!open) {
		struct cpu_context *cpu = this_cpu();

		if (cpu)
			count_loss(cpu, WL_LOSS_OPEN_FULL);
		return false;
	}
	open->base = thread->fresh;
	if (!read_ts)
		open->flags = WL_INTERVAL_TORN;
	open->pickup_ts = open->accounted_ts = now;
	open->begin_ts = pickup->begin_ts && pickup->begin_ts < now ? pickup->begin_ts : now;
	open->pid = thread->pid;
	open->tid = open->picker_tid = thread->tid;
	open->counted_tid = thread->kernel_tid;
	open->owned_ts = open->pickup_ts;
	open->type = pickup->type;
	open->rate = pickup->rate;
	open->flags |= pickup->flags;
	open->hw_epoch = thread->hw_epoch;
	open->hw_generation = thread->hw_generation;
	/* Woken after the arrival: its running since then, or since its last other request, is for this one. */
	if (thread->switched_in_ts < open->begin_ts)
		own_ts = now;
	else if (thread->switched_in_ts > own_ts)
		own_ts = thread->switched_in_ts;
	open__split_before(open, thread, own_ts);
	if (thread->served_end_ts > open->begin_ts) {
		open->queue_sid = thread->served_sid;
		open->queue_sid_ns = thread->served_ns;
	}
	if (cfg_knobs.first_bytes && pickup->read_len) {
		open->conn = pickup->conn;
		open__add_first(open, pickup->read_len);
	}
	if (cfg_knobs.first_bytes && pickup->type_kind)
		open__set_type(open, pickup->type_value, pickup->type_kind == WL_FIRST_STRING);
	thread->recording++;
	thread->current_recorded = 1;
	return true;
}

/* More bytes of an interval that its thread had left for another one. */
VERIFIED_ONCE int interval__resume(struct thread *thread, u64 sid, u32 type, bool recorded)
{
	struct open_interval *open;
	u64 now, read_ts = 0;

	if (!thread || thread->current_sid == sid)
		return 0;
	thread__works_for(thread, sid, type);
	if (recorded)
		read_ts = thread__turn(thread);
	else
		thread__pause_current(thread);
	now = read_ts ? read_ts : bpf_ktime_get_ns();
	thread__served(thread, now);
	thread->activity_ts = now;
	thread->current_sid = sid;
	thread->current_type = type;
	thread->current_since_ts = now;
	thread->current_recorded = recorded;
	if (!recorded)
		return 0;
	open = open_find(sid);
	if (!open || !open__take_own(open, thread))
		return 0;
	open__add_fresh(open, thread, read_ts);
	open->paused = 0;
	open->handed_tid = 0;
	open__give(open, thread);
	return 0;
}

/*
 * The thread puts the interval that it works for into a queue.  It may go on with it nevertheless: only once it turns
 * to something else, or another thread takes the interval out, has it been in the queue from now on.  Returns when.
 */
static __always_inline u64 interval__hand_over(struct thread *thread)
{
	u64 sid = thread->current_sid, now;
	struct open_interval *open = NULL;

	if (sid && thread->current_recorded)
		open = open_find(sid);
	if (!open || !open__take_own(open, thread))
		return bpf_ktime_get_ns();
	now = open__account(open, thread);
	open->handed_tid = thread->tid;
	open__give(open, thread);
	return now;
}

/* The thread ends the interval, whoever has worked for it lately. */
VERIFIED_ONCE int open__take_to_end(struct open_interval *open, struct thread *thread, u64 sid)
{
	u32 owner_tid;

	if (!open || !thread)
		return 0;
	thread__miss_taken(thread);
	owner_tid = open__take(open);
	if (owner_tid == OPEN_BUSY) {
		open->flags |= WL_INTERVAL_TORN;
	} else if (owner_tid != thread->tid) {
		note_taken(owner_tid);
		if (open__take_back(open, thread, sid)) {
			owner_tid = thread->tid;
			thread->recording++;
		}
	}
	open->tid = owner_tid;
	return 0;
}

/* The thread ends what it has worked for itself: all of its time until now. */
static __always_inline void open__account_end(struct open_interval *open, struct thread *thread, u64 sid,
					      u64 own_since_ts)
{
	bool paused = open->paused;
	u64 now = open__account(open, thread);

	open->accounted_ts = now;
	if (cfg_knobs.probes && thread->call_cnt)
		calls__end(thread, sid, now, thread->fresh.length_ns);
	if (paused) {
		/* The reply itself, after the thread's last business with another interval, is its own. */
		u64 own_ns = thread__ran_since(thread, own_since_ts, now);

		if (own_ns > open->sum.length_ns[WL_STATE_QUEUE])
			own_ns = open->sum.length_ns[WL_STATE_QUEUE];
		open->sum.length_ns[WL_STATE_QUEUE] -= own_ns;
		open->sum.length_ns[WL_STATE_RUNNING] += own_ns;
		if (thread->served_end_ts > open->pickup_ts && thread->served_ns > open->queue_sid_ns &&
		    thread->served_sid != sid) {
			open->queue_sid = thread->served_sid;
			open->queue_sid_ns = thread->served_ns;
		}
	}
	if (thread->recording)
		thread->recording--;
	if (cfg_knobs.hw && !(open->hw_epoch & 1) && open->hw_epoch == thread->hw_epoch &&
	    open->hw_generation == thread->hw_generation)
		open->flags |= WL_INTERVAL_HW;
}

VERIFIED_ONCE int finish(struct thread *thread, u64 sid, bool recorded)
{
	struct cpu_context *cpu = this_cpu();
	struct open_interval *open;
	u64 now, own_since_ts;
	bool current, kept, passed_on;
	u32 chance, place;

	if (!thread)
		return 0;
	own_since_ts = thread->activity_ts;
	current = thread->current_sid == sid;
	if (cpu)
		__sync_fetch_and_add(&cpu->seen, 1);
	thread__asked(thread, sid);
	if (!recorded && !thread__is_watched(thread)) {
		if (current)
			thread->current_sid = 0;
		return 0;
	}
	thread__end_stale_fault(thread);
	thread__in_no_interrupt(thread);
	now = bpf_ktime_get_ns();
	thread__served(thread, now);
	thread->activity_ts = now;
	if (current) {
		thread->current_sid = 0;
		thread->current_recorded = 0;
	}
	if (!recorded)
		return 0;
	if (cpu)
		__sync_fetch_and_add(&cpu->selected, 1);
	place = open_place(sid);
	open = place ? open_at(place) : NULL;
	if (!open) {
		if (cpu)
			count_loss(cpu, WL_LOSS_OPEN_FULL);
		return 0;
	}
	if (cfg_knobs.probes)
		open__take_to_end(open, thread, sid);
	/* Who is asked on its behalf answers to another one: that is known, and no guess. */
	passed_on = open->message & MESSAGE_PASSED_ON;
	if (open->picker_tid != thread->tid && !passed_on)
		open->flags |= WL_INTERVAL_MOVED;
	kept = is_kept(now - open->begin_ts, &chance, &open->flags);
	if (open->tid != thread->tid) {
		open__gap(open, passed_on ? WL_STATE_BLOCKED_NET : WL_STATE_UNKNOWN, now);
	} else if (!kept && !(cfg_knobs.probes && thread->call_cnt)) {
		open->accounted_ts = now;
		if (thread->recording)
			thread->recording--;
	} else {
		open__account_end(open, thread, sid, own_since_ts);
	}
	if (later(thread->lost_ts, thread->suspect_ts) > open->begin_ts)
		open->flags |= WL_INTERVAL_LOSSY;
	if (cfg_knobs.first_bytes)
		open__note_prepared(open);
	if (kept)
		open__send(open, thread, sid, chance);
	else
		open__send_brief(open, thread, sid);
	open_drop_at(place, sid);
	return 0;
}

/* The interval ends now, on this thread. */
static __always_inline void interval__finish(struct thread *thread, u64 sid, u32 type, bool recorded)
{
	/* Read by another thread, and nothing else was known to be this one's work. */
	if (cfg_knobs.trace && !thread->segment_sid) {
		thread->segment_sid = sid;
		thread->segment_type = type;
	}
	finish(thread, sid, recorded);
	thread__works_for(thread, thread->current_sid, thread->segment_type);
}

/* The interval will never end: its connection, its thread or its stack frame is gone. */
static __always_inline void interval__abandon(struct thread *thread, u64 sid)
{
	struct cpu_context *cpu = this_cpu();
	struct open_interval *open;
	u32 owner_tid;

	if (cpu)
		__sync_fetch_and_add(&cpu->abandoned, 1);
	if (thread && thread->current_sid == sid) {
		thread->current_sid = 0;
		thread->current_recorded = 0;
		thread__works_for(thread, 0, 0);
	}
	open = open_find(sid);
	if (!open)
		return;
	owner_tid = open->tid;
	if (!open_drop(sid) || !thread)
		return;
	if (cfg_knobs.probes && owner_tid && owner_tid != thread->tid)
		note_taken(owner_tid);
	else if (thread->recording)
		thread->recording--;
}

#endif
