// SPDX-License-Identifier: GPL-2.0-or-later
/* A list that is kept in order by walking it for each entry: bearable for a few. */
#include "serve.h"

enum { ENTRIES = 2600 };

struct entry {
	struct entry *next;
	uint32_t due;
};

static __attribute__((noinline)) void insert_entry(struct entry **list, struct entry *entry)
{
	struct entry **link = list;

	while (*link && (*link)->due <= entry->due)
		link = &(*link)->next;
	entry->next = *link;
	*link = entry;
}

static __attribute__((noinline)) uint32_t plan(struct entry *entries, unsigned cnt)
{
	struct entry *list = NULL;
	uint32_t due = 7, sum = 0;

	for (unsigned i = 0; i < cnt; i++) {
		due = due * 1664525u + 1013904223u;
		entries[i].due = due >> 8;
		insert_entry(&list, &entries[i]);
	}
	for (; list; list = list->next)
		sum = sum * 31 + list->due;
	return sum;
}

static size_t answer(const char *path, char *body)
{
	unsigned cnt = strncmp(path, "/year", 5) ? 90 : ENTRIES;
	struct entry *entries = (struct entry *)malloc(cnt * sizeof(*entries));
	size_t len = (size_t)sprintf(body, "%u\n", plan(entries, cnt));

	free(entries);
	return len;
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
