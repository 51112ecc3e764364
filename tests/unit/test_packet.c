// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets with descriptors: those that come, those that do not, and those that nobody wants. */
#include "base/packet.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int ends[2], pipe_fds[2];

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(pipe_fds, O_CLOEXEC), 0);
}

static void finish(void)
{
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(pipe_fds[i]);
	}
}

static bool is_same(int fd, int other)
{
	struct stat st, other_st;

	return !fstat(fd, &st) && !fstat(other, &other_st) && st.st_ino == other_st.st_ino;
}

static void test_two(void)
{
	char bytes[8] = "";
	int fds[2];

	begin();
	CU_ASSERT_EQUAL(packet_send(ends[0], "abc", 3, pipe_fds, 2, 0), 3);
	CU_ASSERT_EQUAL(packet_receive(ends[1], bytes, sizeof(bytes), fds, 2, 0), 3);
	CU_ASSERT_STRING_EQUAL(bytes, "abc");
	CU_ASSERT(is_same(fds[0], pipe_fds[0]) && is_same(fds[1], pipe_fds[1]));
	CU_ASSERT(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	close(fds[0]);
	close(fds[1]);
	finish();
}

static void test_none(void)
{
	char bytes[8];
	int fds[2] = {7, 7};

	begin();
	CU_ASSERT_EQUAL(packet_receive(ends[1], bytes, sizeof(bytes), fds, 2, MSG_DONTWAIT), -EAGAIN);
	CU_ASSERT_EQUAL(packet_send(ends[0], "abc", 3, NULL, 0, 0), 3);
	CU_ASSERT_EQUAL(packet_receive(ends[1], bytes, sizeof(bytes), fds, 2, 0), 3);
	CU_ASSERT(fds[0] == -1 && fds[1] == -1);
	CU_ASSERT_EQUAL(packet_send(ends[0], "abc", 3, pipe_fds, PACKET_FDS_MAX + 1, 0), -EINVAL);
	close(ends[0]);
	CU_ASSERT_EQUAL(packet_receive(ends[1], bytes, sizeof(bytes), fds, 2, 0), 0);
	ends[0] = -1;
	finish();
}

/* A descriptor beyond those asked for would stay open for good: the pipe's reader must see its end. */
static void test_more_than_wanted(void)
{
	char byte;
	int fd;

	begin();
	CU_ASSERT_EQUAL(packet_send(ends[0], "abc", 3, pipe_fds, 2, 0), 3);
	CU_ASSERT_EQUAL(packet_receive(ends[1], &byte, 1, &fd, 1, 0), 1);
	CU_ASSERT(is_same(fd, pipe_fds[0]));
	close(fd);
	close(pipe_fds[1]);
	pipe_fds[1] = -1;
	CU_ASSERT_EQUAL(read(pipe_fds[0], &byte, 1), 0);
	finish();
}

int suite_packet(void)
{
	static const struct unit_test tests[] = {
		{"two descriptors", test_two},
		{"none", test_none},
		{"more than wanted", test_more_than_wanted},
	};

	return unit_suite("packet", tests, sizeof(tests) / sizeof(tests[0]));
}
