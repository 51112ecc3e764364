// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose turn it is, which blocks the database has, and how rows get into it: see project.h. */
#include "base/random.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEASE_S        30
#define SESSIONS_ASKED 200 /* in one statement */

/* The gate first: once it is gone nothing can be poured into it, and the view has nothing to pour. */
static int drop_gate(struct projector *projector, const char *suffix)
{
	const char *database = clickhouse__database(projector->server);
	int err = sql_do(projector->server, "DROP TABLE IF EXISTS %s.gate_%s", database, suffix);

	return err ?: sql_do(projector->server, "DROP TABLE IF EXISTS %s.pour_%s", database, suffix);
}

#define SUFFIX_SZ sizeof("0123456789abcdef_0123456789abcdef")

static void gate_suffix(const struct projector *projector, char suffix[SUFFIX_SZ])
{
	snprintf(suffix, SUFFIX_SZ, "%016" PRIx64 "_%016" PRIx64, projector->name, projector->gate);
}

static int make_gate(struct projector *projector)
{
	const char *database = clickhouse__database(projector->server);
	char *definition = schema_interval_definition(), suffix[SUFFIX_SZ];
	int err = definition ? 0 : -ENOMEM;

	do
		projector->gate = random_next(&projector->rng);
	while (!projector->gate);
	gate_suffix(projector, suffix);
	if (!err)
		err = sql_do(projector->server, "CREATE TABLE %s.gate_%s (%s) ENGINE = Null", database, suffix,
			     definition);
	if (!err)
		err = sql_do(projector->server,
			     "CREATE MATERIALIZED VIEW %s.pour_%s TO %s.intervals AS SELECT %s FROM %s.gate_%s",
			     database, suffix, database, projector->columns, database, suffix);
	free(definition);
	return err;
}

/* "gate_NAME_TURN": which part of a name is the suffix, NULL: it is none of ours. */
static const char *suffix_of(const char *table)
{
	const char *suffix = table + 5;

	if (strlen(table) != 5 + SUFFIX_SZ - 1 || (strncmp(table, "gate_", 5) && strncmp(table, "pour_", 5)) ||
	    strspn(suffix, "0123456789abcdef_") != SUFFIX_SZ - 1 || suffix[16] != '_')
		return NULL;
	return suffix;
}

/* 0: ours is the only gate; -EAGAIN: another projector's turn; -ESTALE: another one dropped ours. */
static int clear_gates(struct projector *projector)
{
	struct clickhouse_rows rows = {0};
	char own[SUFFIX_SZ];
	bool found = false, busy = false;
	int err;

	gate_suffix(projector, own);
	err = sql_ask(projector->server, 2, &rows,
		      "SELECT name, toUInt64(now()) - toUInt64(metadata_modification_time) FROM system.tables "
		      "WHERE database = '%s' AND (name LIKE 'gate%%' OR name LIKE 'pour%%')",
		      clickhouse__database(projector->server));
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		const char *table = rows.cells[2 * i], *suffix = suffix_of(table);
		uint64_t age_s;

		if (!suffix)
			continue;
		if (!strcmp(suffix, own)) {
			found |= *table == 'g';
			continue;
		}
		/* An age below 0, by a clock that was set back, is large. */
		if (!clickhouse_u64(rows.cells[2 * i + 1], &age_s))
			age_s = UINT64_MAX;
		if (strncmp(suffix, own, 16) && age_s < LEASE_S)
			busy = true;
		else
			err = drop_gate(projector, suffix);
	}
	clickhouse_rows__free(&rows);
	if (err)
		return err;
	return busy ? -EAGAIN : found ? 0 : -ESTALE;
}

/* A server that was away has not got what the others have until then. */
int projector__sync(struct projector *projector)
{
	static const char *const tables[] = {"intervals", "blocks"};
	int err = 0;

	for (size_t i = 0; !err && projector->about.cluster[0] && i < sizeof(tables) / sizeof(tables[0]); i++)
		err = sql_do(projector->server, "SYSTEM SYNC REPLICA %s.%s_local",
			     clickhouse__database(projector->server), tables[i]);
	/* Without it an INSERT more is sent, and ignored. */
	return err == -EPROTO && clickhouse__was_denied(projector->server) ? 0 : err;
}

int projector__take_turn(struct projector *projector)
{
	int err;

	if (projector->about.ignores_again)
		return projector__sync(projector);
	err = make_gate(projector);
	if (err == -EPROTO && clickhouse__was_denied(projector->server))
		err = -EACCES;
	if (!err)
		err = clear_gates(projector);
	projector__note_failure(projector, err);
	if (err)
		projector__end_turn(projector);
	return err == -ESTALE ? -EAGAIN : err;
}

void projector__end_turn(struct projector *projector)
{
	char suffix[SUFFIX_SZ];

	if (!projector->gate)
		return;
	gate_suffix(projector, suffix);
	/* One that stays is dropped by its successor. */
	drop_gate(projector, suffix);
	projector->gate = 0;
}

static int mark_known(struct projector *projector, struct sql *sql, bool listed)
{
	struct clickhouse_rows rows;
	int err = sql__ask(sql, projector->server, 2, &rows);

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		uint64_t session, id;
		uint32_t no;

		if (!clickhouse_u64(rows.cells[2 * i], &session) || !clickhouse_u64(rows.cells[2 * i + 1], &id)) {
			err = -EBADMSG;
		} else if (idmap__find(&projector->block_ids, session, id, &no)) {
			struct project_block *block = &projector->blocks.items[no];

			if (!block->done) {
				projector->stats.known_blocks++;
				projector->stats.known_rows += block->row_cnt;
			}
			block->done = true;
			block->listed |= listed;
		}
	}
	clickhouse_rows__free(&rows);
	return err;
}

/*
 * Those that are listed, and of the others those that are there: of sessions ids[0] … ids[cnt - 1], on the days of what
 * is pending and next to them.
 */
static int ask_sessions(struct projector *projector, const uint64_t *ids, size_t cnt, uint16_t first, uint16_t last)
{
	const char *database = clickhouse__database(projector->server);

	for (int listed = 1; listed >= 0; listed--) {
		struct sql sql = {0};
		int err;

		sql__put(&sql, "SELECT DISTINCT session, block FROM %s.%s WHERE ", database,
			 listed ? "blocks" : "intervals");
		sql__put(&sql, "day >= toDate(%u) AND day <= toDate(%u) AND ", first ? first - 1 : 0, last + 1);
		sql__put(&sql, "session IN (");
		sql__put_list(&sql, ids, cnt);
		sql__put(&sql, ")");
		err = mark_known(projector, &sql, listed);
		if (err)
			return err;
	}
	return 0;
}

int projector__ask_known(struct projector *projector)
{
	uint16_t day, first = UINT16_MAX, last = 0;
	VEC(uint64_t) ids = {0};
	int err = 0;

	for (size_t s = 0; s < projector->sessions.cnt; s++)
		projector->sessions.items[s].asked = false;
	for (size_t b = projector->pending_from; !err && b < projector->blocks.cnt; b++) {
		const struct project_block *block = &projector->blocks.items[b];
		struct project_session *session = &projector->sessions.items[block->session];

		if (block->done || block->bad || !projector__day(projector, block, &day))
			continue;
		first = day < first ? day : first;
		last = day > last ? day : last;
		if (!session->asked)
			err = vec_push(&ids, session->id);
		session->asked = true;
	}
	for (size_t i = 0; !err && i < ids.cnt; i += SESSIONS_ASKED)
		err = ask_sessions(projector, ids.items + i,
				   ids.cnt - i < SESSIONS_ASKED ? ids.cnt - i : SESSIONS_ASKED, first, last);
	vec_free(&ids);
	return err;
}

int projector__ask_forgotten(struct projector *projector)
{
	struct clickhouse_rows rows;
	int err;

	if (!projector->about.ignores_again)
		return 0;
	err = sql_ask(projector->server, 2, &rows, "SELECT host, count() FROM %s.forgotten GROUP BY host",
		      clickhouse__database(projector->server));
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		uint64_t cnt;

		if (!clickhouse_u64(rows.cells[2 * i + 1], &cnt))
			err = -EBADMSG;
		for (size_t s = 0; !err && s < projector->sessions.cnt; s++)
			if (!strcmp(projector->sessions.items[s].host, rows.cells[2 * i]))
				projector->sessions.items[s].forgotten_cnt = cnt;
	}
	clickhouse_rows__free(&rows);
	return err;
}

void project_token(char token[PROJECT_TOKEN_SZ], const struct project_session *session, uint64_t block)
{
	int len = snprintf(token, PROJECT_TOKEN_SZ, "%016" PRIx64 "%016" PRIx64, session->id, block);

	if (session->forgotten_cnt)
		snprintf(token + len, PROJECT_TOKEN_SZ - (size_t)len, "-%" PRIu64, session->forgotten_cnt);
}

int projector__insert(struct projector *projector, size_t from, size_t to)
{
	bool gateless = projector->about.ignores_again;
	char suffix[SUFFIX_SZ], token[PROJECT_TOKEN_SZ];
	int err;

	gate_suffix(projector, suffix);
	project_token(token, &projector->sessions.items[projector->blocks.items[from].session],
		      projector->blocks.items[from].id);
	if (!projector->about.tokens)
		token[0] = '\0';
	err = sql_insert(projector->server, &projector->rows, gateless ? token : NULL,
			 "INSERT INTO %s.%s%s (%s) FORMAT RowBinary", clickhouse__database(projector->server),
			 gateless ? "intervals" : "gate_", gateless ? "" : suffix, projector->columns);
	if (err)
		return err;
	projector->stats.inserts++;
	for (size_t b = from; b < to; b++)
		projector->blocks.items[b].done = true;
	return 0;
}

int projector__list_done(struct projector *projector)
{
	struct rowbinary rows = {0};
	uint16_t day;
	int err;

	for (size_t b = projector->pending_from; b < projector->blocks.cnt; b++) {
		const struct project_block *block = &projector->blocks.items[b];
		const struct project_session *session = &projector->sessions.items[block->session];

		if (!block->done || block->listed || !projector__day(projector, block, &day))
			continue;
		rowbinary__u64(&rows, session->id);
		rowbinary__u64(&rows, block->id);
		rowbinary__u16(&rows, day);
		rowbinary__str(&rows, session->host);
		rowbinary__u64(&rows, block->row_cnt);
		rowbinary__u32(&rows, (uint32_t)time(NULL));
		rowbinary__end_row(&rows);
	}
	err = sql_insert(projector->server, &rows, NULL,
			 "INSERT INTO %s.blocks (session,block,day,host,row_cnt,at) FORMAT RowBinary",
			 clickhouse__database(projector->server));
	rowbinary__free(&rows);
	for (size_t b = projector->pending_from; !err && b < projector->blocks.cnt; b++)
		projector->blocks.items[b].listed |= projector->blocks.items[b].done;
	while (!err && projector->pending_from < projector->blocks.cnt &&
	       (projector->blocks.items[projector->pending_from].listed ||
		projector->blocks.items[projector->pending_from].bad))
		projector->pending_from++;
	return err;
}
