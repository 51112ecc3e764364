// SPDX-License-Identifier: GPL-2.0-or-later
/* Who runs a program. */
#include "target/proc_file.h"
#include "target/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Deeper trees of processes do not occur. */
#define ANCESTORS_MAX 64

/* -errno where it has no program (a kernel thread, one that has ended), or may not be looked at. */
static int runs(pid_t pid, const struct stat *file)
{
	struct stat own;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &own))
		return -errno;
	return own.st_dev == file->st_dev && own.st_ino == file->st_ino;
}

bool target_runs(pid_t pid, int file_fd)
{
	struct stat file;

	return !fstat(file_fd, &file) && runs(pid, &file) > 0;
}

/* It may have been forked a moment ago. */
static bool is_of_target(pid_t pid, const pid_t *target, size_t cnt)
{
	struct proc_stat stat;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		for (size_t j = 0; j < cnt; j++)
			if (target[j] == pid)
				return true;
		/* Who has gone meanwhile runs nothing. */
		if (proc_stat_read(pid, &stat))
			return !i;
		pid = stat.ppid;
	}
	return false;
}

/* Who may not be looked at is known by its name only. */
static bool may_run(pid_t pid, const struct stat *file, const char *comm)
{
	struct proc_stat stat;
	int ret = runs(pid, file);

	if (ret != -EACCES && ret != -EPERM)
		return ret > 0;
	return !proc_stat_read(pid, &stat) && !strcmp(stat.comm, comm);
}

bool target_runs_alone(const pid_t *target, size_t cnt, int file_fd)
{
	struct proc_stat own;
	struct stat file;
	bool alone;
	pid_t pid;
	DIR *dir;

	if (fstat(file_fd, &file) || proc_stat_read(target[0], &own))
		return false;
	dir = proc_dir(".");
	alone = dir;
	while (alone && (pid = proc_next(dir)))
		alone = !may_run(pid, &file, own.comm) || is_of_target(pid, target, cnt);
	dir_close(dir, 0);
	return alone;
}
