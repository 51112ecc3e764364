/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes on a Unix socket, and the descriptors that come with the first of them. */
#ifndef WHYLATE_BASE_PACKET_H
#define WHYLATE_BASE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PACKET_FDS_MAX 2

/* Flags are those of sendmsg(); SIGPIPE is never raised.  The bytes sent, or -errno. */
ssize_t packet_send(int socket_fd, const void *bytes, size_t sz, const int *fds, size_t fd_cnt, int flags);
/*
 * Flags are those of recvmsg().  The bytes received, 0 where the peer is gone, or -errno.  fds[] are the descriptors
 * that came, with close-on-exec, and -1 where there are fewer; those beyond fd_cnt are closed.
 */
ssize_t packet_receive(int socket_fd, void *bytes, size_t sz, int *fds, size_t fd_cnt, int flags);
/* Nothing comes from there any more.  Does not wait. */
bool packet_peer_is_gone(int socket_fd);

#endif
