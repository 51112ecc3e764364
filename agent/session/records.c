// SPDX-License-Identifier: GPL-2.0-or-later
/* What becomes of each record that comes out of the rings. */
#include "session/session_internal.h"

#include <errno.h>
#include <string.h>

const char *recording_data_name(void *owner, uint32_t pid, uint64_t addr, char *buf, size_t sz)
{
	struct recording *recording = owner;

	if (pid)
		return data_names__get(recording->data_names, (pid_t)pid, NULL, addr, buf, sz);
	return data_names__get(recording->data_names, recording->options->pid, &recording->mappings, addr, buf, sz);
}

/* What becomes of the interval was decided where it ended.  False: its times cannot be true. */
static bool note_ended(struct recording *recording, const struct wl_brief_record *ended)
{
	uint64_t latency_ns = ended->end_ts - ended->begin_ts;
	double weight = interval_weight(ended->rate);

	recording->received++;
	if (ended->end_ts < ended->begin_ts) {
		recording->impossible++;
		return false;
	}
	recording->represented += weight;
	retention__saw(recording->retention, latency_ns, weight, ended->end_ts);
	return true;
}

static int on_brief(struct recording *recording, const struct wl_brief_record *received)
{
	struct wl_brief_record named = *received;
	const struct wl_brief_record *record = &named;
	uint32_t flags;
	int err = 0;

	if (!note_ended(recording, received))
		return 0;
	if (recording->types)
		named.type = request_types__take(recording->types, received, received->first);
	recording->passed_over++;
	err = recording_summaries_saw(recording, record, record->type);
	if (!err && recording->trace)
		err = trace__take_brief(recording->trace, record);
	if (!err)
		err = recording_stacks_interval(recording, record, 0);
	return err ? err : recording_probes_interval(recording, record, false, &flags);
}

static int on_interval(struct recording *recording, const struct wl_interval_record *received)
{
	struct wl_interval_record named = *received;
	const struct wl_interval_record *record = &named;
	const struct wl_brief_record *ended = (const struct wl_brief_record *)record;
	struct interval_names names = {
		.threads = recording->threads,
		.mappings = &recording->mappings,
		.listeners = &recording->listeners,
		.lines = &recording->lines,
		.types = recording->types,
		.data_name = recording_data_name,
		.owner = recording,
	};
	struct interval_texts texts;
	uint64_t window;
	uint32_t flags;
	int err;

	if (!note_ended(recording, ended))
		return 0;
	if (recording->types)
		named.type = request_types__take(recording->types, (const struct wl_brief_record *)received,
						 received->first);
	err = recording_summaries_saw(recording, ended, record->type);
	if (err)
		return err;
	if (recording->trace) {
		err = trace__take_interval(recording->trace, record);
		if (err)
			return err;
	}
	err = recording_probes_interval(recording, ended, true, &flags);
	if (err)
		return err;
	for (int slot = 0; slot < WL_HW_SLOTS; slot++)
		names.hw_counter[slot] = capture__hw_counter(recording->capture, record->hw_epoch, slot);
	err = interval_row_make(&recording->journal.row, &texts, record, &names);
	if (err) {
		recording->impossible++;
		return 0;
	}
	err = recording_stacks_interval(recording, ended, recording->journal.row.values[INTERVAL_WEIGHT].f64);
	if (err)
		return err;
	recording->journal.row.values[INTERVAL_FLAGS].u64 |= flags;
	window = recording->windows ? window_plan__window_of(&recording->plan, record->begin_ts) : 0;
	if (window)
		recording->journal.row.values[INTERVAL_WINDOW].u64 = window;
	else
		shard_row__set_null(&recording->journal.row, INTERVAL_WINDOW);
	recording->kept++;
	err = recording_summaries_kept(recording, record->type, &recording->journal.row);
	if (err)
		return err;
	return journal__append(&recording->journal, SHARD_TABLE_INTERVAL, &recording->journal.row);
}

void recording_retain(struct recording *recording)
{
	capture__retain(recording->capture, retention__late_ns(recording->retention),
			retention__chance(recording->retention));
}

/* What a server's children use is its CPU time, too; a child that has ended counts with who waited for it. */
static int note_process(struct recording *recording, const struct wl_task_record *record)
{
	struct target_process process = {.pid = (pid_t)record->pid, .ppid = (pid_t)record->parent_pid};

	if (record->pid != record->tid || record->outside)
		return 0;
	if (record->event == WL_TASK_EXEC)
		recording_find_trace_slot(recording, process.pid);
	if (record->event == WL_TASK_SEEN && record->creator_tid)
		capture__inherit_trace_slot(recording->capture, process.ppid, process.pid);
	if (record->event == WL_TASK_EXIT)
		capture__set_trace_slot(recording->capture, process.pid, NULL);
	if (record->event == WL_TASK_SEEN)
		return recording_process_joined(recording, &process, record->creator_tid != 0);
	if (record->event == WL_TASK_EXIT)
		recording_process_left(recording, process.pid);
	return 0;
}

static int on_task(struct recording *recording, const struct wl_task_record *record)
{
	static const char *const events[] = {
		[WL_TASK_SEEN] = "seen", [WL_TASK_EXEC] = "exec", [WL_TASK_EXIT] = "exit", [WL_TASK_NAMED] = "named"};
	char comm[WL_COMM_LEN + 1];
	struct shard_row *row = &recording->journal.row;

	if (record->event < WL_TASK_SEEN || record->event > WL_TASK_NAMED)
		return -EBADMSG;
	if (record->tid & WL_GOROUTINE_TID)
		recording_goroutine_name(recording, record, comm);
	else
		memcpy(comm, record->comm, WL_COMM_LEN);
	comm[WL_COMM_LEN] = '\0';
	if (record->event == WL_TASK_SEEN && record->pid == record->tid && !record->outside)
		capture__adopt_process(recording->capture, record->pid, record->ts);
	if (record->event == WL_TASK_EXIT && record->pid == record->tid && !record->outside)
		capture__drop_process(recording->capture, record->pid, true);
	if (record->event == WL_TASK_EXEC || (record->event == WL_TASK_EXIT && record->pid == record->tid))
		recording_stacks_changed(recording, record->pid);
	if (note_process(recording, record))
		return -ENOMEM;
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[THREAD_TS].u64 = record->ts;
	row->values[THREAD_EVENT].str = events[record->event];
	row->values[THREAD_PID].u64 = record->pid;
	row->values[THREAD_TID].u64 = record->tid;
	if (record->event == WL_TASK_NAMED)
		shard_row__set_null(row, THREAD_PARENT_PID);
	else
		row->values[THREAD_PARENT_PID].u64 = record->parent_pid;
	row->values[THREAD_COMM].str = comm;
	if (record->event != WL_TASK_EXIT && thread_names__set(recording->threads, record->tid, record->ts, comm))
		return -ENOMEM;
	/* Of tasks that were only named, and of goroutines, nothing more is heard. */
	if (record->event == WL_TASK_EXIT || record->event == WL_TASK_NAMED || record->tid & WL_GOROUTINE_TID)
		thread_names__gone(recording->threads, record->tid);
	return journal__append(&recording->journal, SHARD_TABLE_THREAD, row);
}

int recording_on_record(void *owner, const struct wl_record_header *header)
{
	struct recording *recording = owner;
	int err = 0;

	if (header->kind == WL_RECORD_INTERVAL)
		return on_interval(recording, (const struct wl_interval_record *)header);
	if (header->kind == WL_RECORD_BRIEF)
		return on_brief(recording, (const struct wl_brief_record *)header);
	if (header->kind == WL_RECORD_INVOCATION)
		return recording_probes_take(recording, (const struct wl_invocation_record *)header);
	if (header->kind == WL_RECORD_STACK || header->kind == WL_RECORD_STACK_WAIT ||
	    header->kind == WL_RECORD_PYTHON || header->kind == WL_RECORD_VALUES)
		return recording_stacks_take(recording, header);
	if (header->kind == WL_RECORD_TASK)
		err = on_task(recording, (const struct wl_task_record *)header);
	return err || !recording->trace ? err : trace__take(recording->trace, header);
}
