// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing (as MDEV-13498): rows of a child table are looked for although its rows are gone already. */
#include "serve.h"

enum { CHILDREN = 400, KEYS = 6000 };

struct child {
	int dropped;
	unsigned key_cnt;
	uint32_t keys[KEYS];
};

static struct child *children[2];

static __attribute__((noinline)) unsigned find_references(const struct child *child, uint32_t key)
{
	unsigned found = 0;

	for (unsigned at = 0; at < child->key_cnt; at++)
		found += (child->keys[at] ^ key) % 1021 == 0;
	return found;
}

static __attribute__((noinline)) unsigned delete_row(const struct child *of, uint32_t key)
{
	unsigned gone = 0;

	for (const struct child *child = of; child < of + CHILDREN; child++) {
		if (!child->key_cnt)
			continue;
		gone += find_references(child, key) && !child->dropped;
	}
	return gone;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%u\n",
			       delete_row(children[!strncmp(path, "/archive", 8)], (uint32_t)strlen(path)));
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 2; i++) {
		children[i] = calloc(CHILDREN, sizeof(struct child));
		for (unsigned c = 0; c < CHILDREN; c++) {
			/* The first database has never had rows in most of its tables; of the second they were dropped.
			 */
			children[i][c].key_cnt = i || c % 20 == 0 ? KEYS : 0;
			children[i][c].dropped = i && c % 20;
			for (unsigned k = 0; k < KEYS; k++)
				children[i][c].keys[k] = (c * 7919 + k) * 2654435761u;
		}
	}
	return serve(argc, argv, answer);
}
