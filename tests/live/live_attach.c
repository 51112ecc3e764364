// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A killed agent leaves nothing behind, whatever it was at: thousands of probes are being attached to a busy server,
 * sit there, are being taken out.  Neither does whylate-attach, which holds them.  Two recordings do not disturb each
 * other, and only the process that is asked for has probes.
 */
#include "calls.h"
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "text.h"

#include "target/target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KILLS          6
#define FUNCTIONS_MANY 1000
#define REDIS_LIST     "interval processCommand\nfunction *\n"

static struct path symbols_file(const char *name, const char *list)
{
	struct path path = temp_path("attach-%s.txt", name);

	CHECK(!file_write(path.s, list, strlen(list)));
	return path;
}

/* The agent's child of that name; 0: it has none. */
static pid_t child_of(pid_t agent_pid, const char *comm)
{
	target_processes processes = {0};
	pid_t pid = 0;

	if (!target_tree(agent_pid, &processes))
		for (size_t i = 0; i < processes.cnt; i++)
			if (!strcmp(processes.items[i].comm, comm))
				pid = processes.items[i].pid;
	free(processes.items);
	return pid;
}

static pid_t attacher_of(pid_t agent_pid)
{
	return child_of(agent_pid, "whylate-attach");
}

static pid_t await_attacher(struct process *agent)
{
	uint64_t deadline_ts = now_ns() + 10 * NS_PER_SEC;
	pid_t pid = 0;

	while (!pid && process_runs(agent) && now_ns() < deadline_ts)
		pid = attacher_of(agent->pid);
	CHECKF(pid > 0, "%s", process_err(agent));
	return pid;
}

/* A zombie has no program any more. */
static bool lives(pid_t pid)
{
	struct path link;
	char program[256];

	snprintf(link.s, sizeof(link.s), "/proc/%d/exe", (int)pid);
	return readlink(link.s, program, sizeof(program)) > 0;
}

static bool ends(pid_t pid)
{
	uint64_t deadline_ts = now_ns() + 10 * NS_PER_SEC;

	while (lives(pid) && now_ns() < deadline_ts)
		sleep_ms(10);
	return CHECKF(!lives(pid), "the agent's child %d is still there", (int)pid);
}

/* Spins until the first probe sits: false when the agent ended before, or says that all of them do. */
static bool await_first_probe(struct process *agent, pid_t target_pid)
{
	while (process_runs(agent) && !strstr(process_err(agent), "whylate: recording "))
		if (text_is_changed(target_pid))
			return true;
	return false;
}

struct busy_redis {
	struct redis redis;
	struct process load;
};

static bool busy_redis_start(struct busy_redis *busy, const char *test)
{
	memset(busy, 0, sizeof(*busy));
	return !program_missing(test, "redis-server") && redis_start(&busy->redis, ANY_CPU) &&
	       redis_load_start(&busy->load, &busy->redis, ANY_CPU, 100000000, 20);
}

static void busy_redis_end(struct busy_redis *busy)
{
	process_end(&busy->load);
	redis_end(&busy->redis);
}

/* It runs on, with its own code and right answers. */
static bool redis_is_unharmed(struct busy_redis *busy)
{
	return CHECKF(process_runs(&busy->redis.process), "Redis has ended: %s", process_out(&busy->redis.process)) &&
	       CHECKF(process_runs(&busy->load), "the load has ended: %s", process_err(&busy->load)) &&
	       CHECK(redis_answers(&busy->redis)) && text_is_intact(busy->redis.process.pid);
}

static bool agent_start(struct process *agent, const struct busy_redis *busy, const char *symbols, const char *name)
{
	return !process_start(agent, "%s record -p %d -s %s --budget 100%% --rate 1%% -o %s", whylate_path(),
			      (int)busy->redis.process.pid, symbols, temp_unused(name).s);
}

static bool kill_and_look(struct process *agent, struct busy_redis *busy, pid_t attacher_pid)
{
	process_signal(agent, SIGKILL);
	process_wait(agent, 10);
	return (!attacher_pid || ends(attacher_pid)) && redis_is_unharmed(busy);
}

/* Sooner and sooner after the attaching process was started, down to at once. */
static void test_killed_before(void)
{
	struct path symbols = symbols_file("before", REDIS_LIST);
	struct process agent = {0};
	struct busy_redis busy;
	bool good = busy_redis_start(&busy, "attach_killed_before");

	for (unsigned int i = 0; good && i < KILLS; i++) {
		pid_t attacher_pid;

		good = agent_start(&agent, &busy, symbols.s, "before");
		attacher_pid = good ? await_attacher(&agent) : 0;
		sleep_ms(KILLS - 1 - i);
		good = good && attacher_pid && kill_and_look(&agent, &busy, attacher_pid);
		process_end(&agent);
	}
	busy_redis_end(&busy);
}

static void test_killed_while_attaching(void)
{
	struct path symbols = symbols_file("while", REDIS_LIST);
	struct process agent = {0};
	unsigned int hit_cnt = 0;
	struct busy_redis busy;
	bool good = busy_redis_start(&busy, "attach_killed_while_attaching");

	for (unsigned int i = 0; good && i < KILLS; i++) {
		good = agent_start(&agent, &busy, symbols.s, "while");
		if (good && await_first_probe(&agent, busy.redis.process.pid)) {
			pid_t attacher_pid = await_attacher(&agent);

			good = attacher_pid && kill_and_look(&agent, &busy, attacher_pid);
			hit_cnt += !strstr(process_err(&agent), "whylate: recording ");
		}
		process_end(&agent);
	}
	CHECKF(!good || hit_cnt >= KILLS / 2, "only %u agents were killed while they attached", hit_cnt);
	busy_redis_end(&busy);
}

static void test_killed_attached(void)
{
	struct path symbols = symbols_file("attached", REDIS_LIST);
	struct recording recording = {0};
	struct session session;
	struct busy_redis busy;

	if (!busy_redis_start(&busy, "attach_killed_attached") ||
	    !recording_start(&recording, "attached", busy.redis.process.pid,
			     "-s %s --budget 100%% --rate 1%% --duty 100%%", symbols.s))
		goto cleanup;
	CHECK(text_is_changed(busy.redis.process.pid));
	sleep_ms(1500);
	kill_and_look(&recording.process, &busy, attacher_of(recording.process.pid));
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		CHECKF(session.rows[SHARD_TABLE_SYMBOL] >= FUNCTIONS_MANY, "%lu functions",
		       session.rows[SHARD_TABLE_SYMBOL]);
		CHECK(session.row_cnt > 0);
	}
cleanup:
	recording_end(&recording);
	busy_redis_end(&busy);
}

static void test_killed_detaching(void)
{
	struct path symbols = symbols_file("detaching", REDIS_LIST);
	struct busy_redis busy;
	bool good = busy_redis_start(&busy, "attach_killed_detaching");

	for (unsigned int i = 0; good && i < KILLS; i++) {
		struct recording recording = {0};
		pid_t attacher_pid;

		good = recording_start(&recording, "detaching", busy.redis.process.pid,
				       "-s %s --budget 100%% --rate 1%%", symbols.s);
		attacher_pid = good ? attacher_of(recording.process.pid) : 0;
		if (good) {
			process_signal(&recording.process, SIGINT);
			sleep_ms(3 * i);
			good = CHECK(attacher_pid > 0) && kill_and_look(&recording.process, &busy, attacher_pid);
		}
		recording_end(&recording);
	}
	busy_redis_end(&busy);
}

/* Functions are probed in rounds: the agent is killed when the first of them are. */
static void test_killed_in_rounds(void)
{
	struct process agent = {0};
	struct busy_redis busy;

	if (!busy_redis_start(&busy, "attach_killed_in_rounds") ||
	    process_start(&agent, "%s diagnose -p %d -d 9s --rounds 3 -o %s", whylate_path(),
			  (int)busy.redis.process.pid, temp_path("in-rounds").s))
		goto cleanup;
	while (process_runs(&agent) && !text_is_changed(busy.redis.process.pid))
		sleep_ms(1);
	if (CHECKF(process_runs(&agent), "nothing was probed: %s", process_err(&agent)))
		kill_and_look(&agent, &busy, attacher_of(agent.pid));
cleanup:
	process_end(&agent);
	busy_redis_end(&busy);
}

/* What is recorded until then is there; the agent says what has happened, and ends. */
static void test_attacher_killed(void)
{
	/* Functions that this server has no use for: the budget leaves them alone. */
	struct path symbols = symbols_file("holder", "function cluster*\n");
	struct recording recording = {0};
	struct session session;
	struct busy_redis busy;
	pid_t attacher_pid;
	json_object *report;

	if (!busy_redis_start(&busy, "attach_attacher_killed") ||
	    !recording_start(&recording, "holder", busy.redis.process.pid,
			     "-s %s --budget 100%% --rate 1%% --duty 100%%", symbols.s))
		goto cleanup;
	sleep_ms(300);
	attacher_pid = attacher_of(recording.process.pid);
	if (!CHECK(attacher_pid > 0) || !CHECK(!kill(attacher_pid, SIGKILL)))
		goto cleanup;
	CHECK(process_wait(&recording.process, 10) == 1);
	CHECKF(strstr(process_err(&recording.process), "whylate-attach was killed") != NULL, "%s",
	       process_err(&recording.process));
	redis_is_unharmed(&busy);
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		session_check(&session);
		CHECK(session.row_cnt > 0);
		/* Attached and detached. */
		CHECKF(session.rows[SHARD_TABLE_PROBE] == 2 * session.rows[SHARD_TABLE_SYMBOL] &&
			       session.rows[SHARD_TABLE_SYMBOL] >= 50,
		       "%lu events of %lu functions", session.rows[SHARD_TABLE_PROBE],
		       session.rows[SHARD_TABLE_SYMBOL]);
	}
	report = report_read(recording.dir.s, NULL);
	CHECKF(strstr(json_object_to_json_string(json_at(report, "notes")), "was killed") != NULL, "no note");
	json_object_put(report);
cleanup:
	recording_end(&recording);
	busy_redis_end(&busy);
}

/* One that is called far too often to be probed, and one that is not. */
static const char often_list[] = "interval handle_often\nfunction often_step\nfunction often_rare\n";

/* Killed between the two: what the budget lets go is detached, what is to stay is not attached again. */
static void test_attacher_killed_between(void)
{
	struct path symbols = symbols_file("between", often_list);
	struct recording recording = {0};
	struct workload workload = {0};
	struct session session;
	pid_t attacher_pid;

	/* Nothing is counted beforehand, and nothing is closed or attached from then on. */
	if (!workload_start(&workload, "often", 6) || !CHECK(!kill(workload.server_pid, SIGSTOP)) ||
	    !recording_start(&recording, "between", workload.server_pid, "-s %s --tail none --budget 30%%", symbols.s))
		goto cleanup;
	attacher_pid = attacher_of(recording.process.pid);
	if (!CHECK(attacher_pid > 0) || !CHECK(!kill(attacher_pid, SIGSTOP)) ||
	    !CHECK(!kill(workload.server_pid, SIGCONT)))
		goto cleanup;
	workload_go(&workload);
	CHECKF(process_says(&recording.process, true, "unmeasured from now on: often_step", NULL, 20), "%s",
	       process_err(&recording.process));
	CHECK(!kill(attacher_pid, SIGKILL));
	CHECK(process_wait(&recording.process, 10) == 1);
	CHECKF(strstr(process_err(&recording.process), "whylate-attach was killed") != NULL, "%s",
	       process_err(&recording.process));
	/* Attached and detached, each once. */
	if (session_read(&session, recording.dir.s, NULL, NULL)) {
		session_check(&session);
		CHECKF(session.rows[SHARD_TABLE_PROBE] == 6 && session.rows[SHARD_TABLE_SYMBOL] == 3,
		       "%lu events of %lu functions", session.rows[SHARD_TABLE_PROBE],
		       session.rows[SHARD_TABLE_SYMBOL]);
	}
	text_is_intact(workload.server_pid);
	workload_finish(&workload, 30);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* It is an idle task, and other programs want every CPU: it takes its hooks away all the same. */
static void test_killed_on_busy_cpus(void)
{
	struct recording recording = {0};
	struct process burners = {0};
	struct redis redis = {0};
	pid_t guard_pid;

	if (!redis_start(&redis, ANY_CPU) ||
	    !recording_start(&recording, "busy-cpus", redis.process.pid, "--budget 100%%") ||
	    process_start(&burners, "sh -c 'for i in $(seq $(($(nproc) * 3))); do timeout --foreground 60 sh -c "
				    "\"while :; do :; done\" & done; wait'"))
		goto cleanup;
	sleep_ms(1000);
	guard_pid = child_of(recording.process.pid, "whylate-guard");
	process_signal(&recording.process, SIGKILL);
	CHECK(process_wait(&recording.process, 10) == 128 + SIGKILL);
	if (CHECK(guard_pid > 0))
		ends(guard_pid);
cleanup:
	process_end(&burners);
	recording_end(&recording);
	redis_end(&redis);
}

/* Signals of the terminal are the agent's; the attaching process ends when that does. */
static void test_signals_are_the_agents(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct path symbols = symbols_file("signals", REDIS_LIST);
	struct recording recording = {0};
	struct busy_redis busy;
	pid_t attacher_pid;

	if (!busy_redis_start(&busy, "attach_signals") ||
	    !recording_start(&recording, "signals", busy.redis.process.pid, "-s %s --budget 100%% --rate 1%%",
			     symbols.s))
		goto cleanup;
	attacher_pid = attacher_of(recording.process.pid);
	if (!CHECK(attacher_pid > 0))
		goto cleanup;
	CHECK(getsid(attacher_pid) == attacher_pid);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		CHECK(!kill(attacher_pid, signals[i]));
	sleep_ms(300);
	CHECK(lives(attacher_pid));
	CHECK(text_is_changed(busy.redis.process.pid));
	CHECK(recording_stop(&recording) == 0);
	ends(attacher_pid);
	redis_is_unharmed(&busy);
cleanup:
	recording_end(&recording);
	busy_redis_end(&busy);
}

/* One of two recordings of the same functions of the same process is killed: the other one misses no call. */
static void test_two_recordings(void)
{
	static const char list[] = "interval handle_call\nfunction call_leaf\nfunction call_mid\n";
	struct path symbols = symbols_file("two", list);
	struct recording one = {0}, two = {0};
	struct workload workload = {0};
	struct calls_read read = {0};
	uint64_t wrong = 0;

	if (!workload_start(&workload, "calls", 3) ||
	    !recording_start(&one, "two-1", workload.server_pid, "-s %s --tail none --budget 100%%", symbols.s) ||
	    !recording_start(&two, "two-2", workload.server_pid, "-s %s --tail none --budget 100%%", symbols.s))
		goto cleanup;
	workload_go(&workload);
	sleep_ms(1000);
	process_signal(&two.process, SIGKILL);
	if (!workload_finish(&workload, 30) || !CHECK(process_wait(&one.process, 10) == 0) ||
	    !calls_read_dir(&read, one.dir.s))
		goto cleanup;
	for (size_t i = 0; i < read.interval_cnt; i++)
		wrong += calls_in(&read, read.intervals[i].sid, calls_func(&read, "call_leaf"), 0) != 9 ||
			 calls_in(&read, read.intervals[i].sid, calls_func(&read, "call_mid"), 0) != 2;
	CHECKF(!wrong && read.interval_cnt > 100, "%lu of %zu intervals miss calls", wrong, read.interval_cnt);
cleanup:
	calls_free(&read);
	recording_end(&one);
	recording_end(&two);
	workload_end(&workload);
}

/* Another process that runs the same program has no probe in it. */
static void test_stranger(void)
{
	struct path program = built_path("safety/many"), symbols = symbols_file("stranger", "function *\n");
	struct process target = {0}, stranger = {0}, agent = {0};

	if (process_start(&target, "%s", program.s) || process_start(&stranger, "%s", program.s) ||
	    !CHECK(process_says(&target, false, "ready", NULL, 10)) ||
	    !CHECK(process_says(&stranger, false, "ready", NULL, 10)) ||
	    process_start(&agent, "%s record -p %d -s %s --budget 100%% -o %s", whylate_path(), (int)target.pid,
			  symbols.s, temp_path("stranger").s) ||
	    !CHECKF(process_says(&agent, true, "whylate: recording ", NULL, 20), "%s", process_err(&agent)))
		goto cleanup;
	CHECK(text_is_changed(target.pid));
	CHECK(!text_is_changed(stranger.pid));
	process_signal(&agent, SIGKILL);
	process_wait(&agent, 10);
	text_is_intact(target.pid);
	text_is_intact(stranger.pid);
cleanup:
	process_end(&agent);
	process_end(&target);
	process_end(&stranger);
}

/* The functions of "factors" that are there and have no figures. */
static bool is_unmeasured(json_object *report, const char *function)
{
	json_object *factors = json_at(report, "factors");

	for (size_t i = 0; i < json_object_array_length(factors); i++) {
		char path[64];

		snprintf(path, sizeof(path), "factors.%zu.functions.0", i);
		if (strcmp(json_text(report, path), function))
			continue;
		snprintf(path, sizeof(path), "factors.%zu.contribution", i);
		return !json_at(report, path);
	}
	return false;
}

/*
 * What turns out to be called millions of times a second once the recording goes on is let go at once; the requests go
 * on, and it is null, not 0.
 */
static void test_budget(void)
{
	struct path symbols = symbols_file("budget", often_list);
	struct recording recording = {0};
	struct workload workload = {0};
	struct calls_read read = {0};
	struct session session;
	uint64_t step_ends_ts = 0, later = 0;
	json_object *report;

	/* There is nothing to count beforehand. */
	if (!workload_start(&workload, "often", 4) || !CHECK(!kill(workload.server_pid, SIGSTOP)) ||
	    !recording_start(&recording, "budget", workload.server_pid, "-s %s --tail none --budget 30%%", symbols.s) ||
	    !CHECK(!kill(workload.server_pid, SIGCONT)))
		goto cleanup;
	workload_go(&workload);
	if (!workload_finish(&workload, 30) || !CHECK(process_wait(&recording.process, 10) == 0))
		goto cleanup;
	CHECKF(strstr(process_err(&recording.process), "unmeasured from now on: often_step") != NULL, "%s",
	       process_err(&recording.process));
	if (session_read(&session, recording.dir.s, NULL, NULL))
		session_check(&session);
	if (!calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	for (size_t i = 0; i < read.call_cnt; i++)
		if ((int)read.calls[i].func == calls_func(&read, "often_step") && read.calls[i].end_ts > step_ends_ts)
			step_ends_ts = read.calls[i].end_ts;
	for (size_t i = 0; i < read.interval_cnt; i++)
		later += read.intervals[i].begin_ts > step_ends_ts;
	CHECKF(later > 100, "%lu of %zu intervals began after the last call of often_step", later, read.interval_cnt);
	report = report_read(recording.dir.s, NULL);
	CHECK(is_unmeasured(report, "often_step"));
	json_object_put(report);
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

/* Calls per ns of CPU time in a line "name calls ns" of the prober's; 0: none. */
static double counted_rate(const char *lines, const char *function)
{
	char name[64];
	uint64_t calls, ns;

	for (const char *line = lines; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (sscanf(line, "%63s %lu %lu", name, &calls, &ns) == 3 && !strcmp(name, function) && ns)
			return (double)calls / (double)ns;
	return 0;
}

/* Without a probe: three times as often as each request, and more often than registers can keep up with. */
static void test_counted(void)
{
	struct workload workload = {0};
	struct process prober = {0};
	double handle, rare;

	if (!workload_start(&workload, "often", 4) ||
	    process_start(&prober, "%s -p %d -g @(handle_often|often_*) -k -t 4", built_path("live/prober").s,
			  workload.server_pid))
		goto cleanup;
	process_wait(&prober, 30);
	if (prober.code && registers_missing(process_err(&prober))) {
		skip("attach_counted", "no breakpoint registers: %s", process_err(&prober));
		goto cleanup;
	}
	CHECKF(prober.code == 0, "%s", process_err(&prober));
	CHECK(!text_is_changed(workload.server_pid));
	handle = counted_rate(process_out(&prober), "handle_often");
	rare = counted_rate(process_out(&prober), "often_rare");
	/* A register counts sixteen calls at most, and what comes in bursts of three is counted to three. */
	CHECKF(rare > 1.5 * handle && rare < 6 * handle && handle > 0, "%s", process_out(&prober));
	CHECKF(counted_rate(process_out(&prober), "often_step") > rare, "%s", process_out(&prober));
	workload_go(&workload);
	workload_finish(&workload, 30);
cleanup:
	process_end(&prober);
	workload_end(&workload);
}

/* What is too dear already before the recording is never probed; the others are in every request. */
static void test_budget_counts(void)
{
	struct path symbols = symbols_file("counts", often_list);
	struct recording recording = {0};
	struct workload workload = {0};
	struct calls_read read = {0};
	struct session session;
	uint64_t wrong = 0;
	json_object *report;

	/* Its warm-up is a load already. */
	if (!workload_start(&workload, "often", 4) ||
	    !recording_start(&recording, "counts", workload.server_pid, "-s %s --tail none --budget 30%%", symbols.s))
		goto cleanup;
	if (registers_missing(process_err(&recording.process))) {
		skip("attach_budget_counts", "no breakpoint registers: %s", process_err(&recording.process));
		goto cleanup;
	}
	workload_go(&workload);
	if (!workload_finish(&workload, 30) || !CHECK(process_wait(&recording.process, 10) == 0))
		goto cleanup;
	CHECKF(strstr(process_err(&recording.process), "not probed and unmeasured: often_step (") &&
		       !strstr(process_err(&recording.process), "from now on") &&
		       !strstr(process_err(&recording.process), "not one call"),
	       "%s", process_err(&recording.process));
	if (session_read(&session, recording.dir.s, NULL, NULL))
		session_check(&session);
	if (!calls_read_dir(&read, recording.dir.s))
		goto cleanup;
	for (size_t i = 0; i < read.interval_cnt; i++)
		wrong += calls_in(&read, read.intervals[i].sid, calls_func(&read, "often_rare"), 0) != 3 ||
			 calls_in(&read, read.intervals[i].sid, calls_func(&read, "often_step"), 0);
	CHECKF(!wrong && read.interval_cnt > 100, "%lu of %zu intervals have other calls", wrong, read.interval_cnt);
	report = report_read(recording.dir.s, NULL);
	CHECK(is_unmeasured(report, "often_step"));
	json_object_put(report);
cleanup:
	calls_free(&read);
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"attach_killed_before", test_killed_before, REST},
	{"attach_killed_while_attaching", test_killed_while_attaching, REST},
	{"attach_killed_attached", test_killed_attached, SHORT},
	{"attach_killed_detaching", test_killed_detaching, REST},
	{"attach_killed_in_rounds", test_killed_in_rounds, REST},
	{"attach_killed_on_busy_cpus", test_killed_on_busy_cpus, SHORT},
	{"attach_attacher_killed", test_attacher_killed, SHORT},
	{"attach_attacher_killed_between", test_attacher_killed_between, REST},
	{"attach_signals", test_signals_are_the_agents, SHORT},
	{"attach_two_recordings", test_two_recordings, SHORT},
	{"attach_stranger", test_stranger, SHORT},
	{"attach_budget", test_budget, SHORT},
	{"attach_counted", test_counted, REST},
	{"attach_budget_counts", test_budget_counts, REST},
};

int suite_attach(void)
{
	return live_suite("attach", tests, sizeof(tests) / sizeof(tests[0]));
}
