/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the servers of this directory share: HTTP over TCP, a thread (or a process) for each connection. */
#ifndef SERVE_H
#define SERVE_H

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BODY_SZ 32768

/* Writes the body of the reply to a path. */
typedef size_t answer_fn(const char *path, char *body);

static answer_fn *serve_answer;
static int serve_forks;

static inline uint64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* What every request costs: a digest for the log. */
static __attribute__((noinline)) uint32_t digest_reply(const char *body, size_t len)
{
	uint32_t sum = 1;

	for (int round = 0; round < 64; round++)
		for (size_t at = 0; at < len; at++)
			sum = (sum ^ (unsigned char)body[at]) * 16777619u;
	return sum;
}

static void *serve_connection(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char *in = (char *)malloc(4096), *body = (char *)malloc(BODY_SZ + 256), path[256], head[160];
	size_t got = 0;
	ssize_t cnt;

	while ((cnt = read(fd, in + got, 4095 - got)) > 0) {
		char *end;
		size_t len;
		int head_len;

		got += (size_t)cnt;
		in[got] = '\0';
		end = strstr(in, "\r\n\r\n");
		if (!end || sscanf(in, "GET %250s", path) != 1)
			continue;
		len = serve_answer(path, body + sizeof(head));
		if (len < 512) {
			memset(body + sizeof(head) + len, ' ', 512 - len);
			len = 512;
		}
		head_len =
			snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nX-Digest: %08x\r\nContent-Length: %zu\r\n\r\n",
				 digest_reply(body + sizeof(head), len), len);
		memcpy(body + sizeof(head) - head_len, head, (size_t)head_len);
		if (write(fd, body + sizeof(head) - head_len, (size_t)head_len + len) < 0)
			break;
		end += 4;
		got = (size_t)(in + got - end);
		memmove(in, end, got);
	}
	free(in);
	free(body);
	close(fd);
	return NULL;
}

static int serve(int argc, char **argv, answer_fn *answer)
{
	struct sockaddr_in address;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, client;
	pthread_t thread;

	if (argc < 2)
		return 2;
	serve_answer = answer;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64))
		return 1;
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		if (serve_forks) {
			if (!fork()) {
				close(fd);
				serve_connection((void *)(intptr_t)client);
				_exit(0);
			}
			close(client);
			continue;
		}
		if (pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)client))
			return 1;
		pthread_detach(thread);
	}
	return 0;
}

#endif
