// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Diagnosis that refines itself: each workload has its variance planted in a function, or in two that covary; without
 * any list of symbols, `diagnose --rounds 3` has to put exactly that first.
 */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `shown` is the name, or the name and what its arguments are. */
static bool is_called(const char *shown, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(shown, name, len) && (!shown[len] || shown[len] == '(');
}

static bool is_among(const char *shown, json_object *names)
{
	for (size_t i = 0; names && i < json_object_array_length(names); i++)
		if (is_called(shown, json_object_get_string(json_object_array_get_idx(names, i))))
			return true;
	return false;
}

/* Where the planted function spends its time; what has no name in this build of libc is its caller's. */
static bool is_beneath(json_object *factor, const char *shown, json_object *result)
{
	if (strstr(shown, ".so.") && strstr(shown, "+0x"))
		shown = json_text(factor, "caller");
	return is_among(shown, json_at(result, "beneath"));
}

/* One function: the planted one, or where it spends its time.  Two: both, in either order. */
static bool factor_is_planted(json_object *factor, json_object *result)
{
	json_object *functions = json_at(factor, "functions"), *planted = json_at(result, "planted");
	size_t cnt = functions ? json_object_array_length(functions) : 0;

	if (!cnt || cnt != json_object_array_length(planted))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		const char *shown = json_object_get_string(json_object_array_get_idx(functions, i));

		if (!is_among(shown, planted) && (cnt > 1 || !is_beneath(factor, shown, result)))
			return false;
	}
	return cnt == 1 || strcmp(json_text(factor, "functions.0"), json_text(factor, "functions.1"));
}

static void show_factors(json_object *factors)
{
	for (size_t i = 0; factors && i < json_object_array_length(factors) && i < 8; i++)
		printf("\n    %s", json_object_to_json_string(json_object_array_get_idx(factors, i)));
	printf("\n");
}

static void check_diagnosis(const char *name, json_object *report, json_object *result)
{
	json_object *first = json_at(report, "factors.0");

	report_check_schema(report);
	if (!CHECKF(first && factor_is_planted(first, result), "%s: the first factor is %s", name,
		    json_object_to_json_string(first)))
		show_factors(json_at(report, "factors"));
	CHECKF(json_number(first, "contribution") > 0.25, "%s: contributes %.3f", name,
	       json_number(first, "contribution"));
}

static void diagnose_case(const char *name)
{
	const unsigned int seconds = 40;
	struct process process = {0};
	struct workload workload;
	json_object *report = NULL;

	if (!workload_start(&workload, name, seconds))
		goto cleanup;
	workload_go(&workload);
	CHECKF(whylate(&process, seconds, "diagnose -p %d -d 15s --rounds 3 --budget 20%% --json -q",
		       (int)workload.server_pid) == 0,
	       "%s: %s", name, process_err(&process));
	report = json_tokener_parse(process_out(&process));
	process_signal(&workload.process, SIGTERM);
	if (workload_finish(&workload, 20) && CHECKF(report != NULL, "%s: %s", name, process_out(&process)))
		check_diagnosis(name, report, workload.result);
cleanup:
	json_object_put(report);
	process_end(&process);
	workload_end(&workload);
}

/* main() has been called before: there is no request, every round finds nothing, and yet the last one ends. */
static void rounds_without_requests_end(void)
{
	static const char list[] = "interval main\nfunction join_rows\n";
	const unsigned int seconds = 6, limit_s = 60;
	struct path symbols = temp_path("idle.txt");
	struct process process = {0};
	struct workload workload;
	int status;

	if (!CHECK(!file_write(symbols.s, list, strlen(list))) || !workload_start(&workload, "deep", limit_s))
		return;
	status = whylate(&process, limit_s, "diagnose -p %d -s %s -d %us --rounds 3", (int)workload.server_pid,
			 symbols.s, seconds);
	CHECKF(status >= 0, "still running after %u s: %s", limit_s, process_err(&process));
	CHECKF(strstr(process_err(&process), "round 2 saw no request to analyse"), "%s", process_err(&process));
	process_end(&process);
	workload_end(&workload);
}

/* --- chosen by hand --------------------------------------------------------------------------------------------------
 */

#define QUESTION "Which function is to be opened next?"
#define REFUSAL  "There is no function of number"

static unsigned int count_of(const char *text, const char *what)
{
	unsigned int cnt = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		cnt++;
	}
	return cnt;
}

static bool says_times(struct process *process, const char *what, unsigned int times, unsigned int timeout_s)
{
	uint64_t deadline_ts = now_ns() + timeout_s * NS_PER_SEC;

	while (count_of(process_err(process), what) < times) {
		if (!process_runs(process) || now_ns() > deadline_ts)
			return CHECKF(false, "not %u times \"%s\": %s", times, what, process_err(process));
		sleep_ms(10);
	}
	return true;
}

/* The first function of the last question that is not what another one leaves: its number, 0 and a failed check. */
static int first_offered(struct process *process, char name[64])
{
	const char *line = process_err(process), *next;
	int number = 0;

	while ((next = strstr(line, QUESTION)))
		line = next + 1;
	while ((line = strchr(line, '\n')) && sscanf(++line, "%d %*d %% %63[^\n]", &number, name) == 2)
		if (!strstr(name, " itself"))
			return number;
	CHECKF(false, "no function is offered: %s", process_err(process));
	return 0;
}

static bool type(int terminal, const char *line)
{
	return CHECK(write(terminal, line, strlen(line)) == (ssize_t)strlen(line));
}

/* What makes no sense is asked for again; what is chosen is looked into, and nothing else is. */
static bool answer_by_hand(struct process *process, int terminal)
{
	static const char *const nonsense[] = {"0\n",
					       "-1\n",
					       "frob\n",
					       "1 2\n",
					       "99999999999999999999999\n",
					       "1                                                        \n"};
	const size_t cnt = sizeof(nonsense) / sizeof(nonsense[0]);
	char name[64], answer[16], judged[96];
	const char *said;
	int number;

	if (!says_times(process, QUESTION, 1, 30))
		return false;
	for (unsigned int i = 0; i < cnt; i++)
		if (!type(terminal, nonsense[i]) || !says_times(process, REFUSAL, i + 1, 10) ||
		    !says_times(process, QUESTION, i + 2, 10))
			return false;
	number = first_offered(process, name);
	/* What is understood is taken out, and the others are offered again. */
	snprintf(answer, sizeof(answer), "u %d\n", number);
	snprintf(judged, sizeof(judged), "  %s\n", name);
	if (!number || !type(terminal, answer) || !says_times(process, QUESTION, cnt + 2, 20))
		return false;
	said = strrchr(process_err(process), '?');
	CHECKF(said && !strstr(said, judged), "%s is understood, and offered: %s", name, said);
	number = first_offered(process, name);
	snprintf(answer, sizeof(answer), "%d\n", number);
	snprintf(judged, sizeof(judged), "  %s: ", name);
	if (!number || !type(terminal, answer) || !says_times(process, " more set", 1, 20))
		return false;
	said = strstr(strrchr(process_err(process), '?'), "\n");
	CHECKF(said && strstr(said, judged) && count_of(said, ": it") + count_of(said, ": probing") == 1,
	       "%s was chosen: %s", name, said);
	return true;
}

/* At the second question the terminal goes: the rest is as without anybody. */
static void test_interactive(void)
{
	static const char list[] = "interval handle\n";
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct launch launch = {.cpu = ANY_CPU};
	struct path symbols = temp_path("interactive.txt");
	struct process process = {0};
	struct workload workload = {0};
	json_object *report = NULL;

	if (!CHECK(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal)) ||
	    !CHECK(!file_write(symbols.s, list, strlen(list))) || !workload_start(&workload, "deep", 60))
		goto cleanup;
	launch.in_fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!CHECK(launch.in_fd > 0) ||
	    process_launch(&process, &launch,
			   "%s diagnose -p %d -s %s -d 9s --rounds 3 --budget 30%% --interactive --json",
			   whylate_path(), (int)workload.server_pid, symbols.s) ||
	    !answer_by_hand(&process, terminal) ||
	    !says_times(&process, QUESTION, count_of(process_err(&process), QUESTION) + 1, 30))
		goto cleanup;
	close(launch.in_fd);
	close(terminal);
	launch.in_fd = terminal = 0;
	CHECKF(process_wait(&process, 60) == 0, "%s", process_err(&process));
	CHECKF(count_of(process_err(&process), "nobody answers any more") == 1, "%s", process_err(&process));
	CHECKF(strstr(process_err(&process), "\nwhylate: round 3: ") != NULL, "%s", process_err(&process));
	report = json_tokener_parse(process_out(&process));
	if (CHECKF(report != NULL, "%s", process_out(&process))) {
		report_check_schema(report);
		/* compare_keys and its callers are offered first; the jitter of the others is left. */
		CHECK(json_number(report, "factor_tree.understood.0.contribution") > 0.8);
		CHECK(json_number(report, "factor_tree.left_share") < 0.2);
		CHECK(json_number(report, "factors.0.contribution") > 0);
	}
cleanup:
	json_object_put(report);
	process_end(&process);
	if (launch.in_fd > 0)
		close(launch.in_fd);
	if (terminal > 0)
		close(terminal);
	workload_end(&workload);
}

/* Each takes 16 s. */
#define PLANTED                   \
	WORKLOAD(deep, SHORT)     \
	WORKLOAD(covary, REST)    \
	WORKLOAD(twosites, LONG)  \
	WORKLOAD(allocator, LONG) \
	WORKLOAD(fnptr, REST)     \
	WORKLOAD(library, LONG)   \
	WORKLOAD(cplusplus, LONG)

#define WORKLOAD(name, form)          \
	static void test_##name(void) \
	{                             \
		diagnose_case(#name); \
	}
PLANTED
#undef WORKLOAD

static const struct live_test tests[] = {
#define WORKLOAD(name, form) {"diagnose_" #name, test_##name, form},
	PLANTED
#undef WORKLOAD
	{"diagnose_rounds_without_requests", rounds_without_requests_end, REST},
	{"diagnose_interactive", test_interactive, REST},
};

int suite_diagnose(void)
{
	return live_suite("diagnose", tests, sizeof(tests) / sizeof(tests[0]));
}
