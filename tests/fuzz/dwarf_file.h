/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For fuzzers of what reads DWARF: a small executable that is otherwise in order, around sections of the fuzzer's. */
#ifndef WHYLATE_TESTS_FUZZ_DWARF_FILE_H
#define WHYLATE_TESTS_FUZZ_DWARF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_SZ   64
#define TEXT_ADDR 0x1000
#define NEED(ok)                 \
	do {                     \
		if (!(ok))       \
			abort(); \
	} while (0)

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#else
#define HOST_MACHINE EM_AARCH64
#endif

struct file {
	uint8_t bytes[8192];
	size_t sz;
	bool links; /* what stands in the place of .debug_loc is .gnu_debugaltlink */
};

static inline void put(struct file *file, const void *bytes, size_t sz)
{
	NEED(file->sz + sz <= sizeof(file->bytes));
	if (sz)
		memcpy(file->bytes + file->sz, bytes, sz);
	file->sz += sz;
}

static inline void put_number(struct file *file, uint64_t number, size_t sz)
{
	put(file, &number, sz);
}

/* The header of a unit of DWARF 4, whose length put_unit_end() sets. */
static inline void put_unit_begin(struct file *info)
{
	put_number(info, 0, 4);
	put_number(info, 4, 2);
	put_number(info, 0, 4);
	put_number(info, 8, 1);
}

static inline void put_unit_end(struct file *info)
{
	uint32_t length = (uint32_t)(info->sz - 4);

	memcpy(info->bytes, &length, 4);
}

static inline void put_section(Elf64_Shdr *section, struct file *file, const void *bytes, size_t sz)
{
	section->sh_type = SHT_PROGBITS;
	section->sh_offset = file->sz;
	section->sh_size = sz;
	section->sh_addralign = 1;
	put(file, bytes, sz);
}

/* places: of .debug_loc. */
static inline void dwarf_file_make(struct file *file, const void *abbrevs, size_t abbrevs_sz, const struct file *info,
				   const void *places, size_t places_sz, const uint8_t text[TEXT_SZ])
{
	static const char names[] = "\0.shstrtab\0.text\0.debug_abbrev\0.debug_info\0.debug_loc\0.gnu_debugaltlink";
	enum { SHSTRTAB = 1, TEXT, ABBREV, INFO, LOC, SECTION_CNT };
	static const uint32_t name_offs[] = {0, 1, 11, 17, 31, 43};
	Elf64_Shdr sections[SECTION_CNT] = {0};
	Elf64_Phdr segment = {.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_vaddr = TEXT_ADDR,
			      .p_filesz = TEXT_SZ,
			      .p_memsz = TEXT_SZ,
			      .p_align = 1};
	Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = HOST_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTION_CNT,
		.e_shstrndx = SHSTRTAB,
	};

	file->sz = sizeof(header) + sizeof(segment);
	put_section(&sections[SHSTRTAB], file, names, sizeof(names));
	sections[SHSTRTAB].sh_type = SHT_STRTAB;
	segment.p_offset = file->sz;
	put_section(&sections[TEXT], file, text, TEXT_SZ);
	sections[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	sections[TEXT].sh_addr = TEXT_ADDR;
	put_section(&sections[ABBREV], file, abbrevs, abbrevs_sz);
	put_section(&sections[INFO], file, info->bytes, info->sz);
	put_section(&sections[LOC], file, places, places_sz);
	for (size_t i = 0; i < SECTION_CNT; i++)
		sections[i].sh_name = name_offs[i];
	if (file->links)
		sections[LOC].sh_name += sizeof(".debug_loc");
	header.e_shoff = file->sz;
	put(file, sections, sizeof(sections));
	memcpy(file->bytes, &header, sizeof(header));
	memcpy(file->bytes + sizeof(header), &segment, sizeof(segment));
}

/* Where it can be opened, until the next one. */
static inline void dwarf_file_path(const struct file *file, char *path, size_t sz)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	NEED(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, file->bytes, file->sz, 0) == (ssize_t)file->sz);
	snprintf(path, sz, "/proc/%d/fd/%d", getpid(), fd);
}

#endif
