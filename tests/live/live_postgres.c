// SPDX-License-Identifier: GPL-2.0-only
/*
 * PostgreSQL: a process per connection, forked while the recording is under way, over TCP and over a unix socket.
 * Every statement of the simple protocol is one request; so is what a client sends before its first statement (one
 * start-up packet, as the cluster trusts everybody), and closing a connection has no reply.
 */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"

#include <glob.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct postgres {
	struct process process;
	struct path bin, home;
	int port;
};

static bool postgres_find(struct postgres *postgres, const char *test)
{
	glob_t found;
	bool good =
		!glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) && found.gl_pathc && getpwnam("postgres");

	if (good) {
		snprintf(postgres->bin.s, sizeof(postgres->bin.s), "%s", found.gl_pathv[found.gl_pathc - 1]);
		*strrchr(postgres->bin.s, '/') = '\0';
	} else {
		skip(test, "PostgreSQL is not installed (scripts/setup.sh test installs it)");
	}
	globfree(&found);
	return good;
}

static bool as_postgres(const struct postgres *postgres, struct process *process, unsigned int timeout_s,
			const char *line)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU, .cwd = postgres->home.s};
	bool good = !process_launch(process, &launch, "%s/%s", postgres->bin.s, line) &&
		    CHECKF(process_wait(process, timeout_s) == 0, "%s: %s", line, process_err(process));

	return good;
}

static bool postgres_start(struct postgres *postgres, const char *name)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU};
	const struct passwd *user = getpwnam("postgres");
	struct path socket;
	char line[1200];
	bool good;

	postgres->home = temp_path("%s", name);
	postgres->port = port_free();
	socket = temp_path("%s/.s.PGSQL.%d", name, postgres->port);
	if (!CHECK(!mkdir(postgres->home.s, 0755) && !chown(postgres->home.s, user->pw_uid, user->pw_gid)))
		return false;
	snprintf(line, sizeof(line), "initdb -D %s/data -A trust -N -E UTF8 --locale=C --no-instructions",
		 postgres->home.s);
	good = as_postgres(postgres, &postgres->process, 60, line);
	process_end(&postgres->process);
	launch.cwd = postgres->home.s;
	return good &&
	       !process_launch(
		       &postgres->process, &launch,
		       "%s/postgres -D %s/data -p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s "
		       "-c fsync=off -c autovacuum=off -c max_parallel_workers=0 -c logging_collector=off",
		       postgres->bin.s, postgres->home.s, postgres->port, postgres->home.s) &&
	       unix_wait(&postgres->process, socket.s, 20) && port_wait(&postgres->process, postgres->port, 20);
}

static void postgres_end(struct postgres *postgres)
{
	process_signal(&postgres->process, SIGINT);
	if (postgres->process.pid)
		process_wait(&postgres->process, 20);
	process_end(&postgres->process);
}

static double pgbench_number(struct process *load, const char *what)
{
	const char *line = strstr(process_out(load), what);

	return line ? strtod(line + strlen(what), NULL) : NAN;
}

/*
 * `requests_each` per transaction.  pgbench itself asks two things on a connection of its own before it begins, beside
 * the start-ups.
 */
static void pgbench_case(const struct postgres *postgres, const char *name, const char *host, const char *script,
			 unsigned int transactions_each, unsigned int requests_each)
{
	const unsigned int clients = 4;
	double sent = (double)clients * transactions_each * requests_each, seen, mean_ns, client_mean_ns;
	struct recording recording = {0};
	struct process load = {0};
	struct session session;
	json_object *report = NULL;
	char line[512];

	if (!recording_start(&recording, name, postgres->process.pid, "--tail none --budget 100%% --ring-size 32M"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h %s -p %d -n -M simple %s -c %u -j 1 -t %u postgres", host,
		 postgres->port, script, clients, transactions_each);
	if (!as_postgres(postgres, &load, 60, line))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!session_read(&session, recording.dir.s, NULL, NULL))
		goto cleanup;
	session_check(&session);
	session_check_no_loss(&session);
	report = report_read(recording.dir.s, NULL);
	seen = json_number(report, "session.intervals_seen");
	mean_ns = json_number(report, "latency.mean_ns");
	client_mean_ns = pgbench_number(&load, "latency average = ") * 1e6 / requests_each;
	CHECKF(fabs(seen - sent) <= 0.01 * sent, "%s: %.0f seen, %.0f sent", name, seen, sent);
	CHECKF(mean_ns > 1000 && mean_ns <= client_mean_ns, "%s: %.0f ns here, %.0f ns at the client", name, mean_ns,
	       client_mean_ns);
	CHECKF(session.thread_row_cnt >= clients, "%lu", session.thread_row_cnt);
cleanup:
	if (report)
		json_object_put(report);
	process_end(&load);
	recording_end(&recording);
}

static void test_postgres(void)
{
	struct postgres postgres = {0};
	struct process process;
	char line[128];

	if (!postgres_find(&postgres, "postgres") || !postgres_start(&postgres, "pg"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 1 postgres", postgres.port);
	if (as_postgres(&postgres, &process, 60, line)) {
		pgbench_case(&postgres, "pg-select-tcp", "127.0.0.1", "-S", 5000, 1);
		pgbench_case(&postgres, "pg-select-unix", postgres.home.s, "-S", 5000, 1);
		/* BEGIN, three UPDATEs, a SELECT, an INSERT, END */
		pgbench_case(&postgres, "pg-tpcb-tcp", "127.0.0.1", "-b tpcb-like", 500, 7);
	}
	process_end(&process);
cleanup:
	postgres_end(&postgres);
}

static const struct live_test tests[] = {
	{"postgres", test_postgres},
};

int suite_postgres(void)
{
	return live_suite("postgres", tests, sizeof(tests) / sizeof(tests[0]));
}
