// SPDX-License-Identifier: GPL-2.0-or-later
/* A binary heap by priority under a spin lock of its own (xchg and pause). */
#include "staged.h"

#define HEAP_MAX 256

static int locked;
static struct job *heap[HEAP_MAX];
static unsigned int cnt;

static inline void spin_lock(void)
{
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&locked, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
}

static inline void spin_unlock(void)
{
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static int before(const struct job *a, const struct job *b)
{
	return (a->priority & 1) < (b->priority & 1) || ((a->priority & 1) == (b->priority & 1) && a->key < b->key);
}

static void swap(unsigned int a, unsigned int b)
{
	struct job *job = heap[a];

	heap[a] = heap[b];
	heap[b] = job;
}

static void put(struct job *job)
{
	unsigned int at;

	spin_lock();
	at = cnt++;
	heap[at] = job;
	while (at && before(heap[at], heap[(at - 1) / 2])) {
		swap(at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
	spin_unlock();
}

static struct job *take(void)
{
	struct job *job = NULL;
	unsigned int at = 0;

	spin_lock();
	if (cnt) {
		job = heap[0];
		heap[0] = heap[--cnt];
		for (;;) {
			unsigned int least = at;

			for (unsigned int child = 2 * at + 1; child <= 2 * at + 2 && child < cnt; child++)
				if (before(heap[child], heap[least]))
					least = child;
			if (least == at)
				break;
			swap(at, least);
			at = least;
		}
	}
	spin_unlock();
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	staged_run(argv);
}
