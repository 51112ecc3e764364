// SPDX-License-Identifier: GPL-2.0-or-later
/* Bad input: one line on stderr that names it, the right exit code, and nothing half-written. */
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "shard/pack.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pid that nobody has: the highest possible one that is free. */
static int pid_unused(void)
{
	char *text = file_read("/proc/sys/kernel/pid_max", NULL);
	int pid = text ? atoi(text) - 1 : 32767;

	free(text);
	while (pid > 1 && !kill(pid, 0))
		pid--;
	return pid;
}

static void expect(int code, const char *text, const char *and_text, const char *args)
{
	struct process process;
	int got = whylate(&process, 20, "%s", args);

	CHECKF(got == code, "whylate %s: exit code %d: %s", args, got, process_err(&process));
	said_one_line(&process, text, and_text);
	CHECKF(!*process_out(&process), "whylate %s wrote to stdout: %s", args, process_out(&process));
	process_end(&process);
}

static void test_usage(void)
{
	expect(2, "frobnicate", NULL, "frobnicate");
	expect(1, "/nowhere/prog", NULL, "values schema -e /nowhere/prog");
	expect(1, "/nowhere/prog", NULL, "values schema --executable /nowhere/prog");
	expect(1, "/nowhere/prog", NULL, "values schema --exe /nowhere/prog");
	expect(1, "/nowhere/prog", NULL, "probes list --executable /nowhere/prog");
	expect(2, "-p", NULL, "record");
	expect(2, "-p", NULL, "diagnose");
	expect(2, "-p", "wolf", "record -p wolf");
	expect(2, "-p", "12x", "record -p 12x");
	expect(2, "-p", "0", "record -p 0");
	expect(2, "-p", "-5", "record -p -5");
	expect(2, "99999999999", NULL, "record -p 99999999999");
	expect(2, "-d", "0", "record -p 1 -d 0");
	expect(2, "5s", "5ms", "record -p 1 -d 5");
	expect(2, "0.5%", "50%", "record -p 1 --rate 0.5");
	expect(2, "0.05%", "5%", "record -p 1 --budget 0.05");
	expect(2, "-d", "0s", "record -p 1 -d 0s");
	expect(2, "-d", "soon", "record -p 1 -d soon");
	expect(2, "-d", "-3s", "record -p 1 -d -3s");
	expect(2, "-d", "5parsecs", "diagnose -p 1 -d 5parsecs");
	expect(2, "mode", "quantum", "record -p 1 --mode quantum");
	expect(2, "--rate", "101%", "record -p 1 --rate 101%");
	expect(2, "--rate", "0", "record -p 1 --rate 0");
	expect(2, "--duty", "too little", "record -p 1 --rate 10% --duty 5%");
	expect(2, "--tail", "p100", "record -p 1 --tail p100");
	expect(2, "--ring-size", "tiny", "record -p 1 --ring-size tiny");
	expect(2, "--hw-events", "imagined", "record -p 1 --hw-events imagined");
	expect(2, "surplus", NULL, "record -p 1 surplus");
	expect(2, "--frobnicate", NULL, "record -p 1 --frobnicate");
	expect(2, "'-p'", NULL, "record -p");
	expect(2, "--frobnicate", NULL, "report --frobnicate");
	expect(2, "--frobnicate", NULL, "doctor --frobnicate");
	expect(2, NULL, NULL, "report");
	expect(2, "--tail", "p0", "report --tail p0 /tmp");
	expect(2, "--top", "few", "report --top few /tmp");
}

/* Its lines and functions are known, of its variables nothing is: an empty list needs a reason. */
static void test_split_dwarf(void)
{
	static const char *const names[] = {"basket", "split-dwarf/basket"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct process process;
		int code = whylate(&process, 20, "values schema -e %s/%s", workloads_path(), names[i]);

		CHECKF(code == 0, "%s: exit code %d: %s", names[i], code, process_err(&process));
		CHECKF(!strstr(process_err(&process), ".dwo files") == !i, "%s: %s", names[i], process_err(&process));
		CHECKF(!strstr(process_err(&process), "-g alone") == !i, "%s: %s", names[i], process_err(&process));
		CHECKF(!strstr(process_out(&process), "items") == (i == 1), "%s: %s", names[i], process_out(&process));
		process_end(&process);
	}
}

static void test_wrong_process(void)
{
	struct process process;
	char args[64], id[16];

	snprintf(args, sizeof(args), "record -d 1s -p %d", pid_unused());
	snprintf(id, sizeof(id), "%d", pid_unused());
	expect(1, id, "no process", args);
	expect(1, "kernel thread", "2", "record -d 1s -p 2");
	/* The shell becomes the agent, with the shell's pid. */
	snprintf(args, sizeof(args), "exec %.40s record -d 1s -p $$", "\"$0\"");
	const char *const argv[] = {"sh", "-c", args, whylate_path(), NULL};
	if (!process_launch_argv(&process, NULL, argv)) {
		CHECK(process_wait(&process, 20) == 1);
		said_one_line(&process, "itself", NULL);
	}
	process_end(&process);
}

static void test_thread_id(void)
{
	struct process process, target;
	int tid = 0, port = port_free();
	struct path dir = temp_path("of-a-thread");
	char glob_cmd[128], pid_text[16];

	if (program_missing("thread_id", "memcached"))
		return;
	if (process_start(&target, "memcached -u root -l 127.0.0.1 -p %d -t 2", port) || !port_wait(&target, port, 10))
		goto cleanup;
	snprintf(glob_cmd, sizeof(glob_cmd), "ls /proc/%d/task | sort -n | tail -1", target.pid);
	const char *const argv[] = {"sh", "-c", glob_cmd, NULL};
	if (!process_launch_argv(&process, NULL, argv) && !process_wait(&process, 5))
		tid = atoi(process_out(&process));
	process_end(&process);
	if (!CHECK(tid > target.pid))
		goto cleanup;
	snprintf(pid_text, sizeof(pid_text), "-p %d", target.pid);
	CHECK(whylate(&process, 20, "record -d 1s -p %d -o %s", tid, dir.s) == 1);
	said_one_line(&process, "thread", pid_text);
	CHECK(!is_there(dir.s));
	process_end(&process);
cleanup:
	process_end(&target);
}

static void test_no_privilege(void)
{
	struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	struct path dir = temp_path("no-privilege");
	struct process target, process;

	/* Somebody else's process, and one's own. */
	CHECK(whylate_as(&process, "nobody", 20, "record -d 1s -p 1 -o %s", dir.s) == 1);
	said_one_line(&process, "CAP_", NULL);
	process_end(&process);
	if (!process_launch(&target, &launch, "sleep 20")) {
		/* Wait for exec: before it the process is still ours. */
		sleep_ms(100);
		CHECK(whylate_as(&process, "nobody", 20, "record -d 1s -p %d -o %s", target.pid, dir.s) == 1);
		said_one_line(&process, "CAP_BPF", "CAP_PERFMON");
		process_end(&process);
	}
	process_end(&target);
	CHECK(!is_there(dir.s));
}

static void symbols_case(pid_t pid, const char *list, const char *text, const char *and_text)
{
	struct path symbols = temp_path("symbols.txt"), dir = temp_path("bad-symbols");
	struct process process;

	CHECK(!file_write(symbols.s, list, strlen(list)));
	CHECK(whylate(&process, 20, "record -d 1s -p %d -s %s -o %s", (int)pid, symbols.s, dir.s) == 1);
	said_one_line(&process, text, and_text);
	CHECK(!is_there(dir.s));
	process_end(&process);
}

static void test_bad_symbols(void)
{
	struct path interval = temp_path("interval.txt");
	struct workload workload;
	char args[4200];

	if (!workload_start(&workload, "uprobe_target", 20))
		goto cleanup;
	snprintf(args, sizeof(args), "record -d 1s -p %d -s /nonexistent/symbols", (int)workload.server_pid);
	expect(1, "/nonexistent/symbols", "No such file", args);
	symbols_case(workload.server_pid, "interval handle_reqest\n", "handle_reqest", "handle_request");
	symbols_case(workload.server_pid, "# a comment\n\ninterwal handle_request\n", "symbols.txt:3:", "interwal");
	symbols_case(workload.server_pid, "interval handle_request\ninterval nosuchmodule.so:foo\n",
		     "symbols.txt:2:", NULL);
	symbols_case(workload.server_pid, "interval handle_request key=argX\n", "symbols.txt:1:", "argX");
	symbols_case(workload.server_pid, "# nothing but comments\n", "symbols.txt", NULL);
	/* What lasts from one window to the next cannot be seen in windows. */
	CHECK(!file_write(interval.s, "interval handle_request\n", 24));
	snprintf(args, sizeof(args), "record -d 1s -p %d --rate 5%% --duty 5%% -s %s", (int)workload.server_pid,
		 interval.s);
	expect(1, "--duty 5%", "more than to time a function", args);
	snprintf(args, sizeof(args), "record -d 1s -p %d --rate 5%% --duty 5%% --mode trace -s %s",
		 (int)workload.server_pid, interval.s);
	expect(1, "--duty 5%", "more than to time a function", args);
	CHECK(process_runs(&workload.process));
cleanup:
	workload_end(&workload);
}

static void test_bad_output(void)
{
	struct path file = temp_path("a-file"), below = temp_path("a-file/dir"), deep = temp_path("a/b/c");
	struct process process, target;

	CHECK(!file_write(file.s, "x", 1));
	if (process_start(&target, "sleep 20"))
		return;
	sleep_ms(100);
	/* A target that listens nowhere is warned about: that line is not part of this. */
	CHECK(whylate(&process, 20, "record -d 1s -p %d -o %s", target.pid, file.s) == 1);
	CHECKF(strstr(process_err(&process), file.s) != NULL, "%s", process_err(&process));
	process_end(&process);
	CHECK(whylate(&process, 20, "record -d 1s -p %d -o %s", target.pid, below.s) == 1);
	CHECKF(strstr(process_err(&process), below.s) != NULL, "%s", process_err(&process));
	process_end(&process);
	CHECK(whylate(&process, 20, "record -d 1s -p %d -o %s", target.pid, deep.s) == 1 || is_there(deep.s));
	process_end(&process);
	process_end(&target);
	CHECK(is_there(file.s) && !is_there(below.s));
}

static void test_doctor(void)
{
	struct process process;
	json_object *root;

	CHECK(whylate(&process, 20, "doctor") == 0);
	CHECK(strstr(process_out(&process), "CAP_BPF") != NULL);
	process_end(&process);
	CHECK(whylate(&process, 20, "doctor --json") == 0);
	root = json_tokener_parse(process_out(&process));
	CHECK(!strcmp(json_text(root, "schema"), "whylate.doctor/1"));
	json_object_put(root);
	process_end(&process);
	/* It needs no privilege to say that there is none. */
	CHECK(whylate_as(&process, "nobody", 20, "doctor") == 3);
	CHECK(strstr(process_out(&process), "NO") != NULL);
	process_end(&process);
	CHECK(whylate(&process, 20, "--help") == 0);
	CHECK(strstr(process_out(&process), "Usage:") != NULL);
	process_end(&process);
}

/* A command as the README quotes it, with 1 for its PID.  Options are looked at in order, and --help comes last. */
static bool check_quoted(const char *command)
{
	struct process process;
	char args[512], *pid, *end;
	bool good;

	snprintf(args, sizeof(args), "%s --help", command);
	/* A shell takes the quotes away; there is none here. */
	for (char *quote = args; (quote = strchr(quote, '\''));)
		memmove(quote, quote + 1, strlen(quote));
	pid = strstr(args, " -p ");
	if (pid) {
		pid += strlen(" -p ");
		/* PID, a number, or $(pidof SERVER) */
		end = pid + strcspn(pid, *pid == '$' ? ")" : " ");
		memset(pid, ' ', (size_t)(end - pid) + (*end == ')'));
		*pid = '1';
	}
	good = CHECKF(whylate(&process, 20, "%s", args) == 0, "README.md: whylate %s: %s", command,
		      process_err(&process));
	process_end(&process);
	return good;
}

/* At the beginning of a line, after a prompt, or as `code`; they end with that, with the line, or with two blanks. */
static void test_readme(void)
{
	char *text = file_read("README.md", NULL);
	unsigned int quoted_cnt = 0;

	if (!text) {
		skip("readme", "README.md: %s", strerror(errno));
		return;
	}
	for (char *at = text; (at = strstr(at, "whylate ")); at++) {
		bool is_code = at > text && at[-1] == '`', is_prompted = at > text + 2 && !strncmp(at - 3, "\n# ", 3);
		char *command = at + strlen("whylate "), *two = strstr(command, "  ");
		size_t len = strcspn(command, "`\n");
		char quoted[256];

		if (!is_code && !is_prompted && (at == text || at[-1] != '\n'))
			continue;
		if (two && (size_t)(two - command) < len)
			len = (size_t)(two - command);
		snprintf(quoted, sizeof(quoted), "%.*s", (int)len, command);
		quoted_cnt += check_quoted(quoted);
	}
	CHECKF(quoted_cnt >= 10, "only %u commands", quoted_cnt);
	free(text);
}

/* A shard of so many rows that all say the same. */
static bool write_rows(const char *path, const struct shard_table *table, const struct shard_row *row, uint32_t cnt)
{
	struct shard_file_header file = {.major = SHARD_VERSION_MAJOR, .session_id = 7};
	struct shard_block_header header = {.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_ZSTD, .session_id = 7};
	struct shard_stage *stage = shard_stage__new(table, cnt);
	struct shard_packer packer = {0};
	struct shard_buf bytes = {0};
	bool good = stage && !shard_file_header__put(&bytes, &file, "a test");

	for (uint32_t i = 0; good && i < cnt; i++)
		good = !shard_stage__append(stage, row);
	good = good && !shard_packer__pack(&packer, stage, &header, &bytes) && bytes.cnt < 100000 &&
	       !file_write(path, bytes.items, bytes.cnt);
	shard_packer__clear(&packer);
	shard_stage__free(stage);
	vec_free(&bytes);
	return CHECK(good);
}

/* Some kilobytes that stand for 600 MB. */
static bool write_bomb(const char *path)
{
	static const struct shard_column columns[] = {{"text", SHARD_STR, SHARD_UNIT_NONE, false}};
	static const struct shard_table table = {"bomb", columns, 1};
	static char text[20001];
	struct shard_row row = {.values = {{.str = text}}};

	memset(text, 'x', sizeof(text) - 1);
	return write_rows(path, &table, &row, 30000);
}

/* 600 MB of csv are not in a few kilobytes that were measured. */
static void test_export_limit(void)
{
	struct path shard = temp_path("bomb-0000000000000007-000000.wls"), out = temp_path("bomb.csv");
	struct process process;
	char args[1200];

	if (!write_bomb(shard.s))
		return;
	snprintf(args, sizeof(args), "export %s --format csv -o %s", shard.s, out.s);
	expect(1, "larger than these shards", "--max-output", args);
	CHECK(!is_there(out.s));
	snprintf(args, sizeof(args), "export %s --format jsonl -o %s", shard.s, out.s);
	expect(1, "larger than these shards", "--max-output", args);
	CHECK(!is_there(out.s));
	CHECK(whylate(&process, 60, "export %s --format csv --max-output 1G -o %s", shard.s, out.s) == 0);
	process_end(&process);
	CHECK(!unlink(out.s));
}

/* What would act on a terminal is shown, not sent, where standard output is one; a file gets the bytes. */
static void test_terminal(void)
{
	static const struct shard_column columns[] = {{"text", SHARD_STR, SHARD_UNIT_NONE, false}};
	static const struct shard_table table = {"names", columns, 1};
	static const char name[] = "a\033[2Jb\xc2\x9b"
				   "c\xff";
	struct path shard = temp_path("names-0000000000000007-000000.wls"), out = temp_path("names.csv");
	struct shard_row row = {.values = {{.str = name}}};
	char command[1300], *text;
	struct process process;

	if (program_missing("terminal", "script") || !write_rows(shard.s, &table, &row, 1))
		return;
	for (int i = 0; i < 2; i++) {
		const char *format = i ? "jsonl" : "csv";

		snprintf(command, sizeof(command), "%s export %s --format %s", whylate_path(), shard.s, format);
		const char *const argv[] = {"script", "-qec", command, "/dev/null", NULL};

		if (process_launch_argv(&process, NULL, argv))
			continue;
		CHECK(process_wait(&process, 20) == 0);
		CHECKF(strstr(process_out(&process), "a\\") && !strchr(process_out(&process), '\033') &&
			       !strstr(process_out(&process), "\xc2\x9b") && !strchr(process_out(&process), '\xff'),
		       "%s", process_out(&process));
		process_end(&process);
	}
	CHECK(whylate(&process, 20, "export %s --format csv -o %s", shard.s, out.s) == 0);
	process_end(&process);
	text = file_read(out.s, NULL);
	CHECKF(text && strstr(text, "a\033[2Jb\xc2\x9b"), "%s", text);
	free(text);
	/* And on stderr, whatever it is. */
	CHECK(whylate(&process, 20, "report /no\033[2J\xc2\x9b\xff") == 1);
	said_one_line(&process, "/no\\x1b[2J\\", "\\xff");
	process_end(&process);
}

/* The directory that a diagnosis says it records into. Others may run beside it. */
static bool scratch_of(struct process *process, char path[64])
{
	const char *said;

	if (!process_says(process, true, "recording ", NULL, 10))
		return false;
	said = strstr(process_err(process), " into /tmp/whylate-diagnose-");
	return said && sscanf(said, " into %63[^ \n]", path) == 1;
}

/* A diagnose that was killed leaves its directory to the next one. */
static void test_scratch(void)
{
	struct process process = {0};
	struct redis redis = {0};
	char path[64] = "", shards[80];
	struct stat st;
	glob_t found;

	if (!redis_start(&redis, ANY_CPU))
		goto cleanup;
	process_start(&process, "%s diagnose -p %d -d 30s --rounds 0", whylate_path(), redis.process.pid);
	CHECKF(scratch_of(&process, path), "%s", process_err(&process));
	snprintf(shards, sizeof(shards), "%s/*.wls", path);
	for (int i = 0; i < 100 && glob(shards, 0, NULL, &found); i++)
		sleep_ms(50);
	CHECKF(*path && !glob(shards, 0, NULL, &found) && !stat(found.gl_pathv[0], &st) && (st.st_mode & 07777) == 0640,
	       "'%s'", path);
	kill(process.pid, SIGKILL);
	process_wait(&process, 5);
	process_end(&process);
	CHECK(is_there(path));
	whylate(&process, 30, "diagnose -p %d -d 1s --rounds 0", redis.process.pid);
	CHECKF(!is_there(path), "%s: %s", path, process_err(&process));
	/* What the report says is not said again beside it. */
	CHECKF(strstr(process_err(&process), "cost: ") && !strstr(process_err(&process), "emitted") &&
		       strstr(process_out(&process), "emitted"),
	       "%s%s", process_err(&process), process_out(&process));
cleanup:
	process_end(&process);
	redis_end(&redis);
}

/* A secret in the target's arguments is not stored, and with --no-cmdline no argument is. */
static void test_arguments(void)
{
	static struct session session;
	struct process server, process;
	const char *line;

	if (process_start(&server, "redis-server --port 0 --unixsocket %s --requirepass geheim-123",
			  temp_path("secret.sock").s) ||
	    !unix_wait(&server, temp_path("secret.sock").s, 10))
		return;
	for (int with = 0; with < 2; with++) {
		struct path dir = temp_path("arguments-%d", with);

		CHECK(whylate(&process, 30, "record -p %d -d 1s -o %s %s", server.pid, dir.s,
			      with ? "" : "--no-cmdline") == 0);
		process_end(&process);
		if (!session_read(&session, dir.s, NULL, NULL))
			break;
		line = session_key(&session, "cmdline");
		if (with)
			CHECKF(line && strstr(line, "redis-server") && !strstr(line, "geheim"), "%s", line);
		else
			CHECKF(!line || !*line, "%s", line);
	}
	process_end(&server);
}

static const struct live_test tests[] = {
	{"export_limit", test_export_limit, REST},
	{"terminal", test_terminal, SHORT},
	{"scratch", test_scratch, REST},
	{"arguments", test_arguments, SHORT},
	{"usage", test_usage, SHORT},
	{"readme", test_readme, SHORT},
	{"wrong_process", test_wrong_process, SHORT},
	{"thread_id", test_thread_id, SHORT},
	{"split_dwarf", test_split_dwarf, SHORT},
	{"no_privilege", test_no_privilege, SHORT},
	{"bad_symbols", test_bad_symbols, SHORT},
	{"bad_output", test_bad_output, SHORT},
	{"doctor", test_doctor, SHORT},
};

int suite_cli(void)
{
	return live_suite("cli", tests, sizeof(tests) / sizeof(tests[0]));
}
