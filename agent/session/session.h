/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One recording from beginning to end: target, capture, retention, shards. What `record` and `diagnose` share. */
#ifndef WHYLATE_SESSION_SESSION_H
#define WHYLATE_SESSION_SESSION_H

#include "session/options.h"

#include <stdio.h>

struct recording;

/*
 * What acts on a recording while it runs, through the recording's own functions: `diagnose` probes functions in rounds.
 * All that return int: 0, or -errno after one line.
 */
struct session_client {
	const char *why_always; /* why hooks have to stay attached all the time; NULL: they need not */
	bool probes;            /* it attaches probes, and keeps their budget itself */
	uint32_t stacks_hz;     /* rate at which it wants user stacks sampled unless the options say more */
	/* Before the capture is made, after the symbol list was read: sets recording->client. */
	int (*open)(struct recording *recording);
	int (*begin)(struct recording *recording); /* everything is attached */
	int (*step)(struct recording *recording);  /* a few times a second */
	/* With probes: return probes are no longer safe, as recording->program knows by now. */
	int (*distrust_returns)(struct recording *recording);
	bool (*is_probing)(const struct recording *recording); /* it keeps the budget itself at the moment */
	int (*end)(struct recording *recording); /* the time is over, the target's probes are still attached */
	void (*free)(void *client);
};

struct recording_result {
	char dir[4096];
	bool over_limits; /* loss or missing hooks beyond what the options allow */
	uint64_t kept;
};

/*
 * Records until the duration is over, the target exits, or SIGINT/SIGTERM; returns an exit code (EXIT_FAILED after a
 * line that says why).  What was written until a failure stays readable.  `command` is for messages.
 */
int recording_run(const struct record_options *options, struct recording_result *result);

#endif
