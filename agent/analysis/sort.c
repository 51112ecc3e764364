// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/sort.h"

#include <errno.h>
#include <stdlib.h>

/* 2^8 write positions stay within the first-level TLB and cache; eleven bits save a pass and lose more to misses. */
#define DIGIT_BITS 8
#define DIGIT_CNT  (1 << DIGIT_BITS)

int sort_scratch__init(struct sort_scratch *scratch, size_t room)
{
	for (int i = 0; i < 2; i++) {
		scratch->pairs[i] = calloc(room ? room : 1, sizeof(struct sort_pair));
		if (!scratch->pairs[i]) {
			sort_scratch__free(scratch);
			return -ENOMEM;
		}
	}
	return 0;
}

void sort_scratch__free(struct sort_scratch *scratch)
{
	for (int i = 0; i < 2; i++) {
		free(scratch->pairs[i]);
		scratch->pairs[i] = NULL;
	}
}

static void scatter(struct sort_pair *to, const struct sort_pair *from, size_t cnt, unsigned shift)
{
	size_t starts[DIGIT_CNT] = {0}, sum = 0, here;

	for (size_t i = 0; i < cnt; i++)
		starts[from[i].key >> shift & (DIGIT_CNT - 1)]++;
	for (unsigned d = 0; d < DIGIT_CNT; d++) {
		here = starts[d];
		starts[d] = sum;
		sum += here;
	}
	for (size_t i = 0; i < cnt; i++)
		to[starts[from[i].key >> shift & (DIGIT_CNT - 1)]++] = from[i];
}

static struct sort_pair *sort_few(struct sort_pair *pairs, size_t cnt)
{
	for (size_t i = 1; i < cnt; i++) {
		struct sort_pair pair = pairs[i];
		size_t at = i;

		for (; at && pairs[at - 1].key > pair.key; at--)
			pairs[at] = pairs[at - 1];
		pairs[at] = pair;
	}
	return pairs;
}

struct sort_pair *sort_pairs(struct sort_scratch *scratch, size_t cnt)
{
	struct sort_pair *from = scratch->pairs[0], *to = scratch->pairs[1], *swap;
	uint64_t all_or = 0, all_and = ~0ULL;

	if (cnt <= 32)
		return sort_few(from, cnt);
	for (size_t i = 0; i < cnt; i++) {
		all_or |= from[i].key;
		all_and &= from[i].key;
	}
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		/* A digit that is the same in every key orders nothing. */
		if (!((all_or ^ all_and) >> shift & (DIGIT_CNT - 1)))
			continue;
		scatter(to, from, cnt, shift);
		swap = from;
		from = to;
		to = swap;
	}
	return from;
}

int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}
