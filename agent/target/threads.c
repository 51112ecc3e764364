// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/proc_file.h"
#include "target/target.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int add_thread(pid_t pid, const char *name, target_threads *threads)
{
	struct target_thread thread = {.pid = pid};
	char buf[128];

	/* A kernel without schedstat counts no thread's time: none is busy then. */
	if (sscanf(name, "%d", &thread.tid) != 1 ||
	    proc_read(buf, sizeof(buf), "/proc/%d/task/%d/schedstat", pid, thread.tid) < 0 ||
	    sscanf(buf, "%" SCNu64, &thread.cpu_ns) != 1)
		return 0;
	return vec_push(threads, thread);
}

void target_cpus(pid_t pid, cpu_set_t *cpus)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);
		cpu_set_t of_thread;

		if (tid > 0 && !sched_getaffinity(tid, sizeof(of_thread), &of_thread))
			CPU_OR(cpus, cpus, &of_thread);
	}
	if (dir)
		closedir(dir);
}

static int add_process(pid_t pid, target_threads *threads)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	/* It has gone. */
	if (!dir)
		return 0;
	while (!err && threads->cnt < TARGET_THREADS_MAX && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = add_thread(pid, entry->d_name, threads);
	closedir(dir);
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
