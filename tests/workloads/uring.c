/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work that goes to another thread and back through io_uring: the server thread writes its question to an eventfd and
 * reads the answer from a pipe, both submitted to a ring, and waits in io_uring_enter() only.  For 1.5 % of the
 * requests the `filter` computes for some milliseconds, on the other CPU.  Planted: the clock around the wait.
 */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRY_CNT 8

static struct {
	struct run *run;
	int event_fd, pipe_fds[2], ring_fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *entries;
	atomic_ulong work_ns;
} relay;

static void *filter_body(void *arg)
{
	uint64_t rings;
	char done = 0;

	(void)arg;
	filter_begin();
	while (read(relay.event_fd, &rings, sizeof(rings)) == sizeof(rings)) {
		uint64_t work_ns = atomic_load(&relay.work_ns);

		filter_work(relay.run, work_ns);
		if (write(relay.pipe_fds[1], &done, 1) != 1)
			break;
	}
	return NULL;
}

static char *ring_map(size_t sz, uint64_t off)
{
	char *map = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, relay.ring_fd, off);

	return map == MAP_FAILED ? NULL : map;
}

static int ring_open(void)
{
	const struct io_uring_params *params = &relay.params;

	relay.ring_fd = syscall(SYS_io_uring_setup, ENTRY_CNT, &relay.params);
	if (relay.ring_fd < 0)
		return -errno;
	relay.sq = ring_map(params->sq_off.array + params->sq_entries * sizeof(unsigned int), IORING_OFF_SQ_RING);
	relay.cq = ring_map(params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	relay.entries = (void *)ring_map(params->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	return relay.sq && relay.cq && relay.entries ? 0 : -errno;
}

static void ring_add(uint8_t opcode, int fd, void *buf, unsigned int sz)
{
	atomic_uint *tail = (atomic_uint *)(void *)(relay.sq + relay.params.sq_off.tail);
	unsigned int at = atomic_load(tail) % relay.params.sq_entries;

	relay.entries[at] = (struct io_uring_sqe){
		.opcode = opcode,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.len = sz,
		.off = UINT64_MAX,
	};
	((unsigned int *)(void *)(relay.sq + relay.params.sq_off.array))[at] = at;
	atomic_fetch_add(tail, 1);
}

/* Submits what was added and waits for all of it; 0: something failed. */
static int ring_wait(unsigned int cnt)
{
	atomic_uint *head = (atomic_uint *)(void *)(relay.cq + relay.params.cq_off.head);
	atomic_uint *tail = (atomic_uint *)(void *)(relay.cq + relay.params.cq_off.tail);
	const struct io_uring_cqe *done = (const void *)(relay.cq + relay.params.cq_off.cqes);
	unsigned int submit = cnt;
	int good = 1;

	while (cnt) {
		if (syscall(SYS_io_uring_enter, relay.ring_fd, submit, cnt, IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
		    errno != EINTR)
			return 0;
		submit = 0;
		while (cnt && atomic_load(head) != atomic_load(tail)) {
			good &= done[atomic_load(head) % relay.params.cq_entries].res > 0;
			atomic_fetch_add(head, 1);
			cnt--;
		}
	}
	return good;
}

/* The thread that makes the ring is the one that uses it. */
static int thread_start(struct worker *worker)
{
	pthread_t thread;
	int err = ring_open();

	if (err)
		return err;
	relay.run = worker->run;
	relay.event_fd = eventfd(0, EFD_CLOEXEC);
	if (relay.event_fd < 0 || pipe2(relay.pipe_fds, O_CLOEXEC))
		return -errno;
	return thread_start_named(&thread, filter_body, NULL);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t start_ts, ring = 1;
	char done;

	spin_work(100 * NS_PER_US);
	atomic_store(&relay.work_ns, filter_work_ns(worker, request));
	start_ts = clock_now_ns();
	ring_add(IORING_OP_WRITE, relay.event_fd, &ring, sizeof(ring));
	ring_add(IORING_OP_READ, relay.pipe_fds[0], &done, 1);
	return ring_wait(2) ? clock_now_ns() - start_ts : 0;
}

static int prepare(struct run *run)
{
	struct io_uring_params params = {0};
	int fd = syscall(SYS_io_uring_setup, ENTRY_CNT, &params);

	if (fd < 0)
		return run_skip(run, "no io_uring here: %s", strerror(errno));
	return close(fd);
}

static const struct workload workload = {
	.name = "uring",
	.category = "io.net",
	.culprit_comm = "filter",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 6,
	.cpu_cnt_needed = 2,
	.prepare = prepare,
	.thread_start = thread_start,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
