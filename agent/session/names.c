// SPDX-License-Identifier: GPL-2.0-or-later
/* What things are called: requests by their first bytes, threads by their comms, data by its symbols. */
#include "session/recording.h"
#include "session/sinks.h"

#include <errno.h>
#include <string.h>

const char *recording_data_name(void *owner, uint32_t pid, uint64_t addr, char *buf, size_t sz)
{
	struct recording *recording = owner;

	if (pid)
		return data_names__get(recording->target.data_names, (pid_t)pid, NULL, addr, buf, sz);
	return data_names__get(recording->target.data_names, recording->options->pid, &recording->target.mappings, addr,
			       buf, sz);
}

/* The first bytes are behind the record, and not in its copy. */
static void name_type(struct recording *recording, struct taken *taken)
{
	const uint8_t *first = taken->kept ? ((const struct wl_interval_record *)taken->header)->first
					   : ((const struct wl_brief_record *)taken->header)->first;

	if (recording->types)
		taken->ended->type = request_types__take(recording->types, taken->ended, first, &taken->is_early);
}

/* A row of the table `thread`. */
static int name_thread(struct recording *recording, const struct wl_task_record *record)
{
	static const char *const events[] = {[WL_TASK_SEEN] = "seen",
					     [WL_TASK_EXEC] = "exec",
					     [WL_TASK_EXIT] = "exit",
					     [WL_TASK_NAMED] = "named",
					     [WL_TASK_RENAMED] = "named"};
	struct shard_row *row = &recording->journal.row;
	char comm[WL_COMM_LEN + 1];

	if (record->tid & WL_GOROUTINE_TID)
		recording_goroutine_name(recording, record, comm);
	else
		memcpy(comm, record->comm, WL_COMM_LEN);
	comm[WL_COMM_LEN] = '\0';
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[THREAD_TS].u64 = record->ts;
	row->values[THREAD_EVENT].str = events[record->event];
	row->values[THREAD_PID].u64 = record->pid;
	row->values[THREAD_TID].u64 = record->tid;
	if (record->event >= WL_TASK_NAMED)
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

int recording_names_take(struct recording *recording, struct taken *taken)
{
	if (!taken->ended)
		return name_thread(recording, (const struct wl_task_record *)taken->header);
	name_type(recording, taken);
	return 0;
}
