/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of files that a process waits to lock (WL_FILE_LOCK of record.h): "/run/lock/apt.lock", found among its
 * descriptors.  A name is kept for as long as its place is not needed; the file may have another one by then.  A path
 * is the process's own choice, and made printable.  One thread only.
 */
#ifndef WHYLATE_TARGET_LOCKED_FILES_H
#define WHYLATE_TARGET_LOCKED_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct locked_files;

struct locked_files *locked_files__new(void);
void locked_files__free(struct locked_files *files); /* NULL-safe */
/* Its path, cut from the front where it is long, or "inode 254:0:1234" when no descriptor of the process has it. */
const char *locked_files__name(struct locked_files *files, pid_t pid, uint64_t object, char *buf, size_t sz);

#endif
