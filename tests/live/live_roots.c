// SPDX-License-Identifier: GPL-2.0-or-later
/* What `diagnose` puts first, on servers whose cause of lateness is known. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS  4
#define THINK_MS 3
#define KEYS     30000

/* Clients, and servers behind the target; they end with the test. */
struct helpers {
	pid_t pids[2 * CLIENTS];
	size_t cnt;
};

static bool is_child(struct helpers *helpers)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else if (pid > 0)
		helpers->pids[helpers->cnt++] = pid;
	return !pid;
}

static void helpers_end(struct helpers *helpers)
{
	for (size_t i = 0; i < helpers->cnt; i++) {
		kill(helpers->pids[i], SIGKILL);
		waitpid(helpers->pids[i], NULL, 0);
	}
}

static void ask(int fd, const char *request)
{
	char reply[65536];

	if (write(fd, request, strlen(request)) != (ssize_t)strlen(request) || read(fd, reply, sizeof(reply)) <= 0)
		_exit(1);
}

/* One request in a hundred is `slow`. */
static void redis_client(int port, unsigned int seed, const char *slow)
{
	int fd = port_connect(port);
	char get[64];

	if (fd < 0)
		_exit(1);
	srandom(seed);
	for (;;) {
		snprintf(get, sizeof(get), "GET key:%ld\r\n", random() % KEYS);
		ask(fd, random() % 100 ? get : slow);
		sleep_ms(THINK_MS);
	}
}

static bool fill(int port)
{
	int fd = port_connect(port);
	char set[64], reply[16];
	bool good = fd >= 0;

	for (int i = 0; i < KEYS && good; i++) {
		snprintf(set, sizeof(set), "SET key:%d v\r\n", i);
		good = write(fd, set, strlen(set)) == (ssize_t)strlen(set) && read(fd, reply, sizeof(reply)) == 5;
	}
	close(fd);
	return CHECK(good);
}

/* The roots, our own time and what has no root are the tail. */
static void check_account(json_object *report)
{
	double tail_ns = json_number(report, "account.tail_ns"), own_ns = json_number(report, "account.our_own_ns");
	double sum_ns = json_number(report, "account.roots_ns") + json_number(report, "account.not_attributed_ns");

	CHECKF(tail_ns > 0 && fabs(sum_ns + (isnan(own_ns) ? 0 : own_ns) - tail_ns) < 1 + 1e-5 * tail_ns,
	       "%f ns of roots, our own and the rest, the tail is %f ns", sum_ns, tail_ns);
}

/* With a budget that lets it see most of the time: what is judged is the cause, not how much of it windows meet. */
static json_object *diagnose(pid_t pid)
{
	struct process process = {0};
	json_object *report;

	CHECKF(whylate(&process, 40, "diagnose -p %d -d 6s --budget 20%% --json -q", (int)pid) == 0, "%s",
	       process_err(&process));
	report = json_tokener_parse(process_out(&process));
	if (CHECKF(report != NULL, "%s", process_out(&process)))
		check_account(report);
	process_end(&process);
	return report;
}

static bool path_has(json_object *cause, const char *part)
{
	json_object *path = json_at(cause, "root.call_path");

	for (size_t i = 0; path && i < json_object_array_length(path); i++)
		if (strstr(json_object_get_string(json_object_array_get_idx(path, i)), part))
			return true;
	return false;
}

/*
 * The first cause but those of other programs and interrupts that took the CPUs meanwhile: what else runs on this
 * machine is no plant.  NULL: there is none.  *others: the share of the tail that those have, and the agent.
 */
static json_object *first_planted(json_object *report, double *others)
{
	json_object *causes = json_at(report, "causes");

	*others = fmax(0, json_number(report, "account.our_own_ns") / json_number(report, "account.tail_ns"));
	for (size_t i = 0; causes && i < json_object_array_length(causes); i++) {
		json_object *cause = json_object_array_get_idx(causes, i);

		if (strcmp(json_text(cause, "category"), "runq") != 0 &&
		    strncmp(json_text(cause, "category"), "irq.", 4) != 0)
			return cause;
		*others += json_number(cause, "share");
	}
	CHECKF(false, "nothing but what took the CPUs: %s", json_object_to_json_string(causes));
	return NULL;
}

/* Requests that run a slow command, and those behind them, have one root: the command's code. */
static void slow_command(const char *slow, const char *function)
{
	struct helpers clients = {.cnt = 0};
	json_object *report = NULL, *first;
	double others;
	struct redis redis = {0};

	if (program_missing("roots", "redis-server"))
		return;
	if (!redis_start(&redis, ANY_CPU) || !fill(redis.port))
		goto cleanup;
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (is_child(&clients))
			redis_client(redis.port, i, slow);
	report = diagnose(redis.process.pid);
	first = first_planted(report, &others);
	if (!first)
		goto cleanup;
	CHECKF(!strcmp(json_text(first, "root.kind"), "code") && path_has(first, function), "path %s of %s",
	       json_object_to_json_string(json_at(first, "root.call_path")), json_object_to_json_string(first));
	CHECK(!strcmp(json_text(first, "root.role"), "redis-server"));
	CHECKF(json_number(first, "share") > 0.3 * (1 - others), "%f, others %f", json_number(first, "share"), others);
	CHECK(json_number(first, "gain.p99_ns") < json_number(report, "account.p99_ns"));
cleanup:
	helpers_end(&clients);
	json_object_put(report);
	redis_end(&redis);
}

static void test_redis_keys(void)
{
	slow_command("KEYS nothing*\r\n", "keysCommand");
}

static void test_redis_eval(void)
{
	slow_command(
		"*3\r\n$4\r\nEVAL\r\n$58\r\nlocal s=0 for i=1,300000 do s=s+i%7 end return tostring(s)\r\n$1\r\n0\r\n",
		"eval");
}

/* --- a proxy and its upstream --------------------------------------------------------------------------------------
 */

static int listen_any(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t sz = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&address, &sz))
		return -1;
	*port = ntohs(address.sin_port);
	return fd;
}

/* Three in a hundred replies take 20 ms. */
static void upstream(int fd, unsigned int seed)
{
	static const char reply[] = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char request[4096];

	srandom(seed);
	prctl(PR_SET_NAME, "upstream");
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (read(client, request, sizeof(request)) > 0 && random() % 100 < 3)
			sleep_ms(20);
		if (write(client, reply, sizeof(reply) - 1) < 0)
			_exit(1);
		close(client);
	}
}

static void http_client(int port)
{
	int fd = port_connect(port);

	if (fd < 0)
		_exit(1);
	for (;;) {
		ask(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
		sleep_ms(THINK_MS);
	}
}

/* A proxy that idles in its event loop is busy with nobody: requests wait for its upstream. */
static void test_proxy(void)
{
	struct helpers helpers = {.cnt = 0};
	int upstream_port = 0, fd = listen_any(&upstream_port), port = port_free();
	json_object *report = NULL, *first;
	double others;
	struct process server = {0};
	char directives[256];

	if (program_missing("roots_proxy", "nginx") || !CHECK(fd >= 0))
		return;
	snprintf(directives, sizeof(directives),
		 "keepalive_requests 1000000; location / { proxy_pass http://127.0.0.1:%d; }", upstream_port);
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (is_child(&helpers))
			upstream(fd, i);
	close(fd);
	if (!nginx_start(&server, "roots-nginx", port, directives))
		goto cleanup;
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (is_child(&helpers))
			http_client(port);
	report = diagnose(server.pid);
	first = first_planted(report, &others);
	if (first)
		CHECKF(strcmp(json_text(first, "category"), "queue") && strcmp(json_text(first, "root.role"), "nginx"),
		       "%s", json_object_to_json_string(first));
cleanup:
	helpers_end(&helpers);
	json_object_put(report);
	nginx_end(&server);
}

/* --- a lock on a file ----------------------------------------------------------------------------------------------
 */

static void file_locked(int fd, unsigned int ms)
{
	if (flock(fd, LOCK_EX))
		_exit(1);
	if (ms)
		sleep_ms(ms);
	flock(fd, LOCK_UN);
}

/* A process for each connection; each request takes the lock. */
static void lock_server(int listen_fd, const char *path)
{
	char request[4096];
	int client, fd;

	prctl(PR_SET_NAME, "lock-server");
	while ((client = accept(listen_fd, NULL, NULL)) >= 0 && fork())
		close(client);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(path, O_RDWR | O_CLOEXEC);
	while (client >= 0 && fd >= 0 && read(client, request, sizeof(request)) > 0) {
		file_locked(fd, 0);
		if (write(client, "ok", 2) != 2)
			break;
	}
	_exit(0);
}

/* Some eight times a second for 25 ms. */
static void lock_holder(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	prctl(PR_SET_NAME, "backup");
	for (;;) {
		file_locked(fd, 25);
		sleep_ms(100);
	}
}

/* A stranger holds a lock on a file: the file has a name, and the stranger is the root. */
static void test_file_lock(void)
{
	struct path path = temp_path("data.lock");
	struct helpers helpers = {.cnt = 0};
	int port = 0, fd = listen_any(&port);
	json_object *report = NULL, *first;
	double others;
	pid_t server, holder;

	if (!CHECK(fd >= 0) || !CHECK(!file_write(path.s, "", 0)))
		return;
	if (is_child(&helpers))
		lock_server(fd, path.s);
	server = helpers.pids[0];
	close(fd);
	if (is_child(&helpers))
		lock_holder(path.s);
	holder = helpers.pids[1];
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (is_child(&helpers))
			http_client(port);
	report = diagnose(server);
	first = first_planted(report, &others);
	if (CHECK(first != NULL)) {
		CHECKF(!strcmp(json_text(first, "root.role"), "backup"), "%s", json_object_to_json_string(first));
		CHECKF(json_number(first, "culprit.pid") == holder, "%s", json_object_to_json_string(first));
		CHECKF(!strcmp(json_text(first, "category"), "lock"), "%s", json_object_to_json_string(first));
	}
	CHECKF(report && strstr(json_object_to_json_string(report), "data.lock"), "no lock has the file's name");
	helpers_end(&helpers);
	json_object_put(report);
}

/* --- a program that ends before its mappings are read ------------------------------------------------------------- */

static void test_short_program(void)
{
	struct workload workload;
	json_object *report = NULL, *first;
	double others;

	if (!workload_start(&workload, "shortlived", 30))
		goto cleanup;
	workload_go(&workload);
	report = diagnose(workload.server_pid);
	first = first_planted(report, &others);
	if (first)
		CHECKF(path_has(first, "convert_image") && !strcmp(json_text(first, "root.role"), "whylate-convert"),
		       "%s", json_object_to_json_string(first));
cleanup:
	json_object_put(report);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"roots_redis_keys", test_redis_keys, SHORT},
	{"roots_redis_eval", test_redis_eval, REST},
	{"roots_proxy", test_proxy, REST},
	{"roots_file_lock", test_file_lock, REST},
	{"roots_short_program", test_short_program, REST},
};

int suite_roots(void)
{
	return live_suite("roots", tests, sizeof(tests) / sizeof(tests[0]));
}
