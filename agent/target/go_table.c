// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/go_table.h"

#include "target/go_table_internal.h"
#include "target/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1

int go_table_open(const struct elf_image *image, struct go_table *table)
{
	const struct elf_section *section = elf_image__section(image, ".gopclntab"),
				 *text = elf_image__section(image, ".text");
	struct go_table_header *header = &table->header;

	if (!section)
		section = elf_image__section(image, ".data.rel.ro.gopclntab");
	if (!section || !text || section->size < sizeof(*header) ||
	    elf_image__read(image, section->file_off, header, sizeof(*header)) != sizeof(*header))
		return -ENOTSUP;
	if ((header->magic != MAGIC_1_18 && header->magic != MAGIC_1_20) || header->pointer_sz != 8 ||
	    header->functions_off >= section->size || header->names_off >= header->functions_off ||
	    header->function_cnt >= (section->size - header->functions_off) / sizeof(struct go_table_place))
		return -ENOTSUP;
	table->image = image;
	table->section = section;
	table->has_start_line = header->magic == MAGIC_1_20;
	/* Where a program may lie anywhere, the linker fills it in later. */
	table->text_start = header->text_start ?: text->addr;
	table->functions_sz = section->size - header->functions_off;
	return go_table_part(table, header->functions_off, table->functions_sz, &table->functions);
}

int go_table_part(const struct go_table *table, uint64_t off, uint64_t sz, uint8_t **bytes)
{
	*bytes = elf_image__copy(table->image, table->section->file_off + off, sz, GO_TABLE_SZ_MAX);
	return *bytes ? 0 : errno == ENOMEM ? -ENOMEM : -ENOTSUP;
}

void go_table__places(const struct go_table *table, uint64_t idx, struct go_table_place places[2])
{
	memcpy(places, table->functions + idx * sizeof(places[0]), 2 * sizeof(places[0]));
}

struct reading {
	struct go_table table;
	uint8_t *names;
	uint64_t names_sz;
	struct elf_rows *rows;
};

/* NULL: it has none that can be told. */
static const char *name_of(const struct reading *reading, const struct go_table_place *place, size_t *len)
{
	const struct go_table *table = &reading->table;
	uint32_t entry[2]; /* where its code begins, and its name */
	const char *name;

	if (table->functions_sz < sizeof(entry) || place->entry_off > table->functions_sz - sizeof(entry))
		return NULL;
	memcpy(entry, table->functions + place->entry_off, sizeof(entry));
	if (entry[1] >= reading->names_sz)
		return NULL;
	name = (const char *)reading->names + entry[1];
	*len = strnlen(name, NEAREST_NAME_MAX + 1);
	return elf_rows_is_name(name, *len) ? name : NULL;
}

static const struct elf_code *code_at(const struct elf_rows *rows, uint64_t addr)
{
	for (uint32_t i = 0; i < rows->head.code_cnt; i++)
		if (addr >= rows->head.code[i].addr && addr - rows->head.code[i].addr < rows->head.code[i].sz)
			return &rows->head.code[i];
	return NULL;
}

/* The next one's place bounds it; behind the last there is one of the end. */
static int function_add(struct reading *reading, const struct go_table_place *place)
{
	struct elf_rows *rows = reading->rows;
	struct elf_row row = {.addr = reading->table.text_start + place->code_off};
	const struct elf_code *code = code_at(rows, row.addr);
	size_t cnt = rows->addressed.cnt, len;
	const char *name = code ? name_of(reading, place, &len) : NULL;
	uint64_t rest;

	if (!name || (cnt && rows->addressed.items[cnt - 1].addr >= row.addr))
		return 0;
	rest = code->sz - (row.addr - code->addr);
	row.size = place[1].code_off > place->code_off ? place[1].code_off - place->code_off : 0;
	row.size = row.size < rest ? row.size : rest;
	row.file_off = code->file_off + (row.addr - code->addr);
	row.name_off = elf_rows_add_name(rows, name, len);
	return row.name_off == ELF_ROWS_NO_NAME ? -ENOMEM : vec_push(&rows->addressed, row);
}

static void take_code(const struct elf_image *image, struct elf_rows_head *head)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);

	for (size_t i = 0; i < cnt && head->code_cnt < ELF_ROWS_CODE_MAX; i++)
		if (segments[i].exec)
			head->code[head->code_cnt++] =
				(struct elf_code){segments[i].addr, segments[i].file_off, segments[i].file_sz};
}

/* .go.buildinfo: magic bytes, the size of pointers, and flags: 2, the version lies here, with its length before it. */
static void take_version(const struct elf_image *image, char version[ELF_ROWS_GO_VERSION_SZ])
{
	static const char magic[] = "\xff Go buildinf:";
	const struct elf_section *section = elf_image__section(image, ".go.buildinfo");
	uint8_t bytes[33 + ELF_ROWS_GO_VERSION_SZ];
	size_t len;

	if (!section || section->size < sizeof(bytes) ||
	    elf_image__read(image, section->file_off, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    memcmp(bytes, magic, sizeof(magic) - 1) || bytes[14] != 8 || !(bytes[15] & 2))
		return;
	len = bytes[32];
	if (len < ELF_ROWS_GO_VERSION_SZ && elf_rows_is_name((const char *)bytes + 33, len))
		memcpy(version, bytes + 33, len);
}

int go_table_read(const struct elf_image *image, struct elf_rows *rows)
{
	struct reading reading = {.rows = rows};
	struct go_table *table = &reading.table;
	int err = go_table_open(image, table);

	if (!err) {
		reading.names_sz = table->header.functions_off - table->header.names_off;
		err = go_table_part(table, table->header.names_off, reading.names_sz, &reading.names);
	}
	take_code(image, &rows->head);
	take_version(image, rows->head.go_version);
	for (uint64_t i = 0; !err && i < table->header.function_cnt; i++) {
		struct go_table_place places[2];

		go_table__places(table, i, places);
		err = function_add(&reading, places);
	}
	elf_rows_count(rows);
	free(reading.names);
	free(table->functions);
	return err;
}
