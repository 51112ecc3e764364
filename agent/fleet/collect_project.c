// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/collect_project.h"

#include "base/confine.h"
#include "base/exit_code.h"
#include "base/log.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_S 5

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

/* A child ends with its parent, also if that is killed. */
static pid_t fork_tied(void)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
		_exit(EXIT_FAILED);
	return 0;
}

_Noreturn void collect_project_run(const struct project_options *options, struct clickhouse *server)
{
	for (;;) {
		pid_t pid = fork_tied();
		int status = 0;

		if (!pid)
			_exit(work(options, server));
		if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status))
			_exit(EXIT_DONE);
		log_error("the projection into '%s' failed; it begins again in %d s", options->database.url, AGAIN_S);
		sleep(AGAIN_S);
	}
}

pid_t collect_project_fork(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork_tied();
	if (!pid)
		close_range(STDERR_FILENO + 1, ~0U, 0);
	return pid < 0 ? -errno : pid;
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
