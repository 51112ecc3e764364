// SPDX-License-Identifier: GPL-2.0-or-later
#include "live/watch_event.h"

#include "base/dirs.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MAX 300 /* of a report, or of the user's program */
#define PROCESSES   8
#define ENV_SZ      (PATH_MAX + 32)
#define ENV_CNT     12
#define BEFORE_S    60

static pid_t processes[PROCESSES];

/* What is made of an event, and the variable that names it to the user's program. */
static const struct report {
	const char *name, *form, *arg, *fact;
} reports[] = {
	{"report.txt", NULL, NULL, "WHYLATE_REPORT"},
	{"report.json", "--json", NULL, "WHYLATE_JSON"},
	{"report.html", "--html", "-", "WHYLATE_HTML"},
};

#define REPORT_CNT (sizeof(reports) / sizeof(reports[0]))

int watch_user_find(struct watch_user *user, const char *name)
{
	const char *sudo = getenv("SUDO_USER");
	const struct passwd *found;

	*user = (struct watch_user){.uid = getuid(), .gid = getgid()};
	snprintf(user->name, sizeof(user->name), "%u", user->uid);
	if (getuid())
		return name ? -ENOENT : 0;
	found = getpwnam(name ? name : sudo && strcmp(sudo, "root") ? sudo : "nobody");
	if (!found)
		return -ENOENT;
	user->changes = found->pw_uid != 0;
	user->uid = found->pw_uid;
	user->gid = found->pw_gid;
	snprintf(user->name, sizeof(user->name), "%s", found->pw_name);
	return 0;
}

const char *watch_event_value(const struct watch_event *event)
{
	static char text[48];

	if (event->is_time)
		return units_duration_text(text, sizeof(text), event->value);
	snprintf(text, sizeof(text), "%.6g", event->value);
	return text;
}

/* --- in the process of an event ------------------------------------------------------------------------------------
 */

/* Becomes the user, for good; what follows has no privilege to lose. */
static int become(const struct watch_user *user)
{
	if (user->changes && (setgroups(0, NULL) || setgid(user->gid) || setuid(user->uid)))
		return -errno;
	if (user->changes && !setuid(0))
		return -EPERM;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

/* Runs a report whose output goes to the open file: is it whole? */
static bool run_report(int fd, const char *dir, const char *since, const struct report *report)
{
	char *const argv[] = {"whylate",           "report",      (char *)dir,
			      "--since",           (char *)since, (char *)report->form,
			      (char *)report->arg, NULL};
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		const struct rlimit cpu = {SECONDS_MAX, SECONDS_MAX};

		setrlimit(RLIMIT_CPU, &cpu);
		dup2(fd, STDOUT_FILENO);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	/* One of a recording that lost more than usual is whole, and says so. */
	return WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_DONE || WEXITSTATUS(status) == EXIT_LIMITS);
}

struct facts {
	char text[ENV_CNT][ENV_SZ], *envp[ENV_CNT + 1];
	size_t cnt;
};

static void put_fact(struct facts *facts, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void put_fact(struct facts *facts, const char *name, const char *fmt, ...)
{
	char *text = facts->text[facts->cnt];
	int len = snprintf(text, ENV_SZ, "%s=", name);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, ENV_SZ - (size_t)len, fmt, args);
	va_end(args);
	facts->envp[facts->cnt++] = text;
}

/* Reports that are not whole are not named. */
static void become_program(const struct watch_event *event, const char *exec, const bool whole[REPORT_CNT])
{
	static struct facts facts;
	char *const argv[] = {(char *)exec, (char *)event->dir, NULL};
	char begin[32];
	time_t seconds = (time_t)event->wall_s;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(begin, sizeof(begin), "%Y-%m-%dT%H:%M:%SZ", &tm);
	put_fact(&facts, "PATH", "/usr/local/bin:/usr/bin:/bin");
	put_fact(&facts, "WHYLATE_DIR", "%s", event->dir);
	put_fact(&facts, "WHYLATE_WHEN", "%s", event->when);
	put_fact(&facts, "WHYLATE_TIME", "%s", begin);
	if (event->is_time)
		put_fact(&facts, "WHYLATE_VALUE_NS", "%.0f", event->value);
	else
		put_fact(&facts, "WHYLATE_VALUE", "%.9g", event->value);
	put_fact(&facts, "WHYLATE_PID", "%d", (int)event->pid);
	for (size_t r = 0; r < REPORT_CNT; r++)
		if (whole[r])
			put_fact(&facts, reports[r].fact, "%s/%s", event->dir, reports[r].name);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	alarm(SECONDS_MAX);
	execve(exec, argv, facts.envp);
	log_error("cannot run '%s': %s", exec, strerror(errno));
}

/* For root and the user's group, as the shards are. */
static int open_report(const char *dir, const char *name, const struct watch_user *user)
{
	char path[PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd >= 0 && user->changes && fchown(fd, (uid_t)-1, user->gid))
		log_warn("cannot give '%s' to the group of '%s': %s", path, user->name, strerror(errno));
	return fd;
}

static int in_process(const struct watch_event *event, const struct watch_user *user, const char *exec)
{
	bool whole[REPORT_CNT] = {false};
	int fds[REPORT_CNT], in = open("/dev/null", O_RDONLY | O_CLOEXEC), err;
	time_t seconds = (time_t)event->wall_s - BEFORE_S;
	char since[32];
	struct tm tm;

	/* The files are made while it is still allowed to. */
	for (size_t r = 0; r < REPORT_CNT; r++)
		fds[r] = open_report(event->dir, reports[r].name, user);
	gmtime_r(&seconds, &tm);
	strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%S", &tm);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	setsid();
	if (in < 0 || dup2(in, STDIN_FILENO) < 0)
		return 1;
	err = become(user);
	if (err) {
		log_error("cannot become user '%s' for the report: %s", user->name, strerror(-err));
		return 1;
	}
	for (size_t r = 0; r < REPORT_CNT; r++) {
		whole[r] = fds[r] >= 0 && run_report(fds[r], event->dir, since, &reports[r]);
		if (!whole[r])
			log_warn("no whole %s/%s", event->dir, reports[r].name);
	}
	if (exec && !chdir("/"))
		become_program(event, exec, whole);
	return exec != NULL;
}

int watch_user_may(const struct watch_user *user, const char *path, bool is_dir)
{
	int status = -1;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		int err = become(user);

		_exit(-(err ? err : access(path, is_dir ? R_OK | X_OK : X_OK) ? -errno : 0));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

/* --- in the watching process ---------------------------------------------------------------------------------------
 */

void watch_event_reap(void)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (processes[i] && waitpid(processes[i], NULL, WNOHANG))
			processes[i] = 0;
}

void watch_event_wait(void)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (processes[i]) {
			waitpid(processes[i], NULL, 0);
			processes[i] = 0;
		}
}

/* Shards are for root and their group: that becomes the user's, who may read them. */
static void let_read(const char *path, const struct watch_user *user)
{
	DIR *dir = user->changes ? dir_open(AT_FDCWD, path, 0) : NULL;
	const struct dirent *entry;

	while ((entry = dir_next(dir)))
		if (entry->d_name[0] != '.' &&
		    fchownat(dirfd(dir), entry->d_name, (uid_t)-1, user->gid, AT_SYMLINK_NOFOLLOW))
			log_warn("cannot give '%s/%s' to the group of '%s': %s", path, entry->d_name, user->name,
				 strerror(errno));
	dir_close(dir, 0);
}

void watch_event__finish(const struct watch_event *event, const struct watch_user *user, const char *exec)
{
	size_t slot = 0;
	pid_t pid;

	while (slot < PROCESSES && processes[slot])
		slot++;
	if (slot == PROCESSES) {
		log_warn("'%s' gets no report: those of %d events before it have not ended", event->dir, PROCESSES);
		return;
	}
	let_read(event->dir, user);
	pid = fork();
	if (!pid)
		_exit(in_process(event, user, exec));
	if (pid < 0)
		log_warn("'%s' gets no report: %s", event->dir, strerror(errno));
	else
		processes[slot] = pid;
}
