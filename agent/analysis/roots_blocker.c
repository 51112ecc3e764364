// SPDX-License-Identifier: GPL-2.0-or-later
/* From a step of a path to the root behind it. */
#include "analysis/roots_internal.h"

#include <string.h>

/* What a thread received once it was awake may come a little after its wait. */
#define RECEIVED_AFTER_NS 10000000ULL
#define UNDER_WAY_MIN_NS  1000000 /* between two threads: the receiving CPU alone takes less */
#define HANDOFF_LOOKS_MAX 8

static const char *const interrupts = "interrupts";

static bool is_other(const struct path_step *step)
{
	return step->culprit_tid && step->culprit_tid != step->tid;
}

/* --- who it is -----------------------------------------------------------------------------------------------------
 */

/* The type of the request that a thread of the graph works for. */
static int type_text(const struct root_trail *trail, uint32_t tid, uint64_t sid, uint32_t type, uint32_t *id)
{
	const struct traces *traces = trail->roots->traces;
	const struct path_step at = {.tid = tid, .sid = sid};
	const struct trace_interval *other = traces_step_interval(traces, trail->session, &at);
	const char *text = traces_string(traces, other ? other->base.type : type);

	*id = 0;
	return sid && *text ? roots__text(trail->roots, text, id) : 0;
}

/* The chain of hand-offs behind that request, where it was recorded. */
static uint32_t context_of(const struct root_trail *trail, uint32_t tid, uint64_t sid)
{
	const struct traces *traces = trail->roots->traces;
	const struct path_step at = {.tid = tid, .sid = sid};
	const struct trace_interval *other = sid ? traces_step_interval(traces, trail->session, &at) : NULL;

	return other ? context_chains__find(&traces->chains, traces->sessions.items[other->session].id, other->context)
		     : CONTEXT_CHAIN_NONE;
}

static int set_thread(const struct root_trail *trail, struct root_leaf *leaf, uint32_t pid, uint32_t tid, uint32_t name)
{
	const struct traces *traces = trail->roots->traces;
	const struct trace_session *owner = traces_owner(traces, trail->session, tid);

	leaf->tid = tid;
	leaf->pid = pid ? pid : traces_thread_pid(traces, trail->session, tid);
	if (!name)
		name = traces_thread_name(traces, trail->session, pid, tid);
	if (trail->roots->many_hosts && tid && owner->host &&
	    roots__text(trail->roots, traces_string(traces, owner->host), &leaf->key.host))
		return -ENOMEM;
	return name ? roots__role(trail->roots, name, &leaf->key.role) : 0;
}

static int follow_thread(const struct root_trail *trail, uint32_t pid, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
			 uint64_t ns);
static bool can_follow(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts);

/*
 * Follows the owner of the lock for which the thread spun in that time, whether it had a CPU or not; *err is 0 or
 * -ENOMEM.  False: there is none to follow.
 */
static bool follow_spin(const struct root_trail *trail, const struct root_leaf *leaf, uint32_t pid, uint32_t tid,
			uint64_t ns, int *err)
{
	uint32_t owner = spins_owner(&trail->roots->spins, trail->session, tid, leaf->from_ts, leaf->to_ts);
	struct root_trail next;

	if (!can_follow(trail, owner, leaf->from_ts, leaf->to_ts))
		return false;
	next = *trail;
	next.way.other = next.way.spins = true;
	*err = root_trail__hop(&next, pid, tid) ? -ENOMEM
						: follow_thread(&next, 0, owner, leaf->from_ts, leaf->to_ts, ns);
	return true;
}

/* The thread ran, for the request of that sid and type; where it spun, the owner of that lock is followed. */
static int add_code(const struct root_trail *trail, struct root_leaf leaf, uint32_t pid, uint32_t tid, uint32_t name,
		    uint64_t sid, uint32_t type, uint64_t ns)
{
	int err;

	if (follow_spin(trail, &leaf, pid, tid, ns, &err))
		return err;
	leaf.key.kind = ROOT_CODE;
	leaf.on_cpu = true;
	if (set_thread(trail, &leaf, pid, tid, name) || type_text(trail, tid, sid, type, &leaf.key.type))
		return -ENOMEM;
	leaf.sid = sid;
	leaf.context = context_of(trail, tid, sid);
	return roots__add(trail->roots, trail, &leaf, ns);
}

/* A root of that kind at which the thread itself waits. */
static int add_own(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf,
		   enum root_kind kind, const char *object, uint64_t ns)
{
	leaf.key.kind = kind;
	if (set_thread(trail, &leaf, step->pid, step->tid, 0) ||
	    (object && roots__text(trail->roots, object, &leaf.key.object)))
		return -ENOMEM;
	/* A quota holds back the whole group, wherever its threads are. */
	if (kind == ROOT_QUOTA && !object)
		leaf.tid = 0;
	return roots__add(trail->roots, trail, &leaf, ns);
}

static int add_unknown(const struct root_trail *trail, struct root_leaf leaf, const char *object, uint64_t ns)
{
	leaf.key.kind = ROOT_UNKNOWN;
	if (object && roots__text(trail->roots, object, &leaf.key.object))
		return -ENOMEM;
	return roots__add(trail->roots, trail, &leaf, ns);
}

/*
 * A worker that the interval's thread gave work to through memory, and that told when it was done: its segments have no
 * sid, but it was for the interval that it worked.
 */
static bool is_for_it(const struct root_trail *trail, const struct path_step *step)
{
	uint32_t pid = traces_graph_id(trail->session, trail->interval->base.pid);

	return step->depth == 1 && !trail->nest && !step->sid && step->pid == pid &&
	       (step->via == PATH_VIA_WAKEUP || step->via == PATH_VIA_HANDOFF) && step->wait == WL_CATEGORY_IO_NET;
}

/* --- what kept it busy ---------------------------------------------------------------------------------------------
 */

/* How long a followed thread ran in that time, and for which interval longest; false: the thread is not followed. */
static bool ran(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts, uint64_t *ns,
		const struct graph_segment **most)
{
	size_t cnt;
	const struct graph_segment *segments = graph__segments(trail->session->graph, tid, from_ts, to_ts, &cnt);
	uint64_t most_ns = 0;

	*ns = 0;
	*most = NULL;
	for (size_t i = 0; i < cnt; i++) {
		uint64_t begin_ts = segments[i].begin_ts > from_ts ? segments[i].begin_ts : from_ts;
		uint64_t end_ts = segments[i].end_ts < to_ts ? segments[i].end_ts : to_ts;

		if (!state_is_on_cpu(segments[i].state))
			continue;
		*ns += end_ts - begin_ts;
		if (end_ts - begin_ts > most_ns) {
			most_ns = end_ts - begin_ts;
			*most = &segments[i];
		}
	}
	return cnt;
}

/* The CPU that it waited for was another task's. */
static int follow_runnable(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf,
			   uint64_t ns)
{
	const char *name = traces_string(trail->roots->traces, step->culprit_name);
	const struct graph_segment *most;
	uint64_t ran_ns;
	int err;

	/* With a CPU it would have spun on. */
	if (step->state == WL_STATE_RUNQ_PREEMPT && follow_spin(trail, &leaf, step->pid, step->tid, ns, &err))
		return err;
	leaf.time = step->state == WL_STATE_RUNQ_PREEMPT ? ROOT_TIME_TAKEN : ROOT_TIME_OTHER;
	if (!step->culprit_tid)
		return add_unknown(trail, leaf, *name ? name : NULL, ns);
	if (!ran(trail, step->culprit_tid, leaf.from_ts, leaf.to_ts, &ran_ns, &most))
		return add_code(trail, leaf, step->culprit_pid, step->culprit_tid, step->culprit_name, 0, 0, ns);
	/*
	 * The one that had the CPU for longest had it for less than half of the wait: there are many.  Those that spin
	 * in turn, for one lock, are one.
	 */
	if (!spins_seen(&trail->roots->spins, trail->session, step->culprit_tid, leaf.from_ts, leaf.to_ts) &&
	    (!most || ran_ns * 2 < leaf.to_ts - leaf.from_ts)) {
		struct root_trail next = *trail;

		leaf.key.kind = ROOT_FULL_MACHINE;
		if (root_trail__hop(&next, step->culprit_pid, step->culprit_tid))
			return -ENOMEM;
		return roots__add(trail->roots, &next, &leaf, ns);
	}
	return add_code(trail, leaf, step->culprit_pid, step->culprit_tid, step->culprit_name, most ? most->sid : 0,
			most ? most->type : 0, ns);
}

/*
 * Bytes that the target's own connections bring are known by their hand-offs: what a thread waits for in a socket
 * without one, while it works for a request, is the rest of the request, or room for the reply.
 */
static bool waits_for_client(const struct root_trail *trail, const struct path_step *step)
{
	const struct traces *traces = trail->roots->traces;
	const struct trace_interval *of = trail->interval;
	const char *type;

	/* In front of the interval, or with its lock, the thread works for another one. */
	if (trail->nest)
		of = traces_step_interval(traces, trail->session, step);
	type = traces_string(traces, of ? of->base.type : step->type);
	return !step->depth && !step->transit && step->state == WL_STATE_BLOCKED_NET &&
	       (!strncmp(type, "tcp:", 4) || !strncmp(type, "unix:", 5));
}

/* It came to the port that the interval's own connection is of. */
static bool is_from_client(const struct root_trail *trail, const struct graph_handoff *handoff)
{
	const struct traces *traces = trail->roots->traces;
	const char *type = traces_string(traces, trail->interval->base.type), *port = strchr(type, ':'), *to;
	size_t len = port ? strcspn(port, " ") : 0;

	if (strncmp(type, "tcp:", 4) || !port || handoff->row >= traces->sockets.cnt)
		return false;
	to = strrchr(traces_string(traces, traces->sockets.items[handoff->row].to_addr), ':');
	return to && strlen(to) == len && !strncmp(to, port, len);
}

/* The hand-off with which the thread's wait ended. */
static const struct graph_handoff *handoff_for(const struct root_trail *trail, uint32_t tid, uint64_t from_ts,
					       uint64_t to_ts, bool block)
{
	size_t cnt;
	const struct graph_handoff *handoffs = graph__handoffs_to(trail->session->graph, tid, block ? from_ts : to_ts,
								  block ? to_ts : to_ts + RECEIVED_AFTER_NS, &cnt);

	for (size_t i = 0; i < cnt && i < HANDOFF_LOOKS_MAX; i++)
		if (block == (handoffs[i].kind == WL_HANDOFF_BLOCK) && handoffs[i].kind != WL_HANDOFF_TIMER &&
		    (block || !is_from_client(trail, &handoffs[i])))
			return &handoffs[i];
	return NULL;
}

/* The kernel's function in which the thread waited, of those that tell the cause; NULL: none of them. */
static const char *means_of_wait(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	static const struct {
		const char *function, *object;
	} means[] = {
		{"balance_dirty_pages", ROOT_DIRTY_PAGES},
		{"reclaim_throttle", ROOT_RECLAIM},
		{"mem_cgroup_handle_over_high", ROOT_MEMORY_HIGH},
	};
	const struct samples *samples = trail->roots->samples;
	size_t cnt;
	const struct sample *waits = samples_of(samples, trail->session, tid, from_ts, to_ts, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		uint32_t node = waits[i].end_ts ? waits[i].node : SAMPLE_ROOT;

		for (; node != SAMPLE_ROOT && samples->nodes.items[node].kernel;
		     node = samples->nodes.items[node].parent)
			for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++)
				if (!strcmp(samples_name(samples, node), means[m].function))
					return means[m].object;
	}
	return NULL;
}

static int add_disk(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf, uint64_t ns)
{
	const struct traces *traces = trail->roots->traces;
	const struct graph_handoff *handoff = handoff_for(trail, step->tid, leaf.from_ts, leaf.to_ts, true);
	bool rival = is_other(step);

	leaf.key.kind = ROOT_DISK;
	if (set_thread(trail, &leaf, rival ? step->culprit_pid : step->pid, rival ? step->culprit_tid : step->tid,
		       rival ? step->culprit_name : 0))
		return -ENOMEM;
	if (handoff && handoff->device &&
	    roots__text(trail->roots, traces_string(traces, handoff->device), &leaf.key.object))
		return -ENOMEM;
	return roots__add(trail->roots, trail, &leaf, ns);
}

/* What lies beyond the waiting thread's socket, by that name.  Where it waits is told by its stack. */
static int add_beyond(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf,
		      const char *name, uint64_t ns)
{
	leaf.key.kind = ROOT_PEER;
	leaf.tid = step->tid;
	return roots__text(trail->roots, name, &leaf.key.object) ? -ENOMEM : roots__add(trail->roots, trail, &leaf, ns);
}

/*
 * The other end of the connection, by its address; or what lies between, where that end has sent long before the bytes
 * arrived.
 */
static int add_peer(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf, uint64_t ns)
{
	const struct traces *traces = trail->roots->traces;
	const struct graph_handoff *handoff = handoff_for(trail, step->tid, leaf.from_ts, leaf.to_ts, false);
	const char *address = handoff && handoff->row < traces->sockets.cnt
				      ? traces_string(traces, traces->sockets.items[handoff->row].from_addr)
				      : "";
	const char *syscall = traces_string(traces, step->syscall);

	if (!handoff && waits_for_client(trail, step))
		return add_beyond(trail, step, leaf, ROOT_CLIENT, ns);
	if (step->transit && *address && handoff->from_tid && leaf.to_ts - leaf.from_ts >= UNDER_WAY_MIN_NS)
		return add_beyond(trail, step, leaf, ROOT_NETWORK, ns);
	if (!*address && !(handoff && handoff->from_tid))
		return trail->timer_met ? add_own(trail, step, leaf, ROOT_TIMER, NULL, ns)
					: add_unknown(trail, leaf, *syscall ? syscall : NULL, ns);
	/* The ports of its connections tell nothing of a thread that is known. */
	if (!handoff->from_tid)
		return add_beyond(trail, step, leaf, address, ns);
	leaf.key.kind = ROOT_PEER;
	if (set_thread(trail, &leaf, handoff->from_pid, handoff->from_tid, handoff->from_name))
		return -ENOMEM;
	leaf.tid = step->tid;
	return roots__add(trail->roots, trail, &leaf, ns);
}

bool root_trail__timer_in(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	const struct graph_wakeup *wakeup = graph__wakeup_in(trail->session->graph, tid, from_ts, to_ts);

	return wakeup && !wakeup->waker_tid && wakeup->context == WL_CONTEXT_TIMER;
}

/* Nothing came: the wait ran into its timeout, or was one for a timer to begin with (an event loop's). */
static bool is_ended_by_timer(const struct root_trail *trail, const struct path_step *step, uint64_t from_ts,
			      uint64_t to_ts)
{
	return !trail->nest && trail->idle ? trail->ended_by_timer
					   : root_trail__timer_in(trail, step->tid, from_ts, to_ts);
}

/* A goroutine's wait for a channel, which a timer of the runtime's may end: time.After(), a context's deadline. */
static bool is_for_channel(const struct path_step *step)
{
	return step->object == (WL_GO_WAIT | WL_GO_WAIT_SELECT) ||
	       step->object == (WL_GO_WAIT | WL_GO_WAIT_CHAN_RECEIVE);
}

/*
 * After a wait on a futex, is the thread's next wait on the same one, for the same interval?  Then the timeout did not
 * end what the thread waited for: CPython waits for the GIL 5 ms at a time.
 */
static bool is_tried_again(const struct root_trail *trail, const struct path_step *step, uint64_t to_ts)
{
	const struct graph *graph = trail->session->graph;
	const struct graph_segment *before = graph__segment_before(graph, step->tid, to_ts, &(size_t){0}), *next;
	size_t cnt;

	next = graph__segments(graph, step->tid, to_ts, UINT64_MAX, &cnt);
	while (cnt && !state_is_blocked(next->state))
		next++, cnt--;
	return before && cnt && next->state == WL_STATE_BLOCKED_FUTEX && next->sid == before->sid &&
	       graph_is_same_futex(next->object, step->object);
}

/*
 * The collector's threads work together, and any of them ends the wait; it stops the world for the most part, too.  The
 * runtime is the root.
 */
static bool is_for_go_runtime(const struct path_step *step)
{
	uint64_t wait = step->object & ~WL_GO_WAIT;

	return step->object & WL_GO_WAIT &&
	       ((wait >= WL_GO_WAIT_GC_ASSIST && wait <= WL_GO_WAIT_GC_SCAN) || wait == WL_GO_WAIT_STOPPED);
}

static int add_go_runtime(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf,
			  uint64_t ns)
{
	leaf.key.kind = ROOT_CODE;
	/* Where the goroutine waits tells who asked for a collection. */
	leaf.tid = step->tid;
	return roots__text(trail->roots, "go:runtime", &leaf.key.role) ? -ENOMEM
								       : roots__add(trail->roots, trail, &leaf, ns);
}

/* Who let it go on is the root, as far as that is known. */
static int add_stopped(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf, uint64_t ns)
{
	if (!is_other(step))
		return add_unknown(trail, leaf, ROOT_STOPPED, ns);
	leaf.key.kind = ROOT_CODE;
	if (roots__text(trail->roots, ROOT_STOPPED, &leaf.key.object) ||
	    set_thread(trail, &leaf, step->culprit_pid, step->culprit_tid, step->culprit_name))
		return -ENOMEM;
	return roots__add(trail->roots, trail, &leaf, ns);
}

/* Nothing in the graph is behind that wait. */
static int end_of_wait(const struct root_trail *trail, const struct path_step *step, struct root_leaf leaf, uint64_t ns)
{
	const struct traces *traces = trail->roots->traces;
	const char *syscall = traces_string(traces, step->syscall);
	const char *means = means_of_wait(trail, step->tid, leaf.from_ts, leaf.to_ts);

	/* The kernel makes the thread wait, which writes too much or has too much memory. */
	if (means && step->state != WL_STATE_BLOCKED_FUTEX)
		return add_own(trail, step, leaf, strcmp(means, ROOT_MEMORY_HIGH) != 0 ? ROOT_DISK : ROOT_QUOTA, means,
			       ns);
	switch (step->state) {
	case WL_STATE_BLOCKED_DISK:
		return add_disk(trail, step, leaf, ns);
	case WL_STATE_BLOCKED_SLEEP:
		return add_own(trail, step, leaf, ROOT_TIMER, NULL, ns);
	}
	/* A task that is not followed: what it did until it ended the wait is told by its samples alone. */
	if (is_other(step))
		return add_code(trail, leaf, step->culprit_pid, step->culprit_tid, step->culprit_name, 0, 0, ns);
	if (is_for_go_runtime(step))
		return add_go_runtime(trail, step, leaf, ns);
	if (is_ended_by_timer(trail, step, leaf.from_ts, leaf.to_ts) &&
	    (step->state != WL_STATE_BLOCKED_FUTEX || is_for_channel(step) || !is_tried_again(trail, step, leaf.to_ts)))
		return add_own(trail, step, leaf, ROOT_TIMER, NULL, ns);
	if (step->state == WL_STATE_BLOCKED_NET || step->state == WL_STATE_BLOCKED_POLL ||
	    step->state == WL_STATE_BLOCKED_PIPE)
		return add_peer(trail, step, leaf, ns);
	leaf.tid = step->tid;
	return add_unknown(trail, leaf, *syscall ? syscall : NULL, ns);
}

/* --- on and on -----------------------------------------------------------------------------------------------------
 */

static bool is_followed(const struct root_trail *trail, uint32_t tid)
{
	for (uint32_t i = 0; i < trail->nest; i++)
		if (trail->tids[i] == tid)
			return true;
	return false;
}

/* What the thread did from from_ts to to_ts, step by step; the ns are divided as its time is. */
static int follow_thread(const struct root_trail *trail, uint32_t pid, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
			 uint64_t ns)
{
	struct path *path = &trail->roots->nested[trail->nest];
	uint64_t told_ns = 0;
	int err = path_walk_thread(path, trail->session->graph, pid, tid, from_ts, to_ts);

	for (size_t i = 0; i < path->steps.cnt && !err; i++) {
		const struct path_step *step = &path->steps.items[i];
		uint64_t until_ns = (uint64_t)((unsigned __int128)ns * (step->end_ts - from_ts) / (to_ts - from_ts));
		struct root_trail next = *trail;

		next.way.own = false;
		next.tids[next.nest++] = tid;
		if (step->depth)
			err = root_trail__hop(&next, pid, tid);
		for (size_t h = 0; h < PATH_HOPS_MAX && step->hop_tids[h] && !err; h++)
			err = root_trail__hop(&next, 0, step->hop_tids[h]);
		if (!err)
			err = root_trail__follow(&next, step, step->begin_ts, step->end_ts, until_ns - told_ns);
		told_ns = until_ns;
	}
	return err;
}

static bool can_follow(const struct root_trail *trail, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	size_t cnt;

	if (!tid || trail->nest == ROOT_NEST_MAX || from_ts >= to_ts || is_followed(trail, tid))
		return false;
	graph__segments(trail->session->graph, tid, from_ts, to_ts, &cnt);
	return cnt;
}

int root_trail__follow(struct root_trail *trail, const struct path_step *step, uint64_t from_ts, uint64_t to_ts,
		       uint64_t ns)
{
	struct root_leaf leaf = {.from_ts = from_ts, .to_ts = to_ts};
	bool behind = step->depth || trail->nest;
	uint32_t text;

	trail->way.other = behind || is_other(step) || step->category == WL_CATEGORY_QUEUE;
	/* What may have been another's doing is nobody's. */
	if (step->certainty == WL_CERTAINTY_AMBIGUOUS || step->state == WL_STATE_UNKNOWN)
		return add_unknown(trail, leaf, NULL, ns);
	if (step->state == WL_STATE_BLOCKED_STOPPED)
		return add_stopped(trail, step, leaf, ns);
	if (state_is_interrupt(step->state)) {
		if (roots__text(trail->roots, interrupts, &text))
			return -ENOMEM;
		leaf.key = (struct root_key){.kind = ROOT_CODE, .role = text};
		leaf.time = ROOT_TIME_TAKEN;
		return roots__add(trail->roots, trail, &leaf, ns);
	}
	/* Its samples count as those of code; the time is the disk's. */
	if (step->state == WL_STATE_FAULT_MAJOR) {
		trail->way.own = !behind && step->category != WL_CATEGORY_QUEUE;
		leaf.on_cpu = true;
		return add_disk(trail, step, leaf, ns);
	}
	if (state_is_on_cpu(step->state)) {
		trail->way.own = !behind && step->category != WL_CATEGORY_QUEUE;
		trail->way.for_it = is_for_it(trail, step);
		leaf.time = ROOT_TIME_RAN;
		return add_code(trail, leaf, step->pid, step->tid, 0,
				trail->way.own && !step->sid ? trail->interval->base.sid : step->sid,
				trail->way.own ? trail->interval->base.type : step->type, ns);
	}
	if (behind && (state_is_runnable(step->state) || (step->state == WL_STATE_BLOCKED_DISK && is_other(step))) &&
	    root_trail__hop(trail, step->pid, step->tid))
		return -ENOMEM;
	if (state_is_runnable(step->state))
		return follow_runnable(trail, step, leaf, ns);
	if (step->state == WL_STATE_THROTTLED)
		return add_own(trail, step, leaf, ROOT_QUOTA, NULL, ns);
	if (step->transit)
		return add_peer(trail, step, leaf, ns);
	/* The thread in front waits itself; or the lock's owner is known, and not how the wait ended. */
	if (step->category == WL_CATEGORY_QUEUE && state_is_blocked(step->state) && !trail->nest &&
	    can_follow(trail, step->tid, from_ts, to_ts))
		return follow_thread(trail, step->pid, step->tid, from_ts, to_ts, ns);
	if (step->state != WL_STATE_BLOCKED_DISK && is_other(step) &&
	    can_follow(trail, step->culprit_tid, from_ts, to_ts))
		return follow_thread(trail, step->culprit_pid, step->culprit_tid, from_ts, to_ts, ns);
	return end_of_wait(trail, step, leaf, ns);
}
