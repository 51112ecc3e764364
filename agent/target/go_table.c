// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/go_table.h"

#include "target/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of the table of functions, with the functions' own entries and names. */
#define TABLE_SZ_MAX (128ULL << 20)

/* How .gopclntab begins, since Go 1.18.  Offsets are from its beginning. */
struct header {
	uint32_t magic;
	uint8_t zero[2], min_instruction, pointer_sz;
	uint64_t function_cnt, file_cnt, text_start, names_off, units_off, files_off, pcs_off, functions_off;
};

#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1

/* By which the table is in order: an offset from the text, and where the function's entry is. */
struct place {
	uint32_t code_off, entry_off;
};

struct table {
	const struct elf_image *image;
	struct header header;
	uint64_t text_start; /* as linked */
	char *names, *functions;
	uint64_t names_sz, functions_sz;
	struct elf_rows *rows;
};

static int open_table(struct table *table)
{
	const struct elf_section *section = elf_image__section(table->image, ".gopclntab"),
				 *text = elf_image__section(table->image, ".text");
	struct header *header = &table->header;

	if (!section)
		section = elf_image__section(table->image, ".data.rel.ro.gopclntab");
	if (!section || !text || section->size < sizeof(*header) ||
	    elf_image__read(table->image, section->file_off, header, sizeof(*header)) != sizeof(*header))
		return -ENOTSUP;
	if ((header->magic != MAGIC_1_18 && header->magic != MAGIC_1_20) || header->pointer_sz != 8 ||
	    header->functions_off >= section->size || header->names_off >= header->functions_off ||
	    header->function_cnt >= (section->size - header->functions_off) / sizeof(struct place))
		return -ENOTSUP;
	/* Where a program may lie anywhere, the linker fills it in later. */
	table->text_start = header->text_start ?: text->addr;
	table->names_sz = header->functions_off - header->names_off;
	table->functions_sz = section->size - header->functions_off;
	table->names =
		elf_image__copy(table->image, section->file_off + header->names_off, table->names_sz, TABLE_SZ_MAX);
	table->functions = elf_image__copy(table->image, section->file_off + header->functions_off, table->functions_sz,
					   TABLE_SZ_MAX);
	return table->names && table->functions ? 0 : errno == ENOMEM ? -ENOMEM : -ENOTSUP;
}

/* NULL: it has none that can be told. */
static const char *name_of(const struct table *table, const struct place *place, size_t *len)
{
	uint32_t entry[2]; /* where its code begins, and its name */
	const char *name;

	if (place->entry_off > table->functions_sz - sizeof(entry))
		return NULL;
	memcpy(entry, table->functions + place->entry_off, sizeof(entry));
	if (entry[1] >= table->names_sz)
		return NULL;
	name = table->names + entry[1];
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
static int function_add(struct table *table, const struct place *place)
{
	struct elf_rows *rows = table->rows;
	struct elf_row row = {.addr = table->text_start + place->code_off};
	const struct elf_code *code = code_at(rows, row.addr);
	size_t cnt = rows->addressed.cnt, len;
	const char *name = code ? name_of(table, place, &len) : NULL;
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
	struct table table = {.image = image, .rows = rows};
	int err = open_table(&table);

	take_code(image, &rows->head);
	take_version(image, rows->head.go_version);
	for (uint64_t i = 0; !err && i < table.header.function_cnt; i++) {
		struct place places[2];

		memcpy(places, table.functions + i * sizeof(places[0]), sizeof(places));
		err = function_add(&table, places);
	}
	elf_rows_count(rows);
	free(table.names);
	free(table.functions);
	return err;
}
