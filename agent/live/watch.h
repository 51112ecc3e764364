/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `whylate watch`: a child process records without end into small shards; this one reads what it writes, removes what
 * is older than a minute, and keeps what surrounds a moment at which the condition is met.  Reports and the user's
 * command run as another user, without a shell.
 */
#ifndef WHYLATE_LIVE_WATCH_H
#define WHYLATE_LIVE_WATCH_H

#include "live/watch_when.h"
#include "session/options.h"

struct watch_options {
	struct record_options record; /* dir: where events go */
	struct watch_when when;
	const char *when_text, *exec;
	const char *user; /* NULL: who called sudo, else nobody */
	uint64_t every_ns, keep;
};

/* Until a signal ends it, or the recorder: an exit code. */
int watch_run(const struct watch_options *options);

#endif
