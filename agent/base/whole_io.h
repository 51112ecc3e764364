/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes that continue after a short count or EINTR. */
#ifndef WHYLATE_BASE_WHOLE_IO_H
#define WHYLATE_BASE_WHOLE_IO_H

#include <stdint.h>
#include <sys/types.h>

#define IO_HERE (-1) /* as `off`: the file position, which advances */

/* The bytes read, fewer than sz only at the end of the file; or -errno. */
ssize_t whole_read(int fd, void *bytes, size_t sz, int64_t off);
/* 0 or -errno; -ENOSPC if the kernel writes nothing. */
int whole_write(int fd, const void *bytes, size_t sz, int64_t off);

#endif
