/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_CMD_VALUES_H
#define WHYLATE_CMD_VALUES_H

/* `whylate values report`, after its first word, or another command with --normal and --slow; an exit code. */
int values_report_run(int argc, char **argv, const char *command);

#endif
