/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A growing array of any element type: VEC(int) numbers = {0}; the owner frees it with vec_free().
 * vec_push() returns 0 or -ENOMEM and leaves the array as it was on failure.
 */
#ifndef WHYLATE_BASE_VEC_H
#define WHYLATE_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)            \
	struct {             \
		type *items; \
		size_t cnt;  \
		size_t room; \
	}

/* Makes room for `more` elements beyond cnt: 0 or -ENOMEM. */
#define vec_reserve(vec, more) \
	vec_grow_((void **)&(vec)->items, &(vec)->room, (vec)->cnt, (more), sizeof(*(vec)->items))

#define vec_push(vec, item) (vec_reserve(vec, 1) ? -ENOMEM : ((vec)->items[(vec)->cnt++] = (item), 0))

/* So many elements at least, of which those that are added are zero: 0 or -ENOMEM. */
#define vec_extend(vec, wanted) \
	vec_extend_((void **)&(vec)->items, &(vec)->cnt, &(vec)->room, (wanted), sizeof(*(vec)->items))

/* By an order of qsort() (order.h). */
#define vec_sort(vec, order)                                                             \
	do {                                                                             \
		if ((vec)->cnt)                                                          \
			qsort((vec)->items, (vec)->cnt, sizeof(*(vec)->items), (order)); \
	} while (0)

/* Removes the first element that equals `item`; the last one takes its place.  False: not found. */
#define vec_take_out(vec, item)                                         \
	({                                                              \
		size_t at_ = 0;                                         \
                                                                        \
		while (at_ < (vec)->cnt && (vec)->items[at_] != (item)) \
			at_++;                                          \
		if (at_ < (vec)->cnt)                                   \
			(vec)->items[at_] = (vec)->items[--(vec)->cnt]; \
		else                                                    \
			at_ = SIZE_MAX;                                 \
		at_ != SIZE_MAX;                                        \
	})

/* Gives back the room that is not used. */
#define vec_shrink(vec) vec_shrink_((void **)&(vec)->items, &(vec)->room, (vec)->cnt, sizeof(*(vec)->items))

#define vec_free(vec)                         \
	do {                                  \
		free((vec)->items);           \
		(vec)->items = NULL;          \
		(vec)->cnt = (vec)->room = 0; \
	} while (0)

static inline int vec_grow_(void **items, size_t *room, size_t cnt, size_t more, size_t item_sz)
{
	size_t want, bytes;
	void *grown;

	if (__builtin_add_overflow(cnt, more, &want))
		return -ENOMEM;
	if (want <= *room)
		return 0;
	if (want < *room * 2)
		want = *room * 2;
	if (want < 8)
		want = 8;
	if (__builtin_mul_overflow(want, item_sz, &bytes))
		return -ENOMEM;
	grown = realloc(*items, bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*room = want;
	return 0;
}

static inline int vec_extend_(void **items, size_t *cnt, size_t *room, size_t wanted, size_t item_sz)
{
	if (wanted <= *cnt)
		return 0;
	if (vec_grow_(items, room, *cnt, wanted - *cnt, item_sz))
		return -ENOMEM;
	memset((char *)*items + *cnt * item_sz, 0, (wanted - *cnt) * item_sz);
	*cnt = wanted;
	return 0;
}

static inline void vec_shrink_(void **items, size_t *room, size_t cnt, size_t item_sz)
{
	void *shrunk = cnt && cnt < *room ? realloc(*items, cnt * item_sz) : NULL;

	if (!shrunk)
		return;
	*items = shrunk;
	*room = cnt;
}

#endif
