/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often the functions fire that may be boundaries of requests, locks and queues: all of them are probed at their
 * entries for some seconds.  Nothing is recorded.
 */
#ifndef WHYLATE_ROUNDS_SUGGEST_H
#define WHYLATE_ROUNDS_SUGGEST_H

#include "probe/suggest.h"
#include "target/resolve.h"

struct suggest_options {
	const struct target_set *target;
	bool children;
	const char *btf_path; /* NULL: the kernel's own */
	uint64_t duration_ns;
};

/*
 * 0, with no suggestion where no name says anything; or -errno after a line that says what is wrong.  vec_free() of
 * study->found in any case.
 */
int suggest_count(struct suggestion_study *study, const struct suggest_options *options, struct program *program);

#endif
