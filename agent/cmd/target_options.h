/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TARGET on the command line, for every command that takes one. */
#ifndef WHYLATE_CMD_TARGET_OPTIONS_H
#define WHYLATE_CMD_TARGET_OPTIONS_H

#include "cmd/options.h"
#include "target/resolve.h"

struct option_group target_options_group(struct target_query *query);
/* When all are taken: 0, or EXIT_USAGE after a line: a target must be named. */
int target_options_check(const struct target_query *query, const char *command);
/* Lists what listens, busiest first, and asks: 0, EXIT_USAGE or EXIT_FAILED after a line. Both ends are terminals. */
int target_options_ask(struct target_query *query);
void target_options_free(struct target_query *query);

#endif
