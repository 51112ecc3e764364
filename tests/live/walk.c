// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk.h"

#include "analysis/traces.h"

#include <string.h>

static void walk_one(struct path *path, const struct traces *traces, size_t idx, uint64_t late_ns, const char *comm,
		     struct paths_seen *seen)
{
	const struct graph_interval *interval = &traces->intervals.items[idx].base;
	const struct trace_session *session = &traces->sessions.items[traces->intervals.items[idx].session];
	uint64_t latency_ns = interval->end_ts - interval->begin_ts, sum_ns = 0;

	if (traces_walk(path, traces, &traces->intervals.items[idx])) {
		seen->failed_cnt++;
		return;
	}
	for (size_t i = 0; i < path->steps.cnt; i++) {
		const struct path_step *step = &path->steps.items[i];
		uint64_t ns = step->end_ts - step->begin_ts;
		uint32_t name = traces_thread_name(traces, session, step->pid, step->tid);

		sum_ns += ns;
		seen->wait_ns[step->wait] += ns;
		if (comm && step->depth && (!*comm || !strcmp(traces_string(traces, name), comm)))
			seen->behind_ns[step->wait] += ns;
	}
	seen->cnt++;
	seen->uneven_cnt += sum_ns != latency_ns;
	seen->late_cnt += latency_ns >= late_ns;
	seen->late_gap_cnt += latency_ns >= late_ns && path->flags & (PATH_GAP | PATH_LOOP | PATH_TOO_LONG);
}

bool walk_all(const char *dir, uint64_t late_ns, const char *comm, struct paths_seen *seen)
{
	const char *bad_path = NULL;
	struct shard_reader *reader = shard_reader__open(&dir, 1, &bad_path);
	struct traces traces = {0};
	struct path path = {0};
	bool loaded = reader && traces_load(&traces, reader) == 1;

	memset(seen, 0, sizeof(*seen));
	for (size_t i = 0; loaded && i < traces.intervals.cnt; i++)
		walk_one(&path, &traces, i, late_ns, comm, seen);
	path__clear(&path);
	if (loaded)
		traces_free(&traces);
	shard_reader__free(reader);
	return loaded;
}
