// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export_otlp.h"

#include "analysis/story.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/names.h"
#include "base/random.h"
#include "shard/columns.h"
#include "view/otlp_common.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Field numbers: docs/otlp.proto. */
enum {
	FIELD_REQUEST_RESOURCE_SPANS = 1,
	FIELD_RESOURCE_SPANS_RESOURCE = 1,
	FIELD_RESOURCE_SPANS_SCOPE_SPANS = 2,
	FIELD_SCOPE_SPANS_SCOPE = 1,
	FIELD_SCOPE_SPANS_SPANS = 2,

	FIELD_SPAN_TRACE_ID = 1,
	FIELD_SPAN_SPAN_ID = 2,
	FIELD_SPAN_PARENT_SPAN_ID = 4,
	FIELD_SPAN_NAME = 5,
	FIELD_SPAN_KIND = 6,
	FIELD_SPAN_START = 7,
	FIELD_SPAN_END = 8,
	FIELD_SPAN_ATTRIBUTES = 9,
	FIELD_SPAN_LINKS = 13,

	FIELD_LINK_TRACE_ID = 1,
	FIELD_LINK_SPAN_ID = 2,
};

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };

#define TRACE_ID_SZ 16
#define SPAN_ID_SZ  8
#define BATCH_SPANS 2000
#define BATCH_BYTES (512u << 10)
#define NAME_SZ     160

/* A trace of the application's own that a request belongs to. */
struct own_trace {
	uint8_t trace_id[TRACE_ID_SZ];
	uint8_t span_id[SPAN_ID_SZ]; /* of the span that the request is part of */
};

struct otlp {
	struct otlp_sessions sessions;
	struct idmap own_ids; /* (session, sid) → index into own_traces */
	VEC(struct own_trace) own_traces;
	const struct otlp_session *session; /* of the batch */
	struct proto spans, span;
	struct otlp_scratch scratch;
	size_t batch_cnt;
	int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt);
	void *owner;
	struct otlp_stats *stats;
	const struct idmap *only; /* (session, sid); NULL: all requests */
};

static bool is_wanted(const struct otlp *otlp, uint64_t session_id, uint64_t sid)
{
	uint32_t no;

	return !otlp->only || idmap__find(otlp->only, session_id, sid, &no);
}

/* Never 0, which is no number of a span. */
static uint64_t span_number(uint64_t session_id, uint64_t sid, uint64_t step)
{
	uint64_t number = random_mix(random_mix(session_id + 0x9e3779b97f4a7c15ULL) ^ sid) + step;

	return random_mix(number) ?: 1;
}

static void put_id(struct proto *to, uint32_t field, uint64_t number)
{
	uint8_t bytes[SPAN_ID_SZ];

	put_le(bytes, number, SPAN_ID_SZ);
	proto__bytes(to, field, bytes, sizeof(bytes));
}

static bool parse_hex(uint8_t *to, size_t sz, const char *text)
{
	for (size_t i = 0; i < sz; i++) {
		unsigned byte;
		int end = 0;

		if (sscanf(text + 2 * i, "%2x%n", &byte, &end) != 1 || end != 2)
			return false;
		to[i] = (uint8_t)byte;
	}
	return !text[2 * sz];
}

static int add_own_trace(struct otlp *otlp, uint64_t session_id, uint64_t sid, const char *trace_id,
			 const char *span_id)
{
	struct own_trace own;
	uint32_t id;

	if (strlen(trace_id) != 2 * TRACE_ID_SZ || strlen(span_id) != 2 * SPAN_ID_SZ ||
	    !parse_hex(own.trace_id, TRACE_ID_SZ, trace_id) || !parse_hex(own.span_id, SPAN_ID_SZ, span_id))
		return 0;
	if (idmap__id(&otlp->own_ids, session_id, sid, &id))
		return -ENOMEM;
	return id == otlp->own_traces.cnt ? vec_push(&otlp->own_traces, own) : 0;
}

/* NULL: the application does not trace it. */
static const struct own_trace *own_trace(const struct otlp *otlp, uint64_t session_id, uint64_t sid)
{
	uint32_t id;

	return idmap__find(&otlp->own_ids, session_id, sid, &id) ? &otlp->own_traces.items[id] : NULL;
}

static void put_trace_id(const struct otlp *otlp, struct proto *to, uint32_t field, uint64_t sid)
{
	const struct own_trace *own = own_trace(otlp, otlp->session->id, sid);
	uint64_t session_id = otlp->session->id;
	uint8_t bytes[TRACE_ID_SZ];

	if (own) {
		proto__bytes(to, field, own->trace_id, TRACE_ID_SZ);
		return;
	}
	put_le(bytes, random_mix(session_id) ?: 1, 8);
	put_le(bytes + 8, span_number(session_id, sid, 0), 8);
	proto__bytes(to, field, bytes, sizeof(bytes));
}

/* What has collected, as a request of its own: 0 or -errno. */
static int flush(struct otlp *otlp)
{
	struct proto scope_spans = {0}, resource_spans = {0}, request = {0};
	int err = 0;

	if (otlp->batch_cnt) {
		otlp_put_scope(&scope_spans, FIELD_SCOPE_SPANS_SCOPE);
		/* Spans are fields of it already. */
		if (!otlp->spans.err && !vec_reserve(&scope_spans, otlp->spans.cnt)) {
			memcpy(scope_spans.items + scope_spans.cnt, otlp->spans.items, otlp->spans.cnt);
			scope_spans.cnt += otlp->spans.cnt;
		} else {
			scope_spans.err = -ENOMEM;
		}
		otlp_put_resource(&otlp->scratch, &resource_spans, FIELD_RESOURCE_SPANS_RESOURCE, otlp->session);
		proto__message(&resource_spans, FIELD_RESOURCE_SPANS_SCOPE_SPANS, &scope_spans);
		proto__message(&request, FIELD_REQUEST_RESOURCE_SPANS, &resource_spans);
		err = request.err ?: otlp->put(otlp->owner, request.items, request.cnt, otlp->batch_cnt);
	}
	otlp->batch_cnt = 0;
	proto__reset(&otlp->spans);
	proto__free(&scope_spans);
	proto__free(&resource_spans);
	proto__free(&request);
	return err;
}

/* The session of what follows; 1: it has no clock. */
static int enter_session(struct otlp *otlp, uint64_t id)
{
	const struct otlp_session *session;
	int err;

	if (!otlp->session || otlp->session->id != id) {
		err = flush(otlp);
		if (err)
			return err;
		session = otlp_sessions__find(&otlp->sessions, id);
		if (!session)
			return 1;
		otlp->session = session;
	}
	return otlp_session__has_clock(otlp->session) ? 0 : 1;
}

static uint64_t wall_of(const struct otlp *otlp, uint64_t ts)
{
	return otlp_session__wall(otlp->session, ts);
}

static void begin_span(struct otlp *otlp, uint64_t sid, uint64_t step, const char *name, uint64_t begin_ts,
		       uint64_t end_ts)
{
	uint64_t session_id = otlp->session->id;
	const struct own_trace *own = own_trace(otlp, session_id, sid);

	proto__reset(&otlp->span);
	put_trace_id(otlp, &otlp->span, FIELD_SPAN_TRACE_ID, sid);
	put_id(&otlp->span, FIELD_SPAN_SPAN_ID, span_number(session_id, sid, step));
	if (step)
		put_id(&otlp->span, FIELD_SPAN_PARENT_SPAN_ID, span_number(session_id, sid, 0));
	else if (own)
		proto__bytes(&otlp->span, FIELD_SPAN_PARENT_SPAN_ID, own->span_id, SPAN_ID_SZ);
	proto__string(&otlp->span, FIELD_SPAN_NAME, name);
	proto__uint(&otlp->span, FIELD_SPAN_KIND, step ? SPAN_INTERNAL : SPAN_SERVER);
	proto__fixed64(&otlp->span, FIELD_SPAN_START, wall_of(otlp, begin_ts));
	proto__fixed64(&otlp->span, FIELD_SPAN_END, wall_of(otlp, end_ts));
}

static int end_span(struct otlp *otlp)
{
	proto__message(&otlp->spans, FIELD_SCOPE_SPANS_SPANS, &otlp->span);
	otlp->batch_cnt++;
	otlp->stats->spans++;
	return otlp->spans.err;
}

/* A batch ends between requests. */
static int end_request(struct otlp *otlp)
{
	otlp->stats->requests++;
	return otlp->batch_cnt >= BATCH_SPANS || otlp->spans.cnt >= BATCH_BYTES ? flush(otlp) : 0;
}

static void put_weight(struct otlp *otlp, double weight)
{
	if (isfinite(weight))
		otlp_put_double(&otlp->scratch, &otlp->span, FIELD_SPAN_ATTRIBUTES, "whylate.weight", weight);
}

static void put_attribute(struct otlp *otlp, const char *key, const char *text)
{
	otlp_put_text(&otlp->scratch, &otlp->span, FIELD_SPAN_ATTRIBUTES, key, text);
}

static void put_count(struct otlp *otlp, const char *key, uint64_t number)
{
	if (number)
		otlp_put_number(&otlp->scratch, &otlp->span, FIELD_SPAN_ATTRIBUTES, key, number);
}

static void put_link(struct otlp *otlp, uint64_t sid)
{
	struct proto link = {0};

	put_trace_id(otlp, &link, FIELD_LINK_TRACE_ID, sid);
	put_id(&link, FIELD_LINK_SPAN_ID, span_number(otlp->session->id, sid, 0));
	proto__message(&otlp->span, FIELD_SPAN_LINKS, &link);
	proto__free(&link);
}

static int put_step(struct otlp *otlp, const struct story *story, size_t no)
{
	const struct story_step *step = &story->steps[no];
	const char *who = step->culprit_comm ?: step->depth ? step->comm : NULL;
	char name[NAME_SZ];

	snprintf(name, sizeof(name), "%s%s%.60s", category_name(step->category), who ? ": " : "", who ?: "");
	begin_span(otlp, story->sid, no + 1, name, step->begin_ts, step->end_ts);
	put_attribute(otlp, "whylate.category", category_name(step->category));
	put_attribute(otlp, "whylate.state", state_name(step->state));
	put_attribute(otlp, "whylate.object", step->object);
	put_attribute(otlp, "whylate.syscall", step->syscall);
	put_attribute(otlp, "whylate.culprit", step->culprit_comm);
	put_attribute(otlp, "whylate.culprit_host", step->culprit_host);
	put_attribute(otlp, "whylate.certainty", certainty_name(step->certainty));
	put_attribute(otlp, "thread.name", step->comm);
	put_count(otlp, "thread.id", step->tid);
	put_attribute(otlp, "whylate.host", step->host);
	/* The other request is of this recording where its thread is of this host. */
	if (step->other_sid && step->other_sid != story->sid && !step->host && !step->culprit_host)
		put_link(otlp, step->other_sid);
	return end_span(otlp);
}

static int put_traced(struct otlp *otlp, const struct traces *traces, const struct trace_interval *interval,
		      struct path *path)
{
	uint64_t session_id = traces->sessions.items[interval->session].id;
	struct arena *arena;
	struct story story;
	int err;

	if (!is_wanted(otlp, session_id, interval->base.sid))
		return 0;
	err = enter_session(otlp, session_id);
	if (err > 0) {
		otlp->stats->without_clock++;
		return 0;
	}
	arena = err ? NULL : arena__new();
	if (!err)
		err = arena ? story_make(&story, traces, NULL, interval, path, arena) : -ENOMEM;
	if (!err) {
		begin_span(otlp, story.sid, 0, *story.type ? story.type : "request", story.begin_ts, story.end_ts);
		put_count(otlp, "whylate.sid", story.sid);
		put_weight(otlp, story.weight);
		put_count(otlp, "thread.id", story.tid);
		put_count(otlp, "whylate.path_flags", story.path_flags);
		err = end_span(otlp);
	}
	for (size_t i = 0; !err && i < story.step_cnt; i++)
		err = put_step(otlp, &story, i);
	arena__free(arena);
	return err ?: end_request(otlp);
}

/* Of a block, found once. */
struct row_columns {
	struct interval_columns fixed;
	const struct shard_block_column *states[WL_STATE_CNT];
};

static int put_row(struct otlp *otlp, const struct row_columns *columns, uint32_t row)
{
	uint64_t begin_ts = column_u64(columns->fixed.begin_ts, row), end_ts = column_u64(columns->fixed.end_ts, row);
	uint64_t category_ns[WL_CATEGORY_CNT] = {0}, sid = column_u64(columns->fixed.sid, row);
	const char *type = column_text(columns->fixed.type, row);
	char key[64];
	int err;

	if (end_ts < begin_ts)
		return 0;
	for (int s = 0; s < WL_STATE_CNT; s++)
		category_ns[state_category(s)] += column_u64(columns->states[s], row);
	if (!column_is_null(columns->fixed.trace_id, row) && !column_is_null(columns->fixed.span_id, row) &&
	    add_own_trace(otlp, otlp->session->id, sid, columns->fixed.trace_id->values[row].str,
			  columns->fixed.span_id->values[row].str))
		return -ENOMEM;
	begin_span(otlp, sid, 0, *type ? type : "request", begin_ts, end_ts);
	put_count(otlp, "whylate.sid", sid);
	put_weight(otlp, column_f64_or(columns->fixed.weight, row, 1));
	put_count(otlp, "thread.id", column_u64(columns->fixed.tid, row));
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		snprintf(key, sizeof(key), "whylate.ns.%s", category_name(c));
		put_count(otlp, key, category_ns[c]);
	}
	put_attribute(otlp, "whylate.culprit",
		      !column_is_null(columns->fixed.culprit_comm, row) ? columns->fixed.culprit_comm->values[row].str
									: NULL);
	put_attribute(otlp, "whylate.object",
		      !column_is_null(columns->fixed.lock_name, row) ? columns->fixed.lock_name->values[row].str
								     : NULL);
	if (column_u64(columns->fixed.queue_sid, row))
		put_link(otlp, column_u64(columns->fixed.queue_sid, row));
	err = end_span(otlp);
	return err ?: end_request(otlp);
}

/* Recordings without --mode trace: each request from its counters. */
static int put_rows(struct otlp *otlp, struct shard_reader *reader)
{
	static const char *const tables[] = {"interval"};
	const struct shard_block *block;
	int ret = shard_reader__select(reader, tables, 1);

	if (ret)
		return ret;
	while ((ret = shard_reader__next(reader, &block)) > 0) {
		struct row_columns columns = {.fixed = block_columns(block, INTERVAL, interval)};
		int err = enter_session(otlp, block->session_id);

		for (uint32_t s = 0; s < WL_STATE_CNT; s++)
			columns.states[s] = block_column_at(block, SHARD_TABLE_INTERVAL, interval_column_length(s));
		for (uint32_t i = 0; err >= 0 && i < block->row_cnt; i++) {
			if (!is_wanted(otlp, block->session_id, column_u64(columns.fixed.sid, i)))
				continue;
			if (err > 0)
				otlp->stats->without_clock++;
			else
				err = put_row(otlp, &columns, i);
		}
		if (err < 0)
			return err;
	}
	return ret;
}

int export_otlp(struct shard_reader *reader, const struct traces *traces, const struct idmap *only,
		int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt), void *owner,
		struct otlp_stats *stats)
{
	struct otlp otlp = {.put = put, .owner = owner, .stats = stats, .only = only};
	struct path path = {0};
	int err;

	*stats = (struct otlp_stats){0};
	err = otlp_sessions__read(&otlp.sessions, reader);
	for (size_t i = 0; !err && traces && i < traces->intervals.cnt; i++) {
		const struct trace_interval *interval = &traces->intervals.items[i];

		if (interval->trace_id)
			err = add_own_trace(&otlp, traces->sessions.items[interval->session].id, interval->base.sid,
					    traces_string(traces, interval->trace_id),
					    traces_string(traces, interval->span_id));
	}
	for (size_t i = 0; !err && traces && i < traces->intervals.cnt; i++)
		err = put_traced(&otlp, traces, &traces->intervals.items[i], &path);
	if (!err && !traces)
		err = put_rows(&otlp, reader);
	if (!err && otlp.session)
		err = flush(&otlp);
	if (!err && !stats->requests && !stats->without_clock)
		err = -ENOENT;
	path__clear(&path);
	otlp_sessions__free(&otlp.sessions);
	idmap__free(&otlp.own_ids);
	vec_free(&otlp.own_traces);
	proto__free(&otlp.spans);
	proto__free(&otlp.span);
	otlp_scratch__free(&otlp.scratch);
	return err;
}

int export_otlp_some(struct shard_reader *reader, const struct idmap *only,
		     int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt), void *owner,
		     struct otlp_stats *stats)
{
	struct traces traces;
	int err, found = traces_load(&traces, reader);

	if (found < 0)
		return found;
	err = export_otlp(reader, found ? &traces : NULL, only, put, owner, stats);
	if (found)
		traces_free(&traces);
	return err;
}

int export_otlp_all(struct shard_reader *reader, bool metrics,
		    int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt), void *owner)
{
	struct otlp_stats stats = {0};
	int err = metrics ? export_otlp_metrics(reader, put, owner, &stats)
			  : export_otlp_some(reader, NULL, put, owner, &stats);

	if (stats.without_clock)
		log_warn("%" PRIu64 " requests are not exported: nothing says what time it was in their recording",
			 stats.without_clock);
	return err;
}
