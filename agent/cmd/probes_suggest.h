/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_CMD_PROBES_SUGGEST_H
#define WHYLATE_CMD_PROBES_SUGGEST_H

#include "view/probes.h"

/* Counts calls in the running program and prints a list; an exit code. */
int probes_suggest(const struct probes_options *options, struct program *program);

#endif
