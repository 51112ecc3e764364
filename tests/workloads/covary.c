/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two functions that are slow together: decode_rows() and index_rows() both work on every row of a page, and some pages
 * have many.  Neither varies by itself as much as both do together.  Planted: their covariance, and so the nominal
 * length of the work on the rows.
 */
#include "common.h"

struct page {
	uint64_t dice;
	uint64_t row_cnt;
};

KEPT static uint64_t decode_rows(struct page *page)
{
	burn(page->row_cnt * 2 * NS_PER_US + random_next(&page->dice) % NS_PER_US);
	return page->row_cnt;
}

KEPT static uint64_t index_rows(struct page *page)
{
	burn(page->row_cnt * 2 * NS_PER_US + random_next(&page->dice) % NS_PER_US);
	return page->row_cnt;
}

KEPT static uint64_t check_page(struct page *page)
{
	burn(90 * NS_PER_US + random_next(&page->dice) % (10 * NS_PER_US));
	return page->dice & 1;
}

KEPT static uint64_t load_page(struct page *page)
{
	uint64_t sum = check_page(page);

	sum += decode_rows(page);
	burn(10 * NS_PER_US);
	return sum + index_rows(page);
}

KEPT static uint64_t send_page(struct page *page)
{
	burn(60 * NS_PER_US + random_next(&page->dice) % (10 * NS_PER_US));
	return page->dice & 1;
}

KEPT static uint64_t find_page(struct page *page)
{
	burn(80 * NS_PER_US);
	page->row_cnt = random_next(&page->dice) % 1000 < 40 ? random_between(&page->dice, 800, 1600)
							     : random_between(&page->dice, 20, 25);
	return page->dice & 1;
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct page page = {.dice = request->dice | 1ULL << 40};
	uint64_t sum;

	(void)worker;
	sum = find_page(&page);
	sum += load_page(&page);
	sum += send_page(&page);
	return page.row_cnt * 4 * NS_PER_US + (sum & 1);
}

static const struct workload workload = {
	.name = "covary",
	.category = "oncpu",
	.planted = "decode_rows\nindex_rows",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
