/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process that the agent has forked leaves behind of it: its descriptors, and the memory that both would have.
 */
#ifndef WHYLATE_BASE_CHILD_H
#define WHYLATE_BASE_CHILD_H

#include <stddef.h>

/* The first descriptor that child_keep_fds() hands on. */
#define CHILD_FIRST_FD 3

/*
 * The given descriptors, at most 4, become CHILD_FIRST_FD and those after it, with close-on-exec cleared.  The standard
 * ones become the null device, all others are closed, and the working directory is the root.
 */
void child_keep_fds(const int *fds, size_t cnt);

/*
 * Unmaps what the agent shares with the kernel or with other processes and may write: rings, counters and settings of
 * BPF programs.  The mapping that has the byte at keep (NULL: none) stays.  0 or -errno.
 */
int child_unmap_shared(const void *keep);

#endif
