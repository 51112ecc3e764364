// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/proc_file.h"

#include "base/text.h"
#include "base/whole_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC_PATH_SZ (64 + 2 * NAME_MAX)

static const char *proc_root = "/proc";

void proc_set_root(const char *root)
{
	proc_root = root ?: "/proc";
}

void proc_path(char *path, size_t sz, const char *fmt, ...)
{
	int len = snprintf(path, sz, "%s/", proc_root);
	va_list args;

	va_start(args, fmt);
	if (len > 0 && (size_t)len < sz)
		vsnprintf(path + len, sz - len, fmt, args);
	va_end(args);
}

void proc_exe(pid_t pid, char *path, size_t sz)
{
	char link[PROC_PATH_SZ];
	ssize_t len;

	proc_path(link, sizeof(link), "%d/exe", pid);
	len = readlink(link, path, sz - 1);
	path[len > 0 ? len : 0] = '\0';
	if (text_ends(path, " (deleted)"))
		path[len - 10] = '\0';
}

FILE *proc_open(pid_t pid, const char *name)
{
	char path[PROC_PATH_SZ];
	FILE *file;

	proc_path(path, sizeof(path), "%d/%s", pid, name);
	file = fopen(path, "re");
	if (!file && errno == ENOENT)
		errno = ESRCH;
	return file;
}

ssize_t proc_read(char *buf, size_t sz, const char *path_fmt, ...)
{
	char path[PROC_PATH_SZ], below[NAME_MAX];
	va_list args;
	ssize_t got;
	int fd;

	va_start(args, path_fmt);
	vsnprintf(below, sizeof(below), path_fmt, args);
	va_end(args);
	/* Of /proc in its own words. */
	proc_path(path, sizeof(path), "%s", strncmp(below, "/proc/", 6) ? below : below + 6);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	got = whole_read(fd, buf, sz - 1, IO_HERE);
	close(fd);
	if (got >= 0)
		buf[got] = '\0';
	return got;
}

DIR *proc_dir(const char *path_fmt, ...)
{
	char path[PROC_PATH_SZ], below[NAME_MAX];
	va_list args;

	va_start(args, path_fmt);
	vsnprintf(below, sizeof(below), path_fmt, args);
	va_end(args);
	proc_path(path, sizeof(path), "%s", below);
	return dir_open(AT_FDCWD, path, 0);
}

pid_t proc_next(DIR *dir)
{
	const struct dirent *entry;
	pid_t id = 0;

	while (id <= 0 && (entry = dir_next(dir)))
		id = atoi(entry->d_name);
	return id > 0 ? id : 0;
}

int proc_status(pid_t pid, const char *key, char *value, size_t sz)
{
	char text[8192], label[32], *line;
	ssize_t len = proc_read(text, sizeof(text), "%d/status", pid);

	if (len < 0)
		return (int)len;
	snprintf(label, sizeof(label), "\n%s:", key);
	line = strstr(text, label);
	if (!line)
		return -ESRCH;
	line += strlen(label);
	line += strspn(line, " \t");
	snprintf(value, sz, "%.*s", (int)strcspn(line, "\n"), line);
	return 0;
}

int proc_mem_open(pid_t pid)
{
	char path[PROC_PATH_SZ];
	int fd;

	proc_path(path, sizeof(path), "%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

bool proc_mem_read(int mem_fd, uint64_t addr, void *bytes, size_t sz)
{
	return mem_fd >= 0 && addr && addr <= INT64_MAX && pread(mem_fd, bytes, sz, (off_t)addr) == (ssize_t)sz;
}

int proc_stat_read(pid_t pid, struct proc_stat *stat)
{
	char buf[1024], *comm, *after;
	ssize_t len = proc_read(buf, sizeof(buf), "/proc/%d/stat", pid);
	int64_t user_ticks, system_ticks;

	if (len < 0)
		return len;
	/* The comm may hold blanks and parentheses, nothing after it does. */
	comm = strchr(buf, '(');
	after = strrchr(buf, ')');
	if (!comm || !after || after < comm)
		return -ESRCH;
	*after++ = '\0';
	memset(stat, 0, sizeof(*stat));
	stat->pid = pid;
	snprintf(stat->comm, sizeof(stat->comm), "%s", comm + 1);
	proc_make_printable(stat->comm);
	if (sscanf(after, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %ld %ld %*d %*d %u", &stat->state,
		   &stat->ppid, &stat->flags, &user_ticks, &system_ticks, &stat->thread_cnt) != 6)
		return -ESRCH;
	stat->waited_ticks = (user_ticks > 0 ? user_ticks : 0) + (system_ticks > 0 ? system_ticks : 0);
	return 0;
}

uint64_t proc_link_number(const char *path, const char *kind)
{
	size_t kind_len = strlen(kind);
	char link[64], *end;
	ssize_t len = readlink(path, link, sizeof(link) - 1);
	uint64_t number;

	if (len <= 0)
		return 0;
	link[len] = '\0';
	if (strncmp(link, kind, kind_len) || strncmp(link + kind_len, ":[", 2))
		return 0;
	errno = 0;
	number = strtoull(link + kind_len + 2, &end, 10);
	return errno || strcmp(end, "]") ? 0 : number;
}

void proc_make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}
