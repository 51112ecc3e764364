// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cause: the value of a member that a caller's pointer leads to.  Orders of late requests have some thousand items,
 * those of others some hundred.  The time is spent in a function that knows nothing of orders: the pointer is in a
 * register of its caller, and, as code without optimisation keeps it, in the frame of the next one.
 *
 * ORDER_LOG names a file that gets a line `FROM_TS TO_TS ITEMS` for each request.
 */
#include "common.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#define BIG_PER_MILLE   30
#define PART_ITEMS      50
#define ROUNDS_PER_ITEM 600

struct order {
	uint64_t total;
	uint32_t customer, items;
};

static FILE *items_log;

KEPT static uint64_t price_item(uint64_t sum)
{
	for (int round = 0; round < ROUNDS_PER_ITEM; round++) {
		sum = (sum ^ 0x5bd1e995) * 6364136223846793005ULL;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

KEPT static void price_part(struct order *order, uint32_t begin)
{
	for (uint32_t item = begin; item < order->items && item - begin < PART_ITEMS; item++)
		order->total += price_item(order->total + item);
}

__attribute__((optimize("O0"))) KEPT static void price_order(struct order *order)
{
	for (uint32_t item = 0; item < order->items; item += PART_ITEMS)
		price_part(order, item);
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	bool big = request_chosen(request, BIG_PER_MILLE);
	uint64_t from_ts = clock_now_ns(), to_ts;
	struct order *order = calloc(1, sizeof(*order));
	uint32_t items = (uint32_t)(big ? random_between(&worker->random_state, 4000, 9000)
					: random_between(&worker->random_state, 300, 500));

	if (!order)
		return 0;
	order->items = items;
	price_order(order);
	free(order);
	to_ts = clock_now_ns();
	if (items_log)
		fprintf(items_log, "%" PRIu64 " %" PRIu64 " %" PRIu32 "\n", from_ts, to_ts, items);
	return big ? to_ts - from_ts : 0;
}

static int server_start(struct run *run)
{
	(void)run;
	items_log = log_open("ORDER_LOG");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct workload workload = {
		.name = "order",
		.category = "oncpu",
		.planted = "price_part",
		.beneath = "price_item",
		.connection_cnt = 2,
		.rate_hz = 100,
		.default_duration_s = 8,
		.cpu_cnt_needed = 1,
		.server_start = server_start,
		.handle = handle,
	};

	return workload_main(argc, argv, &workload);
}
