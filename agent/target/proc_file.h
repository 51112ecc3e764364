/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading /proc, for this room only.  A process may vanish between any two reads: whatever says so (ENOENT on opening,
 * ESRCH on reading) becomes -ESRCH.  Text that a process chose itself (comm, arguments, paths) is hostile.
 */
#ifndef WHYLATE_TARGET_PROC_FILE_H
#define WHYLATE_TARGET_PROC_FILE_H

#include "base/dirs.h"
#include "base/log.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct proc_stat {
	pid_t pid, ppid;
	char comm[16];
	char state;     /* R, S, D, Z, … */
	uint32_t flags; /* PF_* */
	uint32_t thread_cnt;
	uint64_t waited_ticks; /* CPU time of children that have ended and were waited for */
};

/* For tests: another tree in place of /proc from now on, NULL: /proc itself. */
void proc_set_root(const char *root);
/* A path below /proc, or below what stands for it. */
void proc_path(char *path, size_t sz, const char *fmt, ...) WL_PRINTF(3, 4);

/* A file of the process, `name` relative to /proc/PID.  NULL and errno. */
FILE *proc_open(pid_t pid, const char *name);
/* Up to sz - 1 bytes and a NUL.  The number of bytes, or -errno. */
ssize_t proc_read(char *buf, size_t sz, const char *path_fmt, ...) WL_PRINTF(3, 4);
/* A directory to read, for dir_next() and dir_close(); `path` is relative to /proc.  NULL and errno. */
DIR *proc_dir(const char *path_fmt, ...) WL_PRINTF(1, 2);
/* The next entry that is a number, of a process or a thread; 0: there is none. */
pid_t proc_next(DIR *dir);
/* The value of a key of /proc/PID/status, of a process or a thread.  0; -ESRCH: also if the key is missing. */
int proc_status(pid_t pid, const char *key, char *value, size_t sz);
/* The path of its program, "" when it may not be looked at; without the mark of a file that is gone. */
void proc_exe(pid_t pid, char *path, size_t sz);
/* /proc/PID/mem: a descriptor or -errno. */
int proc_mem_open(pid_t pid);
/* False unless it reads all bytes. */
bool proc_mem_read(int mem_fd, uint64_t addr, void *bytes, size_t sz);
/* Of a process or of a thread.  0 or -errno. */
int proc_stat_read(pid_t pid, struct proc_stat *stat);
/* The number in a link such as "socket:[1234]" or "net:[4026531840]"; 0 when it is not of that kind. */
uint64_t proc_link_number(const char *path, const char *kind);
/* Replaces control characters: what a target calls itself must not steer a terminal. */
void proc_make_printable(char *text);

#endif
