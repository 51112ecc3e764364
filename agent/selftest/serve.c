// SPDX-License-Identifier: GPL-2.0-or-later
/* The witness as a server: it is busy for a while before it looks at each request. */
#include "base/clock.h"
#include "selftest/scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUSY_NS (DEED_WAIT_NS / 2)

static void limit_waits(int fd)
{
	struct timeval limit = {.tv_sec = 10};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* A machine that has just booted may not have its loopback device up. */
static int loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request)) {
		err = -errno;
	} else if (!(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		err = ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int listen_inet(int type, uint16_t *port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t addr_sz = sizeof(addr);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || (type == SOCK_STREAM && listen(fd, 8)) ||
	    getsockname(fd, (struct sockaddr *)&addr, &addr_sz)) {
		err = -errno;
		close(fd);
		return err;
	}
	limit_waits(fd);
	*port = ntohs(addr.sin_port);
	return fd;
}

/* An abstract name, so that no file system is needed. */
static int listen_unix(struct witness *witness)
{
	struct sockaddr_un *addr = &witness->unix_addr;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	addr->sun_family = AF_UNIX;
	snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "whylate-selftest-%d", (int)getpid());
	witness->unix_addr_sz = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(addr->sun_path + 1);
	if (bind(fd, (struct sockaddr *)addr, witness->unix_addr_sz) || listen(fd, 8)) {
		err = -errno;
		witness->unix_addr_sz = 0;
		close(fd);
		return err;
	}
	limit_waits(fd);
	return fd;
}

int serve_open(struct scene *scene, struct witness *witness)
{
	int err = loopback_up();

	scene->listen_fds[WITNESS_TCP] = listen_inet(SOCK_STREAM, &witness->ports[WITNESS_TCP]);
	scene->listen_fds[WITNESS_UDP] = listen_inet(SOCK_DGRAM, &witness->ports[WITNESS_UDP]);
	scene->listen_fds[WITNESS_UNIX] = listen_unix(witness);
	scene->listen_fds[WITNESS_TCP_LATE] = -1;
	if (!err && scene->listen_fds[WITNESS_TCP] < 0)
		err = scene->listen_fds[WITNESS_TCP];
	if (err)
		snprintf(witness->why_no_net, sizeof(witness->why_no_net), "the loopback device cannot be used: %s",
			 strerror(-err));
	return 0;
}

int serve_listen_late(struct scene *scene, uint16_t *port)
{
	int fd = listen_inet(SOCK_STREAM, port);

	scene->listen_fds[WITNESS_TCP_LATE] = fd;
	return fd < 0 ? fd : 0;
}

static int serve_one(const struct scene *scene, int fd, bool from_file, struct witness_request *request)
{
	struct sockaddr_in peer;
	socklen_t peer_sz = sizeof(peer);
	char buf[64];
	ssize_t sz;

	sleep_ns(BUSY_NS);
	request->recv_call_ts = monotonic_ns();
	sz = recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&peer, &peer_sz);
	request->recv_return_ts = monotonic_ns();
	if (sz <= 0)
		return sz ? -errno : -EPIPE;
	request->send_call_ts = monotonic_ns();
	/* A datagram goes back to where it came from; a connection has no address here. */
	if (from_file)
		sz = scene_send_file(scene, fd);
	else
		sz = peer_sz ? sendto(fd, buf, sz, 0, (struct sockaddr *)&peer, peer_sz)
			     : send(fd, buf, sz, MSG_NOSIGNAL);
	request->send_return_ts = monotonic_ns();
	return sz <= 0 ? -errno : 0;
}

int serve(struct scene *scene, enum witness_socket which, bool from_file, struct witness_answer *answer)
{
	int listen_fd = scene->listen_fds[which], fd = listen_fd, err = 0;

	if (listen_fd < 0)
		return -ENOTCONN;
	if (which != WITNESS_UDP) {
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return -errno;
		limit_waits(fd);
	}
	for (int i = 0; i < WITNESS_REQUESTS && !err; i++)
		err = serve_one(scene, fd, from_file, &answer->requests[i]);
	if (fd != listen_fd)
		close(fd);
	return err;
}

int serve_desert(struct scene *scene)
{
	int fd = accept4(scene->listen_fds[WITNESS_TCP], NULL, NULL, SOCK_CLOEXEC);
	char buf[64];
	ssize_t sz;

	if (fd < 0)
		return -errno;
	limit_waits(fd);
	sz = recv(fd, buf, sizeof(buf), 0);
	close(fd);
	return sz > 0 ? 0 : -EPIPE;
}

int serve_pair(int *fds)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint16_t port;
	int listen_fd = listen_inet(SOCK_STREAM, &port), err = 0;

	if (listen_fd < 0)
		return listen_fd;
	addr.sin_port = htons(port);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds[1] = -1;
	if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (!err)
		fds[1] = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (!err && fds[1] < 0)
		err = -errno;
	if (err && fds[0] >= 0)
		close(fds[0]);
	close(listen_fd);
	return err;
}
