// SPDX-License-Identifier: GPL-2.0-or-later
/* A global configuration value that is wrong: how many earlier places a compressor compares with. */
#include "serve.h"

#define TEXT_SZ 12000

int max_chain = 12;

static char text[TEXT_SZ];
static int prev[TEXT_SZ];

static int longest_match(int at, int first)
{
	int best = 3, chain = 0;

	for (int cand = first; cand >= 0 && chain < max_chain; cand = prev[cand], chain++) {
		int len = 0;

		while (at + len < TEXT_SZ && len < 258 && text[cand + len] == text[at + len])
			len++;
		if (len > best)
			best = len;
	}
	return best;
}

static int compress_text(void)
{
	int head[256], out = 0;

	memset(head, 0xff, sizeof(head));
	for (int at = 0; at < TEXT_SZ; out++) {
		int first = head[(unsigned char)text[at]];

		prev[at] = first;
		head[(unsigned char)text[at]] = at;
		at += longest_match(at, first);
	}
	return out;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t answer(const char *path, char *body)
{
	int out;

	if (!strncmp(path, "/set/", 5))
		max_chain = atoi(path + 5);
	pthread_mutex_lock(&lock);
	out = compress_text();
	pthread_mutex_unlock(&lock);
	return (size_t)sprintf(body, "%d\n", out);
}

int main(int argc, char **argv)
{
	uint32_t x = 1;

	for (int i = 0; i < TEXT_SZ; i++) {
		x = x * 1103515245u + 12345u;
		text[i] = (char)('a' + (x >> 16) % 6);
	}
	return serve(argc, argv, answer);
}
