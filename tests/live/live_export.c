// SPDX-License-Identifier: GPL-2.0-or-later
/* `export` and `explain`, by nobody, on recordings of a real server: every row, every nanosecond, and no half-file. */
#include "harness.h"
#include "net.h"
#include "perfetto.h"
#include "servers.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool record_redis(struct recording *recording, const char *dir_name, const char *args, unsigned int requests)
{
	struct process load = {0};
	struct redis redis;
	bool good = redis_start(&redis, ANY_CPU) &&
		    recording_start(recording, dir_name, redis.process.pid, "%s", args) &&
		    redis_load_start(&load, &redis, ANY_CPU, requests, 4) && CHECK(process_wait(&load, 60) == 0);

	if (good)
		good = CHECK(recording_stop(recording) != 1);
	process_end(&load);
	redis_end(&redis);
	return good;
}

/* Lines of the table and the sum of end_ts - begin_ts over them. */
static uint64_t sum_jsonl(const char *text, const char *table, uint64_t *latency_ns)
{
	uint64_t cnt = 0;

	*latency_ns = 0;
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);
		json_object *row = json_tokener_parse(line);

		if (CHECKF(row != NULL, "no JSON: %.200s", line) && !strcmp(json_text(row, "table"), table)) {
			cnt++;
			*latency_ns += (uint64_t)(json_object_get_int64(json_at(row, "end_ts")) -
						  json_object_get_int64(json_at(row, "begin_ts")));
		}
		json_object_put(row);
		free(line);
		text += len + (text[len] == '\n');
	}
	return cnt;
}

static uint64_t count_lines(const char *text)
{
	uint64_t cnt = 0;

	for (; (text = strchr(text, '\n')); text++)
		cnt++;
	return cnt;
}

/* The numbers at the ends of the lines. */
static uint64_t sum_folded(const char *text)
{
	uint64_t sum = 0;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *number = end;

		while (number > text && number[-1] != ' ')
			number--;
		sum += strtoull(number, NULL, 10);
	}
	return sum;
}

static void test_counters(void)
{
	struct recording recording = {0};
	struct process process;
	struct session session;
	uint64_t latency_ns, off_cpu_ns;

	if (!record_redis(&recording, "export-counters", "--tail none --ring-size 16M --budget 100%", 3000) ||
	    !session_read(&session, recording.dir.s, NULL, NULL) || !CHECK(session.row_cnt >= 3000))
		goto cleanup;
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format jsonl", recording.dir.s) == 0);
	CHECK(sum_jsonl(process_out(&process), "interval", &latency_ns) == session.row_cnt);
	CHECK(latency_ns == session.latency_sum_ns);
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format csv --table interval", recording.dir.s) == 0);
	CHECK(count_lines(process_out(&process)) == session.row_cnt + 1);
	CHECK(!strncmp(process_out(&process), "table,session,sid,begin_ts,", 27));
	process_end(&process);
	/* Everybody weighs 1: what is not running is off the CPU, interruptions and faults included. */
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format folded", recording.dir.s) == 0);
	off_cpu_ns = session.latency_sum_ns - session.ns[WL_STATE_RUNNING];
	CHECKF(sum_folded(process_out(&process)) == off_cpu_ns, "%llu and not %llu",
	       (unsigned long long)sum_folded(process_out(&process)), (unsigned long long)off_cpu_ns);
	process_end(&process);
	/* There are no threads in it. */
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format perfetto", recording.dir.s) == 1);
	said_one_line(&process, recording.dir.s, "--mode trace");
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 60, "explain %s 1", recording.dir.s) == 1);
	said_one_line(&process, recording.dir.s, "--mode trace");
	process_end(&process);
cleanup:
	recording_end(&recording);
}

static void test_output(void)
{
	struct recording recording = {0};
	struct path file = temp_path("export.jsonl"), nowhere = temp_path("not/there");
	struct process process;
	char *text, *out;

	if (!record_redis(&recording, "export-output", "--tail none", 200))
		goto cleanup;
	CHECK(whylate(&process, 60, "export %s --format jsonl -o %s", recording.dir.s, file.s) == 0);
	CHECK(!*process_out(&process));
	process_end(&process);
	text = file_read(file.s, NULL);
	CHECK(whylate(&process, 60, "export %s --format jsonl -o -", recording.dir.s) == 0);
	out = strdup(process_out(&process));
	CHECK(text && out && !strcmp(text, out));
	free(text);
	free(out);
	process_end(&process);
	CHECK(whylate(&process, 60, "export %s --format jsonl -o %s", recording.dir.s, nowhere.s) == 1);
	said_one_line(&process, nowhere.s, NULL);
	process_end(&process);
	/* What failed leaves nothing behind. */
	CHECK(whylate(&process, 60, "export %s --format csv --table nonsense -o %s", recording.dir.s, file.s) == 1);
	said_one_line(&process, "nonsense", recording.dir.s);
	CHECK(!is_there(file.s));
	process_end(&process);
	CHECK(whylate(&process, 60, "export %s --format perfetto -o %s", recording.dir.s, file.s) == 1);
	CHECK(!is_there(file.s));
	process_end(&process);
cleanup:
	recording_end(&recording);
}

static void usage_case(const char *args, const char *text)
{
	struct process process;

	CHECKF(whylate(&process, 20, "%s", args) == 2, "whylate %s", args);
	said_one_line(&process, text, NULL);
	CHECK(!*process_out(&process));
	process_end(&process);
}

static void test_usage(void)
{
	usage_case("export", "--format");
	usage_case("export /tmp", "--format");
	usage_case("export /tmp --format xml", "xml");
	usage_case("export --format csv", "recording");
	usage_case("export /tmp --format perfetto --table interval", "--table");
	usage_case("export /tmp --format csv -o some.wls", "some.wls");
	usage_case("export /tmp --format", "--format");
	usage_case("export /tmp --frobnicate", "--frobnicate");
	usage_case("explain", "recording");
	usage_case("explain /tmp twelve", "twelve");
	usage_case("explain /tmp -5", "-5");
	usage_case("explain --frobnicate /tmp 5", "--frobnicate");
}

/* A workload whose requests wait for a lock: its holder wakes them, and that is an arrow. */
static bool record_mutex(struct recording *recording)
{
	struct workload workload;
	bool good =
		workload_start(&workload, "mutex", 6) && recording_start(recording, "export-trace", workload.server_pid,
									 "--mode trace --tail none --budget 100%%");

	if (good) {
		workload_go(&workload);
		good = workload_finish(&workload, 60) && CHECK(recording_stop(recording) != 1);
	}
	workload_end(&workload);
	return good;
}

static void test_trace(void)
{
	struct recording recording = {0};
	struct path trace = temp_path("mutex.pftrace");
	struct process process;
	json_object *report = NULL;
	const char *sid;

	CHECK(whylate(&process, 20, "record --help") == 0);
	if (!strstr(process_out(&process), "trace")) {
		skip("trace", "this build does not record in trace mode");
		process_end(&process);
		return;
	}
	process_end(&process);
	if (!record_mutex(&recording))
		goto cleanup;
	report = report_read(recording.dir.s, "--max-loss 100%");
	if (!CHECK(json_number(report, "path.intervals") > 0))
		goto cleanup;
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format perfetto", recording.dir.s) == 0);
	process_end(&process);
	perfetto_check(recording.dir.s, &trace, "compactor");
	sid = json_text(report, "path.slowest.0.sid");
	CHECK(whylate_as(&process, "nobody", 60, "explain %s %s", recording.dir.s, sid) == 0);
	CHECK(strstr(process_out(&process), sid) != NULL && strstr(process_out(&process), "In all") != NULL);
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 60, "explain %s", recording.dir.s) == 0);
	CHECK(strstr(process_out(&process), "In all") != NULL);
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 60, "explain %s 18446744073709551615", recording.dir.s) == 1);
	said_one_line(&process, "sid 18446744073709551615 ", recording.dir.s);
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 60, "export %s --format folded", recording.dir.s) == 0);
	CHECK(strstr(process_out(&process), ";lock") != NULL);
	process_end(&process);
cleanup:
	json_object_put(report);
	recording_end(&recording);
}

/* Takes what is posted but the first, which is to come again. */
static const char otlp_receiver[] =
	"import http.server, sys\n"
	"posts = 0\n"
	"class Receiver(http.server.BaseHTTPRequestHandler):\n"
	"    def do_POST(self):\n"
	"        global posts\n"
	"        posts += 1\n"
	"        sz = len(self.rfile.read(int(self.headers['Content-Length'])))\n"
	"        self.send_response(503 if posts == 1 else 200)\n"
	"        self.send_header('Content-Length', '0')\n"
	"        self.end_headers()\n"
	"        print('took' if posts > 1 else 'refused', sz, flush=True)\n"
	"    def log_message(self, *words): pass\n"
	"http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Receiver).serve_forever()\n";

/* Each kept request goes out once, some while others are still recorded. */
static void test_otlp_live(void)
{
	struct recording recording = {0};
	struct process load = {0}, receiver = {0}, exporter = {0};
	struct redis redis = {0};
	struct session session;
	char port_text[16], sent[64];
	const char *const argv[] = {"python3", "-c", otlp_receiver, port_text, NULL};
	int port = port_free();

	if (program_missing("otlp_live", "python3") || program_missing("otlp_live", "redis-server"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&receiver, NULL, argv) || !port_wait(&receiver, port, 10) ||
	    !redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "otlp-live", redis.process.pid, "--tail none --budget 100%%") ||
	    process_start(&exporter, "%s export %s --otlp http://127.0.0.1:%d/v1/traces", whylate_path(),
			  recording.dir.s, port) ||
	    !redis_load_start(&load, &redis, ANY_CPU, 500, 4) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	process_end(&load);
	CHECK(process_says(&receiver, false, "took", NULL, 20));
	if (!redis_load_start(&load, &redis, ANY_CPU, 500, 4) || !CHECK(process_wait(&load, 60) == 0) ||
	    !CHECK(recording_stop(&recording) != 1) || !session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECKF(process_wait(&exporter, 30) == 0, "%s", process_err(&exporter));
	snprintf(sent, sizeof(sent), " %llu requests, ", (unsigned long long)session.row_cnt);
	CHECKF(session.row_cnt >= 1000 && strstr(process_err(&exporter), sent) != NULL, "%llu rows, %s",
	       (unsigned long long)session.row_cnt, process_err(&exporter));
	CHECK(strstr(process_out(&receiver), "refused") != NULL);
cleanup:
	process_end(&load);
	process_end(&exporter);
	process_end(&receiver);
	recording_end(&recording);
	redis_end(&redis);
}

static const struct live_test tests[] = {
	{"usage", test_usage, SHORT}, {"counters", test_counters, SHORT},  {"output", test_output, SHORT},
	{"trace", test_trace, SHORT}, {"otlp_live", test_otlp_live, REST},
};

int suite_export(void)
{
	return live_suite("export", tests, sizeof(tests) / sizeof(tests[0]));
}
