// SPDX-License-Identifier: GPL-2.0-or-later
/* Intervals by the markers of whylate/annotate.h: found by themselves, from one thread to another. */
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct marked {
	uint64_t other_cnt;
};

static void take_marked(void *owner, const struct interval *interval)
{
	struct marked *marked = owner;

	marked->other_cnt += !interval->type || !strstr(interval->type, "whylate");
}

/* No symbol list, and no socket in the program.  (Budget: it does so little itself that looking at it is much.) */
static void test_found_by_themselves(void)
{
	struct recording recording = {0};
	struct marked marked = {0};
	struct workload workload;
	struct session session;
	json_object *report, *line;

	if (!workload_start(&workload, "markers", 5) ||
	    !recording_start(&recording, "markers", workload.server_pid, "-d 60s --budget 100%%"))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30))
		goto cleanup;
	CHECKF(process_wait(&recording.process, 10) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, take_marked, &marked))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	CHECKF(!marked.other_cnt, "%lu of other types", marked.other_cnt);
	CHECKF(session.row_cnt >= workload.intervals &&
		       session.row_cnt <= workload.intervals + workload.intervals / 5 + 50,
	       "%lu rows, %lu tasks", session.row_cnt, workload.intervals);
	report = report_read(recording.dir.s, NULL);
	line = json_breakdown(report, workload.category);
	CHECKF(!strcmp(json_text(report, "causes.0.category"), workload.category), "%s",
	       json_text(report, "causes.0.what"));
	CHECKF(fabs(json_number(line, "tail_share") - workload.planted_share) <= 0.10, "planted %.3f, reported %.3f",
	       workload.planted_share, json_number(line, "tail_share"));
	json_object_put(report);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"markers", test_found_by_themselves},
};

int suite_markers(void)
{
	return live_suite("markers", tests, sizeof(tests) / sizeof(tests[0]));
}
