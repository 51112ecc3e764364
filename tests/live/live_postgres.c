// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PostgreSQL: a process per connection, forked while the recording is under way, over TCP and over a unix socket.
 * Every statement of the simple protocol is one request; so is what a client sends before its first statement (one
 * start-up packet, as the cluster trusts everybody), and closing a connection has no reply.
 */
#include "harness.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"
#include "stacks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * `requests_each` per transaction.  pgbench itself asks two things on a connection of its own before it begins, beside
 * the start-ups.
 */
static void pgbench_case(const struct postgres *postgres, const char *name, const char *host, const char *script,
			 unsigned int transactions_each, unsigned int requests_each, double seen_at_least,
			 const char *more)
{
	const unsigned int clients = 4;
	double sent = (double)clients * transactions_each * requests_each, seen, mean_ns, client_mean_ns;
	struct recording recording = {0};
	struct process load = {0};
	struct session session;
	json_object *report = NULL;
	char line[512];

	if (!recording_start(&recording, name, postgres->process.pid, "--tail none --budget 100%% --ring-size 32M%s",
			     more))
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
	CHECKF(seen <= 1.01 * sent && seen >= seen_at_least * sent, "%s: %.0f seen, %.0f sent", name, seen, sent);
	CHECKF(mean_ns > 1000 && mean_ns <= client_mean_ns, "%s: %.0f ns here, %.0f ns at the client", name, mean_ns,
	       client_mean_ns);
	CHECKF(session.thread_row_cnt >= clients, "%lu", session.thread_row_cnt);
cleanup:
	if (report)
		json_object_put(report);
	process_end(&load);
	recording_end(&recording);
}

static void take_stack(void *owner, const struct stack_row *row)
{
	uint64_t *of_backends = owner;

	*of_backends += row->sid && row->complete && !strncmp(row->frames, "_start;", 7) &&
			strstr(row->frames, ";PostgresMain;");
}

/* User stacks of processes that begin while they are sampled, running and waiting. */
static void stacks_case(const struct postgres *postgres)
{
	struct recording recording = {0};
	struct process load = {0};
	struct stacks_seen seen;
	uint64_t of_backends = 0;
	char line[256];

	if (!recording_start(&recording, "pg-stacks", postgres->process.pid,
			     "--stacks=999 --budget 100%% --ring-size 32M"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -n -b tpcb-like -c 4 -j 1 -t 1000 postgres",
		 postgres->port);
	if (!as_postgres(postgres, &load, 60, line))
		goto cleanup;
	CHECKF(recording_stop(&recording) == 0, "%s", process_err(&recording.process));
	if (!stacks_read(&seen, recording.dir.s, take_stack, &of_backends))
		goto cleanup;
	CHECKF(seen.in_interval_cnt > 100 && seen.pid_cnt >= 4, "%lu stacks of %lu processes", seen.in_interval_cnt,
	       seen.pid_cnt);
	CHECKF(of_backends >= 0.95 * seen.in_interval_cnt, "%lu of %lu, %lu complete, %lu with guesses", of_backends,
	       seen.in_interval_cnt, seen.complete_cnt, seen.guessed_cnt);
	CHECKF(seen.running_ns > 0 && seen.blocked_ns > 0, "%.0f ns running, %.0f ns not", seen.running_ns,
	       seen.blocked_ns);
cleanup:
	process_end(&load);
	recording_end(&recording);
}

static void test_postgres(void)
{
	struct postgres postgres = {0};
	struct process process;
	char line[128];

	if (!postgres_find(&postgres, "postgres") || !postgres_start(&postgres, "pg", "-c fsync=off"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 1 postgres", postgres.port);
	if (as_postgres(&postgres, &process, 60, line)) {
		pgbench_case(&postgres, "pg-select-tcp", "127.0.0.1", "-S", 5000, 1, 0.99, "");
		pgbench_case(&postgres, "pg-select-unix", postgres.home.s, "-S", 5000, 1, 0.99, "");
		/* BEGIN, three UPDATEs, a SELECT, an INSERT, END */
		pgbench_case(&postgres, "pg-tpcb-tcp", "127.0.0.1", "-b tpcb-like", 500, 7, 0.99, "");
		/* The same by its own markers; what a new process does before it is probed is not seen. */
		pgbench_case(&postgres, "pg-markers", "127.0.0.1", "-b tpcb-like", 500, 7, 0.7,
			     " -s preset:postgresql-query");
		stacks_case(&postgres);
	}
	process_end(&process);
cleanup:
	postgres_end(&postgres);
}

static const struct live_test tests[] = {
	{"postgres", test_postgres, SHORT},
};

int suite_postgres(void)
{
	return live_suite("postgres", tests, sizeof(tests) / sizeof(tests[0]));
}
