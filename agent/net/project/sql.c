// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

int sql__begin(struct sql *sql)
{
	*sql = (struct sql){0};
	sql->out = open_memstream(&sql->text, &sql->sz);
	return sql->out ? 0 : -ENOMEM;
}

void sql__put(struct sql *sql, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(sql->out, fmt, args);
	va_end(args);
}

void sql__put_text(struct sql *sql, const char *text)
{
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
		fprintf(sql->out, "%s%" PRIu64, i ? "," : "", ids[i]);
}

char *sql__end(struct sql *sql)
{
	int failed = ferror(sql->out);

	if (fclose(sql->out) || failed) {
		free(sql->text);
		return NULL;
	}
	return sql->text;
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
