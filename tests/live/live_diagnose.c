// SPDX-License-Identifier: GPL-2.0-only
/*
 * Diagnosis that refines itself: each workload has its variance planted in a function, or in two that covary; without
 * any list of symbols, `diagnose --rounds 3` has to put exactly that first.
 */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

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

#define PLANTED             \
	WORKLOAD(deep)      \
	WORKLOAD(covary)    \
	WORKLOAD(twosites)  \
	WORKLOAD(allocator) \
	WORKLOAD(fnptr)     \
	WORKLOAD(library)   \
	WORKLOAD(cplusplus)

#define WORKLOAD(name)                \
	static void test_##name(void) \
	{                             \
		diagnose_case(#name); \
	}
PLANTED
#undef WORKLOAD

static const struct live_test tests[] = {
#define WORKLOAD(name) {"diagnose_" #name, test_##name},
	PLANTED
#undef WORKLOAD
	{"diagnose_rounds_without_requests", rounds_without_requests_end},
};

int suite_diagnose(void)
{
	return live_suite("diagnose", tests, sizeof(tests) / sizeof(tests[0]));
}
