/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that were stripped off a file and kept elsewhere: compressed within it, in a separate file on this machine
 * or in the target's file system, or with a debuginfod server.
 */
#ifndef WHYLATE_TARGET_DEBUG_FILE_H
#define WHYLATE_TARGET_DEBUG_FILE_H

#include "target/elf_file.h"

/* Bytes of symbols, unpacked, that one target's files may bring along, and all targets of this process together. */
#define DEBUG_BUDGET_TARGET (64ULL << 20)
#define DEBUG_BUDGET_AGENT  (128ULL << 20)

struct debug_budget {
	uint64_t used;
	bool said;
};

/* The target's symbols are gone. */
void debug_budget__return(struct debug_budget *budget);

struct debug_search {
	const char *file;          /* by which the stripped file is opened */
	const char *path;          /* as the target has it; its directory names where a debug link leads */
	const char *root;          /* of the target's file system, "" for ours */
	const char *debuginfo_dir; /* or NULL */
	bool want_debuginfod;
	struct debug_budget *budget;
	int *fd;       /* to where the separate file that was found is left open; NULL: not wanted */
	bool *is_late; /* set where one is not read yet, see elf_reader_patience() */
};

/* .gnu_debugdata, unpacked; NULL: none, damaged, or beyond the budget, which one line says. */
struct elf_file *debug_data__open(int fd, const struct elf_file *of, const struct debug_search *search);
/* A file of the same build id, or with the checksum that the debug link gives; NULL: none. */
struct elf_file *debug_file__open(const struct elf_file *of, const struct debug_search *search);

/* What a stripped file says of the file that has its names. */
struct debug_wanted {
	const char *build_id, *link; /* hex; a plain file name; "" where there is none */
	uint32_t link_crc;
};

/*
 * Calls `take` with paths of files that may be it, until that returns something: this, or NULL.  They are regular
 * files of the directory that is searched: a link that leaves it is not followed.  Of `search` it reads the members
 * before the budget, and is_late.
 */
typedef void *(*debug_file_take)(void *owner, const char *path);
void *debug_file_search(const struct debug_wanted *wanted, const struct debug_search *search, debug_file_take take,
			void *owner);
bool debug_file_has_checksum(const char *path, uint32_t wanted);

#endif
