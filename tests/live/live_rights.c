// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whose rights what runs has: libdebuginfod in a program with file capabilities, the processes of every recording
 * command, and what deletes and projects a store.  A server of the test's own makes each of them wait, to be looked at.
 */
#include "collector.h"
#include "harness.h"
#include "net.h"
#include "servers.h"
#include "session.h"
#include "target/elf_file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As <linux/capability.h> numbers them. */
#define OVERRIDE      (1ULL << 1)
#define READ_SEARCH   (1ULL << 2)
#define RUNNING_CAPS  (READ_SEARCH | 1ULL << 19 | 1ULL << 21 | 1ULL << 23 | 1ULL << 38 | 1ULL << 39)
#define ATTACHER_CAPS (1ULL << 21 | 1ULL << 38 | 1ULL << 39)
#define RESTORE       (1ULL << 40)
#define WATCH_CAPS    (1ULL << 0 | 1ULL << 1 | 1ULL << 6 | 1ULL << 7)

static uint64_t number_in(const char *status, const char *key)
{
	const char *line = status ? strstr(status, key) : NULL;

	return line ? strtoull(line + strlen(key), NULL, 16) : UINT64_MAX;
}

static char *status_of(pid_t pid, const char *tid)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, tid);
	return file_read(path, NULL);
}

/* The greatest value that a mask of capabilities has in any thread; UINT64_MAX: there is no such process. */
static uint64_t caps_of(pid_t pid, const char *key)
{
	uint64_t caps = UINT64_MAX;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char *status = *entry->d_name == '.' ? NULL : status_of(pid, entry->d_name);

		if (status)
			caps = (caps == UINT64_MAX ? 0 : caps) | number_in(status, key);
		free(status);
	}
	if (dir)
		closedir(dir);
	return caps;
}

/* --- a server that lets who connects wait ------------------------------------------------------------------------- */

static int listen_local(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t sz = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sz) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&address, &sz)) {
		CHECKF(false, "no server on loopback");
		return -1;
	}
	*port = ntohs(address.sin_port);
	return fd;
}

/* -1: nobody came. */
static int accept_within(int fd, int timeout_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, timeout_ms) == 1 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
}

static void answer_nothing_found(int fd)
{
	static const char text[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	char request[4096];

	CHECK(recv(fd, request, sizeof(request), 0) > 0);
	CHECK(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(text) - 1);
	close(fd);
}

/* --- debuginfod --------------------------------------------------------------------------------------------------- */

static bool run_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool run_line(const char *fmt, ...)
{
	struct process process;
	char line[2048];
	va_list args;
	bool good;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	good = !process_start(&process, "%s", line) && !process_wait(&process, 20);
	process_end(&process);
	return good;
}

/* A stripped program, and its debug file in a cache of that mode and owner as libdebuginfod keeps it. */
static bool cache_make(const struct path *cache, const char *build_id, unsigned int mode, const char *owner)
{
	char interval[600];

	snprintf(interval, sizeof(interval), "%s/cache_clean_interval_s", cache->s);
	return CHECK(run_line("mkdir -p -m 0755 %s/%s", cache->s, build_id) &&
		     run_line("cp %s %s/%s/debuginfo", built_path("safety/many").s, cache->s, build_id) &&
		     !file_write(interval, "86400", 5) && run_line("chown -R %s %s", owner, cache->s) &&
		     !chmod(cache->s, mode));
}

/* Does the program with capabilities list a function that only the debug file in the cache has? */
static bool lists_from_cache(const char *program, pid_t target, const struct path *cache, int port)
{
	struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	struct process process;
	bool listed = false;

	if (!process_launch(&process, &launch,
			    "env DEBUGINFOD_URLS=http://127.0.0.1:%d DEBUGINFOD_TIMEOUT=2 DEBUGINFOD_CACHE_PATH=%s %s "
			    "probes list -p %d",
			    port, cache->s, program, (int)target)) {
		process_wait(&process, 30);
		listed = strstr(process_out(&process), "one_round") != NULL;
	}
	process_end(&process);
	return listed;
}

/* Its process that asks servers; -1: there is none. */
static pid_t fetcher_of(pid_t parent)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	pid_t found = -1;
	char of_parent[32];

	snprintf(of_parent, sizeof(of_parent), "PPid:\t%d\n", (int)parent);
	while (dir && found < 0 && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);
		char *status = pid > 0 ? status_of(pid, entry->d_name) : NULL;

		if (status && strstr(status, "Name:\twhylate-fetch") && strstr(status, of_parent))
			found = pid;
		free(status);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The program has capabilities, and the process that connects has none. */
static void look_while_it_connects(const char *program, pid_t target, int server_fd, int port)
{
	struct path cache = temp_path("debuginfod-asked");
	struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	struct process process;
	int fd;

	CHECK(!mkdir(cache.s, 0777) && !chmod(cache.s, 0777));
	if (process_launch(&process, &launch,
			   "env DEBUGINFOD_URLS=http://127.0.0.1:%d DEBUGINFOD_TIMEOUT=10 DEBUGINFOD_CACHE_PATH=%s %s "
			   "probes list -p %d",
			   port, cache.s, program, (int)target))
		goto cleanup;
	fd = accept_within(server_fd, 10000);
	if (CHECKF(fd >= 0, "no server was asked: %s", process_err(&process))) {
		pid_t fetcher = fetcher_of(process.pid);

		CHECKF(caps_of(process.pid, "CapPrm:") & READ_SEARCH, "it has no capability to give up");
		CHECKF(fetcher > 0 && !caps_of(fetcher, "CapPrm:"), "%d has %llx", (int)fetcher,
		       (unsigned long long)caps_of(fetcher, "CapPrm:"));
		answer_nothing_found(fd);
	}
	CHECKF(process_wait(&process, 30) != -1, "%s", process_err(&process));
cleanup:
	process_end(&process);
}

static void test_debuginfod(void)
{
	struct path program = temp_path("whylate-debuginfod"), stripped = temp_path("stripped");
	struct path open_cache = temp_path("cache-open"), closed_cache = temp_path("cache-closed");
	struct elf_file *file = elf_file__open(built_path("safety/many").s);
	const char *build_id = file ? elf_file__build_id(file) : "";
	const struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	struct process target = {0};
	int port = 0, server_fd = -1;

	if (program_missing("debuginfod_by_the_caller", "setcap"))
		goto cleanup;
	if (!dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL)) {
		skip("debuginfod_by_the_caller", "libdebuginfod.so.1 is not installed");
		goto cleanup;
	}
	if (!CHECK(*build_id && run_line("cp %s %s", whylate_path(), program.s) &&
		   run_line("cp %s %s", built_path("safety/many-stripped").s, stripped.s)))
		goto cleanup;
	if (!run_line("setcap cap_sys_ptrace,cap_dac_read_search=ep %s", program.s)) {
		skip("debuginfod_by_the_caller", "this file system takes no capabilities");
		goto cleanup;
	}
	server_fd = listen_local(&port);
	if (server_fd < 0 || process_launch(&target, &launch, "%s", stripped.s) ||
	    !CHECK(process_says(&target, false, "ready", NULL, 10)))
		goto cleanup;
	look_while_it_connects(program.s, target.pid, server_fd, port);
	close(server_fd);
	server_fd = -1;
	if (!cache_make(&open_cache, build_id, 0755, "nobody") || !cache_make(&closed_cache, build_id, 0700, "root"))
		goto cleanup;
	CHECK(lists_from_cache(program.s, target.pid, &open_cache, port));
	CHECK(!lists_from_cache(program.s, target.pid, &closed_cache, port));
cleanup:
	if (server_fd >= 0)
		close(server_fd);
	process_end(&target);
	elf_file__free(file);
}

/* A member of the group cannot read by a replay what he could not read by `report`. */
static void test_replay(void)
{
	struct path program = temp_path("whylate-replay"), closed = temp_path("closed-recording");
	const struct launch launch = {.user = "nobody", .cpu = ANY_CPU};
	static const char *const below[] = {"", "/there.wls", "/not-there.wls"};

	if (program_missing("replay_by_the_caller", "setcap"))
		return;
	if (!CHECK(run_line("cp %s %s", whylate_path(), program.s) && run_line("mkdir -m 0700 %s", closed.s) &&
		   run_line("touch %s/there.wls", closed.s)))
		return;
	if (!run_line("setcap cap_dac_read_search=ep %s", program.s)) {
		skip("replay_by_the_caller", "this file system takes no capabilities");
		return;
	}
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		struct process process;

		if (process_launch(&process, &launch, "%s top %s%s 1s 1", program.s, closed.s, below[i]))
			continue;
		/* Whether there is such a file is not told either. */
		CHECK(process_wait(&process, 20) == (i ? 2 : 1));
		CHECKF(strstr(process_err(&process), i ? "is no recording" : "Permission denied") != NULL, "%s",
		       process_err(&process));
		process_end(&process);
	}
}

/* --- the processes of commands ------------------------------------------------------------------------------------ */

static bool is_below(pid_t pid, pid_t ancestor)
{
	while (pid > 1 && pid != ancestor)
		pid = process_parent(pid);
	return pid == ancestor;
}

/* What a process of a command may have at most: the command's own, its recorder, its attacher. */
static uint64_t caps_allowed(pid_t pid, pid_t command, uint64_t own)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%31s", comm) != 1)
		*comm = '\0';
	if (file)
		fclose(file);
	if (!strcmp(comm, "whylate-attach"))
		return ATTACHER_CAPS;
	return pid == command ? own : RUNNING_CAPS | RESTORE;
}

/* How many processes the command has; each one has what it may have within five seconds. */
static unsigned int check_command(struct process *process, uint64_t own)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned int cnt = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);
		uint64_t caps = UINT64_MAX, allowed;
		char *status;

		if (pid <= 1 || !is_below(pid, process->pid))
			continue;
		allowed = caps_allowed(pid, process->pid, own);
		for (int i = 0; i < 100 && (caps & ~allowed); i++) {
			sleep_ms(i ? 50 : 0);
			caps = caps_of(pid, "CapPrm:");
		}
		status = status_of(pid, entry->d_name);
		if (!status)
			continue;
		CHECKF(!(caps & ~allowed) && number_in(status, "NoNewPrivs:") == 1, "%llx of %llx allowed: %s",
		       (unsigned long long)caps, (unsigned long long)allowed, status);
		free(status);
		cnt++;
	}
	if (dir)
		closedir(dir);
	return cnt;
}

/* While it is attached, for two seconds at least. */
static void test_commands(void)
{
	struct path dirs[] = {temp_path("rights-of-commands"), temp_path("rights-of-page"), temp_path("."),
			      temp_path("rights-of-events")};
	char page[600];
	const struct {
		char line[600];
		const char *on_stderr, *on_stdout; /* one of them: it is attached */
		uint64_t own;
		unsigned int least;
	} commands[] = {
		{"record --no-hw -o %s", "recording ", NULL, RUNNING_CAPS, 1},
		{"diagnose -d 20s --html %s/page.html", "recording ", NULL, RUNNING_CAPS | RESTORE | OVERRIDE, 1},
		{"top --duty 100%% --mode counters 1s 30", NULL, "\n", 0, 2},
		{"watch --when p99>20s -o %s", "armed: ", NULL, WATCH_CAPS, 2},
	};
	struct launch launch = {.cpu = ANY_CPU, .cwd = temp_path(".").s};
	struct workload workload;

	/* The page of diagnose goes where root writes by a capability only. */
	CHECK(!mkdir(dirs[1].s, 0755) && !chown(dirs[1].s, ID_NOBODY, ID_NOBODY));
	snprintf(page, sizeof(page), "%s/page.html", dirs[1].s);
	if (!workload_start(&workload, "sleep", 40))
		goto cleanup;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct process process = {0};
		char line[700];

		/* The first word is the command, behind which its target goes. */
		snprintf(line, sizeof(line), commands[i].line, dirs[i].s);
		if (!process_launch(&process, &launch, "%s %.*s -p %d%s", whylate_path(), (int)strcspn(line, " "), line,
				    (int)workload.server_pid, line + strcspn(line, " ")) &&
		    CHECKF(process_says(&process, !commands[i].on_stdout,
					commands[i].on_stdout ?: commands[i].on_stderr, NULL, 30),
			   "%s: %s", line, process_err(&process))) {
			unsigned int cnt = check_command(&process, commands[i].own);

			CHECKF(cnt >= commands[i].least, "%s: %u processes", line, cnt);
			sleep_ms(1000);
			process_signal(&process, SIGINT);
			CHECKF(process_wait(&process, 60) <= 3, "%s: %s", line, process_err(&process));
		}
		process_end(&process);
	}
	CHECK(is_there(page));
cleanup:
	workload_end(&workload);
}

/* --- beside the collector ----------------------------------------------------------------------------------------- */

static void check_confined(pid_t pid)
{
	char path[64], *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = file_read(path, NULL);
	CHECKF(status && !number_in(status, "CapPrm:") && number_in(status, "NoNewPrivs:") == 1 &&
		       (is_sanitized() || number_in(status, "\nSeccomp:") == 2),
	       "%s", status);
	free(status);
}

/* --forget asks the database when the store is done: it waits for us then. */
static void test_forget(void)
{
	struct path store = temp_path("forgetting");
	int port, fd, server_fd = listen_local(&port);
	struct process process = {0};

	if (server_fd < 0 || !CHECK(run_line("install -d -o nobody %s %s/host-a", store.s, store.s)))
		goto cleanup;
	if (process_start(&process,
			  "%s collect --user nobody --store %s --forget host-a --project clickhouse://127.0.0.1:%d/d",
			  whylate_path(), store.s, port))
		goto cleanup;
	fd = accept_within(server_fd, 10000);
	if (CHECKF(fd >= 0, "%s", process_err(&process))) {
		check_confined(process.pid);
		close(fd);
	}
cleanup:
	process_end(&process);
	if (server_fd >= 0)
		close(server_fd);
}

/* The process that connected to the port; 0: none that belongs to the parent. */
static pid_t youngest_below(pid_t parent)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t youngest = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 1 && pid != parent && is_below(pid, parent) && (!youngest || is_below(pid, youngest)))
			youngest = pid;
	}
	if (dir)
		closedir(dir);
	return youngest;
}

/* Does it have that socket, as /proc names it? */
static bool has_socket(pid_t pid, const char *socket)
{
	char path[64], name[400], target[64];
	struct dirent *entry;
	bool has = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !has && (entry = readdir(dir))) {
		ssize_t sz;

		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		sz = readlink(name, target, sizeof(target) - 1);
		target[sz > 0 ? sz : 0] = '\0';
		has = !strcmp(target, socket);
	}
	if (dir)
		closedir(dir);
	return has;
}

/* The socket that listens on that port of loopback, as /proc names it. */
static bool find_listener(int port, char socket[64])
{
	char line[256], address[48];
	FILE *in = fopen("/proc/net/tcp", "re");
	unsigned long inode;
	bool found = false;

	snprintf(address, sizeof(address), ": 0100007F:%04X 00000000:0000 0A ", (unsigned int)port);
	while (in && !found && fgets(line, sizeof(line), in)) {
		found = strstr(line, address) && sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %lu", &inode) == 1;
		if (found)
			snprintf(socket, 64, "socket:[%lu]", inode);
	}
	if (in)
		fclose(in);
	return found;
}

/* What reads the shards and the database's answers has the database's socket, and not the one that agents come to. */
static void test_projection(void)
{
	struct path store = temp_path("projecting");
	int port, fd, server_fd = listen_local(&port), listen_port = port_free();
	char socket[64];
	struct process process = {0};
	pid_t pid;

	if (server_fd < 0)
		return;
	if (process_start(
		    &process,
		    "%s collect --user nobody --store %s --listen 127.0.0.1:%d --project clickhouse://127.0.0.1:%d/d",
		    whylate_path(), store.s, listen_port, port))
		goto cleanup;
	fd = accept_within(server_fd, 10000);
	pid = fd < 0 ? 0 : youngest_below(process.pid);
	if (CHECKF(pid > 0, "%s", process_err(&process))) {
		check_confined(pid);
		CHECK(find_listener(listen_port, socket) && has_socket(process.pid, socket));
		CHECK(!has_socket(pid, socket));
	}
	if (fd >= 0)
		close(fd);
cleanup:
	process_end(&process);
	close(server_fd);
}

/* SIGHUP reads the tokens again, from the directories that the command line named and from no other. */
static void test_reload_elsewhere(void)
{
	static const char text[] = "host-a token-of-host-a-0123456789\n";
	struct path dir = temp_path("tokens-here"), other = temp_path("tokens-elsewhere");
	struct path tokens = temp_path("tokens-here/tokens"), next = temp_path("tokens-here/next");
	struct path elsewhere = temp_path("tokens-elsewhere/tokens");
	struct collector collector = {0};

	if (!CHECK(!mkdir(dir.s, 0755) && !mkdir(other.s, 0755) && !file_write_secret(tokens.s, text, strlen(text)) &&
		   !file_write_secret(elsewhere.s, text, strlen(text))))
		return;
	if (!collector_start(&collector, "tokens-store", "--tokens %s", tokens.s))
		goto cleanup;
	/* Another file of that name is read; what it names outside is not. */
	CHECK(!file_write_secret(next.s, text, strlen(text)) && !rename(next.s, tokens.s));
	process_signal(&collector.process, SIGHUP);
	CHECKF(process_says(&collector.process, true, "are read again", NULL, 10), "%s",
	       process_err(&collector.process));
	CHECK(!unlink(tokens.s) && !symlink(elsewhere.s, tokens.s));
	process_signal(&collector.process, SIGHUP);
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0)
		CHECKF(process_says(&collector.process, true, "Permission denied", NULL, 10), "%s",
		       process_err(&collector.process));
	CHECK(collector_stop(&collector) == 0);
cleanup:
	collector_end(&collector);
}

static const struct live_test tests[] = {
	{"debuginfod_by_the_caller", test_debuginfod, SHORT}, {"replay_by_the_caller", test_replay, REST},
	{"rights_of_commands", test_commands, SHORT},         {"forget_confined", test_forget, SHORT},
	{"projection_confined", test_projection, SHORT},      {"reload_elsewhere", test_reload_elsewhere, SHORT},
};

int suite_rights(void)
{
	return live_suite("rights", tests, sizeof(tests) / sizeof(tests[0]));
}
