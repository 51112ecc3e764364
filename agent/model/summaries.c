// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/summaries.h"

#include "base/names.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_NS    3000000000ULL /* rings are read in turn */
#define OTHER_TYPES UINT32_MAX

struct summaries {
	int64_t wall_ns;
	VEC(struct summary *) open;
	struct summary *given; /* to the caller */
	size_t last;           /* that was found, in `open` */
};

struct summaries *summaries__new(int64_t wall_ns)
{
	struct summaries *summaries = calloc(1, sizeof(*summaries));

	if (summaries)
		summaries->wall_ns = wall_ns;
	return summaries;
}

void summaries__free(struct summaries *summaries)
{
	if (!summaries)
		return;
	for (size_t i = 0; i < summaries->open.cnt; i++)
		free(summaries->open.items[i]);
	vec_free(&summaries->open);
	free(summaries->given);
	free(summaries);
}

uint64_t summaries__begin_ts(const struct summaries *summaries, const struct summary *summary)
{
	return summary->period * SUMMARY_PERIOD_NS - (uint64_t)summaries->wall_ns;
}

static uint64_t period_of(const struct summaries *summaries, uint64_t ts)
{
	return (ts + (uint64_t)summaries->wall_ns) / SUMMARY_PERIOD_NS;
}

/* NULL without memory. */
static struct summary *find(struct summaries *summaries, uint32_t type, uint64_t period)
{
	struct summary *summary;
	size_t of_period = 0;

	if (summaries->last < summaries->open.cnt) {
		summary = summaries->open.items[summaries->last];
		if (summary->type == type && summary->period == period)
			return summary;
	}
	for (size_t i = 0; i < summaries->open.cnt; i++) {
		summary = summaries->open.items[i];
		of_period += summary->period == period;
		if (summary->type != type || summary->period != period)
			continue;
		summaries->last = i;
		return summary;
	}
	if (of_period >= SUMMARY_TYPES_MAX && type != OTHER_TYPES)
		return find(summaries, OTHER_TYPES, period);
	summary = calloc(1, sizeof(*summary));
	if (!summary || vec_push(&summaries->open, summary)) {
		free(summary);
		return NULL;
	}
	summary->type = type;
	summary->period = period;
	summaries->last = summaries->open.cnt - 1;
	return summary;
}

int summaries__saw(struct summaries *summaries, uint32_t type, uint64_t latency_ns, double weight, uint64_t end_ts)
{
	struct summary *summary = find(summaries, type, period_of(summaries, end_ts));

	if (!summary)
		return -ENOMEM;
	summary->count += weight;
	summary->sum_ns += weight * (double)latency_ns;
	summary->max_ns = latency_ns > summary->max_ns ? latency_ns : summary->max_ns;
	summary->weights[loghist_class(latency_ns)] += (float)weight;
	return 0;
}

int summaries__kept(struct summaries *summaries, uint32_t type, const uint64_t category_ns[WL_CATEGORY_CNT],
		    double weight, uint64_t end_ts)
{
	struct summary *summary = find(summaries, type, period_of(summaries, end_ts));

	if (!summary)
		return -ENOMEM;
	summary->category_count += weight;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		summary->category_ns[c] += weight * (double)category_ns[c];
	return 0;
}

/* The text as one line of UTF-8 or whatever else it is; what separates lines becomes a blank. */
static void copy_what(char to[SUMMARY_WHAT_LEN + 1], const char *what)
{
	size_t len = 0;

	for (; len < SUMMARY_WHAT_LEN && what[len]; len++)
		to[len] = (unsigned char)what[len] < ' ' || what[len] == 0x7f ? ' ' : what[len];
	to[len] = '\0';
}

int summaries__waited(struct summaries *summaries, uint32_t type, enum wl_category category, const char *what,
		      double ns, uint64_t end_ts)
{
	struct summary *summary = find(summaries, type, period_of(summaries, end_ts));
	struct summary_culprit *least = NULL, added = {.category = category, .ns = ns};

	if (!summary)
		return -ENOMEM;
	copy_what(added.what, what);
	for (uint32_t i = 0; i < summary->culprit_cnt; i++) {
		struct summary_culprit *culprit = &summary->culprits[i];

		if (culprit->category == category && !strcmp(culprit->what, added.what)) {
			culprit->ns += ns;
			return 0;
		}
		least = least && least->ns <= culprit->ns ? least : culprit;
	}
	if (summary->culprit_cnt < SUMMARY_CULPRITS_MAX) {
		summary->culprits[summary->culprit_cnt++] = added;
		return 0;
	}
	/* One that keeps coming outgrows the others, one that came once makes room: no time is counted twice or lost.
	 */
	summary->others_ns[least->category] += least->ns;
	*least = added;
	return 0;
}

void summary_culprits_text(char buf[SUMMARY_CULPRITS_SZ], const struct summary *summary)
{
	size_t len = 0;

	*buf = '\0';
	for (uint32_t i = 0; i < summary->culprit_cnt; i++)
		len += (size_t)snprintf(buf + len, SUMMARY_CULPRITS_SZ - len, "%s%s %.7g %s", len ? "\n" : "",
					category_name(summary->culprits[i].category), summary->culprits[i].ns,
					summary->culprits[i].what);
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (summary->others_ns[c] > 0)
			len += (size_t)snprintf(buf + len, SUMMARY_CULPRITS_SZ - len, "%s%s %.7g ", len ? "\n" : "",
						category_name(c), summary->others_ns[c]);
}

const struct summary *summaries__next(struct summaries *summaries, uint64_t now_ts, bool all)
{
	free(summaries->given);
	summaries->given = NULL;
	for (size_t i = 0; i < summaries->open.cnt; i++) {
		struct summary *summary = summaries->open.items[i];

		if (!all && now_ts < summaries__begin_ts(summaries, summary) + SUMMARY_PERIOD_NS + GRACE_NS)
			continue;
		summaries->open.items[i] = summaries->open.items[--summaries->open.cnt];
		summaries->last = SIZE_MAX;
		summaries->given = summary;
		return summary;
	}
	return NULL;
}
