// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/schema.h"

#include "base/names.h"
#include "net/project/sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *type;
} fixed_columns[] = {
	{"day", "Date"},          {"session", "UInt64"},    {"block", "UInt64"},
	{"host", "String"},       {"type", "String"},       {"sid", "UInt64"},
	{"pid", "UInt32"},        {"begin_ns", "UInt64"},                         /* CLOCK_REALTIME of the host */
	{"latency_ns", "UInt64"}, {"weight", "Float64"},    {"bucket", "UInt16"}, /* of latency_ns, base/loghist.h */
	{"flags", "UInt32"},                                                      /* interval_flag.def */
	{"culprit", "String"},                                                    /* had the CPU for culprit_ns */
	{"culprit_ns", "UInt64"}, {"lock_name", "String"},  {"lock_owner", "String"},
	{"lock_ns", "UInt64"},    {"blocked_in", "String"}, /* system call of the longest other wait */
	{"blocked_ns", "UInt64"}, {"trace_id", "String"},   /* of the application's own tracing, hex digits; "": none */
	{"context", "UInt64"},   /* in which it ended, an id of its recording; 0: it was never handed on */
	{"forgotten", "UInt32"}, /* how often its host was, before: what is sent again then is not the same rows */
};

void schema_category_column(char column[SCHEMA_CATEGORY_SZ], int category)
{
	snprintf(column, SCHEMA_CATEGORY_SZ, "ns_%s", category_name(category));
	for (char *c = column; *c; c++)
		if (*c == '.')
			*c = '_';
}

static char *columns(bool with_types)
{
	char category[SCHEMA_CATEGORY_SZ];
	struct sql sql = {0};

	for (size_t i = 0; i < sizeof(fixed_columns) / sizeof(fixed_columns[0]); i++)
		sql__put(&sql, "%s%s%s%s", i ? "," : "", fixed_columns[i].name, with_types ? " " : "",
			 with_types ? fixed_columns[i].type : "");
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		schema_category_column(category, c);
		sql__put(&sql, ",%s%s", category, with_types ? " UInt64" : "");
	}
	return sql__end(&sql);
}

char *schema_interval_columns(void)
{
	return columns(false);
}

char *schema_interval_definition(void)
{
	return columns(true);
}

bool schema_server__parse(struct schema_server *server, const char *text)
{
	int end = 0;

	*server = (struct schema_server){0};
	if (strlen(text) > 64 || sscanf(text, "%4u.%4u%n", &server->major, &server->minor, &end) != 2)
		return false;
	if (text[end] && text[end] != '.')
		return false;
	server->tokens = server->major > SCHEMA_TOKENS_MAJOR ||
			 (server->major == SCHEMA_TOKENS_MAJOR && server->minor >= SCHEMA_TOKENS_MINOR);
	server->ignores_again = server->tokens;
	return true;
}

/*
 * Migrations: the statements that lead from version - 1 to version.  Each can be carried out again: a projector that is
 * killed in the middle leaves no version row.  %d: the database; %c: the columns of `intervals`; %s: sums of the
 * categories; %t: how the server is to remember INSERTs; CLUSTER: a table that only
 * clusters have (schema_cluster.c).  A statement is never changed once it was released.
 *
 * Clusters begin with SCHEMA_FIRST_ON_CLUSTER: up to it only tables that are still there are made on them.
 */
#define SCHEMA_FIRST_ON_CLUSTER 5

static const struct {
	unsigned version;
	const char *statement;
} migrations[] = {
	{1, "CREATE TABLE IF NOT EXISTS %d.intervals (%c) ENGINE = MergeTree PARTITION BY day "
	    "ORDER BY (type, host, session, begin_ns) "
	    "SETTINGS index_granularity = 8192, parts_to_delay_insert = 1000, parts_to_throw_insert = 3000%t"},
	{1,
	 "CREATE TABLE IF NOT EXISTS %d.blocks (session UInt64, block UInt64, day Date, host String, row_cnt UInt64, "
	 "at DateTime) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (session, block)"},
	{1, "CREATE TABLE IF NOT EXISTS %d.sessions (session UInt64, host String, kernel String, comm String, "
	    "recording String, begin_ns UInt64, end_ns UInt64, seen UInt64, kept UInt64, version UInt64) "
	    "ENGINE = ReplacingMergeTree(version) ORDER BY session"},
	{1,
	 "CREATE TABLE IF NOT EXISTS %d.facts (session UInt64, key String, host String, value String, version UInt64) "
	 "ENGINE = ReplacingMergeTree(version) ORDER BY (session, key)"},
	{1,
	 "CREATE TABLE IF NOT EXISTS %d.loss (session UInt64, class String, host String, emitted UInt64, lost UInt64, "
	 "version UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (session, class)"},
	{1,
	 "CREATE TABLE IF NOT EXISTS %d.causes (session UInt64, rank UInt32, host String, day Date, category String, "
	 "share Float64, share_lo Float64, share_hi Float64, what String, kind String, role String, type String, "
	 "function String, call_path String, object String, culprit String, culprit_host String, late_ns Float64, "
	 "typical_ns Float64, tail_weight Float64, slowest_sid UInt64, version UInt64) "
	 "ENGINE = ReplacingMergeTree(version) ORDER BY (session, rank)"},
	{2,
	 "CREATE TABLE IF NOT EXISTS %d.rollup_hosts (day Date, generation UInt64, type String, host String, session "
	 "UInt64, bucket UInt16, row_cnt UInt64, w Float64, w2 Float64, begin_min UInt64, begin_max UInt64%s) "
	 "ENGINE = MergeTree PARTITION BY (day, generation) ORDER BY (type, host, session, bucket)"},
	{2, "CREATE TABLE IF NOT EXISTS %d.rollup_times (day Date, generation UInt64, type String, minute UInt32, "
	    "bucket UInt16, row_cnt UInt64, w Float64, w2 Float64, begin_min UInt64, begin_max UInt64) "
	    "ENGINE = MergeTree PARTITION BY (day, generation) ORDER BY (type, minute, bucket)"},
	{2, "CREATE TABLE IF NOT EXISTS %d.rollup_days (day Date, generation UInt64, row_cnt UInt64, begin_min UInt64, "
	    "begin_max UInt64) ENGINE = MergeTree ORDER BY (day, generation)"},
	/* The days first: no generation of before holds. */
	{3, "DROP TABLE IF EXISTS %d.rollup_days"},
	{3, "DROP TABLE IF EXISTS %d.rollup_hosts"},
	{3, "CREATE TABLE IF NOT EXISTS %d.rollup_late (day Date, generation UInt64, type String, host String, session "
	    "UInt64, bucket UInt16, row_cnt UInt64, w Float64, w2 Float64, begin_min UInt64, begin_max UInt64%s) "
	    "ENGINE = MergeTree PARTITION BY (day, generation) ORDER BY (bucket, type, host, session)"},
	{3, "CREATE TABLE IF NOT EXISTS %d.sketches (day Date, generation UInt64, every UInt8, type String, host "
	    "String, session UInt64, row_cnt UInt64, w Float64, w2 Float64, begin_min UInt64, begin_max UInt64, "
	    "buckets Array(UInt16), weights Array(Float64)) "
	    "ENGINE = MergeTree PARTITION BY (day, generation) ORDER BY (every, type, host, session)"},
	{3, "CREATE TABLE IF NOT EXISTS %d.clocks (session UInt64, host String, offset_ns Int64, at DateTime) "
	    "ENGINE = MergeTree ORDER BY session"},
	{3, "CREATE TABLE IF NOT EXISTS %d.forgotten (host String, at DateTime) ENGINE = MergeTree ORDER BY host"},
	{3, "CREATE TABLE IF NOT EXISTS %d.rollup_days (day Date, generation UInt64, row_cnt UInt64, begin_min UInt64, "
	    "begin_max UInt64) ENGINE = MergeTree ORDER BY (day, generation)"},
	{4, "ALTER TABLE %d.intervals ADD COLUMN trace_id String"},
	{4, "ALTER TABLE %d.intervals ADD COLUMN context UInt64"},
	{4, "CREATE TABLE IF NOT EXISTS %d.horizon (day Date, at DateTime) ENGINE = MergeTree ORDER BY day"},
	{5, "ALTER TABLE %d.intervals ADD COLUMN forgotten UInt32"},
	{5, "CREATE VIEW IF NOT EXISTS %d.server_parts AS SELECT database, table, partition_id, active, rows FROM "
	    "system.parts"},
	{5, "CLUSTER server_mutations"},
	/* Under other names: what is dropped and made again at the same place in ZooKeeper may come back. */
	{6, "DROP TABLE IF EXISTS %d.rollup_days"},
	{6, "DROP TABLE IF EXISTS %d.sketches"},
	{6, "CREATE TABLE IF NOT EXISTS %d.histograms (day Date, generation UInt64, every UInt8, type String, host "
	    "String, session UInt64, first UInt16, row_cnt UInt64, w Float64, w2 Float64, begin_min UInt64, begin_max "
	    "UInt64, weights Array(Float64)) "
	    "ENGINE = MergeTree PARTITION BY (day, generation) ORDER BY (every, type, host, session, first)"},
	{6, "CREATE TABLE IF NOT EXISTS %d.summed_days (day Date, generation UInt64, row_cnt UInt64, begin_min UInt64, "
	    "begin_max UInt64) ENGINE = MergeTree ORDER BY (day, generation)"},
	/* Causes of whole sessions: analyses make them anew, by the hour. */
	{7, "DROP TABLE IF EXISTS %d.causes"},
	{7, "CREATE TABLE IF NOT EXISTS %d.segment_causes (session UInt64, hour UInt32, rank UInt32, host String, day "
	    "Date, begin_ns UInt64, end_ns UInt64, category String, share Float64, share_lo Float64, share_hi Float64, "
	    "what String, kind String, role String, type String, function String, call_path String, object String, "
	    "culprit String, culprit_host String, late_ns Float64, typical_ns Float64, tail_weight Float64, late_sid "
	    "UInt64, version UInt64) ENGINE = ReplacingMergeTree(version) PARTITION BY day ORDER BY (session, hour, "
	    "rank)"},
	{7, "CREATE TABLE IF NOT EXISTS %d.late_roots (day Date, session UInt64, hour UInt32, sid UInt64, host String, "
	    "rank UInt32, ns UInt64, latency_ns UInt64, weight Float64, version UInt64) "
	    "ENGINE = ReplacingMergeTree(version) PARTITION BY day ORDER BY (session, hour, sid)"},
};

static void put_category_sums(struct sql *sql)
{
	char column[SCHEMA_CATEGORY_SZ];

	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		schema_category_column(column, c);
		sql__put(sql, ", %s Float64", column);
	}
}

static char *statement_of(const char *pattern, const char *database, const struct schema_server *about)
{
	char *definition = schema_interval_definition();
	struct sql sql = {0};

	if (!definition)
		return NULL;
	for (const char *c = pattern; *c; c++) {
		if (*c != '%') {
			sql__put(&sql, "%c", *c);
			continue;
		}
		c++;
		if (*c == 'd')
			sql__put(&sql, "%s", database);
		else if (*c == 'c')
			sql__put(&sql, "%s", definition);
		else if (*c == 's')
			put_category_sums(&sql);
		else if (about->cluster[0])
			sql__put(&sql, ", replicated_deduplication_window = 10000");
		else if (about->tokens)
			sql__put(&sql, ", non_replicated_deduplication_window = 10000");
	}
	free(definition);
	return sql__end(&sql);
}

static int do_formatted(struct clickhouse *server, const char *pattern, const struct schema_server *about)
{
	char *statement = statement_of(pattern, clickhouse__database(server), about);
	int err = statement ? clickhouse__do(server, statement) : -ENOMEM;
	int code = err == -EPROTO ? clickhouse__code(server) : 0;

	/* 18.16 has no ADD COLUMN IF NOT EXISTS, and a table that version 1 has just made has all columns. */
	if (statement && !strncmp(statement, "ALTER", 5) &&
	    (code == CLICKHOUSE_DUPLICATE_COLUMN || code == CLICKHOUSE_ILLEGAL_COLUMN))
		err = 0;
	/* Servers that are away carry it out when they are back. */
	if (code == CLICKHOUSE_TIMEOUT_EXCEEDED && about->cluster[0])
		err = 0;
	free(statement);
	return err;
}

static int do_on_cluster(struct clickhouse *server, const char *pattern, const struct schema_server *about)
{
	int err = 0;

	for (int local = schema_cluster_has_local(pattern); !err && local >= 0; local--) {
		char *statement =
			schema_cluster_statement(pattern, clickhouse__database(server), about->cluster, local);

		err = statement ? do_formatted(server, statement, about) : -errno;
		free(statement);
	}
	return err;
}

int schema_alter(struct clickhouse *server, const struct schema_server *about, const char *table, const char *fmt, ...)
{
	char target[SCHEMA_TARGET_SZ];
	struct sql sql = {0};
	va_list args;
	int err;

	schema_target(target, server, about, table);
	sql__put(&sql, "ALTER TABLE %s ", target);
	va_start(args, fmt);
	sql__vput(&sql, fmt, args);
	va_end(args);
	err = sql__do(&sql, server);
	return err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_TIMEOUT_EXCEEDED && about->cluster[0] ? 0 : err;
}

static void enter_cluster(struct clickhouse *server, struct schema_server *about)
{
	about->ignores_again = true;
	clickhouse__on_cluster(server);
}

/* "Distributed(fleet, …", "Distributed('fleet', …" */
static int take_cluster(struct schema_server *about, const char *engine)
{
	size_t sz;

	if (strncmp(engine, "Distributed(", 12))
		return 0;
	engine += 12 + (engine[12] == '\'');
	sz = strcspn(engine, "',");
	if (!sz || sz >= SCHEMA_CLUSTER_SZ)
		return -EBADMSG;
	memcpy(about->cluster, engine, sz);
	about->cluster[sz] = '\0';
	return schema_cluster_is_valid(about->cluster) ? 0 : -EBADMSG;
}

uint32_t schema_ttl_days(const char *engine)
{
	const char *ttl = strstr(engine, SCHEMA_TTL);
	unsigned days = 0;

	return ttl && sscanf(ttl + sizeof(SCHEMA_TTL) - 1, "%6u)", &days) == 1 ? days : 0;
}

int schema_ask(struct clickhouse *server, struct schema_server *about)
{
	struct clickhouse_rows rows = {0};
	int err;

	*about = (struct schema_server){0};
	err = sql_ask(server, 3, &rows,
		      "SELECT version(), maxIf(engine_full, name = 'intervals'), max(engine_full) FROM system.tables "
		      "WHERE database = '%s' AND name IN ('intervals', 'intervals_local')",
		      clickhouse__database(server));
	if (!err && (rows.row_cnt != 1 || !schema_server__parse(about, rows.cells[0])))
		err = -EBADMSG;
	if (!err)
		err = take_cluster(about, rows.cells[1]);
	/* Of the two that of MergeTree is the later one. */
	if (!err)
		about->ttl_days = schema_ttl_days(rows.cells[2]);
	if (!err && about->cluster[0])
		enter_cluster(server, about);
	clickhouse_rows__free(&rows);
	return err;
}

/* 0 where there are no tables, or no database. */
static int ask_schema_version(struct clickhouse *server, uint64_t *version, bool *has_database)
{
	int err = sql_ask_number(server, version, "SELECT toUInt64(max(version)) FROM %s.version",
				 clickhouse__database(server));

	*has_database = err != -EPROTO || clickhouse__code(server) != CLICKHOUSE_NO_SUCH_DATABASE;
	if (!*has_database || (err == -EPROTO && clickhouse__code(server) == CLICKHOUSE_NO_SUCH_TABLE)) {
		*version = 0;
		return 0;
	}
	return err;
}

/* Whether a later statement drops the table that this one makes. */
static bool is_dropped(size_t from)
{
	const char *name = strchr(migrations[from].statement, '.');
	size_t sz = name ? strcspn(name, " ") : 0;

	for (size_t i = from; name && i < sizeof(migrations) / sizeof(migrations[0]); i++) {
		const char *dropped = strchr(migrations[i].statement, '.');

		if (!strncmp(migrations[i].statement, "DROP", 4) && !strncmp(dropped, name, sz) && !dropped[sz])
			return true;
	}
	return false;
}

static int migrate(struct clickhouse *server, const struct schema_server *about, uint64_t from, size_t i)
{
	const char *statement = migrations[i].statement;
	bool creates = !strncmp(statement, "CREATE", 6) || !strncmp(statement, "CLUSTER", 7);

	if (!about->cluster[0])
		return strncmp(statement, "CLUSTER", 7) ? do_formatted(server, statement, about) : 0;
	if (!from && migrations[i].version <= SCHEMA_FIRST_ON_CLUSTER && (!creates || is_dropped(i)))
		return 0;
	return do_on_cluster(server, statement, about);
}

/* Chooses the cluster for tables that do not exist yet. */
static int choose_cluster(struct clickhouse *server, const char *cluster, uint64_t version, struct schema_server *about)
{
	if (!cluster || !strcmp(about->cluster, cluster))
		return 0;
	if (version || about->cluster[0])
		return -EEXIST;
	snprintf(about->cluster, sizeof(about->cluster), "%s", cluster);
	enter_cluster(server, about);
	return 0;
}

static int create_database(struct clickhouse *server, const struct schema_server *about)
{
	char pattern[128];

	snprintf(pattern, sizeof(pattern), "CREATE DATABASE IF NOT EXISTS %%d%s%s%s",
		 about->cluster[0] ? " ON CLUSTER '" : "", about->cluster, about->cluster[0] ? "'" : "");
	return do_formatted(server, pattern, about);
}

int schema_apply(struct clickhouse *server, const char *cluster, struct schema_server *about)
{
	static const char versions[] = "CREATE TABLE IF NOT EXISTS %d.version (version UInt32, at DateTime) "
				       "ENGINE = MergeTree ORDER BY version";
	uint64_t version = 0;
	bool has_database = false;
	char row[64];
	int err = schema_ask(server, about) ?: ask_schema_version(server, &version, &has_database)
						       ?: choose_cluster(server, cluster, version, about);

	if (err)
		return err;
	if (version > SCHEMA_VERSION)
		return -EPROTONOSUPPORT;
	/* Where all is there, the user need not be allowed to make anything. */
	if (version == SCHEMA_VERSION)
		return 0;
	/* On a cluster another server may have none. */
	if (!has_database || about->cluster[0])
		err = create_database(server, about);
	if (!err)
		err = about->cluster[0] ? do_on_cluster(server, versions, about)
					: do_formatted(server, versions, about);
	for (unsigned next = (unsigned)version + 1; !err && next <= SCHEMA_VERSION; next++) {
		for (size_t i = 0; !err && i < sizeof(migrations) / sizeof(migrations[0]); i++)
			if (migrations[i].version == next)
				err = migrate(server, about, version, i);
		snprintf(row, sizeof(row), "INSERT INTO %%d.version SELECT %u, now()", next);
		if (!err)
			err = do_formatted(server, row, about);
	}
	return err;
}
