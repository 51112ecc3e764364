// SPDX-License-Identifier: GPL-2.0-or-later
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX 64

/* Between fork and exec. */
static void become(const struct launch *launch, const struct passwd *user)
{
	cpu_set_t one;

	setpgid(0, 0);
	if (launch->cpu >= 0) {
		CPU_ZERO(&one);
		CPU_SET(launch->cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	if (launch->cwd && chdir(launch->cwd))
		_exit(126);
	if (user && (setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid)))
		_exit(126);
	/* Changing the user clears it, so it comes last. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void exec_child(const struct process *process, const struct launch *launch, const struct passwd *user,
		       const char *const argv[], pid_t parent)
{
	int null_fd = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	dup2(launch->in_fd ? launch->in_fd : null_fd, STDIN_FILENO);
	dup2(process->out_fd, STDOUT_FILENO);
	dup2(process->err_fd, STDERR_FILENO);
	become(launch, user);
	if (getppid() != parent)
		_exit(126);
	execvp(argv[0], (char *const *)argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int process_launch_argv(struct process *process, const struct launch *launch, const char *const argv[])
{
	static const struct launch plain = {.cpu = ANY_CPU};
	const struct passwd *user = NULL;
	pid_t parent = getpid();

	memset(process, 0, sizeof(*process));
	if (!launch)
		launch = &plain;
	if (launch->user) {
		user = getpwnam(launch->user);
		if (!CHECKF(user != NULL, "%s", launch->user))
			return -ENOENT;
	}
	process->out_fd = memfd_create("stdout", MFD_CLOEXEC);
	process->err_fd = memfd_create("stderr", MFD_CLOEXEC);
	/* Two descriptions of one open file share an offset; appending keeps them apart from our reads. */
	fcntl(process->out_fd, F_SETFL, O_APPEND);
	fcntl(process->err_fd, F_SETFL, O_APPEND);
	fflush(stdout);
	process->pid = fork();
	if (!process->pid)
		exec_child(process, launch, user, argv, parent);
	if (!CHECKF(process->pid > 0, "%s: %s", argv[0], strerror(errno))) {
		process->pid = 0;
		close(process->out_fd);
		close(process->err_fd);
		return -EAGAIN;
	}
	setpgid(process->pid, process->pid);
	process->running = true;
	return 0;
}

/* Splits in place. */
static void split(char *line, const char *argv[ARGS_MAX])
{
	size_t cnt = 0;
	char *rest;

	for (char *word = strtok_r(line, " ", &rest); word && cnt < ARGS_MAX - 1; word = strtok_r(NULL, " ", &rest))
		argv[cnt++] = word;
	argv[cnt] = NULL;
}

static int launch_line(struct process *process, const struct launch *launch, const char *prefix, const char *fmt,
		       va_list args)
{
	const char *argv[ARGS_MAX];
	char line[8192];
	int len = snprintf(line, sizeof(line), "%s", prefix);

	vsnprintf(line + len, sizeof(line) - (size_t)len, fmt, args);
	split(line, argv);
	return process_launch_argv(process, launch, argv);
}

int process_launch(struct process *process, const struct launch *launch, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = launch_line(process, launch, "", fmt, args);
	va_end(args);
	return err;
}

int process_start(struct process *process, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = launch_line(process, NULL, "", fmt, args);
	va_end(args);
	return err;
}

void process_signal(struct process *process, int signal_no)
{
	if (process->running)
		kill(process->pid, signal_no);
}

static bool reap(struct process *process, int options)
{
	int status;

	if (!process->running)
		return true;
	if (waitpid(process->pid, &status, options) != process->pid)
		return false;
	process->running = false;
	process->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

bool process_runs(struct process *process)
{
	return process->pid && !reap(process, WNOHANG);
}

unsigned long process_peak_kib(const struct process *process)
{
	unsigned long peak_kib = 0;
	char path[64], *text, *line;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)process->pid);
	text = file_read(path, NULL);
	line = text ? strstr(text, "VmHWM:") : NULL;
	if (line)
		sscanf(line, "VmHWM: %lu kB", &peak_kib);
	free(text);
	return peak_kib;
}

int process_wait(struct process *process, unsigned int timeout_s)
{
	uint64_t deadline_ts = now_ns() + timeout_s * NS_PER_SEC;

	if (!process->pid)
		return -1;
	while (!reap(process, WNOHANG)) {
		if (now_ns() > deadline_ts) {
			kill(-process->pid, SIGKILL);
			reap(process, 0);
			CHECKF(false, "process %d has not ended in %u s; stderr: %s", (int)process->pid, timeout_s,
			       process_err(process));
			return -1;
		}
		sleep_ms(2);
	}
	return process->code;
}

static const char *text_of(int fd, char **text)
{
	struct stat st;
	ssize_t sz = 0;

	free(*text);
	*text = fstat(fd, &st) ? NULL : malloc((size_t)st.st_size + 1);
	if (!*text)
		return "";
	sz = pread(fd, *text, (size_t)st.st_size, 0);
	(*text)[sz > 0 ? sz : 0] = '\0';
	return *text;
}

const char *process_out(struct process *process)
{
	return process->pid ? text_of(process->out_fd, &process->out) : "";
}

const char *process_err(struct process *process)
{
	return process->pid ? text_of(process->err_fd, &process->err) : "";
}

bool process_says(struct process *process, bool on_stderr, const char *text, const char *or_text,
		  unsigned int timeout_s)
{
	uint64_t deadline_ts = now_ns() + timeout_s * NS_PER_SEC;

	while (process->pid) {
		bool runs = process_runs(process);
		const char *said = on_stderr ? process_err(process) : process_out(process);

		if (strstr(said, text) || (or_text && strstr(said, or_text)))
			return true;
		if (!runs || now_ns() > deadline_ts)
			return false;
		sleep_ms(5);
	}
	return false;
}

void process_end(struct process *process)
{
	if (!process->pid)
		return;
	if (process->running) {
		kill(-process->pid, SIGKILL);
		kill(process->pid, SIGKILL);
		reap(process, 0);
	}
	close(process->out_fd);
	close(process->err_fd);
	free(process->out);
	free(process->err);
	memset(process, 0, sizeof(*process));
}

static int whylate_line(struct process *process, const char *user, unsigned int timeout_s, const char *fmt,
			va_list args)
{
	struct launch launch = {.user = user, .cpu = ANY_CPU};
	struct path prefix;

	snprintf(prefix.s, sizeof(prefix.s), "%s ", whylate_path());
	if (launch_line(process, &launch, prefix.s, fmt, args))
		return -1;
	return process_wait(process, timeout_s);
}

int whylate(struct process *process, unsigned int timeout_s, const char *fmt, ...)
{
	va_list args;
	int code;

	va_start(args, fmt);
	code = whylate_line(process, NULL, timeout_s, fmt, args);
	va_end(args);
	return code;
}

int whylate_as(struct process *process, const char *user, unsigned int timeout_s, const char *fmt, ...)
{
	va_list args;
	int code;

	/* Shards are their owner's and group's alone. */
	temp_give_shards(user);
	va_start(args, fmt);
	code = whylate_line(process, user, timeout_s, fmt, args);
	va_end(args);
	return code;
}

bool said_one_line(struct process *process, const char *text, const char *and_text)
{
	const char *said = process_err(process), *end = strchr(said, '\n');

	return CHECKF(end && !end[1] && (!text || strstr(said, text)) && (!and_text || strstr(said, and_text)),
		      "one line with \"%s\" and \"%s\" expected, it said: %s", text ? text : "",
		      and_text ? and_text : "", said);
}

pid_t process_parent(pid_t pid)
{
	char path[64], *text, *end;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	text = file_read(path, NULL);
	/* The name in front may contain blanks and parentheses. */
	end = text ? strrchr(text, ')') : NULL;
	if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
		parent = 0;
	free(text);
	return parent;
}
