// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/questions.h"

#include "net/project/project_internal.h"
#include "net/project/sql.h"

#include <whylate/record.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_NS UINT64_C(86400000000000)

static int ask(struct clickhouse *server, struct sql *sql, uint32_t column_cnt, struct clickhouse_rows *rows)
{
	char *statement = sql__end(sql);
	int err = statement ? clickhouse__ask(server, statement, column_cnt, rows) : -ENOMEM;

	if (!statement)
		*rows = (struct clickhouse_rows){0};
	free(statement);
	return err;
}

/* A glob as a pattern of LIKE, in quotes. */
static void put_glob(struct sql *sql, const char *glob)
{
	char pattern[512];
	size_t sz = 0;

	for (const char *c = glob; *c && sz + 3 < sizeof(pattern); c++) {
		if (*c == '%' || *c == '_' || *c == '\\')
			pattern[sz++] = '\\';
		pattern[sz++] = *c == '*' ? '%' : *c == '?' ? '_' : *c;
	}
	pattern[sz] = '\0';
	sql__put_text(sql, pattern);
}

/* Of `intervals`; the day is the block's, whose requests may begin on the next one. */
static void put_filter(struct sql *sql, const struct question_filter *filter)
{
	sql__put(sql, " WHERE weight > 0");
	if (filter->type) {
		sql__put(sql, " AND type = ");
		sql__put_text(sql, filter->type);
	}
	if (filter->host) {
		sql__put(sql, " AND host LIKE ");
		put_glob(sql, filter->host);
	}
	if (filter->since_ns)
		sql__put(sql, " AND day >= toDate(%" PRIu64 ") AND begin_ns >= %" PRIu64,
			 filter->since_ns / DAY_NS ? filter->since_ns / DAY_NS - 1 : 0, filter->since_ns);
	if (filter->until_ns)
		sql__put(sql, " AND day <= toDate(%" PRIu64 ") AND begin_ns < %" PRIu64, filter->until_ns / DAY_NS,
			 filter->until_ns);
}

/* Of `sessions` s: those that touch the time. */
static void put_sessions(struct sql *sql, const char *database, const struct question_filter *filter)
{
	sql__put(sql,
		 "(SELECT session, argMax(recording, version) AS in_directory, argMax(host, version) AS on_host, "
		 "max(end_ns) AS end_max, min(begin_ns) AS begin_min FROM %s.sessions GROUP BY session HAVING 1",
		 database);
	if (filter->since_ns)
		sql__put(sql, " AND end_max >= %" PRIu64, filter->since_ns);
	if (filter->until_ns)
		sql__put(sql, " AND begin_min < %" PRIu64, filter->until_ns);
	if (filter->host) {
		sql__put(sql, " AND on_host LIKE ");
		put_glob(sql, filter->host);
	}
	sql__put(sql, ")");
}

/* Where groups come from: the hosts themselves, or a fact of the session. */
static void put_source(struct sql *sql, const char *database, const char *fact)
{
	sql__put(sql, " FROM %s.intervals", database);
	if (!fact)
		return;
	sql__put(sql, " ALL INNER JOIN (SELECT session, argMax(value, version) AS fact FROM %s.facts WHERE key = ",
		 database);
	sql__put_text(sql, fact);
	sql__put(sql, " GROUP BY session) AS said USING session");
}

int question_groups(struct clickhouse *server, const struct question_filter *filter, const char *fact,
		    uint32_t fold_below, struct clickhouse_rows *rows)
{
	const char *group = fact ? "fact" : "host";
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT %s, if(bucket < %u, toUInt16(0), bucket) AS class, sum(weight), sum(weight * weight)",
		 group, fold_below);
	put_source(&sql, clickhouse__database(server), fact);
	put_filter(&sql, filter);
	sql__put(&sql, " GROUP BY %s, class ORDER BY %s, class", group, group);
	return ask(server, &sql, 4, rows);
}

int question_histogram(struct clickhouse *server, const struct question_filter *filter, struct clickhouse_rows *rows)
{
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT bucket, sum(weight), sum(weight * weight), min(begin_ns), max(begin_ns)");
	put_source(&sql, clickhouse__database(server), NULL);
	put_filter(&sql, filter);
	sql__put(&sql, " GROUP BY bucket ORDER BY bucket");
	return ask(server, &sql, QUESTION_HISTOGRAM_COLUMNS, rows);
}

int question_late(struct clickhouse *server, const struct question_filter *filter, const char *fact,
		  uint32_t from_bucket, struct clickhouse_rows *rows)
{
	const char *group = fact ? "fact" : "host";
	char column[SCHEMA_CATEGORY_SZ];
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT %s, sum(weight) AS late", group);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		schema_category_column(column, c);
		sql__put(&sql, ", sum(weight * %s) / late", column);
	}
	put_source(&sql, clickhouse__database(server), fact);
	put_filter(&sql, filter);
	sql__put(&sql, " AND bucket >= %u GROUP BY %s", from_bucket, group);
	return ask(server, &sql, 2 + WL_CATEGORY_CNT, rows);
}

/* The rows of `causes` that hold: of each session those of its latest analysis. */
static void put_causes(struct sql *sql, const char *database, const struct question_filter *filter)
{
	sql__put(sql,
		 " FROM (SELECT * FROM %s.causes WHERE rank > 0 AND (session, version) IN "
		 "(SELECT session, max(version) FROM %s.causes GROUP BY session)",
		 database, database);
	/* A root's type is that of the request it worked for, which need not be the late one's. */
	sql__put(sql, ") AS found ALL INNER JOIN ");
	put_sessions(sql, database, filter);
	sql__put(sql, " AS recorded USING session");
}

int question_roots(struct clickhouse *server, const struct question_filter *filter, uint32_t limit,
		   struct clickhouse_rows *rows)
{
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT category, kind, role, function, object, culprit, uniqExact(on_host), "
		       "sum(share * tail_weight) AS late, sum((end_max - begin_min) / 1000000000), "
		       "argMax(what, share * tail_weight), argMax(session, share * tail_weight), "
		       "argMax(slowest_sid, share * tail_weight), argMax(on_host, share * tail_weight), "
		       "argMax(in_directory, share * tail_weight)");
	put_causes(&sql, clickhouse__database(server), filter);
	sql__put(
		&sql,
		" GROUP BY category, kind, role, function, object, culprit HAVING late > 0 ORDER BY late DESC LIMIT %u",
		limit);
	return ask(server, &sql, QUESTION_ROOTS_COLUMNS, rows);
}

int question_first_causes(struct clickhouse *server, const struct question_filter *filter, struct clickhouse_rows *rows)
{
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT on_host, what, share, session, slowest_sid, in_directory");
	put_causes(&sql, clickhouse__database(server), filter);
	sql__put(&sql, " WHERE rank = 1 ORDER BY on_host, end_max DESC");
	return ask(server, &sql, QUESTION_FIRST_COLUMNS, rows);
}

int question_facts(struct clickhouse *server, const struct question_filter *filter, const char *const *late,
		   size_t late_cnt, struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql, "SELECT key, fact, uniqExactIf(on_host, is_late = 1), uniqExactIf(on_host, is_late = 0) FROM "
		       "(SELECT key, fact, on_host, on_host IN (");
	for (size_t i = 0; i < late_cnt; i++) {
		sql__put(&sql, i ? "," : "");
		sql__put_text(&sql, late[i]);
	}
	sql__put(&sql,
		 ") AS is_late FROM (SELECT session, key, argMax(value, version) AS fact FROM %s.facts GROUP BY "
		 "session, key) AS said ALL INNER JOIN ",
		 database);
	put_sessions(&sql, database, filter);
	sql__put(&sql, " AS recorded USING session) GROUP BY key, fact");
	return ask(server, &sql, 4, rows);
}

int question_fact_hosts(struct clickhouse *server, const struct question_filter *filter, const char *fact,
			struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql,
		 "SELECT on_host, max(fact) FROM (SELECT session, argMax(value, version) AS fact FROM %s.facts WHERE "
		 "key = ",
		 database);
	sql__put_text(&sql, fact);
	sql__put(&sql, " GROUP BY session) AS said ALL INNER JOIN ");
	put_sessions(&sql, database, filter);
	sql__put(&sql, " AS recorded USING session GROUP BY on_host");
	return ask(server, &sql, 2, rows);
}

int question_steps(struct clickhouse *server, const struct question_filter *filter, uint64_t step_ns,
		   uint32_t from_bucket, struct clickhouse_rows *rows)
{
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	sql__put(&sql,
		 "SELECT intDiv(begin_ns, %" PRIu64 ") * %" PRIu64
		 " AS step, sum(weight), sum(weight * weight), sumIf(weight, bucket >= %u)",
		 step_ns, step_ns, from_bucket);
	put_source(&sql, clickhouse__database(server), NULL);
	put_filter(&sql, filter);
	sql__put(&sql, " GROUP BY step ORDER BY step");
	return ask(server, &sql, 4, rows);
}

int question_builds(struct clickhouse *server, const struct question_filter *filter, struct clickhouse_rows *rows)
{
	const char *database = clickhouse__database(server);
	struct sql sql;

	if (sql__begin(&sql))
		return -ENOMEM;
	/* A file of the process's name is more likely its program than a library. */
	sql__put(&sql,
		 "SELECT key FROM (SELECT session, key FROM %s.facts WHERE key LIKE '" PROJECT_PATH_PREFIX
		 "%%') AS said ALL INNER JOIN (SELECT session, any(comm) AS name FROM %s.sessions GROUP BY session) AS "
		 "recorded USING "
		 "session ",
		 database, database);
	(void)filter;
	sql__put(&sql,
		 "GROUP BY key ORDER BY countIf(endsWith(key, concat('/', name))) DESC, count() DESC, key LIMIT 1");
	return ask(server, &sql, 1, rows);
}
