// SPDX-License-Identifier: GPL-2.0-or-later
/* Two loops within each other: each tag of an article is compared with all that were kept before. */
#include "serve.h"

static int drop_doubles(uint32_t *tags, int cnt)
{
	int kept = 0;

	for (int i = 0; i < cnt; i++) {
		int j;

		for (j = 0; j < kept; j++)
			if (tags[j] == tags[i])
				break;
		if (j == kept)
			tags[kept++] = tags[i];
	}
	return kept;
}

static __attribute__((noinline)) int load_article(int cnt)
{
	uint32_t *tags = (uint32_t *)malloc((size_t)cnt * sizeof(*tags));
	int kept;

	for (int i = 0; i < cnt; i++)
		tags[i] = (uint32_t)i * 2654435761u >> 4;
	kept = drop_doubles(tags, cnt);
	free(tags);
	return kept;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%d\n", load_article(strncmp(path, "/feed", 5) ? 200 : 6000));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
