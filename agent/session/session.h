/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One recording from beginning to end: target, capture, retention, shards. What `record` and `diagnose` share. */
#ifndef WHYLATE_SESSION_SESSION_H
#define WHYLATE_SESSION_SESSION_H

#include "session/options.h"

#include <stdio.h>

struct recording_result {
	char dir[RECORDED_DIR_SZ];
	bool over_limits; /* loss or missing hooks beyond what the options allow */
	uint64_t kept;
};

/*
 * Records until the duration is over, the target exits, or SIGINT/SIGTERM; returns an exit code (EXIT_FAILED after a
 * line that says why).  What was written until a failure stays readable.  `command` is for messages.
 */
int recording_run(const struct record_options *options, struct recording_result *result);

#endif
