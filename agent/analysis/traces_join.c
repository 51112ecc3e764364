// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/traces_join.h"

#include "base/names.h"
#include "base/random.h"

#include <string.h>

/* A receiver is woken by what arrives, which its sender's clock may say was sent a little later. */
#define WOKEN_BEFORE_NS 1000000000ULL

static uint32_t number_of(const struct traces *traces, const struct trace_session *session)
{
	return (uint32_t)(session - traces->sessions.items);
}

uint64_t traces__graph_sid(const struct trace_session *session, uint64_t sid)
{
	return sid && session->slot ? sid ^ random_mix(session->slot) : sid;
}

uint64_t traces_graph_ts(const struct traces *traces, const struct trace_session *session, uint64_t ts)
{
	return session->joined ? stitch__common_ts(&traces->stitch, number_of(traces, session), ts) : ts;
}

static uint64_t own_ts(const struct traces *traces, const struct trace_session *session, uint64_t ts)
{
	return stitch__own_ts(&traces->stitch, number_of(traces, session), ts);
}

const struct trace_session *traces_owner(const struct traces *traces, const struct trace_session *session, uint32_t id)
{
	uint32_t at, slot = id >> TRACE_ID_BITS;

	if (slot == session->slot || !session->joined ||
	    !idmap__find(&traces->slot_ids, traces->stitch.places[number_of(traces, session)].group, slot, &at))
		return session;
	return &traces->sessions.items[traces->slot_sessions.items[at]];
}

uint64_t traces_real_sid(const struct traces *traces, const struct trace_session *session, uint32_t tid, uint64_t sid)
{
	return traces__graph_sid(traces_owner(traces, session, tid), sid);
}

const struct trace_interval *traces_step_interval(const struct traces *traces, const struct trace_session *session,
						  const struct path_step *step)
{
	if (!step->sid)
		return NULL;
	return traces_interval(traces, traces_owner(traces, session, step->tid),
			       traces_real_sid(traces, session, step->tid, step->sid));
}

const char *traces_other_host(const struct traces *traces, const struct trace_session *session, uint32_t tid)
{
	const struct trace_session *owner = traces_owner(traces, session, tid);

	return tid && owner->host && owner->host != session->host ? traces_string(traces, owner->host) : NULL;
}

enum traces_end traces__end_kind(const struct shard_block *block, uint32_t row)
{
	const struct shard_block_column *from_ts = block_column(block, "from_ts", SHARD_U64),
					*to_ts = block_column(block, "to_ts", SHARD_U64);
	bool no_sender = column_is_null(from_ts, row), no_receiver = column_is_null(to_ts, row);

	if (no_sender == no_receiver || column_is_null(block_column(block, "seq", SHARD_U64), row) ||
	    strcmp(column_text(block_column(block, "kind", SHARD_STR), row), handoff_name(WL_HANDOFF_SOCKET)) ||
	    !*column_text(block_column(block, "from_addr", SHARD_STR), row) ||
	    !*column_text(block_column(block, "to_addr", SHARD_STR), row))
		return TRACES_BOTH;
	return no_sender ? TRACES_RECEIVE : TRACES_SEND;
}

static uint64_t value_of(const struct shard_block *block, const char *column, uint32_t row)
{
	return column_u64(block_column(block, column, SHARD_U64), row);
}

static int text_id(struct traces *traces, const struct shard_block *block, const char *column, uint32_t row,
		   uint32_t *id)
{
	return intern__id(&traces->strings, column_text(block_column(block, column, SHARD_STR), row), id);
}

static int collect_row(struct traces *traces, const struct shard_block *block, uint32_t session, uint32_t row)
{
	enum traces_end kind = traces__end_kind(block, row);
	bool sent = kind == TRACES_SEND;
	struct stitch_end end = {.session = session};
	uint64_t bytes = value_of(block, "bytes", row), pid, tid;

	if (kind == TRACES_BOTH)
		return 0;
	pid = value_of(block, sent ? "from_pid" : "to_pid", row);
	tid = value_of(block, sent ? "from_tid" : "to_tid", row);
	end.ts = end.done_ts = value_of(block, sent ? "from_ts" : "to_ts", row);
	if (sent && !column_is_null(block_column(block, "left_ts", SHARD_U64), row))
		end.ts = value_of(block, "left_ts", row);
	if (end.ts > end.done_ts)
		end.ts = end.done_ts;
	end.sid = value_of(block, "sid", row);
	end.seq = (uint32_t)value_of(block, "seq", row);
	end.bytes = bytes <= INT32_MAX ? (uint32_t)bytes : 0;
	end.pid = pid <= TRACE_ID_MASK ? (uint32_t)pid : 0;
	end.tid = tid <= TRACE_ID_MASK ? (uint32_t)tid : 0;
	if (text_id(traces, block, "from_addr", row, &end.from_addr) ||
	    text_id(traces, block, "to_addr", row, &end.to_addr) || text_id(traces, block, "from_comm", row, &end.name))
		return -ENOMEM;
	return sent ? vec_push(&traces->stitch.sends, end) : vec_push(&traces->stitch.receives, end);
}

static const char *host_of(const void *owner, uint32_t session)
{
	const struct traces *traces = owner;

	return traces_string(traces, traces->sessions.items[session].host);
}

static const char *text_of(const void *owner, uint32_t string)
{
	return traces_string(owner, string);
}

static int share_graphs(struct traces *traces)
{
	uint32_t at;

	for (uint32_t s = 0; s < traces->stitch.session_cnt; s++) {
		const struct stitch_place *place = &traces->stitch.places[s];

		traces->sessions.items[s].slot = place->slot;
		if (!place->slot)
			continue;
		traces->sessions.items[s].joined = true;
		traces->sessions.items[place->group].joined = true;
	}
	for (uint32_t s = 0; s < traces->stitch.session_cnt; s++) {
		const struct stitch_place *place = &traces->stitch.places[s];

		if (traces->sessions.items[s].joined && (idmap__id(&traces->slot_ids, place->group, place->slot, &at) ||
							 vec_push(&traces->slot_sessions, s)))
			return -ENOMEM;
	}
	return 0;
}

int traces__join(struct traces *traces, struct shard_reader *reader)
{
	static const char *const tables[] = {"handoff"};
	const struct shard_block *block;
	uint32_t session;
	int err = shard_reader__select(reader, tables, 1);

	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = traces__session(traces, block, &session);
		for (uint32_t row = 0; !err && row < block->row_cnt; row++)
			err = collect_row(traces, block, session, row);
	}
	if (!err)
		err = stitch__join(&traces->stitch, (uint32_t)traces->sessions.cnt, host_of, text_of, traces);
	return err ? err : share_graphs(traces);
}

int traces__graph(struct traces *traces, uint32_t session)
{
	uint32_t root = session < traces->stitch.session_cnt ? traces->stitch.places[session].group : session;
	struct trace_session *with = &traces->sessions.items[root];

	if (!with->graph) {
		with->graph = graph__new();
		if (!with->graph)
			return -ENOMEM;
		graph__bulk(with->graph);
	}
	traces->sessions.items[session].graph = with->graph;
	return 0;
}

void traces__complete(struct traces *traces, struct graph_handoff *handoff)
{
	size_t at = traces->stitched++;
	const struct trace_session *from;
	const struct stitch_end *send;

	/* A file that grew since the first reading. */
	if (at >= traces->stitch.receives.cnt || traces->stitch.matches[at].send == STITCH_NONE)
		return;
	send = &traces->stitch.sends.items[traces->stitch.matches[at].send];
	from = &traces->sessions.items[send->session];
	handoff->from_ts = traces_graph_ts(traces, from, send->done_ts);
	/* The call may return late, and the clocks are uncertain. */
	if (handoff->from_ts > handoff->to_ts)
		handoff->from_ts = handoff->to_ts;
	handoff->from_pid = traces_graph_id(from, send->pid);
	handoff->from_tid = traces_graph_id(from, send->tid);
	handoff->from_name = send->name;
	handoff->from_sid = traces__graph_sid(from, send->sid);
	handoff->mixed = traces->stitch.matches[at].mixed;
	handoff->certainty = traces->stitch.matches[at].certainty;
}

/* What woke a thread was sent before, whatever the sender's call and the clocks say. */
static void mend_order(const struct traces *traces, const struct stitch_end *send, const struct stitch_end *receive)
{
	const struct trace_session *to = &traces->sessions.items[receive->session],
				   *from = &traces->sessions.items[send->session];
	uint64_t to_ts = traces_graph_ts(traces, to, receive->ts), left_ts = traces_graph_ts(traces, from, send->ts);
	uint64_t uncertainty_ns = traces->stitch.places[receive->session].uncertainty_ns +
				  traces->stitch.places[send->session].uncertainty_ns;
	uint32_t to_tid = traces_graph_id(to, receive->tid), from_tid = traces_graph_id(from, send->tid);
	struct graph_handoff *handoffs;
	struct graph_wakeup *wakeup;
	size_t cnt;

	wakeup = graph__wakeup_in(to->graph, to_tid, to_ts > WOKEN_BEFORE_NS ? to_ts - WOKEN_BEFORE_NS : 0, to_ts);
	if (!wakeup || (left_ts > wakeup->ts && left_ts - wakeup->ts > uncertainty_ns))
		return;
	handoffs = graph__handoffs_to(to->graph, to_tid, to_ts, to_ts, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (handoffs[i].from_tid == from_tid && handoffs[i].from_ts > wakeup->ts)
			handoffs[i].from_ts = wakeup->ts;
}

int traces__settle(struct traces *traces)
{
	for (size_t i = 0; i < traces->sessions.cnt; i++)
		if (!traces->sessions.items[i].slot && traces->sessions.items[i].graph)
			graph__settle(traces->sessions.items[i].graph);
	for (size_t i = 0; i < traces->stitch.receives.cnt; i++) {
		uint32_t send = traces->stitch.matches[i].send;

		if (send != STITCH_NONE)
			mend_order(traces, &traces->stitch.sends.items[send], &traces->stitch.receives.items[i]);
	}
	return 0;
}

/* Steps by the graph's clock become steps by the interval's own; they still partition it. */
static void by_own_clock(struct path *path, const struct traces *traces, const struct trace_session *session,
			 const struct graph_interval *interval)
{
	uint64_t ts = interval->begin_ts;

	for (size_t i = 0; i < path->steps.cnt; i++) {
		struct path_step *step = &path->steps.items[i];
		uint64_t end_ts = own_ts(traces, session, step->end_ts);

		end_ts = end_ts < ts ? ts : end_ts > interval->end_ts ? interval->end_ts : end_ts;
		step->begin_ts = ts;
		step->end_ts = i + 1 < path->steps.cnt ? end_ts : interval->end_ts;
		ts = step->end_ts;
	}
}

int traces_walk(struct path *path, const struct traces *traces, const struct trace_interval *interval)
{
	const struct trace_session *session = &traces->sessions.items[interval->session];
	struct graph_interval joined = interval->base;
	int err;

	if (!session->joined)
		return path_walk(path, session->graph, &interval->base);
	joined.sid = traces__graph_sid(session, joined.sid);
	joined.begin_ts = traces_graph_ts(traces, session, joined.begin_ts);
	joined.pickup_ts = traces_graph_ts(traces, session, joined.pickup_ts);
	joined.end_ts = traces_graph_ts(traces, session, joined.end_ts);
	joined.pid = traces_graph_id(session, joined.pid);
	joined.tid = traces_graph_id(session, joined.tid);
	joined.end_tid = traces_graph_id(session, joined.end_tid);
	err = path_walk(path, session->graph, &joined);
	if (!err)
		by_own_clock(path, traces, session, &interval->base);
	return err;
}
