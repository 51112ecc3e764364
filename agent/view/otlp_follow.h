/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests as spans while they are recorded: of files that grow, and of those that come.  What was stored is told by
 * its blocks, so that each request is exported once; the files are the queue.  A block waits until the events of its
 * requests have been written, too, and as long as nobody takes its spans, within a limit.
 */
#ifndef WHYLATE_VIEW_OTLP_FOLLOW_H
#define WHYLATE_VIEW_OTLP_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct otlp_follow_opts {
	const char *const *paths; /* recordings, or a collector's store */
	size_t path_cnt;
	uint64_t settle_ns; /* how long a block waits for what belongs to it */
	uint64_t behind_ns; /* one that waits for longer is dropped */
};

struct otlp_follow_stats {
	uint64_t requests, without_clock; /* as of struct otlp_stats */
	uint64_t waiting_requests;
	uint64_t dropped_requests; /* waited for too long, or damaged */
};

struct otlp_follow;

/* Strings are borrowed.  NULL: out of memory. */
struct otlp_follow *otlp_follow__new(const struct otlp_follow_opts *opts);
void otlp_follow__free(struct otlp_follow *follow);
/*
 * Exports what has come, `last`: also what has come just now.  put: as export_otlp() has it; what it failed for is
 * exported again by the next turn, with the same numbers.  0; -errno of a file, or of put.
 */
int otlp_follow__turn(struct otlp_follow *follow, bool last,
		      int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt), void *owner);
/* All sessions say that they have ended, and there is one; nothing waits.  A collector's store never has. */
bool otlp_follow__has_ended(const struct otlp_follow *follow);
const struct otlp_follow_stats *otlp_follow__stats(const struct otlp_follow *follow);

#endif
