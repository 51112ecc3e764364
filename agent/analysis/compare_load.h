/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two sides of a comparison: each is read alone, and rows of both together are assigned to them. */
#ifndef WHYLATE_ANALYSIS_COMPARE_LOAD_H
#define WHYLATE_ANALYSIS_COMPARE_LOAD_H

#include "analysis/compare.h"
#include "analysis/compare_side.h"

/* One side alone: its sessions, its span, and the facts that are printed of it. */
struct compare_loaded {
	struct compare_facts facts;
	uint64_t since_wall_ns, until_wall_ns;
	struct dataset dataset; /* owns the strings of the facts */
	bool is_loaded;
};

/*
 * Without the counters, which the comparison reads from both sides together.  0 or -errno: -ENODATA where the recording
 * does not tell its time of day.
 */
int compare_side__load(struct compare_loaded *loaded, const struct side *side, const char *type,
		       struct shard_reader *reader);
void compare_side__facts(struct compare_facts *facts, const struct side *side, const struct dataset *dataset);
/* COMPARE_IN_A, COMPARE_IN_B of each row; free().  NULL: no memory. */
uint8_t *compare_sides_of(const struct dataset *dataset, const struct side *sides, const struct compare_loaded *loaded);

#endif
