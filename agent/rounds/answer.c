// SPDX-License-Identifier: GPL-2.0-or-later
#include "rounds/answer.h"

#include "analysis/findings.h"
#include "base/capabilities.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/priority.h"
#include "session/client.h"
#include "shard/open.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ULL
/* From the command's start to its report. */
#define ANSWER_NS     (15 * SECOND_NS)
#define RECORD_NS_MIN (5 * SECOND_NS) /* however long it took to attach */
#define REPORT_NS_MIN (SECOND_NS + SECOND_NS / 2)
#define REPORT_LOOKS  2 /* the report has samples, and more draws, than a look */
#define FIRST_LOOK_NS (5 * SECOND_NS)
#define LOOK_GROWTH   1.4 /* what a look costs grows with the recording */
#define BOOTSTRAP_CNT 200
#define WINDOWS_MIN   28 /* what a tenth of the time is like is then in one of them, with 95 %: 0.9^28 = 0.05 */
#define NAME_SZ       160

/* What a look has found. */
struct verdict {
	bool certain;
	char why_not[3 * NAME_SZ]; /* otherwise */
};

struct answer {
	struct recording *recording;
	struct answer_options options;
	char dir[4096];
	uint64_t open_ts, begin_ts, look_ts, next_look_ts;
	uint64_t report_ns; /* what the report will take, as far as is known */
	pthread_t thread;
	bool running;
	atomic_bool done;
	struct verdict verdict;
};

/* The last window that a row is of; 0: hooks were attached all the time. */
static uint32_t last_window(const struct dataset *dataset)
{
	uint32_t last = 0;

	for (size_t row = 0; dataset->window && row < dataset->row_cnt; row++)
		last = dataset->window[row] > last ? dataset->window[row] : last;
	return last;
}

static void first_two(struct verdict *verdict, const struct report *report)
{
	const struct cause *first = &report->causes[0], *second = first + 1;
	uint32_t windows = last_window(report->dataset);

	if (!report->cause_cnt)
		snprintf(verdict->why_not, sizeof(verdict->why_not), "too few late requests were seen");
	else if (isnan(first->share_ci.lo))
		snprintf(verdict->why_not, sizeof(verdict->why_not),
			 "too few late requests were seen to say how certain the first cause is");
	else if (first->root.kind == ROOT_CODE && report->roots && !first->root.call_path_cnt)
		snprintf(verdict->why_not, sizeof(verdict->why_not), "the call path of the first cause is not known");
	else if (report->cause_cnt > 1 && !(first->share_ci.lo > second->share_ci.hi))
		snprintf(verdict->why_not, sizeof(verdict->why_not),
			 "which of the first two causes is larger: %.0f %% [%.0f-%.0f] or %.0f %% [%.0f-%.0f]",
			 first->share * 100, first->share_ci.lo * 100, first->share_ci.hi * 100, second->share * 100,
			 second->share_ci.lo * 100, second->share_ci.hi * 100);
	else if (windows && windows < WINDOWS_MIN)
		snprintf(verdict->why_not, sizeof(verdict->why_not),
			 "%u windows of the time were observed, and a cause that comes now and then may be in none",
			 windows);
	else
		verdict->certain = true;
}

static void *look(void *ctx)
{
	struct answer *answer = ctx;
	const struct findings_opts opts = {
		.tail = answer->options.tail,
		.filter = {.type = answer->options.type, .without_events = true},
		.bootstrap_cnt = BOOTSTRAP_CNT,
		.without_samples = true,
	};
	const char *path = answer->dir;
	struct findings *findings = calloc(1, sizeof(*findings));
	struct shard_reader *reader;

	/* The target comes first. */
	(void)priority_lower(0);
	capabilities_keep_reading();
	answer->verdict = (struct verdict){.why_not = "no request was seen"};
	reader = findings ? shards_open(&path, 1) : NULL;
	if (reader && !findings_make(findings, reader, &opts)) {
		first_two(&answer->verdict, &findings->report);
		findings_free(findings);
	}
	shard_reader__free(reader);
	free(findings);
	malloc_trim(0);
	atomic_store(&answer->done, true);
	return NULL;
}

static int answer_open(struct recording *recording, const void *options, void **client)
{
	struct answer *answer = *client = calloc(1, sizeof(*answer));

	if (!answer) {
		log_error("out of memory");
		return -ENOMEM;
	}
	answer->recording = recording;
	answer->options = *(const struct answer_options *)options;
	answer->open_ts = monotonic_ns();
	answer->report_ns = REPORT_NS_MIN;
	return 0;
}

static int answer_begin(void *client)
{
	struct answer *answer = client;

	snprintf(answer->dir, sizeof(answer->dir), "%s", session__dir(answer->recording));
	answer->begin_ts = monotonic_ns();
	answer->next_look_ts = answer->begin_ts + FIRST_LOOK_NS;
	return 0;
}

static int begin_look(struct answer *answer)
{
	int err = journal__flush(session__journal(answer->recording));

	if (err) {
		log_error("cannot write to '%s': %s", answer->dir, strerror(-err));
		return err;
	}
	atomic_store(&answer->done, false);
	err = pthread_create(&answer->thread, NULL, look, answer);
	if (err) {
		log_error("cannot analyse what was recorded: %s", strerror(err));
		return -err;
	}
	answer->running = true;
	answer->look_ts = monotonic_ns();
	return 0;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t deadline(const struct answer *answer)
{
	return max_of(answer->open_ts + ANSWER_NS - answer->report_ns, answer->begin_ts + RECORD_NS_MIN);
}

static void end_look(struct answer *answer)
{
	if (!answer->running)
		return;
	/* On a machine without an idle CPU it would take minutes. */
	if (!atomic_load(&answer->done))
		priority_raise_others();
	pthread_join(answer->thread, NULL);
	answer->running = false;
}

static int answer_step(void *client)
{
	struct answer *answer = client;
	uint64_t now = monotonic_ns(), until_ts = deadline(answer);

	session__end_at(answer->recording, until_ts);
	if (!answer->running) {
		if (now < answer->next_look_ts || now + answer->report_ns > until_ts)
			return 0;
		return begin_look(answer);
	}
	if (!atomic_load(&answer->done))
		return 0;
	end_look(answer);
	answer->report_ns = max_of(REPORT_NS_MIN, REPORT_LOOKS * (now - answer->look_ts));
	answer->next_look_ts = answer->begin_ts + (uint64_t)(LOOK_GROWTH * (double)(now - answer->begin_ts));
	if (answer->verdict.certain)
		session__end_at(answer->recording, now);
	return 0;
}

static int answer_end(void *client)
{
	struct answer *answer = client;

	end_look(answer);
	if (!answer->verdict.certain && *answer->verdict.why_not && !session__options(answer->recording)->quiet) {
		log_progress_end();
		log_info("not certain after %.0f s: %s; -d records for longer",
			 (double)(monotonic_ns() - answer->begin_ts) / 1e9, answer->verdict.why_not);
	}
	return 0;
}

static void answer_free(void *client)
{
	struct answer *answer = client;

	if (!answer)
		return;
	end_look(answer);
	free(answer);
}

const struct session_client answer_client = {
	.open = answer_open,
	.begin = answer_begin,
	.step = answer_step,
	.end = answer_end,
	.free = answer_free,
};
