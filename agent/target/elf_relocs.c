// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_relocs.h"

#include "base/order.h"
#include "base/vec.h"

#include <errno.h>

#define TABLE_SZ_MAX (1ULL << 30)

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

/* A table of names. */
struct texts {
	char *bytes;
	uint32_t section;
};

struct elf_relocs {
	VEC(struct elf_slot) slots;  /* by address */
	VEC(uint64_t) code_pointers; /* ascending */
	VEC(struct texts) texts;     /* what the slots' names point into */
};

/* A section is read a piece at a time: MariaDB's relocations are 6 MiB. */
struct table {
	const struct elf_image *image;
	uint64_t off, end;
	size_t at, cnt; /* of the entries in the piece */
	uint64_t piece[3 * 1024];
};

/* The symbols that one table of relocations refers to. */
struct symbols {
	Elf64_Sym *items;
	size_t cnt;
	const char *text;
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

/* With the NUL that elf_image__copy() puts behind it every offset leads to a terminated string. */
static int text_read(const struct elf_image *image, uint32_t section_idx, const struct elf_section *section,
		     struct elf_relocs *relocs, struct symbols *symbols)
{
	struct texts texts = {.section = section_idx};

	/* Several tables of relocations share one of symbols. */
	for (size_t i = 0; i < relocs->texts.cnt; i++)
		if (relocs->texts.items[i].section == section_idx) {
			symbols->text = relocs->texts.items[i].bytes;
			symbols->text_sz = section->size;
			return 0;
		}
	texts.bytes = elf_image__copy(image, section->file_off, section->size, TABLE_SZ_MAX);
	if (!texts.bytes)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (vec_push(&relocs->texts, texts)) {
		free(texts.bytes);
		return -ENOMEM;
	}
	symbols->text = texts.bytes;
	symbols->text_sz = section->size;
	return 0;
}

static int symbols_read(const struct elf_image *image, uint32_t section_idx, struct elf_relocs *relocs,
			struct symbols *symbols)
{
	const struct elf_section *sections, *table, *text;
	size_t cnt = elf_image__sections(image, &sections);

	if (section_idx >= cnt || sections[section_idx].type != SHT_DYNSYM || sections[section_idx].link >= cnt)
		return 0;
	table = &sections[section_idx];
	text = &sections[table->link];
	if (text->type != SHT_STRTAB)
		return 0;
	symbols->items = elf_image__copy(image, table->file_off, table->size, TABLE_SZ_MAX);
	if (!symbols->items)
		return errno == ENOMEM ? -ENOMEM : 0;
	symbols->cnt = table->size / sizeof(Elf64_Sym);
	return text_read(image, table->link, text, relocs, symbols);
}

static int code_pointer_add(struct elf_relocs *relocs, const struct elf_image *image, uint64_t addr)
{
	return elf_image__code_at(image, addr) ? vec_push(&relocs->code_pointers, addr) : 0;
}

static int reloc_add(struct elf_relocs *relocs, const struct elf_image *image, const Elf64_Rela *reloc,
		     const struct symbols *symbols)
{
	uint32_t type = ELF64_R_TYPE(reloc->r_info), symbol_idx = ELF64_R_SYM(reloc->r_info);
	struct elf_slot slot = {.addr = reloc->r_offset};
	const Elf64_Sym *symbol;

	switch (type) {
	case RELOC_RELATIVE:
		return code_pointer_add(relocs, image, reloc->r_addend);
	case RELOC_IRELATIVE:
		slot.is_ifunc = true;
		slot.value = reloc->r_addend;
		return vec_push(&relocs->slots, slot);
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
	slot.name = symbol->st_name < symbols->text_sz ? symbols->text + symbol->st_name : "";
	slot.value = symbol->st_shndx == SHN_UNDEF ? 0 : symbol->st_value;
	slot.is_ifunc = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
	return slot.name[0] ? vec_push(&relocs->slots, slot) : 0;
}

static int rela_read(struct elf_relocs *relocs, const struct elf_image *image, const struct elf_section *section)
{
	struct table table = table_of(image, section);
	struct symbols symbols = {0};
	const Elf64_Rela *reloc;
	int err = symbols_read(image, section->link, relocs, &symbols);

	while (!err && (reloc = table_next(&table, sizeof(*reloc))))
		err = reloc_add(relocs, image, reloc, &symbols);
	free(symbols.items);
	return err;
}

static int relr_add(struct elf_relocs *relocs, const struct elf_image *image, uint64_t place)
{
	uint64_t value;

	if (elf_image__read_addr(image, place, &value, sizeof(value)) != sizeof(value))
		return 0;
	return code_pointer_add(relocs, image, value);
}

/* Relative relocations packed: an address, then bitmaps of the 63 words that follow (the generic ELF ABI's SHT_RELR).
 */
static int relr_read(struct elf_relocs *relocs, const struct elf_image *image, const struct elf_section *section)
{
	struct table table = table_of(image, section);
	const uint64_t *item;
	uint64_t place = 0;
	int err = 0;

	while (!err && (item = table_next(&table, sizeof(*item)))) {
		if (!(*item & 1)) {
			err = relr_add(relocs, image, *item);
			place = *item + sizeof(*item);
			continue;
		}
		for (unsigned bit = 1; bit < 64 && !err; bit++)
			if (*item >> bit & 1)
				err = relr_add(relocs, image, place + (bit - 1) * sizeof(*item));
		place += 63 * sizeof(*item);
	}
	return err;
}

/* Nothing relocates a program of fixed address: what looks like an address of code in its data is one. */
static int fixed_read(struct elf_relocs *relocs, const struct elf_image *image, const struct elf_section *section)
{
	struct table table = table_of(image, section);
	const uint64_t *item;
	int err = 0;

	while (!err && (item = table_next(&table, sizeof(*item))))
		err = code_pointer_add(relocs, image, *item);
	return err;
}

ORDER(slot_cmp, struct elf_slot, BY(a->addr, b->addr));

ORDER(addr_cmp, uint64_t, BY(*a, *b));

struct elf_relocs *elf_relocs__read(const struct elf_image *image)
{
	struct elf_relocs *relocs = calloc(1, sizeof(*relocs));
	const struct elf_section *sections;
	size_t cnt = elf_image__sections(image, &sections);
	int err = 0;

	if (!relocs)
		return NULL;
	for (size_t i = 0; i < cnt && !err; i++) {
		if (!(sections[i].flags & SHF_ALLOC) || sections[i].flags & SHF_COMPRESSED)
			continue;
		if (sections[i].type == SHT_RELA)
			err = rela_read(relocs, image, &sections[i]);
		else if (sections[i].type == SHT_RELR)
			err = relr_read(relocs, image, &sections[i]);
		else if (elf_image__is_fixed(image) && sections[i].type == SHT_PROGBITS &&
			 !(sections[i].flags & SHF_EXECINSTR))
			err = fixed_read(relocs, image, &sections[i]);
	}
	if (err) {
		elf_relocs__free(relocs);
		return NULL;
	}
	vec_shrink(&relocs->slots);
	vec_shrink(&relocs->code_pointers);
	vec_sort(&relocs->slots, slot_cmp);
	vec_sort(&relocs->code_pointers, addr_cmp);
	return relocs;
}

void elf_relocs__free(struct elf_relocs *relocs)
{
	if (!relocs)
		return;
	for (size_t i = 0; i < relocs->texts.cnt; i++)
		free(relocs->texts.items[i].bytes);
	vec_free(&relocs->texts);
	vec_free(&relocs->slots);
	vec_free(&relocs->code_pointers);
	free(relocs);
}

const struct elf_slot *elf_relocs__slot(const struct elf_relocs *relocs, uint64_t addr)
{
	const struct elf_slot key = {.addr = addr};

	if (!relocs->slots.cnt)
		return NULL;
	return bsearch(&key, relocs->slots.items, relocs->slots.cnt, sizeof(key), slot_cmp);
}

size_t elf_relocs__slots(const struct elf_relocs *relocs, const struct elf_slot **slots)
{
	*slots = relocs->slots.items;
	return relocs->slots.cnt;
}

bool elf_relocs__points_into(const struct elf_relocs *relocs, uint64_t first, uint64_t last)
{
	size_t low = search_first(0, relocs->code_pointers.cnt, mid, relocs->code_pointers.items[mid] >= first);

	return low < relocs->code_pointers.cnt && relocs->code_pointers.items[low] <= last;
}
