// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_relocs_read.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_SZ_MAX   (1ULL << 30)
#define DYNAMIC_SZ_MAX (1U << 16)
#define NAMES_SZ_MAX   (64U << 20)

#if defined(__x86_64__)
#define RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOC_GLOB_DAT  R_X86_64_GLOB_DAT
#define RELOC_ABSOLUTE  R_X86_64_64
#define RELOC_RELATIVE  R_X86_64_RELATIVE
#define RELOC_IRELATIVE R_X86_64_IRELATIVE
#else
#define RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_GLOB_DAT  R_AARCH64_GLOB_DAT
#define RELOC_ABSOLUTE  R_AARCH64_ABS64
#define RELOC_RELATIVE  R_AARCH64_RELATIVE
#define RELOC_IRELATIVE R_AARCH64_IRELATIVE
#endif

/* A section is read a piece at a time: MariaDB's relocations are 6 MiB. */
struct table {
	const struct elf_image *image;
	uint64_t off, end;
	size_t at, cnt; /* of the entries in the piece */
	uint64_t piece[3 * 1024];
};

/* The symbols that tables of relocations refer to: .rela.dyn and .rela.plt to the same ones. */
struct symbols {
	uint32_t section_idx; /* 0: none were looked for */
	Elf64_Sym *items;
	uint32_t *name_offs; /* of those that slots have, in the rows; ELF_ROWS_NO_NAME */
	size_t cnt;
	char *text;
	uint64_t text_sz;
};

static struct table table_of(const struct elf_image *image, const struct elf_section *section)
{
	struct table table = {.image = image, .off = section->file_off, .end = section->file_off};

	if (section->size <= TABLE_SZ_MAX)
		table.end += section->size;
	return table;
}

/* The next entry of sz bytes, which 24 KiB hold a whole number of; NULL: there is none, or it cannot be read. */
static const void *table_next(struct table *table, size_t sz)
{
	uint64_t left = table->end - table->off;
	ssize_t got;

	if (table->at == table->cnt) {
		got = elf_image__read(table->image, table->off, table->piece,
				      left < sizeof(table->piece) ? left : sizeof(table->piece));
		table->at = 0;
		table->cnt = got > 0 ? (size_t)got / sz : 0;
		table->off += table->cnt * sz;
	}
	return table->cnt ? (const char *)table->piece + table->at++ * sz : NULL;
}

static void symbols_free(struct symbols *symbols)
{
	free(symbols->items);
	free(symbols->name_offs);
	free(symbols->text);
	*symbols = (struct symbols){0};
}

/* With the NUL that elf_image__copy() puts behind the text every offset leads to a terminated string. */
static int symbols_read(const struct elf_image *image, uint32_t section_idx, struct symbols *symbols)
{
	const struct elf_section *sections, *table, *text;
	size_t cnt = elf_image__sections(image, &sections);

	if (symbols->section_idx == section_idx)
		return 0;
	symbols_free(symbols);
	symbols->section_idx = section_idx;
	if (section_idx >= cnt || sections[section_idx].type != SHT_DYNSYM || sections[section_idx].link >= cnt)
		return 0;
	table = &sections[section_idx];
	text = &sections[table->link];
	if (text->type != SHT_STRTAB)
		return 0;
	symbols->items = elf_image__copy(image, table->file_off, table->size, TABLE_SZ_MAX);
	symbols->text = symbols->items ? elf_image__copy(image, text->file_off, text->size, TABLE_SZ_MAX) : NULL;
	if (!symbols->text)
		return errno == ENOMEM ? -ENOMEM : 0;
	symbols->text_sz = text->size;
	cnt = table->size / sizeof(*symbols->items);
	symbols->name_offs = malloc((cnt + 1) * sizeof(*symbols->name_offs));
	if (!symbols->name_offs)
		return -ENOMEM;
	memset(symbols->name_offs, 0xff, cnt * sizeof(*symbols->name_offs));
	symbols->cnt = cnt;
	return 0;
}

/* 0; -ENOMEM.  The name is ELF_ROWS_NO_NAME where the symbol has none that can be shown. */
static int name_of(struct elf_rows *rows, struct symbols *symbols, uint32_t idx, uint32_t *name_off)
{
	uint32_t text_off = symbols->items[idx].st_name;
	const char *name = text_off < symbols->text_sz ? symbols->text + text_off : "";
	size_t len = strlen(name);

	if (symbols->name_offs[idx] == ELF_ROWS_NO_NAME && elf_rows_is_name(name, len)) {
		symbols->name_offs[idx] = elf_rows_add_name(rows, name, len);
		if (symbols->name_offs[idx] == ELF_ROWS_NO_NAME)
			return -ENOMEM;
	}
	*name_off = symbols->name_offs[idx];
	return 0;
}

static int code_pointer_add(struct elf_rows *rows, const struct elf_image *image, uint64_t addr)
{
	return elf_image__code_at(image, addr) ? vec_push(&rows->code_pointers, addr) : 0;
}

static int reloc_add(struct elf_rows *rows, const struct elf_image *image, const Elf64_Rela *reloc,
		     struct symbols *symbols)
{
	uint32_t type = ELF64_R_TYPE(reloc->r_info), symbol_idx = ELF64_R_SYM(reloc->r_info);
	struct elf_slot slot = {.addr = reloc->r_offset, .name_off = ELF_ROWS_NO_NAME};
	const Elf64_Sym *symbol;
	int err;

	switch (type) {
	case RELOC_RELATIVE:
		return code_pointer_add(rows, image, reloc->r_addend);
	case RELOC_IRELATIVE:
		slot.is_ifunc = true;
		slot.value = reloc->r_addend;
		return vec_push(&rows->slots, slot);
	case RELOC_JUMP_SLOT:
	case RELOC_GLOB_DAT:
	case RELOC_ABSOLUTE:
		break;
	default:
		return 0;
	}
	if (symbol_idx >= symbols->cnt)
		return 0;
	symbol = &symbols->items[symbol_idx];
	if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT || ELF64_ST_TYPE(symbol->st_info) == STT_TLS)
		return 0;
	err = name_of(rows, symbols, symbol_idx, &slot.name_off);
	slot.value = symbol->st_shndx == SHN_UNDEF ? 0 : symbol->st_value;
	slot.is_ifunc = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
	return err || slot.name_off == ELF_ROWS_NO_NAME ? err : vec_push(&rows->slots, slot);
}

static int rela_read(struct elf_rows *rows, const struct elf_image *image, const struct elf_section *section,
		     struct symbols *symbols)
{
	struct table table = table_of(image, section);
	const Elf64_Rela *reloc;
	int err = symbols_read(image, section->link, symbols);

	while (!err && (reloc = table_next(&table, sizeof(*reloc))))
		err = reloc_add(rows, image, reloc, symbols);
	return err;
}

static int relr_add(struct elf_rows *rows, const struct elf_image *image, uint64_t place)
{
	uint64_t value;

	if (elf_image__read_addr(image, place, &value, sizeof(value)) != sizeof(value))
		return 0;
	return code_pointer_add(rows, image, value);
}

/* Relative relocations packed: an address, then bitmaps of the 63 words that follow (the generic ELF ABI's SHT_RELR).
 */
static int relr_read(struct elf_rows *rows, const struct elf_image *image, const struct elf_section *section)
{
	struct table table = table_of(image, section);
	const uint64_t *item;
	uint64_t place = 0;
	int err = 0;

	while (!err && (item = table_next(&table, sizeof(*item)))) {
		if (!(*item & 1)) {
			err = relr_add(rows, image, *item);
			place = *item + sizeof(*item);
			continue;
		}
		for (unsigned bit = 1; bit < 64 && !err; bit++)
			if (*item >> bit & 1)
				err = relr_add(rows, image, place + (bit - 1) * sizeof(*item));
		place += 63 * sizeof(*item);
	}
	return err;
}

/* Nothing relocates a program of fixed address: what looks like an address of code in its data is one. */
static int fixed_read(struct elf_rows *rows, const struct elf_image *image, const struct elf_section *section)
{
	struct table table = table_of(image, section);
	const uint64_t *item;
	int err = 0;

	while (!err && (item = table_next(&table, sizeof(*item))))
		err = code_pointer_add(rows, image, *item);
	return err;
}

ORDER(slot_cmp, struct elf_slot, BY(a->addr, b->addr));

ORDER(addr_cmp, uint64_t, BY(*a, *b));

static void sort_out(struct elf_rows *rows)
{
	uint64_t *addrs = rows->code_pointers.items;
	size_t kept = 0;

	vec_sort(&rows->slots, slot_cmp);
	vec_sort(&rows->code_pointers, addr_cmp);
	for (size_t i = 0; i < rows->code_pointers.cnt; i++)
		if (!kept || addrs[i] != addrs[kept - 1])
			addrs[kept++] = addrs[i];
	rows->code_pointers.cnt = kept;
	elf_rows_count(rows);
}

int elf_relocs_read(const struct elf_image *image, struct elf_rows *rows)
{
	const struct elf_section *sections;
	size_t cnt = elf_image__sections(image, &sections);
	struct symbols symbols = {0};
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		if (!(sections[i].flags & SHF_ALLOC) || sections[i].flags & SHF_COMPRESSED)
			continue;
		if (sections[i].type == SHT_RELA)
			err = rela_read(rows, image, &sections[i], &symbols);
		else if (sections[i].type == SHT_RELR)
			err = relr_read(rows, image, &sections[i]);
		else if (elf_image__is_fixed(image) && sections[i].type == SHT_PROGBITS &&
			 !(sections[i].flags & SHF_EXECINSTR))
			err = fixed_read(rows, image, &sections[i]);
	}
	symbols_free(&symbols);
	sort_out(rows);
	return err;
}

int elf_dynamic_read(const struct elf_image *image, struct elf_rows *rows)
{
	const struct elf_section *section = elf_image__section(image, ".dynamic"), *sections;
	size_t section_cnt = elf_image__sections(image, &sections);
	const struct elf_section *texts = section && section->link < section_cnt ? &sections[section->link] : NULL;
	Elf64_Dyn *entries;
	char *text;
	int err = 0;

	if (!texts || texts->type != SHT_STRTAB)
		return 0;
	/* A NUL is behind the names. */
	text = elf_image__copy(image, texts->file_off, texts->size, NAMES_SZ_MAX);
	entries = elf_image__copy(image, section->file_off, section->size, DYNAMIC_SZ_MAX);
	rows->head.has_dynamic = text && entries;
	for (size_t i = 0; rows->head.has_dynamic && i < section->size / sizeof(*entries) && !err; i++) {
		struct elf_library library = {.is_own = entries[i].d_tag == DT_SONAME};
		uint64_t off = entries[i].d_un.d_val;

		if (entries[i].d_tag == DT_NULL)
			break;
		if ((!library.is_own && entries[i].d_tag != DT_NEEDED) || off >= texts->size ||
		    !elf_rows_is_name(text + off, strlen(text + off)))
			continue;
		library.name_off = elf_rows_add_name(rows, text + off, strlen(text + off));
		err = library.name_off == ELF_ROWS_NO_NAME ? -ENOMEM : vec_push(&rows->libraries, library);
	}
	free(entries);
	free(text);
	elf_rows_count(rows);
	return err;
}
