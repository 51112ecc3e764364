/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements as text, with values quoted so that nothing of them is read as SQL. */
#ifndef WHYLATE_NET_PROJECT_SQL_H
#define WHYLATE_NET_PROJECT_SQL_H

#include "net/project/clickhouse.h"

#include <stdint.h>
#include <stdio.h>

/* A statement under way: sql__begin(), puts, sql__end(). */
struct sql {
	FILE *out;
	char *text;
	size_t sz;
};

/* 0 or -ENOMEM. */
int sql__begin(struct sql *sql);
void sql__put(struct sql *sql, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 'text', whatever bytes are in it. */
void sql__put_text(struct sql *sql, const char *text);
/* ids separated by commas. */
void sql__put_list(struct sql *sql, const uint64_t *ids, size_t cnt);
/* Ends the statement and asks it: 0, -ENOMEM or as clickhouse__ask(); *rows to be freed in any case. */
int sql__ask(struct sql *sql, struct clickhouse *server, uint32_t column_cnt, struct clickhouse_rows *rows);
/* The statement, to be freed by the caller; NULL: no memory. */
char *sql__end(struct sql *sql);

#endif
