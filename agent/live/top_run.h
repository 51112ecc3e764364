/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `whylate top` on a terminal and into a pipe. */
#ifndef WHYLATE_LIVE_TOP_RUN_H
#define WHYLATE_LIVE_TOP_RUN_H

#include "live/top_source.h"

#include <signal.h>

/* Set by a signal: ends either. */
extern volatile sig_atomic_t top_stop_requested;

/* Exit codes. */
int top_run_screen(const struct top_options *options);
int top_run_lines(const struct top_options *options);

#endif
