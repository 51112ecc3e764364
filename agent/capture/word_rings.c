// SPDX-License-Identifier: GPL-2.0-or-later
/* The rings of words, one per CPU, in memory that is shared with the programs. */
#include "capture/internal.h"
#include "model/words.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* An entry of a map holds 4 MiB at most on older kernels, and half of that is a tenth of a second of a busy server. */
#define RING_SZ_MAX (2 << 20)
#define RING_SZ_MIN 4096

struct word_rings {
	char *memory; /* of all CPUs, ring_sz each, header included */
	size_t ring_sz, memory_sz;
	uint64_t mask;
	uint32_t cpu_cnt;
	struct words_reader readers[];
};

uint64_t word_rings_mask(uint32_t wanted_sz)
{
	uint64_t sz = RING_SZ_MIN;

	while (sz < wanted_sz && sz < RING_SZ_MAX)
		sz *= 2;
	return sz / sizeof(uint64_t) - 1;
}

/* Of one CPU, header included. */
static size_t ring_bytes(uint64_t mask)
{
	return sizeof(struct wl_word_ring) + (mask + 1) * sizeof(uint64_t);
}

int word_rings_size(struct bpf_map *map, uint64_t mask, uint32_t cpu_cnt)
{
	int err = bpf_map__set_value_size(map, ring_bytes(mask));

	return err ? err : bpf_map__set_max_entries(map, cpu_cnt);
}

struct word_rings *word_rings__new(int map_fd, uint64_t mask, uint32_t cpu_cnt)
{
	struct word_rings *rings = calloc(1, sizeof(*rings) + cpu_cnt * sizeof(rings->readers[0]));
	size_t page_sz = (size_t)sysconf(_SC_PAGESIZE);
	void *memory;

	if (!rings)
		return NULL;
	rings->mask = mask;
	rings->cpu_cnt = cpu_cnt;
	rings->ring_sz = ring_bytes(mask);
	rings->memory_sz = (rings->ring_sz * cpu_cnt + page_sz - 1) & ~(page_sz - 1);
	memory = mmap(NULL, rings->memory_sz, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (memory == MAP_FAILED) {
		free(rings);
		return NULL;
	}
	rings->memory = memory;
	for (uint32_t cpu = 0; cpu < cpu_cnt; cpu++)
		rings->readers[cpu].cpu = cpu;
	return rings;
}

void word_rings__free(struct word_rings *rings)
{
	if (!rings)
		return;
	munmap(rings->memory, rings->memory_sz);
	free(rings);
}

static struct wl_word_ring *ring_of(const struct word_rings *rings, uint32_t cpu)
{
	return (struct wl_word_ring *)(rings->memory + cpu * rings->ring_sz);
}

int word_rings__read(struct word_rings *rings, capture_handler handle, void *owner, uint64_t *handled)
{
	int err = 0;

	for (uint32_t cpu = 0; cpu < rings->cpu_cnt && !err; cpu++) {
		struct wl_word_ring *ring = ring_of(rings, cpu);
		uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

		err = words_reader__read(&rings->readers[cpu], ring->words, rings->mask, ring->tail, head, handle,
					 owner, handled);
		__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
	}
	return err;
}

double word_rings__backlog(const struct word_rings *rings)
{
	double most = 0;

	for (uint32_t cpu = 0; cpu < rings->cpu_cnt; cpu++) {
		const struct wl_word_ring *ring = ring_of(rings, cpu);
		uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
		double share =
			(double)(__atomic_load_n(&ring->head, __ATOMIC_RELAXED) - tail) / (double)(rings->mask + 1);

		most = share > most ? share : most;
	}
	return most;
}

void word_rings__add_emitted(const struct word_rings *rings, uint32_t cpu, struct wl_loss_count *loss)
{
	const struct wl_word_ring *ring = ring_of(rings, cpu);

	for (int class = 0; class < WL_LOSS_CNT; class ++)
		loss[class].emitted += __atomic_load_n(&ring->emitted[class], __ATOMIC_RELAXED);
}
