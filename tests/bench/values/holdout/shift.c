// SPDX-License-Identifier: GPL-2.0-or-later
/* A list that is kept in order by shifting: late timestamps go to its front, one by one. */
#include "serve.h"

struct series {
	int cnt;
	long at[8000];
};

static __attribute__((noinline)) void add_point(struct series *series, long at)
{
	int i = series->cnt++;

	while (i > 0 && series->at[i - 1] > at) {
		series->at[i] = series->at[i - 1];
		i--;
	}
	series->at[i] = at;
}

static size_t answer(const char *path, char *body)
{
	struct series *series = (struct series *)calloc(1, sizeof(*series));
	int cnt = strncmp(path, "/late", 5) ? 150 : 8000;
	long sum;

	for (int i = 0; i < cnt; i++)
		add_point(series, 10L * (cnt - i));
	sum = series->at[cnt / 2];
	free(series);
	return (size_t)sprintf(body, "%ld\n", sum);
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
