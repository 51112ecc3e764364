// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/idmap.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct idmap_entry *idmap_place(struct idmap_entry *entries, size_t room, uint64_t a, uint64_t b)
{
	size_t at = random_mix(a + random_mix(b + 0x9e3779b97f4a7c15ULL)) & (room - 1);

	while (entries[at].id_plus_1 && (entries[at].a != a || entries[at].b != b))
		at = (at + 1) & (room - 1);
	return &entries[at];
}

static int idmap_grow(struct idmap *map)
{
	size_t room = map->room ? map->room * 2 : 64;
	struct idmap_entry *entries = calloc(room, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->room; i++)
		if (map->entries[i].id_plus_1)
			*idmap_place(entries, room, map->entries[i].a, map->entries[i].b) = map->entries[i];
	free(map->entries);
	map->entries = entries;
	map->room = room;
	return 0;
}

int idmap__id(struct idmap *map, uint64_t a, uint64_t b, uint32_t *id)
{
	struct idmap_entry *entry;

	if ((size_t)map->cnt * 2 >= map->room && idmap_grow(map))
		return -ENOMEM;
	entry = idmap_place(map->entries, map->room, a, b);
	if (!entry->id_plus_1)
		*entry = (struct idmap_entry){a, b, ++map->cnt};
	*id = entry->id_plus_1 - 1;
	return 0;
}

bool idmap__find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *id)
{
	const struct idmap_entry *entry = map->room ? idmap_place(map->entries, map->room, a, b) : NULL;

	if (!entry || !entry->id_plus_1)
		return false;
	*id = entry->id_plus_1 - 1;
	return true;
}

void idmap__free(struct idmap *map)
{
	free(map->entries);
	*map = (struct idmap){0};
}

static uint32_t *intern_place(const struct intern *intern, uint32_t *slots, size_t room, const char *text)
{
	size_t at = random_mix(fnv1a_text(FNV1A_BEGIN, text)) & (room - 1);

	while (slots[at] && strcmp(intern->strings[slots[at] - 1], text))
		at = (at + 1) & (room - 1);
	return &slots[at];
}

static int intern_grow(struct intern *intern)
{
	size_t room = intern->room ? intern->room * 2 : 64;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < intern->cnt; i++)
		*intern_place(intern, slots, room, intern->strings[i]) = i + 1;
	free(intern->slots);
	intern->slots = slots;
	intern->room = room;
	return 0;
}

int intern__id(struct intern *intern, const char *text, uint32_t *id)
{
	uint32_t *slot;
	char *copy;

	if ((size_t)intern->cnt * 2 >= intern->room && intern_grow(intern))
		return -ENOMEM;
	slot = intern_place(intern, intern->slots, intern->room, text);
	if (!*slot) {
		if (vec_grow_((void **)&intern->strings, &intern->strings_room, intern->cnt, 1, sizeof(char *)))
			return -ENOMEM;
		copy = arena__strdup(intern->arena, text);
		if (!copy)
			return -ENOMEM;
		intern->strings[intern->cnt] = copy;
		*slot = ++intern->cnt;
	}
	*id = *slot - 1;
	return 0;
}

void intern__free(struct intern *intern)
{
	free(intern->strings);
	free(intern->slots);
	*intern = (struct intern){.arena = intern->arena};
}
