// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/variable_read.h"

#include <string.h>

#if defined(__x86_64__)
#define RELOC_OFFSET     R_X86_64_TPOFF64
#define RELOC_DESCRIPTOR R_X86_64_TLSDESC
#else
#define RELOC_OFFSET     R_AARCH64_TLS_TPREL
#define RELOC_DESCRIPTOR R_AARCH64_TLSDESC
#endif

#define SYMBOLS_PIECE   512
#define SYMBOLS_CNT_MAX (1 << 20)

static bool table_datum(const struct elf_image *image, const struct elf_section *table, const struct elf_section *names,
			const char *name, unsigned kind, uint64_t *value)
{
	size_t cnt = table->size / sizeof(Elf64_Sym), len = strlen(name) + 1;
	Elf64_Sym symbols[SYMBOLS_PIECE];
	char found[ELF_VARIABLE_NAME_SZ];

	if (cnt > SYMBOLS_CNT_MAX || len > sizeof(found))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		const Elf64_Sym *symbol = &symbols[i % SYMBOLS_PIECE];
		size_t want = (cnt - i < SYMBOLS_PIECE ? cnt - i : SYMBOLS_PIECE) * sizeof(*symbol);

		if (i % SYMBOLS_PIECE == 0 &&
		    elf_image__read(image, table->file_off + i * sizeof(*symbol), symbols, want) != (ssize_t)want)
			return false;
		if (ELF64_ST_TYPE(symbol->st_info) != kind || symbol->st_shndx == SHN_UNDEF ||
		    symbol->st_name >= names->size ||
		    elf_image__read(image, names->file_off + symbol->st_name, found, len) != (ssize_t)len ||
		    memcmp(found, name, len))
			continue;
		*value = symbol->st_value;
		return true;
	}
	return false;
}

static bool find_value(const struct elf_image *image, const char *name, unsigned kind, uint64_t *value)
{
	const struct elf_section *sections;
	size_t cnt = elf_image__sections(image, &sections);

	for (size_t i = 0; i < cnt; i++)
		if ((sections[i].type == SHT_SYMTAB || sections[i].type == SHT_DYNSYM) && sections[i].link < cnt &&
		    table_datum(image, &sections[i], &sections[sections[i].link], name, kind, value))
			return true;
	return false;
}

static bool names_symbol(const struct elf_image *image, const struct elf_section *sections, size_t section_cnt,
			 const struct elf_section *relocs, uint32_t symbol_idx, const char *wanted)
{
	const struct elf_section *symbols = relocs->link < section_cnt ? &sections[relocs->link] : NULL;
	size_t len = strlen(wanted) + 1;
	char name[ELF_VARIABLE_NAME_SZ];
	Elf64_Sym symbol;

	if (!symbols || len > sizeof(name) || symbols->link >= section_cnt ||
	    symbol_idx >= symbols->size / sizeof(symbol) ||
	    elf_image__read(image, symbols->file_off + symbol_idx * sizeof(symbol), &symbol, sizeof(symbol)) !=
		    sizeof(symbol) ||
	    symbol.st_name >= sections[symbols->link].size)
		return false;
	return elf_image__read(image, sections[symbols->link].file_off + symbol.st_name, name, len) == (ssize_t)len &&
	       !memcmp(name, wanted, len);
}

/* The word that the dynamic linker has filled in for the symbol; 0: none, its linked address otherwise. */
static uint64_t filled_in(const struct elf_image *image, const char *name, uint64_t value)
{
	const struct elf_section *sections;
	size_t section_cnt = elf_image__sections(image, &sections);
	Elf64_Rela reloc;

	for (size_t s = 0; s < section_cnt; s++) {
		size_t cnt = sections[s].type == SHT_RELA ? sections[s].size / sizeof(reloc) : 0;

		for (size_t i = 0; i < cnt; i++) {
			uint32_t type, symbol_idx;

			if (elf_image__read(image, sections[s].file_off + i * sizeof(reloc), &reloc, sizeof(reloc)) !=
			    sizeof(reloc))
				break;
			type = ELF64_R_TYPE(reloc.r_info);
			symbol_idx = (uint32_t)ELF64_R_SYM(reloc.r_info);
			if (type != RELOC_OFFSET && type != RELOC_DESCRIPTOR)
				continue;
			if (symbol_idx ? names_symbol(image, sections, section_cnt, &sections[s], symbol_idx, name)
				       : (uint64_t)reloc.r_addend == value)
				return reloc.r_offset + (type == RELOC_DESCRIPTOR ? sizeof(uint64_t) : 0);
		}
	}
	return 0;
}

int variable_read(const struct elf_image *image, const char *name, unsigned kind, struct elf_variable *variable)
{
	*variable = (struct elf_variable){0};
	variable->is_there = find_value(image, name, kind, &variable->value);
	if (variable->is_there && kind == STT_TLS)
		variable->slot = filled_in(image, name, variable->value);
	return 0;
}
