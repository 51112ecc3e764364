// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate probes`, the presets on Debian's servers, and symbol lists of every role. */
#include "calls.h"
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "text.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests run a copy of whylate that has no presets beside it. */
static void presets_find(void)
{
	const char *whylate_built = getenv("WHYLATE");
	struct path presets;
	char *slash;

	if (!whylate_built)
		return;
	snprintf(presets.s, sizeof(presets.s), "%s", whylate_built);
	slash = strrchr(presets.s, '/');
	if (slash)
		snprintf(slash, sizeof(presets.s) - (slash - presets.s), "/presets");
	setenv("WHYLATE_PRESETS", presets.s, 1);
}

/* The presets were checked against Debian 12's builds; elsewhere a name may be missing, and is to be said. */
static bool is_debian_12(void)
{
	char *text = file_read("/etc/os-release", NULL);
	bool is = text && strstr(text, "ID=debian") && strstr(text, "VERSION_ID=\"12\"");

	free(text);
	return is;
}

static void check_preset(const char *preset, const char *target)
{
	struct process process;
	int code = whylate(&process, 60, "probes check %s -s preset:%s --json", target, preset), lines = 0, missing;
	json_object *root = json_tokener_parse(process_out(&process));

	if (CHECKF(root && json_at(root, "lines"), "%s: %s", preset, process_err(&process))) {
		lines = json_object_array_length(json_at(root, "lines"));
		missing = (int)json_number(root, "missing");
		CHECKF(code == (missing ? 1 : 0), "%s: exit code %d, %d missing", preset, code, missing);
		if (is_debian_12())
			CHECKF(lines > 0 && !missing, "%s: %d of %d missing", preset, missing, lines);
		else if (missing)
			printf("(%s: %d of %d lines mean nothing here) ", preset, missing, lines);
		CHECKF(missing * 2 < lines, "%s: %d of %d missing", preset, missing, lines);
	}
	json_object_put(root);
	process_end(&process);
}

static void test_presets(void)
{
	static const struct {
		const char *preset, *files; /* a pattern; the last that matches */
	} cases[] = {
		{"postgresql", "/usr/lib/postgresql/*/bin/postgres"},
		{"postgresql-query", "/usr/lib/postgresql/*/bin/postgres"},
		{"mariadb", "/usr/sbin/mariadbd"},
		{"redis", "/usr/bin/redis-server"},
		{"nginx", "/usr/sbin/nginx"},
		{"apache", "/usr/sbin/apache2"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char target[512];
		glob_t found;

		if (glob(cases[i].files, 0, NULL, &found) || !found.gl_pathc) {
			skip(cases[i].preset, "%s is not installed (scripts/setup.sh test installs it)",
			     cases[i].files);
			continue;
		}
		snprintf(target, sizeof(target), "-e %s", found.gl_pathv[found.gl_pathc - 1]);
		check_preset(cases[i].preset, target);
		globfree(&found);
	}
}

/* Its functions are those of the C library, which only a process has. */
static void test_preset_memcached(void)
{
	struct process process = {0};
	char target[64];
	int port = port_free();

	if (program_missing("memcached", "memcached") ||
	    process_start(&process, "memcached -u nobody -l 127.0.0.1 -p %d", port) || !port_wait(&process, port, 10))
		goto cleanup;
	snprintf(target, sizeof(target), "-p %d", (int)process.pid);
	check_preset("memcached", target);
cleanup:
	process_end(&process);
}

/* Nobody in particular may look at a file, and at nothing of root's. */
static void test_unprivileged(void)
{
	struct process process;

	if (program_missing("unprivileged", "redis-server"))
		return;
	CHECK(whylate_as(&process, "nobody", 30, "probes plan -e /usr/bin/redis-server processCommand") == 0);
	CHECKF(strstr(process_out(&process), "processCommand") && strstr(process_out(&process), "entry +0x"), "%s%s",
	       process_out(&process), process_err(&process));
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 30, "probes list -e /usr/bin/redis-server processCom*") == 0);
	CHECKF(strstr(process_out(&process), " processCommandAndResetClient\n"), "%s", process_out(&process));
	process_end(&process);
	CHECK(whylate_as(&process, "nobody", 30, "probes list -p 1 x") == 1);
	said_one_line(&process, "process 1 ", "record it as root");
	process_end(&process);
}

static void expect(int code, const char *text, const char *and_text, const char *args)
{
	struct process process;
	int got = whylate(&process, 30, "probes %s", args);

	CHECKF(got == code, "whylate probes %s: exit code %d: %s", args, got, process_err(&process));
	said_one_line(&process, text, and_text);
	process_end(&process);
}

static void test_bad_input(void)
{
	struct path garbage = temp_path("garbage");
	char args[600];

	CHECK(!file_write(garbage.s, "\177ELF but not really", 19));
	expect(2, "list, plan, check and suggest", NULL, "");
	expect(2, "there is no question 'frob'", NULL, "frob");
	expect(2, "-p PID or -e FILE", NULL, "list");
	expect(2, "one of -p and -e", NULL, "list -p 1 -e /bin/ls");
	expect(2, "-s LIST or a SYMBOL", NULL, "plan -e /bin/ls");
	expect(2, "check wants -s LIST", NULL, "check -e /bin/ls");
	expect(2, "one argument too many", NULL, "check -e /bin/ls -s x y");
	expect(2, "wants -p PID", NULL, "suggest -e /bin/ls");
	expect(1, "/nonexistent", "No such file", "list -e /nonexistent");
	snprintf(args, sizeof(args), "list -e %s", garbage.s);
	expect(1, garbage.s, "no ELF program", args);
	expect(1, "/etc/passwd", "no ELF program", "list -e /etc/passwd");
	expect(1, "there is no preset 'oracle': there are apache", NULL, "check -e /bin/ls -s preset:oracle");
	expect(1, "no process", NULL, "list -p 4194303");
}

/* Under a load of GETs the one function that is called for each command is found, and told from what never fires. */
static void test_suggest(void)
{
	struct redis redis = {0};
	struct process load = {0}, process = {0};
	json_object *root = NULL, *lines;
	bool found = false;

	if (program_missing("suggest", "redis-server") || !redis_start(&redis, ANY_CPU) ||
	    !redis_load_start(&load, &redis, ANY_CPU, 2000000, 10))
		goto cleanup;
	CHECKF(whylate(&process, 60, "probes suggest -p %d --json", (int)redis.process.pid) == 0, "%s",
	       process_err(&process));
	root = json_tokener_parse(process_out(&process));
	lines = json_at(root, "suggestions");
	if (!CHECK(lines != NULL))
		goto cleanup;
	for (size_t i = 0; i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (strcmp(json_text(line, "name"), "processCommand"))
			continue;
		found = true;
		CHECK(!strcmp(json_text(line, "role"), "interval"));
		CHECK(json_object_get_boolean(json_at(line, "as_often_as_requests")));
		CHECKF(fabs(json_number(line, "per_s") / json_number(root, "requests_per_s") - 1) < 0.1, "%f of %f",
		       json_number(line, "per_s"), json_number(root, "requests_per_s"));
	}
	CHECK(found);
	CHECK(json_object_array_length(json_at(root, "never_fired")) > 0);
	process_end(&process);
	/* What is proposed is a list. */
	CHECK(whylate(&process, 60, "probes suggest -p %d -d 300ms", (int)redis.process.pid) == 0);
	{
		struct path list = temp_path("suggested.symbols");
		struct process check;

		CHECK(!file_write(list.s, process_out(&process), strlen(process_out(&process))));
		CHECKF(whylate(&check, 60, "probes check -p %d -s %s", (int)redis.process.pid, list.s) == 0, "%s%s",
		       process_out(&check), process_err(&check));
		process_end(&check);
	}
cleanup:
	json_object_put(root);
	process_end(&process);
	process_end(&load);
	redis_end(&redis);
}

/* A function that exists and is never called is said, and the recording goes on. */
static void test_silent(void)
{
	struct path symbols = temp_path("silent.txt"), dir = temp_path("silent");
	struct workload workload = {0};
	struct process process = {0};

	CHECK(!file_write(symbols.s, "interval handle_request\nfunction main name=never\n", 48));
	if (!workload_start(&workload, "uprobe_target", 5))
		goto cleanup;
	workload_go(&workload);
	CHECK(whylate(&process, 30, "record -p %d -s %s -d 1s -o %s", (int)workload.server_pid, symbols.s, dir.s) == 0);
	CHECKF(strstr(process_err(&process), "not one call of main (line 2): inlined where it is needed"), "%s",
	       process_err(&process));
	CHECK(is_there(dir.s));
cleanup:
	process_end(&process);
	workload_end(&workload);
}

/* Nobody waits for the end of a long recording to be told so. */
static void test_silent_meanwhile(void)
{
	static const char list[] = "interval handle_request\nfunction main name=never\n";
	struct path symbols = temp_path("silent-meanwhile.txt");
	struct recording recording = {0};
	struct workload workload = {0};
	const char *said;

	CHECK(!file_write(symbols.s, list, strlen(list)));
	if (!workload_start(&workload, "uprobe_target", 60) ||
	    !recording_start(&recording, "silent-meanwhile", workload.server_pid, "-s %s -d 60s", symbols.s))
		goto cleanup;
	workload_go(&workload);
	if (!CHECKF(process_says(&recording.process, true, "not one call of main (line 2)", NULL, 20), "%s",
		    process_err(&recording.process)))
		goto cleanup;
	CHECK(process_runs(&recording.process));
	CHECK(recording_stop(&recording) == 0);
	said = strstr(process_err(&recording.process), "not one call of");
	CHECKF(!strstr(said + 1, "not one call of"), "said again: %s", said);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

/* --- full tables -------------------------------------------------------------------------------------------------- */

#define KEYS_MAX 16384 /* of intervals that go by a key (bpf/work.h) */

static bool many_start(struct process *process)
{
	return !process_start(process, "%s", built_path("safety/many").s) &&
	       CHECKF(process_says(process, false, "ready", NULL, 10), "%s", process_err(process));
}

/* It goes on, computes what it is to compute, and its code is as it was. */
static void many_is_unharmed(struct process *process)
{
	CHECK(process_runs(process));
	text_is_intact(process->pid);
	process_signal(process, SIGTERM);
	CHECKF(process_wait(process, 20) == 0 && strstr(process_out(process), "verdict ok"), "%s %s",
	       process_out(process), process_err(process));
}

static bool is_leaf(const struct calls_read *read, uint32_t func)
{
	return func < CALL_FUNCS && !strncmp(read->names[func], "leaf_", 5);
}

/* Several probes at one site: every caller calls its leaf twice, and that is what is seen. */
static void test_overlapping_sites(void)
{
	static const char list[] = "interval caller_0?\nacquire caller_0? object=arg0\nfunction caller_0?\n"
				   "acquire leaf_0? object=arg0\nrelease leaf_0? object=arg0\nfunction leaf_0?\n";
	struct path symbols = temp_path("overlapping.txt"), dir = temp_path("overlapping");
	struct process target = {0}, process = {0};
	struct calls_read read = {0};
	struct session session;
	uint64_t looked_at = 0, wrong = 0;

	CHECK(!file_write(symbols.s, list, strlen(list)));
	if (!many_start(&target))
		goto cleanup;
	CHECKF(whylate(&process, 60, "record -p %d -s %s -d 1s --tail none --budget 100%% -o %s", (int)target.pid,
		       symbols.s, dir.s) == 0,
	       "%s", process_err(&process));
	many_is_unharmed(&target);
	if (!session_read(&session, dir.s, NULL, NULL) || !calls_read_dir(&read, dir.s))
		goto cleanup;
	session_check(&session);
	/* Attached and detached. */
	CHECKF(session.rows[SHARD_TABLE_PROBE] == 2 * 6 * 16, "%lu rows", session.rows[SHARD_TABLE_PROBE]);
	for (size_t i = 0; i < read.interval_cnt; i++) {
		uint64_t leaf_cnt = 0;

		if (read.intervals[i].flags & (WL_INTERVAL_LOSSY | WL_INTERVAL_TORN))
			continue;
		for (size_t j = 0; j < read.call_cnt; j++)
			leaf_cnt += read.calls[j].sid == read.intervals[i].sid && is_leaf(&read, read.calls[j].func);
		looked_at++;
		wrong += leaf_cnt != 2;
	}
	CHECKF(looked_at > 100 && !wrong, "%lu of %lu intervals have other calls in them", wrong, looked_at);
cleanup:
	calls_free(&read);
	process_end(&process);
	process_end(&target);
}

/* Seven roles of 1,300 functions: more than there are places for. One line says so, and nothing is attached. */
static void test_too_many_probes(void)
{
	static const char list[] = "acquire * object=arg0\nrelease * object=arg0\nbegin * key=arg0\nend * key=arg0\n"
				   "work * key=arg0\nenqueue * queue=arg0 task=arg0\ndequeue * queue=arg0 task=arg0\n";
	struct path symbols = temp_path("too-many.txt"), dir = temp_path("too-many");
	struct process target = {0}, process = {0};

	CHECK(!file_write(symbols.s, list, strlen(list)));
	if (!many_start(&target))
		goto cleanup;
	CHECK(whylate(&process, 60, "record -p %d -s %s -d 1s -o %s", (int)target.pid, symbols.s, dir.s) == 1);
	CHECKF(strstr(process_err(&process),
		      "\nwhylate: more than 8192 probes at a time cannot be attached: name fewer "
		      "functions\n") != NULL,
	       "%s", process_err(&process));
	CHECK(!is_there(dir.s));
	many_is_unharmed(&target);
cleanup:
	process_end(&process);
	process_end(&target);
}

/* As many lines as there may be, nearly all of them wrong: within bounds of memory, and with a verdict on each. */
static void test_long_list(void)
{
	/* The address sanitizer maps terabytes. */
	const char *limit = getenv("WHYLATE_SANITIZED") ? "unlimited" : "400000";
	enum { LINES = 100000, LINE_SZ = 32 };
	struct path symbols = temp_path("long.txt"), dir = temp_path("long");
	struct process target = {0}, process = {0};
	char *list = malloc(LINES * LINE_SZ), command[1600];
	const char *const argv[] = {"sh", "-c", command, NULL};
	size_t len = list ? sprintf(list, "interval leaf_00\n") : 0;
	json_object *root = NULL;

	for (int i = 2; len && i <= LINES; i++)
		len += snprintf(list + len, LINE_SZ, "function nosuch_%d\n", i);
	if (!CHECK(len && !file_write(symbols.s, list, len)) || !many_start(&target))
		goto cleanup;
	snprintf(command, sizeof(command), "ulimit -v %s; exec %s probes check -p %d -s %s --json", limit,
		 whylate_path(), (int)target.pid, symbols.s);
	if (process_launch_argv(&process, NULL, argv))
		goto cleanup;
	CHECKF(process_wait(&process, 120) == 1, "%s", process_err(&process));
	root = json_tokener_parse(process_out(&process));
	if (CHECKF(root && json_at(root, "lines"), "%s", process_err(&process))) {
		CHECK(json_object_array_length(json_at(root, "lines")) == LINES);
		CHECK(json_number(root, "missing") == LINES - 1);
	}
	process_end(&process);
	CHECK(whylate(&process, 120, "record -p %d -s %s -d 1s -o %s", (int)target.pid, symbols.s, dir.s) == 1);
	said_one_line(&process, "long.txt:2:", "nosuch_2");
	CHECK(!is_there(dir.s));
	many_is_unharmed(&target);
cleanup:
	free(list);
	json_object_put(root);
	process_end(&process);
	process_end(&target);
}

/* Intervals that nobody ends make room for others: each is one that ended, that was counted, or that is still open. */
static void test_never_ended(void)
{
	static const char list[] = "begin leaf_[0-2]? key=arg0\nend tail_00 key=arg0\n";
	struct path symbols = temp_path("never-ended.txt"), dir = temp_path("never-ended");
	struct process target = {0}, process = {0};
	struct calls_read read = {0};
	struct session session;
	uint64_t begun = 0, known;
	int end;

	CHECK(!file_write(symbols.s, list, strlen(list)));
	if (!many_start(&target))
		goto cleanup;
	CHECKF(whylate(&process, 60, "record -p %d -s %s -d 4s --budget 100%% -o %s", (int)target.pid, symbols.s,
		       dir.s) == 0,
	       "%s", process_err(&process));
	many_is_unharmed(&target);
	if (!session_read(&session, dir.s, NULL, NULL) || !calls_read_dir(&read, dir.s))
		goto cleanup;
	session_check(&session);
	end = calls_func(&read, "tail_00");
	for (int i = 0; i < CALL_FUNCS; i++)
		begun += i == end ? 0 : read.entries[i];
	known = session_number(&session, "intervals_seen") + session_number(&session, "intervals_abandoned");
	printf("(%lu began) ", begun);
	/* What is hit while it is being detached is counted as a hit only. */
	CHECKF(begun >= known && begun <= known + KEYS_MAX + begun / 50, "%lu began, %s ended, %s never did", begun,
	       session_key(&session, "intervals_seen"), session_key(&session, "intervals_abandoned"));
	if (begun > 2 * KEYS_MAX)
		CHECKF(strstr(process_err(&process), " intervals began and never ended: ") != NULL, "%s",
		       process_err(&process));
cleanup:
	calls_free(&read);
	process_end(&process);
	process_end(&target);
}

static const struct live_test tests[] = {
	{"presets", test_presets, SHORT},
	{"preset_memcached", test_preset_memcached, REST},
	{"probes_unprivileged", test_unprivileged, REST},
	{"probes_bad_input", test_bad_input, SHORT},
	{"suggest", test_suggest, SHORT},
	{"silent", test_silent, REST},
	{"silent_meanwhile", test_silent_meanwhile, REST},
	{"long_list", test_long_list, REST},
	{"overlapping_sites", test_overlapping_sites, SHORT},
	{"too_many_probes", test_too_many_probes, REST},
	{"never_ended", test_never_ended, REST},
};

int suite_probes(void)
{
	presets_find();
	return live_suite("probes", tests, sizeof(tests) / sizeof(tests[0]));
}
