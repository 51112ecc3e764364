/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From shards to a printed report: what `report` and `diagnose` share. */
#ifndef WHYLATE_VIEW_ANALYSE_H
#define WHYLATE_VIEW_ANALYSE_H

#include "analysis/findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analyse_options {
	const char *type;                      /* only intervals of this type; NULL: all */
	const char *host;                      /* only hosts that this glob fits; NULL: all */
	uint64_t since_wall_ns, until_wall_ns; /* 0: open */
	double tail;
	uint32_t top;
	bool json;
	const char *html; /* a page is written there as well, "-": to stdout instead of the text; NULL: none */
	double max_loss;
	struct factor_rule rule;
	factor_names understood; /* rule.understood */
	uint64_t segments_ns;    /* the recording in segments of that length; 0: as a whole */
};

/* Prints to stdout; an exit code, EXIT_FAILED after a line that says why. */
int analyse_run(const struct analyse_options *options, const char *const *paths, size_t path_cnt);

#endif
