/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The database's tables and how they came to be.  SQL that ClickHouse 18.16 and today's read alike.
 *
 *   version    the migrations that were applied
 *   intervals  a row for each kept interval; all rows of a stored block have the block's day, which is the partition
 *   blocks     the stored blocks that are in `intervals`, once that is certain; one may be in it twice
 *   clocks     from a session's clock to the wall's: for blocks of it that another collector has without its anchors
 *   forgotten  a row each time that a host was forgotten: its blocks' tokens are others from then on
 *   sessions, facts, loss, causes   state of a session: of rows with the same key the one with the largest `version`
 * holds
 *   sketches, rollup_late, rollup_times, rollup_days   sums of the rows of whole days (project_rollups.c)
 */
#ifndef WHYLATE_NET_PROJECT_SCHEMA_H
#define WHYLATE_NET_PROJECT_SCHEMA_H

#include "net/project/clickhouse.h"

#define SCHEMA_VERSION 4

/* From the first of them that has them: insert_deduplication_token. */
#define SCHEMA_TOKENS_MAJOR 22
#define SCHEMA_TOKENS_MINOR 2

struct schema_server {
	unsigned major, minor;
	bool tokens;
};

/* "18.16.1", "25.3.2.39": false where it is no version. */
bool schema_server__parse(struct schema_server *server, const char *text);
/*
 * Creates the database and its tables, and applies what is missing; asks only, where nothing is.  0; -EPROTONOSUPPORT:
 * a later whylate made them; else as clickhouse__ask().
 */
int schema_apply(struct clickhouse *server, struct schema_server *about);

/* The columns of `intervals` in the order in which rows are written: "day,session,…"; to be freed, NULL: no memory. */
char *schema_interval_columns(void);
/* The same with types, for CREATE. */
char *schema_interval_definition(void);
/* The column of a category: "ns_irq_hard". */
#define SCHEMA_CATEGORY_SZ 32
void schema_category_column(char column[SCHEMA_CATEGORY_SZ], int category);

#endif
