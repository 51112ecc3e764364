// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: parts that were counted already are counted again wherever they are used. */
#include "serve.h"

#include <stdbool.h>

enum { LAYERS = 15 };

struct part {
	struct part *uses[2];
	bool counted;
	uint32_t price;
};

static struct part shared[LAYERS], single[LAYERS];

static __attribute__((noinline)) uint32_t price_of(struct part *part)
{
	uint32_t sum = part->price;

	for (int round = 0; round < 40; round++)
		sum = (sum ^ sum >> 5) * 2246822519u;
	part->counted = true;
	for (int i = 0; i < 2; i++)
		if (part->uses[i])
			sum += price_of(part->uses[i]);
	return sum;
}

static size_t answer(const char *path, char *body)
{
	struct part *root = !strncmp(path, "/engine", 7) ? shared : single;

	return (size_t)sprintf(body, "%u\n", price_of(root));
}

int main(int argc, char **argv)
{
	for (int i = 0; i < LAYERS; i++) {
		struct part *next = i + 1 < LAYERS ? &shared[i + 1] : NULL;

		shared[i] = (struct part){{next, next}, false, (uint32_t)i};
		single[i] = (struct part){{i + 1 < LAYERS ? &single[i + 1] : NULL, NULL}, false, (uint32_t)i};
	}
	return serve(argc, argv, answer);
}
