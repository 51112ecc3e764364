// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static bool is_open(struct sql *sql)
{
	if (!sql->out && !sql->failed) {
		sql->out = open_memstream(&sql->text, &sql->sz);
		sql->failed = !sql->out;
	}
	return sql->out;
}

void sql__vput(struct sql *sql, const char *fmt, va_list args)
{
	if (is_open(sql))
		vfprintf(sql->out, fmt, args);
}

void sql__put(struct sql *sql, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	sql__vput(sql, fmt, args);
	va_end(args);
}

void sql__put_text(struct sql *sql, const char *text)
{
	if (!is_open(sql))
		return;
	fputc('\'', sql->out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\'' || *c == '\\')
			fprintf(sql->out, "\\%c", *c);
		else if (*c < ' ' || *c == 0x7f)
			fprintf(sql->out, "\\x%02X", *c);
		else
			fputc(*c, sql->out);
	}
	fputc('\'', sql->out);
}

void sql__put_list(struct sql *sql, const uint64_t *ids, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		sql__put(sql, "%s%" PRIu64, i ? "," : "", ids[i]);
}

char *sql__end(struct sql *sql)
{
	bool failed = sql->out && ferror(sql->out);

	if (sql->out && !fclose(sql->out) && !failed)
		return sql->text;
	free(sql->text);
	errno = ENOMEM;
	return NULL;
}

int sql__ask(struct sql *sql, struct clickhouse *server, uint32_t column_cnt, struct clickhouse_rows *rows)
{
	char *statement = sql__end(sql);
	int err = statement ? clickhouse__ask(server, statement, column_cnt, rows) : -ENOMEM;

	if (!statement)
		*rows = (struct clickhouse_rows){0};
	free(statement);
	return err;
}

int sql__do(struct sql *sql, struct clickhouse *server)
{
	char *statement = sql__end(sql);
	int err = statement ? clickhouse__do(server, statement) : -ENOMEM;

	free(statement);
	return err;
}

#define PUT_ARGS(sql, fmt)                     \
	do {                                   \
		va_list args;                  \
                                               \
		va_start(args, fmt);           \
		sql__vput((sql), (fmt), args); \
		va_end(args);                  \
	} while (0)

int sql_ask(struct clickhouse *server, uint32_t column_cnt, struct clickhouse_rows *rows, const char *fmt, ...)
{
	struct sql sql = {0};

	PUT_ARGS(&sql, fmt);
	return sql__ask(&sql, server, column_cnt, rows);
}

int sql_do(struct clickhouse *server, const char *fmt, ...)
{
	struct sql sql = {0};

	PUT_ARGS(&sql, fmt);
	return sql__do(&sql, server);
}

int sql_ask_number(struct clickhouse *server, uint64_t *number, const char *fmt, ...)
{
	struct clickhouse_rows rows;
	struct sql sql = {0};
	int err;

	PUT_ARGS(&sql, fmt);
	err = sql__ask(&sql, server, 1, &rows);
	if (!err && (rows.row_cnt != 1 || !clickhouse_u64(rows.cells[0], number)))
		err = -EBADMSG;
	clickhouse_rows__free(&rows);
	return err;
}

int sql_insert(struct clickhouse *server, const struct rowbinary *rows, const char *token, const char *fmt, ...)
{
	struct sql sql = {0};
	char *statement;
	int err = rows->err;

	if (err || !rows->row_cnt)
		return err;
	PUT_ARGS(&sql, fmt);
	statement = sql__end(&sql);
	err = statement ? clickhouse__insert(server, statement, &rows->bytes, token) : -ENOMEM;
	free(statement);
	return err;
}
