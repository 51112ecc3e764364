/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Minor page faults: 4 % of the requests touch every page of anonymous memory that has no pages yet (small pages only).
 * Planted: the clock around the touches, nearly all of which is the faults' handling.
 */
#include "common.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_SZ (64 << 20)

struct own {
	char *memory;
	int touched;
};

static int thread_start(struct worker *worker)
{
	static struct own owns[64];
	struct own *own = &owns[worker->idx];

	worker->own = own;
	own->memory = mmap(NULL, MEMORY_SZ, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (own->memory == MAP_FAILED)
		return -errno;
	/* A kernel without huge pages refuses, which is as good. */
	madvise(own->memory, MEMORY_SZ, MADV_NOHUGEPAGE);
	return 0;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct own *own = worker->own;
	size_t page_sz = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t start_ts, touch_ns;

	spin_work(100 * NS_PER_US);
	if (!request_chosen(request, 40))
		return 0;
	touch_ns = random_between(&worker->random_state, 8 * NS_PER_MS, 18 * NS_PER_MS);
	start_ts = clock_now_ns();
	own->touched = 1;
	for (size_t off = 0; off < MEMORY_SZ && clock_now_ns() - start_ts < touch_ns; off += page_sz)
		*(volatile char *)(own->memory + off) = 1;
	return clock_now_ns() - start_ts;
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
