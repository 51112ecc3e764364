// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `probes suggest --queues`: queues of several kinds, in one program that was built in several ways, are found by the
 * values that cross them; its free list, its counter, its table and what it announces are not.  The same of servers.
 */
#include "harness.h"
#include "net.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIND_CNT 5

/* What there is in C, and what in C++. */
static const char *const c_kinds[KIND_CNT] = {"single", "twin", "ring", "nested", "heap"};
static const char *const cplusplus_kinds[KIND_CNT] = {"raw", "unique"};
static const char *const lockless_kinds[KIND_CNT] = {"futex", "spin", "sem", "michael"};

/* The index of the kind whose threads are at both ends; -1: of none. */
static int kind_of(json_object *queue, const char *const kinds[KIND_CNT])
{
	const char *in = json_text(queue, "in_thread"), *out = json_text(queue, "out_thread");
	char want_in[32], want_out[32];

	for (size_t i = 0; in && out && i < KIND_CNT && kinds[i]; i++) {
		snprintf(want_in, sizeof(want_in), "%s-in", kinds[i]);
		snprintf(want_out, sizeof(want_out), "%s-out", kinds[i]);
		if (!strcmp(in, want_in) && !strcmp(out, want_out))
			return (int)i;
	}
	return -1;
}

static void check_queue(json_object *queue, const char *build, const char *const kinds[KIND_CNT], unsigned int *found)
{
	const char *text = json_object_to_json_string(queue);
	int kind = kind_of(queue, kinds);

	if (!CHECKF(kind >= 0, "%s: no queue: %s", build, text))
		return;
	found[kind]++;
	CHECKF(!strncmp(json_text(queue, "enqueue"), "enqueue ", 8), "%s: %s", build, text);
	CHECKF(!strncmp(json_text(queue, "dequeue"), "dequeue ", 8), "%s: %s", build, text);
	CHECKF(json_number(queue, "crossed") >= 0.8 * json_number(queue, "put_in"), "%s: %s", build, text);
	CHECKF(json_number(queue, "same_thread") == 0, "%s: %s", build, text);
}

/* The lines that were written are a list, which means something in the program. */
static void check_list(const char *build, pid_t pid)
{
	struct path list = temp_path("queues-%s.symbols", build);
	struct process process;
	int code = whylate(&process, 30, "probes suggest --queues -p %d -d 1s", (int)pid);
	const char *text = process_out(&process);

	CHECKF(code == 0 && strstr(text, "\nenqueue "), "%s: %d %s %s", build, code, text, process_err(&process));
	CHECK(!file_write(list.s, text, strlen(text)));
	process_end(&process);
	code = whylate(&process, 30, "probes check -p %d -s %s", (int)pid, list.s);
	CHECKF(code == 0, "%s: %s %s", build, process_out(&process), process_err(&process));
	process_end(&process);
}

static void check_build(const char *build, const char *const kinds[KIND_CNT])
{
	unsigned int found[KIND_CNT] = {0};
	struct process program, process;
	json_object *root, *queues;
	int code;

	if (process_start(&program, "%s/queues-%s 60", workloads_path(), build))
		return;
	if (!CHECKF(process_says(&program, false, "ready", NULL, 5), "%s: %s", build, process_err(&program)))
		goto cleanup;
	code = whylate(&process, 30, "probes suggest --queues -p %d -d 2s --json", (int)program.pid);
	root = json_tokener_parse(process_out(&process));
	queues = root ? json_at(root, "queues") : NULL;
	if (CHECKF(code == 0 && queues, "%s: %d %s", build, code, process_err(&process))) {
		for (size_t i = 0; i < json_object_array_length(queues); i++)
			check_queue(json_object_array_get_idx(queues, i), build, kinds, found);
		for (size_t i = 0; i < KIND_CNT && kinds[i]; i++)
			CHECKF(found[i] == 1, "%s: %s found %u times: %s", build, kinds[i], found[i],
			       process_out(&process));
		CHECKF(json_number(root, "values_lost") == 0, "%s: %s", build, process_out(&process));
	}
	json_object_put(root);
	process_end(&process);
	check_list(build, program.pid);
	CHECKF(process_runs(&program), "%s has ended: %s", build, process_err(&program));
cleanup:
	process_end(&program);
}

static void test_plain(void)
{
	check_build("O0", c_kinds);
}

static void test_optimised(void)
{
	check_build("O2", c_kinds);
	check_build("O3", c_kinds);
}

static void test_stripped(void)
{
	check_build("stripped", c_kinds);
}

static void test_cplusplus(void)
{
	check_build("cplusplus", cplusplus_kinds);
}

/* Without locks that are functions. */
static void test_lockless(void)
{
	check_build("lockless", lockless_kinds);
}

/* --- servers ------------------------------------------------------------------------------------------------------ */

/* What a queue of the server is known by: names of the threads at its ends. */
struct expected {
	const char *in, *out;
};

/* New connections with one question each, for as long as the process runs. */
static void ask_while(struct process *process, int port, const char *question)
{
	uint64_t until = now_ns() + 30 * NS_PER_SEC;
	char answer[512];

	while (process_runs(process) && now_ns() < until) {
		int fd = port_connect(port);

		if (fd < 0)
			continue;
		if (send(fd, question, strlen(question), MSG_NOSIGNAL) > 0)
			(void)!recv(fd, answer, sizeof(answer), 0);
		close(fd);
		sleep_ms(2);
	}
}

/* expected->in NULL: it has no queue. */
static void check_server(const char *what, struct process *server, int port, const char *question,
			 const struct expected *expected)
{
	struct process process;
	json_object *root, *queues;
	size_t cnt;

	if (process_start(&process, "%s probes suggest --queues -p %d -d 3s --json", whylate_path(), (int)server->pid))
		return;
	ask_while(&process, port, question);
	CHECKF(process_wait(&process, 1) == 0, "%s: %s", what, process_err(&process));
	root = json_tokener_parse(process_out(&process));
	queues = root ? json_at(root, "queues") : NULL;
	if (CHECKF(queues != NULL, "%s: %s", what, process_out(&process))) {
		cnt = json_object_array_length(queues);
		CHECKF(cnt == (expected->in ? 1 : 0), "%s: %s", what, process_out(&process));
		for (size_t i = 0; i < cnt && expected->in; i++) {
			json_object *queue = json_object_array_get_idx(queues, i);

			CHECKF(!strcmp(json_text(queue, "in_thread"), expected->in) &&
				       !strcmp(json_text(queue, "out_thread"), expected->out),
			       "%s: %s", what, json_object_to_json_string(queue));
			CHECKF(json_number(queue, "in_threads") == 1, "%s: %s", what,
			       json_object_to_json_string(queue));
		}
		CHECKF(json_number(root, "lock_functions") > 0, "%s: %s", what, process_out(&process));
	}
	CHECKF(process_runs(server), "%s has ended: %s", what, process_err(server));
	json_object_put(root);
	process_end(&process);
}

static void test_memcached(void)
{
	static const struct expected expected = {"memcached", "mc-worker"};
	struct process server = {0};
	int port = port_free();

	if (program_missing("queues_memcached", "memcached"))
		return;
	if (!process_start(&server, "memcached -u nobody -l 127.0.0.1 -p %d -U 0 -t 3", port) &&
	    port_wait(&server, port, 10))
		check_server("memcached", &server, port, "version\r\n", &expected);
	process_end(&server);
}

static void test_apache(void)
{
	static const struct expected expected = {"apache2", "apache2"};
	struct process server = {0};
	int port = port_free();

	if (program_missing("queues_apache", "apache2"))
		return;
	if (apache_start(&server, "queues-apache", port))
		check_server("Apache", &server, port, "GET / HTTP/1.0\r\n\r\n", &expected);
	process_end(&server);
}

static void test_none(void)
{
	static const struct expected none = {0};
	struct process server = {0};
	struct redis redis;
	int port = port_free();

	if (!program_missing("queues_redis", "redis-server")) {
		if (redis_start(&redis, ANY_CPU))
			check_server("Redis", &redis.process, redis.port, "INCR n\r\n", &none);
		redis_end(&redis);
	}
	if (!program_missing("queues_nginx", "nginx")) {
		if (nginx_start(&server, "queues-nginx", port, ""))
			check_server("nginx", &server, port, "GET / HTTP/1.0\r\n\r\n", &none);
		nginx_end(&server);
	}
}

/* Its queues lie between processes: hardly a probe is hit, and nothing is taken for a queue. */
static void test_postgres(void)
{
	struct postgres postgres = {0};
	struct process process;
	json_object *root;
	int code;

	if (!postgres_find(&postgres, "queues_postgres") || !postgres_start(&postgres, "queues-pg", ""))
		return;
	code = whylate(&process, 60, "probes suggest --queues -p %d -d 500ms", (int)postgres.process.pid);
	CHECKF(code == 0 && strstr(process_out(&process), "\n# No "), "%d %s %s", code, process_out(&process),
	       process_err(&process));
	process_end(&process);
	code = whylate(&process, 60, "probes suggest --queues -p %d -d 500ms --json", (int)postgres.process.pid);
	root = json_tokener_parse(process_out(&process));
	if (CHECKF(code == 0 && root, "%d %s", code, process_err(&process))) {
		CHECKF(json_number(root, "own_lock_functions") < 10, "%s", process_out(&process));
		CHECKF(!json_object_array_length(json_at(root, "queues")), "%s", process_out(&process));
		CHECKF(json_number(root, "probes") > 0 &&
			       json_number(root, "probes_hit") * 20 < json_number(root, "probes"),
		       "%s", process_out(&process));
	}
	json_object_put(root);
	process_end(&process);
	postgres_end(&postgres);
}

/* The queues that are found are followed by the recording that comes after. */
static void test_diagnose(void)
{
	struct path dir = temp_path("queues-diagnosis");
	struct process server = {0}, process = {0};
	struct session session;
	int port = port_free();

	if (program_missing("queues_diagnose", "apache2"))
		return;
	if (!apache_start(&server, "queues-diagnose", port) ||
	    process_start(&process, "%s diagnose -p %d --queues -d 3s -o %s", whylate_path(), (int)server.pid, dir.s))
		goto cleanup;
	ask_while(&process, port, "GET / HTTP/1.0\r\n\r\n");
	CHECKF(process_wait(&process, 30) == 0, "%s", process_err(&process));
	CHECKF(strstr(process_err(&process), " found, by ") && !strstr(process_err(&process), "queues: 0 found"), "%s",
	       process_err(&process));
	if (session_read(&session, dir.s, NULL, NULL))
		CHECKF(session.rows[SHARD_TABLE_SYMBOL] >= 2, "%lu", session.rows[SHARD_TABLE_SYMBOL]);
cleanup:
	process_end(&process);
	process_end(&server);
}

/* A target that ends meanwhile: what was seen is told. */
static void test_ending(void)
{
	struct process program, process;

	if (process_start(&program, "%s/queues-O2 2", workloads_path()))
		return;
	if (CHECK(process_says(&program, false, "ready", NULL, 5))) {
		int code = whylate(&process, 30, "probes suggest --queues -p %d -d 20s", (int)program.pid);

		CHECKF(code == 0, "%d: %s", code, process_err(&process));
		CHECKF(strstr(process_err(&process), "has ended") != NULL, "%s", process_err(&process));
		CHECKF(strstr(process_out(&process), "probes watched for") != NULL, "%s", process_out(&process));
		process_end(&process);
	}
	process_end(&program);
}

/* What cannot be asked is refused. */
static void test_refused(void)
{
	struct process process;

	CHECK(whylate(&process, 10, "probes list -e /bin/ls --queues") == 2);
	CHECK(strstr(process_err(&process), "--queues goes with suggest"));
	process_end(&process);
	CHECK(whylate(&process, 10, "probes suggest -e /bin/ls --queues") == 2);
	process_end(&process);
	CHECK(whylate(&process, 10, "diagnose -p 1 --queues -s list") == 2);
	CHECK(strstr(process_err(&process), "it goes without -s"));
	process_end(&process);
}

static const struct live_test tests[] = {
	{"queues_plain", test_plain, SHORT},       {"queues_optimised", test_optimised, REST},
	{"queues_stripped", test_stripped, REST},  {"queues_cplusplus", test_cplusplus, REST},
	{"queues_lockless", test_lockless, SHORT}, {"queues_memcached", test_memcached, SHORT},
	{"queues_apache", test_apache, REST},      {"queues_none", test_none, REST},
	{"queues_ending", test_ending, REST},      {"queues_postgres", test_postgres, REST},
	{"queues_diagnose", test_diagnose, REST},  {"queues_refused", test_refused, SHORT},
};

int suite_queues(void)
{
	return live_suite("queues", tests, sizeof(tests) / sizeof(tests[0]));
}
