/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders for qsort() and bsearch(), and the one binary search. */
#ifndef WHYLATE_BASE_ORDER_H
#define WHYLATE_BASE_ORDER_H

/* < 0, 0, > 0: the smaller first.  BY(y, x): the larger first. */
#define BY(x, y) (((x) > (y)) - ((x) < (y)))

#define ORDER_1(key)      (key)
#define ORDER_2(key, ...) (key) ?: ORDER_1(__VA_ARGS__)
#define ORDER_3(key, ...) (key) ?: ORDER_2(__VA_ARGS__)
#define ORDER_4(key, ...) (key) ?: ORDER_3(__VA_ARGS__)
#define ORDER_5(key, ...) (key) ?: ORDER_4(__VA_ARGS__)

#define ORDER_OF(k1, k2, k3, k4, k5, n, ...) ORDER_##n

/* By one key or up to five of them: ORDER(compare_ticks, struct tick, BY(a->tid, b->tid), BY(a->ts, b->ts)); */
#define ORDER(name, type, ...)                                              \
	static int name(const void *left_, const void *right_)              \
	{                                                                   \
		const __typeof__(type) *a = left_, *b = right_;             \
                                                                            \
		return ORDER_OF(__VA_ARGS__, 5, 4, 3, 2, 1, )(__VA_ARGS__); \
	}                                                                   \
	struct order_needs_a_semicolon

/*
 * The first place from `from` on, below `to`, where `condition`, which names the place, is true; `to` where there is
 * none.  The condition is false at every place before that one and true from it on.
 */
#define search_first(from, to, place, condition)                                  \
	({                                                                        \
		__typeof__((to) + 0) low_ = (from), high_ = (to);                 \
                                                                                  \
		while (low_ < high_) {                                            \
			const __typeof__(low_) place = low_ + (high_ - low_) / 2; \
                                                                                  \
			if (condition)                                            \
				high_ = place;                                    \
			else                                                      \
				low_ = place + 1;                                 \
		}                                                                 \
		low_;                                                             \
	})

#endif
