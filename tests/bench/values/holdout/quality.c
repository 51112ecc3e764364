// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong comparison: pictures that are small enough for the dear filter are told by their width only. */
#include "serve.h"

struct picture {
	int width, height;
	unsigned char *dots;
};

static __attribute__((noinline)) uint32_t filter_well(const struct picture *picture)
{
	uint32_t sum = 0;

	for (int y = 1; y + 1 < picture->height; y++)
		for (int x = 0; x < picture->width; x++)
			for (int turn = 0; turn < 30; turn++)
				sum = sum * 31 + picture->dots[(y - 1 + turn % 3) * picture->width + x];
	return sum;
}

static __attribute__((noinline)) uint32_t filter_fast(const struct picture *picture)
{
	uint32_t sum = 0;

	for (int i = 0; i < picture->width * picture->height; i++)
		sum += picture->dots[i];
	return sum;
}

static __attribute__((noinline)) uint32_t filter_picture(const struct picture *picture, int limit)
{
	uint32_t sum = picture->width < limit ? filter_well(picture) : filter_fast(picture);

	return sum ^ (uint32_t)(picture->width + limit);
}

static size_t answer(const char *path, char *body)
{
	static const struct picture broad = {4000, 40, NULL}, tall = {40, 4000, NULL};
	struct picture picture = strncmp(path, "/tall", 5) ? broad : tall;
	uint32_t sum;

	picture.dots = (unsigned char *)calloc(4000, 40);
	sum = filter_picture(&picture, 64);
	free(picture.dots);
	return (size_t)sprintf(body, "%08x\n", sum);
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
