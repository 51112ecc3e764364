/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lock in another process, asked over Unix sockets with abstract names. */
#include "chain.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static socklen_t store_address(const struct run *run, struct sockaddr_un *addr)
{
	int len;

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	len = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "whylate-store-%d",
		       atomic_load(&run->board->helper_port));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int listens(struct run *run)
{
	struct sockaddr_un addr;
	socklen_t addr_sz;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	atomic_store(&run->board->helper_port, (int)getpid());
	addr_sz = store_address(run, &addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, addr_sz) || listen(fd, CONNECTION_CNT))
		return -errno;
	return fd;
}

static int connects(struct run *run)
{
	struct sockaddr_un addr;
	socklen_t addr_sz = store_address(run, &addr);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (struct sockaddr *)&addr, addr_sz) ? -errno : fd;
}

static int accepts(int listen_fd)
{
	return accept(listen_fd, NULL, NULL);
}

const struct chain_link chain_link = {listens, connects, accepts};

CHAIN_WORKLOAD("chain_unix")
