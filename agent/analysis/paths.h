/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The critical paths of all intervals together: what they have in common, who keeps whom waiting, the slowest in full.
 *
 * A line stands for all steps of one thread role, category, object and culprit; X_line of an interval is the time of
 * its steps there, so that the lines of an interval sum to its latency and shares.h applies as it does to categories.
 * Time behind an ambiguous edge is that of the wait before that edge, without object and culprit.  Intervals during
 * which records were lost are counted and enter neither a line nor a ranking.
 */
#ifndef WHYLATE_ANALYSIS_PATHS_H
#define WHYLATE_ANALYSIS_PATHS_H

#include "analysis/causes.h"
#include "analysis/results.h"
#include "analysis/traces.h"

/* What tells a line from another; texts are indexes into dataset.strings, 0: none. */
struct path_key {
	uint32_t role; /* name of the thread that the path is on, 0: the interval's own */
	uint32_t object, who;
	uint32_t host;          /* of `who`, where there are several */
	uint8_t category, wait; /* enum wl_category */
	bool own;
	bool by_recorder;                 /* the culprit is a process of the recorder */
	struct blame_ids pids, tids;      /* of the culprit */
	double doing_ns[WL_CATEGORY_CNT]; /* weighted: what the thread itself did meanwhile */
};

/* One line's time in one interval. */
struct path_entry {
	uint32_t row; /* of the dataset */
	uint32_t key;
	uint64_t ns;
	uint32_t pid, tid; /* of the culprit that was met there last, 0: not known */
};

/* Intervals of one type that waited for a lock that a thread held which worked for an interval of another type. */
struct path_crossing {
	uint32_t type, by_type; /* by_type 0: for none that is known */
	double count, wait_ns;  /* weighted */
};

struct paths {
	const struct traces *traces;
	VEC(struct path_key) keys;
	VEC(struct path_entry) entries; /* row by row */
	VEC(struct path_crossing) crossings;
	struct idmap key_ids, who_ids, crossing_ids;
	uint32_t *interval_of; /* per row: index into traces.intervals, UINT32_MAX: it has no path */
	bool *ranked;          /* per row: its path is complete enough to rank */
	size_t row_cnt, walked, lossy, with_gap, without_edge, with_loop, too_long, ambiguous;
	double ambiguous_ns; /* weighted */
};

/*
 * Walks every interval of the dataset that the traces know.  Where the path is good enough to rank, its categories and
 * culprits replace those of the counters in the dataset, and its roots are added to *roots (NULL: not asked for).
 * 0 or -ENOMEM.
 */
int paths_make(struct paths *paths, const struct traces *traces, struct dataset *dataset, struct roots *roots);
void paths_free(struct paths *paths);

/* Fills report->path; its latencies, thresholds and dataset are known.  0 or -ENOMEM. */
int paths_report(struct report *report, const struct paths *paths, const struct report_opts *opts);

#endif
