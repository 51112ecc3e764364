/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agent's side of reading symbol tables: a whylate-symbols process reads them, one file after the other.  It begins
 * with the first file and again after it has ended.  The agent gives a file up that ends the process twice, takes
 * SYMBOLS_CPU_S of its CPU time or more memory than it may have, and warns once; it gives all files up where the
 * process cannot be confined, or when files that were given up have taken READER_WASTED_MAX_S in all.  Nothing that it
 * answers is trusted.
 *
 * Any thread.  One that may not be kept waiting says so by elf_reader_patience(): what is not read by then goes on, and
 * the same question fetches the answer later.
 */
#ifndef WHYLATE_TARGET_ELF_READER_H
#define WHYLATE_TARGET_ELF_READER_H

#include "target/elf_rows.h"

#include <stdbool.h>

#define READER_WASTED_MAX_S 30

struct elf_read {
	int fd;                         /* stays the caller's */
	uint64_t packed_off, packed_sz; /* see struct symbols_table_question; 0: the file's own tables */
	const struct elf_code *code;    /* as of struct elf_symbols_source */
	uint32_t code_cnt;
	enum elf_what what;
	uint64_t at;      /* see struct symbols_table_question */
	const char *name; /* of ELF_READ_VARIABLE; NULL: none */
	uint64_t *left; /* bytes of symbols that may be read, from which those that were read are taken; NULL: no limit
			 */
};

/*
 * From now on this thread waits for a file once, until the process has taken that much CPU time, or ten times that has
 * passed; 0, as at first: until it is read.
 */
void elf_reader_patience(uint64_t ns);
bool elf_reader_may_wait(void);
/*
 * Rows that have been checked, for elf_rows_free(): 0 or -errno as of elf_symbols_read(); -ENODATA: the file is given
 * up; -EAGAIN: it, or another one, is not read yet.
 */
int elf_reader_read(const struct elf_read *read, struct elf_rows *rows);
/*
 * A variable by its name, of kind STT_OBJECT or STT_TLS: 0; -ENOENT: there is none, or the file is given up;
 * -ENAMETOOLONG; or as elf_reader_read().
 */
int elf_reader_variable(int fd, const char *name, unsigned kind, struct elf_variable *variable);
/* Files that were read for this thread, by what is read of them. */
uint32_t elf_reader_cnt(void);
/* Ends the process where it has read nothing for that long, until the next file. */
void elf_reader_rest(uint64_t idle_ns);

/* Since the agent began. */
struct elf_reader_counts {
	uint32_t given_up; /* files, by what is read of them */
	uint32_t late;     /* that a thread without patience did not wait for */
};
void elf_reader_counts(struct elf_reader_counts *counts);

#endif
