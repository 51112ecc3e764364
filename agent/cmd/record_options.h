/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `record` and `diagnose` take from the command line. */
#ifndef WHYLATE_CMD_RECORD_OPTIONS_H
#define WHYLATE_CMD_RECORD_OPTIONS_H

#include "cmd/stream_options.h"
#include "session/options.h"

#include <getopt.h>

#define RECORD_SHORT_OPTIONS "p:s:o:d:qv"
extern const struct option record_long_options[];
extern const size_t record_long_option_cnt;

void record_options_init(struct record_options *options);
/* One option as getopt_long returned it: 0, -ENOENT if it is none of these, or -EINVAL after a line that says why. */
int record_options_take(struct record_options *options, const char *command, int option, const char *arg);
/* When all are taken: 0, or -EINVAL after a line that says what does not go together. */
int record_options_check(const struct record_options *options, const char *command);
extern const char record_options_help[];

#endif
