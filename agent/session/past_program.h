/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the code of a process was mapped that has ended before its mappings were read: by what the kernel side sends of
 * its program, and by another process that ran the same one.  Libraries lie as far below mmap_base in all of them.
 */
#ifndef WHYLATE_SESSION_PAST_PROGRAM_H
#define WHYLATE_SESSION_PAST_PROGRAM_H

#include "target/target.h"

#include <limits.h>
#include <whylate/record.h>

/* Where a process of the program had its code. */
struct past_code {
	const target_mappings *mappings;
	uint64_t ino, start, base; /* as exe_ino, exe_start and mmap_base of its stacks */
};

/* The program's path as its parent has it; false: it cannot be told. */
bool past_program_path(const struct wl_program_record *record, char path[PATH_MAX]);
/*
 * The code of the program's file, by a path that leads to it as the process `target` sees it; and that of all files of
 * another process of it.  0 or -errno; the mappings are the caller's, also on failure.
 */
int past_map_file(pid_t target, const char *path, const struct wl_stack_record *record, target_mappings *mappings);
int past_map_as(const struct past_code *known, const struct wl_stack_record *record, target_mappings *mappings);
/* A JIT compiler keeps what it makes in a file without a name: nothing is read from there. */
bool mapping_is_made_code(const struct target_mapping *mapping);

#endif
