/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Major page faults: 4 % of the requests touch pages of a mapped file that has just been thrown out of the mapping and
 * of the page cache, far enough from each other that each is read by itself.  Planted: the clock around the touches,
 * less the time the thread waited for a CPU meanwhile, as the kernel's run_delay has it.  Of what lies between the
 * wake-up and the switch to the thread, run_delay leaves out most where the CPU was idle: on a 6.18 guest 9 of 12.5 µs,
 * a hundred times a request.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define FILE_SZ       (16 << 20)
#define STRIDE_SZ     (64 << 10)
#define TOUCH_AT_MOST (FILE_SZ / STRIDE_SZ)

struct own {
	int fd, delay_fd;
	char *map;
};

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->delay_fd = run_delay_open();
	own->fd = disk_file_open(FILE_SZ);
	if (own->fd < 0)
		return own->fd;
	own->map = mmap(NULL, FILE_SZ, PROT_READ, MAP_SHARED, own->fd, 0);
	if (own->map == MAP_FAILED)
		return -errno;
	return madvise(own->map, FILE_SZ, MADV_RANDOM) ? -errno : 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct own *own = worker->own;
	uint64_t start_ts, delay_ns, touch_ns;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	touch_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	delay_ns = run_delay_read(own->delay_fd);
	start_ts = clock_now_ns();
	for (int i = 0; i < TOUCH_AT_MOST && clock_now_ns() - start_ts < touch_ns; i++)
		(void)*(volatile char *)(own->map + (size_t)i * STRIDE_SZ);
	return clock_now_ns() - start_ts - (run_delay_read(own->delay_fd) - delay_ns);
}

/* The pages must be gone before the next request, and throwing them away must not be part of one. */
static void after_reply(struct worker *worker)
{
	struct own *own = worker->own;

	madvise(own->map, FILE_SZ, MADV_DONTNEED);
	posix_fadvise(own->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static const struct workload workload = {
	.name = "majfault",
	.category = "fault.major",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 6,
	.thread_start = thread_start,
	.handle = handle,
	.after_reply = after_reply,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
