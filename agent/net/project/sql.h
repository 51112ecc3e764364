/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statements as text, with values quoted so that nothing of them is read as SQL. */
#ifndef WHYLATE_NET_PROJECT_SQL_H
#define WHYLATE_NET_PROJECT_SQL_H

#include "net/project/clickhouse.h"
#include "net/project/rowbinary.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* A statement being built: {0}, puts, then sql__end(), __ask() or __do(), which return the error of a put. */
struct sql {
	FILE *out;
	char *text;
	size_t sz;
	bool failed;
};

void sql__put(struct sql *sql, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sql__vput(struct sql *sql, const char *fmt, va_list args);
/* 'text', whatever bytes are in it. */
void sql__put_text(struct sql *sql, const char *text);
/* ids separated by commas. */
void sql__put_list(struct sql *sql, const uint64_t *ids, size_t cnt);
/* Ends the statement and asks it: 0, -ENOMEM or as clickhouse__ask(); *rows to be freed in any case. */
int sql__ask(struct sql *sql, struct clickhouse *server, uint32_t column_cnt, struct clickhouse_rows *rows);
/* Likewise: 0, -ENOMEM or as clickhouse__do(). */
int sql__do(struct sql *sql, struct clickhouse *server);
/* The statement, to be freed by the caller; NULL and ENOMEM. */
char *sql__end(struct sql *sql);

/* A whole statement without quoted values. */
int sql_ask(struct clickhouse *server, uint32_t column_cnt, struct clickhouse_rows *rows, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int sql_do(struct clickhouse *server, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The answer is one number; -EBADMSG if not. */
int sql_ask_number(struct clickhouse *server, uint64_t *number, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "INSERT …" of the rows; without rows nothing is sent.  rows->err if it is set. */
int sql_insert(struct clickhouse *server, const struct rowbinary *rows, const char *token, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
