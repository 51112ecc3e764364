/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that a report rests on, from one pass of options over a recording. */
#ifndef WHYLATE_ANALYSIS_FINDINGS_H
#define WHYLATE_ANALYSIS_FINDINGS_H

#include "analysis/factors_report.h"
#include "analysis/roots.h"
#include "analysis/values.h"
#include "shard/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct findings_opts {
	struct dataset_filter filter;
	double tail;
	struct factor_rule rule;
	uint32_t bootstrap_cnt; /* 0: the default */
	bool keep_rows;         /* as of struct report_opts */
	bool without_samples;   /* functions that were not probed have no factors */
};

struct findings {
	struct dataset dataset;
	struct traces traces;
	struct paths paths; /* paths.traces NULL: no detail was recorded */
	struct samples samples;
	struct roots roots; /* there if paths are */
	struct invocations invocations;
	struct factor_analysis factors;
	struct factor_analysis whole;                  /* with what is understood, where anything is */
	bool probed;                                   /* the last three: functions were probed */
	struct invocations functions;                  /* of samples */
	struct factor_analysis sampled, sampled_whole; /* likewise */
	bool has_samples;                              /* the last three */
	struct values values;                          /* without rows: none were recorded */
	struct report report;
};

/* The dataset is there: finds the rest.  0 or -errno, and then nothing but the dataset is left to free. */
int findings_complete(struct findings *findings, struct shard_reader *reader, const struct findings_opts *opts);
/*
 * Of findings_complete(), only the chains of who waited for whom: 1: there are; 0: they were not recorded; -errno.
 * findings_unfollow() after 1 and 0.  as_one_host: a root is the same on all hosts.
 */
int findings_follow(struct findings *findings, struct shard_reader *reader, bool as_one_host);
void findings_unfollow(struct findings *findings);
/* Both, without a line: 0, or -errno with nothing to free. */
int findings_make(struct findings *findings, struct shard_reader *reader, const struct findings_opts *opts);
void findings_free(struct findings *findings);

#endif
