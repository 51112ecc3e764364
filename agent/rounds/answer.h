/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording that ends when its answer is certain: after 6 s, and then at growing intervals, an idle thread ranks the
 * causes of what has been recorded so far.  The recording is over when the order of the first two is certain, or with
 * its duration.
 */
#ifndef WHYLATE_ROUNDS_ANSWER_H
#define WHYLATE_ROUNDS_ANSWER_H

#include "session/client.h"

struct answer_options {
	double tail;
	const char *type; /* only intervals of this type; NULL: all */
};

/* Its options are a struct answer_options. */
extern const struct session_client answer_client;

#endif
