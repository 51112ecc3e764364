// SPDX-License-Identifier: GPL-2.0-or-later
/* What becomes of each record that comes out of the rings. */
#include "session/exposed.h"
#include "session/list.h"
#include "session/recording.h"
#include "session/sinks.h"

#include <errno.h>
#include <string.h>

typedef int (*sink_take)(struct recording *recording, struct taken *taken);

#define SINKS_MAX       9
#define EARLY_WORDS_MAX (4 << 20 >> 3) /* as much as a ring holds, about */

/* Names come before what uses them; an interval's calls before its row, which has their flags. */
static const sink_take sinks[WL_RECORD_KIND_CNT][SINKS_MAX] = {
	[WL_RECORD_INTERVAL] = {recording_names_take, recording_retention_take, recording_summaries_take,
				recording_metrics_take, recording_trace_take, recording_invocations_take,
				recording_intervals_take, recording_samples_take},
	[WL_RECORD_BRIEF] = {recording_names_take, recording_retention_take, recording_summaries_take,
			     recording_metrics_take, recording_trace_take, recording_invocations_take,
			     recording_samples_take},
	[WL_RECORD_TASK] = {recording_samples_take, recording_processes_take, recording_names_take,
			    recording_trace_take},
	[WL_RECORD_SEGMENT] = {recording_trace_take},
	[WL_RECORD_WAKEUP] = {recording_trace_take},
	[WL_RECORD_SOCKET] = {recording_trace_take},
	[WL_RECORD_BLOCK] = {recording_trace_take},
	[WL_RECORD_TIMER] = {recording_trace_take},
	[WL_RECORD_QUEUE] = {recording_trace_take},
	[WL_RECORD_INVOCATION] = {recording_invocations_take},
	[WL_RECORD_STACK] = {recording_samples_take},
	[WL_RECORD_STACK_WAIT] = {recording_samples_take},
	[WL_RECORD_PYTHON] = {recording_samples_take},
	[WL_RECORD_VALUES] = {recording_samples_take},
	[WL_RECORD_PROGRAM] = {recording_samples_take},
};

static size_t record_words(const struct wl_record_header *header)
{
	return (header->sz + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

/*
 * A connection's statement is executed on one CPU and was prepared on another, whose ring is read later: the execution
 * waits for the end of the poll, before any sink but that of names has it.  True: it is kept.
 */
static bool keep_early(struct recording *recording, const struct wl_record_header *header)
{
	struct recorded_early *early = &recording->early;
	size_t words = record_words(header);

	if (early->is_handed || early->records.cnt + words > EARLY_WORDS_MAX || vec_reserve(&early->records, words))
		return false;
	memcpy(early->records.items + early->records.cnt, header, header->sz);
	early->records.cnt += words;
	return true;
}

int recording_hand_early(struct recording *recording)
{
	struct recorded_early *early = &recording->early;
	size_t at = 0;
	int err = 0;

	early->is_handed = true;
	while (at < early->records.cnt && !err) {
		const struct wl_record_header *header = (const void *)(early->records.items + at);

		err = recording_on_record(recording, header);
		at += record_words(header);
	}
	early->is_handed = false;
	early->records.cnt = 0;
	return err;
}

int recording_on_record(void *owner, const struct wl_record_header *header)
{
	const sink_take *sink = header->kind < WL_RECORD_KIND_CNT ? sinks[header->kind] : NULL;
	struct taken taken = {.header = header};
	union {
		struct wl_interval_record interval;
		struct wl_brief_record brief;
	} copy;
	int err = 0;

	if (!sink || !*sink)
		return -EBADMSG;
	if (header->kind == WL_RECORD_INTERVAL) {
		copy.interval = *(const struct wl_interval_record *)header;
		taken.kept = &copy.interval;
	} else if (header->kind == WL_RECORD_BRIEF) {
		copy.brief = *(const struct wl_brief_record *)header;
	}
	if (header->kind == WL_RECORD_INTERVAL || header->kind == WL_RECORD_BRIEF)
		taken.ended = &copy.brief;
	for (; *sink && !err && !taken.is_impossible; sink++) {
		err = (*sink)(owner, &taken);
		if (taken.is_early && keep_early(owner, header))
			break;
		taken.is_early = false;
	}
	return err;
}

int recording_poll(struct recording *recording, int timeout_ms)
{
	int err = capture__poll(recording->capture, timeout_ms, recording_on_record, recording);

	/* What was in any ring before the execution was read is read by now. */
	if (err >= 0 && recording->early.records.cnt)
		err = capture__poll(recording->capture, 0, recording_on_record, recording);
	return err < 0 ? err : recording_hand_early(recording) ?: err;
}

/* --- retention ---------------------------------------------------------------------------------------------------- */

/* What becomes of the interval was decided where it ended. */
int recording_retention_take(struct recording *recording, struct taken *taken)
{
	const struct wl_brief_record *ended = taken->ended;
	double weight = interval_weight(ended->rate);

	recording->intervals.received++;
	if (ended->end_ts < ended->begin_ts) {
		recording->intervals.impossible++;
		taken->is_impossible = true;
		return 0;
	}
	recording->intervals.passed_over += !taken->kept;
	recording->intervals.represented += weight;
	retention__saw(recording->retention, ended->end_ts - ended->begin_ts, weight, ended->end_ts);
	return 0;
}

void recording_retain(struct recording *recording)
{
	capture__retain(recording->capture, retention__late_ns(recording->retention),
			retention__chance(recording->retention));
}

/* --- rows of intervals -------------------------------------------------------------------------------------------- */

int recording_intervals_take(struct recording *recording, struct taken *taken)
{
	struct interval_names names = {
		.threads = recording->threads,
		.mappings = &recording->target.mappings,
		.listeners = &recording->target.listeners,
		.lines = &recording->symbols.lines,
		.types = recording->types,
		.data_name = recording_data_name,
		.owner = recording,
	};
	struct shard_row *row = &recording->journal.row;
	struct interval_texts texts;
	uint64_t window;
	int err;

	for (int slot = 0; slot < WL_HW_SLOTS; slot++)
		names.hw_counter[slot] = capture__hw_counter(recording->capture, taken->kept->hw_epoch, slot);
	if (interval_row_make(row, &texts, taken->kept, &names)) {
		recording->intervals.impossible++;
		taken->is_impossible = true;
		return 0;
	}
	row->values[INTERVAL_FLAGS].u64 |= taken->flags;
	if (recording_list_has_gap(recording, taken->ended->begin_ts, taken->ended->end_ts))
		row->values[INTERVAL_FLAGS].u64 |= WL_INTERVAL_LOSSY;
	window = recording->windows.on ? window_plan__window_of(&recording->windows.plan, taken->ended->begin_ts) : 0;
	if (window)
		row->values[INTERVAL_WINDOW].u64 = window;
	else
		shard_row__set_null(row, INTERVAL_WINDOW);
	taken->weight = row->values[INTERVAL_WEIGHT].f64;
	recording->intervals.kept++;
	err = recording_summaries_kept(recording, taken->ended->type, row)
		      ?: recording_metrics_kept(recording, taken->ended->type, row);
	return err ? err : journal__append(&recording->journal, SHARD_TABLE_INTERVAL, row);
}
