// SPDX-License-Identifier: GPL-2.0-or-later
/* What each process of the program may still do: by /proc/PID/task/TID/status, while it works. */
#include "collector.h"
#include "harness.h"
#include "servers.h"
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* As <linux/capability.h> numbers them. */
#define DAC             (1ULL << 1 | 1ULL << 2)
#define RESTORE         (1ULL << 40)
#define UPLOADING       (1ULL << 0 | 1ULL << 5 | 1ULL << 6 | 1ULL << 7)
#define ATTACHER_CAPS   (1ULL << 21 | 1ULL << 38 | 1ULL << 39)
#define AGENT_CAPS      (DAC | 1ULL << 19 | 1ULL << 21 | 1ULL << 23 | 1ULL << 38 | 1ULL << 39 | RESTORE | UPLOADING)
#define PACE_CAPS       (1ULL << 23)
#define PROCESSES_LEAST 4
#define SETTLE_MS       5000
#define SETTLE_STEP_MS  50
#define GENERATIONS_MAX 16

/* Processes of the name whylate-symbols that were met. */
static unsigned int symbols_cnt;

static uint64_t status_number(const char *text, const char *key)
{
	const char *line = text ? strstr(text, key) : NULL;

	return line ? strtoull(line + strlen(key), NULL, 16) : UINT64_MAX;
}

/* What a thread of that name may have at most. */
static uint64_t caps_allowed(const char *comm, bool collects)
{
	if (collects || !strcmp(comm, "whylate-upload") || !strcmp(comm, "whylate-symbols"))
		return 0;
	if (!strcmp(comm, "whylate-attach"))
		return ATTACHER_CAPS;
	return strcmp(comm, "whylate-pace") && strcmp(comm, "whylate-guard") ? AGENT_CAPS : PACE_CAPS;
}

/* What one of its threads has that it may not have, as `text`; true: nothing. */
static bool thread_confined(pid_t pid, const char *tid, bool collects, char *text, size_t sz)
{
	char path[96], comm[32] = "";
	char *status, *name;
	uint64_t allowed;
	bool held;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, tid);
	status = file_read(path, NULL);
	name = status ? strstr(status, "Name:\t") : NULL;
	if (!name || sscanf(name + 6, "%31s", comm) != 1) {
		free(status);
		return true;
	}
	allowed = caps_allowed(comm, collects);
	held = !(status_number(status, "CapPrm:") & ~allowed) && !(status_number(status, "CapEff:") & ~allowed) &&
	       status_number(status, "NoNewPrivs:") == 1 &&
	       (is_sanitized() || status_number(status, "\nSeccomp:") == 2);
	snprintf(text, sz, "%s %s: %s", comm, tid, status);
	free(status);
	return held;
}

static bool process_confined(pid_t pid, bool collects, char *text, size_t sz)
{
	char path[64];
	struct dirent *entry;
	bool held = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && held && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			held = thread_confined(pid, entry->d_name, collects, text, sz);
	if (dir)
		closedir(dir);
	return held;
}

/*
 * What reads hostile input has none of the memory that the agent shares with the kernel (rings, settings of programs):
 * the uploader has its counters.
 */
static void check_shared(pid_t pid)
{
	char path[64], *status, *maps;
	size_t shared = 0;
	bool reads, uploads;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = file_read(path, NULL);
	reads = status && strstr(status, "Name:\twhylate-symbols");
	uploads = status && strstr(status, "Name:\twhylate-upload");
	free(status);
	if (!reads && !uploads)
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = file_read(path, NULL);
	for (const char *at = maps; at && (at = strstr(at, " rw-s ")); at++)
		shared++;
	CHECKF(maps && shared == uploads && !strstr(maps, "anon_inode:"), "%d shares: %s", (int)pid, maps);
	free(maps);
	symbols_cnt += reads;
}

/* A process gives up what it has after fork(): it has this long. */
static void check_process(pid_t pid, bool collects)
{
	char text[4096] = "";
	bool held = false;

	for (int i = 0; i < SETTLE_MS / SETTLE_STEP_MS && !held; i++) {
		if (i)
			sleep_ms(SETTLE_STEP_MS);
		held = process_confined(pid, collects, text, sizeof(text));
	}
	CHECKF(held, "%d %s", (int)pid, text);
	check_shared(pid);
}

/* Other tests run the program at the same time. */
static bool is_descendant(pid_t pid)
{
	for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++) {
		pid = process_parent(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}

/* Every process below this one that runs the program, how many. */
static unsigned int check_processes(pid_t collector)
{
	char path[64], exe[512];
	unsigned int cnt = 0;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);
		ssize_t sz;

		snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		sz = pid ? readlink(path, exe, sizeof(exe) - 1) : -1;
		exe[sz > 0 ? sz : 0] = '\0';
		if (sz <= 0 || strcmp(exe, whylate_path()) || !is_descendant(pid))
			continue;
		check_process(pid, pid == collector);
		cnt++;
	}
	if (dir)
		closedir(dir);
	return cnt;
}

static void test_processes(void)
{
	struct path spool = temp_path("confined-spool"), symbols = temp_path("confined.symbols");
	struct collector collector;
	struct recording recording = {0};
	struct workload workload;
	struct process diagnosis = {0};
	unsigned int cnt;

	if (!workload_start(&workload, "sleep", 20))
		goto cleanup;
	CHECK(!file_write(symbols.s, "function handle\n", 16));
	if (!collector_start(&collector, "confined-store", "--insecure"))
		goto cleanup_collector;
	if (!recording_start(&recording, "confined", workload.server_pid,
			     "--no-hw --stream http://127.0.0.1:%d --spool %s", collector.port, spool.s))
		goto cleanup_recording;
	process_start(&diagnosis, "%s diagnose -p %d -d 30s --rounds 1", whylate_path(), (int)workload.server_pid);
	if (!CHECKF(process_says(&diagnosis, true, "recording ", NULL, 30), "%s", process_err(&diagnosis)))
		goto cleanup_recording;
	sleep_ms(300);
	cnt = check_processes(collector.process.pid);
	/* The collector; recording, diagnosis, and an attacher or uploader of each. */
	CHECKF(cnt >= PROCESSES_LEAST, "%u processes", cnt);
	/* The diagnosis's for inlined functions; one for symbol tables may be resting yet, of each. */
	CHECKF(symbols_cnt >= 1 && symbols_cnt <= 3, "%u processes that read debugging information", symbols_cnt);
	process_signal(&diagnosis, SIGINT);
	CHECKF(process_wait(&diagnosis, 60) == 0, "%s", process_err(&diagnosis));
	CHECKF(!strstr(process_err(&diagnosis), "confined") && !strstr(process_err(&diagnosis), "keeps what"), "%s",
	       process_err(&diagnosis));
	CHECK(recording_stop(&recording) == 0);
cleanup_recording:
	process_end(&diagnosis);
	recording_end(&recording);
cleanup_collector:
	collector_end(&collector);
cleanup:
	workload_end(&workload);
}

/* --- readers ------------------------------------------------------------------------------------------------------ */

/* A pipe that is full: what writes into it waits, and can be looked at. */
static bool open_full_pipe(int fds[2])
{
	char bytes[4096] = "";

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) || fcntl(fds[1], F_SETPIPE_SZ, sizeof(bytes)) < 0)
		return false;
	while (write(fds[1], bytes, sizeof(bytes)) > 0)
		;
	return !fcntl(fds[1], F_SETFL, 0);
}

static pid_t start_reader(int out_fd, const char *command, const char *dir, const char *more)
{
	pid_t pid = fork();

	if (!pid) {
		const char *argv[] = {"whylate", command, dir, more, strcmp(command, "compare") ? NULL : dir, NULL};

		if (!more)
			argv[3] = NULL;
		dup2(out_fd, STDOUT_FILENO);
		execv(whylate_path(), (char *const *)argv);
		_exit(127);
	}
	return pid;
}

/* It sleeps, as what waits for a pipe does. */
static bool waits(pid_t pid)
{
	char path[64], *text = NULL;
	bool blocked = false;

	snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
	for (int i = 0; i < 500 && !blocked; i++) {
		text = file_read(path, NULL);
		blocked = text && strstr(text, "pipe_write");
		free(text);
		sleep_ms(10);
	}
	return blocked;
}

static void check_reader(const char *dir, const char *command, const char *more)
{
	int fds[2] = {-1, -1};
	char path[64], *text;
	pid_t pid;

	if (!CHECK(open_full_pipe(fds)))
		return;
	pid = start_reader(fds[1], command, dir, more);
	if (CHECKF(pid > 0 && waits(pid), "%s writes nothing", command)) {
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		text = file_read(path, NULL);
		CHECKF(!status_number(text, "CapPrm:") && !status_number(text, "CapEff:") &&
			       status_number(text, "NoNewPrivs:") == 1 &&
			       (is_sanitized() || status_number(text, "\nSeccomp:") == 2),
		       "%s: %s", command, text);
		free(text);
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(fds[0]);
	close(fds[1]);
}

/* Where seccomp() is refused, a warning says so, and the report is there all the same. */
static void check_refused(const char *dir)
{
	char text[8192] = "";
	int fds[2], status = -1;
	ssize_t got = 0;
	pid_t pid;

	if (!CHECK(!pipe2(fds, O_CLOEXEC)))
		return;
	pid = fork();
	if (!pid) {
		scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
		int null_fd = open("/dev/null", O_WRONLY);

		if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(seccomp), 0) ||
		    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1,
				     SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)) ||
		    seccomp_load(filter))
			_exit(126);
		dup2(null_fd, STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execl(whylate_path(), "whylate", "report", dir, NULL);
		_exit(127);
	}
	close(fds[1]);
	for (ssize_t n = 1; n > 0 && got < (ssize_t)sizeof(text) - 1; got += n > 0 ? n : 0)
		n = read(fds[0], text + got, sizeof(text) - 1 - (size_t)got);
	waitpid(pid, &status, 0);
	CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", text);
	CHECKF(is_sanitized() || strstr(text, "only partly confined"), "%s", text);
	close(fds[0]);
}

static void test_readers(void)
{
	static const struct {
		const char *command, *more;
	} readers[] = {
		{"report", "--json"},       {"report", NULL},      {"contexts", NULL},
		{"export", "--format=csv"}, {"compare", "--json"}, {"export", "--format=perfetto"},
	};
	struct recording recording = {0};
	struct workload workload;

	if (!workload_start(&workload, "sleep", 20) ||
	    !recording_start(&recording, "read", workload.server_pid, "--no-hw --mode trace --duty 100%%"))
		goto cleanup;
	sleep_ms(600);
	if (!CHECK(recording_stop(&recording) == 0))
		goto cleanup;
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		check_reader(recording.dir.s, readers[i].command, readers[i].more);
	check_refused(recording.dir.s);
cleanup:
	recording_end(&recording);
	workload_end(&workload);
}

static const struct live_test tests[] = {
	{"confined_processes", test_processes, SHORT},
	{"confined_readers", test_readers, SHORT},
};

int suite_confine(void)
{
	return live_suite("confine", tests, sizeof(tests) / sizeof(tests[0]));
}
