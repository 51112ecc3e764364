// SPDX-License-Identifier: GPL-2.0-only
#include "model/thread_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Open addressing, never more than half full; tid 0 is the mark of an empty place. */
struct entry {
	uint32_t tid;
	char comm[16];
};

struct thread_names {
	struct entry *entries;
	uint32_t room; /* a power of two */
	uint32_t cnt;
};

#define FIRST_ROOM 64

struct thread_names *thread_names__new(void)
{
	struct thread_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->room = FIRST_ROOM;
	names->entries = calloc(names->room, sizeof(*names->entries));
	if (!names->entries) {
		free(names);
		return NULL;
	}
	return names;
}

void thread_names__free(struct thread_names *names)
{
	if (!names)
		return;
	free(names->entries);
	free(names);
}

static struct entry *place_of(const struct thread_names *names, uint32_t tid)
{
	uint32_t i = tid * 2654435761u & (names->room - 1);

	while (names->entries[i].tid && names->entries[i].tid != tid)
		i = (i + 1) & (names->room - 1);
	return &names->entries[i];
}

static int grow(struct thread_names *names)
{
	struct thread_names wider = {.room = names->room * 2, .cnt = names->cnt};

	wider.entries = calloc(wider.room, sizeof(*wider.entries));
	if (!wider.entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->room; i++)
		if (names->entries[i].tid)
			*place_of(&wider, names->entries[i].tid) = names->entries[i];
	free(names->entries);
	*names = wider;
	return 0;
}

int thread_names__set(struct thread_names *names, uint32_t tid, const char *comm)
{
	struct entry *entry;

	if (!tid)
		return 0;
	if (names->cnt * 2 >= names->room && grow(names))
		return -ENOMEM;
	entry = place_of(names, tid);
	names->cnt += !entry->tid;
	entry->tid = tid;
	snprintf(entry->comm, sizeof(entry->comm), "%.15s", comm);
	return 0;
}

const char *thread_names__get(const struct thread_names *names, uint32_t tid)
{
	const struct entry *entry = place_of(names, tid);

	return tid && entry->tid ? entry->comm : NULL;
}
