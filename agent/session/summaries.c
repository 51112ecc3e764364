// SPDX-License-Identifier: GPL-2.0-or-later
/* The table `summary`: each minute of a recording, by type. */
#include "session/recording.h"
#include "session/sinks.h"

#include "base/names.h"
#include "model/sketch.h"
#include "model/summaries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int recording_summaries_begin(struct recording *recording)
{
	struct timespec mono, wall;

	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	recording->summaries = summaries__new((wall.tv_sec - mono.tv_sec) * 1000000000LL + wall.tv_nsec - mono.tv_nsec);
	return recording->summaries ? 0 : -ENOMEM;
}

int recording_summaries_take(struct recording *recording, struct taken *taken)
{
	const struct wl_brief_record *ended = taken->ended;

	return summaries__saw(recording->summaries, ended->type, ended->end_ts - ended->begin_ts,
			      interval_weight(ended->rate), ended->end_ts);
}

static const char *text_of(const struct shard_row *row, uint32_t column)
{
	return shard_row__is_null(row, column) || !row->values[column].str ? "" : row->values[column].str;
}

static enum wl_category blocked_category(const struct shard_row *row)
{
	int state = state_by_name(text_of(row, INTERVAL_BLOCKED_STATE));

	return state < 0 ? WL_CATEGORY_OTHER : state_category((enum wl_state)state);
}

static enum wl_category fault_category(const struct shard_row *row)
{
	uint64_t major_ns = row->values[interval_column_length(WL_STATE_FAULT_MAJOR)].u64;

	return major_ns >= row->values[INTERVAL_FAULT_NS].u64 ? WL_CATEGORY_FAULT_MAJOR : WL_CATEGORY_FAULT_MINOR;
}

/* The lengths are null where there was none. */
size_t recording_waits_of(const struct shard_row *row, struct recorded_wait waits[RECORDED_WAITS_MAX])
{
	const struct {
		uint32_t length, what, by;
		enum wl_category category;
	} kinds[RECORDED_WAITS_MAX] = {
		{INTERVAL_CULPRIT_NS, INTERVAL_CULPRIT_COMM, UINT32_MAX, WL_CATEGORY_RUNQ},
		{INTERVAL_LOCK_NS, INTERVAL_LOCK_NAME, INTERVAL_LOCK_OWNER_COMM, WL_CATEGORY_LOCK},
		{INTERVAL_BLOCKED_NS, INTERVAL_BLOCKED_SYSCALL, UINT32_MAX, blocked_category(row)},
		{INTERVAL_FAULT_NS, INTERVAL_FAULT_NAME, UINT32_MAX, fault_category(row)},
	};
	size_t cnt = 0;

	for (size_t k = 0; k < RECORDED_WAITS_MAX; k++) {
		const char *what = text_of(row, kinds[k].what);

		if (shard_row__is_null(row, kinds[k].length) || !row->values[kinds[k].length].u64)
			continue;
		waits[cnt++] = (struct recorded_wait){
			.category = kinds[k].category,
			.what = *what ? what : "unknown",
			.by = kinds[k].by == UINT32_MAX ? "" : text_of(row, kinds[k].by),
			.ns = (double)row->values[kinds[k].length].u64,
		};
	}
	return cnt;
}

static int take_waits(struct summaries *summaries, uint32_t type, const struct shard_row *row)
{
	struct recorded_wait waits[RECORDED_WAITS_MAX];
	size_t cnt = recording_waits_of(row, waits);
	char what[SUMMARY_WHAT_LEN + 1];
	int err = 0;

	for (size_t w = 0; w < cnt && !err; w++) {
		snprintf(what, sizeof(what), "%s%s%s", waits[w].what, *waits[w].by ? " held by " : "", waits[w].by);
		err = summaries__waited(summaries, type, waits[w].category, what,
					row->values[INTERVAL_WEIGHT].f64 * waits[w].ns,
					row->values[INTERVAL_END_TS].u64);
	}
	return err;
}

int recording_summaries_kept(struct recording *recording, uint32_t type, const struct shard_row *row)
{
	uint64_t category_ns[WL_CATEGORY_CNT] = {0};

	for (int s = 0; s < WL_STATE_CNT; s++)
		category_ns[state_category(s)] += row->values[interval_column_length(s)].u64;
	return summaries__kept(recording->summaries, type, category_ns, row->values[INTERVAL_WEIGHT].f64,
			       row->values[INTERVAL_END_TS].u64)
		       ?: take_waits(recording->summaries, type, row);
}

static int write_row(struct recording *recording, const struct summary *summary, char *sketch)
{
	uint64_t begin_ts = summaries__begin_ts(recording->summaries, summary);
	char type[INTERVAL_TYPE_LEN], categories[WL_CATEGORY_CNT * 40] = "", culprits[SUMMARY_CULPRITS_SZ];
	struct shard_row *row = &recording->journal.row;
	size_t len = 0;

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (summary->category_ns[c] > 0)
			len += (size_t)snprintf(categories + len, sizeof(categories) - len, "%s%s:%.0f", len ? " " : "",
						category_name(c), summary->category_ns[c]);
	sketch_text(sketch, summary->weights);
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[SUMMARY_BEGIN_TS].u64 = begin_ts > recording->clock.begin_ts ? begin_ts : recording->clock.begin_ts;
	row->values[SUMMARY_END_TS].u64 = begin_ts + SUMMARY_PERIOD_NS;
	row->values[SUMMARY_TYPE].str =
		summary->type == UINT32_MAX
			? ""
			: interval_type_name(summary->type, &recording->target.listeners, &recording->symbols.lines,
					     recording->types, type, sizeof(type));
	row->values[SUMMARY_COUNT].f64 = summary->count;
	row->values[SUMMARY_SUM_NS].f64 = summary->sum_ns;
	row->values[SUMMARY_MAX_NS].u64 = summary->max_ns;
	row->values[SUMMARY_SKETCH].str = sketch;
	row->values[SUMMARY_CATEGORY_COUNT].f64 = summary->category_count;
	row->values[SUMMARY_CATEGORIES].str = categories;
	summary_culprits_text(culprits, summary);
	row->values[SUMMARY_CULPRITS].str = culprits;
	return journal__append(&recording->journal, SHARD_TABLE_SUMMARY, row);
}

int recording_summaries_write(struct recording *recording, bool all)
{
	const struct summary *summary;
	char *sketch = NULL;
	int err = 0;

	while (!err && (summary = summaries__next(recording->summaries, monotonic_ns(), all))) {
		sketch = sketch ? sketch : malloc(SKETCH_TEXT_SZ);
		err = sketch ? write_row(recording, summary, sketch) : -ENOMEM;
	}
	free(sketch);
	return err;
}
