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
	bool kernel;     /* in the kernel */
};

struct sample {
	uint64_t ts;
	uint64_t end_ts;   /* of a wait; 0: a tick, or a wait whose end the recording does not have */
	uint64_t sid;      /* 0: it is of no interval, or of one that was not kept */
	double amount;     /* of a tick: its period in ns, 1 where the recording does not have it */
	double weight;     /* of a tick or wait: the ns that it stands for in all intervals, 0: not known */
	uint32_t group;    /* recordings that share a graph; without traces each recording */
	uint64_t taken_ts; /* `ts` by the clock of its recording */
	uint64_t session_id;
	uint32_t tid, pid;
	uint32_t node;
	uint8_t state; /* enum wl_state */
	bool spins;    /* of a tick: in a loop that waits for a spin lock */
};

struct samples {
	const struct traces *traces; /* NULL: no detail was recorded; times and numbers are the recordings' own */
	struct arena *arena;
	struct intern names;
	VEC(struct sample_node) nodes; /* [SAMPLE_ROOT] first */
	struct idmap node_ids, session_ids;
	VEC(struct sample) rows; /* by group, tid and ts; without traces by group, sid and ts */
	size_t bad_rows;
};

/* 0, also where there are none; -ENOMEM, -EIO.  traces may be NULL.  Reads from the beginning, selects tables as it
 * likes. */
int samples_load(struct samples *samples, const struct traces *traces, struct shard_reader *reader);
void samples_free(struct samples *samples);

/* Those of a thread with ts in [from_ts, to_ts), as one array; NULL samples: none. */
const struct sample *samples_of(const struct samples *samples, const struct trace_session *session, uint32_t tid,
				uint64_t from_ts, uint64_t to_ts, size_t *cnt);
/* Without traces: those of an interval. */
const struct sample *samples_of_sid(const struct samples *samples, uint64_t session_id, uint64_t sid, size_t *cnt);
/* Functions at the beginning of every thread of every program, which tell nothing. */
bool samples_is_start(const char *name);
/*
 * What a sample tells of the time from from_ts to to_ts in a state of that kind: the amount of a tick, the ns of a wait
 * that lie in it, 0: nothing.
 */
double sample_amount(const struct sample *sample, bool on_cpu, uint64_t from_ts, uint64_t to_ts);

static inline const char *samples_name(const struct samples *samples, uint32_t node)
{
	return samples->names.strings[samples->nodes.items[node].name];
}

#endif
