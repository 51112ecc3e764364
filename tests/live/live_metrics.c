// SPDX-License-Identifier: GPL-2.0-or-later
/* `record --metrics`: what Prometheus itself makes of it. */
#include "net.h"
#include "servers.h"
#include "session.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUESTS 60000
#define COUNT    "whylate_request_seconds_count{host=\"metrics-host\",comm=\"redis-server\""
#define SUM      "whylate_request_seconds_sum{host=\"metrics-host\",comm=\"redis-server\""
#define PROTO    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

/* The answer to GET, to be freed; NULL: there is none. */
static char *get(int port, const char *path, const char *accept, size_t *sz)
{
	struct path out = temp_path("metrics-answer");
	struct process curl;
	char *text = NULL;

	unlink(out.s);
	process_start(&curl, "curl -s -f -g -m 10 -o %s -H Accept:%s http://127.0.0.1:%d%s", out.s, accept, port, path);
	if (!process_wait(&curl, 15))
		text = file_read(out.s, sz);
	process_end(&curl);
	return text;
}

/* The value of the first series that begins so; -1: there is none. */
static double value_of(const char *text, const char *begin)
{
	const char *at = text ? strstr(text, begin) : NULL, *value = at ? strstr(at, "} ") : NULL;

	return value ? strtod(value + 2, NULL) : -1;
}

/* Over all types: the first bytes of a request, which tell its own, are not always there. */
static double sum_of(const char *text, const char *begin)
{
	double sum = 0;

	for (const char *at = text; at && (at = strstr(at, begin)); at++)
		sum += fmax(value_of(at, begin), 0);
	return sum;
}

static bool is_installed(const char *program)
{
	struct process which;
	bool there;

	process_start(&which, "which %s", program);
	there = !process_wait(&which, 5);
	process_end(&which);
	return there;
}

/* Once all is counted, and some of it late: the agent works when nobody else does.  To be freed. */
static char *get_settled(int port)
{
	uint64_t deadline_ts = now_ns() + 40 * NS_PER_SEC;
	char *text = NULL;

	do {
		free(text);
		text = get(port, "/metrics", "text/plain", NULL);
		if (sum_of(text, COUNT) >= REQUESTS && strstr(text, "root=\"own code\""))
			return text;
		sleep_ms(500);
	} while (now_ns() < deadline_ts);
	return text;
}

static void check_texts(int port)
{
	struct path path = temp_path("metrics-text");
	const char *argv[] = {"sh", "-c", "promtool check metrics <\"$1\"", "sh", path.s, NULL};
	char *text = get_settled(port), *end;
	struct process promtool;

	if (!CHECK(text != NULL))
		return;
	CHECKF(sum_of(text, COUNT) >= REQUESTS, "%g, lost: %s", sum_of(text, COUNT),
	       strstr(text, "# TYPE whylate_lost_total"));
	CHECK(strstr(text, "type=\"tcp:") && !strstr(text, "# EOF") && strstr(text, "le=\"+Inf\""));
	CHECKF(value_of(text, "whylate_intervals_seen_total") >= REQUESTS, "%s", text);
	CHECK(value_of(text, "whylate_target_cpu_seconds_total") > 0);
	CHECK(strstr(text, "whylate_late_seconds_total") && strstr(text, "category=\"oncpu\""));
	CHECKF(strstr(text, "root=\"own code\"") && strstr(text, "whylate_lost_total"), "%s", text);
	file_write(path.s, text, strlen(text));
	free(text);
	if (is_installed("promtool")) {
		process_launch_argv(&promtool, NULL, argv);
		CHECKF(process_wait(&promtool, 10) == 0, "%s", process_err(&promtool));
		process_end(&promtool);
	}
	text = get(port, "/metrics", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5", NULL);
	end = text ? strstr(text, "# EOF\n") : NULL;
	CHECK(end && !end[6] && strstr(text, " # {") && strstr(text, "# TYPE whylate_late_seconds counter"));
	free(text);
	CHECK(!get(port, "/", "*/*", NULL));
}

static void write_config(const struct path *path, int port)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: agent\n  static_configs: [{targets: "
		 "['127.0.0.1:%d']}]\n",
		 port);
	file_write(path->s, text, strlen(text));
}

/* What a query of Prometheus answers with, within 20 s, at `least`: the number, or -1. */
static double ask_prometheus(int port, const char *query, double least)
{
	uint64_t deadline_ts = now_ns() + 20 * NS_PER_SEC;
	char path[256];
	double value = -1;

	snprintf(path, sizeof(path), "/api/v1/query?query=%s", query);
	while (value < least && now_ns() < deadline_ts) {
		char *text = get(port, path, "*/*", NULL), *at = text ? strstr(text, "\"value\":[") : NULL;

		at = at ? strchr(at, ',') : NULL;
		/* ,"VALUE"] */
		value = at ? strtod(at + 2, NULL) : -1;
		free(text);
		if (value < least)
			sleep_ms(200);
	}
	return value;
}

/* Native histograms say the same as the classic ones of the text. */
static void check_prometheus(int port)
{
	struct path config = temp_path("prometheus.yml"), data = temp_path("prometheus-data");
	struct process prometheus;
	int own_port = port_free();
	double count, sum;
	char *text;

	if (!is_installed("prometheus")) {
		skip("metrics_scraped", "prometheus is not installed");
		return;
	}
	text = get(port, "/metrics", "text/plain", NULL);
	count = sum_of(text, COUNT);
	sum = sum_of(text, SUM);
	free(text);
	write_config(&config, port);
	process_start(&prometheus,
		      "prometheus --config.file=%s --storage.tsdb.path=%s --web.listen-address=127.0.0.1:%d "
		      "--enable-feature=native-histograms",
		      config.s, data.s, own_port);
	CHECKF(port_wait(&prometheus, own_port, 20), "%s", process_err(&prometheus));
	CHECKF(ask_prometheus(own_port, "up", 1) == 1, "%s", process_err(&prometheus));
	CHECKF(ask_prometheus(own_port, "sum(histogram_count(whylate_request_seconds))", count) == count, "%g", count);
	CHECKF(ask_prometheus(own_port, "sum(histogram_sum(whylate_request_seconds))", 0) > 0.999 * sum, "%g", sum);
	CHECK(ask_prometheus(own_port, "histogram_quantile(0.99,whylate_request_seconds)", 0) > 0);
	CHECK(ask_prometheus(own_port, "sum(whylate_late_seconds_total)", 0) > 0);
	CHECK(ask_prometheus(own_port, "whylate_intervals_seen_total", REQUESTS) >= REQUESTS);
	process_signal(&prometheus, SIGTERM);
	process_wait(&prometheus, 10);
	process_end(&prometheus);
}

static void test_scraped(void)
{
	struct recording recording = {0};
	struct redis redis = {0};
	struct process load;
	char *text;
	int port = port_free();
	size_t sz = 0;

	if (!redis_start(&redis, ANY_CPU))
		return;
	if (recording_start(&recording, "metrics", redis.process.pid,
			    "--host metrics-host --budget 100%% --metrics 127.0.0.1:%d", port)) {
		CHECK(redis_load_start(&load, &redis, ANY_CPU, REQUESTS, 10) && process_wait(&load, 60) == 0);
		process_end(&load);
		check_texts(port);
		text = get(port, "/metrics", PROTO, &sz);
		CHECK(text && sz > 1000);
		free(text);
		check_prometheus(port);
		CHECK(recording_stop(&recording) == 0);
		CHECKF(port_connect(port) < 0, "the server of the metrics outlives the recording");
	}
	recording_end(&recording);
	redis_end(&redis);
}

/* The server has no privilege, and ends with a recording that is killed. */
static void test_server_is_confined(void)
{
	static const char script[] =
		"for p in $(pgrep -P $1); do grep -q metrics /proc/$p/comm && cat /proc/$p/status; done";
	struct recording recording = {0};
	struct redis redis = {0};
	int port = port_free(), waited = 0;
	char pid[16];
	const char *argv[] = {"sh", "-c", script, "sh", pid, NULL};
	struct process server;

	if (!redis_start(&redis, ANY_CPU))
		return;
	if (recording_start(&recording, "metrics-killed", redis.process.pid, "--metrics 127.0.0.1:%d", port)) {
		snprintf(pid, sizeof(pid), "%d", recording.process.pid);
		process_launch_argv(&server, NULL, argv);
		process_wait(&server, 5);
		CHECKF(strstr(process_out(&server), "CapEff:\t0000000000000000") &&
			       strstr(process_out(&server), "Seccomp:\t2") && !strstr(process_out(&server), "Uid:\t0"),
		       "%s", process_out(&server));
		process_end(&server);
		process_signal(&recording.process, SIGKILL);
		process_wait(&recording.process, 5);
		while (port_connect(port) >= 0 && waited++ < 100)
			sleep_ms(50);
		CHECKF(waited < 100, "the server of the metrics outlives a recording that is killed");
	}
	recording_end(&recording);
	redis_end(&redis);
}

static void test_addresses(void)
{
	struct process process;
	struct redis redis = {0};

	if (!redis_start(&redis, ANY_CPU))
		return;
	CHECK(whylate(&process, 20, "record -p %d --metrics 0.0.0.0:0 -d 1s -o %s", redis.process.pid,
		      temp_path("no").s) == 1);
	CHECK(said_one_line(&process, "--metrics-insecure", "0.0.0.0"));
	process_end(&process);
	CHECK(whylate(&process, 20, "record -p %d --metrics nonsense -d 1s", redis.process.pid) == 1);
	CHECK(said_one_line(&process, "nonsense", "ADDRESS:PORT"));
	process_end(&process);
	CHECK(whylate(&process, 20, "record -p %d --metrics-insecure -d 1s", redis.process.pid) == 2);
	process_end(&process);
	redis_end(&redis);
}

int suite_metrics(void)
{
	static const struct live_test tests[] = {
		{"metrics_scraped", test_scraped, SHORT},
		{"metrics_server_confined", test_server_is_confined, SHORT},
		{"metrics_addresses", test_addresses, REST},
	};

	return live_suite("metrics", tests, sizeof(tests) / sizeof(tests[0]));
}
