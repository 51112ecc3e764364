/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Roots of latency (DESIGN §10).  Each step of an interval's critical path has a blocker: its own thread, or the thread
 * that had the CPU, held the lock, owed the reply, worked for the request in front.  What the blocker did meanwhile is
 * looked up in the graph and followed until it ends at a root.  A way is how a root reached the interval.
 *
 * The entries of an interval sum to its latency exactly.  A root of code is split further by call paths
 * (roots_split.h): samples divide its time, they never add to it.
 */
#ifndef WHYLATE_ANALYSIS_ROOTS_H
#define WHYLATE_ANALYSIS_ROOTS_H

#include "analysis/causes.h"
#include "analysis/results.h"
#include "analysis/samples.h"
#include "analysis/spins.h"

#define ROOT_NEST_MAX 6 /* blockers whose own waits are followed, one behind the other */

/* What tells a root from another, call paths apart.  Texts are indexes into roots.strings, 0: none. */
struct root_key {
	uint32_t role;   /* name of the thread, or of several: "worker-*" */
	uint32_t type;   /* of the request that it worked for */
	uint32_t host;   /* where there are several */
	uint32_t object; /* a device, a peer's address, what an unknown one waited for */
	uint8_t kind;    /* enum root_kind */
	struct blame_ids pids, tids;
};

struct root_way {
	uint64_t object; /* an address; or an index into roots.strings, 0: none */
	bool by_address;
	bool own;               /* the interval's own thread, at work for it */
	bool other;             /* the root is another thread, or works for another request */
	bool for_it;            /* it worked for the interval, which says so nowhere: see is_for_it() */
	bool spins;             /* it owned a lock that the thread before it spun for */
	uint8_t category, wait; /* enum wl_category */
	uint32_t key;
	uint32_t context;             /* of the request that the root worked for: index into the traces' chains */
	uint32_t hops[PATH_HOPS_MAX]; /* roles between the interval's thread and the root, nearest first; 0: no more */
};

/* One way's time in one interval. */
struct root_entry {
	uint64_t ns;
	uint64_t ran_ns, taken_ns; /* of it: see enum root_time */
	uint64_t after_ns;         /* not of it: waits for a CPU after waits for a lock that the root held up */
	uint32_t row;              /* of the dataset */
	uint32_t way;
	uint32_t tick, tick_cnt; /* in roots.ticks, after roots__settle() */
};

/* An entry's time in the wait for a lock that is being followed. */
struct root_hold {
	uint32_t entry;
	uint64_t ns;
};

/* A sample that fell into that time. */
struct root_tick {
	uint32_t entry;
	uint32_t unit;   /* the same for one thread's work for one request, as one interval met it */
	uint32_t node;   /* in the samples' tree */
	uint32_t sample; /* the same where several intervals met it */
	double amount;
};

struct roots {
	const struct traces *traces;
	const struct samples *samples; /* NULL: no stacks were recorded */
	const struct dataset *dataset;
	struct arena *arena;
	struct intern strings;
	VEC(struct root_key) keys;
	VEC(struct root_way) ways;
	VEC(struct root_entry) entries; /* row by row */
	VEC(struct root_tick) ticks;    /* by entry, after roots__settle() */
	VEC(struct root_hold) holds;    /* of the wait that is being followed */
	bool in_lock_wait;
	struct idmap key_ids, way_ids, object_ids, hop_ids, unit_ids;
	uint32_t *role_ids; /* by index into the traces' strings, UINT32_MAX: not asked for so far */
	struct idmap stem_ids;
	VEC(uint32_t) stem_names; /* how many threads have a name with that stem */
	VEC(uint32_t) row_ways;   /* by way: its entry in the row under way */
	VEC(uint32_t) row_of_way; /* by way: the row that used it last */
	struct spins spins;
	bool many_hosts;
	struct path nested[ROOT_NEST_MAX]; /* memory */
};

/* 0 or -ENOMEM; roots_free() in either case.  The traces' strings are complete. */
int roots_init(struct roots *roots, const struct traces *traces, const struct samples *samples,
	       const struct dataset *dataset);
void roots_free(struct roots *roots);
/* The intervals come in the order of their rows.  0 or -ENOMEM. */
int roots__take(struct roots *roots, uint32_t row, const struct trace_interval *interval, const struct path *path);
/* After the last interval.  0 or -ENOMEM. */
int roots__settle(struct roots *roots);

static inline const char *roots_string(const struct roots *roots, uint32_t id)
{
	return id ? roots->strings.strings[id] : NULL;
}

/* Fills report->roots and report->causes; its latencies and thresholds are known.  0 or -ENOMEM. */
int roots_report(struct report *report, const struct roots *roots, const struct report_opts *opts);

#endif
