/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Factors of a recording with probed functions, or with samples: the tree over its intervals, what is selected in it,
 * and what is told of it: intervals of confidence, what a function was doing, and in which functions the time of each
 * cause was spent.
 */
#ifndef WHYLATE_ANALYSIS_FACTORS_REPORT_H
#define WHYLATE_ANALYSIS_FACTORS_REPORT_H

#include "analysis/causes.h"
#include "analysis/factor_walk.h"
#include "analysis/factors.h"

#define FACTOR_LINES_MAX 24    /* beyond the selected ones */
#define FACTOR_LINE_MIN  0.005 /* smaller contributions are not worth a line, unless they are selected */

struct factor_analysis {
	struct factor_walk walk;
	struct factors factors;              /* funcs are indexes into the invocations' symbols */
	VEC(uint32_t) rows;                  /* of the dataset, that took part */
	VEC(uint64_t) left_ns;               /* of their latencies, without what is understood */
	const struct factor_analysis *whole; /* with it; NULL: nothing is understood */
	size_t impossible;                   /* rows whose calls do not fit into them */
	struct factor_rule rule;
};

/*
 * Builds the tree over the intervals of a round (WALK_LAST_ROUND: the newest) and selects.  whole: the same without
 * rule->understood, NULL if there is none; it has to outlive this one.  0 or -ENOMEM; factor_analysis_free() in either
 * case.
 */
int factor_analysis_make(struct factor_analysis *analysis, const struct invocations *invocations,
			 const struct dataset *dataset, const struct paths *paths, uint32_t round,
			 const struct factor_rule *rule, const struct factor_analysis *whole);
/* Likewise, from samples; *functions are theirs (sample_functions()). */
int factor_analysis_sample(struct factor_analysis *analysis, const struct invocations *functions,
			   const struct samples *samples, const struct dataset *dataset, const struct paths *paths,
			   const struct factor_rule *rule, const struct factor_analysis *whole);
void factor_analysis_free(struct factor_analysis *analysis);

/*
 * Fills report->factors from opts->factors; report->latency and thresholds are known.  places
 * is zeroed by the caller.  0 or -ENOMEM.
 */
int factors_report(struct report *report, const struct blame_split *splits, const struct report_opts *opts,
		   cause_places_table *places);

/*
 * Intervals of confidence of contributions: lines[i] is factors.list[order[i]].  All rows are added in their order,
 * each as the tree has visited it last; then the lines get theirs.  NULL or -ENOMEM without memory.
 */
struct factor_confidence;
struct factor_confidence *factor_confidence__new(const uint32_t *order, size_t cnt, const struct factors *factors,
						 const struct share_rows *rows, const struct share_opts *opts);
void factor_confidence__free(struct factor_confidence *confidence);
void factor_confidence__add(struct factor_confidence *confidence, size_t row, const struct variance_tree *tree);
int factor_confidence__finish(struct factor_confidence *confidence, struct factor_line *lines, size_t cnt);

#endif
