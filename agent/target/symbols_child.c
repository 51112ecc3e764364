// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/symbols_child.h"

#include "base/packet.h"
#include "target/symbols_wire.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
	pid_t owner; /* a process that was forked has none of its parent's */
	pid_t pids[SYMBOLS_PIDS];
	bool run[SYMBOLS_PIDS];
	uint32_t starts;
	uint64_t ended_ns;
} told;

static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec cpu;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &cpu))
		return 0;
	return (uint64_t)cpu.tv_sec * SECOND_NS + (uint64_t)cpu.tv_nsec;
}

static void tell_start(pid_t pid)
{
	size_t last = SYMBOLS_PIDS - 1;

	pthread_mutex_lock(&mutex);
	if (told.owner != getpid()) {
		memset(&told, 0, sizeof(told));
		told.owner = getpid();
	}
	/* In the place of the oldest that has ended. */
	while (last > 0 && told.run[last])
		last--;
	memmove(told.pids + 1, told.pids, last * sizeof(told.pids[0]));
	memmove(told.run + 1, told.run, last * sizeof(told.run[0]));
	told.pids[0] = pid;
	told.run[0] = true;
	told.starts++;
	pthread_mutex_unlock(&mutex);
}

/* Before it is reaped. */
static void tell_end(pid_t pid)
{
	pthread_mutex_lock(&mutex);
	told.ended_ns += cpu_ns_of(pid);
	for (int i = 0; i < SYMBOLS_PIDS; i++)
		if (told.pids[i] == pid)
			told.run[i] = false;
	pthread_mutex_unlock(&mutex);
}

int symbols_child__start(struct symbols_child *child)
{
	return symbols_child__start_work(child, &(struct symbols_work){.fd_cnt = 0});
}

int symbols_child__start_work(struct symbols_child *child, const struct symbols_work *work)
{
	pid_t agent_pid = getpid(), pid;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	pid = fork();
	if (!pid)
		symbols_process(fds[1], agent_pid, work);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	*child = (struct symbols_child){.pid = pid, .socket_fd = fds[0]};
	tell_start(pid);
	return 0;
}

int symbols_child__end(struct symbols_child *child)
{
	int status = 0;

	if (child->socket_fd < 0)
		return 0;
	close(child->socket_fd);
	child->socket_fd = -1;
	/* A process that has ended by itself keeps the status that it has. */
	kill(child->pid, SIGKILL);
	tell_end(child->pid);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

uint64_t symbols_child__cpu_ns(const struct symbols_child *child)
{
	return child->socket_fd < 0 ? 0 : cpu_ns_of(child->pid);
}

void symbols_child__limit_cpu(struct symbols_child *child)
{
	rlim_t until_s = cpu_ns_of(child->pid) / SECOND_NS + SYMBOLS_CPU_S;
	struct rlimit limit = {.rlim_cur = until_s, .rlim_max = RLIM_INFINITY}, old;

	if (child->cpu_limit_s == until_s)
		return;
	if (!prlimit(child->pid, RLIMIT_CPU, NULL, &old))
		limit.rlim_max = old.rlim_max;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	if (!prlimit(child->pid, RLIMIT_CPU, &limit, NULL))
		child->cpu_limit_s = until_s;
}

bool symbols_child__send(const struct symbols_child *child, const void *question, size_t sz, int fd)
{
	return packet_send(child->socket_fd, question, sz, &fd, fd >= 0, MSG_DONTWAIT) == (ssize_t)sz;
}

size_t symbols_children_pids(pid_t pids[SYMBOLS_PIDS])
{
	size_t cnt;

	pthread_mutex_lock(&mutex);
	cnt = told.owner != getpid() ? 0 : told.starts < SYMBOLS_PIDS ? told.starts : SYMBOLS_PIDS;
	memcpy(pids, told.pids, cnt * sizeof(*pids));
	pthread_mutex_unlock(&mutex);
	return cnt;
}

uint32_t symbols_children_starts(void)
{
	uint32_t starts;

	pthread_mutex_lock(&mutex);
	starts = told.owner == getpid() ? told.starts : 0;
	pthread_mutex_unlock(&mutex);
	return starts;
}

uint64_t symbols_children_cpu_ns(void)
{
	uint64_t cpu_ns = 0;

	pthread_mutex_lock(&mutex);
	if (told.owner == getpid()) {
		cpu_ns = told.ended_ns;
		for (int i = 0; i < SYMBOLS_PIDS; i++)
			cpu_ns += told.run[i] ? cpu_ns_of(told.pids[i]) : 0;
	}
	pthread_mutex_unlock(&mutex);
	return cpu_ns;
}
