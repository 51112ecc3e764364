// SPDX-License-Identifier: GPL-2.0-or-later
/* Redis, memcached and nginx as Debian ships them, under loads of a known number of requests. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_TOLERANCE 0.01
/* More connections than intervals may be open (bpf/opens.h), and fewer than Redis takes. */
#define CROWD_MAX 9900
/* Room for an agent that does not get a CPU for a while: how fast it is, is not what these tests are about. */
#define EVERYTHING "--tail none --budget 100%% --ring-size 32M"

/* What a recording of a server has to show, however it was loaded. */
static void check_server(const struct recording *recording, double requests, double client_mean_ns)
{
	struct session session;
	json_object *report;
	double seen, mean_ns;

	if (!session_read(&session, recording->dir.s, NULL, NULL))
		return;
	session_check(&session);
	session_check_no_loss(&session);
	report = report_read(recording->dir.s, NULL);
	seen = json_number(report, "session.intervals_seen");
	mean_ns = json_number(report, "latency.mean_ns");
	CHECKF(fabs(seen - requests) <= COUNT_TOLERANCE * requests, "%.0f seen, %.0f sent", seen, requests);
	CHECKF((double)session.row_cnt == seen, "%lu rows of %.0f", session.row_cnt, seen);
	/* The server's part of a request is inside of the client's. */
	CHECKF(mean_ns > 1000 && mean_ns <= client_mean_ns, "%.0f ns here, %.0f ns at the client", mean_ns,
	       client_mean_ns);
	CHECKF(fabs(session.latency_sum_ns / (double)session.row_cnt - mean_ns) <= 1, "%.1f against %.1f",
	       session.latency_sum_ns / (double)session.row_cnt, mean_ns);
	json_object_put(report);
}

/* The second number of redis-benchmark's CSV: the mean in ms. */
static double redis_benchmark_mean_ns(struct process *load)
{
	const char *line = strstr(process_out(load), "\"GET\"");
	double rps, mean_ms;

	return line && sscanf(line, "\"GET\",\"%lf\",\"%lf\"", &rps, &mean_ms) == 2 ? mean_ms * 1e6 : NAN;
}

static void test_redis(void)
{
	struct recording recording = {0};
	struct process load = {0};
	struct redis redis;

	if (program_missing("redis", "redis-server") || program_missing("redis", "redis-benchmark"))
		return;
	if (!redis_start(&redis, ANY_CPU) || !recording_start(&recording, "redis", redis.process.pid, EVERYTHING))
		goto cleanup;
	if (!redis_load_start(&load, &redis, ANY_CPU, 100000, 20) || !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	check_server(&recording, 100000, redis_benchmark_mean_ns(&load));
cleanup:
	process_end(&load);
	recording_end(&recording);
	redis_end(&redis);
}

/* Connections that are older than the recording count, too. */
static void test_memcached(void)
{
	struct client before = {
		.question = "get nothing\r\n", .answer_end = "END\r\n", .connection_cnt = 10, .requests_each = 3000};
	struct client after = before;
	struct recording recording = {0};
	struct process server;
	int port = port_free();

	if (program_missing("memcached", "memcached"))
		return;
	if (process_start(&server, "memcached -u root -l 127.0.0.1 -p %d -t 4", port) ||
	    !port_wait(&server, port, 10) || !client_open(&before, port) ||
	    !recording_start(&recording, "memcached", server.pid, EVERYTHING) || !client_open(&after, port))
		goto cleanup;
	if (!client_run(&before) || !client_run(&after))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	check_server(&recording, (double)(before.answer_cnt + after.answer_cnt), (before.mean_ns + after.mean_ns) / 2);
cleanup:
	client_close(&before);
	client_close(&after);
	recording_end(&recording);
	process_end(&server);
}

static double ab_mean_ns(struct process *load)
{
	const char *line = strstr(process_out(load), "Time per request:");
	double mean_ms;

	return line && sscanf(line, "Time per request: %lf", &mean_ms) == 1 ? mean_ms * 1e6 : NAN;
}

/* The workers are the master's children. */
static void test_nginx(void)
{
	struct process server = {0}, load = {0};
	struct recording recording = {0};
	int port = port_free();

	if (program_missing("nginx", "nginx") || program_missing("nginx", "ab"))
		return;
	if (!nginx_start(&server, "nginx", port, "") ||
	    !recording_start(&recording, "nginx-rec", server.pid, EVERYTHING))
		goto cleanup;
	if (process_start(&load, "ab -q -k -n 30000 -c 10 http://127.0.0.1:%d/index.html", port) ||
	    !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECK(strstr(process_out(&load), "Failed requests:        0") != NULL);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	check_server(&recording, 30000, ab_mean_ns(&load));
cleanup:
	process_end(&load);
	recording_end(&recording);
	nginx_end(&server);
}

/* A connection and a thread for every request, all made after the recording began. */
static const char thread_server[] = "import http.server, sys\n"
				    "class Handler(http.server.BaseHTTPRequestHandler):\n"
				    "    wbufsize = 65536\n"
				    "    def do_GET(self):\n"
				    "        self.send_response(200)\n"
				    "        self.send_header('Content-Length', '2')\n"
				    "        self.end_headers()\n"
				    "        self.wfile.write(b'ok')\n"
				    "    def log_message(self, *args):\n"
				    "        pass\n"
				    "class Server(http.server.ThreadingHTTPServer):\n"
				    "    request_queue_size = 128\n"
				    "Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n";

static void test_short_connections(void)
{
	char port_text[16];
	const char *const argv[] = {"python3", "-c", thread_server, port_text, NULL};
	struct process server = {0}, load = {0};
	struct recording recording = {0};
	int port = port_free();

	if (program_missing("short_connections", "python3") || program_missing("short_connections", "ab"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10) ||
	    !recording_start(&recording, "threads", server.pid, EVERYTHING))
		goto cleanup;
	if (process_start(&load, "ab -q -n 2000 -c 4 http://127.0.0.1:%d/", port) ||
	    !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	check_server(&recording, 2000, ab_mean_ns(&load));
cleanup:
	process_end(&load);
	recording_end(&recording);
	process_end(&server);
}

/* Answers every datagram; every fiftieth after 3 ms of sleep. */
static const char datagram_server[] = "import socket,sys,time\n"
				      "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
				      "s.bind(('127.0.0.1',int(sys.argv[1])))\n"
				      "n=0\n"
				      "while True:\n"
				      "    d,a=s.recvfrom(100)\n"
				      "    n+=1\n"
				      "    if n%50==0: time.sleep(0.01)\n"
				      "    s.sendto(d,a)\n";

/* One question at a time; how many were answered. */
static unsigned int ask_by_datagram(int port, unsigned int question_cnt)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval patience = {.tv_sec = 2};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int answered = 0;
	char answer[16];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		for (unsigned int i = 0; i < question_cnt; i++)
			answered += send(fd, "?", 1, 0) == 1 && recv(fd, answer, sizeof(answer), 0) == 1;
	close(fd);
	return answered;
}

static void test_datagrams(void)
{
	char port_text[16];
	const char *const argv[] = {"python3", "-c", datagram_server, port_text, NULL};
	struct recording recording = {0};
	struct process server = {0};
	json_object *report;
	int port = port_free();
	bool answered = false;

	if (program_missing("datagrams", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv))
		return;
	/* There is no connection to wait for: it is up when it answers. */
	for (int tries = 0; tries < 100 && !answered; tries++, sleep_ms(100))
		answered = ask_by_datagram(port, 1) == 1;
	if (!CHECK(answered) || !recording_start(&recording, "datagrams", server.pid, EVERYTHING))
		goto cleanup;
	CHECK(ask_by_datagram(port, 2000) == 2000);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	report = report_read(recording.dir.s, NULL);
	CHECKF(json_number(report, "session.intervals_seen") == 2000, "%f seen",
	       json_number(report, "session.intervals_seen"));
	CHECKF(!strcmp(json_text(report, "causes.0.category"), "sleep"), "%s", json_text(report, "causes.0.what"));
	json_object_put(report);
cleanup:
	recording_end(&recording);
	process_end(&server);
}

/* Has a CPU to itself for 12 ms, some sixteen times a second: by FIFO, so that nobody else on the machine is the
 * neighbour. */
static pid_t hog_start(const char *name, int cpu)
{
	struct sched_param param = {.sched_priority = 20};
	pid_t parent = getpid(), pid = fork();
	cpu_set_t one;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_NAME, name);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &param))
		_exit(1);
	for (;;) {
		uint64_t until_ts = now_ns() + 12 * NS_PER_MS;

		while (now_ns() < until_ts)
			;
		sleep_ms(48);
	}
}

/*
 * The neighbour that the README promises to name.  The load waits for its replies, so each burst delays a request or
 * two; at this pace these are some 5 %, more than the tail holds, and later than anything else on a busy machine.
 */
static void test_redis_neighbour(void)
{
	struct client client = {.question = "GET x\r\n",
				.answer_end = "$-1\r\n",
				.connection_cnt = 4,
				.requests_each = 300,
				.pause_us = 10000};
	struct recording recording = {0};
	struct redis redis;
	json_object *report;
	pid_t hog = 0;

	if (program_missing("redis_neighbour", "redis-server"))
		return;
	if (!redis_start(&redis, 0) || !client_open(&client, redis.port))
		goto cleanup;
	hog = hog_start("backup", 0);
	if (!recording_start(&recording, "neighbour", redis.process.pid, "-d 60s") || !client_run(&client))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	report = report_read(recording.dir.s, NULL);
	CHECKF(!strcmp(json_text(report, "causes.0.category"), "runq"), "%s", json_text(report, "causes.0.what"));
	CHECKF(!strcmp(json_text(report, "causes.0.culprit.comm"), "backup"), "%s", json_text(report, "causes.0.what"));
	CHECKF(json_number(report, "causes.0.culprit.pid") == hog, "%s", json_text(report, "causes.0.what"));
	json_object_put(report);
cleanup:
	if (hog > 0) {
		kill(hog, SIGKILL);
		waitpid(hog, NULL, 0);
	}
	client_close(&client);
	recording_end(&recording);
	redis_end(&redis);
}

static double count_of_type(const struct recording *recording, const char *asked, int port, const char *command)
{
	char want[64], type[160], key[64];
	double count = 0;
	json_object *report = report_read(recording->dir.s, asked);

	snprintf(want, sizeof(want), "tcp:%d %s", port, command);
	for (int i = 0; i < 8; i++) {
		snprintf(key, sizeof(key), "types.%d.type", i);
		if (!json_at(report, key))
			break;
		snprintf(type, sizeof(type), "%s", json_text(report, key));
		snprintf(key, sizeof(key), "types.%d.count", i);
		if (!strcmp(type, want))
			count = json_number(report, key);
	}
	json_object_put(report);
	return count;
}

/* Two kinds of requests of one port, told apart by their first bytes; nothing else of them is stored. */
static void test_types(void)
{
	struct client get = {.question = "*2\r\n$3\r\nGET\r\n$9\r\nhushhush1\r\n",
			     .answer_end = "$-1\r\n",
			     .connection_cnt = 4,
			     .requests_each = 250};
	struct client set = {.question = "*3\r\n$3\r\nset\r\n$1\r\nx\r\n$8\r\nhushhush\r\n",
			     .answer_end = "+OK\r\n",
			     .connection_cnt = 2,
			     .requests_each = 150};
	struct recording recording = {0};
	struct process grep = {0};
	struct redis redis;

	if (program_missing("types", "redis-server"))
		return;
	if (!redis_start(&redis, ANY_CPU) || !client_open(&get, redis.port) ||
	    !recording_start(&recording, "types", redis.process.pid, EVERYTHING) || !client_open(&set, redis.port))
		goto cleanup;
	if (!client_run(&get) || !client_run(&set))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	CHECK(count_of_type(&recording, NULL, redis.port, "GET") == 1000);
	CHECK(count_of_type(&recording, NULL, redis.port, "SET") == 300);
	CHECK(count_of_type(&recording, "--type SET", redis.port, "SET") == 300);
	CHECK(count_of_type(&recording, "--type SET", redis.port, "GET") == 0);
	CHECK(process_start(&grep, "grep -rl hush %s", recording.dir.s) == 0 && process_wait(&grep, 10) == 1);
cleanup:
	process_end(&grep);
	client_close(&get);
	client_close(&set);
	recording_end(&recording);
	redis_end(&redis);
}

/* Requests that are open all at a time, on connections of their own: until one call answers all of them. */
struct crowd {
	int fds[CROWD_MAX];
	int cnt;
};

static bool crowd_asks(struct crowd *crowd, const struct redis *redis, int cnt)
{
	static const char question[] = "BLPOP nothing 0\r\n";

	for (; crowd->cnt < cnt; crowd->cnt++) {
		int fd = port_connect(redis->port);

		crowd->fds[crowd->cnt] = fd;
		if (fd < 0 || send(fd, question, strlen(question), MSG_NOSIGNAL) != (ssize_t)strlen(question))
			return CHECKF(false, "connection %d", crowd->cnt);
	}
	return CHECK(redis_answers(redis) && redis_answers(redis));
}

static bool crowd_is_answered(struct crowd *crowd, const struct redis *redis)
{
	char command[256], answer[64];
	int answered = 0;

	snprintf(command, sizeof(command),
		 "EVAL \"for i=1,%d do redis.call('rpush','nothing','x') end return redis.status_reply('OK')\" 0\r\n",
		 crowd->cnt);
	if (!CHECK(port_answers(redis->port, command, "+OK\r\n")))
		return false;
	for (int i = 0; i < crowd->cnt; i++) {
		struct pollfd ready = {.fd = crowd->fds[i], .events = POLLIN};

		answered += poll(&ready, 1, 5000) == 1 && recv(crowd->fds[i], answer, sizeof(answer), 0) > 0;
	}
	return CHECKF(answered == crowd->cnt, "%d of %d answered", answered, crowd->cnt);
}

static void crowd_leaves(struct crowd *crowd)
{
	while (crowd->cnt > 0)
		close(crowd->fds[--crowd->cnt]);
}

/* Up to so many intervals are open at a time; of more, each is recorded or counted as lost. */
static void check_crowd(int cnt, bool fits)
{
	static struct crowd crowd;
	struct recording recording = {0};
	struct session session;
	struct redis redis;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "crowd", redis.process.pid, EVERYTHING " --duty 100%%"))
		goto cleanup;
	if (!crowd_asks(&crowd, &redis, cnt) || !crowd_is_answered(&crowd, &redis))
		goto cleanup;
	/* A recording with losses says so in its exit code. */
	CHECKF((recording_stop(&recording) == 0) == fits, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	CHECKF(session_number(&session, "intervals_seen") >= (uint64_t)cnt, "%s",
	       session_key(&session, "intervals_seen"));
	CHECKF(session.row_cnt + session.lost[WL_LOSS_OPEN_FULL] == session_number(&session, "intervals_seen"),
	       "%lu rows, %lu without room, %s seen", session.row_cnt, session.lost[WL_LOSS_OPEN_FULL],
	       session_key(&session, "intervals_seen"));
	CHECKF(fits == !session.lost[WL_LOSS_OPEN_FULL], "%lu of %d found no room", session.lost[WL_LOSS_OPEN_FULL],
	       cnt);
	CHECKF(!session.uneven_cnt, "%lu rows do not sum", session.uneven_cnt);
cleanup:
	crowd_leaves(&crowd);
	recording_end(&recording);
	redis_end(&redis);
}

static void test_crowd(void)
{
	struct rlimit before, wanted = {.rlim_cur = 2 * CROWD_MAX, .rlim_max = 2 * CROWD_MAX};

	if (program_missing("open_crowd", "redis-server"))
		return;
	getrlimit(RLIMIT_NOFILE, &before);
	if (before.rlim_max > wanted.rlim_max)
		wanted.rlim_max = before.rlim_max;
	if (CHECK(!setrlimit(RLIMIT_NOFILE, &wanted))) {
		check_crowd(2000, true);
		check_crowd(CROWD_MAX, false);
	}
	setrlimit(RLIMIT_NOFILE, &before);
}

static const struct live_test tests[] = {
	{"redis", test_redis, SHORT},         {"memcached", test_memcached, SHORT},
	{"nginx", test_nginx, SHORT},         {"short_connections", test_short_connections, REST},
	{"datagrams", test_datagrams, SHORT}, {"redis_neighbour", test_redis_neighbour, REST},
	{"types", test_types, SHORT},         {"open_crowd", test_crowd, REST},
};

int suite_servers(void)
{
	return live_suite("servers", tests, sizeof(tests) / sizeof(tests[0]));
}
