// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rings of records, one per CPU.  Each is mapped once, with no more behind its end than the longest record may
 * take of its beginning: libbpf's reader maps all of it twice, and both count as memory of this process.
 */
#include "capture/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* A stack is the longest record; in pages of any size. */
#define BEYOND_SZ (64 << 10)

_Static_assert(sizeof(struct wl_stack_record) + WL_STACK_SZ_MAX < BEYOND_SZ, "the longest record lies in one piece");

struct mapped_ring {
	int fd;
	void *first, *rest; /* the page of the consumer, then the producer's and the records */
	struct ring ring;
};

struct record_rings {
	int epoll_fd;
	size_t page_sz;
	uint32_t cnt;
	struct mapped_ring rings[];
};

static size_t beyond_sz(uint32_t sz)
{
	return sz < BEYOND_SZ ? sz : BEYOND_SZ;
}

static int map_ring(struct record_rings *rings, struct mapped_ring *mapped, uint32_t sz)
{
	/* Only wake-ups count: what lies in the ring below the limit of the kernel side can wait. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct ring *ring = &mapped->ring;
	char *rest;

	ring->sz = sz;
	ring->beyond = beyond_sz(sz);
	mapped->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "wl_ring", 0, 0, sz, NULL);
	if (mapped->fd < 0)
		return -errno;
	mapped->first = mmap(NULL, rings->page_sz, PROT_READ | PROT_WRITE, MAP_SHARED, mapped->fd, 0);
	if (mapped->first == MAP_FAILED)
		return -errno;
	mapped->rest = mmap(NULL, rings->page_sz + sz + ring->beyond, PROT_READ, MAP_SHARED, mapped->fd,
			    (off_t)rings->page_sz);
	if (mapped->rest == MAP_FAILED)
		return -errno;
	rest = mapped->rest;
	ring->consumer = mapped->first;
	ring->producer = (const unsigned long *)mapped->rest;
	ring->bytes = rest + rings->page_sz;
	return epoll_ctl(rings->epoll_fd, EPOLL_CTL_ADD, mapped->fd, &event) ? -errno : 0;
}

struct record_rings *record_rings__new(int outer_fd, uint32_t sz, uint32_t cpu_cnt)
{
	struct record_rings *rings = calloc(1, sizeof(*rings) + cpu_cnt * sizeof(rings->rings[0]));
	int err;

	if (!rings)
		return NULL;
	rings->page_sz = (size_t)sysconf(_SC_PAGESIZE);
	rings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = rings->epoll_fd < 0 ? -errno : 0;
	for (uint32_t cpu = 0; cpu < cpu_cnt && !err; cpu++) {
		struct mapped_ring *mapped = &rings->rings[cpu];

		mapped->first = mapped->rest = MAP_FAILED;
		rings->cnt++;
		err = map_ring(rings, mapped, sz);
		if (!err && bpf_map_update_elem(outer_fd, &cpu, &mapped->fd, BPF_ANY))
			err = -errno;
	}
	if (!err)
		return rings;
	record_rings__free(rings);
	errno = -err;
	return NULL;
}

void record_rings__free(struct record_rings *rings)
{
	if (!rings)
		return;
	for (uint32_t i = 0; i < rings->cnt; i++) {
		struct mapped_ring *mapped = &rings->rings[i];

		if (mapped->first != MAP_FAILED)
			munmap(mapped->first, rings->page_sz);
		if (mapped->rest != MAP_FAILED)
			munmap(mapped->rest, rings->page_sz + mapped->ring.sz + mapped->ring.beyond);
		if (mapped->fd >= 0)
			close(mapped->fd);
	}
	if (rings->epoll_fd >= 0)
		close(rings->epoll_fd);
	free(rings);
}

int record_rings__wait(struct record_rings *rings, int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(rings->epoll_fd, &event, 1, timeout_ms) < 0 ? -errno : 0;
}

int record_rings__read(struct record_rings *rings, ring_handler handle, void *owner)
{
	int err = 0;

	for (uint32_t i = 0; i < rings->cnt && !err; i++)
		err = ring__read(&rings->rings[i].ring, handle, owner);
	return err;
}

double record_rings__backlog(const struct record_rings *rings)
{
	double most = 0;

	for (uint32_t i = 0; i < rings->cnt; i++) {
		const struct ring *ring = &rings->rings[i].ring;
		unsigned long consumer = __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
		double share = (double)(__atomic_load_n(ring->producer, __ATOMIC_RELAXED) - consumer) / ring->sz;

		most = share > most ? share : most;
	}
	return most;
}

size_t record_rings__bytes(uint32_t sz, uint32_t cpu_cnt)
{
	return cpu_cnt * (sz + beyond_sz(sz));
}
