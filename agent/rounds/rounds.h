/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rounds of refinement within one recording (VProfiler §3.3.4, Algorithm 3, on the live process): where a request's
 * work begins is learnt from sampled stacks, or told by the symbol list; then each round probes functions for a while,
 * finds out which of them vary, takes the others' probes away and opens those that are worth it.
 *
 * What probing costs in a round stays under the budget for the whole round: where functions are called too often for
 * that, they are probed for the part of it that can be paid for.  Nothing is selected while a round is analysed, and
 * that time is not part of the duration.
 */
#ifndef WHYLATE_ROUNDS_ROUNDS_H
#define WHYLATE_ROUNDS_ROUNDS_H

#include "analysis/factors.h"
#include "session/client.h"

#include <stdbool.h>
#include <stdint.h>

#define ROUNDS_STACKS_HZ 499 /* while it is looked where requests' work begins */

struct rounds_options {
	uint32_t rounds; /* at least 1 */
	bool interactive;
	struct factor_rule rule;
	factor_names *understood; /* what rule.understood points to: the user's answers are added */
	double tail;
};

/* Its options are a struct rounds_options. */
extern const struct session_client rounds_client;

#endif
