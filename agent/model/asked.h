/* SPDX-License-Identifier: GPL-2.0-or-later */
/* By which hand-off an interval came to its program: what it read of its connection first, and who sent that. */
#ifndef WHYLATE_MODEL_ASKED_H
#define WHYLATE_MODEL_ASKED_H

#include "model/graph.h"

/*
 * The receive with which the interval's thread picked it up, or NULL: none is known.  It has a sender where the other
 * end is followed; which interval that one worked for is from_sid.
 */
struct graph_handoff *graph_asked_by(const struct graph *graph, const struct graph_interval *interval);

#endif
