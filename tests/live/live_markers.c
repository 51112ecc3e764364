// SPDX-License-Identifier: GPL-2.0-or-later
/* Intervals by the markers of whylate/annotate.h: found by themselves, from one thread to another. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include "shard/columns.h"

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

#define TRACED_MAX 4096

struct traced {
	uint64_t row_cnt, right_cnt;
	uint64_t wrong_cnt;            /* of another trace */
	uint64_t first_ts;             /* when the first with its trace began */
	uint64_t begin_ts[TRACED_MAX]; /* of those without */
	uint64_t without_cnt;
};

/* The workload's trace begins with "traced!!", and its span is the rest of it. */
static void take_traced(void *owner, const struct interval *interval)
{
	const struct shard_block_column *trace = block_column(interval->block, "trace_id", SHARD_STR);
	const struct shard_block_column *span = block_column(interval->block, "span_id", SHARD_STR);
	struct traced *traced = owner;

	traced->row_cnt++;
	if (!trace || column_is_null(trace, interval->row)) {
		if (traced->without_cnt < TRACED_MAX)
			traced->begin_ts[traced->without_cnt] = interval->begin_ts;
		traced->without_cnt++;
		return;
	}
	if (strncmp(trace->values[interval->row].str, "7472616365642121", 16) || !span ||
	    column_is_null(span, interval->row) ||
	    strcmp(trace->values[interval->row].str + 16, span->values[interval->row].str)) {
		traced->wrong_cnt++;
		return;
	}
	if (!traced->right_cnt++ || interval->begin_ts < traced->first_ts)
		traced->first_ts = interval->begin_ts;
}

/* Records the workload; false: it could not be. */
static bool record_traced(const char *name, unsigned int seconds, struct traced *traced, struct workload *workload)
{
	struct recording recording = {0};
	struct session session;
	bool good;

	good = workload_start(workload, name, seconds) &&
	       recording_start(&recording, name, workload->server_pid, "--tail none --duty 100%% --budget 100%%");
	if (good) {
		workload_go(workload);
		good = workload_finish(workload, 20);
	}
	if (good) {
		recording_stop(&recording);
		good = session_read(&session, recording.dir.s, take_traced, traced) && session_check(&session);
	}
	recording_end(&recording);
	workload_end(workload);
	return good;
}

static void test_thread_context(void)
{
	static struct traced traced;
	struct workload workload;

	if (!record_traced("traced", 1, &traced, &workload))
		return;
	CHECKF(traced.row_cnt >= workload.intervals, "%lu rows of %lu", traced.row_cnt, workload.intervals);
	CHECKF(!traced.without_cnt && !traced.wrong_cnt, "%lu without their trace, %lu with another",
	       traced.without_cnt, traced.wrong_cnt);
}

/* The library that publishes them comes after a second of four. */
static void test_thread_context_of_a_late_library(void)
{
	static struct traced traced;
	struct workload workload;
	uint64_t later_cnt = 0;

	if (!record_traced("traced_late", 4, &traced, &workload))
		return;
	for (uint64_t i = 0; i < traced.without_cnt && i < TRACED_MAX; i++)
		later_cnt += traced.begin_ts[i] > traced.first_ts;
	CHECKF(traced.right_cnt >= traced.row_cnt / 3, "%lu with their trace, of %lu", traced.right_cnt,
	       traced.row_cnt);
	CHECKF(!traced.wrong_cnt, "%lu with another", traced.wrong_cnt);
	CHECKF(later_cnt <= traced.row_cnt / 100, "%lu without their trace after the first with it, of %lu", later_cnt,
	       traced.row_cnt);
}

/* --- the header of an HTTP/1 request ------------------------------------------------------------------------------ */

static const char http_server[] =
	"import http.server,sys,time\n"
	"class Handler(http.server.BaseHTTPRequestHandler):\n"
	" protocol_version = 'HTTP/1.1'\n"
	" wbufsize = -1\n"
	" def log_message(self, *args): pass\n"
	" def do_GET(self):\n"
	"  if self.path == '/with': time.sleep(0.002)\n"
	"  self.send_response(200)\n"
	"  self.send_header('Content-Length', '2')\n"
	"  self.end_headers()\n"
	"  self.wfile.write(b'ok')\n"
	"http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n";

/* Half of the requests have no header, or one without sense; the path says which. */
static const char http_client[] =
	"import http.client,sys\n"
	"client = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
	"for i in range(300):\n"
	" trace = '7472616365642121%016x' % (i + 1)\n"
	" headers = {'Accept': '*/*', 'traceparent': '00-%s-%s-01' % (trace, trace[16:])}\n"
	" if i % 3 == 1: del headers['traceparent']\n"
	" if i % 6 == 5: headers['traceparent'] = '00-zz' + trace[2:] + '-' + trace[16:] + '-01'\n"
	" client.request('GET', '/with' if 'traceparent' in headers and i % 6 != 5 else '/without', headers=headers)\n"
	" client.getresponse().read()\n";

struct with_header {
	struct traced traced; /* of those that have the header */
	uint64_t others_cnt, others_traced_cnt;
};

static void take_with_header(void *owner, const struct interval *interval)
{
	const struct shard_block_column *trace = block_column(interval->block, "trace_id", SHARD_STR);
	struct with_header *with = owner;

	if (!interval->type || !strstr(interval->type, "GET /with"))
		return;
	if (strstr(interval->type, "/without")) {
		with->others_cnt++;
		with->others_traced_cnt += trace && !column_is_null(trace, interval->row);
		return;
	}
	take_traced(&with->traced, interval);
}

/* What a user's own system goes on with: the JSON of a late request, and the exports. */
static void trace_is_handed_on(const char *dir)
{
	static const struct {
		const char *args, *trace;
	} views[] = {
		{"report %s --json", "\"trace_id\": \"7472616365642121"},
		{"export %s --format jsonl --table interval", "\"trace_id\":\"7472616365642121"},
		{"export %s --format csv --table interval", ",7472616365642121"},
		{"export %s --format openmetrics", "trace_id=\"7472616365642121"},
	};
	struct path spans = temp_path("traceparent.otlp");
	struct process process = {0};
	size_t sz = 0;
	char *bytes;

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		CHECKF(whylate(&process, 30, views[i].args, dir) == 0, "%s", process_err(&process));
		CHECKF(strstr(process_out(&process), views[i].trace) != NULL, "%s: %.400s", views[i].args,
		       process_out(&process));
		process_end(&process);
	}
	CHECKF(whylate(&process, 30, "export %s --format otlp -o %s", dir, spans.s) == 0, "%s", process_err(&process));
	bytes = file_read(spans.s, &sz);
	/* As bytes, in a span's field. */
	CHECKF(bytes && memmem(bytes, sz, "traced!!", 8), "no trace in %zu bytes of spans", sz);
	free(bytes);
	process_end(&process);
}

static void test_traceparent(void)
{
	static struct with_header with;
	struct recording recording = {0};
	struct process server, client = {0}, explain = {0};
	struct session session;
	char port_text[16];
	const char *const argv[] = {"python3", "-c", http_server, port_text, NULL};
	const char *const client_argv[] = {"python3", "-c", http_client, port_text, NULL};
	int port = port_free();

	snprintf(port_text, sizeof(port_text), "%d", port);
	if (program_missing("traceparent", "python3") || process_launch_argv(&server, NULL, argv))
		return;
	with = (struct with_header){0};
	if (!port_wait(&server, port, 10) ||
	    !recording_start(&recording, "traceparent", server.pid,
			     "--mode trace --rate 100%% --duty 100%% --budget 100%% --tail none") ||
	    process_launch_argv(&client, NULL, client_argv))
		goto cleanup;
	CHECKF(process_wait(&client, 30) == 0, "%s", process_err(&client));
	recording_stop(&recording);
	if (!session_read(&session, recording.dir.s, take_with_header, &with))
		goto cleanup;
	session_check(&session);
	CHECKF(with.traced.right_cnt >= 148 && !with.traced.wrong_cnt && with.traced.without_cnt <= 2,
	       "%lu with their trace, %lu with another, %lu without", with.traced.right_cnt, with.traced.wrong_cnt,
	       with.traced.without_cnt);
	CHECKF(with.others_cnt >= 148 && !with.others_traced_cnt, "%lu without the header, %lu of them with a trace",
	       with.others_cnt, with.others_traced_cnt);
	/* The three slowest requests are of those that have the header. */
	CHECKF(whylate(&explain, 30, "explain %s", recording.dir.s) == 0, "%s", process_err(&explain));
	CHECKF(strstr(process_out(&explain), "7472616365642121") != NULL, "%.400s", process_out(&explain));
	trace_is_handed_on(recording.dir.s);
cleanup:
	process_end(&explain);
	process_end(&client);
	recording_end(&recording);
	process_end(&server);
}

static const struct live_test tests[] = {
	{"markers", test_found_by_themselves, SHORT},
	{"thread_context", test_thread_context, SHORT},
	{"thread_context_of_a_late_library", test_thread_context_of_a_late_library, REST},
	{"traceparent", test_traceparent, REST},
};

int suite_markers(void)
{
	return live_suite("markers", tests, sizeof(tests) / sizeof(tests[0]));
}
