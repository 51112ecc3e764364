// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/traces.h"

#include "analysis/traces_join.h"
#include "base/names.h"
#include "base/progress.h"
#include "shard/inputs.h"

#include <math.h>
#include <string.h>

/* Words of a block come from its dictionary: one that was looked up need not be compared again. */
#define WORD_CACHE_CNT 64

struct word_cache {
	struct {
		const char *text;
		int value;
	} words[WORD_CACHE_CNT];
};

static int word_value(struct word_cache *cache, const char *text, int (*by_name)(const char *name))
{
	size_t at = ((uintptr_t)text >> 3 ^ (uintptr_t)text >> 9) % WORD_CACHE_CNT;

	if (cache->words[at].text != text) {
		cache->words[at].text = text;
		cache->words[at].value = by_name(text);
	}
	return cache->words[at].value;
}

/* A string column as an index into the strings. */
static int text_of(struct traces *traces, const struct shard_block_column *column, uint32_t row, uint32_t *id)
{
	*id = 0;
	return column_is_null(column, row) ? 0 : intern__id(&traces->strings, column_text(column, row), id);
}

/* One that no kernel gives is none. */
static uint32_t id_of(const struct shard_block_column *column, uint32_t row)
{
	uint64_t id = column_u64(column, row);

	return id <= TRACE_ID_MASK ? (uint32_t)id : 0;
}

int traces__session(struct traces *traces, const struct shard_block *block, uint32_t *session)
{
	char host[SHARD_HOST_MAX + 1] = "";
	struct trace_session made = {.id = block->session_id};

	if (idmap__id(&traces->session_ids, block->session_id, 0, session))
		return -ENOMEM;
	if (*session < traces->sessions.cnt)
		return 0;
	shard_name_host(block->path, host);
	if (*host && intern__id(&traces->strings, host, &made.host))
		return -ENOMEM;
	return vec_push(&traces->sessions, made);
}

/* Remembers the newest name of a thread; rows of different tables do not come in the order of their times. */
static int name_thread(struct trace_session *session, uint32_t pid, uint32_t tid, uint32_t name, uint64_t ts)
{
	const uint64_t pids[] = {pid, UINT64_MAX};
	uint32_t id;

	if (!tid || !name)
		return 0;
	for (size_t i = pid ? 0 : 1; i < 2; i++) {
		if (idmap__id(&session->thread_ids, tid, pids[i], &id))
			return -ENOMEM;
		if (id == session->threads.cnt && vec_push(&session->threads, ((struct trace_thread){.tid = tid})))
			return -ENOMEM;
		if (ts < session->threads.items[id].name_ts)
			continue;
		session->threads.items[id].pid = pid ? pid : session->threads.items[id].pid;
		session->threads.items[id].name = name;
		session->threads.items[id].name_ts = ts;
	}
	return 0;
}

static int note_tid(struct trace_session *session, uint32_t tid)
{
	uint32_t id;

	if (idmap__id(&session->tid_ids, tid, 0, &id))
		return -ENOMEM;
	return id < session->tids.cnt ? 0 : vec_push(&session->tids, tid);
}

/* What the graph refused is a bad row, not an error. */
static int taken(struct traces *traces, int err, size_t *cnt)
{
	*cnt += !err;
	traces->bad_rows += err == -EINVAL;
	return err == -EINVAL ? 0 : err;
}

static int load_segments(struct traces *traces, struct trace_session *session, const struct shard_block *block)
{
	const struct segment_columns col = block_columns(block, SEGMENT, segment);
	struct word_cache states = {0};

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		struct graph_segment segment = {
			.begin_ts = traces_graph_ts(traces, session, column_u64(col.begin_ts, row)),
			.end_ts = traces_graph_ts(traces, session, column_u64(col.end_ts, row)),
			.sid = traces__graph_sid(session, column_u64(col.sid, row)),
			.object = column_u64(col.object, row),
			.pid = traces_graph_id(session, id_of(col.pid, row)),
			.by_pid = traces_graph_id(session, id_of(col.by_pid, row)),
			.cpu = GRAPH_NO_CPU,
		};
		uint32_t graph_tid = traces_graph_id(session, id_of(col.tid, row));
		int known = word_value(&states, column_text(col.state, row), state_by_name);

		/* A state of the future is one that nothing is known of. */
		segment.state = (uint8_t)(known < 0 ? WL_STATE_UNKNOWN : known);
		segment.by_tid = traces_graph_id(
			session, id_of(column_is_null(col.by_tid, row) ? col.owner_tid : col.by_tid, row));
		if (!column_is_null(col.cpu, row) && column_u64(col.cpu, row) < GRAPH_NO_CPU)
			segment.cpu = (uint16_t)column_u64(col.cpu, row);
		if (text_of(traces, col.object_name, row, &segment.object_name) ||
		    text_of(traces, col.syscall, row, &segment.syscall) ||
		    text_of(traces, col.by_comm, row, &segment.by_name) ||
		    text_of(traces, col.type, row, &segment.type) ||
		    name_thread(session, id_of(col.by_pid, row), id_of(col.by_tid, row), segment.by_name,
				segment.end_ts) ||
		    taken(traces, graph__add_segment(session->graph, graph_tid, &segment), &traces->segment_cnt) ||
		    (graph_tid && note_tid(session, graph_tid)))
			return -ENOMEM;
	}
	return 0;
}

static int load_wakeups(struct traces *traces, struct trace_session *session, const struct shard_block *block)
{
	const struct wakeup_columns col = block_columns(block, WAKEUP, wakeup);
	struct word_cache contexts = {0}, certainties = {0};

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		int known_context = word_value(&contexts, column_text(col.context, row), context_by_name);
		int known_certainty = word_value(&certainties, column_text(col.certainty, row), certainty_by_name);
		struct graph_wakeup wakeup = {
			.ts = traces_graph_ts(traces, session, column_u64(col.ts, row)),
			.cpu = GRAPH_NO_CPU,
			.context = (uint8_t)(known_context < 0 ? WL_CONTEXT_UNKNOWN : known_context),
			.certainty = (uint8_t)(known_certainty < 0 ? WL_CERTAINTY_AMBIGUOUS : known_certainty),
		};

		if (!column_is_null(col.cpu, row) && column_u64(col.cpu, row) < GRAPH_NO_CPU)
			wakeup.cpu = (uint16_t)column_u64(col.cpu, row);
		if (context_has_waker(wakeup.context) || wakeup.context == WL_CONTEXT_UNKNOWN) {
			wakeup.waker_pid = traces_graph_id(session, id_of(col.waker_pid, row));
			wakeup.waker_tid = traces_graph_id(session, id_of(col.waker_tid, row));
			if (text_of(traces, col.waker_comm, row, &wakeup.waker_name) ||
			    name_thread(session, id_of(col.waker_pid, row), id_of(col.waker_tid, row),
					wakeup.waker_name, wakeup.ts))
				return -ENOMEM;
		}
		if (taken(traces,
			  graph__add_wakeup(session->graph, traces_graph_id(session, id_of(col.tid, row)), &wakeup),
			  &traces->wakeup_cnt))
			return -ENOMEM;
	}
	return 0;
}

static int load_handoffs(struct traces *traces, struct trace_session *session, const struct shard_block *block)
{
	const struct handoff_columns col = block_columns(block, HANDOFF, handoff);
	struct word_cache kinds = {0}, certainties = {0};

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		int known_kind = word_value(&kinds, column_text(col.kind, row), handoff_by_name);
		int known_certainty = word_value(&certainties, column_text(col.certainty, row), certainty_by_name);
		struct trace_socket socket;
		struct graph_handoff handoff = {
			.from_ts = traces_graph_ts(traces, session, column_u64(col.from_ts, row)),
			.to_ts = traces_graph_ts(traces, session, column_u64(col.to_ts, row)),
			.sid = traces__graph_sid(session, column_u64(col.sid, row)),
			.object = column_u64(col.object, row),
			.from_sid = traces__graph_sid(session, column_u64(col.from_sid, row)),
			.mixed = column_u64(col.mixed, row) != 0,
			.queue_ns = column_u64(col.queue_ns, row),
			.service_ns = column_u64(col.service_ns, row),
			.from_pid = traces_graph_id(session, id_of(col.from_pid, row)),
			.from_tid = column_is_null(col.from_ts, row)
					    ? 0
					    : traces_graph_id(session, id_of(col.from_tid, row)),
			.to_pid = traces_graph_id(session, id_of(col.to_pid, row)),
			.to_tid = column_is_null(col.to_ts, row) ? 0 : traces_graph_id(session, id_of(col.to_tid, row)),
			.row = (uint32_t)traces->sockets.cnt,
			.certainty = (uint8_t)(known_certainty < 0 ? WL_CERTAINTY_AMBIGUOUS : known_certainty),
		};

		if (known_kind < 0 || traces->sockets.cnt == UINT32_MAX) {
			traces->bad_rows++;
			continue;
		}
		handoff.kind = (uint8_t)known_kind;
		if (text_of(traces, col.from_comm, row, &handoff.from_name) ||
		    text_of(traces, col.device, row, &handoff.device) ||
		    text_of(traces, col.from_addr, row, &socket.from_addr) ||
		    text_of(traces, col.to_addr, row, &socket.to_addr) ||
		    name_thread(session, traces_real_id(handoff.from_pid), traces_real_id(handoff.from_tid),
				handoff.from_name, handoff.from_ts) ||
		    vec_push(&traces->sockets, socket))
			return -ENOMEM;
		if (traces__end_kind(block, row) == TRACES_RECEIVE)
			traces__complete(traces, &handoff);
		if (taken(traces, graph__add_handoff(session->graph, &handoff), &traces->handoff_cnt))
			return -ENOMEM;
	}
	return 0;
}

static int load_threads(struct traces *traces, struct trace_session *session, const struct shard_block *block)
{
	const struct thread_columns col = block_columns(block, THREAD, thread);
	size_t exits = 0;
	uint32_t name;

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		if (!strcmp(column_text(col.event, row), "exit") &&
		    taken(traces,
			  graph__add_exit(session->graph, traces_graph_id(session, id_of(col.tid, row)),
					  traces_graph_ts(traces, session, column_u64(col.ts, row))),
			  &exits))
			return -ENOMEM;
		if (text_of(traces, col.comm, row, &name) ||
		    name_thread(session, id_of(col.pid, row), id_of(col.tid, row), name,
				traces_graph_ts(traces, session, column_u64(col.ts, row))))
			return -ENOMEM;
	}
	return 0;
}

static int add_interval(struct traces *traces, struct trace_session *session, const struct trace_interval *interval)
{
	uint32_t id;

	if (idmap__id(&session->interval_ids, interval->base.sid, 0, &id))
		return -ENOMEM;
	if (id == session->first_intervals.cnt && vec_push(&session->first_intervals, (uint32_t)traces->intervals.cnt))
		return -ENOMEM;
	return vec_push(&traces->intervals, *interval);
}

static int load_intervals(struct traces *traces, uint32_t session, const struct shard_block *block)
{
	const struct interval_columns col = block_columns(block, INTERVAL, interval);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		struct trace_interval interval = {
			.base =
				{
					.sid = column_u64(col.sid, row),
					.begin_ts = column_u64(col.begin_ts, row),
					.pickup_ts = column_u64(col.pickup_ts, row),
					.end_ts = column_u64(col.end_ts, row),
					.pid = id_of(col.pid, row),
					.tid = id_of(col.tid, row),
					.end_tid = id_of(col.end_tid, row),
					.flags = (uint32_t)column_u64(col.flags, row),
				},
			.session = session,
			.weight = column_f64_or(col.weight, row, 1),
			.context = column_u64(col.context, row),
		};
		const struct graph_interval *base = &interval.base;

		if (base->begin_ts > base->pickup_ts || base->pickup_ts > base->end_ts || !isfinite(interval.weight) ||
		    interval.weight <= 0 || traces->intervals.cnt == UINT32_MAX) {
			traces->bad_rows++;
			continue;
		}
		if (!interval.base.end_tid)
			interval.base.end_tid = interval.base.tid;
		if (text_of(traces, col.type, row, &interval.base.type) ||
		    text_of(traces, col.trace_id, row, &interval.trace_id) ||
		    text_of(traces, col.span_id, row, &interval.span_id) ||
		    add_interval(traces, &traces->sessions.items[session], &interval))
			return -ENOMEM;
	}
	return 0;
}

static int load_facts(struct traces *traces, struct trace_session *session, const struct shard_block *block)
{
	const struct session_columns col = block_columns(block, SESSION, session);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		const char *name = column_text(col.key, row), *text = column_text(col.value, row);

		if (!strcmp(name, "mono_anchor_ns"))
			session->mono_anchor_ns = strtoull(text, NULL, 10);
		else if (!strcmp(name, "wall_anchor_ns"))
			session->wall_anchor_ns = strtoull(text, NULL, 10);
		else if (!strcmp(name, "host") && !session->host && text_of(traces, col.value, row, &session->host))
			return -ENOMEM;
	}
	return 0;
}

static int load_block(struct traces *traces, const struct shard_block *block)
{
	static const struct {
		const char *table;
		int (*load)(struct traces *traces, struct trace_session *session, const struct shard_block *block);
	} loaders[] = {
		{"segment", load_segments}, {"wakeup", load_wakeups}, {"handoff", load_handoffs},
		{"thread", load_threads},   {"session", load_facts},
	};
	uint32_t session;

	if (traces__session(traces, block, &session) || traces__graph(traces, session))
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++)
		if (!strcmp(block->table, loaders[i].table))
			return loaders[i].load(traces, &traces->sessions.items[session], block);
	return strcmp(block->table, "interval") ? 0 : load_intervals(traces, session, block);
}

int traces_load(struct traces *traces, struct shard_reader *reader)
{
	static const char *const first[] = {"segment"};
	static const char *const tables[] = {"segment", "wakeup", "handoff", "thread", "session", "interval"};
	const struct shard_block *block;
	uint32_t empty;
	int err;

	*traces = (struct traces){0};
	progress_at("reading chains");
	err = shard_reader__select(reader, first, 1);
	if (!err)
		err = shard_reader__next(reader, &block);
	if (err <= 0)
		return err;
	traces->arena = traces->strings.arena = arena__new();
	err = traces->arena ? intern__id(&traces->strings, "", &empty) : -ENOMEM;
	if (!err)
		err = traces__join(traces, reader);
	if (!err)
		err = shard_reader__select(reader, tables, sizeof(tables) / sizeof(tables[0]));
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = load_block(traces, block);
	if (!err)
		err = traces__settle(traces);
	if (!err)
		err = context_chains__load(&traces->chains, reader);
	if (err) {
		traces_free(traces);
		return err;
	}
	return 1;
}

void traces_free(struct traces *traces)
{
	for (size_t i = 0; i < traces->sessions.cnt; i++) {
		struct trace_session *session = &traces->sessions.items[i];

		if (!session->slot)
			graph__free(session->graph);
		idmap__free(&session->thread_ids);
		vec_free(&session->threads);
		idmap__free(&session->interval_ids);
		vec_free(&session->first_intervals);
		vec_free(&session->tids);
		idmap__free(&session->tid_ids);
	}
	vec_free(&traces->sessions);
	idmap__free(&traces->session_ids);
	vec_free(&traces->intervals);
	vec_free(&traces->sockets);
	stitch__free(&traces->stitch);
	context_chains__free(&traces->chains);
	idmap__free(&traces->slot_ids);
	vec_free(&traces->slot_sessions);
	intern__free(&traces->strings);
	arena__free(traces->arena);
	*traces = (struct traces){0};
}

struct trace_session *traces_session(const struct traces *traces, uint64_t id)
{
	uint32_t session;

	return idmap__find(&traces->session_ids, id, 0, &session) ? &traces->sessions.items[session] : NULL;
}

const struct trace_interval *traces_interval(const struct traces *traces, const struct trace_session *session,
					     uint64_t sid)
{
	uint32_t id;

	if (!session || !idmap__find(&session->interval_ids, sid, 0, &id))
		return NULL;
	return &traces->intervals.items[session->first_intervals.items[id]];
}

static const struct trace_thread *thread_of(const struct trace_session *session, uint32_t pid, uint32_t tid)
{
	uint32_t id;

	return idmap__find(&session->thread_ids, tid, pid ? pid : UINT64_MAX, &id) ? &session->threads.items[id] : NULL;
}

uint32_t traces_thread_name(const struct traces *traces, const struct trace_session *session, uint32_t pid,
			    uint32_t tid)
{
	const struct trace_thread *thread =
		thread_of(traces_owner(traces, session, tid), traces_real_id(pid), traces_real_id(tid));

	return thread ? thread->name : 0;
}

uint32_t traces_thread_pid(const struct traces *traces, const struct trace_session *session, uint32_t tid)
{
	const struct trace_session *owner = traces_owner(traces, session, tid);
	const struct trace_thread *thread = thread_of(owner, 0, traces_real_id(tid));

	return thread ? traces_graph_id(owner, thread->pid) : 0;
}

/* Two recordings of one boot have the same clock, however the wall clock was set in between. */
#define SAME_CLOCK_NS 5000000000LL

int64_t traces_shift_ns(const struct traces *traces, const struct trace_session *session)
{
	const struct trace_session *first = traces->sessions.cnt ? &traces->sessions.items[0] : session;
	int64_t shift_ns;

	if (session == first || !session->mono_anchor_ns || !session->wall_anchor_ns || !first->mono_anchor_ns ||
	    !first->wall_anchor_ns)
		return 0;
	shift_ns = (int64_t)(session->wall_anchor_ns - session->mono_anchor_ns - first->wall_anchor_ns +
			     first->mono_anchor_ns);
	if (session->host == first->host && shift_ns < SAME_CLOCK_NS && shift_ns > -SAME_CLOCK_NS)
		return 0;
	return shift_ns;
}

bool traces_many_hosts(const struct traces *traces)
{
	for (size_t i = 1; i < traces->sessions.cnt; i++)
		if (traces->sessions.items[i].host != traces->sessions.items[0].host)
			return true;
	return false;
}
