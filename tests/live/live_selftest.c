// SPDX-License-Identifier: GPL-2.0-or-later
/* The program's test of itself, what it says where it cannot run, and how little privilege recording takes. */
#include "harness.h"
#include "servers.h"
#include "session.h"
#include "target/elf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each must be there; on a machine that can do anything at all, these cannot be skipped. */
static const char *const expected[] = {
	"probe.calls",     "probe.registers",
	"fault.minor",     "switch.voluntary",
	"blocked.futex",   "blocked.sleep",
	"blocked.pipe",    "blocked.poll",
	"blocked.net",     "probe.child",
	"task.fork",       "task.exec",
	"task.exit",       "loss",
	"probe.newcomers", "probe.stranger",
	"socket.tcp",      "socket.unix",
	"socket.udp",      "socket.child",
	"socket.tcp.late", "socket.abandoned",
	"socket.tcp.file", "socket.unix.file",
	"trace.sendfile",  "stack.wait",
	"window.first",    "window.none",
	"window.next",
};

static bool has_check(json_object *checks, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(checks); i++)
		if (!strcmp(json_text(json_object_array_get_idx(checks, i), "name"), name))
			return true;
	return false;
}

static void check_line(json_object *line)
{
	static const char *const keys[] = {"name", "feature", "hook", "tier",    "witness",
					   "seen", "unit",    "ok",   "skipped", "why"};
	const char *name = json_text(line, "name");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECKF(json_object_object_get_ex(line, keys[i], NULL), "%s has no key %s", name, keys[i]);
	if (json_object_get_boolean(json_at(line, "skipped"))) {
		CHECKF(!json_at(line, "ok") && *json_text(line, "why"), "%s is skipped without a reason", name);
		return;
	}
	CHECKF(json_object_get_boolean(json_at(line, "ok")), "%s: %s", name, json_text(line, "why"));
	CHECKF(json_number(line, "tier") >= 1 && *json_text(line, "hook"), "%s: by which hook?", name);
	CHECKF((json_number(line, "seen") > 0) != !strcmp(name, "window.none"), "%s: %.0f seen", name,
	       json_number(line, "seen"));
}

static void check_result(struct process *process)
{
	json_object *root = json_tokener_parse(process_out(process)), *checks = json_at(root, "checks");

	CHECK(!strcmp(json_text(root, "schema"), "whylate.selftest/1"));
	CHECK(json_object_get_boolean(json_at(root, "passed")));
	CHECK(*json_text(root, "kernel") && *json_text(root, "machine"));
	if (!CHECKF(checks && json_object_is_type(checks, json_type_array), "%s", process_out(process)))
		goto cleanup;
	for (size_t i = 0; i < json_object_array_length(checks); i++)
		check_line(json_object_array_get_idx(checks, i));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CHECKF(has_check(checks, expected[i]), "there is no check %s", expected[i]);
cleanup:
	json_object_put(root);
}

static void test_self_test(void)
{
	struct process process;

	CHECKF(whylate(&process, 120, "doctor --self-test --json") == 0, "%s", process_err(&process));
	check_result(&process);
	process_end(&process);
}

/* On a terminal it tells which part it is at, and leaves the line empty before the result. */
static void test_progress(void)
{
	char command[700];
	const char *const argv[] = {"script", "-qec", command, "/dev/null", NULL};
	const struct launch launch = {.cpu = ANY_CPU};
	struct process process = {0};
	const char *first, *last;

	snprintf(command, sizeof(command), "%s doctor --self-test", whylate_path());
	if (process_launch_argv(&process, &launch, argv))
		return;
	CHECKF(process_wait(&process, 120) == 0, "%s", process_out(&process));
	first = strstr(process_out(&process), "\r\033[Ktesting functions");
	last = strstr(process_out(&process), "\r\033[Ktesting trace");
	CHECKF(first && last && strstr(last, "\r\033[Kwhylate "), "%s", process_out(&process));
	process_end(&process);
}

/* Whatever tiers this machine has beside its best ones; a tier that it lacks is refused, and said to be. */
static void test_force_tier(void)
{
	static const char *const tiers[] = {"probe=2", "fault=2", "fault=3", "socket=2", "socket=3"};
	struct process process;

	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
		if (whylate(&process, 120, "doctor --self-test --json --force-tier %s", tiers[i]) == 0 ||
		    *process_out(&process))
			check_result(&process);
		else if (said_one_line(&process, "cannot be forced here", NULL))
			skip("force_tier", "%s: %s", tiers[i], process_err(&process));
		process_end(&process);
	}
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
	struct process process;

	expect(2, "--force-tier", "--self-test", "doctor --force-tier fault=1");
	expect(2, "fault=9", "1 to 3", "doctor --self-test --force-tier fault=9");
	expect(2, "fault=0", "1 to 3", "doctor --self-test --force-tier fault=0");
	expect(2, "fault=11", "1 to 3", "doctor --self-test --force-tier fault=11");
	expect(2, "flaw=1", NULL, "doctor --self-test --force-tier flaw=1");
	expect(2, "'fault'", NULL, "doctor --self-test --force-tier fault");
	CHECK(whylate_as(&process, "nobody", 20, "doctor --self-test") == 1);
	said_one_line(&process, "CAP_BPF", NULL);
	process_end(&process);
}

static void test_btf(void)
{
	struct path btf = temp_path("btf"), cut = temp_path("cut-btf");
	struct process process;
	char args[600];
	size_t sz = 0;
	char *own = file_read("/sys/kernel/btf/vmlinux", &sz);

	if (!CHECK(own && sz > 100000 && !file_write(btf.s, own, sz) && !file_write(cut.s, own, 100000)))
		goto cleanup;
	CHECKF(whylate(&process, 20, "doctor --btf %s", btf.s) == 0, "%s", process_out(&process));
	process_end(&process);
	expect(1, "/nonexistent", "No such file", "doctor --self-test --btf /nonexistent");
	expect(1, "/etc/passwd", "no BTF", "doctor --self-test --btf /etc/passwd");
	snprintf(args, sizeof(args), "doctor --self-test --btf %s", cut.s);
	expect(1, cut.s, NULL, args);
	/* BTF, but of a module. */
	if (is_there("/sys/kernel/btf/nfnetlink"))
		expect(1, "nfnetlink", NULL, "doctor --self-test --btf /sys/kernel/btf/nfnetlink");
cleanup:
	free(own);
}

/* A line of /proc/PID/status as a hexadecimal number. */
static uint64_t status_number(pid_t pid, const char *key)
{
	char path[64], *text, *line;
	uint64_t number = UINT64_MAX;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	text = file_read(path, NULL);
	line = text ? strstr(text, key) : NULL;
	if (line)
		number = strtoull(line + strlen(key), NULL, 16);
	free(text);
	return number;
}

/* As <linux/capability.h> numbers them: DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYS_NICE, PERFMON, BPF.
 */
#define RUNNING_CAPS (1ULL << 2 | 1ULL << 19 | 1ULL << 21 | 1ULL << 23 | 1ULL << 38 | 1ULL << 39)

static void test_confined(void)
{
	struct recording recording;
	struct workload workload;
	uint64_t caps;

	if (!workload_start(&workload, "sleep", 20) ||
	    !recording_start(&recording, "confined", workload.server_pid, "--no-hw"))
		goto cleanup;
	caps = status_number(recording.process.pid, "CapEff:");
	CHECKF(!(caps & ~RUNNING_CAPS), "capabilities %llx", (unsigned long long)caps);
	CHECK(status_number(recording.process.pid, "CapPrm:") == caps);
	CHECK(status_number(recording.process.pid, "NoNewPrivs:") == 1);
	CHECK(status_number(recording.process.pid, "Seccomp:") == 2);
	CHECKF(recording_stop(&recording) == 0, "code %d: %s", recording.process.code, process_err(&recording.process));
	recording_end(&recording);
cleanup:
	workload_end(&workload);
}

/*
 * The program with capabilities opens nothing that the environment names with them: a file:// URL is no debuginfod
 * server, whose file a cache that nobody owns would get.
 */
static void no_copy_for_nobody(const char *program, const struct launch *launch)
{
	struct path server = temp_path("server"), cache = temp_path("cache");
	struct elf_file *file = elf_file__open("/bin/true");
	struct process process;
	char served[600];

	if (!CHECK(file && *elf_file__build_id(file)))
		goto cleanup;
	snprintf(served, sizeof(served), "%s/buildid/%s", server.s, elf_file__build_id(file));
	CHECK(!mkdir(cache.s, 0777) && !chmod(cache.s, 0777));
	CHECK(process_start(&process, "mkdir -p -m 0700 %s", served) == 0 && process_wait(&process, 10) == 0);
	process_end(&process);
	CHECK(process_start(&process, "cp /bin/true %s/debuginfo", served) == 0 && process_wait(&process, 10) == 0);
	process_end(&process);
	CHECK(!chmod(server.s, 0700));
	if (!process_launch(&process, launch,
			    "env DEBUGINFOD_URLS=file://%s DEBUGINFOD_CACHE_PATH=%s %s probes list -e /bin/true",
			    server.s, cache.s, program)) {
		process_wait(&process, 30);
		CHECKF(strstr(process_err(&process), "DEBUGINFOD_URLS: 'file://") != NULL, "%s", process_err(&process));
	}
	process_end(&process);
	if (!process_start(&process, "find %s -type f -size +0 -name *debuginfo*", cache.s)) {
		CHECK(process_wait(&process, 10) == 0);
		CHECKF(!*process_out(&process), "copied: %s", process_out(&process));
	}
	process_end(&process);
cleanup:
	elf_file__free(file);
}

/* What `make install SETCAP=1` gives is enough for a user to record a server of root's. */
static void test_file_capabilities(void)
{
	struct path copy = temp_path("whylate-setcap"), dir = temp_path("by-nobody"), secret = temp_path("secret.wls");
	bool allowed = false;
	struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	struct workload workload = {};
	struct process process;

	if (program_missing("file_capabilities", "setcap") || !workload_start(&workload, "sleep", 20))
		goto cleanup;
	CHECK(!mkdir(dir.s, 0777) && !chmod(dir.s, 0777));
	CHECK(!file_write(secret.s, "secret", 6) && !chmod(secret.s, 0600));
	if (process_start(&process, "cp %s %s", whylate_path(), copy.s) || process_wait(&process, 10))
		goto cleanup;
	process_end(&process);
	if (process_start(&process,
			  "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore=ep %s",
			  copy.s) ||
	    process_wait(&process, 10)) {
		skip("file_capabilities", "this file system takes no capabilities: %s", process_err(&process));
		process_end(&process);
		goto cleanup;
	}
	process_end(&process);
	/* Not more than the user may do himself: another's process, a file of root's. */
	if (!process_launch(&process, &launch, "%s record -p %d -d 1s -o %s/r", copy.s, (int)workload.server_pid,
			    dir.s)) {
		CHECKF(process_wait(&process, 30) == 1, "%s", process_err(&process));
		said_one_line(&process, "is another user's", NULL);
	}
	process_end(&process);
	if (!process_launch(&process, &launch, "%s probes list -e %s", copy.s, secret.s)) {
		CHECKF(process_wait(&process, 30) == 1, "%s", process_err(&process));
		said_one_line(&process, "secret", NULL);
	}
	process_end(&process);
	if (!process_launch(&process, &launch, "%s report %s", copy.s, secret.s)) {
		CHECKF(process_wait(&process, 30) == 1, "%s", process_err(&process));
		said_one_line(&process, "secret", "Permission denied");
	}
	process_end(&process);
	no_copy_for_nobody(copy.s, &launch);
	if (is_there("/etc/whylate") || mkdir("/etc/whylate", 0755) || file_write("/etc/whylate/any-target", "", 0)) {
		skip("file_capabilities", "/etc/whylate is there or cannot be made");
		goto cleanup;
	}
	allowed = true;
	if (!process_launch(&process, &launch, "%s record -p %d -d 1s --limits /etc/shadow", copy.s,
			    (int)workload.server_pid)) {
		CHECKF(process_wait(&process, 30) == 1, "%s", process_err(&process));
		said_one_line(&process, "/etc/shadow", "Permission denied");
	}
	process_end(&process);
	if (!process_launch(&process, &launch, "%s record -p %d -d 1s -o %s/r", copy.s, (int)workload.server_pid,
			    dir.s)) {
		CHECKF(process_wait(&process, 30) == 0, "%s", process_err(&process));
		CHECKF(strstr(process_err(&process), "intervals seen") != NULL, "%s", process_err(&process));
		CHECKF(strstr(process_err(&process), "cost: not known") != NULL, "%s", process_err(&process));
	}
	process_end(&process);
cleanup:
	if (allowed) {
		unlink("/etc/whylate/any-target");
		rmdir("/etc/whylate");
	}
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"self_test", test_self_test, SHORT}, {"force_tier", test_force_tier, REST},
	{"usage", test_usage, SHORT},         {"btf", test_btf, SHORT},
	{"confined", test_confined, SHORT},   {"file_capabilities", test_file_capabilities, SHORT},
	{"progress", test_progress, REST},
};

int suite_selftest(void)
{
	return live_suite("selftest", tests, sizeof(tests) / sizeof(tests[0]));
}
