// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: any bytes as what the probe room reads: a symbol list, the arguments of a marker, a C++ name, and as the
 * notes of an ELF file that is otherwise in order.  `make fuzz` builds and runs it.
 */
#include "probe/cxx_name.h"
#include "probe/suggest.h"
#include "probe/symbol_list.h"
#include "target/usdt_notes.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE_ADDR 0x1000
#define CODE_SZ   0x1000
#define TEXT_MAX  4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static int file_make(const void *bytes, size_t sz, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, sz) != (ssize_t)sz)
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void try_list(const uint8_t *bytes, size_t sz)
{
	probe_lines lines = {0};
	char path[64];
	int fd = file_make(bytes, sz, path);

	if (!symbol_list_read(path, &lines))
		for (size_t i = 0; i < lines.cnt; i++) {
			const struct probe_line *line = &lines.items[i];

			if (!*line->symbol || !*line->name || line->role >= PROBE_ROLE_CNT ||
			    line->key.arg >= USDT_ARG_MAX || probe_line_args(line) >> USDT_ARG_MAX)
				abort();
		}
	symbol_list_free(&lines);
	close(fd);
}

static void try_text(const char *text)
{
	struct usdt_arg args[USDT_ARG_MAX] = {0};
	struct suggestion suggestion = {0};
	unsigned cnt = usdt_args_parse(text, args);
	struct cxx_name name;

	for (unsigned i = 0; i < cnt && i < USDT_ARG_MAX; i++) {
		const struct usdt_arg *arg = &args[i];

		if (!usdt_arg_is_right(arg))
			abort();
		if (arg->kind == USDT_ARG_REG && (arg->reg_off < 0 || arg->reg_off > 1024))
			abort();
		if (arg->kind == USDT_ARG_MEMORY && arg->reg_off == USDT_NO_REG && arg->idx_off == USDT_NO_REG)
			abort();
	}
	if (cxx_name_make(text, &name))
		abort();
	if (strlen(name.key) > strlen(text) || strlen(name.full) > strlen(text))
		abort();
	cxx_name_free(&name);
	suggest_role(text, &suggestion);
}

/* One segment of code, and the bytes as its .note.stapsdt. */
static void try_notes(const uint8_t *bytes, size_t sz)
{
	static const char names[] = "\0.note.stapsdt\0.shstrtab";
	static unsigned char file[2 * CODE_SZ + 65536 + 4096];
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	Elf64_Phdr *segment = (Elf64_Phdr *)(file + sizeof(*header));
	size_t notes_off = CODE_ADDR + CODE_SZ, names_off = notes_off + 65536, sections_off = names_off + 64;
	Elf64_Shdr *sections = (Elf64_Shdr *)(file + sections_off);
	struct elf_rows rows = {0};
	struct elf_image *image;
	char path[64];

	if (sz > 65536)
		return;
	memset(file, 0, sizeof(file));
	*header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			       .e_type = ET_DYN,
			       .e_machine = EM_X86_64,
			       .e_version = EV_CURRENT,
			       .e_phoff = sizeof(*header),
			       .e_shoff = sections_off,
			       .e_ehsize = sizeof(*header),
			       .e_phentsize = sizeof(*segment),
			       .e_phnum = 1,
			       .e_shentsize = sizeof(*sections),
			       .e_shnum = 3,
			       .e_shstrndx = 2};
	*segment = (Elf64_Phdr){.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = CODE_ADDR,
				.p_vaddr = CODE_ADDR,
				.p_filesz = CODE_SZ,
				.p_memsz = CODE_SZ};
	memcpy(file + notes_off, bytes, sz);
	memcpy(file + names_off, names, sizeof(names));
	sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_NOTE, .sh_offset = notes_off, .sh_size = sz};
	sections[2] =
		(Elf64_Shdr){.sh_name = 15, .sh_type = SHT_STRTAB, .sh_offset = names_off, .sh_size = sizeof(names)};
	image = elf_image__of(file_make(file, sizeof(file), path));
	if (!image || usdt_notes_read(image, &rows) || elf_rows_check(&rows))
		abort();
	for (size_t i = 0; i < rows.markers.cnt; i++)
		if (rows.markers.items[i].file_off < CODE_ADDR ||
		    rows.markers.items[i].file_off >= CODE_ADDR + CODE_SZ || rows.markers.items[i].semaphore_off)
			abort();
	elf_rows_free(&rows);
	elf_image__free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	char text[TEXT_MAX + 1];

	if (!sz)
		return 0;
	switch (bytes[0] % 3) {
	case 0:
		try_list(bytes + 1, sz - 1);
		break;
	case 1:
		snprintf(text, sizeof(text), "%.*s", (int)(sz - 1 < TEXT_MAX ? sz - 1 : TEXT_MAX),
			 (const char *)bytes + 1);
		try_text(text);
		break;
	default:
		try_notes(bytes + 1, sz - 1);
	}
	return 0;
}
