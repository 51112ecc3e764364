// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two hosts, each a network namespace with an agent of its own, and one collector: a request that crosses them is one
 * chain, whose cause is on the far one.  Both agents are told not to follow threads that are none of their target's:
 * one kernel runs it all, and what the other namespace does must come from the other recording.
 */
#include "harness.h"
#include "net.h"
#include "netns.h"
#include "servers.h"
#include "session.h"
#include "stream_kit.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IP_FRONT "10.213.78.1"
#define IP_BACK  "10.213.78.2"
/* The namespaces are the test's own, and a collector's port is one of those that the kernel gives out. */
#define PORT_BACK "7800"
#define BACK      "back-1"
#define FRONT     "front-1"

/* Everything that runs. */
struct hosts {
	struct netns_pair net; /* front left, back right */
	struct stream_collector collector;
	struct process back, front, back_agent, front_agent;
	struct path warm;
};

static int server_pid(struct process *workload)
{
	const char *at = strstr(process_out(workload), "\"server_pid\":");

	return at ? atoi(at + strlen("\"server_pid\":")) : 0;
}

static bool agent_start(struct process *agent, const struct hosts *hosts, const struct certs *certs, const char *netns,
			const char *host, int pid)
{
	char options[2200];

	return certs_client(certs, host, options) &&
	       !process_start(agent,
			      "ip netns exec %s %s record -p %d --mode trace --scope 0 --budget 100%% -d 60s --stream "
			      "https://%s "
			      "--spool %s %s",
			      netns, whylate_path(), pid, hosts->collector.address, temp_path("spool-%s", host).s,
			      options) &&
	       CHECKF(process_says(agent, true, "whylate: recording ", NULL, 20), "%s", process_err(agent));
}

static bool hosts_start(struct hosts *hosts)
{
	struct certs certs;

	hosts->warm = temp_path("hosts-warm");
	if (!netns_pair_make(&hosts->net, "hosts", IP_FRONT, IP_BACK) || !certs_make(&certs, IP_BACK) ||
	    !stream_collector_start(&hosts->collector, &certs, hosts->net.right, IP_BACK, "store-hosts"))
		return false;
	process_start(&hosts->back, "ip netns exec %s %s/far back " IP_BACK " " PORT_BACK, hosts->net.right,
		      workloads_path());
	if (!CHECKF(process_says(&hosts->back, false, "ready", NULL, 20), "%s", process_err(&hosts->back)))
		return false;
	process_start(&hosts->front,
		      "ip netns exec %s %s/far front " IP_BACK " " PORT_BACK " --seconds 8 --warmup-file %s",
		      hosts->net.left, workloads_path(), hosts->warm.s);
	if (!CHECKF(process_says(&hosts->front, false, "ready", NULL, 20), "%s", process_err(&hosts->front)))
		return false;
	return agent_start(&hosts->back_agent, hosts, &certs, hosts->net.right, BACK, hosts->back.pid) &&
	       agent_start(&hosts->front_agent, hosts, &certs, hosts->net.left, FRONT, server_pid(&hosts->front));
}

static void hosts_end(struct hosts *hosts)
{
	process_end(&hosts->front_agent);
	process_end(&hosts->back_agent);
	process_end(&hosts->front);
	process_end(&hosts->back);
	process_end(&hosts->collector.process);
	netns_pair_remove(&hosts->net);
}

static json_object *report(const char *store, const char *more)
{
	struct process process;
	json_object *root;

	whylate(&process, 60, "report --json %s %s", store, more);
	root = json_tokener_parse(process_out(&process));
	CHECKF(root != NULL, "%s", process_err(&process));
	process_end(&process);
	return root;
}

/* One clock for all: what the messages say of it must not exclude 0. */
static void check_clocks(json_object *root)
{
	json_object *link;

	json_object *links = json_at(root, "path.join.links");

	if (!CHECK(links && json_object_array_length(links) == 1))
		return;
	link = json_object_array_get_idx(links, 0);
	CHECKF(fabs(json_number(link, "offset_ns")) <= json_number(link, "uncertainty_ns"), "%.0f ± %.0f ns",
	       json_number(link, "offset_ns"), json_number(link, "uncertainty_ns"));
	CHECKF(json_number(link, "uncertainty_ns") < 1e6, "± %.0f ns", json_number(link, "uncertainty_ns"));
	CHECK(json_number(link, "joined") > 1000);
	CHECKF(json_number(root, "path.join.ambiguous") <= 0.01 * json_number(root, "path.join.received"),
	       "%.0f are ambiguous", json_number(root, "path.join.ambiguous"));
}

static bool is_vacuum_on_back(json_object *object)
{
	return !strcmp(json_text(object, "category"), "lock") && !strcmp(json_text(object, "culprit.comm"), "vacuum") &&
	       !strcmp(json_text(object, "culprit.host"), BACK);
}

/* planted: what the front end measured by itself, its questions to the back end as a whole. */
static void check_first_cause(json_object *root, double planted)
{
	json_object *first = json_at(root, "causes.0");

	if (!CHECK(first != NULL))
		return;
	CHECKF(is_vacuum_on_back(first), "%s", json_text(first, "what"));
	CHECKF(json_number(first, "share") > 0.6 * planted, "%.2f of %.2f", json_number(first, "share"), planted);
}

/* The sid of the slowest request of the front end that met what was planted; a pause of the machine may be longer. */
static const char *slow_sid(json_object *front)
{
	json_object *slowest = json_at(front, "path.slowest");

	for (size_t i = 0; slowest && i < json_object_array_length(slowest); i++) {
		json_object *story = json_object_array_get_idx(slowest, i), *steps = json_at(story, "steps");

		if (!CHECKF(!strcmp(json_text(story, "host"), FRONT), "%s", json_text(story, "host")))
			continue;
		for (size_t s = 0; s < json_object_array_length(steps); s++)
			if (is_vacuum_on_back(json_object_array_get_idx(steps, s)))
				return json_text(story, "sid");
	}
	return NULL;
}

/* That request, as a person asks for it. */
static void check_story(json_object *front, const char *store)
{
	const char *sid = slow_sid(front);
	struct process process;

	if (!CHECKF(sid != NULL, "%s", json_object_to_json_string(json_at(front, "path.slowest"))))
		return;
	CHECK(whylate(&process, 60, "explain %s %s", store, sid) == 0);
	CHECKF(strstr(process_out(&process), " on " FRONT) && strstr(process_out(&process), "`vacuum`") &&
		       strstr(process_out(&process), " on " BACK),
	       "%s", process_out(&process));
	process_end(&process);
}

static void check_exports(const char *store)
{
	struct path trace = temp_path("hosts.perfetto");
	struct process process;
	char *bytes;
	size_t sz;

	CHECK(whylate(&process, 60, "export %s --format perfetto -o %s", store, trace.s) == 0);
	process_end(&process);
	bytes = file_read(trace.s, &sz);
	CHECK(bytes && memmem(bytes, sz, FRONT ": ", strlen(FRONT ": ")) &&
	      memmem(bytes, sz, BACK ": ", strlen(BACK ": ")));
	free(bytes);
	CHECK(whylate(&process, 60, "export %s --format folded", store) == 0);
	CHECKF(strstr(process_out(&process), ";vacuum on " BACK) != NULL, "%s", process_out(&process));
	process_end(&process);
}

/* Some of the hosts, and some of the time. */
static void check_choice(const char *store)
{
	struct process process;

	whylate(&process, 60, "report %s --host ba*-1 --since 1h", store);
	CHECKF(strstr(process_out(&process), ") on " BACK ", Linux ") != NULL, "%s", process_out(&process));
	process_end(&process);
	CHECK(whylate(&process, 60, "report %s --until 2020-01-01T00:00", store) == 1);
	said_one_line(&process, "no recording of any host from that time", BACK ", " FRONT);
	process_end(&process);
}

static void check_store(const char *store, double planted)
{
	json_object *both = report(store, ""), *front = report(store, "--host " FRONT);
	struct process process;

	CHECK(json_at(both, "hosts") && json_object_array_length(json_at(both, "hosts")) == 2);
	check_clocks(both);
	check_first_cause(both, planted);
	check_first_cause(front, planted);
	check_story(front, store);
	json_object_put(front);
	json_object_put(both);
	whylate(&process, 60, "report %s", store);
	CHECKF(strstr(process_out(&process), "From host to host") != NULL, "%s", process_out(&process));
	CHECKF(strstr(process_out(&process), "`vacuum`") != NULL, "%s", process_out(&process));
	process_end(&process);
	check_choice(store);
	check_exports(store);
}

/* 3: threads that were not followed are missing, as was asked for. */
static void agent_stop(struct process *agent)
{
	int code;

	process_signal(agent, SIGINT);
	code = process_wait(agent, 30);
	CHECKF(code == 0 || code == 3, "exit code %d: %s", code, process_err(agent));
}

static void test_two_hosts(void)
{
	json_object *planted = NULL;
	struct hosts hosts = {0};

	if (!hosts_start(&hosts))
		goto cleanup;
	CHECK(!file_write(hosts.warm.s, "", 0));
	CHECKF(process_wait(&hosts.front, 40) == 0, "%s", process_err(&hosts.front));
	agent_stop(&hosts.front_agent);
	agent_stop(&hosts.back_agent);
	planted = json_tokener_parse(strchr(process_out(&hosts.front), '\n') ?: "");
	if (CHECKF(planted != NULL, "%s", process_out(&hosts.front)))
		check_store(hosts.collector.store.s, json_number(planted, "planted_share"));
cleanup:
	json_object_put(planted);
	hosts_end(&hosts);
}

/* --- HTTP/2 ------------------------------------------------------------------------------------------------------- */

static const char nginx_config[] =
	"daemon off;\npid %s/nginx.pid;\nerror_log %s/error.log;\nuser root;\n"
	"events {}\nhttp {\n"
	"	log_format protocol '$server_protocol $status';\n"
	"	access_log %s/access.log protocol;\n"
	"	client_body_temp_path %s/body;\n	proxy_temp_path %s/proxy;\n"
	"	fastcgi_temp_path %s/fastcgi;\n	uwsgi_temp_path %s/uwsgi;\n"
	"	scgi_temp_path %s/scgi;\n"
	"	server {\n		listen 127.0.0.1:%d ssl http2;\n"
	"		ssl_certificate %s/server.crt;\n		ssl_certificate_key %s/server.key;\n"
	"		client_max_body_size 16m;\n"
	"		location / { proxy_pass http://127.0.0.1:%d; }\n	}\n}\n";

static bool proxy_start(struct process *nginx, const struct certs *certs, int port, int to_port)
{
	struct path dir = temp_path("nginx"), config = temp_path("nginx.conf");
	const char *d = dir.s;
	char text[8192];

	mkdir(d, 0755);
	snprintf(text, sizeof(text), nginx_config, d, d, d, d, d, d, d, d, port, certs->dir.s, certs->dir.s, to_port);
	return CHECK(!file_write(config.s, text, strlen(text))) &&
	       !process_start(nginx, "nginx -e %s/error.log -c %s", d, config.s) && port_wait(nginx, port, 10);
}

/* A proxy that speaks it stands before the collector, which does not: the agent does. */
static void test_http2(void)
{
	static const char token[] = "token-of-web-1-0123456789", tokens[] = STREAM_HOST " token-of-web-1-0123456789\n";
	struct path token_path = temp_path("token"), tokens_path = temp_path("tokens"), store = temp_path("store-h2");
	struct process nginx = {0}, collector = {0}, load = {0};
	struct recording recording = {0};
	struct redis redis = {0};
	struct certs certs;
	int port = port_free(), to_port;
	char *log = NULL;

	if (!certs_make(&certs, "127.0.0.1") || !CHECK(!file_write_secret(token_path.s, token, strlen(token))) ||
	    !CHECK(!file_write_secret(tokens_path.s, tokens, strlen(tokens))) || !redis_start(&redis, ANY_CPU))
		goto cleanup;
	to_port = port_free();
	process_start(&collector, "%s collect --user nobody --listen 127.0.0.1:%d --store %s --tokens %s",
		      whylate_path(), to_port, store.s, tokens_path.s);
	if (!CHECKF(process_says(&collector, true, "listening on", NULL, 15), "%s", process_err(&collector)) ||
	    !proxy_start(&nginx, &certs, port, to_port) ||
	    !recording_start(&recording, "h2", redis.process.pid,
			     "-d 60s --host " STREAM_HOST " --stream https://127.0.0.1:%d --stream-token %s "
			     "--stream-ca %s/ca.crt --spool %s",
			     port, token_path.s, certs.dir.s, temp_path("spool-h2").s) ||
	    !redis_load_start(&load, &redis, ANY_CPU, 20000, 10))
		goto cleanup;
	CHECK(process_wait(&load, 60) == 0);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	stored_once(recording.dir.s, store.s, 0);
	log = file_read(temp_path("nginx/access.log").s, NULL);
	CHECKF(log && strstr(log, "HTTP/2.0 200") && !strstr(log, "HTTP/1"), "%s", log ? log : "no log");
cleanup:
	free(log);
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
	process_end(&nginx);
	process_end(&collector);
}

static const struct live_test tests[] = {
	{"hosts_chain", test_two_hosts, SHORT},
	{"hosts_http2", test_http2, SHORT},
};

int suite_hosts(void)
{
	return live_suite("hosts", tests, sizeof(tests) / sizeof(tests[0]));
}
