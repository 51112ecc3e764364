// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/guard.h"

#include "base/capabilities.h"
#include "base/child.h"
#include "base/priority.h"
#include "base/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_CNT(list) (sizeof(list) / sizeof((list)[0]))
#define AGENT_FD        CHILD_FIRST_FD /* the agent's pidfd */

/* The thread that has started it is gone: the kernel sends it when that thread ends, before the process has ended. */
#define GONE_SIGNAL SIGUSR1

/* What it calls, and what the C library calls for that and for reading a directory. */
static const int allowed[] = {
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sched_setscheduler),
	SCMP_SYS(setpriority),
	SCMP_SYS(poll),
	SCMP_SYS(prctl),
	SCMP_SYS(tgkill),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(fcntl),
	SCMP_SYS(getdents64),
	SCMP_SYS(close),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(mprotect),
	SCMP_SYS(futex),
	SCMP_SYS(ppoll),
	SCMP_SYS(exit_group),
};

static void confine(void)
{
	static const cap_value_t needed[] = {CAP_SYS_NICE};
	scmp_filter_ctx filter = sandbox_is_sanitized() ? NULL : seccomp_init(SCMP_ACT_ERRNO(EPERM));

	(void)child_unmap_shared(NULL);
	(void)capabilities_keep(needed, 1);
	(void)priority_prefer(0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (filter)
		(void)sandbox_filter_load(filter,
					  sandbox_filter_add(filter, SCMP_ACT_ALLOW, allowed, ARRAY_CNT(allowed)));
}

static _Noreturn void guard_process(pid_t agent_pid, pid_t thread_tid)
{
	int agent_fd = (int)syscall(SYS_pidfd_open, agent_pid, 0);
	struct pollfd agent = {.fd = AGENT_FD, .events = POLLIN};
	sigset_t gone;

	setsid();
	prctl(PR_SET_NAME, "whylate-guard");
	child_keep_fds(&agent_fd, 1);
	sigfillset(&gone);
	sigprocmask(SIG_SETMASK, &gone, NULL);
	sigemptyset(&gone);
	sigaddset(&gone, GONE_SIGNAL);
	confine();
	prctl(PR_SET_PDEATHSIG, GONE_SIGNAL);
	/* A thread that ended before that has no signal for it. */
	if (!syscall(SYS_tgkill, agent_pid, thread_tid, 0))
		while (sigwaitinfo(&gone, NULL) < 0 && errno == EINTR)
			;
	/* As long as the process has not ended, its number is its own. */
	if (agent_fd >= 0 && !poll(&agent, 1, 0))
		priority_prefer_all(agent_pid);
	_exit(0);
}

pid_t guard_start(void)
{
	pid_t agent_pid = getpid(), thread_tid = (pid_t)syscall(SYS_gettid), pid = fork();

	if (!pid)
		guard_process(agent_pid, thread_tid);
	return pid < 0 ? -errno : pid;
}

void guard_end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
