/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for a disk: 4 % of the requests write records to a file and sync each, until some milliseconds have passed.
 * Planted: the time in that while the thread was blocked (clock minus its CPU time and its wait for one).
 */
#include "common.h"

#include <errno.h>
#include <unistd.h>

#define FILE_SZ   (4 << 20)
#define RECORD_SZ (512 << 10)

struct own {
	int fd, delay_fd;
	off_t off;
};

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->fd = disk_file_open(FILE_SZ);
	own->delay_fd = run_delay_open();
	return own->fd < 0 ? own->fd : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	static const char record[RECORD_SZ] = "record";
	struct own *own = worker->own;
	uint64_t start_ts, cpu_ns, delay_ns, sync_ns;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	/* One sync is enough on a slow disk and takes no time on a fast one: make it last on both. */
	sync_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	start_ts = clock_now_ns();
	cpu_ns = thread_cpu_ns();
	delay_ns = run_delay_read(own->delay_fd);
	do {
		if (pwrite(own->fd, record, sizeof(record), own->off) < 0 || fdatasync(own->fd))
			break;
		own->off = (own->off + RECORD_SZ) % FILE_SZ;
	} while (clock_now_ns() - start_ts < sync_ns);
	return clock_now_ns() - start_ts - (thread_cpu_ns() - cpu_ns) - (run_delay_read(own->delay_fd) - delay_ns);
}

static const struct workload workload = {
	.name = "fsync",
	.category = "io.disk",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 6,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
