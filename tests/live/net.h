/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loopback: ports, and a bounded client whose number of requests is known exactly. */
#ifndef WHYLATE_TESTS_NET_H
#define WHYLATE_TESTS_NET_H

#include "harness.h"

/* A port nobody listens on now. */
int port_free(void);
/* Until it accepts; false when the server ends or time is up. */
bool port_wait(struct process *server, int port, unsigned int timeout_s);
bool unix_wait(struct process *server, const char *path, unsigned int timeout_s);
int port_connect(int port);

#define CLIENT_CONNECTIONS_MAX 64

/* Asks the same question over and over; an answer is complete when it ends in `answer_end`. */
struct client {
	const char *question, *answer_end;
	int connection_cnt;
	unsigned int requests_each;
	unsigned int pause_us; /* between an answer and the next question */
	int fds[CLIENT_CONNECTIONS_MAX];
	/* results */
	uint64_t answer_cnt;
	double mean_ns;
};

bool client_open(struct client *client, int port);
/* One thread; connections take turns with a question each. True if all were answered. */
bool client_run(struct client *client);
void client_close(struct client *client);

/* A server that answers PING with a line ("PING\r\n" → "+PONG"): true if it does. */
bool port_answers(int port, const char *question, const char *answer);

#endif
