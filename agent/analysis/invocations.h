/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The calls of probed functions of the intervals of a dataset in memory: tables `invocation` and `symbol`, the threads
 * of `interval`, and the rounds of refinement that the session tells of.  What the files say is checked; rows that
 * cannot be are counted and left out.  120 bytes a call.
 */
#ifndef WHYLATE_ANALYSIS_INVOCATIONS_H
#define WHYLATE_ANALYSIS_INVOCATIONS_H

#include "analysis/call_times.h"
#include "analysis/dataset.h"
#include "base/idmap.h"
#include "shard/reader.h"

/* The same function in all recordings: module and name tell. */
struct invocation_symbol {
	uint32_t id;           /* in the table `symbol` of the recording in which it was first met */
	uint32_t name, module; /* indexes into strings; name 0: the recording does not tell */
	uint32_t height;
};

/* The threads of an interval. */
struct invocation_row {
	uint64_t pickup_ts;
	uint32_t tid, end_tid; /* 0: the interval's row was not there */
};

/* A round of `diagnose --rounds` (docs/SHARD-FORMAT.md: session keys round.N…). */
struct invocation_round {
	uint32_t session; /* index into dataset.session_ids */
	uint32_t number;  /* 0: before functions were probed */
	uint64_t begin_ts, end_ts;
	double intervals_per_s, cost_share; /* NAN: not told */
	double probe_cnt;
};

/* A function whose calls were recorded for a part of the session only, and why it was let go (session.h, static). */
struct invocation_part {
	uint32_t session, func;
	uint64_t begin_ts, end_ts;
	const char *why;
};

struct invocations {
	struct arena *arena;
	struct intern strings;                 /* 0 is "" */
	VEC(struct invocation_symbol) symbols; /* call.func is an index */
	uint32_t graph_height; /* of the highest function that a recording has met, probed or not; 0: not told */
	struct call *calls;
	size_t call_cnt;
	size_t *first; /* by row of the dataset its first call; row_cnt + 1 of them; each row's in order of calls_sort()
			*/
	struct invocation_row *rows;
	size_t row_cnt;
	VEC(struct invocation_round) rounds; /* by session, then by number */
	VEC(struct invocation_part) parts;
	size_t row_cnt_all; /* row_cnt + session_cnt */
	size_t orphans;     /* calls of intervals that are not in the dataset */
	size_t bad_rows;    /* impossible ones, of all tables */
};

/*
 * others: keep the calls of intervals that are not in the dataset, too: somebody may have waited for them.
 * 1: loaded; 0: there is no call, this is no recording with probed functions (and nothing to free); -ENOMEM, -EIO.
 * Reads from the beginning, selects tables as it likes.
 */
int invocations_load(struct invocations *invocations, struct shard_reader *reader, const struct dataset *dataset,
		     bool others);
/* Of which recording a call is: an index into dataset.session_ids. */
static inline uint32_t invocations_session(const struct invocations *invocations, const struct dataset *dataset,
					   const struct call *call)
{
	return call->row < invocations->row_cnt ? dataset->session[call->row]
						: (uint32_t)(call->row - invocations->row_cnt);
}
void invocations_free(struct invocations *invocations);

/* The last round of a session with probed functions, NULL: it was recorded without rounds. */
const struct invocation_round *invocations_last_round(const struct invocations *invocations, uint32_t session);
/* When the last function of a session was let go for the budget, 0: none was.  What is probed is the same since. */
uint64_t invocations_settled_ts(const struct invocations *invocations, uint32_t session);
/* Never NULL. */
static inline const char *invocations_string(const struct invocations *invocations, uint32_t id)
{
	return id < invocations->strings.cnt ? invocations->strings.strings[id] : "";
}
const char *invocations_name(const struct invocations *invocations, uint32_t func);

#endif
