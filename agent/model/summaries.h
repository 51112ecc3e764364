/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a long recording keeps of each minute and type of request, whatever retention keeps of single ones: how many,
 * their sum, a sketch of their latencies, and where their time went.  Summaries of several minutes, types or hosts are
 * merged by adding.
 *
 * The sketch counts latencies by loghist classes: DDSketch (Masson, Rim and Lee, VLDB 2019) with the logarithm between
 * powers of two replaced by a straight line.  A quantile is off by 1/32 of itself at most, the width of a class, after
 * any number of merges in any order.
 */
#ifndef WHYLATE_MODEL_SUMMARIES_H
#define WHYLATE_MODEL_SUMMARIES_H

#include <whylate/record.h>

#include "base/loghist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUMMARY_PERIOD_NS    60000000000ULL
#define SUMMARY_TYPES_MAX    128 /* of one minute; the requests of others are of the type "" together */
#define SUMMARY_CULPRITS_MAX 16  /* of one minute and type; the time of others is kept by category */
#define SUMMARY_WHAT_LEN     95

/* What requests waited for, by their longest waits. */
struct summary_culprit {
	enum wl_category category;
	double ns; /* weights applied */
	char what[SUMMARY_WHAT_LEN + 1];
};

struct summary {
	uint64_t period; /* number of the minute on the wall */
	uint32_t type;   /* enum wl_interval_source << 16 | number; UINT32_MAX: of others */
	double count, sum_ns;
	uint64_t max_ns;
	double category_ns[WL_CATEGORY_CNT], category_count; /* of the requests that were kept, weights applied */
	float weights[LOGHIST_CLASS_CNT];
	struct summary_culprit culprits[SUMMARY_CULPRITS_MAX];
	uint32_t culprit_cnt;
	double others_ns[WL_CATEGORY_CNT]; /* of culprits that had to make room: the smallest ones did */
};

struct summaries;

/* wall_ns: what makes the recording's clock CLOCK_REALTIME.  NULL without memory. */
struct summaries *summaries__new(int64_t wall_ns);
void summaries__free(struct summaries *summaries);

/* A request that ended, kept or not.  0 or -ENOMEM. */
int summaries__saw(struct summaries *summaries, uint32_t type, uint64_t latency_ns, double weight, uint64_t end_ts);
/* Of one that is kept, where its time went.  0 or -ENOMEM. */
int summaries__kept(struct summaries *summaries, uint32_t type, const uint64_t category_ns[WL_CATEGORY_CNT],
		    double weight, uint64_t end_ts);
/* Of one that is kept, what one of its waits was for; `what` is cut to SUMMARY_WHAT_LEN.  0 or -ENOMEM. */
int summaries__waited(struct summaries *summaries, uint32_t type, enum wl_category category, const char *what,
		      double ns, uint64_t end_ts);
/*
 * The next summary of a minute that is over by now_ts, or of any with all; NULL: there is none.  It is the caller's
 * until the next call.  A request of that minute that comes later makes another one.
 */
const struct summary *summaries__next(struct summaries *summaries, uint64_t now_ts, bool all);
/* When the minute began and ended, by the recording's clock. */
uint64_t summaries__begin_ts(const struct summaries *summaries, const struct summary *summary);

/* "CATEGORY NS WHAT" a line, WHAT "" for the others of a category. */
#define SUMMARY_CULPRITS_SZ ((SUMMARY_CULPRITS_MAX + WL_CATEGORY_CNT) * (SUMMARY_WHAT_LEN + 48))
void summary_culprits_text(char buf[SUMMARY_CULPRITS_SZ], const struct summary *summary);

#endif
