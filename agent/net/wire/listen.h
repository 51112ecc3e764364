/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listening TCP socket from what a person writes: 127.0.0.1:7700, [::1]:7700, localhost:7700, :7700, 7700. */
#ifndef WHYLATE_NET_WIRE_LISTEN_H
#define WHYLATE_NET_WIRE_LISTEN_H

#include <stdbool.h>

struct listener {
	int fd;
	bool loopback;    /* nobody outside of this machine can reach it */
	char address[64]; /* with the port that it really has */
};

/* 0; -EINVAL: the address is not understood; -ENOENT: no such host; -errno of what could not be done. */
int listener__open(struct listener *listener, const char *address);

#endif
