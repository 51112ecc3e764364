// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/spins.h"

#include "base/order.h"

#include <errno.h>

#define APART_NS    50000000ULL /* between two samples of one spin: others have had its CPU meanwhile */
#define AFTER_NS    20000000ULL /* after its last sample a spin has ended, if nothing says so earlier */
#define REACH_NS    5000000ULL  /* a spin is seen later than it begins, and until before it ends */
#define NEAR_NS     3000000ULL  /* an owner is off the CPU at least that long before a spin ends, or all of it */
#define BRIEF_NS    500000ULL   /* on the CPU between two waits of one absence */
#define SPINS_ASKED 256         /* of a process; more tell nothing more */
#define KINDS_MAX   4           /* that are believed in a process */
#define VOTES_MIN   3
/* What a kind of absence must explain of the spins, and how much of that it may explain of other times … */
#define VOTES_SHARE 0.6
#define OTHER_SHARE 0.5
/* … or, where there are several owners. */
#define VOTES_SHARE_LESS 0.3
#define OTHER_SHARE_LESS 0.2

/* One thread that spun, by the clock and the numbers of its graph. */
struct seen_spin {
	const struct trace_session *session;
	uint64_t sid;
	uint32_t group, tid, pid;
	uint64_t first_ts, last_ts; /* of its samples in the loop */
	uint64_t until_ts;          /* it had gone on by then */
	bool has_owner;
};

/* A thread was off its CPU from one moment to the other. */
struct absence {
	uint64_t from_ts, to_ts;
	uint64_t sid; /* of its longest wait, likewise the state: RUNQ_PREEMPT, it wanted a CPU all the time */
	uint32_t pid;
	uint8_t state;
};

/* Absences that are alike: how many spins ended with one, and how many as long times before them. */
struct kind {
	uint32_t name; /* of the thread */
	uint8_t state;
	bool for_request, is_far; /* is_far: of another process, which shares the lock's memory */
	uint32_t votes, other, last;
};

struct search {
	struct spins *spins;
	const struct traces *traces;
	VEC(struct seen_spin) seen;
	/* of the process that is looked at */
	const struct trace_session *session;
	uint32_t pid, spinner; /* the name of a thread that spins */
	uint32_t cnt;          /* spins that were asked */
	VEC(struct kind) kinds;
	struct idmap kind_ids;
};

/* --- who spun ------------------------------------------------------------------------------------------------------
 */

static bool goes_on(const struct seen_spin *spin, const struct sample *sample)
{
	return spin->group == sample->group && spin->tid == sample->tid && spin->sid == sample->sid &&
	       sample->ts - spin->last_ts <= APART_NS;
}

/* Whose samples are in order: it has gone on where the next one of the same thread is no part of the spin. */
static void end_spin(struct seen_spin *spin, const struct sample *sample)
{
	if (spin && spin->group == sample->group && spin->tid == sample->tid && sample->ts < spin->until_ts)
		spin->until_ts = sample->ts;
}

static int collect(struct search *search, const struct samples *samples)
{
	struct seen_spin *open = NULL;

	for (size_t i = 0; i < samples->rows.cnt; i++) {
		const struct sample *sample = &samples->rows.items[i];

		if (sample->end_ts || !state_is_on_cpu(sample->state))
			continue;
		if (!sample->spins || !open || !goes_on(open, sample)) {
			struct seen_spin spin = {.session = traces_session(search->traces, sample->session_id),
						 .group = sample->group,
						 .sid = sample->sid,
						 .tid = sample->tid,
						 .pid = sample->pid,
						 .first_ts = sample->ts};

			end_spin(open, sample);
			open = NULL;
			if (!sample->spins || !spin.session || !spin.session->graph)
				continue;
			if (vec_push(&search->seen, spin))
				return -ENOMEM;
			open = &search->seen.items[search->seen.cnt - 1];
		}
		open->last_ts = sample->ts;
		open->until_ts = sample->ts + AFTER_NS;
	}
	return 0;
}

/* A spin ends where its thread waits. */
static void end_at_wait(struct seen_spin *spin)
{
	size_t cnt;
	const struct graph_segment *segments =
		graph__segments(spin->session->graph, spin->tid, spin->last_ts, spin->until_ts, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (state_is_blocked(segments[i].state) && segments[i].begin_ts > spin->last_ts) {
			spin->until_ts = segments[i].begin_ts;
			return;
		}
}

/* --- for whom ------------------------------------------------------------------------------------------------------
 */

static bool gets_cpu(const struct graph_segment *segments, size_t i)
{
	return state_is_on_cpu(segments[i].state) &&
	       !(i && state_is_on_cpu(segments[i - 1].state) && segments[i - 1].end_ts == segments[i].begin_ts);
}

/* The absence that ended when the thread got a CPU at segments[i]. */
static struct absence absence_before(const struct graph_segment *segments, size_t i)
{
	struct absence absence = {
		.from_ts = segments[i].begin_ts, .to_ts = segments[i].begin_ts, .state = WL_STATE_RUNQ_PREEMPT};
	uint64_t sid = segments[i].sid, longest_ns = 0;

	while (i-- > 0 && segments[i].end_ts == absence.from_ts && segments[i].sid == sid) {
		uint64_t ns = segments[i].end_ts - segments[i].begin_ts;

		if (state_is_on_cpu(segments[i].state) && ns >= BRIEF_NS)
			break;
		absence.from_ts = segments[i].begin_ts;
		if (!state_is_blocked(segments[i].state) || ns <= longest_ns)
			continue;
		longest_ns = ns;
		absence.state = segments[i].state;
		absence.sid = sid;
	}
	return absence;
}

/*
 * Did the thread get a CPU in (last_ts, until_ts), all of it back_ns earlier, and had none for a while before?  Woken
 * by the one that spins it does not count.
 */
static bool comes_after(const struct seen_spin *spin, uint32_t tid, uint64_t back_ns, struct absence *absence)
{
	const struct graph *graph = spin->session->graph;
	uint64_t first_ts = spin->first_ts - back_ns, last_ts = spin->last_ts - back_ns;
	uint64_t since_ts = last_ts - first_ts > NEAR_NS ? last_ts - NEAR_NS : first_ts;
	size_t cnt;
	const struct graph_segment *segments = graph__segments(graph, tid, first_ts, spin->until_ts - back_ns, &cnt);

	for (size_t i = 0; i < cnt && segments[i].pid == segments[0].pid; i++) {
		const struct graph_wakeup *wakeup;

		if (segments[i].begin_ts <= last_ts || !gets_cpu(segments, i))
			continue;
		*absence = absence_before(segments, i);
		absence->pid = segments[i].pid;
		wakeup = graph__wakeup_in(graph, tid, first_ts, segments[i].begin_ts);
		if (absence->from_ts <= since_ts && !(wakeup && wakeup->waker_tid == spin->tid))
			return true;
	}
	return false;
}

static int kind_of(struct search *search, uint32_t tid, const struct absence *absence, struct kind **kind)
{
	struct kind made = {
		.name = traces_thread_name(search->traces, search->session, absence->pid, tid),
		.state = absence->state,
		.for_request = absence->sid != 0,
		.is_far = absence->pid != search->pid,
	};
	uint64_t flags = (uint64_t)made.state << 2 | made.is_far << 1 | made.for_request;
	uint32_t id;

	if (idmap__id(&search->kind_ids, made.name, flags, &id) ||
	    (id == search->kinds.cnt && vec_push(&search->kinds, made)))
		return -ENOMEM;
	*kind = &search->kinds.items[id];
	return 0;
}

/* Each kind has one vote for each spin, and one against it. */
static int ask(struct search *search, const struct seen_spin *spin)
{
	const struct trace_session *session = search->session;
	uint64_t back_ns = 2 * (spin->until_ts - spin->first_ts) + REACH_NS;

	search->cnt++;
	for (int against = 0; against < 2; against++)
		for (size_t t = 0; t < session->tids.cnt; t++) {
			uint32_t tid = session->tids.items[t], turn = 2 * search->cnt + (uint32_t)against;
			struct absence absence;
			struct kind *kind;

			if (tid == spin->tid || (against && spin->first_ts <= back_ns) ||
			    !comes_after(spin, tid, against ? back_ns : 0, &absence))
				continue;
			if (kind_of(search, tid, &absence, &kind))
				return -ENOMEM;
			if (kind->last == turn)
				continue;
			kind->last = turn;
			kind->votes += !against;
			kind->other += (uint32_t)against;
		}
	return 0;
}

/* Of threads that spin themselves, those are no owners that have lost their CPU or wait for the next request. */
static bool may_own(const struct search *search, const struct kind *kind)
{
	if (kind->name != search->spinner)
		return kind->name;
	return state_is_blocked(kind->state) &&
	       (kind->for_request || (kind->state != WL_STATE_BLOCKED_NET && kind->state != WL_STATE_BLOCKED_POLL));
}

static bool is_believed(const struct search *search, const struct kind *kind)
{
	double share = (double)kind->votes / search->cnt, other = (double)kind->other / kind->votes;
	double other_most = kind->is_far ? OTHER_SHARE_LESS : OTHER_SHARE;

	return kind->votes >= VOTES_MIN && may_own(search, kind) &&
	       ((share >= VOTES_SHARE && other <= other_most) ||
		(share >= VOTES_SHARE_LESS && other <= OTHER_SHARE_LESS));
}

/* In this order: of the process that spins, of a thread that does not spin itself, with more votes. */
static bool is_better(const struct search *search, const struct kind *kind, const struct kind *than)
{
	bool spins = kind->name == search->spinner, other_spins = than->name == search->spinner;

	if (kind->is_far != than->is_far)
		return than->is_far;
	return spins == other_spins ? kind->votes > than->votes : other_spins;
}

static const struct kind *elect(const struct search *search)
{
	const struct kind *best = NULL;

	for (size_t i = 0; i < search->kinds.cnt; i++) {
		const struct kind *kind = &search->kinds.items[i];

		if (is_believed(search, kind) && (!best || is_better(search, kind, best)))
			best = kind;
	}
	return best;
}

/* The part of the spin that a thread's absence explains. */
static int add_absence(struct search *search, struct seen_spin *spin, uint32_t tid, const struct absence *absence)
{
	struct spin made = {
		.session = spin->session,
		.tid = spin->tid,
		.owner_tid = tid,
		.from_ts = absence->from_ts,
		.to_ts = absence->to_ts,
	};

	if (absence->from_ts <= spin->first_ts)
		made.from_ts = spin->first_ts > REACH_NS ? spin->first_ts - REACH_NS : 0;
	else if (absence->to_ts - absence->from_ts < NEAR_NS)
		return 0;
	if (absence->to_ts >= spin->last_ts)
		made.to_ts = absence->to_ts + REACH_NS < spin->until_ts ? absence->to_ts + REACH_NS : spin->until_ts;
	spin->has_owner = true;
	return vec_push(&search->spins->items, made);
}

/* The owner may change while a thread spins: each absence of that kind is one's. */
static int add_owners(struct search *search, struct seen_spin *spin, const struct kind *kind)
{
	const struct trace_session *session = search->session;

	for (size_t t = 0; t < session->tids.cnt; t++) {
		uint32_t tid = session->tids.items[t];
		size_t cnt;
		const struct graph_segment *segments;

		segments = graph__segments(session->graph, tid, spin->first_ts, spin->until_ts, &cnt);
		if (tid == spin->tid || !cnt || (segments[0].pid != spin->pid) != kind->is_far ||
		    traces_thread_name(search->traces, session, segments[0].pid, tid) != kind->name)
			continue;
		for (size_t i = 0; i < cnt && segments[i].pid == segments[0].pid; i++) {
			struct absence absence;

			if (segments[i].begin_ts <= spin->first_ts || !gets_cpu(segments, i))
				continue;
			absence = absence_before(segments, i);
			if (absence.state == kind->state && (absence.sid != 0) == kind->for_request &&
			    add_absence(search, spin, tid, &absence))
				return -ENOMEM;
		}
	}
	return 0;
}

static bool is_of_process(const struct search *search, const struct seen_spin *spin)
{
	return spin->session == search->session && spin->pid == search->pid;
}

/* The kind of absence with which most of the spins end that have no owner so far; *kind NULL: none is believed. */
static int next_kind(struct search *search, size_t first, const struct kind **kind)
{
	int err = 0;

	*kind = NULL;
	search->cnt = 0;
	search->kinds.cnt = 0;
	for (size_t i = first; i < search->seen.cnt && search->cnt < SPINS_ASKED && !err; i++) {
		const struct seen_spin *spin = &search->seen.items[i];

		if (!is_of_process(search, spin) || spin->first_ts == spin->last_ts || spin->has_owner)
			continue;
		search->spinner = traces_thread_name(search->traces, spin->session, spin->pid, spin->tid);
		err = ask(search, spin);
	}
	idmap__free(&search->kind_ids);
	if (!err)
		*kind = elect(search);
	return err;
}

static int find_owners(struct search *search, size_t first)
{
	const struct kind *kind;
	int err = 0;

	search->session = search->seen.items[first].session;
	search->pid = search->seen.items[first].pid;
	for (int round = 0; round < KINDS_MAX && !err; round++) {
		err = next_kind(search, first, &kind);
		if (!kind)
			break;
		for (size_t i = first; i < search->seen.cnt && !err; i++)
			if (is_of_process(search, &search->seen.items[i]))
				err = add_owners(search, &search->seen.items[i], kind);
	}
	return err;
}

static int find_all_owners(struct search *search)
{
	struct idmap processes = {0};
	int err = 0;

	for (size_t i = 0; i < search->seen.cnt && !err; i++) {
		const struct seen_spin *spin = &search->seen.items[i];
		uint32_t known = processes.cnt, id;

		err = idmap__id(&processes, (uint64_t)(spin->session - search->traces->sessions.items), spin->pid, &id);
		if (!err && id == known)
			err = find_owners(search, i);
	}
	idmap__free(&processes);
	return err;
}

ORDER(compare_spins, struct spin, BY((uintptr_t)a->session->graph, (uintptr_t)b->session->graph), BY(a->tid, b->tid),
      BY(a->to_ts, b->to_ts), BY(a->from_ts, b->from_ts));

static int keep_seen(struct search *search)
{
	for (size_t i = 0; i < search->seen.cnt; i++) {
		const struct seen_spin *seen = &search->seen.items[i];
		uint64_t from_ts = seen->first_ts > REACH_NS ? seen->first_ts - REACH_NS : 0;
		const struct spin spin = {seen->session, seen->tid, 0, from_ts, seen->until_ts};

		if (vec_push(&search->spins->seen, spin))
			return -ENOMEM;
	}
	return 0;
}

int spins_find(struct spins *spins, const struct traces *traces, const struct samples *samples)
{
	struct search search = {.spins = spins, .traces = traces};
	int err;

	*spins = (struct spins){.items = {0}};
	if (!samples)
		return 0;
	err = collect(&search, samples);
	for (size_t i = 0; i < search.seen.cnt && !err; i++)
		end_at_wait(&search.seen.items[i]);
	if (!err)
		err = keep_seen(&search);
	if (!err)
		err = find_all_owners(&search);
	vec_sort(&spins->items, compare_spins);
	vec_sort(&spins->seen, compare_spins);
	vec_free(&search.seen);
	vec_free(&search.kinds);
	return err;
}

void spins_free(struct spins *spins)
{
	vec_free(&spins->items);
	vec_free(&spins->seen);
}

/* Is it a spin of that thread, or of a later one, that was not over by from_ts? */
static bool is_not_before(const struct spin *spin, const struct graph *graph, uint32_t tid, uint64_t from_ts)
{
	if (spin->session->graph != graph)
		return (uintptr_t)spin->session->graph > (uintptr_t)graph;
	return spin->tid != tid ? spin->tid > tid : spin->to_ts > from_ts;
}

/* Of those, the first that took most of the time; NULL: none did. */
static const struct spin *most_of(const struct spin *spins, size_t cnt, const struct graph *graph, uint32_t tid,
				  uint64_t from_ts, uint64_t to_ts)
{
	size_t first = search_first((size_t)0, cnt, place, is_not_before(&spins[place], graph, tid, from_ts));

	for (size_t i = first; i < cnt; i++) {
		const struct spin *spin = &spins[i];
		uint64_t begin_ts = spin->from_ts > from_ts ? spin->from_ts : from_ts;
		uint64_t end_ts = spin->to_ts < to_ts ? spin->to_ts : to_ts;

		if (spin->session->graph != graph || spin->tid != tid || spin->from_ts >= to_ts)
			break;
		if (begin_ts < end_ts && (end_ts - begin_ts) * 2 >= to_ts - from_ts)
			return spin;
	}
	return NULL;
}

uint32_t spins_owner(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		     uint64_t to_ts)
{
	const struct spin *spin = most_of(spins->items.items, spins->items.cnt, session->graph, tid, from_ts, to_ts);

	return spin ? spin->owner_tid : 0;
}

bool spins_seen(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		uint64_t to_ts)
{
	return most_of(spins->seen.items, spins->seen.cnt, session->graph, tid, from_ts, to_ts);
}
