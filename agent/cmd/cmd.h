/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subcommands. Each takes its own argv (argv[0] is its name) and returns an exit code. */
#ifndef WHYLATE_CMD_CMD_H
#define WHYLATE_CMD_CMD_H

#include "base/exit_code.h"

#include <stdint.h>

int cmd_record(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_contexts(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_probes(int argc, char **argv);
int cmd_upload(int argc, char **argv);
int cmd_collect(int argc, char **argv);
int cmd_fleet(int argc, char **argv);
int cmd_project(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_values(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_top(int argc, char **argv);

/* One line that says what is wrong with the command line; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for an option that getopt_long() refused: `option` is what it returned, ':' for a missing argument. */
int option_error(const char *command, int option, char **argv);

/* An option's value that is not understood: a line that gives an example, -EINVAL. */
int usage_value(const char *command, const char *option, const char *arg, const char *example);
/* A share or a duration, which must have its unit: 0, or -EINVAL after a line that says what to write. */
int usage_share(const char *command, const char *option, const char *arg, const char *example, double *share);
int usage_duration(const char *command, const char *option, const char *arg, const char *example, uint64_t *ns);
/* Is there a word after the options, and is there none?  0, or EXIT_USAGE after a line. */
int usage_recording(const char *command, int argc);
int usage_no_words(const char *command, int argc, char **argv);
/* --top: a number, 0 for all of them; 0, or what usage_error() returns. */
int usage_top(const char *command, const char *arg, uint32_t *top);

#endif
