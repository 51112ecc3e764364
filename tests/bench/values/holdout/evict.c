// SPDX-License-Identifier: GPL-2.0-or-later
/* A limit in the wrong unit: the cache of that tenant has room for pages, and is compared with bytes. */
#include "serve.h"

enum { SLOTS = 6000, TENANTS = 2 };

struct cache {
	uint64_t limit, used;
	uint32_t slots[SLOTS];
};

static struct cache caches[TENANTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Everything goes: that is rare if the limit is right. */
static __attribute__((noinline)) uint32_t make_room(struct cache *cache, uint64_t need)
{
	uint32_t kept = 0;

	if (cache->used + need <= cache->limit)
		return 0;
	for (unsigned i = 0; i < SLOTS; i++) {
		uint32_t entry = cache->slots[i];

		for (unsigned bit = 0; bit < 24; bit++)
			entry = (entry ^ entry >> 7) * 2246822519u;
		cache->slots[i] = entry;
		kept += entry & 1;
	}
	cache->used = 0;
	return kept;
}

static __attribute__((noinline)) uint32_t store(struct cache *cache, uint64_t sz)
{
	uint32_t gone = 0;

	for (unsigned part = 0; part < 20; part++) {
		gone += make_room(cache, sz);
		cache->used += sz;
	}
	return gone;
}

static size_t answer(const char *path, char *body)
{
	struct cache *cache = &caches[!strncmp(path, "/tenant-b", 9)];
	uint32_t gone;

	pthread_mutex_lock(&lock);
	gone = store(cache, 4096);
	pthread_mutex_unlock(&lock);
	return (size_t)sprintf(body, "%u\n", gone);
}

int main(int argc, char **argv)
{
	caches[0].limit = (uint64_t)SLOTS * 4096;
	caches[1].limit = SLOTS;
	return serve(argc, argv, answer);
}
