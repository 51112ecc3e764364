/* SPDX-License-Identifier: GPL-2.0-only */
/* From shards to a printed report: what `report` and `diagnose` share. */
#ifndef WHYLATE_CMD_ANALYSE_H
#define WHYLATE_CMD_ANALYSE_H

#include "analysis/factors_report.h"
#include "shard/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct analyse_options {
	const char *type;                      /* only intervals of this type; NULL: all */
	const char *host;                      /* only hosts that this glob fits; NULL: all */
	uint64_t since_wall_ns, until_wall_ns; /* 0: open */
	uint64_t round_ts; /* findings_make(): what began then or later, by the recording's clock, without its events */
	double tail;
	uint32_t top;
	bool json;
	double max_loss;
	struct factor_rule rule;
};

/* All that a report rests on. */
struct findings {
	struct dataset dataset;
	struct traces traces;
	struct paths paths; /* paths.traces NULL: no detail was recorded */
	struct invocations invocations;
	struct factor_analysis factors;
	bool probed; /* the last two: functions were probed */
	struct report report;
};

/* The dataset is there: finds the rest.  0 or -errno, and then nothing but the dataset is left to free. */
int findings_complete(struct findings *findings, struct shard_reader *reader, const struct analyse_options *options,
		      uint32_t bootstrap_cnt);
/* Both, without a line: 0, or -errno with nothing to free. */
int findings_make(struct findings *findings, struct shard_reader *reader, const struct analyse_options *options,
		  uint32_t bootstrap_cnt);
void findings_free(struct findings *findings);

/* Prints to stdout; an exit code, EXIT_FAILED after a line that says why. */
int analyse_run(const struct analyse_options *options, const char *const *paths, size_t path_cnt);

#endif
