/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variance in one function five calls beneath the handler: compare_keys() needs milliseconds in 4 % of the requests;
 * its parents and their other children take their time, too, and always nearly the same.  Planted: the work of the slow
 * calls by its nominal length.
 */
#include "common.h"

struct query {
	uint64_t dice;
	uint64_t planted_ns;
	uint64_t row_cnt;
};

/* A few percent of jitter, so that no function is a constant. */
static uint64_t about(struct query *query, uint64_t work_ns)
{
	return work_ns + random_next(&query->dice) % (work_ns / 20);
}

KEPT static uint64_t compare_keys(struct query *query)
{
	uint64_t work_ns = about(query, 8 * NS_PER_US);

	if (random_next(&query->dice) % 1000 < 10) {
		query->planted_ns = random_between(&query->dice, 3 * NS_PER_MS, 6 * NS_PER_MS);
		work_ns += query->planted_ns;
	}
	burn(work_ns);
	return work_ns & 1;
}

KEPT static uint64_t unpack_row(struct query *query)
{
	burn(about(query, 10 * NS_PER_US));
	return query->row_cnt++;
}

KEPT static uint64_t match_row(struct query *query)
{
	uint64_t found = unpack_row(query);

	burn(about(query, 4 * NS_PER_US));
	return found + compare_keys(query);
}

KEPT static uint64_t probe_bucket(struct query *query)
{
	uint64_t found = 0;

	for (int i = 0; i < 2; i++)
		found += match_row(query);
	burn(about(query, 6 * NS_PER_US));
	return found;
}

KEPT static uint64_t hash_row(struct query *query)
{
	burn(about(query, 25 * NS_PER_US));
	return query->row_cnt;
}

KEPT static uint64_t join_rows(struct query *query)
{
	uint64_t found = 0;

	for (int i = 0; i < 2; i++) {
		found += hash_row(query);
		found += probe_bucket(query);
	}
	return found;
}

KEPT static uint64_t sort_rows(struct query *query)
{
	burn(about(query, 70 * NS_PER_US));
	return query->row_cnt;
}

KEPT static uint64_t run_query(struct query *query)
{
	uint64_t found = join_rows(query);

	return found + sort_rows(query);
}

KEPT static uint64_t plan_query(struct query *query)
{
	burn(about(query, 90 * NS_PER_US));
	return query->dice & 1;
}

KEPT static uint64_t parse_query(struct query *query)
{
	burn(about(query, 60 * NS_PER_US));
	return query->dice & 1;
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct query query = {.dice = request->dice | 1ULL << 40};
	uint64_t sum;

	(void)worker;
	sum = parse_query(&query) + plan_query(&query) + run_query(&query);
	return sum ? query.planted_ns : query.planted_ns + 1;
}

static const struct workload workload = {
	.name = "deep",
	.category = "oncpu",
	.planted = "compare_keys",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
