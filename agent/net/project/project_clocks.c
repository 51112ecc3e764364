// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <time.h>

#define SESSIONS_ASKED 500 /* in one statement */

static bool read_offset(const char *cell, int64_t *offset_ns)
{
	char *end;

	errno = 0;
	*offset_ns = strtoll(cell, &end, 10);
	return *cell && !*end && !errno;
}

static int ask(struct projector *projector, const uint64_t *ids, size_t cnt)
{
	struct clickhouse_rows rows = {0};
	struct sql sql = {0};
	int err;

	/* The first one that was put holds, as the first anchors do. */
	sql__put(&sql, "SELECT session, argMin(offset_ns, at) FROM %s.clocks WHERE session IN (",
		 clickhouse__database(projector->server));
	sql__put_list(&sql, ids, cnt);
	sql__put(&sql, ") GROUP BY session");
	err = sql__ask(&sql, projector->server, 2, &rows);
	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		struct project_session *session;
		int64_t offset_ns;
		uint64_t id;
		uint32_t no;

		if (!clickhouse_u64(rows.cells[2 * i], &id) || !read_offset(rows.cells[2 * i + 1], &offset_ns)) {
			err = -EBADMSG;
		} else if (idmap__find(&projector->session_ids, id, 0, &no)) {
			session = &projector->sessions.items[no];
			session->clock_shared = true;
			session->clock_ns = session->clock_known ? session->clock_ns : offset_ns;
			session->clock_known = true;
		}
	}
	clickhouse_rows__free(&rows);
	return err;
}

int projector__take_clocks(struct projector *projector)
{
	VEC(uint64_t) ids = {0};
	int err = 0;

	for (size_t s = 0; !err && s < projector->sessions.cnt; s++)
		if (!projector->sessions.items[s].clock_shared)
			err = vec_push(&ids, projector->sessions.items[s].id);
	for (size_t i = 0; !err && i < ids.cnt; i += SESSIONS_ASKED)
		err = ask(projector, ids.items + i, ids.cnt - i < SESSIONS_ASKED ? ids.cnt - i : SESSIONS_ASKED);
	vec_free(&ids);
	/* A database of an older whylate. */
	return err == -EPROTO && clickhouse__code(projector->server) == CLICKHOUSE_NO_SUCH_TABLE ? 0 : err;
}

int projector__put_clocks(struct projector *projector)
{
	struct rowbinary rows = {0};
	int err;

	for (size_t s = 0; s < projector->sessions.cnt; s++) {
		const struct project_session *session = &projector->sessions.items[s];
		const char *host = session->host[0] ? session->host : project_session__fact(session, "host");

		if (session->clock_shared || !session->clock_known)
			continue;
		rowbinary__u64(&rows, session->id);
		rowbinary__str(&rows, host);
		rowbinary__u64(&rows, (uint64_t)session->clock_ns);
		rowbinary__u32(&rows, (uint32_t)time(NULL));
		rowbinary__end_row(&rows);
	}
	err = sql_insert(projector->server, &rows, NULL,
			 "INSERT INTO %s.clocks (session,host,offset_ns,at) FORMAT RowBinary",
			 clickhouse__database(projector->server));
	rowbinary__free(&rows);
	for (size_t s = 0; !err && s < projector->sessions.cnt; s++)
		projector->sessions.items[s].clock_shared |= projector->sessions.items[s].clock_known;
	return err;
}
