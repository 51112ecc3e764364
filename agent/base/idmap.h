/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers pairs of 64-bit keys and strings in the order in which they first appear: 0, 1, 2, …
 * Open addressing, at most half full.  {0} is an empty map; the owner frees it.  Not thread-safe.
 */
#ifndef WHYLATE_BASE_IDMAP_H
#define WHYLATE_BASE_IDMAP_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_entry {
	uint64_t a, b;
	uint32_t id_plus_1; /* 0: the place is free */
};

struct idmap {
	struct idmap_entry *entries;
	size_t room; /* a power of two, or 0 */
	uint32_t cnt;
};

/* The id of (a, b), new when it is seen for the first time (then *id is what cnt was): 0 or -ENOMEM. */
int idmap__id(struct idmap *map, uint64_t a, uint64_t b, uint32_t *id);
/* Likewise, but only if it is known: false otherwise. */
bool idmap__find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *id);
void idmap__free(struct idmap *map);

struct intern {
	struct arena *arena; /* owns the copies */
	const char **strings;
	uint32_t *slots; /* id + 1, or 0 */
	size_t room, strings_room;
	uint32_t cnt;
};

/* The id of a copy of `text`, the same for equal texts: 0 or -ENOMEM. */
int intern__id(struct intern *intern, const char *text, uint32_t *id);
/* Frees the tables, not the copies, which are the arena's. */
void intern__free(struct intern *intern);

#endif
