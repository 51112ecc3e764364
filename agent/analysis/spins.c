// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/spins.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>

#define APART_NS    50000000ULL /* between two samples of one spin: others have had its CPU meanwhile */
#define AFTER_NS    20000000ULL /* after its last sample a spin has ended, if no other sample says so earlier */
#define REACH_NS    5000000ULL  /* a spin is seen later than it begins, and until before it ends */
#define SPINS_ASKED 256         /* of a process; more tell nothing more */
#define VOTES_MIN   3
#define VOTES_SHARE 0.6 /* of the spins */

/* --- who spun ------------------------------------------------------------------------------------------------------
 */

static bool goes_on(const struct spin *spin, const struct sample *sample)
{
	return spin->group == sample->group && spin->tid == sample->tid && sample->ts - spin->last_ts <= APART_NS;
}

static int collect(struct spins *spins, const struct traces *traces, const struct samples *samples)
{
	struct spin *open = NULL;

	for (size_t i = 0; i < samples->rows.cnt; i++) {
		const struct sample *sample = &samples->rows.items[i];
		bool same = open && goes_on(open, sample);

		if (sample->end_ts || !state_is_on_cpu(sample->state))
			continue;
		if (!sample->spins) {
			if (same && sample->ts < open->until_ts)
				open->until_ts = sample->ts;
			open = NULL;
			continue;
		}
		if (!same) {
			struct spin spin = {.session = traces_session(traces, sample->session_id),
					    .group = sample->group,
					    .tid = sample->tid,
					    .pid = sample->pid,
					    .first_ts = sample->ts};

			if (!spin.session || !spin.session->graph)
				continue;
			if (vec_push(&spins->items, spin))
				return -ENOMEM;
			open = &spins->items.items[spins->items.cnt - 1];
		}
		open->last_ts = sample->ts;
		open->until_ts = sample->ts + AFTER_NS;
	}
	return 0;
}

/* --- for whom ------------------------------------------------------------------------------------------------------
 */

/* Did the thread get a CPU in (last_ts, until_ts), and had none from first_ts on?  Woken by `but` it does not count. */
static bool comes_after(const struct graph *graph, uint32_t tid, const struct spin *spin, uint64_t back_ns)
{
	uint64_t first_ts = spin->first_ts - back_ns, last_ts = spin->last_ts - back_ns;
	size_t cnt;
	const struct graph_segment *segments = graph__segments(graph, tid, first_ts, spin->until_ts - back_ns, &cnt);

	if (!cnt || segments[0].begin_ts > first_ts)
		return false;
	for (size_t i = 0; i < cnt; i++) {
		const struct graph_wakeup *wakeup;

		if (!state_is_on_cpu(segments[i].state))
			continue;
		if (segments[i].begin_ts < last_ts)
			return false;
		wakeup = graph__wakeup_in(graph, tid, first_ts, segments[i].begin_ts);
		return !wakeup || wakeup->waker_tid != spin->tid;
	}
	return false;
}

/* The threads of one process: how often each name came after a spin, and after as long a time before it. */
struct ballot {
	const struct trace_session *session;
	uint32_t pid;
	size_t cnt;                     /* spins that were asked */
	uint32_t *votes, *other, *last; /* by name */
	uint32_t name_cnt;
};

static bool is_candidate(const struct ballot *ballot, const struct trace_thread *thread, uint32_t spinner)
{
	return traces_graph_id(ballot->session, thread->pid) == ballot->pid &&
	       traces_graph_id(ballot->session, thread->tid) != spinner && thread->name < ballot->name_cnt;
}

static void ask(struct ballot *ballot, const struct spin *spin)
{
	const struct trace_session *session = ballot->session;
	uint64_t back_ns = 2 * (spin->until_ts - spin->first_ts) + REACH_NS;

	ballot->cnt++;
	for (size_t t = 0; t < session->threads.cnt; t++) {
		const struct trace_thread *thread = &session->threads.items[t];
		uint32_t tid = traces_graph_id(session, thread->tid);

		if (!is_candidate(ballot, thread, spin->tid))
			continue;
		/* A name has one vote for each spin. */
		if (ballot->last[thread->name] != ballot->cnt && comes_after(session->graph, tid, spin, 0)) {
			ballot->last[thread->name] = (uint32_t)ballot->cnt;
			ballot->votes[thread->name]++;
		}
		ballot->other[thread->name] +=
			spin->first_ts > back_ns && comes_after(session->graph, tid, spin, back_ns);
	}
}

/* Of names that are as good, the one that does not spin itself. */
static uint32_t elect(const struct ballot *ballot, uint32_t spinner_name)
{
	uint32_t best = 0;

	for (uint32_t name = 1; name < ballot->name_cnt; name++) {
		uint32_t votes = ballot->votes[name];

		if (votes < VOTES_MIN || votes < VOTES_SHARE * (double)ballot->cnt || 2 * ballot->other[name] > votes)
			continue;
		if (!best || best == spinner_name || (name != spinner_name && votes > ballot->votes[best]))
			best = name;
	}
	return best;
}

static void set_owner(const struct ballot *ballot, struct spin *spin, uint32_t name)
{
	const struct trace_session *session = ballot->session;
	uint32_t only = 0, cnt = 0;

	for (size_t t = 0; t < session->threads.cnt && !spin->owner_tid; t++) {
		const struct trace_thread *thread = &session->threads.items[t];
		uint32_t tid = traces_graph_id(session, thread->tid);

		if (!is_candidate(ballot, thread, spin->tid) || thread->name != name)
			continue;
		only = tid;
		cnt++;
		if (comes_after(session->graph, tid, spin, 0))
			spin->owner_tid = tid;
	}
	/* Its end may not have been seen; there is nobody else. */
	if (!spin->owner_tid && cnt == 1)
		spin->owner_tid = only;
}

static void find_owners(struct spins *spins, const struct traces *traces, size_t first, struct ballot *ballot)
{
	uint32_t name, spinner = 0;

	ballot->session = spins->items.items[first].session;
	ballot->pid = spins->items.items[first].pid;
	for (size_t i = first; i < spins->items.cnt && ballot->cnt < SPINS_ASKED; i++) {
		const struct spin *spin = &spins->items.items[i];

		if (spin->session != ballot->session || spin->pid != ballot->pid || spin->first_ts == spin->last_ts)
			continue;
		spinner = traces_thread_name(traces, spin->session, spin->pid, spin->tid);
		ask(ballot, spin);
	}
	name = elect(ballot, spinner);
	for (size_t i = first; i < spins->items.cnt && name; i++)
		if (spins->items.items[i].session == ballot->session && spins->items.items[i].pid == ballot->pid)
			set_owner(ballot, &spins->items.items[i], name);
}

ORDER(compare_spins, struct spin, BY((uintptr_t)a->session->graph, (uintptr_t)b->session->graph), BY(a->tid, b->tid),
      BY(a->first_ts, b->first_ts));

/* Those without an owner tell nothing; the others are ordered for spins_owner(). */
static void settle(struct spins *spins)
{
	size_t kept = 0;

	for (size_t i = 0; i < spins->items.cnt; i++)
		if (spins->items.items[i].owner_tid)
			spins->items.items[kept++] = spins->items.items[i];
	spins->items.cnt = kept;
	vec_sort(&spins->items, compare_spins);
}

static int find_all_owners(struct spins *spins, const struct traces *traces)
{
	uint32_t name_cnt = traces->strings.cnt, id;
	struct idmap processes = {0};
	int err = 0;

	for (size_t i = 0; i < spins->items.cnt && !err; i++) {
		const struct spin *spin = &spins->items.items[i];
		struct ballot ballot = {.name_cnt = name_cnt};
		uint32_t known = processes.cnt;

		err = idmap__id(&processes, (uint64_t)(spin->session - traces->sessions.items), spin->pid, &id);
		if (err || id != known)
			continue;
		ballot.votes = calloc(3 * (size_t)name_cnt + 1, sizeof(*ballot.votes));
		if (!ballot.votes) {
			err = -ENOMEM;
			break;
		}
		ballot.other = ballot.votes + name_cnt;
		ballot.last = ballot.other + name_cnt;
		find_owners(spins, traces, i, &ballot);
		free(ballot.votes);
	}
	idmap__free(&processes);
	return err;
}

int spins_find(struct spins *spins, const struct traces *traces, const struct samples *samples)
{
	int err;

	*spins = (struct spins){.items = {0}};
	if (!samples)
		return 0;
	err = collect(spins, traces, samples);
	if (!err)
		err = find_all_owners(spins, traces);
	settle(spins);
	return err;
}

void spins_free(struct spins *spins)
{
	vec_free(&spins->items);
}

/* Is it a spin of that thread, or of a later one, that was not over by from_ts? */
static bool is_not_before(const struct spin *spin, const struct graph *graph, uint32_t tid, uint64_t from_ts)
{
	if (spin->session->graph != graph)
		return (uintptr_t)spin->session->graph > (uintptr_t)graph;
	return spin->tid != tid ? spin->tid > tid : spin->until_ts > from_ts;
}

uint32_t spins_owner(const struct spins *spins, const struct trace_session *session, uint32_t tid, uint64_t from_ts,
		     uint64_t to_ts)
{
	size_t first = search_first((size_t)0, spins->items.cnt, place,
				    is_not_before(&spins->items.items[place], session->graph, tid, from_ts));

	for (size_t i = first; i < spins->items.cnt; i++) {
		const struct spin *spin = &spins->items.items[i];
		uint64_t first_ts = spin->first_ts > REACH_NS ? spin->first_ts - REACH_NS : 0;
		uint64_t end_ts = spin->last_ts + REACH_NS < spin->until_ts ? spin->last_ts + REACH_NS : spin->until_ts;

		if (spin->session->graph != session->graph || spin->tid != tid || first_ts >= to_ts)
			break;
		first_ts = first_ts > from_ts ? first_ts : from_ts;
		end_ts = end_ts < to_ts ? end_ts : to_ts;
		if (first_ts < end_ts && (end_ts - first_ts) * 2 >= to_ts - from_ts)
			return spin->owner_tid;
	}
	return 0;
}
