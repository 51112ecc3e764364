// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/priority.h"

#include "base/capabilities.h"
#include "base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes SCHED_IDLE for nice 20: leaving it is a rise to the thread's own nice value. */
#define NICE_TO_RLIMIT 20
#define NICE_HIGHEST   (-20)

/* The nice value that this program was started with. */
static int nice_of_start(void)
{
	static int nice_value = 20;

	if (nice_value == 20)
		nice_value = getpriority(PRIO_PROCESS, (id_t)getpid());
	return nice_value;
}

bool priority_can_return(void)
{
	cap_t caps = cap_get_proc();
	bool can = capability_had(caps, CAP_SYS_NICE);
	int nice_now = nice_of_start();
	struct rlimit limit;

	if (caps)
		cap_free(caps);
	if (!can && !getrlimit(RLIMIT_NICE, &limit))
		can = limit.rlim_cur >= (rlim_t)(NICE_TO_RLIMIT - nice_now);
	return can;
}

static int set_class(pid_t tid, int class)
{
	const struct sched_param param = {0};

	return sched_setscheduler(tid, class, &param) ? -errno : 0;
}

static int leave_preference(pid_t tid)
{
	return setpriority(PRIO_PROCESS, (id_t)tid, nice_of_start()) ? -errno : 0;
}

int priority_lower(pid_t tid)
{
	int err = set_class(tid, SCHED_IDLE);

	return err ? err : leave_preference(tid);
}

int priority_raise(pid_t tid)
{
	int err = leave_preference(tid);

	return err ? err : set_class(tid, SCHED_BATCH);
}

int priority_prefer(pid_t tid)
{
	/* In this order: without the privilege nothing changes. */
	if (setpriority(PRIO_PROCESS, (id_t)tid, NICE_HIGHEST))
		return -errno;
	return set_class(tid, SCHED_OTHER | SCHED_RESET_ON_FORK);
}

/* Of all threads of a process. */
static void each_thread(pid_t pid, void (*take)(pid_t tid))
{
	const struct dirent *entry;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = dir_open(AT_FDCWD, path, 0);
	while ((entry = dir_next(tasks)))
		take(atoi(entry->d_name));
	dir_close(tasks, 0);
}

static void raise_other(pid_t tid)
{
	if (tid != (pid_t)syscall(SYS_gettid) && sched_getscheduler(tid) == SCHED_IDLE)
		priority_raise(tid);
}

void priority_raise_others(void)
{
	each_thread(getpid(), raise_other);
}

static void prefer(pid_t tid)
{
	(void)priority_prefer(tid);
}

void priority_prefer_all(pid_t pid)
{
	each_thread(pid, prefer);
}

bool priority_cpus(const cpu_set_t *ours, const cpu_set_t *theirs, cpu_set_t *apart)
{
	CPU_XOR(apart, ours, theirs);
	CPU_AND(apart, apart, ours);
	return CPU_COUNT(apart) && !CPU_EQUAL(apart, ours);
}
