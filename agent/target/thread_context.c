// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/thread_context.h"

#include "target/elf_image.h"
#include "target/proc_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL "otel_thread_ctx_v1"

#if defined(__x86_64__)
#define RELOC_OFFSET     R_X86_64_TPOFF64
#define RELOC_DESCRIPTOR R_X86_64_TLSDESC
#else
#define RELOC_OFFSET     R_AARCH64_TLS_TPREL
#define RELOC_DESCRIPTOR R_AARCH64_TLSDESC
#endif
/* Static thread-local storage is smaller; what a descriptor of dynamic storage points to is farther away. */
#define STATIC_TLS_MAX (1 << 20)

static bool is_offset(int64_t word)
{
	return word > -STATIC_TLS_MAX && word < STATIC_TLS_MAX;
}

/* Of the program itself, whose storage lies next to the thread pointer. */
static int program_slot(const struct elf_image *image, uint64_t value, int64_t *slot)
{
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);

	for (size_t i = 0; i < cnt; i++) {
		uint64_t align = segments[i].align ?: 1;

		if (segments[i].type != PT_TLS || align > STATIC_TLS_MAX || segments[i].mem_sz > STATIC_TLS_MAX ||
		    value > segments[i].mem_sz)
			continue;
#if defined(__x86_64__)
		*slot = (int64_t)value - (int64_t)((segments[i].mem_sz + align - 1) / align * align);
#else
		*slot = (int64_t)value + (int64_t)((16 + align - 1) / align * align);
#endif
		return 0;
	}
	return -ENOENT;
}

static bool names_symbol(const struct elf_image *image, const struct elf_section *sections, size_t section_cnt,
			 const struct elf_section *relocs, uint32_t symbol_idx)
{
	const struct elf_section *symbols = relocs->link < section_cnt ? &sections[relocs->link] : NULL;
	char name[sizeof(SYMBOL)];
	Elf64_Sym symbol;

	if (!symbols || symbols->link >= section_cnt || symbol_idx >= symbols->size / sizeof(symbol) ||
	    elf_image__read(image, symbols->file_off + symbol_idx * sizeof(symbol), &symbol, sizeof(symbol)) !=
		    sizeof(symbol) ||
	    symbol.st_name >= sections[symbols->link].size)
		return false;
	return elf_image__read(image, sections[symbols->link].file_off + symbol.st_name, name, sizeof(name)) ==
		       sizeof(name) &&
	       !memcmp(name, SYMBOL, sizeof(name));
}

/* The word that the dynamic linker has filled in for the symbol; 0: none, its linked address otherwise. */
static uint64_t filled_in(const struct elf_image *image, uint64_t value)
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
			if (symbol_idx ? names_symbol(image, sections, section_cnt, &sections[s], symbol_idx)
				       : (uint64_t)reloc.r_addend == value)
				return reloc.r_offset + (type == RELOC_DESCRIPTOR ? sizeof(uint64_t) : 0);
		}
	}
	return 0;
}

static int library_slot(pid_t pid, const struct elf_image *image, const struct target_mapping *mapping, uint64_t value,
			int64_t *slot)
{
	uint64_t addr = filled_in(image, value), bias;
	int64_t word;
	int fd, err = 0;

	if (!addr || !elf_image__bias(image, mapping->start, mapping->end, mapping->file_off, &bias))
		return -ENOTSUP;
	fd = proc_mem_open(pid);
	if (fd < 0)
		return fd;
	if (!proc_mem_read(fd, addr + bias, &word, sizeof(word)))
		err = -EACCES;
	else if (!word || !is_offset(word))
		err = -ENOTSUP;
	else
		*slot = word;
	close(fd);
	return err;
}

static int slot_in(pid_t pid, const struct target_mapping *mapping, bool is_program, int64_t *slot)
{
	struct elf_image *image;
	char path[PATH_MAX];
	uint64_t value;
	int err = target_mapping_file(pid, mapping, path, sizeof(path));

	if (err)
		return -ENOENT;
	image = elf_image__open(path);
	if (!image)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	if (!elf_image__datum(image, SYMBOL, STT_TLS, &value))
		err = -ENOENT;
	else if (is_program)
		err = program_slot(image, value, slot);
	else
		err = library_slot(pid, image, mapping, value, slot);
	elf_image__free(image);
	return err;
}

int thread_context_slot(pid_t pid, const target_mappings *mappings, int64_t *slot)
{
	bool is_program = true;
	int err = -ENOENT;

	for (size_t i = 0; i < mappings->cnt && err == -ENOENT; i++) {
		if (!mappings->items[i].exec || mappings->items[i].path[0] != '/')
			continue;
		err = slot_in(pid, &mappings->items[i], is_program, slot);
		is_program = false;
	}
	return err;
}
