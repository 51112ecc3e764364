/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_BASE_DIRS_H
#define WHYLATE_BASE_DIRS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* Makes the directory with this mode, and those above it with 0755, where they are missing: 0; -ENOTDIR; -errno. */
int make_dirs(const char *path, mode_t mode);
/* Whether this user may write in the directory as its owner, without a capability. */
bool dir_is_own(const char *path);

/* Opens a directory for reading; path is relative to at_fd, flags may be O_NOFOLLOW.  NULL and errno. */
DIR *dir_open(int at_fd, const char *path, int flags);
/* The next entry other than "." and ".."; NULL at the end, or if dir is NULL. */
const struct dirent *dir_next(DIR *dir);
/* err, or if that is 0, -errno of dir_open() or of the last dir_next(); dir may be NULL. */
int dir_close(DIR *dir, int err);

#endif
