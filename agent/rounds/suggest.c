// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds/suggest.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/privilege.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PER_ROLE_MAX 100
#define POLL_MS      100
#define RING_SZ      (1 << 20)
#define SECOND_NS    1e9

struct count {
	const struct suggest_options *options;
	struct program *program;
	struct suggestion_study *study;
	struct plan *plans;        /* one for each suggestion */
	struct plan *entries;      /* … of which only the entry is attached; nothing in them is owned */
	struct probe_hits *before; /* hits of those that were attached, when counting began */
	struct probe_hits *hits;   /* of those that were attached */
	size_t *attached;          /* index into study->found */
	size_t attached_cnt;
	struct suggest_capture live;
};

/* Nothing of the records is of interest. */
static int ignore_record(void *owner, const struct wl_record_header *record)
{
	(void)owner;
	(void)record;
	return 0;
}

int suggest_capture__open(struct suggest_capture *live, const struct suggest_options *options, bool sockets,
			  size_t ring_sz)
{
	struct capture_opts opts = {
		.processes = &live->processes,
		.listeners = &live->listeners,
		.sockets = sockets,
		.probes = true,
		.children = options->children,
		.rate = 1, /* of 2^32: all are counted, next to none is recorded */
		.ring_sz = ring_sz,
		.btf_path = options->btf_path,
	};
	const struct privilege_uses uses = {.more_processes = true};
	int err = privilege_check();

	if (err)
		return err;
	privilege_narrow(&uses);
	err = target_set_processes(options->target, options->children, &live->processes);
	if (!err)
		err = target_listeners_read(&live->processes, &live->listeners);
	if (err) {
		log_error("process %d cannot be looked at: %s", options->target->pids.items[0], strerror(-err));
		return err;
	}
	live->capture = capture__new(&opts);
	return live->capture ? capture__start(live->capture) : -errno;
}

void suggest_capture__close(struct suggest_capture *live)
{
	capture__free(live->capture);
	vec_free(&live->processes);
	vec_free(&live->listeners);
	*live = (struct suggest_capture){0};
}

/* Only the entries, and only where they are cheap: what is hit a million times must not be found out by harm. */
static int plan_all(struct count *count, struct probe *probes)
{
	const struct plan_needs needs = {.exit = true};
	int err = 0;

	for (size_t i = 0; i < count->study->found.cnt && !err; i++) {
		const struct suggestion *suggestion = &count->study->found.items[i];
		const char *file =
			program__module(count->program, program__function(count->program, suggestion->func)->module)
				->file;
		struct plan *plan = &count->plans[i];

		err = plan_make(count->program, suggestion->func, &needs, plan);
		if (err || !plan->possible || plan->entry.cost != PLAN_EMULATED || !file)
			continue;
		count->entries[i] = *plan;
		count->entries[i].exit = PLAN_EXIT_NONE;
		probes[count->attached_cnt] = (struct probe){
			.func = suggestion->func,
			.role = PROBE_FUNCTION,
			.file = file,
			.plan = &count->entries[i],
		};
		count->attached[count->attached_cnt++] = i;
	}
	return err;
}

static int count_calls(struct count *count)
{
	struct probe *probes = calloc(count->study->found.cnt, sizeof(*probes));
	struct capture_counts before, after;
	struct probe_set *set = NULL;
	uint64_t begin_ts = 0, end_ts = 0;
	int err = probes ? plan_all(count, probes) : -ENOMEM;

	if (!err)
		err = suggest_capture__open(&count->live, count->options, true, RING_SZ);
	if (!err)
		err = capture__attach_probes(count->live.capture, probes, count->attached_cnt, &set);
	if (!err) {
		/* Attaching takes its time, and what came first has been counted meanwhile. */
		capture__probe_hits(count->live.capture, set, count->before);
		capture__counts(count->live.capture, &before);
		begin_ts = monotonic_ns();
	}
	while (!err && (end_ts = monotonic_ns()) - begin_ts < count->options->duration_ns) {
		log_progress("counting %zu functions: %.1f s", count->attached_cnt, (end_ts - begin_ts) / SECOND_NS);
		err = capture__poll(count->live.capture, POLL_MS, ignore_record, count);
		if (err == -EINTR || err > 0)
			err = 0;
	}
	log_progress_end();
	if (!err) {
		capture__probe_hits(count->live.capture, set, count->hits);
		capture__counts(count->live.capture, &after);
		count->study->seconds = (end_ts - begin_ts) / SECOND_NS;
		count->study->requests_per_s = (after.seen - before.seen) / count->study->seconds;
	}
	for (size_t i = 0; i < count->attached_cnt && !err; i++) {
		size_t idx = count->attached[i];
		struct suggestion *suggestion = &count->study->found.items[idx];

		suggestion->counted = true;
		suggestion->per_s = (count->hits[i].entries - count->before[i].entries) / count->study->seconds;
		suggestion->cost = suggestion->per_s * capture__call_cost_ns(&count->plans[idx]) / SECOND_NS;
	}
	count->study->counted_cnt = count->attached_cnt;
	suggest_capture__close(&count->live);
	free(probes);
	return err;
}

int suggest_count(struct suggestion_study *study, const struct suggest_options *options, struct program *program)
{
	struct count count = {.options = options, .program = program, .study = study};
	int err = suggestions_make(program, PER_ROLE_MAX, &study->found);
	size_t cnt = study->found.cnt;

	if (!err && !cnt)
		return 0;
	if (!err) {
		count.plans = calloc(cnt, sizeof(*count.plans));
		count.entries = calloc(cnt, sizeof(*count.entries));
		count.before = calloc(cnt, sizeof(*count.before));
		count.hits = calloc(cnt, sizeof(*count.hits));
		count.attached = calloc(cnt, sizeof(*count.attached));
		err = count.plans && count.entries && count.before && count.hits && count.attached ? 0 : -ENOMEM;
	}
	if (err)
		log_error("out of memory");
	else
		err = count_calls(&count);
	for (size_t i = 0; i < cnt && count.plans; i++)
		plan_free(&count.plans[i]);
	free(count.plans);
	free(count.entries);
	free(count.before);
	free(count.hits);
	free(count.attached);
	return err;
}
