// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))

ssize_t packet_send(int socket_fd, const void *bytes, size_t sz, const int *fds, size_t fd_cnt, int flags)
{
	char room[ROOM] __attribute__((aligned(sizeof(struct cmsghdr)))) = {0};
	struct iovec iov = {(void *)bytes, sz};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *header;
	ssize_t sent;

	if (fd_cnt > PACKET_FDS_MAX)
		return -EINVAL;
	if (fd_cnt) {
		msg.msg_control = room;
		msg.msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int));
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fd_cnt * sizeof(int));
		memcpy(CMSG_DATA(header), fds, fd_cnt * sizeof(int));
	}
	do
		sent = sendmsg(socket_fd, &msg, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

ssize_t packet_receive(int socket_fd, void *bytes, size_t sz, int *fds, size_t fd_cnt, int flags)
{
	char room[ROOM] __attribute__((aligned(sizeof(struct cmsghdr))));
	struct iovec iov = {bytes, sz};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	struct cmsghdr *header;
	ssize_t got;

	for (size_t i = 0; i < fd_cnt; i++)
		fds[i] = -1;
	do
		got = recvmsg(socket_fd, &msg, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&msg);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return got;
	for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= header->cmsg_len; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
		if (i < fd_cnt)
			fds[i] = fd;
		else
			close(fd);
	}
	return got;
}

bool packet_peer_is_gone(int socket_fd)
{
	char byte;
	ssize_t got = recv(socket_fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	return !got || (got < 0 && errno != EAGAIN && errno != EINTR);
}
