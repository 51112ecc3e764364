// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes never hurt: programs that do what probes may break (tests/safety) have them attached to most of their
 * functions and detached, over and over, and lose the agent to kill -9 at whatever moment; afterwards they go on with
 * correct results and the very code of their files.  The same with a thousand functions of real servers under load.
 */
#include "harness.h"
#include "net.h"
#include "postgres.h"
#include "servers.h"
#include "session.h"
#include "text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      20
#define ROUNDS_SAN  8 /* sanitizers make each round slower, not another one */
#define KILLS       6
#define MAX_PROBE   1000
#define MAX_COUNTED 100

struct subject {
	const char *name;
	const char *modules;  /* of the prober; NULL: the executable */
	const char *interval; /* a function whose calls are the intervals; NULL: none */
};

/* The numbers after this key in all lines that the prober has printed, summed up. */
static double prober_sum(struct process *prober, const char *key)
{
	const char *text = process_out(prober);
	char pattern[64];
	double sum = 0;

	snprintf(pattern, sizeof(pattern), "\"%s\":", key);
	while ((text = strstr(text, pattern))) {
		text += strlen(pattern);
		sum += strtod(text, NULL);
	}
	return sum;
}

/* So many times; the target must have called what was probed. */
static bool attach_and_detach(pid_t pid, const char *what, const char *modules, unsigned int wait_ms, int rounds)
{
	struct process prober;
	bool good = false;

	if (!process_start(&prober, "%s -p %d %s -n %d -t %d -w %u", built_path("live/prober").s, (int)pid,
			   modules ? modules : "", MAX_PROBE, rounds, wait_ms)) {
		good = CHECKF(process_wait(&prober, 120) == 0, "%s: the prober: %s", what, process_err(&prober));
		good &= CHECKF(prober_sum(&prober, "round") == rounds * (rounds + 1) / 2, "%s: %s", what,
			       process_out(&prober));
		good &= CHECKF(prober_sum(&prober, "entries") > 0, "%s: nothing was hit", what);
	}
	process_end(&prober);
	return good;
}

/* Breakpoint registers are no less of an intrusion than probes, though they leave the code alone. */
static void count_calls(pid_t pid, const struct subject *subject)
{
	struct process prober;

	if (!process_start(&prober, "%s -p %d %s -n %d -k -t 1", built_path("live/prober").s, (int)pid,
			   subject->modules ? subject->modules : "", MAX_COUNTED)) {
		process_wait(&prober, 60);
		if (prober.code && registers_missing(process_err(&prober)))
			skip(subject->name, "calls cannot be counted without probes: %s", process_err(&prober));
		else
			CHECKF(prober.code == 0 && strchr(process_out(&prober), '\n'), "%s: the prober: %s",
			       subject->name, process_err(&prober));
	}
	process_end(&prober);
}

/* A recording of all functions of the executable: how long until it is under way, in ms; 0 after a failed check. */
static unsigned int recording_begins(struct process *agent, pid_t pid, const char *symbols, unsigned int idx)
{
	uint64_t begin_ts = now_ns();

	if (process_start(agent, "%s record -p %d -s %s --budget 100%% -o %s", whylate_path(), (int)pid, symbols,
			  temp_path("killed-%d-%u", (int)pid, idx).s) ||
	    !CHECKF(process_says(agent, true, "whylate: recording ", NULL, 30), "%s", process_err(agent)))
		return 0;
	return (unsigned int)((now_ns() - begin_ts) / NS_PER_MS) + 1;
}

/* From before its first probe until some time into the recording. */
static void kill_at_every_stage(pid_t pid, const char *symbols)
{
	struct process agent;
	unsigned int whole_ms = recording_begins(&agent, pid, symbols, KILLS);

	process_end(&agent);
	for (unsigned int i = 0; whole_ms && i < KILLS; i++) {
		if (process_start(&agent, "%s record -p %d -s %s --budget 100%% -o %s", whylate_path(), (int)pid,
				  symbols, temp_path("killed-%d-%u", (int)pid, i).s))
			return;
		sleep_ms((whole_ms + 100) * (i + 1) / KILLS);
		CHECKF(process_runs(&agent), "it ended by itself: %s", process_err(&agent));
		process_signal(&agent, SIGKILL);
		process_wait(&agent, 10);
		process_end(&agent);
		if (!text_is_intact(pid))
			return;
	}
}

static struct path symbols_of(const struct subject *subject)
{
	struct path path = temp_path("safety-%s.txt", subject->name);
	char text[256];

	snprintf(text, sizeof(text), "%s%s\nfunction *\n", subject->interval ? "interval " : "# nothing but functions",
		 subject->interval ? subject->interval : "");
	CHECK(!file_write(path.s, text, strlen(text)));
	return path;
}

static bool is_of_sanitizers(const char *kind)
{
	return !strcmp(kind, "safety-san");
}

/* A killed agent is the same to a program whatever that was compiled with: once for each is enough. */
static bool is_to_be_killed_for(const struct subject *subject, const char *kind)
{
	return !is_of_sanitizers(kind) && !strstr(subject->name, "stripped");
}

static void safety_case(const struct subject *subject, const char *kind)
{
	struct path program = built_path("%s/%s", kind, subject->name);
	struct process process;

	if (!is_there(program.s)) {
		skip(subject->name, "%s was not built: there is no Go", program.s);
		return;
	}
	if (process_start(&process, "env GLIBC_TUNABLES=glibc.cpu.x86_shstk=on %s", program.s) ||
	    !CHECKF(process_says(&process, false, "ready", "skip ", 10), "%s: %s", program.s, process_err(&process)))
		goto cleanup;
	if (!strncmp(process_out(&process), "skip ", 5)) {
		skip(subject->name, "%.*s", (int)strcspn(process_out(&process) + 5, "\n"), process_out(&process) + 5);
		goto cleanup;
	}
	count_calls(process.pid, subject);
	attach_and_detach(process.pid, program.s, subject->modules, 40, is_of_sanitizers(kind) ? ROUNDS_SAN : ROUNDS);
	if (CHECKF(process_runs(&process), "%s has ended: code %d, %s", program.s, process.code, process_err(&process)))
		text_is_intact(process.pid);
	if (process_runs(&process) && is_to_be_killed_for(subject, kind))
		kill_at_every_stage(process.pid, symbols_of(subject).s);
	if (!CHECKF(process_runs(&process), "%s has ended: code %d, %s", program.s, process.code,
		    process_err(&process)))
		goto cleanup;
	text_is_intact(process.pid);
	/* It is to go on as if nothing had been. */
	sleep_ms(200);
	process_signal(&process, SIGTERM);
	CHECKF(process_wait(&process, 20) == 0, "%s: code %d, %s %s", program.s, process.code, process_out(&process),
	       process_err(&process));
	CHECKF(strstr(process_out(&process), "verdict ok") != NULL, "%s: %s", program.s, process_out(&process));
cleanup:
	process_end(&process);
}

/* What all the others rely on: code with probes in it is not the code of its file. */
static void test_probes_are_seen(void)
{
	uint64_t deadline_ts = now_ns() + 10 * NS_PER_SEC;
	struct process process, prober = {0};
	bool seen = false;

	if (process_start(&process, "%s", built_path("safety/many").s) ||
	    !CHECK(process_says(&process, false, "ready", NULL, 10)) ||
	    process_start(&prober, "%s -p %d -n 1 -w 1000", built_path("live/prober").s, (int)process.pid))
		goto cleanup;
	while (!seen && process_runs(&prober) && now_ns() < deadline_ts)
		seen = text_is_changed(process.pid);
	CHECK(seen);
	process_wait(&prober, 10);
	text_is_intact(process.pid);
cleanup:
	process_end(&prober);
	process_end(&process);
}

/* name in tests/safety, further modules, function whose calls are the intervals, form plain and sanitized */
#define BOTH_WAYS(SUBJECT)                                                                            \
	SUBJECT(throwing, "-m throwing -m libstdc++.so.6 -m libgcc_s.so.1", "one_round", REST, SHORT) \
	SUBJECT(jumping, "-m jumping -m libc.so.6", "one_round", REST, REST)                          \
	SUBJECT(cancelling, NULL, "one_round", REST, REST)                                            \
	SUBJECT(spawning, NULL, "one_round", REST, REST)                                              \
	SUBJECT(altstack, NULL, "one_round", REST, REST)                                              \
	SUBJECT(recursing, NULL, "one_round", REST, REST)                                             \
	SUBJECT(coroutines, "-m coroutines -m libc.so.6", "one_round", REST, SHORT)                   \
	SUBJECT(reloading, "-m reloading -m libwlplugin.so", "one_round", REST, SHORT)                \
	SUBJECT(many, NULL, "one_round", REST, REST)                                                  \
	SUBJECT(shadow, NULL, NULL, SHORT, REST)
#define STRIPPED(SUBJECT)                              \
	SUBJECT(many_stripped, NULL, NULL, REST, REST) \
	SUBJECT(throwing_stripped, NULL, NULL, REST, REST)

/* File names have dashes where functions cannot. */
static void program_case(const char *name, const char *kind, const char *modules, const char *interval)
{
	struct subject subject = {.modules = modules, .interval = interval};
	char file[64];

	snprintf(file, sizeof(file), "%s", name);
	for (char *c = file; *c; c++)
		*c = *c == '_' ? '-' : *c;
	subject.name = file;
	safety_case(&subject, kind);
}

#define PLAIN(name, modules, interval, plain, sanitized)          \
	static void test_##name(void)                             \
	{                                                         \
		program_case(#name, "safety", modules, interval); \
	}
#define SANITIZED(name, modules, interval, plain, sanitized)          \
	static void test_##name##_sanitized(void)                     \
	{                                                             \
		program_case(#name, "safety-san", modules, interval); \
	}
BOTH_WAYS(PLAIN)
BOTH_WAYS(SANITIZED)
STRIPPED(PLAIN)
PLAIN(goroutines, NULL, NULL, REST, REST)

/* --- real servers ------------------------------------------------------------------------------------------------- */

static void test_redis_thousand(void)
{
	struct process load = {0};
	struct redis redis;

	if (program_missing("redis_thousand", "redis-server"))
		return;
	if (!redis_start(&redis, ANY_CPU) || !redis_load_start(&load, &redis, ANY_CPU, 100000000, 20))
		goto cleanup;
	attach_and_detach(redis.process.pid, "redis-server", NULL, 100, ROUNDS);
	CHECKF(process_runs(&load), "the load has ended: %s", process_err(&load));
	process_end(&load);
	if (CHECKF(process_runs(&redis.process), "Redis has ended: %s", process_out(&redis.process))) {
		CHECK(redis_answers(&redis));
		text_is_intact(redis.process.pid);
	}
cleanup:
	process_end(&load);
	redis_end(&redis);
}

/* What every transaction moved must be the same in the accounts, the branches and the history. */
static void check_balance(const struct postgres *postgres)
{
	static const char query[] = "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from "
				    "pgbench_history) and (select sum(bbalance) from pgbench_branches) = (select "
				    "sum(delta) from pgbench_history);\n";
	struct path file = temp_path("balance.sql");
	struct process psql;
	char line[600];

	CHECK(!file_write(file.s, query, strlen(query)));
	snprintf(line, sizeof(line), "psql -h 127.0.0.1 -p %d -At -f %s postgres", postgres->port, file.s);
	if (as_postgres(postgres, &psql, 20, line))
		CHECKF(!strcmp(process_out(&psql), "t\n"), "the balance: %s", process_out(&psql));
	process_end(&psql);
}

static void test_postgres_thousand(void)
{
	struct launch launch = {.user = "postgres", .cpu = ANY_CPU};
	struct postgres postgres = {0};
	struct process load = {0};
	char line[200];

	if (!postgres_find(&postgres, "postgres_thousand") || !postgres_start(&postgres, "pg-safety", "-c fsync=off"))
		goto cleanup;
	snprintf(line, sizeof(line), "pgbench -h 127.0.0.1 -p %d -i -q -s 1 postgres", postgres.port);
	if (!as_postgres(&postgres, &load, 60, line))
		goto cleanup;
	process_end(&load);
	launch.cwd = postgres.home.s;
	if (process_launch(&load, &launch, "%s/pgbench -h 127.0.0.1 -p %d -n -c 4 -T 120 postgres", postgres.bin.s,
			   postgres.port))
		goto cleanup;
	sleep_ms(500);
	attach_and_detach(postgres.process.pid, "postgres", NULL, 100, ROUNDS);
	text_is_intact_in_tree(postgres.process.pid);
	/* No transaction has failed, no connection was lost; pgbench takes the signal for the end of its time. */
	CHECKF(process_runs(&load), "the load has ended: %s", process_err(&load));
	process_signal(&load, SIGALRM);
	CHECKF(process_wait(&load, 60) == 0, "pgbench: %s", process_err(&load));
	check_balance(&postgres);
cleanup:
	process_end(&load);
	postgres_end(&postgres);
}

static const struct live_test tests[] = {
	{"safe_probes_are_seen", test_probes_are_seen, SHORT},
#define PLAIN_TEST(name, modules, interval, plain, sanitized) {"safe_" #name, test_##name, plain},
#define SANITIZED_TEST(name, modules, interval, plain, sanitized) \
	{"safe_" #name "_sanitized", test_##name##_sanitized, sanitized},
	BOTH_WAYS(PLAIN_TEST) BOTH_WAYS(SANITIZED_TEST) STRIPPED(PLAIN_TEST)
		PLAIN_TEST(goroutines, NULL, NULL, REST, REST){"safe_redis", test_redis_thousand, SHORT},
	{"safe_postgres", test_postgres_thousand, REST},
};

int suite_safety(void)
{
	return live_suite("safety", tests, sizeof(tests) / sizeof(tests[0]));
}
