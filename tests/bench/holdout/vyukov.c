// SPDX-License-Identifier: GPL-2.0-or-later
/* Vyukov's bounded queue for many producers and consumers. */
#define READERS 2
#include "staged.h"

#define CELLS 128

static struct {
	size_t sequence;
	void *data;
} cells[CELLS];
static size_t put_at __attribute__((aligned(64))), take_at __attribute__((aligned(64)));

static void put(struct job *job)
{
	size_t at = __atomic_load_n(&put_at, __ATOMIC_RELAXED);

	for (;;) {
		size_t sequence = __atomic_load_n(&cells[at % CELLS].sequence, __ATOMIC_ACQUIRE);

		if (sequence == at) {
			if (__atomic_compare_exchange_n(&put_at, &at, at + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				break;
		} else {
			at = __atomic_load_n(&put_at, __ATOMIC_RELAXED);
		}
	}
	cells[at % CELLS].data = job;
	__atomic_store_n(&cells[at % CELLS].sequence, at + 1, __ATOMIC_RELEASE);
}

static struct job *take(void)
{
	size_t at = __atomic_load_n(&take_at, __ATOMIC_RELAXED);
	struct job *job;

	for (;;) {
		size_t sequence = __atomic_load_n(&cells[at % CELLS].sequence, __ATOMIC_ACQUIRE);

		if (sequence == at + 1) {
			if (__atomic_compare_exchange_n(&take_at, &at, at + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				break;
		} else if (sequence == at) {
			return NULL;
		} else {
			at = __atomic_load_n(&take_at, __ATOMIC_RELAXED);
		}
	}
	job = cells[at % CELLS].data;
	__atomic_store_n(&cells[at % CELLS].sequence, at + CELLS, __ATOMIC_RELEASE);
	return job;
}

int main(int argc, char **argv)
{
	(void)argc;
	for (size_t i = 0; i < CELLS; i++)
		cells[i].sequence = i;
	staged_run(argv);
}
