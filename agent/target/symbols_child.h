/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a whylate-symbols process (symbols_process.c) as the agent sees it.  There may be several; what all of
 * them have taken is counted here.  Any thread; one child belongs to one thread at a time.
 */
#ifndef WHYLATE_TARGET_SYMBOLS_CHILD_H
#define WHYLATE_TARGET_SYMBOLS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Of CPU time for one question. */
#define SYMBOLS_CPU_S 6
/* Of memory, beyond what it begins with. */
#define SYMBOLS_MEMORY (256UL << 20)
#define SYMBOLS_FDS    2
/* Processes that symbols_children_pids() tells of. */
#define SYMBOLS_PIDS 8

struct symbols_child {
	pid_t pid;
	int socket_fd; /* -1: there is no process */
	rlim_t cpu_limit_s;
};

#define SYMBOLS_CHILD_NONE {.socket_fd = -1}

/* What one does that is not begun to answer the questions of symbols_wire.h. */
struct symbols_work {
	/* Runs confined, with a copy of the agent's memory; the process ends behind it.  NULL: it answers questions. */
	void (*run)(int socket_fd, void *ctx);
	void *ctx;
	int fds[SYMBOLS_FDS]; /* files that it has, as SYMBOLS_FIRST_FD and the next */
	size_t fd_cnt;
	bool fetches;    /* it is whylate-fetch: the network, threads and the user's files are left to it */
	uint64_t memory; /* 0: SYMBOLS_MEMORY */
	rlim_t cpu_s;    /* of CPU time in all; 0: see symbols_child__limit_cpu() */
};
#define SYMBOLS_FIRST_FD 4

/* 0 or -errno. */
int symbols_child__start(struct symbols_child *child);
int symbols_child__start_work(struct symbols_child *child, const struct symbols_work *work);
/* Ends and reaps it: its status, as of waitpid().  Nothing happens where there is none: 0. */
int symbols_child__end(struct symbols_child *child);
/* SIGXCPU ends it SYMBOLS_CPU_S of CPU time from now. */
void symbols_child__limit_cpu(struct symbols_child *child);
/* CPU time that it has taken; 0: there is no process. */
uint64_t symbols_child__cpu_ns(const struct symbols_child *child);
/* A packet to the process, with a descriptor unless that is negative, without waiting.  False: it is gone. */
bool symbols_child__send(const struct symbols_child *child, const void *question, size_t sz, int fd);

/* Those of this process, the latest first, all that run among them: how many of them are told. */
size_t symbols_children_pids(pid_t pids[SYMBOLS_PIDS]);
/* How many have begun. */
uint32_t symbols_children_starts(void);
/* CPU time that all of them have taken. */
uint64_t symbols_children_cpu_ns(void);

#endif
