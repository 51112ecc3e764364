// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables on a cluster.  Of a table T each server has a replicated T_local, and a Distributed T that writes to and reads
 * from those.  Rows of a session are on one shard, so that a block is an INSERT into one table.  The path in ZooKeeper
 * is /whylate/{shard}/DATABASE/T, the replica's name {replica}: macros of each server's configuration.
 */
#include "net/project/schema.h"
#include "net/project/sql.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool schema_cluster_is_valid(const char *cluster)
{
	size_t sz = strlen(cluster);

	for (const unsigned char *c = (const unsigned char *)cluster; *c; c++)
		if (!isalnum(*c) && *c != '_' && *c != '-' && *c != '.')
			return false;
	return sz && sz < SCHEMA_CLUSTER_SZ;
}

void schema_target(char target[SCHEMA_TARGET_SZ], const struct clickhouse *server, const struct schema_server *about,
		   const char *table)
{
	const char *cluster = about->cluster;

	snprintf(target, SCHEMA_TARGET_SZ, "%s.%s%s%s%s", clickhouse__database(server), table,
		 *cluster ? "_local ON CLUSTER '" : "", cluster, *cluster ? "'" : "");
}

/* A CREATE statement's parts, in its text. */
struct create {
	const char *name, *columns, *engine;
	int name_sz, columns_sz;
};

static bool take_apart(const char *pattern, struct create *create)
{
	static const char begin[] = "CREATE TABLE IF NOT EXISTS %d.", middle[] = ") ENGINE = ";
	const char *end;

	if (strncmp(pattern, begin, sizeof(begin) - 1))
		return false;
	create->name = pattern + sizeof(begin) - 1;
	create->name_sz = (int)strcspn(create->name, " ");
	create->columns = create->name + create->name_sz + 2;
	end = strstr(create->name, middle);
	if (!end || end < create->columns)
		return false;
	create->columns_sz = (int)(end - create->columns);
	create->engine = end + sizeof(middle) - 1;
	return true;
}

/* By session, where rows have one; %c: the columns of `intervals`, which have. */
static void put_key(struct sql *sql, const struct create *create)
{
	const char *session = strstr(create->columns, "session UInt64");
	bool has_session = !strncmp(create->columns, "%c", 2) || (session && session < create->engine);

	if (has_session)
		sql__put(sql, "cityHash64(session)");
	else
		sql__put(sql, "cityHash64(%.*s)", (int)strcspn(create->columns, " "), create->columns);
}

/* "MergeTree …", "ReplacingMergeTree(version) …" */
static void put_engine(struct sql *sql, const struct create *create, const char *database)
{
	int kind_sz = (int)strcspn(create->engine, " (");
	const char *rest = create->engine + kind_sz;

	sql__put(sql, "Replicated%.*s('/whylate/{shard}/%s/%.*s', '{replica}'", kind_sz, create->engine, database,
		 create->name_sz, create->name);
	sql__put(sql, *rest == '(' ? ", %s" : ")%s", rest + (*rest == '('));
}

/* What a server says of itself, of one server of each shard. */
static char *of_server(const char *pattern, const char *cluster)
{
	static const struct {
		const char *view, *table, *columns;
	} views[] = {
		{"server_parts", "parts",
		 "database String, table String, partition_id String, active UInt8, rows UInt64"},
		{"server_mutations", "mutations", "database String, is_done UInt8"},
	};
	struct sql sql = {0};

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		if (!strstr(pattern, views[i].view))
			continue;
		sql__put(
			&sql,
			"CREATE TABLE IF NOT EXISTS %%d.%s ON CLUSTER '%s' (%s) ENGINE = Distributed('%s', system, %s)",
			views[i].view, cluster, views[i].columns, cluster, views[i].table);
		return sql__end(&sql);
	}
	errno = EINVAL;
	return NULL;
}

bool schema_cluster_has_local(const char *pattern)
{
	return !strncmp(pattern, "CREATE TABLE", 12) || !strncmp(pattern, "DROP TABLE", 10);
}

char *schema_cluster_statement(const char *pattern, const char *database, const char *cluster, bool local)
{
	static const char drop[] = "DROP TABLE IF EXISTS %d.";
	struct create create;
	struct sql sql = {0};

	if (!schema_cluster_has_local(pattern))
		return of_server(pattern, cluster);
	if (!strncmp(pattern, drop, sizeof(drop) - 1)) {
		sql__put(&sql, "%s%s ON CLUSTER '%s'", pattern, local ? "_local" : "", cluster);
		return sql__end(&sql);
	}
	if (!take_apart(pattern, &create)) {
		errno = EINVAL;
		return NULL;
	}
	sql__put(&sql, "CREATE TABLE IF NOT EXISTS %%d.%.*s%s ON CLUSTER '%s' (%.*s) ENGINE = ", create.name_sz,
		 create.name, local ? "_local" : "", cluster, create.columns_sz, create.columns);
	if (local) {
		put_engine(&sql, &create, database);
	} else {
		sql__put(&sql, "Distributed('%s', %s, %.*s_local, ", cluster, database, create.name_sz, create.name);
		put_key(&sql, &create);
		sql__put(&sql, ")");
	}
	return sql__end(&sql);
}
