/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole ELF file in memory: header, code, one PT_LOAD, .symtab, .strtab (which serves the section names too). */
#ifndef WHYLATE_TESTS_ELF_FIXTURE_H
#define WHYLATE_TESTS_ELF_FIXTURE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_ADDR 0x401000
#define CODE_OFF  0x40
#define CODE_SZ   0x1000

struct made_symbol {
	const char *name;
	uint64_t addr;
	uint8_t type, bind;
	uint64_t size;
};

struct made_elf {
	unsigned char bytes[65536];
	size_t sz;
};

enum { MADE_NULL, MADE_SYMTAB, MADE_STRTAB, MADE_EXTRA, MADE_CNT };

void elf_make(struct made_elf *made, const struct made_symbol *symbols, size_t symbol_cnt, const char *extra_section);
Elf64_Ehdr *made_header(struct made_elf *made);
Elf64_Shdr *made_section(struct made_elf *made, size_t idx);
Elf64_Phdr *made_segment(struct made_elf *made);
/* Gives the extra section its bytes, behind everything else. */
void elf_make_extra(struct made_elf *made, const void *bytes, size_t sz);
/* A descriptor of a memory file of these bytes and the path by which it is opened. */
int elf_make_file(const void *bytes, size_t sz, char path[64]);

#endif
