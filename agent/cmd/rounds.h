/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds of refinement within one recording (VProfiler §3.3.4, Algorithm 3, on the live process): where a request's
 * work begins is learnt from sampled stacks, or told by the symbol list; then each round probes functions for a while,
 * finds out which of them vary, takes the others' probes away and opens those that are worth it.
 *
 * What probing costs in a round stays under the budget for the whole round: where functions are called too often for
 * that, they are probed for the part of it that can be paid for.  Nothing is selected while a round is analysed, and
 * that time is not part of the duration.
 */
#ifndef WHYLATE_CMD_ROUNDS_H
#define WHYLATE_CMD_ROUNDS_H

#include "analysis/factors.h"

#include <stdbool.h>
#include <stdint.h>

#define ROUNDS_STACKS_HZ 499 /* while it is looked where requests' work begins */

struct rounds_options {
	uint32_t rounds; /* at least 1 */
	bool interactive;
	struct factor_rule rule;
	double tail;
};

struct recording;
struct rounds;

/* All return 0 or -errno after one line, and do nothing where recording->options->rounds is NULL. */
/* Before the capture is made, after the symbol list was read. */
int rounds__open(struct recording *recording);
/* When everything is attached. */
int rounds__begin(struct recording *recording);
/* A few times a second: whatever is due. */
int rounds__step(struct recording *recording);
/*
 * No return probe is safe any more, as recording->program knows by now: they go at once, and a round that is under way
 * begins again without.
 */
int rounds__distrust_returns(struct recording *recording);
/* Is its own budget kept by the rounds at the moment? */
bool rounds__probing(const struct recording *recording);
/* The time is over and the target's probes are still attached. */
int rounds__end(struct recording *recording);
void rounds__free(struct rounds *rounds);

#endif
