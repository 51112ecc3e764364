// SPDX-License-Identifier: GPL-2.0-or-later
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 10

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port),
	};
}

int port_free(void)
{
	struct sockaddr_in addr = loopback(0);
	socklen_t addr_sz = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

	if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !getsockname(fd, (struct sockaddr *)&addr, &addr_sz))
		port = ntohs(addr.sin_port);
	close(fd);
	CHECK(port > 0);
	return port;
}

int port_connect(int port)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct sockaddr_in addr = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

static int unix_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

static bool accepts(struct process *server, int port, const char *path, unsigned int timeout_s)
{
	uint64_t deadline_ts = now_ns() + timeout_s * NS_PER_SEC;

	while (process_runs(server) && now_ns() < deadline_ts) {
		int fd = path ? unix_connect(path) : port_connect(port);

		if (fd >= 0) {
			close(fd);
			return true;
		}
		sleep_ms(10);
	}
	return CHECKF(false, "the server does not accept: %s%s", process_out(server), process_err(server));
}

bool port_wait(struct process *server, int port, unsigned int timeout_s)
{
	return accepts(server, port, NULL, timeout_s);
}

bool unix_wait(struct process *server, const char *path, unsigned int timeout_s)
{
	return accepts(server, 0, path, timeout_s);
}

static bool ask(int fd, const char *question, const char *answer_end)
{
	size_t end_sz = strlen(answer_end), have = 0;
	char answer[16384];

	if (send(fd, question, strlen(question), MSG_NOSIGNAL) != (ssize_t)strlen(question))
		return false;
	while (have < end_sz || memcmp(answer + have - end_sz, answer_end, end_sz)) {
		ssize_t got = have < sizeof(answer) ? recv(fd, answer + have, sizeof(answer) - have, 0) : 0;

		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

bool client_open(struct client *client, int port)
{
	for (int i = 0; i < client->connection_cnt; i++) {
		client->fds[i] = port_connect(port);
		if (!CHECKF(client->fds[i] >= 0, "port %d: %s", port, strerror(errno))) {
			client->connection_cnt = i;
			return false;
		}
	}
	return true;
}

bool client_run(struct client *client)
{
	uint64_t wanted = (uint64_t)client->connection_cnt * client->requests_each, sum_ns = 0, begin_ts;

	client->answer_cnt = 0;
	for (unsigned int i = 0; i < client->requests_each; i++) {
		for (int c = 0; c < client->connection_cnt; c++) {
			begin_ts = now_ns();
			if (!ask(client->fds[c], client->question, client->answer_end))
				break;
			sum_ns += now_ns() - begin_ts;
			client->answer_cnt++;
		}
		if (client->pause_us) {
			struct timespec pause = {.tv_nsec = client->pause_us * 1000L};

			nanosleep(&pause, NULL);
		}
	}
	client->mean_ns = client->answer_cnt ? (double)sum_ns / (double)client->answer_cnt : 0;
	return CHECKF(client->answer_cnt == wanted, "%lu of %lu answered", client->answer_cnt, wanted);
}

void client_close(struct client *client)
{
	for (int i = 0; i < client->connection_cnt; i++)
		close(client->fds[i]);
	client->connection_cnt = 0;
}

bool port_answers(int port, const char *question, const char *answer)
{
	int fd = port_connect(port);
	bool good = fd >= 0 && ask(fd, question, answer);

	if (fd >= 0)
		close(fd);
	return good;
}
