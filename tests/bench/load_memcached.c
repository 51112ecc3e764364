// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A closed loop of memcached requests: nine gets to one set, one request at a time on each connection.
 *
 *	load_memcached PORT CONNECTIONS REQUESTS
 *
 * One line on stdout: requests, seconds, p50 and p99 in microseconds.  memcaslap tells no percentiles, and what does is
 * so slow that it would be what is measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define KEY_CNT    10000
#define VALUE_SZ   64
#define CONN_MAX   256
#define BUCKET_CNT 100000 /* of 1 µs; the last one takes the rest */

struct connection {
	int fd;
	uint64_t sent_ns;
	size_t reply_sz; /* of the reply so far */
	char reply[512];
};

static struct connection connections[CONN_MAX];
static uint64_t latency_cnt[BUCKET_CNT];
static char value[VALUE_SZ + 1];

static void die(const char *what)
{
	fprintf(stderr, "load_memcached: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void send_request(struct connection *connection, uint64_t number)
{
	uint64_t key = number * 7919 % KEY_CNT; /* a prime: all keys come up in turn */
	char request[256];
	int sz;

	if (number % 10)
		sz = snprintf(request, sizeof(request), "get key%05llu\r\n", (unsigned long long)key);
	else
		sz = snprintf(request, sizeof(request), "set key%05llu 0 0 %d\r\n%s\r\n", (unsigned long long)key,
			      VALUE_SZ, value);
	connection->reply_sz = 0;
	connection->sent_ns = now_ns();
	if (write(connection->fd, request, sz) != sz)
		die("write");
}

/* 1 when the reply is complete. */
static int take_reply(struct connection *connection)
{
	static const char *const ends[] = {"END\r\n", "STORED\r\n"};
	ssize_t sz = read(connection->fd, connection->reply + connection->reply_sz,
			  sizeof(connection->reply) - connection->reply_sz);

	if (sz <= 0)
		die("read");
	connection->reply_sz += sz;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end_sz = strlen(ends[i]);

		if (connection->reply_sz >= end_sz &&
		    !memcmp(connection->reply + connection->reply_sz - end_sz, ends[i], end_sz))
			return 1;
	}
	if (connection->reply_sz == sizeof(connection->reply) || !strncmp(connection->reply, "ERROR", 5)) {
		errno = EPROTO;
		die("reply");
	}
	return 0;
}

static void count_latency(uint64_t length_ns)
{
	uint64_t bucket = length_ns / 1000;

	latency_cnt[bucket < BUCKET_CNT ? bucket : BUCKET_CNT - 1]++;
}

static unsigned long percentile_us(uint64_t total, double share)
{
	uint64_t below = 0;

	for (unsigned long i = 0; i < BUCKET_CNT; i++) {
		below += latency_cnt[i];
		if (below >= total * share)
			return i;
	}
	return BUCKET_CNT;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event events[CONN_MAX];
	uint64_t wanted, sent_cnt = 0, done_cnt = 0, begin_ns;
	int epoll_fd, on = 1, connection_cnt;

	if (argc != 4) {
		fprintf(stderr, "usage: load_memcached PORT CONNECTIONS REQUESTS\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[1]));
	connection_cnt = atoi(argv[2]);
	wanted = strtoull(argv[3], NULL, 10);
	if (connection_cnt < 1 || connection_cnt > CONN_MAX || !wanted) {
		fprintf(stderr, "load_memcached: 1 to %d connections, at least one request\n", CONN_MAX);
		return 2;
	}
	memset(value, 'v', VALUE_SZ);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		die("epoll_create1");
	for (int i = 0; i < connection_cnt; i++) {
		struct connection *connection = &connections[i];
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

		connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof(address)))
			die("connect");
		setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connection->fd, &event))
			die("epoll_ctl");
	}
	begin_ns = now_ns();
	for (int i = 0; i < connection_cnt && sent_cnt < wanted; i++)
		send_request(&connections[i], sent_cnt++);
	while (done_cnt < wanted) {
		int ready_cnt = epoll_wait(epoll_fd, events, CONN_MAX, 10000);

		if (ready_cnt <= 0)
			die("epoll_wait");
		for (int i = 0; i < ready_cnt; i++) {
			struct connection *connection = events[i].data.ptr;

			if (!take_reply(connection))
				continue;
			count_latency(now_ns() - connection->sent_ns);
			done_cnt++;
			if (sent_cnt < wanted)
				send_request(connection, sent_cnt++);
		}
	}
	printf("%llu %.6f %lu %lu\n", (unsigned long long)done_cnt, (now_ns() - begin_ns) / 1e9,
	       percentile_us(done_cnt, 0.5), percentile_us(done_cnt, 0.99));
	return 0;
}
