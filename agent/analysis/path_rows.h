/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of a dataset whose path is good enough to rank, without the others in between. */
#ifndef WHYLATE_ANALYSIS_PATH_ROWS_H
#define WHYLATE_ANALYSIS_PATH_ROWS_H

#include "analysis/paths.h"
#include "analysis/shares.h"

struct path_rows {
	struct share_rows rows;
	uint64_t *latency_ns;
	double *weights;
	uint32_t *windows;
	uint32_t *at; /* by row of the dataset */
	double late_weight, typical_weight;
	/* NULL: rows are late or typical by the thresholds of `rows`; else per row what it counts as. */
	const uint8_t *groups;
};

enum path_group { PATH_TYPICAL, PATH_BETWEEN, PATH_LATE, PATH_GROUP_CNT };

/* The report's thresholds are known.  0 or -ENOMEM; path_rows__free() in either case. */
int path_rows__init(struct path_rows *ranked, const struct report *report, const struct paths *paths);
void path_rows__free(struct path_rows *ranked);

#endif
