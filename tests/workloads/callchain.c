// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every request goes down the same calls: answer_request() → answer_by_pointer(), by a function pointer → qsort() of
 * the C library, by the linker's stub → compare_slowly().  One in twenty also waits, below answer_request() →
 * wait_for_it().  Planted: that wait.
 */
#include "common.h"

#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t calls;

static NOINLINE int compare_slowly(const void *left, const void *right)
{
	const int *a = left, *b = right;

	spin_work(50 * NS_PER_US);
	calls++;
	return (*a > *b) - (*a < *b);
}

static NOINLINE void answer_by_pointer(void)
{
	int numbers[8] = {3, 1, 4, 1, 5, 9, 2, 6};

	qsort(numbers, 8, sizeof(numbers[0]), compare_slowly);
	calls++;
}

static void (*volatile answer)(void) = answer_by_pointer;

static NOINLINE uint64_t wait_for_it(struct worker *worker)
{
	uint64_t start_ts = clock_now_ns();

	sleep_for_ns(random_between(&worker->random_state, 10 * NS_PER_MS, 20 * NS_PER_MS));
	calls++;
	return clock_now_ns() - start_ts;
}

static NOINLINE uint64_t answer_request(struct worker *worker, const struct request *request)
{
	uint64_t waited_ns = 0;

	answer();
	if (request_chosen(request, 50))
		waited_ns = wait_for_it(worker);
	calls++;
	return waited_ns;
}

static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t waited_ns = answer_request(worker, request);

	calls++;
	return waited_ns;
}

static const struct workload workload = {
	.name = "callchain",
	.category = "sleep",
	.connection_cnt = 4,
	.rate_hz = 100,
	.default_duration_s = 6,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
