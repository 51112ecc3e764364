// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export.h"

#include "base/utf8.h"
#include "shard/columns.h"
#include "shard/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The tables of a recording, and of one table all columns that any block of it has, in the order of appearance. */
struct names {
	char **items;
	size_t cnt, room;
};

static int names__add(struct names *names, const char *name)
{
	char *copy;

	for (size_t i = 0; i < names->cnt; i++)
		if (!strcmp(names->items[i], name))
			return 0;
	copy = strdup(name);
	if (!copy || vec_push(names, copy)) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static void names__free(struct names *names)
{
	for (size_t i = 0; i < names->cnt; i++)
		free(names->items[i]);
	vec_free(names);
}

static int select_table(struct shard_reader *reader, const char *table)
{
	return shard_reader__select(reader, table ? &table : NULL, table ? 1 : 0);
}

static int flushed(FILE *out)
{
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static void put_json_escape(FILE *out, uint32_t codepoint)
{
	if (codepoint > 0xffff)
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((codepoint - 0x10000) >> 10), 0xdc00 + (codepoint & 0x3ff));
	else
		fprintf(out, "\\u%04x", codepoint);
}

/* Writes what begins *text and needs neither a look nor an escape in any format, and steps over it. */
static void put_plain(FILE *out, const char **text)
{
	const char *end = *text;

	while (*end >= 0x20 && *end < 0x7f && *end != '"' && *end != '\\')
		end++;
	fwrite(*text, 1, (size_t)(end - *text), out);
	*text = end;
}

/* Between quotes, as JSON wants it; what is not UTF-8 or would act on a terminal is escaped or replaced. */
static void put_json_text(FILE *out, const char *text)
{
	uint32_t codepoint;

	putc('"', out);
	for (put_plain(out, &text); *text; put_plain(out, &text)) {
		const char *from = text;

		if (!utf8_next(&text, &codepoint))
			fputs(UTF8_REPLACEMENT, out);
		else if (codepoint == '"' || codepoint == '\\')
			fprintf(out, "\\%c", (char)codepoint);
		else if (codepoint < 0x20 || codepoint == 0x7f || (codepoint > 0x7f && utf8_acts(codepoint)))
			put_json_escape(out, codepoint);
		else
			fwrite(from, 1, (size_t)(text - from), out);
	}
	putc('"', out);
}

static void put_json_value(FILE *out, const struct shard_block_column *column, uint32_t row)
{
	const union shard_value *value = &column->values[row];

	if (column_is_null(column, row) || (column->type == SHARD_STR && !value->str) ||
	    (column->type == SHARD_F64 && !isfinite(value->f64)))
		fputs("null", out);
	else if (column->type == SHARD_STR)
		put_json_text(out, value->str);
	else if (column->type == SHARD_F64)
		fprintf(out, "%.17g", value->f64);
	else
		fprintf(out, "%llu", (unsigned long long)value->u64);
}

/* "" where the shard's name does not tell. */
static void host_of(const struct shard_block *block, char host[SHARD_HOST_MAX + 1])
{
	if (!shard_name_host(block->path, host))
		*host = 0;
}

static void put_json_row(FILE *out, const struct shard_block *block, const char *host, uint32_t row)
{
	fputs("{\"table\":", out);
	put_json_text(out, block->table);
	fprintf(out, ",\"session\":\"%016llx\"", (unsigned long long)block->session_id);
	for (uint32_t c = 0; c < block->column_cnt; c++) {
		putc(',', out);
		put_json_text(out, block->columns[c].name);
		putc(':', out);
		put_json_value(out, &block->columns[c], row);
	}
	fputs(",\"host\":", out);
	if (*host)
		put_json_text(out, host);
	else
		fputs("null", out);
	fputs("}\n", out);
}

int export_jsonl(FILE *out, struct shard_reader *reader, const char *table)
{
	char host[SHARD_HOST_MAX + 1];
	const struct shard_block *block;
	bool any = false;
	int err = select_table(reader, table);

	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = ferror(out) ? -EIO : 0;
		any = true;
		host_of(block, host);
		for (uint32_t row = 0; row < block->row_cnt; row++)
			put_json_row(out, block, host, row);
	}
	if (!err && !any)
		err = -ENOENT;
	return err ? err : flushed(out);
}

/* RFC 4180: quoted where it has to be, and where it would else be taken for null. */
static void put_csv_text(FILE *out, const char *text)
{
	bool quoted = !*text || strpbrk(text, ",\"\r\n") != NULL;
	uint32_t codepoint;

	if (quoted)
		putc('"', out);
	for (put_plain(out, &text); *text; put_plain(out, &text)) {
		const char *from = text;

		if (!utf8_next(&text, &codepoint)) {
			fputs(UTF8_REPLACEMENT, out);
			continue;
		}
		if (codepoint == '"')
			putc('"', out);
		fwrite(from, 1, (size_t)(text - from), out);
	}
	if (quoted)
		putc('"', out);
}

static void put_csv_value(FILE *out, const struct shard_block_column *column, uint32_t row)
{
	const union shard_value *value = &column->values[row];

	if (column_is_null(column, row))
		return;
	if (column->type == SHARD_STR)
		put_csv_text(out, value->str ? value->str : "");
	else if (column->type == SHARD_F64)
		fprintf(out, "%.17g", value->f64);
	else
		fprintf(out, "%llu", (unsigned long long)value->u64);
}

static int put_csv_rows(FILE *out, const struct shard_block *block, const struct names *columns)
{
	const struct shard_block_column **found = calloc(columns->cnt + 1, sizeof(*found));
	char host[SHARD_HOST_MAX + 1];

	if (!found)
		return -ENOMEM;
	host_of(block, host);
	for (size_t c = 0; c < columns->cnt; c++)
		found[c] = shard_block__column(block, columns->items[c]);
	for (uint32_t row = 0; row < block->row_cnt; row++) {
		put_csv_text(out, block->table);
		fprintf(out, ",%016llx", (unsigned long long)block->session_id);
		for (size_t c = 0; c < columns->cnt; c++) {
			putc(',', out);
			if (found[c])
				put_csv_value(out, found[c], row);
		}
		putc(',', out);
		if (*host)
			put_csv_text(out, host);
		fputs("\r\n", out);
	}
	free(found);
	return 0;
}

/* A line of names needs all blocks, so every table is read twice. */
static int put_csv_table(FILE *out, struct shard_reader *reader, const char *table)
{
	const struct shard_block *block;
	struct names columns = {0};
	int err = select_table(reader, table);

	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = 0;
		for (uint32_t c = 0; c < block->column_cnt && !err; c++)
			err = names__add(&columns, block->columns[c].name);
	}
	if (err)
		goto cleanup;
	fputs("table,session", out);
	for (size_t c = 0; c < columns.cnt; c++) {
		putc(',', out);
		put_csv_text(out, columns.items[c]);
	}
	fputs(",host\r\n", out);
	err = select_table(reader, table);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = ferror(out) ? -EIO : put_csv_rows(out, block, &columns);
cleanup:
	names__free(&columns);
	return err;
}

static int list_tables(struct shard_reader *reader, const char *only, struct names *tables)
{
	const struct shard_block *block;
	int err = select_table(reader, only);

	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = names__add(tables, block->table);
	if (!err && !tables->cnt)
		err = -ENOENT;
	return err;
}

int export_csv(FILE *out, struct shard_reader *reader, const char *table)
{
	struct names tables = {0};
	int err = list_tables(reader, table, &tables);

	for (size_t t = 0; t < tables.cnt && !err; t++) {
		if (t)
			fputs("\r\n", out);
		err = put_csv_table(out, reader, tables.items[t]);
	}
	names__free(&tables);
	return err ? err : flushed(out);
}
