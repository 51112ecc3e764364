/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lock in another process, asked over TCP. */
#include "chain.h"

#include <sys/socket.h>

static int listens(struct run *run)
{
	int port, fd = tcp_listen(&port);

	if (fd >= 0)
		atomic_store(&run->board->helper_port, port);
	return fd;
}

static int connects(struct run *run)
{
	return tcp_connect(atomic_load(&run->board->helper_port));
}

static int accepts(int listen_fd)
{
	return accept(listen_fd, NULL, NULL);
}

const struct chain_link chain_link = {listens, connects, accepts};

CHAIN_WORKLOAD("chain_tcp")
