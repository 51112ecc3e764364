// SPDX-License-Identifier: GPL-2.0-or-later
#include "elf_fixture.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#endif

Elf64_Ehdr *made_header(struct made_elf *made)
{
	return (Elf64_Ehdr *)made->bytes;
}

Elf64_Shdr *made_section(struct made_elf *made, size_t idx)
{
	return (Elf64_Shdr *)(made->bytes + made_header(made)->e_shoff) + idx;
}

Elf64_Phdr *made_segment(struct made_elf *made)
{
	return (Elf64_Phdr *)(made->bytes + made_header(made)->e_phoff);
}

void elf_make(struct made_elf *made, const struct made_symbol *symbols, size_t symbol_cnt, const char *extra_section)
{
	const size_t phdr_off = CODE_OFF + CODE_SZ, shdr_off = phdr_off + sizeof(Elf64_Phdr);
	const size_t symtab_off = shdr_off + MADE_CNT * sizeof(Elf64_Shdr);
	const size_t strtab_off = symtab_off + (symbol_cnt + 1) * sizeof(Elf64_Sym);
	Elf64_Sym *symtab = (Elf64_Sym *)(made->bytes + symtab_off);
	char *strtab = (char *)made->bytes + strtab_off;
	size_t used = 1;

	memset(made, 0, sizeof(*made));
	*made_header(made) = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = HOST_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = phdr_off,
		.e_shoff = shdr_off,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = MADE_CNT,
		.e_shstrndx = MADE_STRTAB,
	};
	*made_segment(made) = (Elf64_Phdr){.p_type = PT_LOAD,
					   .p_flags = PF_R | PF_X,
					   .p_offset = CODE_OFF,
					   .p_vaddr = CODE_ADDR,
					   .p_filesz = CODE_SZ,
					   .p_memsz = CODE_SZ};
	for (size_t i = 0; i < symbol_cnt; i++) {
		symtab[i + 1] = (Elf64_Sym){.st_name = used,
					    .st_info = ELF64_ST_INFO(symbols[i].bind, symbols[i].type),
					    .st_shndx = 1,
					    .st_value = symbols[i].addr,
					    .st_size = symbols[i].size};
		used += sprintf(strtab + used, "%s", symbols[i].name) + 1;
	}
	*made_section(made, MADE_SYMTAB) = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
							.sh_offset = symtab_off,
							.sh_size = (symbol_cnt + 1) * sizeof(Elf64_Sym),
							.sh_link = MADE_STRTAB,
							.sh_entsize = sizeof(Elf64_Sym),
							.sh_addralign = 8};
	made_section(made, MADE_EXTRA)->sh_type = SHT_PROGBITS;
	made_section(made, MADE_EXTRA)->sh_name = used;
	used += sprintf(strtab + used, "%s", extra_section) + 1;
	*made_section(made, MADE_STRTAB) =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = strtab_off, .sh_size = used};
	made->sz = strtab_off + used;
}

void elf_make_extra(struct made_elf *made, const void *bytes, size_t sz)
{
	size_t off = (made->sz + 15) & ~15UL;

	CU_ASSERT_FATAL(off + sz <= sizeof(made->bytes));
	memcpy(made->bytes + off, bytes, sz);
	made_section(made, MADE_EXTRA)->sh_offset = off;
	made_section(made, MADE_EXTRA)->sh_size = sz;
	made->sz = off + sz;
}

int elf_make_file(const void *bytes, size_t sz, char path[64])
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(write(fd, bytes, sz), (ssize_t)sz);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}
