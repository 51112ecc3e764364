// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/priority.h"

#include "base/capabilities.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes SCHED_IDLE for nice 20: leaving it is a rise to the thread's own nice value. */
#define NICE_TO_RLIMIT 20

bool priority_can_return(void)
{
	cap_t caps = cap_get_proc();
	bool can = capability_had(caps, CAP_SYS_NICE);
	int nice_now = getpriority(PRIO_PROCESS, 0);
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

int priority_lower(pid_t tid)
{
	return set_class(tid, SCHED_IDLE);
}

int priority_raise(pid_t tid)
{
	return set_class(tid, SCHED_BATCH);
}

void priority_raise_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	pid_t self = (pid_t)syscall(SYS_gettid);
	const struct dirent *entry;

	while (tasks && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && tid != self && sched_getscheduler(tid) == SCHED_IDLE)
			priority_raise(tid);
	}
	if (tasks)
		closedir(tasks);
}

bool priority_cpus(const cpu_set_t *ours, const cpu_set_t *theirs, cpu_set_t *apart)
{
	CPU_XOR(apart, ours, theirs);
	CPU_AND(apart, apart, ours);
	return CPU_COUNT(apart) && !CPU_EQUAL(apart, ours);
}
