// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cause: the value of a variable.  Baskets of late requests have about a thousand items, those of others about ten;
 * pairs of items are compared, so the time is quadratic in `items`.  Most of it is spent in a callee, which is as ever.
 *
 * BASKET_LOG names a file that gets a line `FROM_TS TO_TS ITEMS` for each request: what the values were.
 */
#include "common.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#define ITEMS_MAX      2048
#define BIG_PER_MILLE  20
#define ROUNDS_PER_CMP 12

struct basket {
	uint64_t hash;
	uint32_t keys[ITEMS_MAX];
};

static FILE *items_log;

/* Baskets so far: a global that is the same in late and in other requests. */
uint64_t basket_cnt;

KEPT static uint64_t compare_items(uint64_t left, uint64_t right, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		left = (left ^ right) * 6364136223846793005ULL;
		__asm__ volatile("" : "+r"(left));
	}
	return left;
}

KEPT static uint64_t normalize_basket(struct basket *basket, int items)
{
	uint64_t hash = 0;

	for (int i = 0; i < items; i++)
		for (int j = 0; j < i; j++)
			hash ^= compare_items(basket->keys[i], basket->keys[j], ROUNDS_PER_CMP);
	basket->hash = hash;
	return hash;
}

/* What all requests take. */
KEPT static uint64_t price_basket(struct basket *basket, int steps)
{
	uint64_t price = basket->hash;

	for (int step = 0; step < steps; step++)
		price += compare_items(price, basket->keys[step % ITEMS_MAX], ROUNDS_PER_CMP);
	return price;
}

static int thread_start(struct worker *worker)
{
	worker->own = calloc(1, sizeof(struct basket));
	return worker->own ? 0 : -1;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	bool big = request_chosen(request, BIG_PER_MILLE);
	int items = big ? (int)random_between(&worker->random_state, 900, 1400)
			: (int)random_between(&worker->random_state, 8, 14);
	uint64_t from_ts = clock_now_ns(), to_ts;
	struct basket *basket = worker->own;

	basket_cnt++;
	price_basket(basket, 30000);
	normalize_basket(basket, items);
	to_ts = clock_now_ns();
	if (items_log)
		fprintf(items_log, "%" PRIu64 " %" PRIu64 " %d\n", from_ts, to_ts, items);
	return big ? to_ts - from_ts : 0;
}

static int server_start(struct run *run)
{
	(void)run;
	items_log = log_open("BASKET_LOG");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct workload workload = {
		.name = "basket",
		.category = "oncpu",
		.planted = "normalize_basket",
		.beneath = "compare_items",
		.connection_cnt = 2,
		.rate_hz = 100,
		.default_duration_s = 8,
		.cpu_cnt_needed = 1,
		.server_start = server_start,
		.thread_start = thread_start,
		.handle = handle,
	};

	return workload_main(argc, argv, &workload);
}
