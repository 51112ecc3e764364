// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "base/user_file.h"
#include "target/proc_file.h"
#include "target/target.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLAG_KTHREAD 0x00200000 /* PF_KTHREAD */
#define PID_LIMIT    (1 << 22)  /* the kernel's PID_MAX_LIMIT on 64 bits */
#define TREE_ROUNDS  4

static pid_t read_tgid(pid_t tid)
{
	char text[16];
	int err = proc_status(tid, "Tgid", text, sizeof(text));

	return err ?: atoi(text);
}

static int check_unreadable(pid_t pid, int err)
{
	/* With hidepid= a process of somebody else has no directory at all. */
	if (err == -EACCES || err == -EPERM || (err == -ESRCH && (!kill(pid, 0) || errno == EPERM))) {
		log_error("process %d may not be inspected: permission denied: %s", pid,
			  geteuid() ? "run whylate as root"
				    : "root of this container has no CAP_SYS_PTRACE over it, or a security module "
				      "forbids it; run whylate on the host");
		return -EACCES;
	}
	if (err == -ESRCH)
		log_error("there is no process %d: see `ps -e` for those that there are", pid);
	else
		log_error("process %d cannot be inspected: %s: is /proc mounted?", pid, strerror(-err));
	return err;
}

static int check_program(pid_t pid, const char *comm)
{
	unsigned char ident[EI_NIDENT + 1] = {0};
	ssize_t len = proc_read((char *)ident, sizeof(ident), "/proc/%d/exe", pid);

	if (len < 0)
		return check_unreadable(pid, len);
	if (len < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG)) {
		log_error("process %d (%s) does not run an ELF program: whylate cannot record it", pid, comm);
		return -ENOTSUP;
	}
	if (ident[EI_CLASS] != ELFCLASS64) {
		log_error("process %d (%s) runs a 32-bit program: whylate records 64-bit programs only", pid, comm);
		return -ENOTSUP;
	}
	return 0;
}

int target_check(pid_t pid)
{
	struct proc_stat stat;
	pid_t tgid;
	int err;

	if (pid <= 0) {
		log_error("%d is not a process id: give the id of a running process", pid);
		return -EINVAL;
	}
	err = proc_stat_read(pid, &stat);
	if (err)
		return check_unreadable(pid, err);
	tgid = read_tgid(pid);
	if (tgid < 0)
		return check_unreadable(pid, tgid);
	if (tgid == getpid()) {
		log_error("process %d is whylate itself: give the id of another process", pid);
		return -EINVAL;
	}
	if (stat.flags & FLAG_KTHREAD) {
		log_error("process %d (%s) is a kernel thread: give the id of a user program", pid, stat.comm);
		return -EINVAL;
	}
	if (tgid != pid) {
		log_error("%d is a thread of process %d: use -p %d", pid, tgid, tgid);
		return -EINVAL;
	}
	if (stat.state == 'Z' && stat.thread_cnt > 1) {
		log_error("process %d (%s) has ended its main thread, so its memory map cannot be read: not supported",
			  pid, stat.comm);
		return -ENOTSUP;
	}
	if (stat.state == 'Z' || stat.state == 'X') {
		log_error("process %d (%s) has exited and waits for its parent %d to reap it: nothing to record", pid,
			  stat.comm, stat.ppid);
		return -ESRCH;
	}
	err = user_may_trace(pid);
	if (err) {
		log_error("process %d (%s) is another user's: record it as root, or as that user (" USER_ANY_TARGET
			  " lets the users of this program record every process)",
			  pid, stat.comm);
		return err;
	}
	return check_program(pid, stat.comm);
}

static bool seen_test_and_set(uint8_t *seen, pid_t pid)
{
	bool was = seen[pid / 8] & 1 << pid % 8;

	seen[pid / 8] |= 1 << pid % 8;
	return was;
}

/* Adds pid unless it is known, gone or dead. */
static int tree_add(target_processes *processes, uint8_t *seen, pid_t pid)
{
	struct target_process process = {0};
	struct proc_stat stat;

	if (pid <= 0 || pid >= PID_LIMIT || proc_stat_read(pid, &stat))
		return 0;
	if (stat.state == 'Z' || stat.state == 'X' || seen_test_and_set(seen, pid))
		return 0;
	process.pid = pid;
	process.ppid = stat.ppid;
	memcpy(process.comm, stat.comm, sizeof(process.comm));
	return vec_push(processes, process);
}

/* The children of one process as each of its threads lists them (CONFIG_PROC_CHILDREN). */
static int tree_add_listed(target_processes *processes, uint8_t *seen, pid_t parent)
{
	DIR *dir = proc_dir("%d/task", parent);
	int err = 0, pid;
	char name[64];
	FILE *list;
	pid_t tid;

	while (!err && (tid = proc_next(dir))) {
		snprintf(name, sizeof(name), "task/%d/children", tid);
		list = proc_open(parent, name);
		if (!list)
			continue;
		while (!err && fscanf(list, "%d", &pid) == 1)
			err = tree_add(processes, seen, pid);
		fclose(list);
	}
	dir_close(dir, 0);
	return err;
}

/* Where the kernel keeps no lists of children: one look at everybody's parent. */
static int tree_add_scanned(target_processes *processes, uint8_t *seen)
{
	VEC(struct proc_stat) all = {0};
	DIR *dir = proc_dir(".");
	struct proc_stat stat;
	bool grown = true;
	int err = 0;
	pid_t pid;

	while (!err && (pid = proc_next(dir)))
		if (pid < PID_LIMIT && !proc_stat_read(pid, &stat) && stat.ppid > 0 && stat.ppid < PID_LIMIT)
			err = vec_push(&all, stat);
	err = dir_close(dir, err);
	/* One pass per generation, as pids wrap and a child may come before its parent. */
	while (grown && !err) {
		size_t before = processes->cnt;

		for (size_t i = 0; i < all.cnt && !err; i++)
			if (seen[all.items[i].ppid / 8] & 1 << all.items[i].ppid % 8)
				err = tree_add(processes, seen, all.items[i].pid);
		grown = processes->cnt > before;
	}
	vec_free(&all);
	return err;
}

int target_tree(pid_t pid, target_processes *processes)
{
	uint8_t *seen = calloc(1, PID_LIMIT / 8);
	bool listed = !access("/proc/thread-self/children", R_OK);
	size_t before;
	int err;

	if (!seen)
		return -ENOMEM;
	err = tree_add(processes, seen, pid);
	if (!err && !processes->cnt)
		err = -ESRCH;
	/* A child forked behind the reader's back shows up in the next round. */
	for (int round = 0; !err && round < TREE_ROUNDS; round++) {
		before = processes->cnt;
		if (listed)
			for (size_t i = 0; i < processes->cnt && !err; i++)
				err = tree_add_listed(processes, seen, processes->items[i].pid);
		else
			err = tree_add_scanned(processes, seen);
		if (processes->cnt == before)
			break;
	}
	free(seen);
	return err;
}

int target_processes_read(target_processes *processes)
{
	DIR *dir = proc_dir(".");
	int err = 0;
	pid_t pid;

	while (!err && (pid = proc_next(dir))) {
		struct target_process process = {.pid = pid};
		struct proc_stat stat;

		if (process.pid == getpid() || proc_stat_read(process.pid, &stat) || stat.flags & FLAG_KTHREAD ||
		    stat.state == 'Z' || stat.state == 'X')
			continue;
		process.ppid = stat.ppid;
		memcpy(process.comm, stat.comm, sizeof(process.comm));
		err = vec_push(processes, process);
	}
	return dir_close(dir, err);
}

int target_comm(pid_t pid, pid_t tid, char comm[16])
{
	char buf[64];
	ssize_t len = proc_read(buf, sizeof(buf), "/proc/%d/task/%d/comm", pid, tid ? tid : pid);

	if (len < 0)
		return len;
	/* The comm itself may hold a newline: only the last one is the kernel's. */
	if (len && buf[len - 1] == '\n')
		buf[len - 1] = '\0';
	proc_make_printable(buf);
	snprintf(comm, 16, "%.15s", buf);
	return 0;
}

uint32_t target_netns(pid_t pid)
{
	char path[PATH_MAX];

	proc_path(path, sizeof(path), "%d/ns/net", pid);
	return proc_link_number(path, "net");
}

uint64_t target_cpu_ns(const target_processes *processes)
{
	uint64_t sum_ns = 0, tick_ns = 1000000000ULL / sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	struct timespec cpu;
	clockid_t clock;

	/*
	 * The scheduler's own sum, as in task/TID/schedstat, but without losing what threads that have exited used:
	 * a sum over the living threads goes backwards.
	 */
	for (size_t i = 0; i < processes->cnt; i++) {
		if (!clock_getcpuclockid(processes->items[i].pid, &clock) && !clock_gettime(clock, &cpu))
			sum_ns += cpu.tv_sec * 1000000000ULL + cpu.tv_nsec;
		if (!proc_stat_read(processes->items[i].pid, &stat))
			sum_ns += stat.waited_ticks * tick_ns;
	}
	return sum_ns;
}
