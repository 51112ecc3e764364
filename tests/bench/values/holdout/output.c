// SPDX-License-Identifier: GPL-2.0-or-later
/* A wrong comparison (as HTTPD-62668): a filter passes on nothing while what it holds is no longer than its limit. */
#include "serve.h"

enum { TURNS_MAX = 1200 };

struct bucket {
	unsigned len, held;
	int flush;
};

static __attribute__((noinline)) uint32_t compress_part(uint32_t state, unsigned len)
{
	for (unsigned at = 0; at < 40 + len; at++)
		state = (state ^ state >> 9) * 2654435761u + at;
	return state;
}

/* The limit is compared with the rest, which a flush leaves as it is: only the patience ends the loop. */
static __attribute__((noinline)) uint32_t pass_on(struct bucket *bucket, unsigned limit)
{
	uint32_t state = 7;

	for (unsigned turn = 0; bucket->len && turn < TURNS_MAX; turn++) {
		unsigned part = bucket->len < limit ? bucket->len : limit;

		state = compress_part(state, part);
		if (bucket->flush && bucket->len <= limit)
			bucket->held = part;
		else
			bucket->len -= part;
	}
	return state;
}

static size_t answer(const char *path, char *body)
{
	struct bucket bucket = {6000, 0, !strncmp(path, "/stream", 7)};

	return (size_t)sprintf(body, "%u\n", pass_on(&bucket, 500));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
