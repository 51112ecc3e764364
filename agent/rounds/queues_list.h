/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queues that are found (rounds/queues.h), as a symbol list for a recording that comes afterwards. */
#ifndef WHYLATE_ROUNDS_QUEUES_LIST_H
#define WHYLATE_ROUNDS_QUEUES_LIST_H

#include "rounds/suggest.h"

#include <sys/types.h>

/*
 * Searches in a process of its own: it gives up privileges that the recording needs.  *list_fd: a symbol list, to be
 * closed.  The number of its lines, or -errno after a line that says what is wrong.
 */
int queues_find_list(pid_t pid, const char *debuginfo_dir, const struct suggest_options *options, int *list_fd);

#endif
