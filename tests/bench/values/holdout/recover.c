// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong limit (as MDEV-21826): recovery has room for as many pages as are free, of which one server keeps too few. */
#include "serve.h"

enum { RECORDS = 600 };

struct pool {
	unsigned pages, free_pages;
};

static struct pool pools[2] = {{4000, 3000}, {4000, 4}};

static __attribute__((noinline)) uint32_t apply_batch(unsigned from, unsigned to)
{
	uint32_t page = from;

	for (unsigned at = 0; at < 3000 + 4 * (to - from); at++)
		page = (page ^ page >> 5) * 2654435761u + at;
	return page;
}

/* Records are parsed until the memory for them is full; then what was parsed is applied, and parsing goes on. */
static __attribute__((noinline)) uint32_t recover(const struct pool *pool)
{
	unsigned available = pool->free_pages, used = 0, first = 0;
	uint32_t digest = 0;

	for (unsigned record = 0; record < RECORDS; record++) {
		digest = (digest ^ record) * 16777619u;
		if (++used < available)
			continue;
		digest ^= apply_batch(first, record);
		first = record;
		used = 0;
	}
	return digest ^ apply_batch(first, RECORDS);
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n", recover(&pools[!strncmp(path, "/crashed", 8)]));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
