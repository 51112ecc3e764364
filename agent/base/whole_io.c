// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/whole_io.h"

#include <errno.h>
#include <unistd.h>

ssize_t whole_read(int fd, void *bytes, size_t sz, int64_t off)
{
	uint8_t *at = bytes;
	size_t got = 0;

	while (got < sz) {
		ssize_t n = off == IO_HERE ? read(fd, at + got, sz - got)
					   : pread(fd, at + got, sz - got, off + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int whole_write(int fd, const void *bytes, size_t sz, int64_t off)
{
	const uint8_t *at = bytes;
	size_t put = 0;

	while (put < sz) {
		ssize_t n = off == IO_HERE ? write(fd, at + put, sz - put)
					   : pwrite(fd, at + put, sz - put, off + (int64_t)put);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		put += (size_t)n;
	}
	return 0;
}
