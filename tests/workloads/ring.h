/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An io_uring of one thread's own, by system calls alone. */
#ifndef WORKLOADS_RING_H
#define WORKLOADS_RING_H

#include "common.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_ENTRIES 8

struct ring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *entries;
};

static inline char *ring_map(const struct ring *ring, size_t sz, uint64_t off)
{
	char *map = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, off);

	return map == MAP_FAILED ? NULL : map;
}

/* By the thread that uses it.  0 or -errno. */
static inline int ring_open(struct ring *ring)
{
	const struct io_uring_params *params = &ring->params;

	ring->fd = syscall(SYS_io_uring_setup, RING_ENTRIES, &ring->params);
	if (ring->fd < 0)
		return -errno;
	ring->sq = ring_map(ring, params->sq_off.array + params->sq_entries * sizeof(unsigned int), IORING_OFF_SQ_RING);
	ring->cq = ring_map(ring, params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe),
			    IORING_OFF_CQ_RING);
	ring->entries = (void *)ring_map(ring, params->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	return ring->sq && ring->cq && ring->entries ? 0 : -errno;
}

/* off: UINT64_MAX for what has no positions. */
static inline void ring_add(struct ring *ring, uint8_t opcode, int fd, void *buf, unsigned int sz, uint64_t off)
{
	atomic_uint *tail = (atomic_uint *)(void *)(ring->sq + ring->params.sq_off.tail);
	unsigned int at = atomic_load(tail) % ring->params.sq_entries;

	ring->entries[at] = (struct io_uring_sqe){
		.opcode = opcode,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.len = sz,
		.off = off,
	};
	((unsigned int *)(void *)(ring->sq + ring->params.sq_off.array))[at] = at;
	atomic_fetch_add(tail, 1);
}

/* Submits so many of what was added; 0: it failed. */
static inline int ring_submit(struct ring *ring, unsigned int cnt)
{
	return syscall(SYS_io_uring_enter, ring->fd, cnt, 0, 0, NULL, 0) == cnt;
}

/* Submits so many, and waits until `cnt` are done; 0: something failed. */
static inline int ring_wait(struct ring *ring, unsigned int submit, unsigned int cnt)
{
	atomic_uint *head = (atomic_uint *)(void *)(ring->cq + ring->params.cq_off.head);
	atomic_uint *tail = (atomic_uint *)(void *)(ring->cq + ring->params.cq_off.tail);
	const struct io_uring_cqe *done = (const void *)(ring->cq + ring->params.cq_off.cqes);
	int good = 1;

	while (cnt) {
		if (syscall(SYS_io_uring_enter, ring->fd, submit, cnt, IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
		    errno != EINTR)
			return 0;
		submit = 0;
		while (cnt && atomic_load(head) != atomic_load(tail)) {
			good &= done[atomic_load(head) % ring->params.cq_entries].res > 0;
			atomic_fetch_add(head, 1);
			cnt--;
		}
	}
	return good;
}

/* A workload's prepare(): skipped where there is none. */
static inline int ring_prepare(struct run *run)
{
	struct io_uring_params params = {0};
	int fd = syscall(SYS_io_uring_setup, RING_ENTRIES, &params);

	if (fd < 0)
		return run_skip(run, "no io_uring here: %s", strerror(errno));
	return close(fd);
}

#endif
