/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was read of files that several processes have mapped: symbols, functions, and how their frames are left, which
 * hold wherever a file is mapped.  A file is known by device, inode and the time of its last change: one that replaces
 * it, or that was written to, is another.  Tables that nobody uses stay until there are too many of them
 * (file_tables__drop()).
 *
 * One thread only.  Owned by file_tables until it is freed, after all users of its tables.
 */
#ifndef WHYLATE_TARGET_FILE_TABLES_H
#define WHYLATE_TARGET_FILE_TABLES_H

#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/elf_image.h"
#include "target/unwind_rules.h"

#include <time.h>

#define SYMBOL_FILES_MAX 3 /* itself, its .gnu_debugdata, a separate debug file */

/* One of a file's functions, of whatever tells of it. */
struct file_function {
	const char *name; /* NULL: none */
	uint64_t addr, file_off, size;
	uint8_t source; /* enum function_source */
	bool is_ifunc, is_part, ambiguous, overlaps;
};

struct file_table {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	uint32_t users;
	uint64_t used_seq; /* the larger, the later */
	/* Filled by the first user that needs it. */
	struct elf_file *files[SYMBOL_FILES_MAX];
	VEC(struct file_function) functions; /* by address */
	bool has_functions;
	struct eh_frame *frame;
	bool has_no_frame;
};

struct file_tables;

struct file_tables *file_tables__new(void);         /* NULL: out of memory */
void file_tables__free(struct file_tables *tables); /* NULL-safe */
/* Of an open file, for file_table__release().  NULL: out of memory. */
struct file_table *file_tables__take(struct file_tables *tables, const struct elf_image *image);
void file_table__release(struct file_table *table); /* NULL-safe */
/* Bytes that all of them take. */
size_t file_tables__sz(const struct file_tables *tables);
/* The one that has had no user for longest.  False: all have some. */
bool file_tables__drop(struct file_tables *tables);

/*
 * What holds at a linked address, valid until the next call, as unwind_rule__make() says.  NULL: nothing is known, or
 * out of memory.
 */
const struct unwind_rule *file_tables__rule(struct file_tables *tables, const struct eh_frame *frame, uint64_t addr);

#endif
