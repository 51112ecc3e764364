/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often the functions fire that may be boundaries of requests, locks and queues: all of them are probed at their
 * entries for some seconds.  Nothing is recorded.
 */
#ifndef WHYLATE_ROUNDS_SUGGEST_H
#define WHYLATE_ROUNDS_SUGGEST_H

#include "capture/probes.h"
#include "probe/suggest.h"
#include "target/resolve.h"
#include "target/target.h"

struct suggest_options {
	const struct target_set *target;
	bool children;
	const char *btf_path; /* NULL: the kernel's own */
	uint64_t duration_ns;
};

/* A capture that counts calls of probes without recording. */
struct suggest_capture {
	target_processes processes;
	target_listeners listeners;
	struct capture *capture;
};

/*
 * Loads the programs with a ring of ring_sz bytes; sockets: they count requests, too.  0, or -errno after an error
 * line; call suggest_capture__close() in both cases.
 */
int suggest_capture__open(struct suggest_capture *live, const struct suggest_options *options, bool sockets,
			  size_t ring_sz);
void suggest_capture__close(struct suggest_capture *live);

/*
 * 0, with no suggestion where no name says anything; or -errno after a line that says what is wrong.  vec_free() of
 * study->found in any case.
 */
int suggest_count(struct suggestion_study *study, const struct suggest_options *options, struct program *program);

#endif
