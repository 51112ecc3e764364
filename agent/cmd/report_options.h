/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `report` takes from the command line and `diagnose` shares. */
#ifndef WHYLATE_CMD_REPORT_OPTIONS_H
#define WHYLATE_CMD_REPORT_OPTIONS_H

#include "cmd/options.h"
#include "view/analyse.h"

void report_options_init(struct analyse_options *options);
/* "k=3,d=5%,e=2,m=95%", any of them: struct factor_rule. */
int report_options_take_factors(void *options, const char *command, const char *arg);
/* A function that the user understands. */
int report_options_take_understood(void *options, const char *command, const char *arg);
/* When all are taken: 0, or EXIT_USAGE after a line that says what does not go together. */
int report_options_check(const struct analyse_options *options, const char *command);

#endif
