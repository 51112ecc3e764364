// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/collect_project.h"

#include "base/confine.h"
#include "base/exit_code.h"
#include "base/log.h"

#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_S 5
#define END_MS  3000

static const char *dir_of(char *copy)
{
	return copy ? dirname(copy) : NULL;
}

/*
 * What reads shards and a server's answers is allowed nothing but that.  The directory that the store is in: the store
 * may be unmounted and mounted again.
 */
static int work(const struct project_options *options, struct clickhouse *server)
{
	struct sandbox sandbox = {.network = true, .threads = true, .writable_fds = {-1, -1, -1}};
	const char *ca_path = options->database.ca_path;
	char *store = strdup(options->project.paths[0]), *ca = ca_path ? strdup(ca_path) : NULL;
	const char *const paths[] = {dir_of(store), dir_of(ca), ca_path};
	int err = confine_enter(&sandbox, paths, 3);

	free(ca);
	free(store);
	if (err) {
		log_error("the projection cannot be confined: %s", strerror(-err));
		return EXIT_FAILED;
	}
	return project_run(options, server);
}

/* The process that forked, 0 in the new one, which gets the signals that its maker has blocked. */
static pid_t fork_plain(void)
{
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	return 0;
}

/* Waits until one of the two has ended, for so long (-1: for ever): true where it was the collector. */
static bool collector_ends(int collector_fd, int child_fd, int timeout_ms)
{
	struct pollfd ends[] = {{.fd = collector_fd, .events = POLLIN}, {.fd = child_fd, .events = POLLIN}};

	while (poll(ends, 2, timeout_ms) < 0 && errno == EINTR)
		;
	return ends[0].revents;
}

/* It ends by itself at its next statement; what it analyses then is not waited for. */
static void end_child(pid_t pid, int child_fd)
{
	struct pollfd end = {.fd = child_fd, .events = POLLIN};

	kill(pid, SIGTERM);
	if (poll(&end, 1, END_MS) <= 0)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* One run of the projection: its exit code, or EXIT_FAILED.  Ends this process where the collector has ended. */
static int run_once(const struct project_options *options, struct clickhouse *server, int collector_fd)
{
	pid_t self = getpid(), pid = fork_plain();
	int status = 0, child_fd;

	if (!pid) {
		/* Where this one is killed, too. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self)
			_exit(EXIT_FAILED);
		close(collector_fd);
		_exit(work(options, server));
	}
	child_fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (child_fd >= 0 && collector_ends(collector_fd, child_fd, -1)) {
		end_child(pid, child_fd);
		_exit(EXIT_DONE);
	}
	if (child_fd >= 0)
		close(child_fd);
	else if (pid > 0)
		kill(pid, SIGKILL);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

_Noreturn void collect_project_run(const struct project_options *options, struct clickhouse *server, int collector_fd)
{
	for (;;) {
		if (!run_once(options, server, collector_fd))
			_exit(EXIT_DONE);
		log_error("the projection into '%s' failed; it begins again in %d s", options->database.url, AGAIN_S);
		if (collector_ends(collector_fd, -1, AGAIN_S * 1000))
			_exit(EXIT_DONE);
	}
}

/*
 * The collector is watched by a descriptor: PR_SET_PDEATHSIG would be a signal of the collector's, and a collector that
 * is confined (Landlock's signal scope, from Linux 6.12 on) may send none to a process outside its sandbox.
 */
pid_t collect_project_fork(int *collector_fd)
{
	pid_t collector = getpid(), pid;

	fflush(NULL);
	pid = fork_plain();
	if (pid)
		return pid < 0 ? -errno : pid;
	close_range(STDERR_FILENO + 1, ~0U, 0);
	*collector_fd = (int)syscall(SYS_pidfd_open, collector, 0);
	/* It may have ended, and its number be another one's. */
	if (*collector_fd < 0 || getppid() != collector)
		_exit(EXIT_FAILED);
	return 0;
}

int collect_forget_host(const struct store_opts *opts, const char *host, struct clickhouse *server)
{
	struct store *store = store__open(opts);
	struct store_stats stats = {0};
	int err = store ? store__forget(store, host) : -errno, code = EXIT_DONE;

	if (store)
		store__stats(store, &stats);
	store__close(store);
	if (err == -EBUSY)
		log_error("a collector has the store '%s': stop it first", opts->dir);
	else if (err == -ENOENT && store)
		log_warn("the store '%s' has nothing of host '%s'", opts->dir, host);
	else if (err)
		log_error("host '%s' cannot be deleted from '%s': %s", host, opts->dir, strerror(-err));
	else
		log_info("host '%s': %llu shards deleted from '%s'", host, (unsigned long long)stats.deleted_files,
			 opts->dir);
	if (err && !(err == -ENOENT && store))
		return EXIT_FAILED;
	err = server ? project_forget(server, host, PROJECT_PATIENCE_NS) : 0;
	if (err) {
		log_error("host '%s' is not deleted from the database: %s%s%s", host, strerror(-err),
			  *clickhouse__text(server) ? ": " : "", clickhouse__text(server));
		code = EXIT_FAILED;
	} else if (server) {
		log_info("host '%s' is deleted from the database '%s'", host, clickhouse__database(server));
	}
	return code;
}
