/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading recordings (traces.c) that are joined with others (traces_join.c); for these two only. */
#ifndef WHYLATE_ANALYSIS_TRACES_JOIN_H
#define WHYLATE_ANALYSIS_TRACES_JOIN_H

#include "analysis/traces.h"
#include "shard/columns.h"

/* The session of a block, made where it is the first one: 0 or -ENOMEM. */
int traces__session(struct traces *traces, const struct shard_block *block, uint32_t *session);
/* Sees to it that the session has a graph: 0 or -ENOMEM. */
int traces__graph(struct traces *traces, uint32_t session);

/* Finds out which recordings can be joined.  Reads the hand-offs.  0 or -errno. */
int traces__join(struct traces *traces, struct shard_reader *reader);

enum traces_end { TRACES_BOTH, TRACES_SEND, TRACES_RECEIVE };
/* Which side of a hand-off between hosts the row is. */
enum traces_end traces__end_kind(const struct shard_block *block, uint32_t row);
/* Of the next receive, in the order of reading: what is known of its sender. */
void traces__complete(struct traces *traces, struct graph_handoff *handoff);

/* After the last row. */
int traces__settle(struct traces *traces);

uint64_t traces__graph_sid(const struct trace_session *session, uint64_t sid);

#endif
