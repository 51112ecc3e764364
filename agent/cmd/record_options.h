/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every command that records takes from the command line. */
#ifndef WHYLATE_CMD_RECORD_OPTIONS_H
#define WHYLATE_CMD_RECORD_OPTIONS_H

#include "cmd/options.h"
#include "session/options.h"

void record_options_init(struct record_options *options);
struct option_group record_options_group(struct record_options *options);
/* When all are taken: 0, or EXIT_USAGE after a line that says what does not go together. */
int record_options_check(const struct record_options *options, const char *command);

/* Where to, and as whom: the rows of a recording that `whylate upload` has as well. */
struct option_group upload_options_group(struct record_options *options);
/* 0, or EXIT_USAGE after a line. */
int upload_options_check(const struct record_options *options);

#endif
