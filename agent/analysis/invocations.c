// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/invocations.h"

#include "base/arena.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/vec.h"
#include "model/session.h"
#include "shard/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE       UINT32_MAX
#define HEIGHT_MAX 100000

struct loading {
	struct invocations *to;
	const struct dataset *dataset;
	struct idmap session_ids;  /* session id → index into dataset.session_ids */
	struct idmap symbol_ids;   /* (session, id of the table) → index into known */
	VEC(uint32_t) known;       /* … → index into symbols */
	struct idmap function_ids; /* (module, name) → index into symbols */
	struct idmap probed_ids;   /* (session, index into symbols) → index into newest */
	VEC(uint32_t) newest;      /* … → index into parts: the newest of that function */
	struct idmap interval_ids; /* (session, sid) → index into intervals */
	VEC(uint32_t) intervals;   /* … → row of the dataset */
	uint64_t last_sid;
	uint32_t last_session, last_row; /* calls of one interval come together */
	bool others;
};

static bool session_of(const struct loading *loading, const struct shard_block *block, uint32_t *session)
{
	return idmap__find(&loading->session_ids, block->session_id, 0, session);
}

static uint32_t u32_of(const struct shard_block_column *column, uint32_t row, uint32_t otherwise)
{
	uint64_t value = column_u64(column, row);

	return column_is_null(column, row) || value > UINT32_MAX ? otherwise : (uint32_t)value;
}

static int function_made(struct loading *loading, const char *module, const char *name, uint32_t id, uint32_t *func)
{
	struct invocation_symbol made = {.id = id};

	if (intern__id(&loading->to->strings, module, &made.module) ||
	    intern__id(&loading->to->strings, name, &made.name) ||
	    idmap__id(&loading->function_ids, made.module, made.name, func))
		return -ENOMEM;
	if (*func < loading->to->symbols.cnt)
		return 0;
	return vec_push(&loading->to->symbols, made);
}

static int load_symbols(struct loading *loading, uint32_t session, const struct shard_block *block)
{
	const struct symbol_columns col = block_columns(block, SYMBOL, symbol);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		uint32_t number = u32_of(col.id, row, NONE), at, func;
		struct invocation_symbol *symbol;

		if (number == NONE || !*column_text(col.name, row)) {
			loading->to->bad_rows++;
			continue;
		}
		if (function_made(loading, column_text(col.module, row), column_text(col.name, row), number, &func) ||
		    idmap__id(&loading->symbol_ids, session, number, &at))
			return -ENOMEM;
		if (at == loading->known.cnt && vec_push(&loading->known, func))
			return -ENOMEM;
		/* The newest row of an id holds: heights grow with what is known of the program. */
		loading->known.items[at] = func;
		symbol = &loading->to->symbols.items[func];
		if (!column_is_null(col.height, row) && column_u64(col.height, row) <= HEIGHT_MAX)
			symbol->height = (uint32_t)column_u64(col.height, row);
	}
	return 0;
}

/* A number of the round's in words "BEGIN END", or one of its other keys. */
static void take_round_key(struct invocation_round *round, const char *rest, const char *value)
{
	unsigned long long begin_ts, end_ts;
	double number;

	if (!*rest && sscanf(value, "%llu %llu", &begin_ts, &end_ts) == 2) {
		round->begin_ts = begin_ts;
		round->end_ts = end_ts;
	} else if (sscanf(value, "%lf", &number) == 1 && isfinite(number)) {
		if (!strcmp(rest, ".intervals_per_s"))
			round->intervals_per_s = number;
		else if (!strcmp(rest, ".cost_share"))
			round->cost_share = number;
		else if (!strcmp(rest, ".probes"))
			round->probe_cnt = number;
	}
}

static void take_graph_height(struct invocations *to, const char *value)
{
	unsigned height;

	if (sscanf(value, "%6u", &height) == 1 && height <= HEIGHT_MAX && height > to->graph_height)
		to->graph_height = height;
}

static int load_rounds(struct loading *loading, uint32_t session, const struct shard_block *block)
{
	const struct session_columns col = block_columns(block, SESSION, session);
	struct invocations *to = loading->to;

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		unsigned number;
		int len = 0;
		size_t i = 0;

		if (!strcmp(column_text(col.key, row), SESSION_GRAPH_HEIGHT))
			take_graph_height(to, column_text(col.value, row));
		if (sscanf(column_text(col.key, row), "round.%6u%n", &number, &len) != 1 || !len)
			continue;
		while (i < to->rounds.cnt &&
		       (to->rounds.items[i].session != session || to->rounds.items[i].number != number))
			i++;
		if (i == to->rounds.cnt && vec_push(&to->rounds, ((struct invocation_round){.session = session,
											    .number = number,
											    .intervals_per_s = NAN,
											    .cost_share = NAN,
											    .probe_cnt = NAN})))
			return -ENOMEM;
		take_round_key(&to->rounds.items[i], column_text(col.key, row) + len, column_text(col.value, row));
	}
	return 0;
}

static uint32_t row_of(struct loading *loading, uint32_t session, uint64_t sid)
{
	uint32_t at;

	if (loading->last_row == NONE || sid != loading->last_sid || session != loading->last_session) {
		loading->last_sid = sid;
		loading->last_session = session;
		loading->last_row =
			idmap__find(&loading->interval_ids, session, sid, &at) ? loading->intervals.items[at] : NONE;
	}
	return loading->last_row;
}

static int load_intervals(struct loading *loading, uint32_t session, const struct shard_block *block)
{
	const struct interval_columns col = block_columns(block, INTERVAL, interval);

	for (uint32_t i = 0; i < block->row_cnt; i++) {
		uint32_t row = row_of(loading, session, column_u64(col.sid, i));
		struct invocation_row *to = row == NONE ? NULL : &loading->to->rows[row];
		uint64_t pickup = column_u64(col.pickup_ts, i);

		/* The same sid twice: the one that is in the dataset is meant. */
		if (!to || column_u64(col.begin_ts, i) != loading->dataset->begin_ts[row] ||
		    column_u64(col.end_ts, i) - column_u64(col.begin_ts, i) != loading->dataset->latency_ns[row])
			continue;
		if (pickup < column_u64(col.begin_ts, i) || pickup > column_u64(col.end_ts, i)) {
			loading->to->bad_rows++;
			continue;
		}
		to->pickup_ts = pickup;
		to->tid = u32_of(col.tid, i, 0);
		to->end_tid = u32_of(col.end_tid, i, 0);
		if (!to->end_tid)
			to->end_tid = to->tid;
	}
	return 0;
}

static int function_of(struct loading *loading, uint32_t session, uint32_t number, uint32_t *func)
{
	char name[32];
	uint32_t at;

	if (idmap__find(&loading->symbol_ids, session, number, &at)) {
		*func = loading->known.items[at];
		return 0;
	}
	/* Not lost, only nameless. */
	snprintf(name, sizeof(name), "function %u", number);
	if (function_made(loading, "", name, number, func) || idmap__id(&loading->symbol_ids, session, number, &at))
		return -ENOMEM;
	loading->to->bad_rows++;
	return vec_push(&loading->known, *func);
}

/*
 * Those that are attached have no end yet.  A function that is attached again, because others were let go or the next
 * round begins, is still in the same part.
 */
static int load_probe(struct loading *loading, struct invocation_part part, bool attached)
{
	struct invocations *to = loading->to;
	struct invocation_part *newest;
	uint32_t at;

	if (idmap__id(&loading->probed_ids, part.session, part.func, &at))
		return -ENOMEM;
	newest = at < loading->newest.cnt ? &to->parts.items[loading->newest.items[at]] : NULL;
	if (newest && !newest->end_ts) {
		if (attached)
			return 0;
		newest->end_ts = part.end_ts;
		newest->why = part.why;
		return 0;
	}
	if (attached) {
		part.end_ts = 0;
		part.why = NULL;
	}
	if (newest)
		loading->newest.items[at] = (uint32_t)to->parts.cnt;
	else if (vec_push(&loading->newest, (uint32_t)to->parts.cnt))
		return -ENOMEM;
	return vec_push(&to->parts, part);
}

/* Of those that make a function unmeasured; NULL: it is none. */
static const char *why_unmeasured(const char *why)
{
	if (!strcmp(why, PROBE_OVER_BUDGET))
		return PROBE_OVER_BUDGET;
	return strcmp(why, PROBE_UNSAFE) ? NULL : PROBE_UNSAFE;
}

static int load_probes(struct loading *loading, uint32_t session, const struct shard_block *block)
{
	const struct probe_columns col = block_columns(block, PROBE, probe);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		struct invocation_part part = {session, 0, column_u64(col.ts, row), column_u64(col.ts, row),
					       why_unmeasured(column_text(col.why, row))};
		bool attached = !strcmp(column_text(col.event, row), "attached");
		uint32_t number = u32_of(col.func, row, NONE);

		if (!attached && !part.why)
			continue;
		if (number == NONE) {
			loading->to->bad_rows++;
			continue;
		}
		if (function_of(loading, session, number, &part.func) || load_probe(loading, part, attached))
			return -ENOMEM;
	}
	return 0;
}

static void forget_whole_ones(struct invocations *to)
{
	size_t left = 0;

	for (size_t i = 0; i < to->parts.cnt; i++)
		if (to->parts.items[i].end_ts)
			to->parts.items[left++] = to->parts.items[i];
	to->parts.cnt = left;
}

static int add_call(struct loading *loading, const struct call *call, size_t *room)
{
	struct invocations *to = loading->to;

	if (vec_grow_((void **)&to->calls, room, to->call_cnt, 1, sizeof(*to->calls)))
		return -ENOMEM;
	to->calls[to->call_cnt++] = *call;
	to->first[call->row + 1]++;
	return 0;
}

static const char *const doing_columns[TREE_OTHER] = {
	[TREE_RUNNABLE] = "runnable_ns", [TREE_INTERRUPTED] = "interrupted_ns",
	[TREE_LOCK] = "lock_ns",         [TREE_DISK] = "disk_ns",
	[TREE_NET] = "net_ns",           [TREE_SLEEP] = "sleep_ns",
	[TREE_FAULT] = "fault_ns",
};

/* What the parts leave of the time blocked is `other`; parts of more than there is are cut. */
static void take_doings(struct call *call, const struct shard_block_column *const *doings, uint64_t blocked_ns,
			uint32_t row)
{
	for (int d = TREE_RUNNABLE; d < TREE_OTHER; d++) {
		uint64_t ns = column_is_null(doings[d], row) ? 0 : column_u64(doings[d], row);

		if (d >= TREE_BLOCKED) {
			ns = ns < blocked_ns ? ns : blocked_ns;
			blocked_ns -= ns;
		}
		call->doing_ns[d] = ns;
	}
	call->doing_ns[TREE_OTHER] = blocked_ns;
}

static int load_calls(struct loading *loading, uint32_t session, const struct shard_block *block, size_t *room)
{
	const struct invocation_columns col = block_columns(block, INVOCATION, invocation);
	const struct shard_block_column *doings[TREE_DOING_CNT];

	for (int d = TREE_RUNNABLE; d < TREE_OTHER; d++)
		doings[d] = block_column(block, doing_columns[d], SHARD_U64);

	for (uint32_t i = 0; i < block->row_cnt; i++) {
		struct call call = {
			.begin_ts = column_u64(col.begin_ts, i),
			.end_ts = column_u64(col.end_ts, i),
			.call_addr = column_u64(col.call_addr, i),
			.row = row_of(loading, session, column_u64(col.sid, i)),
			.tid = u32_of(col.tid, i, 0),
			.seq = (uint32_t)column_u64(col.seq, i),
			.unsplit = column_is_null(doings[TREE_BLOCKED], i),
		};
		uint32_t number = u32_of(col.func, i, NONE);

		take_doings(&call, doings, column_u64(col.blocked_ns, i), i);
		/* ASLR differs between sessions; only the page offset is comparable. */
		if (loading->dataset->session_cnt > 1 && call.call_addr)
			call.call_addr = 1 + call.call_addr % 4096;
		if (call.begin_ts > call.end_ts || !call.tid || number == NONE) {
			loading->to->bad_rows++;
			continue;
		}
		if (call.row == NONE) {
			loading->to->orphans++;
			if (!loading->others)
				continue;
			call.row = (uint32_t)loading->to->row_cnt + session;
		}
		if (function_of(loading, session, number, &call.func) || add_call(loading, &call, room))
			return -ENOMEM;
	}
	return 0;
}

/* Row by row, in place: every call goes straight to where its row's are (American flag sort). */
static int group_calls(struct invocations *to)
{
	size_t *next;

	for (size_t row = 0; row < to->row_cnt_all; row++)
		to->first[row + 1] += to->first[row];
	if (!to->first[to->row_cnt_all])
		return 0;
	next = malloc((to->row_cnt_all + 1) * sizeof(*next));
	if (!next)
		return -ENOMEM;
	memcpy(next, to->first, (to->row_cnt_all + 1) * sizeof(*next));
	for (size_t row = 0; row < to->row_cnt_all; row++) {
		while (next[row] < to->first[row + 1]) {
			struct call call = to->calls[next[row]], *place = &to->calls[next[call.row]++];

			if (call.row == row)
				continue;
			to->calls[next[row]] = *place;
			*place = call;
		}
		calls_sort(to->calls + to->first[row], to->first[row + 1] - to->first[row]);
	}
	free(next);
	return 0;
}

ORDER(compare_rounds, struct invocation_round, BY(a->session, b->session), BY(a->number, b->number));

static int loading__init(struct loading *loading)
{
	const struct dataset *dataset = loading->dataset;
	struct invocations *to = loading->to;
	uint32_t id;

	to->row_cnt = dataset->row_cnt;
	to->row_cnt_all = dataset->row_cnt + dataset->session_cnt;
	to->arena = to->strings.arena = arena__new();
	to->first = calloc(to->row_cnt_all + 1, sizeof(*to->first));
	to->rows = calloc(dataset->row_cnt + 1, sizeof(*to->rows));
	if (!to->arena || !to->first || !to->rows || intern__id(&to->strings, "", &id))
		return -ENOMEM;
	for (size_t i = 0; i < dataset->session_cnt; i++)
		if (idmap__id(&loading->session_ids, dataset->session_ids[i], 0, &id))
			return -ENOMEM;
	for (size_t row = 0; row < dataset->row_cnt; row++) {
		uint32_t session;

		if (!idmap__find(&loading->session_ids, dataset->session_ids[dataset->session[row]], 0, &session) ||
		    idmap__id(&loading->interval_ids, session, dataset->sid[row], &id))
			return -ENOMEM;
		if (id == loading->intervals.cnt && vec_push(&loading->intervals, (uint32_t)row))
			return -ENOMEM;
	}
	return 0;
}

static void loading__free(struct loading *loading)
{
	idmap__free(&loading->session_ids);
	idmap__free(&loading->symbol_ids);
	vec_free(&loading->known);
	idmap__free(&loading->function_ids);
	idmap__free(&loading->probed_ids);
	vec_free(&loading->newest);
	idmap__free(&loading->interval_ids);
	vec_free(&loading->intervals);
}

static int load_all(struct loading *loading, struct shard_reader *reader)
{
	static const char *const calls[] = {"invocation"};
	static const char *const others[] = {"symbol", "session", "interval", "probe"};
	const struct shard_block *block;
	uint32_t session;
	size_t room = 0;
	int err;

	loading->last_row = NONE;
	err = shard_reader__select(reader, others, sizeof(others) / sizeof(others[0]));
	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = 0;
		if (!session_of(loading, block, &session))
			continue;
		if (!strcmp(block->table, "symbol"))
			err = load_symbols(loading, session, block);
		else if (!strcmp(block->table, "session"))
			err = load_rounds(loading, session, block);
		else if (!strcmp(block->table, "probe"))
			err = load_probes(loading, session, block);
		else
			err = load_intervals(loading, session, block);
	}
	if (err)
		return err;
	err = shard_reader__select(reader, calls, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = session_of(loading, block, &session) ? load_calls(loading, session, block, &room) : 0;
	return err;
}

int invocations_load(struct invocations *invocations, struct shard_reader *reader, const struct dataset *dataset,
		     bool others)
{
	static const char *const calls[] = {"invocation"};
	struct loading loading = {.to = invocations, .dataset = dataset, .others = others};
	const struct shard_block *block;
	int err;

	*invocations = (struct invocations){0};
	if (!dataset->row_cnt || dataset->row_cnt + dataset->session_cnt >= NONE)
		return dataset->row_cnt ? -E2BIG : 0;
	err = shard_reader__select(reader, calls, 1);
	if (!err)
		err = shard_reader__next(reader, &block);
	if (err <= 0)
		return err;
	err = loading__init(&loading);
	if (!err)
		err = load_all(&loading, reader);
	forget_whole_ones(invocations);
	if (!err)
		err = group_calls(invocations);
	if (!err)
		vec_sort(&invocations->rounds, compare_rounds);
	loading__free(&loading);
	if (err)
		invocations_free(invocations);
	return err ? err : 1;
}

void invocations_free(struct invocations *invocations)
{
	vec_free(&invocations->symbols);
	vec_free(&invocations->rounds);
	vec_free(&invocations->parts);
	free(invocations->calls);
	free(invocations->first);
	free(invocations->rows);
	intern__free(&invocations->strings);
	arena__free(invocations->arena);
	*invocations = (struct invocations){0};
}

const struct invocation_round *invocations_last_round(const struct invocations *invocations, uint32_t session)
{
	const struct invocation_round *last = NULL;

	for (size_t i = 0; i < invocations->rounds.cnt; i++) {
		const struct invocation_round *round = &invocations->rounds.items[i];

		if (round->session == session && round->number && round->end_ts > round->begin_ts)
			last = round;
	}
	return last;
}

uint64_t invocations_settled_ts(const struct invocations *invocations, uint32_t session)
{
	uint64_t ts = 0;

	for (size_t i = 0; i < invocations->parts.cnt; i++)
		if (invocations->parts.items[i].session == session && invocations->parts.items[i].end_ts > ts)
			ts = invocations->parts.items[i].end_ts;
	return ts;
}

const char *invocations_name(const struct invocations *invocations, uint32_t func)
{
	return func < invocations->symbols.cnt ? invocations_string(invocations, invocations->symbols.items[func].name)
					       : "?";
}
