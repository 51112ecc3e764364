/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the symbol tables of one ELF file, by libelf.  The file is hostile until proven otherwise: the agent reads by
 * elf_file.h, in a process without privileges.
 */
#ifndef WHYLATE_TARGET_ELF_SYMBOLS_H
#define WHYLATE_TARGET_ELF_SYMBOLS_H

#include "target/elf_rows.h"

struct elf_symbols_source {
	int fd;
	char *image; /* the file in memory, which is changed; NULL: it is fd */
	size_t image_sz;
	const struct elf_code *code; /* of the file of which this is the separate debug file; NULL: it is none */
	uint32_t code_cnt;
	enum elf_what what;
	uint64_t *symbols_left; /* see elf_file__open_debug(); NULL: no limit */
};

/*
 * Into rows that are zero: 0 or -errno as elf_file__open() and elf_file__open_debug() have it.  On failure there may
 * be rows, and the head has what was known by then.  Of ELF_READ_HEAD there is the head, as far as segments tell it.
 */
int elf_symbols_read(const struct elf_symbols_source *source, struct elf_rows *rows);

#endif
