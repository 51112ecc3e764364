/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `report` takes from the command line and `diagnose` shares. */
#ifndef WHYLATE_CMD_REPORT_OPTIONS_H
#define WHYLATE_CMD_REPORT_OPTIONS_H

#include "cmd/analyse.h"

void report_options_init(struct analyse_options *options);
/* 0, or EXIT_USAGE after a line that says why. */
/* "k=3,d=5%,e=2,m=95%", any of them: struct factor_rule.  Likewise. */
int report_options_factors(struct analyse_options *options, const char *command, const char *arg);

/* A function that the user understands.  Likewise. */
int report_options_understood(struct analyse_options *options, const char *command, const char *arg);

#endif
