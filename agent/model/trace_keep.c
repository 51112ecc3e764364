// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/asked.h"
#include "model/trace_internal.h"

#include <errno.h>
#include <string.h>

/* Threads of which an interval's spin may have waited for one, and of those that are looked at. */
#define OWNERS_MAX        16
#define OWNER_THREADS_MAX 1024
#define OWNER_LOOKS_MAX   4096
#define OWNER_AWAY_NS     500000ULL
#define OWNER_REACH_NS    10000000ULL
/* Queues of the program that an interval passes, and what a thread puts into them meanwhile. */
#define TAKERS_MAX      8
#define GIVEN_LOOKS_MAX 4096
/* Receives of an interval that are written. */
#define ASKED_MAX 256

static struct trace_names names_of(const struct trace *trace)
{
	return (struct trace_names){
		.threads = trace->opts.threads,
		.mappings = trace->mappings,
		.listeners = trace->opts.listeners,
		.lines = trace->opts.lines,
		.types = trace->opts.types,
		.data_name = trace->opts.data_name,
		.owner = trace->opts.owner,
	};
}

static int append(struct trace *trace, enum shard_table_id table)
{
	trace->counts.written[table]++;
	return trace->opts.append(trace->opts.owner, table, &trace->row);
}

static int write_wakeup(struct trace *trace, uint32_t tid, struct graph_wakeup *wakeup)
{
	struct trace_names names = names_of(trace);
	struct graph_segment *segment;
	size_t before;

	if (wakeup->mark & TRACE_WRITTEN)
		return 0;
	wakeup->mark |= TRACE_WRITTEN;
	segment = graph__segment_before(trace->graph, tid, wakeup->ts, &before);
	trace_row_wakeup(&trace->row, segment ? segment->pid : 0, tid, wakeup, &names);
	return append(trace, SHARD_TABLE_WAKEUP);
}

/* NULL: a later one has its place. */
static struct trace_handoff_detail *detail_of(const struct trace *trace, const struct graph_handoff *handoff)
{
	struct trace_handoff_detail *detail = &trace->details[handoff->row % TRACE_DETAILS];

	return detail->row == handoff->row ? detail : NULL;
}

static int write_handoff(struct trace *trace, struct graph_handoff *handoff)
{
	struct trace_handoff_detail *known = detail_of(trace, handoff);
	struct trace_names names = names_of(trace);

	/* A block request is known by two addresses, so its mark alone does not tell. */
	if (handoff->mark & TRACE_WRITTEN || (known && known->written))
		return 0;
	handoff->mark |= TRACE_WRITTEN;
	if (known)
		known->written = true;
	trace_row_handoff(&trace->row, &trace->texts, handoff, known ? &known->detail : NULL, &names);
	return append(trace, SHARD_TABLE_HANDOFF);
}

/* Takes what is written from the beginning of the stretch, and notes that all of it is now; false: all of it was. */
static bool note_covered(struct trace *trace, uint32_t tid, uint64_t *from_ts, uint64_t to_ts)
{
	struct trace_covered *covered = &trace->covered[tid % TRACE_COVERED];

	if (covered->tid != tid || to_ts < covered->from_ts || *from_ts > covered->to_ts) {
		*covered = (struct trace_covered){.tid = tid, .from_ts = *from_ts, .to_ts = to_ts};
		return true;
	}
	if (*from_ts < covered->from_ts) {
		covered->from_ts = *from_ts;
		covered->to_ts = to_ts > covered->to_ts ? to_ts : covered->to_ts;
		return true;
	}
	*from_ts = covered->to_ts;
	if (to_ts <= covered->to_ts)
		return false;
	covered->to_ts = to_ts;
	return true;
}

/* What the thread did, and who ended its waits. */
static int write_thread(struct trace *trace, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	struct trace_names names = names_of(trace);
	struct graph_segment *segments;
	size_t cnt;
	int err = 0;

	if (!note_covered(trace, tid, &from_ts, to_ts))
		return 0;
	segments = graph__segments(trace->graph, tid, from_ts, to_ts, &cnt);
	for (size_t i = 0; !err && i < cnt; i++) {
		struct graph_wakeup *wakeup;

		if (segments[i].mark & TRACE_WRITTEN)
			continue;
		segments[i].mark |= TRACE_WRITTEN;
		trace_row_segment(&trace->row, &trace->texts, tid, &segments[i], &names);
		err = append(trace, SHARD_TABLE_SEGMENT);
		if (err || !state_is_blocked(segments[i].state))
			continue;
		wakeup = graph__wakeup_in(trace->graph, tid, segments[i].begin_ts + 1, segments[i].end_ts);
		if (wakeup)
			err = write_wakeup(trace, tid, wakeup);
	}
	return err;
}

static int write_far_send(struct trace *trace, struct trace_far_send *send)
{
	struct trace_names names = names_of(trace);
	const struct wl_socket_record *record = &send->record;
	struct trace_detail detail;
	const struct graph_handoff handoff = {
		.from_ts = record->ts,
		.sid = record->sid,
		.from_sid = record->sid,
		.from_pid = record->pid,
		.from_tid = record->tid,
		.kind = WL_HANDOFF_SOCKET,
		.certainty = WL_CERTAINTY_INFERRED,
	};

	send->done = true;
	trace->counts.received[SHARD_TABLE_HANDOFF]++;
	trace_detail_make(&detail, record, true);
	detail.left_ts = record->lag_ns < record->ts ? record->ts - record->lag_ns : 0;
	trace_row_handoff(&trace->row, &trace->texts, &handoff, &detail, &names);
	return append(trace, SHARD_TABLE_HANDOFF);
}

/* What the thread sent to other hosts and got from them. */
static int write_far(struct trace *trace, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	struct graph_handoff *handoffs;
	struct trace_far_send *send;
	uint64_t place = 0;
	size_t cnt;
	int err = 0;

	while (!err && (send = trace_far__next(trace->far, tid, from_ts, to_ts, &place)))
		err = write_far_send(trace, send);
	handoffs = graph__handoffs_to(trace->graph, tid, from_ts, to_ts, &cnt);
	for (size_t i = 0; !err && i < cnt; i++)
		if (handoffs[i].mark & TRACE_FAR)
			err = write_handoff(trace, &handoffs[i]);
	return err;
}

/* Whoever had the disk between the two; of GRAPH_ONLY_DEVICE, whichever that was. */
static int write_rivals(struct trace *trace, uint32_t device, uint64_t from_ts, uint64_t to_ts)
{
	struct graph_handoff *blocks;
	size_t cnt;
	int err = 0;

	blocks = graph__blocks(trace->graph, from_ts, to_ts, &cnt);
	for (size_t i = 0; !err && i < cnt && i < TRACE_RIVALS_MAX; i++)
		if (device == GRAPH_ONLY_DEVICE || blocks[i].device == device)
			err = write_handoff(trace, &blocks[i]);
	return err;
}

/* Whoever else had the disk while this request waited for it and was served. */
static int write_rivals_of(struct trace *trace, const struct graph_handoff *request)
{
	uint64_t took_ns = request->queue_ns + request->service_ns, to_ts = request->to_ts;

	return write_rivals(trace, request->device, took_ns < to_ts ? to_ts - took_ns : 0, to_ts);
}

/*
 * An edge and the wait that it ended: the path goes on elsewhere for the length of that wait, so that no step of it
 * says that the thread was blocked.
 */
static int write_edge(struct trace *trace, const struct path_edge *edge)
{
	struct graph_wakeup *wakeup = edge->wakeup;
	int err;

	if (edge->disk_to_ts)
		return write_rivals(trace, GRAPH_ONLY_DEVICE, edge->disk_from_ts, edge->disk_to_ts);
	if (edge->handoff) {
		uint64_t to_ts = edge->handoff->to_ts;

		err = write_handoff(trace, edge->handoff);
		if (!err && edge->handoff->kind == WL_HANDOFF_BLOCK)
			err = write_rivals_of(trace, edge->handoff);
		/* Nobody wakes a goroutine that waits for bytes: it waited until they were sent. */
		if (!err && edge->tid >= WL_GOROUTINE_TID && edge->handoff->to_tid == edge->tid &&
		    edge->handoff->from_ts)
			err = write_thread(trace, edge->tid, edge->handoff->from_ts - 1, to_ts);
		wakeup = graph__wakeup_in(trace->graph, edge->tid,
					  to_ts > TRACE_WOKEN_BEFORE_NS ? to_ts - TRACE_WOKEN_BEFORE_NS : 0, to_ts);
	} else {
		err = write_wakeup(trace, edge->tid, wakeup);
	}
	if (err || !wakeup || !wakeup->ts)
		return err;
	return write_thread(trace, edge->tid, wakeup->ts - 1, wakeup->ts);
}

/* --- spin locks ----------------------------------------------------------------------------------------------------
 */

/* When a thread of the interval's process was first seen to spin during it; UINT64_MAX: never. */
static uint64_t first_spin(const struct trace *trace, const struct graph_interval *interval)
{
	uint64_t cnt = trace->spin_cnt < TRACE_SPINS ? trace->spin_cnt : TRACE_SPINS, first_ts = UINT64_MAX;

	for (uint64_t i = 0; i < cnt; i++) {
		const struct trace_spin *spin = &trace->spins[i];

		if (spin->pid == interval->pid && spin->ts >= interval->begin_ts && spin->ts <= interval->end_ts &&
		    spin->ts < first_ts)
			first_ts = spin->ts;
	}
	return first_ts;
}

/* The process of a thread that got a CPU between the two, after it had been off it for a while; 0: it did not. */
static uint32_t came_back(const struct trace *trace, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	size_t cnt;
	const struct graph_segment *segments = graph__segments(trace->graph, tid, from_ts, to_ts, &cnt);

	for (size_t i = 1; i < cnt && i < OWNER_LOOKS_MAX && segments[i].pid == segments[0].pid; i++)
		if (state_is_on_cpu(segments[i].state) && !state_is_on_cpu(segments[i - 1].state) &&
		    segments[i - 1].end_ts - segments[i - 1].begin_ts >= OWNER_AWAY_NS)
			return segments[i].pid;
	return 0;
}

/* What that thread did and waited for, also for as long before that: owners come back when a spin ends, not always. */
static int write_owner(struct trace *trace, uint32_t pid, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	uint64_t before_ns = 2 * (to_ts - from_ts) + OWNER_REACH_NS;
	struct path *path = &trace->path;
	int err = write_thread(trace, tid, from_ts > before_ns ? from_ts - before_ns : 0, to_ts);

	if (!err)
		err = path_walk_thread(path, trace->graph, pid, tid, from_ts, to_ts);
	for (size_t i = 0; !err && i < path->edges.cnt; i++)
		err = write_edge(trace, &path->edges.items[i]);
	for (size_t i = 0; !err && i < path->steps.cnt; i++)
		err = write_thread(trace, path->steps.items[i].tid, path->steps.items[i].begin_ts,
				   path->steps.items[i].end_ts);
	return err;
}

/*
 * Who spins waits for a thread that no edge leads to: one that gets a CPU before the spin ends, as a rule.  A lock in
 * shared memory may be another process's: so many threads of the interval's process are written, and of others.
 */
static int write_owners(struct trace *trace, const struct graph_interval *interval)
{
	uint64_t first_ts = first_spin(trace, interval);
	size_t place = 0, cnt[2] = {0};
	int err = 0;

	if (first_ts == UINT64_MAX)
		return 0;
	for (int i = 0; !err && (cnt[false] < OWNERS_MAX || cnt[true] < OWNERS_MAX) && i < OWNER_THREADS_MAX; i++) {
		uint32_t tid = graph__next_thread(trace->graph, &place), pid;

		if (!tid)
			break;
		pid = came_back(trace, tid, first_ts, interval->end_ts);
		if (!pid || cnt[pid != interval->pid] == OWNERS_MAX)
			continue;
		cnt[pid != interval->pid]++;
		err = write_owner(trace, pid, tid, first_ts, interval->end_ts);
	}
	return err;
}

/* When the thread last did anything for the interval from from_ts on. */
static uint64_t ended_at(const struct trace *trace, const struct graph_interval *interval, uint32_t tid,
			 uint64_t from_ts)
{
	size_t cnt;
	const struct graph_segment *segments = graph__segments(trace->graph, tid, from_ts, interval->end_ts, &cnt);

	while (cnt && segments[cnt - 1].sid != interval->sid)
		cnt--;
	return cnt ? segments[cnt - 1].end_ts : from_ts;
}

/*
 * The threads that had the interval by way of queues of the program: they worked for it, also where its path does not
 * pass them, because its own thread had something else to do for longer.
 */
static int write_takers(struct trace *trace, const struct graph_interval *interval)
{
	uint64_t from_ts = interval->begin_ts;
	uint32_t tid = interval->tid;
	int err = 0;

	for (int i = 0; i < TAKERS_MAX && !err; i++) {
		size_t cnt, at = 0, to_cnt;
		const struct graph_given *given = graph__given_by(trace->graph, tid, from_ts, interval->end_ts, &cnt);
		struct graph_handoff *handoffs;

		cnt = cnt < GIVEN_LOOKS_MAX ? cnt : GIVEN_LOOKS_MAX;
		while (at < cnt && given[at].sid != interval->sid)
			at++;
		if (at == cnt)
			return 0;
		handoffs =
			graph__handoffs_to(trace->graph, given[at].to_tid, given[at].to_ts, given[at].to_ts, &to_cnt);
		for (size_t j = 0; j < to_cnt && !err; j++)
			if (handoffs[j].kind == WL_HANDOFF_QUEUE && handoffs[j].sid == interval->sid)
				err = write_handoff(trace, &handoffs[j]);
		tid = given[at].to_tid;
		from_ts = given[at].to_ts;
		if (!err)
			err = write_thread(trace, tid, from_ts, ended_at(trace, interval, tid, from_ts));
	}
	return err;
}

static bool same_connection(const struct trace *trace, const struct graph_handoff *a, const struct graph_handoff *b)
{
	const struct trace_handoff_detail *of_a = detail_of(trace, a), *of_b = detail_of(trace, b);

	return a->kind == b->kind && a->object == b->object && of_a && of_b &&
	       !strcmp(of_a->detail.from_addr, of_b->detail.from_addr) &&
	       !strcmp(of_a->detail.to_addr, of_b->detail.to_addr);
}

/* The bytes with which it came, from a thread that is followed, and those that were read on top of them. */
static int write_asked(struct trace *trace, const struct graph_interval *interval)
{
	struct graph_handoff *asked = graph_asked_by(trace->graph, interval), *handoffs;
	size_t cnt;
	int err;

	if (!asked || !(asked->from_tid || asked->mark & TRACE_FAR))
		return 0;
	err = write_handoff(trace, asked);
	handoffs = graph__handoffs_to(trace->graph, interval->tid, asked->to_ts, interval->end_ts, &cnt);
	for (size_t i = 0; i < cnt && i < ASKED_MAX && !err; i++)
		if (&handoffs[i] != asked && same_connection(trace, asked, &handoffs[i]))
			err = write_handoff(trace, &handoffs[i]);
	return err;
}

int trace__keep_interval(struct trace *trace, const struct graph_interval *interval)
{
	struct path *path = &trace->path;
	int err = path_walk(path, trace->graph, interval);

	if (err == -EINVAL) {
		trace->counts.impossible++;
		return 0;
	}
	trace->counts.kept++;
	trace->counts.cut_short += trace->has_forgotten && graph__oldest_ts(trace->graph) > interval->begin_ts;
	trace->counts.lossy += (path->flags & PATH_LOSSY) != 0;
	/* Its own threads first: most steps of its path are theirs. */
	err = write_thread(trace, interval->tid, interval->begin_ts, interval->end_ts);
	if (!err && interval->end_tid != interval->tid)
		err = write_thread(trace, interval->end_tid, interval->begin_ts, interval->end_ts);
	for (size_t i = 0; !err && i < path->edges.cnt; i++)
		err = write_edge(trace, &path->edges.items[i]);
	for (size_t i = 0; !err && i < path->steps.cnt; i++) {
		const struct path_step *step = &path->steps.items[i];

		err = write_thread(trace, step->tid, step->begin_ts, step->end_ts);
		/* While the interval queues, its thread works for others. */
		if (!err && (step->category != WL_CATEGORY_QUEUE || step->end_ts >= interval->pickup_ts))
			err = write_far(trace, step->tid, step->begin_ts, step->end_ts);
	}
	if (!err)
		err = write_far(trace, interval->end_tid, interval->end_ts, interval->end_ts + TRACE_REPLY_NS);
	if (!err)
		err = write_asked(trace, interval);
	if (!err)
		err = write_takers(trace, interval);
	return err ? err : write_owners(trace, interval);
}
