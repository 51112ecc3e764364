// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What comes while a recording is under way: children, of which no call is missed where that can be had; somebody else
 * who runs the same program, and is not to be recorded; libraries, those with which return probes are not safe among
 * them.  The programs of tests/safety that are asked for
 * rounds of known numbers of calls by SIGUSR1.
 */
#include "calls.h"
#include "harness.h"
#include "session.h"
#include "text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- children ----------------------------------------------------------------------------------------------------- */

/* tests/safety/forking.c: calls in a round of its children, and its own. */
#define FORKING_CHILDREN 50
#define FORKING_CALLS    10
#define FORKING_LIST     "interval compute\n"
#define FORKING_ROUND    (FORKING_CHILDREN * (FORKING_CALLS + 1) + FORKING_CALLS)

static bool skip_without_multi(const char *test)
{
	struct process doctor = {0};
	bool there = false;

	if (CHECK(whylate(&doctor, 20, "doctor") == 0)) {
		there = strstr(process_out(&doctor), "uprobe_multi (tier 1)") != NULL;
		if (!there)
			skip(test, "this kernel has no uprobe_multi: children are probed when they are seen");
	}
	process_end(&doctor);
	return !there;
}

struct rounds {
	struct process process;
	struct recording recording;
	unsigned int round_cnt;
};

static bool rounds_start(struct rounds *rounds, const char *name, const char *program, const char *list)
{
	struct path symbols = temp_path("%s.txt", name);

	memset(rounds, 0, sizeof(*rounds));
	return CHECK(!file_write(symbols.s, list, strlen(list))) &&
	       !process_start(&rounds->process, "%s", built_path("safety/%s", program).s) &&
	       CHECK(process_says(&rounds->process, false, "ready", NULL, 10)) &&
	       recording_start(&rounds->recording, name, rounds->process.pid,
			       "-s %s --tail none --budget 100%% --ring-size 16M", symbols.s);
}

static bool rounds_next(struct rounds *rounds)
{
	char said[256] = "ready\n";

	rounds->round_cnt++;
	for (unsigned int i = 0; i < rounds->round_cnt; i++)
		strcat(said, "round\n");
	process_signal(&rounds->process, SIGUSR1);
	return CHECKF(process_says(&rounds->process, false, said, NULL, 30), "%s", process_out(&rounds->process));
}

/* How many calls it saw; the program is as it was. */
static uint64_t rounds_stop(struct rounds *rounds, struct calls_read *read)
{
	if (!CHECKF(recording_stop(&rounds->recording) == 0, "%s", process_err(&rounds->recording.process)) ||
	    !calls_read_dir(read, rounds->recording.dir.s))
		return 0;
	text_is_intact_in_tree(rounds->process.pid);
	process_signal(&rounds->process, SIGTERM);
	CHECKF(process_wait(&rounds->process, 20) == 0, "code %d: %s", rounds->process.code,
	       process_out(&rounds->process));
	return read->interval_cnt;
}

static void rounds_end(struct rounds *rounds)
{
	recording_end(&rounds->recording);
	process_end(&rounds->process);
}

static bool is_noted(const struct rounds *rounds, const char *text)
{
	json_object *report = report_read(rounds->recording.dir.s, NULL);
	bool noted = strstr(json_object_to_json_string(json_at(report, "notes")), text) != NULL;

	json_object_put(report);
	return noted;
}

#define UNPROBED_NOTE "before they had their probes"

/* Each is probed from its first instruction to its last. */
static void test_children(void)
{
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;

	if (skip_without_multi("newcomers_children"))
		return;
	if (!rounds_start(&rounds, "children", "forking", FORKING_LIST) || !rounds_next(&rounds) ||
	    !rounds_next(&rounds))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen == 2 * FORKING_ROUND, "%lu of %d calls", seen, 2 * FORKING_ROUND);
	CHECK(!is_noted(&rounds, UNPROBED_NOTE));
cleanup:
	calls_free(&read);
	rounds_end(&rounds);
}

/* Of one that had none when the recording began, the first are probed when they are seen: which is said. */
static void test_first_children(void)
{
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;

	if (skip_without_multi("newcomers_first_children"))
		return;
	if (!rounds_start(&rounds, "first-children", "forking --lonely", FORKING_LIST) || !rounds_next(&rounds))
		goto cleanup;
	/* The agent looks ten times a second. */
	sleep_ms(2000);
	if (!rounds_next(&rounds))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen >= FORKING_ROUND + FORKING_CALLS && seen <= 2 * FORKING_ROUND, "%lu of %d calls", seen,
	       2 * FORKING_ROUND);
	CHECK(seen == 2 * FORKING_ROUND || is_noted(&rounds, UNPROBED_NOTE));
cleanup:
	calls_free(&read);
	rounds_end(&rounds);
}

/* Somebody else begins to run the program: his calls are nobody's, and his code is soon what it was. */
static void test_late_stranger(void)
{
	struct process stranger = {0};
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;

	if (skip_without_multi("newcomers_stranger"))
		return;
	if (!rounds_start(&rounds, "late-stranger", "forking", FORKING_LIST) || !rounds_next(&rounds) ||
	    process_start(&stranger, "%s --stranger", built_path("safety/forking").s) ||
	    !CHECK(process_says(&stranger, false, "ready", NULL, 10)) ||
	    !CHECKF(process_says(&rounds.recording.process, true, "somebody else runs the target's program", NULL, 10),
		    "%s", process_err(&rounds.recording.process)))
		goto cleanup;
	text_is_intact(stranger.pid);
	CHECK(text_is_changed(rounds.process.pid));
	if (!rounds_next(&rounds))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen >= FORKING_ROUND + FORKING_CALLS && seen <= 2 * FORKING_ROUND, "%lu of %d calls", seen,
	       2 * FORKING_ROUND);
	CHECK(seen == 2 * FORKING_ROUND || is_noted(&rounds, UNPROBED_NOTE));
	process_signal(&stranger, SIGTERM);
	CHECKF(process_wait(&stranger, 20) == 0, "code %d: %s", stranger.code, process_out(&stranger));
cleanup:
	calls_free(&read);
	process_end(&stranger);
	rounds_end(&rounds);
}

/* --- libraries that come and go ----------------------------------------------------------------------------------- */

/* tests/safety/loading.c */
#define LOADING_CALLS 20

/* A line may name what is not there yet: each call is seen, from the first one on, whenever it is loaded. */
static void test_awaited_library(void)
{
	struct path library = built_path("safety/libwlplugin.so");
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;
	char list[700];

	snprintf(list, sizeof(list), "interval %s:plugin_compute\n", library.s);
	if (!rounds_start(&rounds, "awaited", "loading", list))
		goto cleanup;
	CHECKF(strstr(process_err(&rounds.recording.process), "is not loaded yet") != NULL, "%s",
	       process_err(&rounds.recording.process));
	if (!rounds_next(&rounds) || !rounds_next(&rounds) || !rounds_next(&rounds))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen == 3 * LOADING_CALLS, "%lu of %d calls", seen, 3 * LOADING_CALLS);
	CHECK(calls_func(&read, "plugin_compute") >= 0);
cleanup:
	calls_free(&read);
	rounds_end(&rounds);
}

/* Who is there when a recording begins catches nothing, and who comes later throws through what has probes by then. */
static void test_throwing_library(void)
{
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;
	int func;

	if (!rounds_start(&rounds, "throwing", "loading --throwing",
			  "interval one_round\nfunction libc.so.6:qsort_r\n") ||
	    !rounds_next(&rounds) || !rounds_next(&rounds) || !rounds_next(&rounds))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen == 3, "%lu rounds of 3", seen);
	func = calls_func(&read, "qsort_r");
	if (CHECK(func >= 0))
		CHECKF(read.entries[func] == 3 * LOADING_CALLS, "%lu of %d calls", read.entries[func],
		       3 * LOADING_CALLS);
cleanup:
	calls_free(&read);
	rounds_end(&rounds);
}

/* tests/safety/hosting.c: calls in a round */
#define HOSTING_CALLS    100
#define HOSTING_FUNCTION "function own_round\nfunction one_more\nfunction work\nfunction inner\n"

/* It is asked to load the library, and the recording says what that means. */
static bool hosting_loads(struct rounds *rounds, const char *name, const char *program, const char *list)
{
	if (!rounds_start(rounds, name, program, list))
		return false;
	/* So that there are calls under way that have begun with return probes. */
	sleep_ms(300);
	process_signal(&rounds->process, SIGUSR1);
	return CHECKF(process_says(&rounds->process, false, "ready\nloaded\n", NULL, 30), "%s",
		      process_out(&rounds->process)) &&
	       CHECKF(process_says(&rounds->recording.process, true, "with libwlswitcher.so", NULL, 10), "%s",
		      process_err(&rounds->recording.process)) &&
	       CHECKF(process_says(&rounds->recording.process, true, "stacks are switched", NULL, 10), "%s",
		      process_err(&rounds->recording.process));
}

static bool hosting_round(struct rounds *rounds, const char *said)
{
	process_signal(&rounds->process, SIGUSR1);
	return CHECKF(process_says(&rounds->process, false, said, NULL, 30), "%s", process_out(&rounds->process)) &&
	       CHECK(process_runs(&rounds->process));
}

/* The end of a call of it can be seen by nothing else than a return probe. */
static void check_unmeasured(const struct rounds *rounds)
{
	json_object *report = report_read(rounds->recording.dir.s, NULL);
	const char *text = json_object_to_json_string(json_at(report, "factors"));

	CHECKF(strstr(text, "\"one_more\"") != NULL, "%s", text);
	CHECKF(strstr(text, "\"its return probe is no longer safe\"") != NULL, "%s", text);
	json_object_put(report);
}

/*
 * Who is there when a recording begins switches no stacks, and who comes later does, and calls back what has return
 * probes: they are gone by then, and no call is missed for it.
 */
static void check_switcher(const char *name, const char *program)
{
	struct calls_read read = {0};
	struct rounds rounds;
	uint64_t seen;

	if (!hosting_loads(&rounds, name, program, "interval one_round\n" HOSTING_FUNCTION) ||
	    !hosting_round(&rounds, "ready\nloaded\nround\n") ||
	    !hosting_round(&rounds, "ready\nloaded\nround\nround\n"))
		goto cleanup;
	seen = rounds_stop(&rounds, &read);
	CHECKF(seen == 2 * HOSTING_CALLS, "%lu of %d calls", seen, 2 * HOSTING_CALLS);
	CHECKF(strstr(process_err(&rounds.recording.process), "1 no longer probed (one_more)") != NULL, "%s",
	       process_err(&rounds.recording.process));
	CHECK(is_noted(&rounds, "return probes are not safe any more"));
	check_unmeasured(&rounds);
	CHECKF(strstr(process_out(&rounds.process), "verdict ok") != NULL, "%s", process_out(&rounds.process));
cleanup:
	calls_free(&read);
	rounds_end(&rounds);
}

static void test_switching_library(void)
{
	check_switcher("switcher", "hosting");
}

static void test_switching_child(void)
{
	check_switcher("switching-child", "hosting --forked");
}

/* Where the end of a request cannot be seen in another way, there is nothing left to record. */
static void test_switcher_ends_it(void)
{
	struct rounds rounds;

	if (!hosting_loads(&rounds, "switched-off", "hosting", "interval own_call\n" HOSTING_FUNCTION) ||
	    !CHECKF(process_wait(&rounds.recording.process, 20) == 0, "%s", process_err(&rounds.recording.process)) ||
	    !hosting_round(&rounds, "ready\nloaded\nround\n"))
		goto cleanup;
	CHECK(is_noted(&rounds, "the recording ends"));
	text_is_intact(rounds.process.pid);
	process_signal(&rounds.process, SIGTERM);
	CHECKF(process_wait(&rounds.process, 20) == 0, "code %d: %s", rounds.process.code,
	       process_out(&rounds.process));
cleanup:
	rounds_end(&rounds);
}

/* What is probed in rounds goes as well, and later rounds are planned without. */
static void test_switcher_in_rounds(void)
{
	struct path dir = temp_path("switched-rounds"), symbols = temp_path("switched-rounds.txt");
	struct process process = {0}, diagnose = {0};

	if (!CHECK(!file_write(symbols.s, "interval own_round\n", strlen("interval own_round\n"))) ||
	    process_start(&process, "%s", built_path("safety/hosting").s) ||
	    !CHECK(process_says(&process, false, "ready", NULL, 10)) ||
	    process_start(&diagnose, "%s diagnose -p %d -s %s -o %s --rounds 3 -d 6s --budget 100%%", whylate_path(),
			  (int)process.pid, symbols.s, dir.s) ||
	    !CHECKF(process_says(&diagnose, true, "round 0:", NULL, 30), "%s", process_err(&diagnose)))
		goto cleanup;
	sleep_ms(500);
	process_signal(&process, SIGUSR1);
	if (!CHECKF(process_says(&diagnose, true, "stacks are switched", NULL, 20), "%s", process_err(&diagnose)))
		goto cleanup;
	for (int i = 0; i < 10 && process_runs(&process); i++) {
		process_signal(&process, SIGUSR1);
		sleep_ms(300);
	}
	CHECKF(process_wait(&diagnose, 60) == 0, "%s", process_err(&diagnose));
	text_is_intact(process.pid);
	process_signal(&process, SIGTERM);
	CHECKF(process_wait(&process, 20) == 0, "code %d: %s", process.code, process_out(&process));
	CHECKF(strstr(process_out(&process), "verdict ok") != NULL, "%s", process_out(&process));
cleanup:
	process_end(&diagnose);
	process_end(&process);
}

static const struct live_test tests[] = {
	{"newcomers_children", test_children, SHORT},
	{"newcomers_first_children", test_first_children, REST},
	{"newcomers_stranger", test_late_stranger, REST},
	{"newcomers_library", test_awaited_library, SHORT},
	{"newcomers_thrower", test_throwing_library, REST},
	{"newcomers_switcher", test_switching_library, SHORT},
	{"newcomers_switching_child", test_switching_child, REST},
	{"newcomers_switched_off", test_switcher_ends_it, REST},
	{"newcomers_switched_rounds", test_switcher_in_rounds, REST},
};

int suite_newcomers(void)
{
	return live_suite("newcomers", tests, sizeof(tests) / sizeof(tests[0]));
}
