/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The database's tables and how they came to be.  SQL that ClickHouse 18.16 and today's read alike.
 *
 *   version    the migrations that were applied
 *   intervals  a row for each kept interval; all rows of a stored block have the block's day, which is the partition
 *   blocks     the stored blocks that are in `intervals`, once that is certain; one may be in it twice
 *   clocks     from a session's clock to the wall's: for blocks of it that another collector has without its anchors
 *   forgotten  a row each time that a host was forgotten: its blocks' tokens are others from then on
 *   sessions, facts, loss   state of a session: of rows with the same key the one with the largest `version` holds
 *   segment_causes, late_roots   of an hour of a session: rows of the hour's largest `version` in segment_causes hold
 *   histograms, rollup_late, rollup_times, summed_days   sums of the rows of whole days (project_rollups.c)
 *   server_parts   the server's own table of parts; on a cluster that, and server_mutations, of a server of each shard
 *
 * On a cluster a table T is Distributed over tables T_local, which are replicated (schema_cluster.c).
 */
#ifndef WHYLATE_NET_PROJECT_SCHEMA_H
#define WHYLATE_NET_PROJECT_SCHEMA_H

#include "net/project/clickhouse.h"

#define SCHEMA_VERSION 7

/* From the first of them that has them: insert_deduplication_token. */
#define SCHEMA_TOKENS_MAJOR 22
#define SCHEMA_TOKENS_MINOR 2

#define SCHEMA_CLUSTER_SZ 65
#define SCHEMA_TTL        "TTL day + toIntervalDay("

struct schema_server {
	unsigned major, minor;
	bool tokens;
	char cluster[SCHEMA_CLUSTER_SZ]; /* that the tables are on; "": on this server alone */
	uint32_t ttl_days;               /* after which the server itself drops rows of `intervals`; 0: it does not */
	/* A second INSERT of a block has no effect: by its token, or on a cluster because its rows are the same. */
	bool ignores_again;
};

/* "18.16.1", "25.3.2.39": false where it is no version. */
bool schema_server__parse(struct schema_server *server, const char *text);
/* Asks what server this is, and whether the database is on a cluster; statements are carried out accordingly then. */
int schema_ask(struct clickhouse *server, struct schema_server *about);
/*
 * Creates the database and its tables, and applies what is missing; asks only, where nothing is.  `cluster` NULL: where
 * the tables are, or on this server alone.  0; -EPROTONOSUPPORT: a later whylate made them; -EEXIST: they are not on
 * that cluster; else as clickhouse__ask().
 */
int schema_apply(struct clickhouse *server, const char *cluster, struct schema_server *about);

/* "… TTL day + toIntervalDay(92) …" of a table's definition: the days, 0: none. */
uint32_t schema_ttl_days(const char *engine);

/* A name that needs no escapes. */
bool schema_cluster_is_valid(const char *cluster);
/*
 * What ALTER changes: "DATABASE.TABLE", on a cluster "DATABASE.TABLE_local ON CLUSTER 'NAME'".  Servers that are away
 * carry it out when they are back: schema_alter() does not wait for them.
 */
#define SCHEMA_TARGET_SZ 224
void schema_target(char target[SCHEMA_TARGET_SZ], const struct clickhouse *server, const struct schema_server *about,
		   const char *table);
/* "ALTER TABLE TARGET …".  0 or as clickhouse__do(). */
int schema_alter(struct clickhouse *server, const struct schema_server *about, const char *table, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The columns of `intervals` in the order in which rows are written: "day,session,…"; to be freed, NULL: no memory. */
char *schema_interval_columns(void);
/* The same with types, for CREATE. */
char *schema_interval_definition(void);
/* The column of a category: "ns_irq_hard". */
#define SCHEMA_CATEGORY_SZ 32
void schema_category_column(char column[SCHEMA_CATEGORY_SZ], int category);

/*
 * Of "CREATE TABLE IF NOT EXISTS %d.NAME (COLUMNS) ENGINE = …" and "DROP TABLE IF EXISTS %d.NAME": the same for each
 * server of a cluster (local), and for the table that spreads over those; to be freed.  NULL and errno: no memory, or
 * no such statement (EINVAL).
 */
char *schema_cluster_statement(const char *pattern, const char *database, const char *cluster, bool local);
/* Not of what only tells of the server's own tables. */
bool schema_cluster_has_local(const char *pattern);

#endif
