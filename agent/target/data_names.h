/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What lies at an address of a process's data, by its mappings and the symbols of the files that are mapped:
 * "server:table_lock", "libc.so.6+0x1d3c80", "[heap]+0x12a0".  The .bss of a file, of which the kernel makes anonymous
 * memory, belongs to it.  A lock on a file has the name of the file.
 *
 * Memory is bounded, and a file is read once for each symbol that is asked for, or stretch without one.  Neither files
 * nor processes are trusted.  One thread only.
 */
#ifndef WHYLATE_TARGET_DATA_NAMES_H
#define WHYLATE_TARGET_DATA_NAMES_H

#include "target/target.h"

struct data_names;

struct data_names *data_names__new(void);
void data_names__free(struct data_names *names); /* NULL-safe */
/*
 * The name of what lies there, for a person; NULL when nothing does, or the process is gone.  The mappings are those of
 * `pid`, or NULL: then they are read, and read again when something else may be mapped there now.
 */
const char *data_names__get(struct data_names *names, pid_t pid, const target_mappings *mappings, uint64_t addr,
			    char *buf, size_t sz);

#endif
