/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_CMD_VALUES_H
#define WHYLATE_CMD_VALUES_H

#include "analysis/results.h"
#include "base/arena.h"

#include <stddef.h>

/* `whylate values report`, after its first word, or another command with --normal and --slow; an exit code. */
int values_report_run(int argc, char **argv, const char *command);

/*
 * Values of recordings, from `slow_from` on the slow ones, against the others.  1; 0: one of the sides has no values;
 * -errno.  The report belongs to the arena.
 */
int values_compare_paths(struct value_report **report, const char *const *paths, size_t cnt, size_t slow_from,
			 struct arena *arena);

#endif
