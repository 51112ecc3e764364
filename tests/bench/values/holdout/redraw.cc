// SPDX-License-Identifier: GPL-2.0-or-later
// A check that is missing: parts of a page that did not change since they were drawn are drawn again.
#include "serve.h"

#include <cstdint>
#include <vector>

struct Part {
	int changed;
	uint32_t seed, picture[64];
};

static __attribute__((noinline)) void draw(Part &part)
{
	uint32_t x = part.seed;

	for (int turn = 0; turn < 20; turn++)
		for (uint32_t &dot : part.picture)
			dot = x = (x ^ x >> 15) * 2246822519u;
}

static __attribute__((noinline)) int draw_page(std::vector<Part> &parts)
{
	int news = 0;

	for (size_t at = 0; at < parts.size(); at++) {
		int changed = parts[at].changed;

		draw(parts[at]);
		if (changed > 0)
			news += changed;
	}
	return news;
}

static std::vector<Part> live, old;

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%d\n", draw_page(strncmp(path, "/old", 4) ? live : old));
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 6100; i++) {
		Part part = {i < 100 ? 1 + i % 5 : 0, static_cast<uint32_t>(i) + 1, {}};

		if (i < 100)
			live.push_back(part);
		old.push_back(part);
	}
	return serve(argc, argv, answer);
}
