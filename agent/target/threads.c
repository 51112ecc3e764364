// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/proc_file.h"
#include "target/target.h"

#include <inttypes.h>
#include <stdio.h>

static int add_thread(pid_t pid, pid_t tid, target_threads *threads)
{
	struct target_thread thread = {.pid = pid, .tid = tid};
	char buf[128];

	/* A kernel without schedstat counts no thread's time: none is busy then. */
	if (proc_read(buf, sizeof(buf), "/proc/%d/task/%d/schedstat", pid, tid) < 0 ||
	    sscanf(buf, "%" SCNu64, &thread.cpu_ns) != 1)
		return 0;
	return vec_push(threads, thread);
}

void target_cpus(pid_t pid, cpu_set_t *cpus)
{
	DIR *dir = proc_dir("%d/task", pid);
	cpu_set_t of_thread;
	pid_t tid;

	while ((tid = proc_next(dir)))
		if (!sched_getaffinity(tid, sizeof(of_thread), &of_thread))
			CPU_OR(cpus, cpus, &of_thread);
	dir_close(dir, 0);
}

/* One that has gone has no threads. */
static int add_process(pid_t pid, target_threads *threads)
{
	DIR *dir = proc_dir("%d/task", pid);
	int err = 0;
	pid_t tid;

	while (!err && threads->cnt < TARGET_THREADS_MAX && (tid = proc_next(dir)))
		err = add_thread(pid, tid, threads);
	dir_close(dir, 0);
	return err;
}

int target_threads_read(const target_processes *processes, target_threads *threads)
{
	int err = 0;

	threads->cnt = 0;
	for (size_t i = 0; !err && i < processes->cnt; i++)
		err = add_process(processes->items[i].pid, threads);
	return err;
}
