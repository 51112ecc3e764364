/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk behind an io_uring: 4 % of the requests read past the page cache, through a ring, a megabyte at a time and for
 * some milliseconds, and wait in io_uring_enter() only.  Planted: those waits; what submitting takes is the CPU's.
 */
#include "ring.h"

#include <fcntl.h>
#include <stdlib.h>

#define FILE_SZ  (16 << 20)
#define PIECE_SZ (1 << 20)
#define PAGE_SZ  4096

struct own {
	struct ring ring;
	int fd;
	void *buf;
};

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->fd = disk_file_open(FILE_SZ);
	if (own->fd < 0)
		return own->fd;
	own->buf = aligned_alloc(PAGE_SZ, PIECE_SZ);
	if (!own->buf)
		return -ENOMEM;
	return fcntl(own->fd, F_SETFL, O_DIRECT) ? -errno : ring_open(&own->ring);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t begin_ts, read_ns, waited_ns = 0, off = 0;
	struct own *own = worker->own;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	read_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	begin_ts = clock_now_ns();
	while (clock_now_ns() - begin_ts < read_ns) {
		uint64_t wait_ts;

		ring_add(&own->ring, IORING_OP_READ, own->fd, own->buf, PIECE_SZ, off);
		if (!ring_submit(&own->ring, 1))
			return 0;
		wait_ts = clock_now_ns();
		if (!ring_wait(&own->ring, 0, 1))
			return 0;
		waited_ns += clock_now_ns() - wait_ts;
		off = (off + PIECE_SZ) % FILE_SZ;
	}
	return waited_ns;
}

static const struct workload workload = {
	.name = "ringdisk",
	.category = "io.disk",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 6,
	.prepare = ring_prepare,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
