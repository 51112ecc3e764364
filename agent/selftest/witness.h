/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The witness process of a self-test: forked, recorded, and told what to do.  It answers what it knows of it by itself.
 * The caller's side; everything has a time limit, so that a witness that hangs is an error.
 */
#ifndef WHYLATE_SELFTEST_WITNESS_H
#define WHYLATE_SELFTEST_WITNESS_H

#include "selftest/deed.h"

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* The functions of this program that the self-test probes, in the order of its symbol list. */
#define WITNESS_DEED  "whylate_selftest_deed"
#define WITNESS_QUICK "whylate_selftest_quick"

/* What comes of WITNESS_BROOD: so many children, and calls of WITNESS_QUICK by each. */
#define WITNESS_BROOD_CNT   24
#define WITNESS_BROOD_CALLS 5

enum witness_task {
	WITNESS_DO,       /* arg: enum deed_kind */
	WITNESS_BURST,    /* arg: so many calls of WITNESS_QUICK */
	WITNESS_PACED,    /* the same, one in a millisecond */
	WITNESS_TEXT,     /* object: as witness_text() has it */
	WITNESS_BROOD,    /* children that call WITNESS_QUICK from their beginning to their end; inner: so often */
	WITNESS_FORK,     /* a child that waits; other_tid: its pid */
	WITNESS_CHILD_GO, /* the child sleeps in one call, then becomes another program and ends */
	WITNESS_LISTEN,   /* begin to listen on a new port: object */
	WITNESS_SERVE,    /* arg: enum witness_socket: one connection, WITNESS_REQUESTS requests */
	WITNESS_SERVE_IN_CHILD,
	WITNESS_SERVE_FILE, /* the same; the replies come out of a file, by sendfile() */
	WITNESS_DESERT,     /* accept, read one request, close the connection */
};

enum witness_socket {
	WITNESS_TCP,
	WITNESS_TCP_LATE, /* since WITNESS_LISTEN */
	WITNESS_UNIX,
	WITNESS_UDP,
	WITNESS_SOCKET_CNT
};

#define WITNESS_REQUESTS 6

/* How the server saw one request. */
struct witness_request {
	uint64_t recv_call_ts, recv_return_ts, send_call_ts, send_return_ts;
};

struct witness_answer {
	struct deed_report report;
	struct witness_request requests[WITNESS_REQUESTS];
};

struct witness {
	pid_t pid; /* 0: none */
	int order_fd, answer_fd;
	uint16_t ports[WITNESS_SOCKET_CNT]; /* 0: it does not listen there */
	struct sockaddr_un unix_addr;
	uint32_t unix_addr_sz;         /* 0: it does not listen there */
	char why_no_net[DEED_WHY_LEN]; /* "": it listens on the loopback device */
};

/*
 * This program in a file of its own, which nobody else runs: a descriptor that the caller closes, or -errno where files
 * in memory cannot be had, or not be run.
 */
int witness_program(void);
/* program_fd: what it runs, -1 for this program as it is. 0 or -errno. */
int witness_start(struct witness *witness, int program_fd);
/* Be one that was started with a program_fd: orders on stdin, answers on stdout. */
_Noreturn void witness_run(void);
/* Tells it what to do. 0 or -errno. */
int witness_order(struct witness *witness, enum witness_task task, uint32_t arg);
/* What it answers to the oldest order. 0, -ETIMEDOUT, or -EPIPE: it has ended. */
int witness_answer(struct witness *witness, struct witness_answer *answer);
void witness_stop(struct witness *witness);

/* What WITNESS_QUICK of the calling process begins with, as a number: a probe in it makes it another one. */
uint64_t witness_text(void);

#endif
