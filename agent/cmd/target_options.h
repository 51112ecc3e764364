/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TARGET on the command line, for every command that takes one. */
#ifndef WHYLATE_CMD_TARGET_OPTIONS_H
#define WHYLATE_CMD_TARGET_OPTIONS_H

#include "target/resolve.h"

#include <getopt.h>

/* Above those of record, stream and each command. */
enum {
	OPT_TARGET = 4000,
	OPT_COMM = OPT_TARGET,
	OPT_EXE,
	OPT_PORT,
	OPT_UNIT,
	OPT_CONTAINER,
	OPT_POD,
	OPT_CGROUP,
	OPT_PIDNS_OF,
};

/* Rows of a getopt_long() table; -p is "p:". */
/* clang-format off */
#define TARGET_LONG_OPTIONS                                    \
	{"pid", required_argument, NULL, 'p'},                  \
	{"comm", required_argument, NULL, OPT_COMM},            \
	{"exe", required_argument, NULL, OPT_EXE},              \
	{"port", required_argument, NULL, OPT_PORT},            \
	{"unit", required_argument, NULL, OPT_UNIT},            \
	{"container", required_argument, NULL, OPT_CONTAINER},  \
	{"pod", required_argument, NULL, OPT_POD},              \
	{"cgroup", required_argument, NULL, OPT_CGROUP},        \
	{"pidns-of", required_argument, NULL, OPT_PIDNS_OF}
/* clang-format on */

extern const char target_options_help[];

/* One option as getopt_long() returned it: 0, -ENOENT if it is none of these, or -EINVAL after a line that says why. */
int target_options_take(struct target_query *query, const char *command, int option, const char *arg);
/* When all are taken: 0, or EXIT_USAGE after a line: a target must be named. */
int target_options_check(const struct target_query *query, const char *command);
/* Lists what listens, busiest first, and asks which it is: 0, or -errno after a line. Both ends are terminals. */
int target_options_ask(struct target_query *query);
void target_options_free(struct target_query *query);

#endif
