/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that were stripped off a file and kept elsewhere: compressed within it, in a separate file on this machine
 * or in the target's file system, or with a debuginfod server.
 */
#ifndef WHYLATE_TARGET_DEBUG_FILE_H
#define WHYLATE_TARGET_DEBUG_FILE_H

#include "target/elf_file.h"
#include "target/elf_image.h"

struct debug_search {
	const char *file;          /* by which the stripped file is opened */
	const char *path;          /* as the target has it; its directory names where a debug link leads */
	const char *root;          /* of the target's file system, "" for ours */
	const char *debuginfo_dir; /* or NULL */
	bool want_debuginfod;
};

/* .gnu_debugdata, unpacked; NULL: none or damaged. */
struct elf_file *debug_data__open(const struct elf_image *image, const struct elf_file *of);
/* A file of the same build id, or with the checksum that the debug link gives; NULL: none. */
struct elf_file *debug_file__open(const struct elf_image *image, const struct elf_file *of,
				  const struct debug_search *search);

#endif
