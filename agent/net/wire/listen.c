// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

/* Cuts the address into its parts, in place; an empty host is any. */
static int split(char *address, const char **host, const char **port)
{
	char *colon = strrchr(address, ':'), *end;

	*host = "";
	*port = address;
	if (colon) {
		*colon = 0;
		*host = address;
		*port = colon + 1;
		if (address[0] == '[') {
			end = strchr(address, ']');
			if (!end || end[1])
				return -EINVAL;
			*end = 0;
			*host = address + 1;
		} else if (strchr(address, ':')) {
			return -EINVAL; /* an IPv6 address wants brackets */
		}
	}
	if (!**port || strspn(*port, "0123456789") != strlen(*port) || strlen(*port) > 5 || atoi(*port) > UINT16_MAX)
		return -EINVAL;
	return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	return ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

static int listener__describe(struct listener *listener)
{
	struct sockaddr_storage address;
	socklen_t sz = sizeof(address);
	char host[INET6_ADDRSTRLEN], port[8];

	if (getsockname(listener->fd, (struct sockaddr *)&address, &sz))
		return -errno;
	listener->loopback = is_loopback(&address);
	if (getnameinfo((struct sockaddr *)&address, sz, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	snprintf(listener->address, sizeof(listener->address), address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
		 host, port);
	return 0;
}

static int open_at(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol), on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, BACKLOG)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int listener__open(struct listener *listener, const char *address)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found;
	char copy[256];
	const char *host, *port;
	int err;

	listener->fd = -1;
	if (snprintf(copy, sizeof(copy), "%s", address) >= (int)sizeof(copy) || split(copy, &host, &port))
		return -EINVAL;
	err = getaddrinfo(*host ? host : NULL, port, &hints, &found);
	if (err)
		return err == EAI_SERVICE ? -EINVAL : err == EAI_SYSTEM ? -errno : -ENOENT;
	err = -ENOENT;
	for (const struct addrinfo *info = found; info && listener->fd < 0; info = info->ai_next) {
		listener->fd = open_at(info);
		if (listener->fd < 0)
			err = listener->fd;
	}
	freeaddrinfo(found);
	if (listener->fd < 0)
		return err;
	err = listener__describe(listener);
	if (err)
		close(listener->fd);
	return err;
}
