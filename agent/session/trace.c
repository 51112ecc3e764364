// SPDX-License-Identifier: GPL-2.0-or-later
/* What trace mode adds to a recording. */
#include "base/log.h"
#include "session/recording.h"
#include "session/sinks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int recording_append(void *owner, enum shard_table_id table, const struct shard_row *row)
{
	struct recording *recording = owner;

	return journal__append(&recording->journal, table, row);
}

/* What every recording takes, rows that wait to be packed included, without the rings. */
#define BASE_SZ (26ULL << 20)

/* --memory is for the whole of trace mode; where the rings of many CPUs take most of it, half is the detail's. */
static uint64_t memory_for_detail(const struct recording *recording)
{
	uint64_t memory = recording->options->memory, taken = BASE_SZ + capture__ring_bytes(recording->capture);

	return taken < memory / 2 ? memory - taken : memory / 2;
}

int recording_trace_open(struct recording *recording)
{
	struct trace_opts opts = {
		.memory = memory_for_detail(recording),
		.window_ns = recording_has_goroutines(recording) ? TRACE_GO_WINDOW_NS : 0,
		.append = recording_append,
		.owner = recording,
		.data_name = recording_data_name,
		.threads = recording->threads,
		.listeners = &recording->target.listeners,
		.lines = &recording->symbols.lines,
		.types = recording->types,
	};

	if (!recording->options->trace)
		return 0;
	recording->trace = trace__new(&opts);
	if (recording->trace)
		return 0;
	log_error("out of memory");
	return -ENOMEM;
}

int recording_trace_take(struct recording *recording, struct taken *taken)
{
	if (!recording->trace)
		return 0;
	if (taken->kept)
		return trace__take_interval(recording->trace, taken->kept);
	if (taken->ended)
		return trace__take_brief(recording->trace, taken->ended);
	return trace__take(recording->trace, taken->header);
}

int recording_trace_advance(struct recording *recording)
{
	if (!recording->trace)
		return 0;
	return trace__advance(recording->trace, capture__polled_ts(recording->capture), &recording->target.mappings);
}

int recording_trace_finish(struct recording *recording)
{
	return recording->trace ? trace__finish(recording->trace, &recording->target.mappings) : 0;
}

void recording_trace_write_loss(struct recording *recording, uint64_t ts)
{
	struct journal *journal = &recording->journal;
	struct trace_counts counts;

	if (!recording->trace)
		return;
	trace__counts(recording->trace, &counts);
	if (counts.cut_short)
		journal__loss(journal, ts, WL_LOSS_DETAIL, 0, counts.kept, counts.cut_short);
	if (counts.late)
		journal__loss(journal, ts, WL_LOSS_LATE, 0, counts.taken[WL_RECORD_SEGMENT], counts.late);
}

int recording_trace_write_counts(struct recording *recording)
{
	static const struct {
		const char *key;
		enum shard_table_id table;
	} tables[] = {
		{"segments", SHARD_TABLE_SEGMENT}, {"wakeups", SHARD_TABLE_WAKEUP}, {"handoffs", SHARD_TABLE_HANDOFF}};
	struct trace_counts counts;
	char key[64];

	if (!recording->trace)
		return 0;
	trace__counts(recording->trace, &counts);
	journal__say(&recording->journal, "segment_records", "%" PRIu64, counts.taken[WL_RECORD_SEGMENT]);
	journal__say(&recording->journal, "wakeup_records", "%" PRIu64, counts.taken[WL_RECORD_WAKEUP]);
	journal__say(&recording->journal, "edge_records", "%" PRIu64,
		     counts.taken[WL_RECORD_SOCKET] + counts.taken[WL_RECORD_BLOCK] + counts.taken[WL_RECORD_TIMER] +
			     counts.taken[WL_RECORD_QUEUE]);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(key, sizeof(key), "%s_received", tables[i].key);
		journal__say(&recording->journal, key, "%" PRIu64, counts.received[tables[i].table]);
		snprintf(key, sizeof(key), "%s_written", tables[i].key);
		journal__say(&recording->journal, key, "%" PRIu64, counts.written[tables[i].table]);
	}
	journal__say(&recording->journal, "detail_forgotten", "%" PRIu64, counts.forgotten);
	return journal__say(&recording->journal, "detail_impossible", "%" PRIu64, counts.impossible);
}

void recording_trace_say(const struct recording *recording)
{
	const struct wl_loss_count *loss = recording->counts.loss;
	struct trace_counts counts;

	if (!recording->trace)
		return;
	trace__counts(recording->trace, &counts);
	log_info("trace: %" PRIu64 " segments, %" PRIu64 " wake-ups, %" PRIu64 " hand-offs received; %" PRIu64
		 ", %" PRIu64 ", %" PRIu64 " written for %" PRIu64 " intervals, the rest forgotten; %zu MiB in memory",
		 counts.received[SHARD_TABLE_SEGMENT], counts.received[SHARD_TABLE_WAKEUP],
		 counts.received[SHARD_TABLE_HANDOFF], counts.written[SHARD_TABLE_SEGMENT],
		 counts.written[SHARD_TABLE_WAKEUP], counts.written[SHARD_TABLE_HANDOFF], counts.kept,
		 trace__bytes(recording->trace) >> 20);
	if (counts.cut_short)
		log_info("trace: %" PRIu64
			 " kept intervals began before what still fitted into memory (--memory %" PRIu64 "M)",
			 counts.cut_short, recording->options->memory >> 20);
	if (counts.lossy)
		log_info("trace: %" PRIu64
			 " kept intervals are not ranked: records were lost meanwhile, or the kernel left out events",
			 counts.lossy);
	if (counts.late || counts.impossible)
		log_info("trace: %" PRIu64 " records came late, %" PRIu64 " cannot be true", counts.late,
			 counts.impossible);
	if (loss[WL_LOSS_SCOPE].lost)
		log_info("trace: threads outside the target mattered %" PRIu64
			 " times and were not followed, the limit of %" PRIu64 " being reached (--scope)",
			 loss[WL_LOSS_SCOPE].lost, recording->options->scope_max);
}
