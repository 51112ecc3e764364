// SPDX-License-Identifier: GPL-2.0-or-later
/* Causes in words: one line that a person on call understands, and what it rests on. */
#include "analysis/causes.h"
#include "analysis/impact.h"
#include "base/names.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_SZ   320
#define NUMBER_SZ 32
/* A function is named as the place where more than this of a cause's time is spent. */
#define PLACE_MIN 0.25

static const char *duration(char buf[NUMBER_SZ], double ns)
{
	return units_duration_text(buf, NUMBER_SZ, ns);
}

/* "`backup` (pid 812)", as much of it as is known. */
static void culprit_text(char *buf, size_t sz, const struct cause *cause, const struct dataset *dataset)
{
	bool own = cause->culprit_pid >= 0 && cause->culprit_pid == dataset->pid && !cause->culprit_host;
	char id[64] = "", host[96] = "";

	if (cause->culprit_host)
		snprintf(host, sizeof(host), " on %.80s", cause->culprit_host);

	if (own && cause->culprit_tid >= 0)
		snprintf(id, sizeof(id), "tid %lld, a thread of its own", (long long)cause->culprit_tid);
	else if (cause->culprit_pid >= 0)
		snprintf(id, sizeof(id), "pid %lld%s", (long long)cause->culprit_pid,
			 own ? ", a thread of its own" : "");
	else if (cause->culprit_tid >= 0)
		snprintf(id, sizeof(id), "tid %lld", (long long)cause->culprit_tid);
	if (!cause->culprit_comm || name_is_idle_cpu(cause->culprit_comm))
		snprintf(buf, sz, "%s%s", id, host);
	else if (*id)
		snprintf(buf, sz, "`%s` (%s)%s", cause->culprit_comm, id, host);
	else
		snprintf(buf, sz, "`%s`%s", cause->culprit_comm, host);
}

static char *what_text(const struct cause *cause, const struct report *report, struct arena *arena)
{
	const char *label = category_label(cause->category);
	char culprit[TEXT_SZ];

	culprit_text(culprit, sizeof(culprit), cause, report->dataset);
	switch (cause->category) {
	case WL_CATEGORY_RUNQ:
		/* An object: whoever had it was waiting for the CPU, and the request for the object. */
		if (cause->object)
			return arena__printf(arena, "%s behind a lock (%s)%s%s%s", label, cause->object,
					     *culprit ? "; " : "", culprit,
					     *culprit ? " ran instead of its holder" : "");
		if (name_is_idle_cpu(cause->culprit_comm))
			return arena__printf(arena, "%s that was idle and had to wake up", label);
		return arena__printf(arena, "%s; %s ran instead", label, culprit);
	case WL_CATEGORY_LOCK:
		return arena__printf(arena, "%s%s%s%s%s%s", label, cause->object ? " (" : "",
				     cause->object ? cause->object : "", cause->object ? ")" : "",
				     *culprit ? " held by " : "", culprit);
	case WL_CATEGORY_OTHER:
		if (!cause->object)
			return arena__printf(arena, "waiting for %s", culprit);
		return arena__printf(arena, "waiting in %s%s%s", cause->object, *culprit ? " for " : "", culprit);
	case WL_CATEGORY_QUEUE:
		return arena__printf(arena, "%s%s%s%s%s%s", label, cause->object ? " (" : "",
				     cause->object ? cause->object : "", cause->object ? ")" : "",
				     *culprit ? ", on " : "", culprit);
	default:
		if (cause->object)
			return arena__printf(arena, "%s in %s%s%s", label, cause->object,
					     *culprit ? ", because of " : "", culprit);
		return arena__printf(arena, "%s; %s", label, culprit);
	}
}

char *cause_numbers_text(struct arena *arena, const struct share_line *line)
{
	char late[NUMBER_SZ], typical[NUMBER_SZ];

	return arena__printf(arena, "late intervals spent %s on it, typical ones %s; %.0f %% of the late ones met it",
			     duration(late, line->late_ns), duration(typical, line->typical_ns), line->late_met * 100);
}

char *cause_variance_text(struct arena *arena, const struct share_line *line)
{
	if (isnan(line->variance_share_ci.lo))
		return arena__printf(arena, "%.0f %% of the variance", line->variance_share * 100);
	return arena__printf(arena, "%.0f %% [%.0f–%.0f] of the variance", line->variance_share * 100,
			     line->variance_share_ci.lo * 100, line->variance_share_ci.hi * 100);
}

/* The event of that category with the largest gain. */
static char *event_text(struct arena *arena, const struct report *report, enum wl_category category)
{
	for (size_t i = 0; i < report->event_cnt; i++) {
		const struct event_line *line = &report->events[i];

		if (event_category(line->event) != (int)category || !(line->gain > 0))
			continue;
		if (text_ends(line->event, EVENT_LENGTH))
			return arena__printf(arena, "%s: without this time, p%.10g would be %.0f %% lower", line->event,
					     report->tail * 100, line->gain * 100);
		return arena__printf(arena,
				     "%s: without the %.2g %% of intervals above %.0f, p%.10g would be %.0f %% lower",
				     line->event, (1 - line->threshold_percentile) * 100, line->threshold,
				     report->tail * 100, line->gain * 100);
	}
	return NULL;
}

char *cause_several_text(struct arena *arena, const char *what, const struct blame_ids *ids)
{
	char list[TEXT_SZ];
	size_t len = 0;

	for (uint32_t i = 0; i < ids->cnt && i < BLAME_IDS_MAX && len < sizeof(list); i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u", i ? ", " : "", ids->ids[i]);
	return arena__printf(arena, "it stands for several %s: %s%s", what, list,
			     ids->cnt > BLAME_IDS_MAX ? " and more" : "");
}

int cause__add_line(struct cause *cause, const char *line)
{
	if (!line)
		return -ENOMEM;
	cause->evidence[cause->evidence_cnt++] = line;
	return 0;
}

/* "`f` 82 %, `g` 10 %" */
static char *places_text(struct arena *arena, const char *what, const struct cause_place *places)
{
	char list[TEXT_SZ] = "";
	size_t len = 0;

	for (size_t i = 0; i < CAUSE_PLACES_MAX && places[i].function && places[i].share >= 0.05; i++)
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.0f %% `%.*s`", i ? ", " : "",
						places[i].share * 100, TEXT_SZ / CAUSE_PLACES_MAX - 16,
						places[i].function);
	return arena__printf(arena, "%s: %s", what, list);
}

static const struct factor_line *factor_named(const struct report *report, const char *function)
{
	for (size_t i = 0; report->factors && i < report->factors->line_cnt; i++) {
		const struct factor_line *line = &report->factors->lines[i];

		if (!line->functions[1] && !strcmp(line->functions[0], function))
			return line;
	}
	return NULL;
}

/* "`f`: 61 % of the variance, 93 % of that blocked" */
static char *factor_text(struct arena *arena, const struct factor_line *line)
{
	static const char *const doings[FACTOR_DOING_CNT] = {"running", "waiting for a CPU", "blocked", "interrupted"};
	int most = 0;

	for (int d = 1; d < FACTOR_DOING_CNT; d++)
		if (line->doing_contribution[d] > line->doing_contribution[most])
			most = d;
	if (isnan(line->calls))
		return arena__printf(arena, "`%.100s`%s: %.0f %% of the variance, %.0f %% of that %s",
				     line->functions[0], line->body[0] ? " itself" : "", line->variance_share * 100,
				     line->doing_contribution[most] * 100, doings[most]);
	return arena__printf(arena, "`%.100s`%s: %.0f %% of the variance, %.0f %% of that %s; called %.3g times",
			     line->functions[0], line->body[0] ? " itself" : "", line->variance_share * 100,
			     line->doing_contribution[most] * 100, doings[most], line->calls);
}

/* In which functions it was spent, and what the tree says of the first of them. */
static int describe_places(struct cause *cause, const struct report *report, const struct cause_places *places,
			   struct arena *arena)
{
	const struct factor_line *factor;
	int err = 0;

	if (!places)
		return 0;
	if (places->functions[0].function && places->functions[0].share >= PLACE_MIN) {
		cause->function = places->functions[0].function;
		factor = factor_named(report, cause->function);
		err = cause__add_line(cause, places_text(arena, "spent in", places->functions));
		if (!err && factor && !isnan(factor->doing_contribution[0]))
			err = cause__add_line(cause, factor_text(arena, factor));
	}
	if (!err && places->culprits[0].function && places->culprits[0].share >= PLACE_MIN) {
		cause->culprit_function = places->culprits[0].function;
		err = cause__add_line(cause, places_text(arena, "meanwhile the other thread was in", places->culprits));
	}
	return err;
}

/*
 * In counters mode nobody watches a request between two threads: that time is `other`.  Says so where it is most of
 * what the late requests have of it.
 */
static int describe_moves(struct cause *cause, const struct report *report, struct arena *arena)
{
	const struct dataset *dataset = report->dataset;
	const uint64_t *other_ns = dataset->category_ns[WL_CATEGORY_OTHER];
	double all = 0, moved = 0;

	if (cause->category != WL_CATEGORY_OTHER || cause->object || cause->culprit_comm || report->path)
		return 0;
	for (size_t row = 0; other_ns && row < dataset->row_cnt; row++) {
		double ns = dataset->weight[row] * (double)other_ns[row];

		if ((double)dataset->latency_ns[row] < report->tail_threshold_ns)
			continue;
		all += ns;
		if (dataset->flags[row] & WL_INTERVAL_MOVED)
			moved += ns;
	}
	if (!(moved > all / 2))
		return 0;
	return cause__add_line(cause,
			       arena__printf(arena,
					     "%.0f %% of it in requests that one thread read and another answered: "
					     "--mode trace follows them from thread to thread",
					     100 * moved / all));
}

int cause_describe_doubts(struct cause *cause, const struct report *report, struct arena *arena)
{
	int err = 0;

	if (isnan(cause->share_ci.lo))
		err = cause__add_line(cause, "too few intervals to say how sure this is");
	else if (cause->share_ci.lo <= 0)
		err = cause__add_line(cause,
				      "its confidence interval reaches down to 0: a longer recording would settle it");
	if (!err && report->records_lost_share > 0 && !isnan(cause->share_ci.lo))
		err = cause__add_line(
			cause, arena__printf(arena, "the interval is widened because %.2g %% of the records were lost",
					     report->records_lost_share * 100));
	return err;
}

int cause_describe(struct cause *cause, const struct report *report, const struct blame_split *split, uint32_t slot,
		   const struct cause_places *places, struct arena *arena)
{
	const struct blame_slot *blame = &split->slots[slot];
	const char *event;
	int err;

	cause->evidence = arena__alloc(arena, CAUSE_EVIDENCE_MAX, sizeof(*cause->evidence));
	if (!cause->evidence)
		return -ENOMEM;
	if (cause->object || cause->culprit_comm)
		cause->what = what_text(cause, report, arena);
	else
		cause->what = arena__printf(arena, "%s%s", category_label(cause->category),
					    split->slot_cnt > 1 ? " (the rest: other culprits, or nobody known)" : "");
	if (!cause->what)
		return -ENOMEM;
	err = cause__add_line(cause, cause_numbers_text(arena, &split->lines[slot]));
	if (!err && !isnan(cause->variance_share))
		err = cause__add_line(cause, cause_variance_text(arena, &split->lines[slot]));
	if (!err && blame->pids.cnt > 1)
		err = cause__add_line(cause, cause_several_text(arena, "pids", &blame->pids));
	else if (!err && !blame->pids.cnt && blame->tids.cnt > 1)
		err = cause__add_line(cause, cause_several_text(arena, "tids", &blame->tids));
	if (!err)
		err = describe_moves(cause, report, arena);
	if (!err)
		err = describe_places(cause, report, places, arena);
	event = err ? NULL : event_text(arena, report, cause->category);
	if (event)
		err = cause__add_line(cause, event);
	return err ? err : cause_describe_doubts(cause, report, arena);
}
