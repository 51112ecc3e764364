// SPDX-License-Identifier: GPL-2.0-or-later
/* What a round has found: from the shards that have been written so far, beside the recording. */
#include "base/capabilities.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/priority.h"
#include "rounds/rounds_internal.h"
#include "shard/open.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOOTSTRAP_CNT    50  /* only the last round's intervals of confidence are shown */
#define EXPLAINED_HEIGHT 1   /* a function this close to the wait is the place of it */
#define EXPLAINED_SHARE  0.5 /* of it has one object and one culprit */
#define SAY_MAX          5
#define ELSEWHERE_TOLD   0.2 /* of the variance */

static void *analyse(void *ctx)
{
	struct round_analysis *analysis = ctx;
	const char *path = analysis->dir;

	/* The target comes first. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	if (analysis->idle)
		priority_lower(0);
	/* It may have been hurried in between. */
	if (!analysis->idle)
		priority_raise(0);
	capabilities_keep_reading();
	analysis->reader = shards_open(&path, 1);
	analysis->err =
		analysis->reader ? findings_make(&analysis->findings, analysis->reader, &analysis->options) : -EIO;
	atomic_store(&analysis->done, true);
	return NULL;
}

/* An idle task may wait for a CPU for ever. */
#define IDLE_NS 1000000000ULL

void rounds_analysis_hurry(struct rounds *rounds, uint64_t now)
{
	if (!rounds->analysis.idle || now - rounds->analysis.started_ts < IDLE_NS)
		return;
	rounds->analysis.idle = false;
	priority_raise_others();
}

int rounds_analysis_start(struct rounds *rounds)
{
	struct round_analysis *analysis = &rounds->analysis;
	int err = journal__flush(session__journal(rounds->recording));

	if (err) {
		log_error("cannot write to '%s': %s", analysis->dir, strerror(-err));
		return err;
	}
	atomic_store(&analysis->done, false);
	analysis->findings = (struct findings){0};
	analysis->reader = NULL;
	analysis->started_ts = monotonic_ns();
	analysis->idle = priority_can_return();
	/* Nothing but the factors of this round is asked for, and the target comes first in memory, too. */
	analysis->options = (struct findings_opts){
		.tail = rounds->options.tail,
		.rule = rounds->options.rule,
		.filter = {.since_ts = rounds->begin.ts, .without_events = true},
		.bootstrap_cnt = BOOTSTRAP_CNT,
		.without_samples = true,
	};
	err = pthread_create(&analysis->thread, NULL, analyse, analysis);
	if (err) {
		log_error("cannot analyse the round: %s", strerror(err));
		return -err;
	}
	analysis->running = true;
	return 0;
}

bool rounds_analysis_done(const struct rounds *rounds)
{
	return atomic_load(&((struct rounds *)rounds)->analysis.done);
}

int rounds_analysis_wait(struct rounds *rounds)
{
	if (!rounds->analysis.running)
		return -ECHILD;
	rounds_analysis_hurry(rounds, UINT64_MAX);
	pthread_join(rounds->analysis.thread, NULL);
	rounds->analysis.running = false;
	return rounds->analysis.err;
}

void rounds_analysis_free(struct rounds *rounds)
{
	struct round_analysis *analysis = &rounds->analysis;

	if (analysis->running)
		rounds_analysis_wait(rounds);
	if (analysis->reader) {
		if (!analysis->err)
			findings_free(&analysis->findings);
		shard_reader__free(analysis->reader);
	}
	analysis->reader = NULL;
}

static bool is_in_libc(const char *module)
{
	return !strncmp(module, "libc.so", 7) || !strncmp(module, "libc-", 5) || !strncmp(module, "libpthread", 10);
}

/* It is where requests wait, for something known that somebody known has: nothing beneath it tells more. */
static bool is_explained(const struct factor_line *line)
{
	bool waits =
		line->wait == WL_CATEGORY_LOCK || line->wait == WL_CATEGORY_IO_DISK || line->wait == WL_CATEGORY_IO_NET;

	return waits && line->wait_share >= EXPLAINED_SHARE && line->object_share >= EXPLAINED_SHARE &&
	       line->culprit_share >= EXPLAINED_SHARE &&
	       (line->height <= EXPLAINED_HEIGHT || is_in_libc(line->modules[0]));
}

static const struct factor_report *report_of(const struct rounds *rounds)
{
	return rounds->analysis.findings.report.factors;
}

int rounds_factors(struct rounds *rounds, struct factors *factors)
{
	const struct findings *findings = &rounds->analysis.findings;
	const struct factors *from = &findings->factors.factors;
	uint32_t idx;

	*factors = (struct factors){.selected_cnt = from->selected_cnt, .graph_height = from->graph_height};
	for (size_t i = 0; i < from->list.cnt; i++) {
		struct factor factor = from->list.items[i];

		for (int part = 0; part < 2; part++)
			if (factor.funcs[part] != FACTOR_NONE)
				factor.funcs[part] = findings->invocations.symbols.items[factor.funcs[part]].id;
		if (vec_push(&factors->list, factor))
			return -ENOMEM;
	}
	for (size_t func = 0; func < findings->factors.walk.understood.cnt; func++)
		if (findings->factors.walk.understood.items[func] &&
		    idmap__find(&rounds->function_ids, findings->invocations.symbols.items[func].id, 0, &idx))
			rounds->functions.items[idx].understood = true;
	for (size_t i = 0; report_of(rounds) && i < report_of(rounds)->line_cnt; i++) {
		const struct factor_line *line = &report_of(rounds)->lines[i];

		if (!line->functions[1] && idmap__find(&rounds->function_ids, line->symbols[0], 0, &idx))
			rounds->functions.items[idx].explained |= is_explained(line);
	}
	return 0;
}

static const char *verdict_of(const struct refine_plan *plan, uint32_t func)
{
	for (size_t i = 0; plan && i < plan->decisions.cnt; i++)
		if (plan->decisions.items[i].func == func)
			return refine_verdict_text(plan->decisions.items[i].verdict);
	return NULL;
}

void rounds_say_factors(const struct rounds *rounds, const struct refine_plan *plan)
{
	const struct factor_report *report = report_of(rounds);

	for (size_t i = 0; report && i < report->line_cnt && i < SAY_MAX; i++) {
		const struct factor_line *line = &report->lines[i];
		const char *verdict = line->functions[1] || line->body[0] ? NULL : verdict_of(plan, line->symbols[0]);

		log_info("  %zu. %3.0f %%  %s%s%s%s%s%s%s", i + 1, line->contribution * 100, line->functions[0],
			 line->body[0] ? " itself" : "", line->functions[1] ? " with " : "",
			 line->functions[1] ? line->functions[1] : "",
			 line->functions[1] && line->body[1] ? " itself" : "", verdict ? ": " : "",
			 verdict ? verdict : "");
	}
	if (report && report->body_share + report->queue_share > ELSEWHERE_TOLD)
		log_info("  %.0f %% of the variance is in no probed function, %.0f %% before a thread began to work",
			 report->body_share * 100, report->queue_share * 100);
}
