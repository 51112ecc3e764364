/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_BASE_DIRS_H
#define WHYLATE_BASE_DIRS_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes the directory with this mode, and those above it with 0755, where they are missing: 0; -ENOTDIR; -errno. */
int make_dirs(const char *path, mode_t mode);
/* Whether this user may write in the directory as its owner, without a capability. */
bool dir_is_own(const char *path);

#endif
