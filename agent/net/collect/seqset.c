// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/seqset.h"

#include "base/order.h"
#include "base/vec.h"

#include <string.h>

/* The first range that ends at or after seq; cnt if none does. */
static size_t seqset__find(const struct seqset *set, uint64_t seq)
{
	size_t to = set->cnt;

	/* What arrives belongs to the end, nearly always. */
	if (!to || set->items[to - 1].last < seq)
		return to;
	return search_first(0, to, mid, set->items[mid].last >= seq);
}

static void seqset__delete(struct seqset *set, size_t at)
{
	set->cnt--;
	memmove(set->items + at, set->items + at + 1, (set->cnt - at) * sizeof(*set->items));
}

static void seqset__insert(struct seqset *set, size_t at, struct seqset_range range)
{
	memmove(set->items + at + 1, set->items + at, (set->cnt - at) * sizeof(*set->items));
	set->items[at] = range;
	set->cnt++;
}

int seqset__add(struct seqset *set, uint64_t seq)
{
	size_t at = seqset__find(set, seq);
	struct seqset_range *after = at < set->cnt ? &set->items[at] : NULL, *before = at ? &set->items[at - 1] : NULL;

	if (after && after->first <= seq)
		return 0;
	if (before && before->last + 1 == seq) {
		before->last = seq;
		if (after && after->first == seq + 1) {
			before->last = after->last;
			seqset__delete(set, at);
		}
		return 1;
	}
	if (after && after->first == seq + 1) {
		after->first = seq;
		return 1;
	}
	if (set->cnt >= SEQSET_RANGES_MAX)
		return -ENOSPC;
	if (vec_reserve(set, 2)) /* one for taking it back */
		return -ENOMEM;
	seqset__insert(set, at, (struct seqset_range){seq, seq});
	return 1;
}

void seqset__remove(struct seqset *set, uint64_t seq)
{
	size_t at = seqset__find(set, seq);
	struct seqset_range *range = &set->items[at];
	struct seqset_range upper;

	if (at >= set->cnt || range->first > seq)
		return;
	if (range->first == range->last) {
		seqset__delete(set, at);
	} else if (range->first == seq) {
		range->first++;
	} else if (range->last == seq) {
		range->last--;
	} else {
		upper = (struct seqset_range){seq + 1, range->last};
		range->last = seq - 1;
		seqset__insert(set, at + 1, upper);
	}
}

void seqset__clear(struct seqset *set)
{
	vec_free(set);
}
