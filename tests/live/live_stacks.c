// SPDX-License-Identifier: GPL-2.0-or-later
/* Sampled user stacks: a known chain of calls is found as it is, and real servers' stacks to the last frame. */
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

/* Every stack that was sampled is a row, or was counted: of waits, those whose end came. */
static void check_account(const struct session *session)
{
	uint64_t stacks = session_number(session, "stack_records"), waits = session_number(session, "stack_waits");

	CHECKF(stacks + waits + session->lost[WL_LOSS_STACK] == session->emitted[WL_LOSS_STACK],
	       "%lu stacks, %lu waits, %lu lost of %lu", stacks, waits, session->lost[WL_LOSS_STACK],
	       session->emitted[WL_LOSS_STACK]);
}

/* --- a known chain ------------------------------------------------------------------------------------------------ */

struct chain {
	uint64_t answering, waiting, astray, own, complete;
	uint64_t pid;
	char *example; /* of those astray */
};

#define CHAIN_TOP "answer_request;answer_by_pointer;"

/*
 * Whatever is below the comparison is the clock and the work; between it and the function that sorts are the C
 * library's own functions.
 */
static void take_row(void *owner, const struct stack_row *row)
{
	bool answers = strstr(row->frames, "compare_slowly") != NULL;
	bool waits = strstr(row->frames, "wait_for_it") != NULL, runs = !strcmp(row->state, "running");
	const char *top = strstr(row->frames, CHAIN_TOP);
	struct chain *chain = owner;
	bool right = true;

	chain->own += row->pid == chain->pid;
	chain->complete += row->pid == chain->pid && row->complete;
	if (!row->complete || row->pid != chain->pid)
		return;
	if (answers)
		right = top && strstr(top, "qsort") && strstr(top, ";compare_slowly") > strstr(top, "qsort");
	if (waits)
		right = strstr(row->frames, "answer_request;wait_for_it") && !strstr(row->frames, "compare_slowly") &&
			(runs || strstr(row->frames, ";wait_for_it;sleep_for_ns;"));
	chain->answering += answers && right && runs;
	chain->waiting += waits && right && !strcmp(row->state, "blocked.sleep");
	if (!right && !chain->astray++)
		chain->example = strdup(row->frames);
}

static void test_chain(void)
{
	struct recording recording = {0};
	struct workload workload;
	struct stacks_seen seen;
	struct session session;
	struct chain chain = {0};

	if (!workload_start(&workload, "callchain", 6) ||
	    !recording_start(&recording, "callchain", workload.server_pid, "--stacks=499 --budget 100%% -d 60s"))
		goto cleanup;
	chain.pid = workload.server_pid;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL) ||
	    !stacks_read(&seen, recording.dir.s, take_row, &chain))
		goto cleanup;
	session_check(&session);
	check_account(&session);
	CHECKF(chain.answering > 50 && chain.waiting > 5, "%lu answering, %lu waiting of %lu", chain.answering,
	       chain.waiting, seen.row_cnt);
	CHECKF(!chain.astray, "%lu, as in %s", chain.astray, chain.example);
	CHECKF(chain.complete >= 0.99 * chain.own, "%lu of %lu", chain.complete, chain.own);
	CHECKF(seen.in_interval_cnt + seen.delaying_cnt >= seen.row_cnt, "%lu in intervals, %lu delaying, of %lu",
	       seen.in_interval_cnt, seen.delaying_cnt, seen.row_cnt);
	/* Of the time at work nearly all goes into the sort: that much must the samples stand for. */
	CHECKF(seen.running_ns > 0.5 * session.ns[WL_STATE_RUNNING] &&
		       seen.running_ns < 2.0 * session.ns[WL_STATE_RUNNING],
	       "%.0f ns by samples, %lu by intervals", seen.running_ns, session.ns[WL_STATE_RUNNING]);
cleanup:
	free(chain.example);
	workload_end(&workload);
	recording_end(&recording);
}

/* --- a real server without frame pointers ------------------------------------------------------------------------- */

struct redis_rows {
	uint64_t pid, cnt, complete, guessed, from_main;
};

/* Whatever else has delayed it is not of this. */
static void take_redis_row(void *owner, const struct stack_row *row)
{
	struct redis_rows *rows = owner;

	if (row->pid != rows->pid || !row->sid)
		return;
	rows->cnt++;
	rows->complete += row->complete;
	rows->guessed += row->guessed > 0;
	rows->from_main += row->complete && !strncmp(row->frames, "_start;", 7) && strstr(row->frames, ";main;aeMain;");
}

static void test_redis(void)
{
	struct process load = {0}, export = {0};
	struct recording recording = {0};
	struct redis redis = {0};
	struct stacks_seen seen;
	struct session session;
	struct redis_rows rows = {0};
	struct path folded;
	char *text = NULL;

	if (program_missing("redis stacks", "redis-server") || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	if (!recording_start(&recording, "redis-stacks", redis.process.pid,
			     "--stacks=999 --budget 100%% --ring-size 32M") ||
	    !redis_load_start(&load, &redis, ANY_CPU, 200000, 20))
		goto cleanup;
	CHECK(process_wait(&load, 60) == 0);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	rows.pid = redis.process.pid;
	if (!session_read(&session, recording.dir.s, NULL, NULL) ||
	    !stacks_read(&seen, recording.dir.s, take_redis_row, &rows))
		goto cleanup;
	check_account(&session);
	CHECKF(rows.cnt > 30, "%lu", rows.cnt);
	CHECKF(rows.complete >= 0.95 * rows.cnt && rows.from_main >= 0.95 * rows.cnt,
	       "%lu complete, %lu from main to the loop, of %lu", rows.complete, rows.from_main, rows.cnt);
	/* Where a file describes no frames, in a few hand-written functions, the unwinder has to guess and says so. */
	CHECKF(rows.guessed <= 0.02 * rows.cnt, "%lu with guesses, of %lu", rows.guessed, rows.cnt);
	folded = temp_path("redis.folded");
	CHECK(whylate(&export, 30, "export %s --format folded -o %s", recording.dir.s, folded.s) == 0);
	text = file_read(folded.s, NULL);
	CHECK(text && strstr(text, "stack;oncpu;_start;"));
cleanup:
	free(text);
	process_end(&export);
	process_end(&load);
	redis_end(&redis);
	recording_end(&recording);
}

/* --- without, and what makes no sense ----------------------------------------------------------------------------- */

static void test_without(void)
{
	struct recording recording = {0};
	struct process process = {0};
	struct redis redis = {0};
	struct stacks_seen seen;
	struct session session;

	CHECK(whylate(&process, 10, "record -p 1 --stacks=0") == 2 && said_one_line(&process, "--stacks '0'", NULL));
	process_end(&process);
	CHECK(whylate(&process, 10, "record -p 1 --stacks=20000") == 2 && said_one_line(&process, "10000", NULL));
	process_end(&process);
	CHECK(whylate(&process, 10, "record -p 1 --stacks-all") == 2 && said_one_line(&process, "--stacks", NULL));
	process_end(&process);
	if (program_missing("no stacks", "redis-server") || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	if (!recording_start(&recording, "no-stacks", redis.process.pid, "--budget 100%%"))
		goto cleanup;
	CHECK(redis_answers(&redis));
	CHECK(recording_stop(&recording) == 0);
	if (!session_read(&session, recording.dir.s, NULL, NULL) || !stacks_read(&seen, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECK(!seen.row_cnt && session_number(&session, "stacks_hz") == UINT64_MAX && !session.emitted[WL_LOSS_STACK]);
	CHECK(!strstr(session_key(&session, "hooks"), "cpu-clock"));
cleanup:
	redis_end(&redis);
	recording_end(&recording);
}

int suite_stacks(void)
{
	static const struct live_test tests[] = {
		{"chain_of_calls", test_chain},
		{"redis_stacks", test_redis},
		{"no_stacks", test_without},
	};

	return live_suite("stacks", tests, sizeof(tests) / sizeof(tests[0]));
}
