// SPDX-License-Identifier: GPL-2.0-or-later
/* What the servers with a planted cause share, in C and in C++: work of a known length, naps, sockets. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "switch.h"

#define MS       1000000ULL
#define SLOW_NS  (16 * MS)
#define GET_NS   (MS / 20)
#define NOINLINE static __attribute__((noinline))

static const char *plant;
static __attribute__((unused)) uint64_t turns_per_ms;
static volatile uint64_t sink;

static inline bool is(const char *name)
{
	return !strcmp(plant, name);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static inline void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

/* --- work: leaves that are alike everywhere, and functions that repeat them --------------------------------------- */

NOINLINE uint64_t mix_key(uint64_t x)
{
	for (int i = 0; i < 40; i++)
		x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
	return x;
}

NOINLINE uint64_t compare_key(uint64_t x)
{
	for (int i = 0; i < 40; i++)
		x = (x << 7 | x >> 57) + 0x94d049bb133111ebULL;
	return x;
}

#define WORK(name)                                                       \
	NOINLINE void name(uint64_t ns)                                  \
	{                                                                \
		uint64_t turns = ns * turns_per_ms / MS, x = sink;       \
                                                                         \
		for (uint64_t i = 0; i < turns; i++)                     \
			x = i & 1 ? mix_key(x + i) : compare_key(x ^ i); \
		sink = x;                                                \
	}

WORK(answer_get)

static inline void calibrate(void)
{
	uint64_t least = UINT64_MAX;

	turns_per_ms = 1;
	for (int i = 0; i < 20; i++) {
		uint64_t begin = now_ns();

		answer_get(2000 * MS);
		if (now_ns() - begin < least)
			least = now_ns() - begin;
	}
	turns_per_ms = 2000 * MS / least;
}

static inline void nap(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* --- sockets ------------------------------------------------------------------------------------------------------ */

static inline struct sockaddr_in loopback(int port)
{
	struct sockaddr_in at = {};

	at.sin_family = AF_INET;
	at.sin_port = htons((uint16_t)port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

static inline int listen_at(int port)
{
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 64)) {
		perror("listen");
		exit(1);
	}
	return fd;
}

static inline int connect_to(int port)
{
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	for (int i = 0; i < 100 && connect(fd, (struct sockaddr *)&at, sizeof(at)); i++)
		nap(20 * MS);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static inline bool read_line(int fd, char *line, size_t sz)
{
	ssize_t len = read(fd, line, sz - 1);

	if (len <= 0)
		return false;
	line[len] = '\0';
	return true;
}

static inline void say(int fd, const char *line)
{
	if (write(fd, line, strlen(line)) < 0 && errno != EPIPE)
		perror("write");
}
