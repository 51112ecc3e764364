/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Go: what works for a request is a goroutine, on whichever thread it runs.
 *
 * A thread that runs a goroutine goes by the goroutine's tid (thread->tid), and has its state: which interval it works
 * for, how many are open.  When the goroutine leaves the thread, that state goes into `goroutines`, and comes back with
 * the thread that runs it next.  So all that is told of threads is told of goroutines: segments, wake-ups, bytes,
 * ticks. The time between is its wait, by the runtime's own reason, and its time in a run queue of the runtime, which
 * is `runq`, as a thread's in the kernel's.  A thread that runs none goes by its own tid.
 *
 * Three places in the runtime tell: where a thread begins to run one, where one has begun to wait, and where one is put
 * into a run queue.  What else takes a goroutine off its thread (its end, preemption) shows when the thread runs the
 * next one, or gives up its CPU.  Who reads a request is told by the thread's own pointer to the running g.
 *
 * The g is used again for later goroutines.  To what is known of it, those are one after the other the same.
 */
#ifndef WHYLATE_BPF_GOROUTINE_H
#define WHYLATE_BPF_GOROUTINE_H

#include "goroutine_records.h"
#include "goroutine_stack.h"
#include "goroutine_waits.h"
#include "interval.h"

/* The runtime's own, of a g's status; a scan of its stack adds a bit. */
#define GO_STATUS_MASK     0xfff
#define GO_STATUS_RUNNABLE 1
#define GO_STATUS_WAITING  4
#define GO_STATUS_DEAD     6
/* Bytes that were there so long before a wait for them have been read unseen. */
#define ARRIVED_BEFORE_NS 1000000

/* --- what is known of one ----------------------------------------------------------------------------------------- */

/* Nothing is known any more of what it works for. */
static __always_inline void goroutine__forget_work(struct goroutine *goroutine)
{
	goroutine->current_sid = goroutine->segment_sid = 0;
	goroutine->current_recorded = goroutine->recording = 0;
	goroutine->datagram_sk = 0;
	goroutine->from_ts = 0;
	goroutine->stack_key = 0;
}

static __always_inline void goroutine__count_waiting(struct goroutine *goroutine, u32 cnt)
{
	if (!cfg_knobs.stacks || cnt == goroutine->waiting)
		return;
	__sync_fetch_and_add(&controls.waiting, cnt - goroutine->waiting);
	goroutine->waiting = cnt;
}

/* The one of that g is another than before. */
static __always_inline void goroutine__begins(struct goroutine *goroutine, u64 goid)
{
	bool known = goroutine->state == GOROUTINE_WAITS || goroutine->state == GOROUTINE_READY;

	goroutine->goid = goid;
	goroutine__count_waiting(goroutine, 0);
	goroutine__forget_work(goroutine);
	goroutine->wait = WL_GO_WAIT_START;
	goroutine->state = known ? GOROUTINE_WAITS : GOROUTINE_UNKNOWN;
}

/* NULL: its memory cannot be read, or it is none: the scheduler's own stacks have no number. */
static __noinline struct goroutine *goroutine__of(u32 pid, u64 g)
{
	struct goroutine_key key = {.g = g, .pid = pid};
	struct go_layout *layout = go_layout_of(pid);
	struct goroutine *goroutine;
	u64 goid = 0, start_pc = 0;
	bool is_new;

	if (!layout || bpf_probe_read_user(&goid, sizeof(goid), (void *)(g + layout->goid)) || !goid)
		return NULL;
	goroutine = bpf_map_lookup_elem(&goroutines, &key);
	is_new = !goroutine;
	if (is_new) {
		bpf_map_update_elem(&goroutines, &key, (const void *)&zero_goroutine, BPF_NOEXIST);
		goroutine = bpf_map_lookup_elem(&goroutines, &key);
		if (!goroutine)
			return NULL;
		goroutine->pid = pid;
		goroutine->goid = goid;
		goroutine->window = controls.window;
		goroutine->wait = WL_GO_WAIT_START;
		goroutine->tid =
			WL_GOROUTINE_TID | (__sync_fetch_and_add(&goroutine_cnt, 1) + 1) % (1U << WL_GOROUTINE_BITS);
		goroutine->start_pc = 1; /* of none */
	}
	if (goroutine->window != controls.window) {
		goroutine->window = controls.window;
		goroutine->state = GOROUTINE_UNKNOWN;
		goroutine->waiting = 0;
		goroutine__forget_work(goroutine);
	}
	if (goroutine->goid != goid) {
		goroutine__begins(goroutine, goid);
		is_new = true;
	}
	if (!is_new)
		return goroutine;
	if (layout->start_pc != GO_NO_OFF)
		bpf_probe_read_user(&start_pc, sizeof(start_pc), (void *)(g + layout->start_pc));
	if (goroutine->start_pc != start_pc) {
		goroutine->start_pc = start_pc;
		goroutine__send_start(goroutine);
	}
	return goroutine;
}

/* The one that the thread runs; NULL: it runs none. */
static __always_inline struct goroutine *thread__goroutine(const struct thread *thread)
{
	struct goroutine_key key = {.g = thread->goroutine, .pid = thread->pid};

	return key.g ? bpf_map_lookup_elem(&goroutines, &key) : NULL;
}

/* Why it is not on its thread any more.  parks: it is about to wait, which its status does not say yet. */
static __always_inline void goroutine__read_state(struct goroutine *goroutine, u64 g, bool parks)
{
	struct go_layout *layout = go_layout_of(goroutine->pid);
	u32 status = 0, stopping = 0;
	u64 goid = 0;
	u8 reason = 0;

	goroutine->state = GOROUTINE_WAITS;
	goroutine->wait = WL_GO_WAIT_OTHER;
	if (!layout)
		return;
	if (parks) {
		status = GO_STATUS_WAITING;
		goid = goroutine->goid;
	} else {
		bpf_probe_read_user(&goid, sizeof(goid), (void *)(g + layout->goid));
		bpf_probe_read_user(&status, sizeof(status), (void *)(g + layout->status));
		status &= GO_STATUS_MASK;
	}
	if (goid != goroutine->goid || status == GO_STATUS_DEAD) {
		goroutine->wait = WL_GO_WAIT_START;
	} else if (status == GO_STATUS_WAITING) {
		bpf_probe_read_user(&reason, sizeof(reason), (void *)(g + layout->wait_reason));
		goroutine->wait = layout->waits[reason & (GO_REASONS_MAX - 1)];
	} else {
		if (layout->stopping)
			bpf_probe_read_user(&stopping, layout->stopping_sz == 1 ? 1 : 4, (void *)layout->stopping);
		if (stopping)
			goroutine->wait = WL_GO_WAIT_STOPPED;
		else
			goroutine->state = GOROUTINE_READY;
		goroutine->waited_ns = 0;
	}
}

/* --- off its thread ----------------------------------------------------------------------------------------------- */

static __always_inline void goroutine__save(struct goroutine *goroutine, const struct thread *thread)
{
	goroutine->current_sid = thread->current_sid;
	goroutine->current_type = thread->current_type;
	goroutine->current_recorded = thread->current_recorded;
	goroutine->segment_sid = thread->segment_sid;
	goroutine->segment_type = thread->segment_type;
	goroutine->recording = thread->recording;
	goroutine->datagram_sk = thread->datagram_sk;
	goroutine->datagram_sid = thread->datagram_sid;
	goroutine->datagram_recorded = thread->datagram_recorded;
}

static __always_inline void goroutine__load(const struct goroutine *goroutine, struct thread *thread)
{
	thread->current_sid = goroutine->current_sid;
	thread->current_type = goroutine->current_type;
	thread->current_recorded = goroutine->current_recorded;
	thread->segment_sid = goroutine->segment_sid;
	thread->segment_type = goroutine->segment_type;
	thread->recording = goroutine->recording;
	thread->datagram_sk = goroutine->datagram_sk;
	thread->datagram_sid = goroutine->datagram_sid;
	thread->datagram_recorded = goroutine->datagram_recorded;
}

/* The thread runs none from now on. */
static __always_inline void thread__leave_goroutine(struct thread *thread, u64 now)
{
	thread->left_tid = thread->tid;
	thread->left_since_ts = thread->entered_ts;
	thread->left_ts = now;
	thread->goroutine = 0;
	thread->tid = thread->kernel_tid;
	thread->current_sid = thread->segment_sid = 0;
	thread->current_recorded = thread->recording = 0;
	thread->datagram_sk = 0;
}

/* The goroutine that the thread runs, if any, is not on it any more. */
VERIFIED_ONCE int goroutine__leave(struct thread *thread, bool parks)
{
	struct goroutine *goroutine;
	struct open_interval *open;
	u64 g, now;

	if (!thread || !thread->goroutine)
		return 0;
	g = thread->goroutine;
	goroutine = thread__goroutine(thread);
	/* What it did until now is its own. */
	thread__cut(thread);
	now = cfg_knobs.trace ? word_ts(thread->word) : bpf_ktime_get_ns();
	thread__served(thread, now);
	if (goroutine && goroutine->tid == thread->tid && goroutine->state == GOROUTINE_RUNS &&
	    goroutine->runs_on == thread->kernel_tid) {
		if (cfg_knobs.trace && goroutine->from_ts)
			goroutine__tell_wait(goroutine, WL_GO_WAIT_IO, goroutine->from_ts, goroutine->to_ts);
		goroutine->from_ts = 0;
		goroutine__save(goroutine, thread);
		open = goroutine__open(goroutine);
		if (open) {
			open__account(open, thread);
			open__take_waits(open, thread, later(open->owned_ts, thread->entered_ts));
		}
		goroutine__read_state(goroutine, g, parks);
		goroutine->since_ts = now;
		goroutine->waker_tid = 0;
		goroutine->waker_sid = 0;
		goroutine__count_waiting(goroutine, goroutine->recording);
	}
	thread__leave_goroutine(thread, now);
	return 0;
}

/* --- on a thread -------------------------------------------------------------------------------------------------- */

/* Its interval goes on with the counters of this thread; what has passed since it was accounted for is a wait. */
VERIFIED_ONCE int open__enter(struct open_interval *open, struct thread *thread, u64 wait_ns, u64 ready_ns, u32 state)
{
	u64 now, gap_ns;

	if (!open || !thread)
		return 0;
	now = thread__snapshot(thread, &open->base, thread->recording == 0);
	if (!now) {
		open->flags |= WL_INTERVAL_TORN;
		now = bpf_ktime_get_ns();
	}
	gap_ns = now > open->accounted_ts ? now - open->accounted_ts : 0;
	if (ready_ns > gap_ns)
		ready_ns = gap_ns;
	open->sum.length_ns[WL_STATE_RUNQ_WAKEUP] += ready_ns;
	open->sum.count[WL_STATE_RUNQ_WAKEUP] += ready_ns > 0;
	gap_ns -= ready_ns;
	open->sum.length_ns[state & STATE_MASK] += gap_ns;
	open->sum.count[state & STATE_MASK] += wait_ns > 0;
	open->accounted_ts = now > open->accounted_ts ? now : open->accounted_ts;
	if (open->counted_tid != thread->kernel_tid)
		open->hw_generation = thread->hw_generation - 1; /* what the other one counted is not to be had */
	open->counted_tid = thread->kernel_tid;
	return 0;
}

/* What it worked for was ended by another one meanwhile, which got the answer: it works for nothing. */
static __always_inline void goroutine__miss_ended(struct goroutine *goroutine)
{
	goroutine->current_sid = goroutine->segment_sid = 0;
	goroutine->current_recorded = 0;
	if (goroutine->recording)
		goroutine->recording--;
}

/* The wait that is over, of a goroutine that the thread runs from `now` on. */
static __always_inline void goroutine__end_wait(struct goroutine *goroutine, struct thread *thread, u64 now)
{
	bool waits = goroutine->state == GOROUTINE_WAITS, known = waits || goroutine->state == GOROUTINE_READY;
	u64 since_ns = known && now > goroutine->since_ts ? now - goroutine->since_ts : 0;
	u64 wait_ns = waits ? since_ns : goroutine->waited_ns, ready_ns = waits ? 0 : since_ns;
	struct open_interval *open = goroutine__open(goroutine);

	if (!open && goroutine->current_recorded)
		goroutine__miss_ended(goroutine);
	goroutine__note_by(goroutine, thread, known ? goroutine->since_ts : now);
	if (open) {
		open__enter(open, thread, wait_ns, ready_ns, known ? wait_state(goroutine->wait) : WL_STATE_UNKNOWN);
		open__note_wait(open, goroutine, wait_ns);
		open__note_runq(open, thread, goroutine, goroutine->since_ts, ready_ns);
	}
	if (!known)
		return;
	goroutine->from_ts = 0;
	if (waits && goroutine->wait == WL_GO_WAIT_IO) {
		/* The bytes may have been there for a while: its first call on a socket tells. */
		goroutine->from_ts = goroutine->since_ts;
		goroutine->to_ts = now;
	} else if (cfg_knobs.trace && waits) {
		goroutine__tell_wait(goroutine, goroutine->wait, goroutine->since_ts, now);
	} else if (cfg_knobs.trace) {
		goroutine__tell_ready(goroutine, goroutine->since_ts, now);
	}
}

/* The thread, which runs none, runs that goroutine from now on. */
VERIFIED_ONCE int goroutine__enter(struct thread *thread, u64 g)
{
	struct cpu_context *cpu = this_cpu();
	struct goroutine *goroutine;
	struct runner *runner;
	u64 now;

	if (!thread || !cpu)
		return 0;
	goroutine = goroutine__of(thread->pid, g);
	if (!goroutine)
		return 0;
	if (cfg_knobs.stacks) {
		if (!goroutine->stack_key && !goroutine->current_recorded)
			goroutine__sample(thread, g);
		goroutine__tell_stack(goroutine);
	}
	thread->is_go = 1;
	thread__end_stale_fault(thread);
	thread__cut(thread);
	now = cfg_knobs.trace ? word_ts(thread->word) : bpf_ktime_get_ns();
	goroutine__end_wait(goroutine, thread, now);
	goroutine__count_waiting(goroutine, 0);
	goroutine__load(goroutine, thread);
	goroutine->state = GOROUTINE_RUNS;
	goroutine->runs_on = thread->kernel_tid;
	goroutine->since_ts = now;
	thread->goroutine = g;
	thread->tid = goroutine->tid;
	thread->entered_ts = thread->activity_ts = now;
	thread->current_since_ts = thread->current_sid ? now : 0;
	runner = cpu__runner(cpu);
	if (runner->tid == thread->kernel_tid)
		runner->as_tid = thread->tid;
	return 0;
}

/*
 * The thread runs that goroutine from now on.  goroutine__enter() does not call goroutine__leave(): Linux 6.1 grants
 * the frames of nested calls 512 bytes together (scripts/bpf-stack).
 */
static __always_inline void thread__run_goroutine(struct thread *thread, u64 g)
{
	if (thread->goroutine == g)
		return;
	goroutine__leave(thread, false);
	goroutine__enter(thread, g);
}

/* The g that the running thread is at, as it says itself; 0: not known. */
static __always_inline u64 running_g(struct task_struct *task, const struct thread *thread)
{
	struct go_layout *layout = go_layout_of(thread->pid);
	u64 g = 0, tp;

	if (!layout)
		return 0;
	tp = thread_pointer(task);
	if (!tp || bpf_probe_read_user(&g, sizeof(g), (void *)(tp + layout->slot)))
		return 0;
	return g;
}

/* The thread makes a call: it is the goroutine's that it runs, whatever was seen of it. */
static __always_inline void goroutine__sync(struct thread *thread)
{
	u64 g;

	if (!has_goroutines(thread))
		return;
	g = running_g(bpf_get_current_task_btf(), thread);
	if (g)
		thread__run_goroutine(thread, g);
}

/* The thread gives up its CPU to wait, not in a call of the goroutine's that it ran: that one has left it. */
static __always_inline void goroutine__switched_out(struct task_struct *task, struct thread *thread)
{
	if (thread->goroutine && has_goroutines(thread) && running_g(task, thread) != thread->goroutine)
		goroutine__leave(thread, false);
}

/* The one that the thread runs, if its last wait was for bytes and was not told; NULL. */
static __always_inline struct goroutine *thread__untold(struct thread *thread)
{
	struct goroutine *goroutine = thread__goroutine(thread);

	return goroutine && goroutine->from_ts ? goroutine : NULL;
}

/*
 * The goroutine has read a request that arrived then (0: not known): from then on it waited for a thread.  Before, it
 * was in nobody's way.
 */
VERIFIED_ONCE int goroutine__tell_arrival(struct thread *thread, u64 begin_ts)
{
	struct goroutine *goroutine = thread ? thread__untold(thread) : NULL;
	u64 from_ts;

	if (!goroutine)
		return 0;
	from_ts = goroutine->from_ts;
	goroutine->from_ts = 0;
	goroutine->arrived_ns = 0;
	if (cfg_knobs.trace && goroutine->segment_sid)
		goroutine__tell_wait(goroutine, WL_GO_WAIT_IO, from_ts,
				     begin_ts > from_ts && begin_ts < goroutine->to_ts ? begin_ts : goroutine->to_ts);
	if (!begin_ts || begin_ts >= goroutine->to_ts)
		return 0;
	begin_ts = later(begin_ts, from_ts);
	goroutine->arrived_ns = goroutine->to_ts - begin_ts;
	goroutine__limit_by(goroutine, thread, begin_ts);
	if (cfg_knobs.trace)
		goroutine__tell_ready(goroutine, begin_ts, goroutine->to_ts);
	return 0;
}

/* A part of its interval's wait for bytes was one for a thread. */
static __always_inline void open__move_to_runq(struct open_interval *open, u64 wait_ns, u64 ready_ns)
{
	u64 *net_ns = &open->sum.length_ns[WL_STATE_BLOCKED_NET];

	if (ready_ns > *net_ns)
		ready_ns = *net_ns;
	*net_ns -= ready_ns;
	open->sum.length_ns[WL_STATE_RUNQ_WAKEUP] += ready_ns;
	open->sum.count[WL_STATE_RUNQ_WAKEUP]++;
	if (open->go_other.length_ns == wait_ns && open->go_other.object == (WL_GO_WAIT | WL_GO_WAIT_IO))
		open->go_other.length_ns -= ready_ns;
}

/*
 * The goroutine has read, or tried to read, bytes that begin no request, and that arrived then (0: not known): it
 * waited for them until then, and for a thread from then on.
 */
VERIFIED_ONCE int goroutine__tell_bytes(struct thread *thread, u64 arrived_ts)
{
	struct goroutine *goroutine = thread ? thread__untold(thread) : NULL;
	struct open_interval *open;
	u64 from_ts, to_ts;

	if (!goroutine)
		return 0;
	from_ts = goroutine->from_ts;
	to_ts = goroutine->to_ts;
	goroutine->from_ts = 0;
	if (!arrived_ts || arrived_ts > to_ts || arrived_ts + ARRIVED_BEFORE_NS < from_ts)
		arrived_ts = to_ts;
	arrived_ts = later(arrived_ts, from_ts);
	goroutine__limit_by(goroutine, thread, arrived_ts);
	if (cfg_knobs.trace) {
		goroutine__tell_wait(goroutine, WL_GO_WAIT_IO, from_ts, arrived_ts);
		goroutine__tell_ready(goroutine, arrived_ts, to_ts);
	}
	if (arrived_ts == to_ts || !thread->current_recorded)
		return 0;
	open = open_find(thread->current_sid);
	if (!open || open->tid != thread->tid)
		return 0;
	open__move_to_runq(open, to_ts - from_ts, to_ts - arrived_ts);
	open__note_runq(open, thread, goroutine, arrived_ts, to_ts - arrived_ts);
	return 0;
}

/* That request is recorded. */
VERIFIED_ONCE int goroutine__picks_up(struct thread *thread, u64 sid)
{
	struct goroutine *goroutine = thread ? thread__goroutine(thread) : NULL;
	struct open_interval *open;

	if (!goroutine)
		return 0;
	open = open_find(sid);
	if (!open)
		return 0;
	open__note_runq(open, thread, goroutine, goroutine->to_ts - goroutine->arrived_ns, goroutine->arrived_ns);
	goroutine->arrived_ns = 0;
	return 0;
}

/* interval__pick_up() on a thread that may run a goroutine. */
static __always_inline bool goroutine__pick_up(struct thread *thread, const struct pickup *pickup)
{
	bool recorded;

	if (cfg_knobs.goroutines)
		goroutine__tell_arrival(thread, pickup->begin_ts);
	recorded = interval__pick_up(thread, pickup);
	if (cfg_knobs.goroutines && recorded)
		goroutine__picks_up(thread, pickup->sid);
	return recorded;
}

/* --- the runtime's scheduler -------------------------------------------------------------------------------------- */

static __always_inline void goroutine__parks(struct thread *thread, u64 g)
{
	struct goroutine *goroutine;
	bool recorded;

	if (thread->goroutine == g) {
		recorded = thread->current_recorded;
		goroutine__leave(thread, true);
		if (cfg_knobs.stacks && recorded)
			goroutine__sample(thread, g);
		return;
	}
	/* Its beginning was not seen. */
	goroutine__leave(thread, false);
	goroutine = goroutine__of(thread->pid, g);
	if (!goroutine || (goroutine->state != GOROUTINE_UNKNOWN && goroutine->state != GOROUTINE_RUNS))
		return;
	goroutine__read_state(goroutine, g, true);
	goroutine->since_ts = bpf_ktime_get_ns();
}

/* The thread, or the goroutine that it runs, puts that one into a run queue. */
VERIFIED_ONCE int goroutine__is_ready(struct thread *thread, u64 g)
{
	struct goroutine *goroutine;
	u64 now;

	if (!thread)
		return 0;
	if (thread->goroutine == g) {
		goroutine__leave(thread, false);
		return 0;
	}
	goroutine = goroutine__of(thread->pid, g);
	if (!goroutine || goroutine->state == GOROUTINE_READY || goroutine->state == GOROUTINE_RUNS)
		return 0;
	/* What the waker did until now is complete: a path may go on there. */
	thread__cut(thread);
	now = cfg_knobs.trace ? word_ts(thread->word) : bpf_ktime_get_ns();
	goroutine->waker_tid = thread->goroutine ? thread->tid : 0;
	goroutine->waker_sid = thread->goroutine && thread->current_recorded ? thread->current_sid : 0;
	goroutine->waited_ns = 0;
	if (goroutine->state == GOROUTINE_WAITS && now > goroutine->since_ts) {
		goroutine->waited_ns = now - goroutine->since_ts;
		if (cfg_knobs.trace)
			goroutine__tell_wait(goroutine, goroutine->wait, goroutine->since_ts, now);
	}
	if (cfg_knobs.trace)
		goroutine__send_wakeup(goroutine, now, goroutine->waker_tid);
	goroutine->state = GOROUTINE_READY;
	goroutine->since_ts = now;
	return 0;
}

#endif
