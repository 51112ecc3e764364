/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorts (key, row) pairs by key: least-significant-digit radix sort, linear in the number of rows, stable. */
#ifndef WHYLATE_ANALYSIS_SORT_H
#define WHYLATE_ANALYSIS_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_pair {
	uint64_t key;
	uint32_t row;
	uint32_t zero;
};

/* Two arrays of the same room: the pairs are put into pairs[0], the other one is needed for sorting. */
struct sort_scratch {
	struct sort_pair *pairs[2];
};

int sort_scratch__init(struct sort_scratch *scratch, size_t room); /* 0 or -ENOMEM */
void sort_scratch__free(struct sort_scratch *scratch);

/* Sorts the first cnt of scratch->pairs[0]; the result is in the array that is returned, one of the two. */
struct sort_pair *sort_pairs(struct sort_scratch *scratch, size_t cnt);

/* For qsort(): ascending; NAN has no place. */
int compare_doubles(const void *left, const void *right);

#endif
