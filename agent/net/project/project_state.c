// SPDX-License-Identifier: GPL-2.0-or-later
/* What sessions say of themselves.  Rows with the same key replace each other, so that a second INSERT does no harm. */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BODY_MAX (4u << 20) /* then it is sent */

const char *project_session__host(const struct project_session *session)
{
	return session->host[0] ? session->host : project_session__fact(session, "host") ?: "";
}

int projector__send(struct projector *projector, struct rowbinary *rows, const char *table_and_columns)
{
	int err = sql_insert(projector->server, rows, NULL, "INSERT INTO %s.%s FORMAT RowBinary",
			     clickhouse__database(projector->server), table_and_columns);

	rowbinary__reset(rows);
	return err;
}

static uint64_t number_of(const struct project_session *session, const char *key)
{
	const char *text = project_session__fact(session, key);
	uint64_t number;

	return text && clickhouse_u64(text, &number) ? number : 0;
}

uint64_t project_session__wall_ns(const struct project_session *session, uint64_t ts)
{
	return session->clock_known && ts ? ts + (uint64_t)session->clock_ns : 0;
}

static void put_session(struct rowbinary *rows, const struct project_session *session)
{
	uint64_t begin_ts = number_of(session, "begin_ts"), end_ts = number_of(session, "end_ts");

	if (!begin_ts && session->min_ts <= session->max_ts)
		begin_ts = session->min_ts;
	if (!end_ts && session->min_ts <= session->max_ts)
		end_ts = session->max_ts;
	rowbinary__u64(rows, session->id);
	rowbinary__str(rows, project_session__host(session));
	rowbinary__str(rows, project_session__fact(session, "kernel"));
	rowbinary__str(rows, project_session__fact(session, "comm"));
	rowbinary__str(rows, session->recording);
	rowbinary__u64(rows, project_session__wall_ns(session, begin_ts));
	rowbinary__u64(rows, project_session__wall_ns(session, end_ts));
	rowbinary__u64(rows, number_of(session, "intervals_seen"));
	rowbinary__u64(rows, session->interval_rows);
	rowbinary__u64(rows, session->version);
	rowbinary__end_row(rows);
}

/* What hosts may have in common: not what counts, times or names one recording. */
static bool is_common(const char *key)
{
	static const char *const ends[] = {"_ns",       "_ts",      "_pids",     "pid",    "host",
					   "_received", "_written", "rows_kept", "replies"};
	static const char *const begins[] = {"note.",  "round.", "windows",    "intervals_",   "stack",      "segment",
					     "wakeup", "edge",   "handoff",    "detail_",      "invocation", "probe_",
					     "hw_",    "cost_",  "target_cpu", "graph_height", "censored_",  "agent_"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(key, ends[i]) || text_ends(key, ends[i]))
			return false;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(key, begins[i], strlen(begins[i])))
			return false;
	return true;
}

static void put_facts(const struct projector *projector, struct rowbinary *rows, const struct project_session *session)
{
	for (size_t i = 0; i < session->facts.cnt; i++) {
		const struct project_fact *fact = &session->facts.items[i];
		char buf[PROJECT_REDACTED_SZ];

		if (!is_common(fact->key))
			continue;
		rowbinary__u64(rows, session->id);
		rowbinary__str(rows, fact->key);
		rowbinary__str(rows, project_session__host(session));
		rowbinary__str(rows, strcmp(fact->key, "cmdline") ? fact->value
								  : projector__redacted(projector, fact->value, buf));
		rowbinary__u64(rows, session->version);
		rowbinary__end_row(rows);
	}
}

static void put_losses(struct rowbinary *rows, const struct project_session *session)
{
	for (size_t i = 0; i < session->losses.cnt; i++) {
		const char *class = session->losses.items[i].class;
		uint64_t emitted = 0, lost = 0;
		bool told = false;

		for (size_t j = 0; j < session->losses.cnt; j++) {
			if (strcmp(session->losses.items[j].class, class))
				continue;
			told |= j < i;
			emitted += session->losses.items[j].emitted;
			lost += session->losses.items[j].lost;
		}
		if (told)
			continue;
		rowbinary__u64(rows, session->id);
		rowbinary__str(rows, class);
		rowbinary__str(rows, project_session__host(session));
		rowbinary__u64(rows, emitted);
		rowbinary__u64(rows, lost);
		rowbinary__u64(rows, session->version);
		rowbinary__end_row(rows);
	}
}

#define SESSIONS "sessions (session,host,kernel,comm,recording,begin_ns,end_ns,seen,kept,version)"
#define FACTS    "facts (session,key,host,value,version)"
#define LOSS     "loss (session,class,host,emitted,lost,version)"

static int put_sessions(struct projector *projector)
{
	struct rowbinary sessions = {0}, facts = {0}, losses = {0};
	size_t from = 0;
	int err = 0;

	for (size_t s = 0; !err && s < projector->sessions.cnt; s++) {
		struct project_session *session = &projector->sessions.items[s];
		bool last = s + 1 == projector->sessions.cnt;

		if (session->sent_version != session->version) {
			put_session(&sessions, session);
			put_facts(projector, &facts, session);
			put_losses(&losses, session);
		}
		if (!last && sessions.bytes.cnt < BODY_MAX && facts.bytes.cnt < BODY_MAX && losses.bytes.cnt < BODY_MAX)
			continue;
		/* The session itself last: what it says of its version holds for all. */
		err = projector__send(projector, &facts, FACTS);
		err = err ?: projector__send(projector, &losses, LOSS);
		err = err ?: projector__send(projector, &sessions, SESSIONS);
		for (; !err && from <= s; from++)
			projector->sessions.items[from].sent_version = projector->sessions.items[from].version;
	}
	rowbinary__free(&sessions);
	rowbinary__free(&facts);
	rowbinary__free(&losses);
	return err;
}

/* Which versions the database has of the sessions. */
static int ask_versions(struct projector *projector)
{
	struct clickhouse_rows rows;
	int err = sql_ask(projector->server, 2, &rows, "SELECT session, max(version) FROM %s.sessions GROUP BY session",
			  clickhouse__database(projector->server));

	for (size_t i = 0; !err && i < rows.row_cnt; i++) {
		uint64_t id, version;
		uint32_t no;

		if (!clickhouse_u64(rows.cells[2 * i], &id) || !clickhouse_u64(rows.cells[2 * i + 1], &version))
			err = -EBADMSG;
		else if (idmap__find(&projector->session_ids, id, 0, &no))
			projector->sessions.items[no].sent_version = version;
	}
	clickhouse_rows__free(&rows);
	return err;
}

int projector__put_state(struct projector *projector)
{
	bool stale = false;

	for (size_t s = 0; s < projector->sessions.cnt; s++)
		stale |= projector->sessions.items[s].sent_version != projector->sessions.items[s].version;
	return stale ? ask_versions(projector) ?: put_sessions(projector) : 0;
}
