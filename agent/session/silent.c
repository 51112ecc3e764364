// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions of the symbol list that exist and are not called: most often their code was inlined where it is needed. */
#include "session/list.h"
#include "session/recording.h"
#include "target/program.h"

#include <stdio.h>
#include <string.h>

#define AFTER_NS  (5 * 1000000000ULL)
#define NAMED_MAX 5

static bool is_loaded(const struct recording *recording, const struct probe_target *target)
{
	return !program__module(recording->program, target->module)->awaited;
}

/*
 * The names of lines none of whose probes was hit or let go, of modules that have been loaded by now or of others; how
 * many there are.
 */
static size_t list_silent(const struct recording *recording, const struct probe_hits *hits, bool loaded, char *names,
			  size_t sz, bool *is_request)
{
	const struct probe_targets *targets = &recording->symbols.targets;
	size_t cnt = 0;

	for (size_t i = 0, end; i < targets->targets.cnt; i = end) {
		uint32_t line_idx = targets->targets.items[i].line_idx;
		const struct probe_line *line = &recording->symbols.lines.items[line_idx];
		size_t len = strlen(names);
		bool hit = false;

		for (end = i; end < targets->targets.cnt && targets->targets.items[end].line_idx == line_idx; end++)
			hit |= hits[end].entries || hits[end].exits || recording_list_is_gone(recording, end);
		if (hit || is_loaded(recording, &targets->targets.items[i]) != loaded)
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

static void say(const struct recording *recording, const struct probe_hits *hits, bool loaded)
{
	double seconds = (monotonic_ns() - recording->clock.begin_ts) / 1e9;
	bool is_request = false;
	char names[640] = "";
	const char *then;

	if (!list_silent(recording, hits, loaded, names, sizeof(names), &is_request))
		return;
	then = is_request ? "; so there may be no request" : "";
	if (loaded)
		log_warn("in %.1f s not one call of %s: inlined where it is needed, or not reached by this load%s: "
			 "`whylate probes suggest -p %d` finds what is called",
			 seconds, names, then, recording->options->pid);
	else
		log_warn("in %.1f s nothing has loaded the library of %s%s", seconds, names, then);
}

int recording_silent_say(struct recording *recording, bool at_end)
{
	struct probe_hits *hits;

	if (!recording->list || recording->symbols.silent_said ||
	    (!at_end && monotonic_ns() - recording->clock.begin_ts < AFTER_NS))
		return 0;
	recording->symbols.silent_said = true;
	hits = calloc(recording->symbols.targets.targets.cnt, sizeof(*hits));
	if (!hits)
		return -ENOMEM;
	/* What has been loaded meanwhile; of a target that has ended, what is known. */
	program__refresh(recording->program);
	if (recording_list_hits(recording, hits)) {
		say(recording, hits, true);
		say(recording, hits, false);
	}
	free(hits);
	return 0;
}
