/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Minor page faults: 4 % of the requests touch every page of anonymous memory that has no pages yet.  Huge pages where
 * they are to be had: a fault that clears 2 MiB takes long enough for the exception's own cost, which no tracer sees,
 * not to count.  Planted: the clock around the touches, less the time the thread waited for a CPU meanwhile.
 */
#include "common.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_SZ (512UL << 20)
#define HUGE_SZ   (2UL << 20)

struct own {
	char *memory;
	int touched, delay_fd;
};

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->delay_fd = run_delay_open();
	own->memory = mmap(NULL, MEMORY_SZ + HUGE_SZ, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (own->memory == MAP_FAILED)
		return -errno;
	own->memory += HUGE_SZ - (uintptr_t)own->memory % HUGE_SZ;
	/* A kernel without huge pages refuses: then it is more faults, and shorter ones. */
	madvise(own->memory, MEMORY_SZ, MADV_HUGEPAGE);
	return 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct own *own = worker->own;
	size_t page_sz = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t start_ts, delay_ns, touch_ns;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	touch_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	start_ts = clock_now_ns();
	own->touched = 1;
	delay_ns = run_delay_read(own->delay_fd);
	for (size_t off = 0; off < MEMORY_SZ; off += page_sz) {
		if (off % (16 * page_sz) == 0 && clock_now_ns() - start_ts >= touch_ns)
			break;
		*(volatile char *)(own->memory + off) = 1;
	}
	return clock_now_ns() - start_ts - (run_delay_read(own->delay_fd) - delay_ns);
}

/* Giving the memory back must not be part of a request. */
static void after_reply(struct worker *worker)
{
	struct own *own = worker->own;

	if (own->touched)
		madvise(own->memory, MEMORY_SZ, MADV_DONTNEED);
	own->touched = 0;
}

static const struct workload workload = {
	.name = "minfault",
	.category = "fault.minor",
	.connection_cnt = 2,
	.rate_hz = 200,
	.default_duration_s = 6,
	.spread = 1,
	.thread_start = thread_start,
	.handle = handle,
	.after_reply = after_reply,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
