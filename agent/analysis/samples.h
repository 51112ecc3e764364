/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table `stack` in memory, as a calling-context tree and the samples that refer to its nodes, by thread and time.
 * Times and thread numbers are those of the graph (traces.h).
 */
#ifndef WHYLATE_ANALYSIS_SAMPLES_H
#define WHYLATE_ANALYSIS_SAMPLES_H

#include "analysis/traces.h"

#define SAMPLE_ROOT 0 /* the node of no frame */

/* One call path: its parent's and one more function. */
struct sample_node {
	uint32_t parent; /* a smaller number */
	uint32_t name;   /* index into samples.names */
};

struct sample {
	uint64_t ts;
	uint64_t end_ts; /* of a wait; 0: a tick, or a wait whose end the recording does not have */
	double amount;   /* of a tick: its period in ns, 1 where the recording does not have it */
	uint32_t group;  /* recordings that share a graph */
	uint32_t tid, pid;
	uint32_t node;
	uint8_t state; /* enum wl_state */
};

struct samples {
	const struct traces *traces;
	struct arena *arena;
	struct intern names;
	VEC(struct sample_node) nodes; /* [SAMPLE_ROOT] first */
	struct idmap node_ids;
	VEC(struct sample) rows; /* by group, tid and ts */
	size_t bad_rows;
};

/* 0, also where there are none; -ENOMEM, -EIO.  Reads from the beginning, selects tables as it likes. */
int samples_load(struct samples *samples, const struct traces *traces, struct shard_reader *reader);
void samples_free(struct samples *samples);

/* Those of a thread with ts in [from_ts, to_ts), as one array; NULL samples: none. */
const struct sample *samples_of(const struct samples *samples, const struct trace_session *session, uint32_t tid,
				uint64_t from_ts, uint64_t to_ts, size_t *cnt);
/*
 * What a sample tells of the time from from_ts to to_ts in a state of that kind: the amount of a tick, the ns of a wait
 * that lie in it, 0: nothing.
 */
double sample_amount(const struct sample *sample, bool on_cpu, uint64_t from_ts, uint64_t to_ts);
/* The thread executes, or is interrupted while it does. */
bool state_is_on_cpu(uint8_t state);
bool state_is_interrupt(uint8_t state);

static inline const char *samples_name(const struct samples *samples, uint32_t node)
{
	return samples->names.strings[samples->nodes.items[node].name];
}

#endif
