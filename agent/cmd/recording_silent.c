// SPDX-License-Identifier: GPL-2.0-only
/* Functions of the symbol list that exist and are not called: most often their code was inlined where it is needed. */
#include "cmd/recording_internal.h"
#include "cmd/recording_list.h"

#include <stdio.h>
#include <string.h>

#define AFTER_NS  (5 * 1000000000ULL)
#define NAMED_MAX 5

/* The names of lines none of whose probes was hit or let go; how many there are. */
static size_t list_silent(const struct recording *recording, const struct probe_hits *hits, char *names, size_t sz,
			  bool *is_request)
{
	const struct probe_targets *targets = &recording->targets;
	size_t cnt = 0;

	for (size_t i = 0, end; i < targets->targets.cnt; i = end) {
		uint32_t line_idx = targets->targets.items[i].line_idx;
		const struct probe_line *line = &recording->lines.items[line_idx];
		size_t len = strlen(names);
		bool hit = false;

		for (end = i; end < targets->targets.cnt && targets->targets.items[end].line_idx == line_idx; end++)
			hit |= hits[end].entries || hits[end].exits || recording_list_is_gone(recording, end);
		if (hit)
			continue;
		*is_request |= line->role == PROBE_INTERVAL || line->role == PROBE_BEGIN;
		if (cnt++ < NAMED_MAX)
			snprintf(names + len, sz - len, "%s%.80s (line %u)", cnt > 1 ? ", " : "", line->symbol,
				 line->line_no);
	}
	if (cnt > NAMED_MAX)
		snprintf(names + strlen(names), sz - strlen(names), " and %zu more", cnt - NAMED_MAX);
	return cnt;
}

int recording_silent_say(struct recording *recording, bool at_end)
{
	size_t target_cnt = recording->targets.targets.cnt, cnt;
	double seconds = (monotonic_ns() - recording->begin_ts) / 1e9;
	struct probe_hits *hits;
	char names[640] = "";
	bool is_request = false;

	if (!recording->list || recording->silent_said || (!at_end && seconds * 1e9 < AFTER_NS))
		return 0;
	recording->silent_said = true;
	hits = calloc(target_cnt, sizeof(*hits));
	if (!hits)
		return -ENOMEM;
	cnt = recording_list_hits(recording, hits) ? list_silent(recording, hits, names, sizeof(names), &is_request)
						   : 0;
	free(hits);
	if (cnt)
		log_warn("in %.1f s not one call of %s: inlined where it is needed, or not reached by this load%s: "
			 "`whylate probes suggest -p %d` finds what is called",
			 seconds, names, is_request ? "; so there may be no request" : "", recording->options->pid);
	return 0;
}
