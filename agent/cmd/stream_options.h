/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `record` takes from the command line about its way to a collector. */
#ifndef WHYLATE_CMD_STREAM_OPTIONS_H
#define WHYLATE_CMD_STREAM_OPTIONS_H

#include "session/options.h"

#include <getopt.h>

enum stream_option {
	OPT_STREAM = 3000,
	OPT_STREAM_CERT,
	OPT_STREAM_KEY,
	OPT_STREAM_CA,
	OPT_STREAM_TOKEN,
	OPT_STREAM_INSECURE,
	OPT_STREAM_DELAY,
	OPT_STREAM_LINGER,
	OPT_SPOOL,
	OPT_SPOOL_MAX,
	OPT_SPOOL_AGE,
};

/* The rows of the table of long options. */
#define STREAM_LONG_OPTIONS                                                                                           \
	{"stream", required_argument, NULL, OPT_STREAM}, {"stream-cert", required_argument, NULL, OPT_STREAM_CERT},   \
		{"stream-key", required_argument, NULL, OPT_STREAM_KEY},                                              \
		{"stream-ca", required_argument, NULL, OPT_STREAM_CA},                                                \
		{"stream-token", required_argument, NULL, OPT_STREAM_TOKEN},                                          \
		{"stream-insecure", no_argument, NULL, OPT_STREAM_INSECURE},                                          \
		{"stream-delay", required_argument, NULL, OPT_STREAM_DELAY},                                          \
		{"stream-linger", required_argument, NULL, OPT_STREAM_LINGER},                                        \
		{"spool", required_argument, NULL, OPT_SPOOL}, {"spool-max", required_argument, NULL, OPT_SPOOL_MAX}, \
	{                                                                                                             \
		"spool-age", required_argument, NULL, OPT_SPOOL_AGE                                                   \
	}

void stream_options_init(struct stream_options *options);
/* As record_options_take(). */
int stream_options_take(struct stream_options *options, const char *command, int option, const char *arg);
/* When all are taken: 0, or -EINVAL after a line that says what does not go together. */
int stream_options_check(const struct stream_options *options, const char *command);

#endif
