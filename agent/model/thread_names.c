// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/thread_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing, never more than half full; tid 0 is the mark of an empty place. */
struct entry {
	uint64_t since_ts; /* of comm */
	uint32_t tid;
	uint32_t gone; /* its place in gone_tids, counted from 1; 0: it lives */
	char comm[16];
	bool used; /* since it came to that place, or was passed over there */
};

/* What somebody was called before. */
struct earlier {
	uint64_t since_ts;
	uint32_t tid;
	char comm[16];
};

struct thread_names {
	struct entry *entries;
	uint32_t room; /* a power of two */
	uint32_t cnt;
	uint32_t next_gone;
	uint32_t gone_tids[THREAD_NAMES_GONE]; /* a ring; an entry with another place has come back since */
	uint32_t earlier_cnt;                  /* so far: the next one's place */
	struct earlier earlier[THREAD_NAMES_EARLIER];
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

static uint32_t home_of(const struct thread_names *names, uint32_t tid)
{
	return tid * 2654435761u & (names->room - 1);
}

static struct entry *place_of(const struct thread_names *names, uint32_t tid)
{
	uint32_t i = home_of(names, tid);

	while (names->entries[i].tid && names->entries[i].tid != tid)
		i = (i + 1) & (names->room - 1);
	return &names->entries[i];
}

static int grow(struct thread_names *names)
{
	struct entry *old = names->entries, *wider = calloc(names->room * 2, sizeof(*wider));
	uint32_t old_room = names->room;

	if (!wider)
		return -ENOMEM;
	names->entries = wider;
	names->room *= 2;
	for (uint32_t i = 0; i < old_room; i++)
		if (old[i].tid)
			*place_of(names, old[i].tid) = old[i];
	free(old);
	return 0;
}

static void remember(struct thread_names *names, uint32_t tid, uint64_t since_ts, const char *comm)
{
	struct earlier *earlier = &names->earlier[names->earlier_cnt++ % THREAD_NAMES_EARLIER];

	earlier->tid = tid;
	earlier->since_ts = since_ts;
	snprintf(earlier->comm, sizeof(earlier->comm), "%.15s", comm);
}

int thread_names__set(struct thread_names *names, uint32_t tid, uint64_t since_ts, const char *comm)
{
	struct entry *entry;

	if (!tid)
		return 0;
	if (names->cnt * 2 >= names->room && grow(names))
		return -ENOMEM;
	entry = place_of(names, tid);
	names->cnt += !entry->tid;
	entry->gone = 0;
	if (entry->tid) {
		if (!strncmp(entry->comm, comm, sizeof(entry->comm) - 1))
			return 0;
		/* Records of different CPUs need not come in order. */
		if (since_ts < entry->since_ts) {
			remember(names, tid, since_ts, comm);
			return 0;
		}
		remember(names, tid, entry->since_ts, entry->comm);
	}
	entry->tid = tid;
	entry->since_ts = since_ts;
	snprintf(entry->comm, sizeof(entry->comm), "%.15s", comm);
	return 0;
}

/* What lies behind it, up to the next empty place, moves up where it would not be found any more. */
static void remove_entry(struct thread_names *names, struct entry *entry)
{
	uint32_t mask = names->room - 1, hole = (uint32_t)(entry - names->entries);

	for (uint32_t i = (hole + 1) & mask; names->entries[i].tid; i = (i + 1) & mask) {
		uint32_t home = home_of(names, names->entries[i].tid);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		names->entries[hole] = names->entries[i];
		hole = i;
	}
	names->entries[hole].tid = 0;
	names->cnt--;
}

/* The place of the oldest that is not used; what had it is removed. */
static uint32_t free_place(struct thread_names *names)
{
	for (;;) {
		uint32_t place = names->next_gone++ % THREAD_NAMES_GONE;
		struct entry *entry = place_of(names, names->gone_tids[place]);

		if (!names->gone_tids[place] || entry->gone != place + 1)
			return place;
		if (!entry->used) {
			remove_entry(names, entry);
			return place;
		}
		entry->used = false;
	}
}

void thread_names__gone(struct thread_names *names, uint32_t tid)
{
	uint32_t place;
	struct entry *entry;

	if (!tid || !place_of(names, tid)->tid)
		return;
	place = free_place(names);
	entry = place_of(names, tid);
	names->gone_tids[place] = tid;
	entry->gone = place + 1;
	entry->used = false;
}

/* The name that began last before ts, or, where none did, the first one. */
static const char *earlier_name(const struct thread_names *names, const struct entry *entry, uint64_t ts)
{
	uint32_t cnt = names->earlier_cnt < THREAD_NAMES_EARLIER ? names->earlier_cnt : THREAD_NAMES_EARLIER;
	const struct earlier *last = NULL, *first = NULL;

	for (const struct earlier *one = names->earlier; one < names->earlier + cnt; one++) {
		if (one->tid != entry->tid)
			continue;
		if (one->since_ts <= ts && (!last || one->since_ts > last->since_ts))
			last = one;
		if (!first || one->since_ts < first->since_ts)
			first = one;
	}
	return last ? last->comm : first ? first->comm : entry->comm;
}

const char *thread_names__get(const struct thread_names *names, uint32_t tid, uint64_t ts)
{
	struct entry *entry = place_of(names, tid);

	if (!tid || !entry->tid)
		return NULL;
	entry->used = true;
	ts += THREAD_NAMES_LAG_NS;
	return ts >= entry->since_ts ? entry->comm : earlier_name(names, entry, ts);
}
