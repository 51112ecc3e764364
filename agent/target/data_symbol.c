// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/data_symbol.h"

#include "target/demangle.h"
#include "target/proc_file.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS_AT_ONCE 512
/* A forged file shall not keep us for long; mariadbd has some 50,000. */
#define SYMBOLS_MAX (4U << 20)

static void try_symbol(const struct elf_image *image, const struct elf_section *names, const Elf64_Sym *symbol,
		       uint64_t addr, struct elf_datum *datum)
{
	uint64_t end = symbol->st_value + symbol->st_size;
	char *plain;
	ssize_t len;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx == SHN_ABS || !symbol->st_size || end < symbol->st_value)
		return;
	/* Nothing is known of what lies between two symbols. */
	if (addr < symbol->st_value && symbol->st_value < datum->hi)
		datum->hi = symbol->st_value;
	if (addr >= end && end > datum->lo)
		datum->lo = end;
	if (addr < symbol->st_value || addr >= end || symbol->st_name >= names->size)
		return;
	len = elf_image__read(image, names->file_off + symbol->st_name, datum->name, sizeof(datum->name) - 1);
	datum->name[len > 0 ? len : 0] = '\0';
	datum->name[strcspn(datum->name, "@")] = '\0';
	plain = demangle(datum->name);
	if (plain)
		snprintf(datum->name, sizeof(datum->name), "%s", plain);
	free(plain);
	proc_make_printable(datum->name);
	datum->lo = symbol->st_value;
	datum->hi = end;
}

static void search_table(const struct elf_image *image, const struct elf_section *table, uint64_t addr,
			 struct elf_datum *datum)
{
	const struct elf_section *sections;
	size_t section_cnt = elf_image__sections(image, &sections), cnt = table->size / sizeof(Elf64_Sym);
	Elf64_Sym symbols[SYMBOLS_AT_ONCE];

	if (table->link >= section_cnt || sections[table->link].type != SHT_STRTAB || cnt > SYMBOLS_MAX)
		return;
	for (size_t first = 0; first < cnt && !datum->name[0]; first += SYMBOLS_AT_ONCE) {
		size_t want = cnt - first < SYMBOLS_AT_ONCE ? cnt - first : SYMBOLS_AT_ONCE;
		ssize_t got = elf_image__read(image, table->file_off + first * sizeof(Elf64_Sym), symbols,
					      want * sizeof(Elf64_Sym));

		if (got < (ssize_t)(want * sizeof(Elf64_Sym)))
			return;
		for (size_t i = 0; i < want && !datum->name[0]; i++)
			try_symbol(image, &sections[table->link], &symbols[i], addr, datum);
	}
}

/* The linked address of what is loaded first. */
static uint64_t first_addr(const struct elf_image *image)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);

	for (size_t i = 0; i < cnt; i++)
		if (segments[i].type == PT_LOAD && !segments[i].file_off)
			return segments[i].addr;
	return 0;
}

int data_symbol_read(const struct elf_image *image, uint64_t off, struct elf_datum *datum)
{
	const struct elf_section *sections;
	uint64_t first = first_addr(image), addr = off + first;
	size_t cnt = elf_image__sections(image, &sections);

	*datum = (struct elf_datum){.lo = off, .hi = off + 1};
	for (size_t i = 0; i < cnt; i++) {
		if (!(sections[i].flags & SHF_ALLOC) || sections[i].flags & SHF_TLS || addr < sections[i].addr ||
		    addr - sections[i].addr >= sections[i].size)
			continue;
		datum->is_data = true;
		datum->lo = sections[i].addr;
		datum->hi = sections[i].addr + sections[i].size;
	}
	for (size_t i = 0; i < cnt && datum->is_data && !datum->name[0]; i++)
		if (sections[i].type == SHT_SYMTAB || sections[i].type == SHT_DYNSYM)
			search_table(image, &sections[i], addr, datum);
	if (datum->is_data) {
		datum->lo -= first;
		datum->hi -= first;
	}
	/* Tables that lie. */
	if (off < datum->lo || off >= datum->hi)
		*datum = (struct elf_datum){.lo = off, .hi = off + 1};
	return 0;
}
