// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Trace mode on servers as Debian ships them, under loads that make their threads wait for each other: PostgreSQL's
 * backends for locks and for the flush of the log, Apache's workers for what its listener hands them, MariaDB's threads
 * for each other's locks.  Who it was in a single case nobody else can tell; that each kind of chain is there, ends at
 * threads of the server, adds up, and agrees in number with the load generator, can be told.
 */
#include "harness.h"
#include "mariadb.h"
#include "net.h"
#include "perfetto.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"
#include "walk.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Everything is kept, so that what is seldom is there. */
#define EVERYTHING "--mode trace --tail none --budget 100%% --ring-size 32M --memory 512M"

/* --- what holds for each of them ---------------------------------------------------------------------------------- */

static void check_sums(const char *dir, uint64_t row_cnt, const char *comm, struct paths_seen *seen)
{
	if (!CHECKF(walk_all(dir, UINT64_MAX, comm, seen), "no detail in %s", dir))
		return;
	CHECK(!seen->failed_cnt);
	CHECKF(seen->cnt == row_cnt, "%lu paths of %lu intervals", seen->cnt, row_cnt);
	CHECKF(!seen->uneven_cnt, "%lu of %lu paths do not sum to the latency", seen->uneven_cnt, seen->cnt);
}

static uint64_t loss_of(const struct session *session)
{
	return session->lost[WL_LOSS_SEGMENT] + session->lost[WL_LOSS_WAKEUP] + session->lost[WL_LOSS_EDGE] +
	       session->lost[WL_LOSS_INTERVAL];
}

/* Reads what was recorded, `sent` requests: what of it lies behind other threads of that name. */
static bool judge(const struct recording *recording, double sent, double tolerance, const char *comm,
		  struct session *session, struct paths_seen *seen)
{
	double seen_cnt;

	if (!session_read(session, recording->dir.s, NULL, NULL))
		return false;
	session_check(session);
	CHECKF(!loss_of(session), "%lu records lost", loss_of(session));
	seen_cnt = session_number(session, "intervals_seen");
	CHECKF(fabs(seen_cnt - sent) <= tolerance * sent, "%.0f seen, %.0f sent", seen_cnt, sent);
	check_sums(recording->dir.s, session->row_cnt, comm, seen);
	return true;
}

/* --- PostgreSQL --------------------------------------------------------------------------------------------------- */

#define PG_CLIENTS 12
#define PG_EACH    100
/* BEGIN, three UPDATEs, a SELECT, an INSERT, END */
#define PG_REQUESTS 7

static void test_postgres(void)
{
	struct recording recording = {0};
	struct postgres postgres = {0};
	struct process load = {0}, fill = {0};
	struct session session;
	struct paths_seen seen;
	struct path trace = temp_path("postgres.pftrace");
	double sent = PG_CLIENTS * PG_EACH * PG_REQUESTS, mean_ns, client_ns;
	char line[256];

	/* Synchronous commits: each END waits for the log on a disk, its own write or another backend's. */
	if (!postgres_find(&postgres, "chains_postgres") ||
	    !postgres_start(&postgres, "chains-pg", "-c fsync=on -c synchronous_commit=on"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 4 postgres", postgres.port);
	if (!as_postgres(&postgres, &fill, 60, line) ||
	    !recording_start(&recording, "chains-pg-rec", postgres.process.pid, EVERYTHING))
		goto cleanup;
	/* Four branches for twelve: transactions wait for each other's rows, and their commits for each other's flush.
	 */
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -n -c %d -j 2 -t %d postgres", postgres.port,
		 PG_CLIENTS, PG_EACH);
	if (!as_postgres(&postgres, &load, 90, line))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!judge(&recording, sent, 0.02, "postgres", &session, &seen))
		goto cleanup;
	mean_ns = session.latency_sum_ns / (double)session.row_cnt;
	client_ns = pgbench_number(&load, "latency average = ") * 1e6 / PG_REQUESTS;
	CHECKF(mean_ns > 0.3 * client_ns && mean_ns <= client_ns, "%.0f ns here, %.0f ns at the client", mean_ns,
	       client_ns);
	/* The log: its flush, and waiting for whoever flushes it, that is, for a lock whose holder is at the disk. */
	CHECK(seen.wait_ns[WL_CATEGORY_IO_DISK] > 0);
	CHECKF(seen.behind_ns[WL_CATEGORY_LOCK] > 0, "nobody waits for a lock of another backend");
	/* The row: its holder sets the latch of who waits in epoll. */
	CHECKF(seen.behind_ns[WL_CATEGORY_IO_NET] > 0, "nobody waits for another backend's transaction");
	CHECKF(session.rows[SHARD_TABLE_HANDOFF] > 0 && session.rows[SHARD_TABLE_WAKEUP] > 0, "%lu, %lu",
	       session.rows[SHARD_TABLE_HANDOFF], session.rows[SHARD_TABLE_WAKEUP]);
	perfetto_check(recording.dir.s, &trace, "postgres");
cleanup:
	process_end(&fill);
	process_end(&load);
	recording_end(&recording);
	postgres_end(&postgres);
}

/* --- Apache: event MPM -------------------------------------------------------------------------------------------- */

/* The system call that a thread waits in; -1: in none, or it is gone. */
static long waits_in(pid_t pid, pid_t tid)
{
	char path[64], text[32] = "";
	long nr = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	file = fopen(path, "re");
	if (file && fgets(text, sizeof(text), file) && sscanf(text, "%ld", &nr) != 1)
		nr = -1;
	if (file)
		fclose(file);
	return nr;
}

/* Is it a thread that waits for events now that there is nothing to do?  Workers wait for the queue, in a futex. */
static bool is_listener(pid_t pid, pid_t tid)
{
	long nr = waits_in(pid, tid);

#ifdef SYS_epoll_wait
	if (nr == SYS_epoll_wait)
		return true;
#endif
	return nr == SYS_epoll_pwait;
}

struct passed_on {
	uint64_t cnt, by_listener;
	uint64_t listener_pid, listener_tid; /* of the first one */
};

/* Hand-offs through the queue, and how many are from the thread that waits for events now. */
static void count_passed_on(void *owner, json_object *row)
{
	struct passed_on *passed = owner;
	uint64_t tid = (uint64_t)json_number(row, "from_tid");

	if (strcmp(json_text(row, "kind"), "queue"))
		return;
	passed->cnt++;
	if (!passed->listener_tid && is_listener((pid_t)json_number(row, "from_pid"), (pid_t)tid)) {
		passed->listener_tid = tid;
		passed->listener_pid = (uint64_t)json_number(row, "from_pid");
	}
	passed->by_listener += tid == passed->listener_tid;
}

static void test_apache(void)
{
	struct process server = {0}, load = {0};
	struct recording recording = {0};
	struct paths_seen seen;
	struct passed_on passed = {0};
	struct session session;
	int port = port_free();

	if (program_missing("chains_apache", "apache2") || program_missing("chains_apache", "ab"))
		return;
	if (!apache_start(&server, "chains-apache-server", port) ||
	    !recording_start(&recording, "chains-apache", server.pid, EVERYTHING) ||
	    process_start(&load, "ab -q -k -n 20000 -c 6 http://127.0.0.1:%d/index.html", port) ||
	    !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECK(strstr(process_out(&load), "Failed requests:        0") != NULL);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!judge(&recording, 20000, 0.02, NULL, &session, &seen))
		goto cleanup;
	visit_rows(recording.dir.s, "handoff", count_passed_on, &passed);
	/* A worker that is still there may read the next request of its connection by itself. */
	CHECKF(passed.cnt > session.row_cnt / 10, "%lu of %lu requests came through the queue", passed.cnt,
	       session.row_cnt);
	CHECKF(passed.listener_tid != 0 && passed.by_listener * 10 > passed.cnt * 8, "%lu of %lu of them from %lu",
	       passed.by_listener, passed.cnt, passed.listener_tid);
cleanup:
	process_end(&load);
	recording_end(&recording);
	process_signal(&server, SIGTERM);
	if (server.pid)
		process_wait(&server, 15);
	process_end(&server);
}

/* --- MariaDB ------------------------------------------------------------------------------------------------------ */

/* A count of sysbench's: "        total:                           74396". */
static double sysbench_count(struct process *load, const char *name)
{
	const char *line = strstr(process_out(load), name);

	return line ? strtod(line + strlen(name), NULL) : NAN;
}

/* The queries that it counts, and those that failed as victims of a deadlock, which it counts as errors. */
static double sysbench_queries(struct process *load)
{
	return sysbench_count(load, "total: ") + sysbench_count(load, "ignored errors: ");
}

struct statements {
	uint64_t cnt, nameless, named;
};

/* Prepared statements that were executed: sysbench prepares all of its own on connections that the recording saw begin.
 */
static void count_statements(void *owner, json_object *row)
{
	struct statements *statements = owner;
	const char *type = json_text(row, "type");

	statements->cnt++;
	statements->nameless += strstr(type, " EXECUTE") != NULL;
	statements->named += strstr(type, " SELECT c FROM sbtest1 WHERE id=?") != NULL;
}

static void test_mariadb(void)
{
	struct statements statements = {0};
	struct recording recording = {0};
	struct mariadb mariadb = {0};
	struct process load = {0};
	struct session session;
	struct paths_seen seen;

	if (!mariadb_find("chains_mariadb"))
		return;
	if (!mariadb_start(&mariadb, "chains") ||
	    !recording_start(&recording, "chains-mariadb", mariadb.process.pid, EVERYTHING))
		goto cleanup;
	/* 200 rows for 8 threads: transactions wait for each other, and each commit for the log. */
	if (!mariadb_load(&mariadb, &load, "--time=0 --events=500") ||
	    !CHECKF(process_wait(&load, 60) == 0, "sysbench: %.300s", process_out(&load)))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	/* Beside the queries: connecting, closing, and what deadlocks begin anew.  Newer ones name their threads. */
	if (!judge(&recording, sysbench_queries(&load), 0.05, "", &session, &seen))
		goto cleanup;
	CHECKF(seen.behind_ns[WL_CATEGORY_LOCK] > 0, "nobody waits for a lock of another thread");
	CHECKF(seen.wait_ns[WL_CATEGORY_IO_DISK] > 0, "nobody waits for a disk");
	visit_rows(recording.dir.s, "interval", count_statements, &statements);
	CHECKF(statements.named > statements.cnt / 4 && statements.nameless * 200 < statements.cnt,
	       "of %lu statements, %lu select a row, %lu are executed without a text", statements.cnt, statements.named,
	       statements.nameless);
cleanup:
	process_end(&load);
	recording_end(&recording);
	mariadb_end(&mariadb);
}

/* --- nginx, which answers with sendfile() ------------------------------------------------------------------------- */

#define PAGE_SZ (200 << 10)

/* Serves such a page from there. */
static bool pages_start(struct process *server, const char *name, int port, const char *directives)
{
	struct path page = temp_path("%s/page", name);
	char *text = calloc(1, PAGE_SZ);
	bool good = CHECK(text != NULL) && nginx_start(server, name, port, directives) &&
		    CHECK(!file_write(page.s, text, PAGE_SZ));

	free(text);
	return good;
}

static void test_nginx(void)
{
	struct process server = {0}, load = {0};
	struct recording recording = {0};
	struct paths_seen seen;
	struct session session;
	int port = port_free();

	if (program_missing("chains_nginx", "nginx") || program_missing("chains_nginx", "ab"))
		return;
	if (!pages_start(&server, "pages", port, "sendfile on; tcp_nopush on;") ||
	    !recording_start(&recording, "chains-nginx", server.pid, EVERYTHING) ||
	    process_start(&load, "ab -q -k -n 10000 -c 6 http://127.0.0.1:%d/page", port) ||
	    !CHECK(process_wait(&load, 60) == 0))
		goto cleanup;
	CHECK(strstr(process_out(&load), "Failed requests:        0") != NULL);
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	judge(&recording, 10000, 0.02, NULL, &session, &seen);
cleanup:
	process_end(&load);
	recording_end(&recording);
	nginx_end(&server);
}

/* For each line on a connection it fetches the page of that server, all of it. */
static const char page_reader[] = "import socket,sys\n"
				  "n=int(sys.argv[3])\n"
				  "l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1]))); l.listen(5)\n"
				  "p=socket.create_connection(('127.0.0.1',int(sys.argv[2])))\n"
				  "while True:\n"
				  "    c,_=l.accept()\n"
				  "    while c.recv(100):\n"
				  "        p.send(b'GET /page HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
				  "        t=p.recv(1<<20)\n"
				  "        while len(t)<n or len(t)-t.find(b'\\r\\n\\r\\n')-4<n: t+=p.recv(1<<20)\n"
				  "        c.send(b'!\\n')\n";

struct fetched {
	uint64_t cnt;
	double bytes, known_bytes; /* whose sender is known */
};

static void count_fetched(void *owner, json_object *row)
{
	struct fetched *fetched = owner;

	if (strcmp(json_text(row, "kind"), "socket"))
		return;
	fetched->cnt++;
	fetched->bytes += json_number(row, "bytes");
	if (!strcmp(json_text(row, "certainty"), "observed") && !strcmp(json_text(row, "from_comm"), "nginx"))
		fetched->known_bytes += json_number(row, "bytes");
}

/* In two parts, of which the second one comes up to a second later. */
#define PAGES 4

/* What sendfile() sends has a sender, and a place among the bytes of its connection, like all else. */
static void test_sendfile(void)
{
	struct client client = {
		.question = "?", .answer_end = "!\n", .connection_cnt = 1, .requests_each = PAGES, .pause_us = 1000};
	char port_text[16], back_text[16], sz_text[16];
	const char *const argv[] = {"python3", "-c", page_reader, port_text, back_text, sz_text, NULL};
	struct process back = {0}, front = {0};
	struct recording recording = {0};
	struct fetched fetched = {0};
	int back_port = port_free(), port = port_free();
	struct paths_seen seen;
	struct session session;

	if (program_missing("chains_sendfile", "nginx") || program_missing("chains_sendfile", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	snprintf(back_text, sizeof(back_text), "%d", back_port);
	snprintf(sz_text, sizeof(sz_text), "%d", PAGE_SZ);
	if (!pages_start(&back, "fetched", back_port, "sendfile on; limit_rate 128k;") ||
	    process_launch_argv(&front, NULL, argv) || !port_wait(&front, port, 10) || !client_open(&client, port) ||
	    !recording_start(&recording, "chains-sendfile", front.pid, EVERYTHING) || !client_run(&client))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!judge(&recording, PAGES, 0.02, "nginx", &session, &seen))
		goto cleanup;
	visit_rows(recording.dir.s, "handoff", count_fetched, &fetched);
	/* What it waited for is written: at least the second part of each page. */
	CHECKF(fetched.cnt >= PAGES, "%lu hand-offs", fetched.cnt);
	CHECKF(fetched.known_bytes == fetched.bytes, "%.0f of %.0f bytes have a sender", fetched.known_bytes,
	       fetched.bytes);
	CHECKF(seen.behind_ns[WL_CATEGORY_IO_NET] > 0, "nobody waits for nginx");
cleanup:
	client_close(&client);
	recording_end(&recording);
	process_end(&front);
	nginx_end(&back);
}

/* --- a child for every request ------------------------------------------------------------------------------------ */

static const char fork_server[] = "import http.server, socketserver, sys\n"
				  "class Handler(http.server.BaseHTTPRequestHandler):\n"
				  "    wbufsize = 65536\n"
				  "    def do_GET(self):\n"
				  "        self.send_response(200)\n"
				  "        self.send_header('Content-Length', '2')\n"
				  "        self.end_headers()\n"
				  "        self.wfile.write(b'ok')\n"
				  "    def log_message(self, *args):\n"
				  "        pass\n"
				  "class Server(socketserver.ForkingMixIn, http.server.HTTPServer):\n"
				  "    request_queue_size = 128\n"
				  "Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n";

#define FORKS 2000

static void test_forks(void)
{
	char port_text[16];
	const char *const argv[] = {"python3", "-c", fork_server, port_text, NULL};
	struct process server = {0}, load = {0};
	struct recording recording = {0};
	struct paths_seen seen;
	struct session session;
	int port = port_free();

	if (program_missing("chains_forks", "python3") || program_missing("chains_forks", "ab"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10) ||
	    !recording_start(&recording, "chains-forks", server.pid, EVERYTHING) ||
	    process_start(&load, "ab -q -n %d -c 4 http://127.0.0.1:%d/", FORKS, port) ||
	    !CHECK(process_wait(&load, 90) == 0))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!judge(&recording, FORKS, 0.02, NULL, &session, &seen))
		goto cleanup;
	/* Each child is seen, and seen to end. */
	CHECKF(session.thread_row_cnt >= 2 * FORKS, "%lu rows of threads", session.thread_row_cnt);
	/* The child is on the path, from its creation on, which is a hand-off. */
	CHECKF(session.rows[SHARD_TABLE_HANDOFF] >= FORKS / 2, "%lu hand-offs", session.rows[SHARD_TABLE_HANDOFF]);
cleanup:
	process_end(&load);
	recording_end(&recording);
	process_end(&server);
}

/* --- datagrams ---------------------------------------------------------------------------------------------------- */

/* For each line on a connection it asks another process, `store`, by a datagram; that one sleeps for 8 ms each tenth
 * time.
 */
static const char datagram_server[] =
	"import os,socket,sys,time\n"
	"def name(n): open('/proc/self/comm','w').write(n)\n"
	"s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('127.0.0.1',0))\n"
	"l=socket.socket(); l.bind(('127.0.0.1',int(sys.argv[1])))\n"
	"n=0\n"
	"if os.fork():\n"
	"    name('store')\n"
	"    while True:\n"
	"        d,a=s.recvfrom(100); n+=1\n"
	"        if n%10==0: time.sleep(0.008)\n"
	"        s.sendto(d,a)\n"
	"l.listen(5)\n"
	"q=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); q.connect(s.getsockname()); s.close()\n"
	"while True:\n"
	"    c,_=l.accept()\n"
	"    while c.recv(100):\n"
	"        q.send(b'?'); q.recv(100); c.send(b'!\\n')\n";

#define DATAGRAMS 500

/* The process that has the store as its parent: the one that listens. */
static pid_t child_of(pid_t parent)
{
	char path[64], text[64] = "";
	pid_t pid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	for (int tries = 0; tries < 50 && !pid; tries++) {
		file = fopen(path, "re");
		if (file && fgets(text, sizeof(text), file))
			pid = (pid_t)strtol(text, NULL, 10);
		if (file)
			fclose(file);
		if (!pid)
			sleep_ms(100);
	}
	return pid;
}

static void test_datagram(void)
{
	struct client client = {.question = "?",
				.answer_end = "!\n",
				.connection_cnt = 1,
				.requests_each = DATAGRAMS,
				.pause_us = 1000};
	char port_text[16];
	const char *const argv[] = {"python3", "-c", datagram_server, port_text, NULL};
	struct recording recording = {0};
	struct process server = {0};
	struct paths_seen seen;
	struct session session;
	int port = port_free();
	pid_t pid;

	if (program_missing("chains_datagram", "python3"))
		return;
	snprintf(port_text, sizeof(port_text), "%d", port);
	if (process_launch_argv(&server, NULL, argv) || !port_wait(&server, port, 10))
		return;
	pid = child_of(server.pid);
	if (!CHECK(pid > 0) || !client_open(&client, port) ||
	    !recording_start(&recording, "chains-datagram", pid, EVERYTHING) || !client_run(&client))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!judge(&recording, DATAGRAMS, 0.02, "store", &session, &seen))
		goto cleanup;
	/* 50 times 8 ms, less what the kernel's own work on the way takes elsewhere. */
	CHECKF(seen.behind_ns[WL_CATEGORY_IO_NET] > 50 * 8 * NS_PER_MS * 8 / 10, "%.1f ms behind the store",
	       seen.behind_ns[WL_CATEGORY_IO_NET] / 1e6);
cleanup:
	client_close(&client);
	recording_end(&recording);
	process_end(&server);
}

/* --- nginx as a cache in front of another server --------------------------------------------------------------------
 */

/* The origin's log says which requests were handed on: tests/bench/contexts holds it against the recording. */
static void test_proxy(void)
{
	struct process script = {0};

	if (program_missing("chains_proxy", "nginx") || program_missing("chains_proxy", "python3"))
		return;
	if (!CHECKF(is_there("tests/bench/contexts"), "the tests are run from the root of the source tree"))
		return;
	if (CHECK(!process_start(&script, "python3 tests/bench/contexts --proxies nginx --requests 3000")))
		CHECKF(process_wait(&script, 90) == 0, "%s %s", process_out(&script), process_err(&script));
	process_end(&script);
}

static const struct live_test tests[] = {
	{"chains_postgres", test_postgres, SHORT}, {"chains_apache", test_apache, REST},
	{"chains_mariadb", test_mariadb, REST},    {"chains_forks", test_forks, REST},
	{"chains_datagram", test_datagram, REST},  {"chains_nginx", test_nginx, SHORT},
	{"chains_sendfile", test_sendfile, REST},  {"chains_proxy", test_proxy, SHORT},
};

int suite_chains(void)
{
	return live_suite("chains", tests, sizeof(tests) / sizeof(tests[0]));
}
