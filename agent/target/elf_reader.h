/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's side of reading symbol tables: a whylate-symbols process reads them, one file after the other.  It begins
 * with the first file and again after it has ended.  The agent gives a file up that ends the process twice, takes
 * SYMBOLS_CPU_S of its CPU time or more memory than it may have, and warns once; it gives all files up where the
 * process cannot be confined, or when files that were given up have taken READER_WASTED_MAX_S in all.  Nothing that it
 * answers is trusted.
 *
 * Any thread.
 */
#ifndef WHYLATE_TARGET_ELF_READER_H
#define WHYLATE_TARGET_ELF_READER_H

#include "target/elf_rows.h"

#define READER_WASTED_MAX_S 30

struct elf_read {
	int fd;                         /* stays the caller's */
	uint64_t packed_off, packed_sz; /* see struct symbols_table_question; 0: the file's own tables */
	const struct elf_code *code;    /* as of struct elf_symbols_source */
	uint32_t code_cnt;
	enum elf_what what;
	uint64_t *left; /* bytes of symbols that may be read, from which those that were read are taken; NULL: no limit
			 */
};

/*
 * Rows that have been checked, for elf_rows_free(): 0 or -errno as of elf_symbols_read(); -ENODATA: the file is given
 * up.
 */
int elf_reader_read(const struct elf_read *read, struct elf_rows *rows);
/* Ends the process where it has read nothing for that long, until the next file. */
void elf_reader_rest(uint64_t idle_ns);

#endif
