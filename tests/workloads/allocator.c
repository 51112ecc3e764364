/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An allocator that two children share, as in Apache (VProfiler §4.7: ap_pass_brigade, basic_http_header and
 * apr_bucket_alloc): when its slab is used up, every allocation of a request has to prepare memory.  The children
 * covary without having anything to do with each other.  Planted: arena_alloc(), and so the nominal length of its slow
 * path.
 */
#include "common.h"

struct reply_parts {
	uint64_t dice;
	uint64_t planted_ns;
	int slab_is_empty;
};

KEPT static uint64_t arena_alloc(struct reply_parts *parts)
{
	uint64_t work_ns = NS_PER_US, slow_ns;

	if (parts->slab_is_empty) {
		slow_ns = random_between(&parts->dice, 1 * NS_PER_MS, 2 * NS_PER_MS);
		parts->planted_ns += slow_ns;
		work_ns += slow_ns;
	}
	burn(work_ns);
	return work_ns & 1;
}

KEPT static uint64_t build_header(struct reply_parts *parts)
{
	uint64_t sum = arena_alloc(parts);

	burn(70 * NS_PER_US + random_next(&parts->dice) % (7 * NS_PER_US));
	return sum;
}

KEPT static uint64_t build_body(struct reply_parts *parts)
{
	uint64_t sum = 0;

	burn(120 * NS_PER_US + random_next(&parts->dice) % (12 * NS_PER_US));
	sum += arena_alloc(parts);
	return sum;
}

KEPT static uint64_t read_file(struct reply_parts *parts)
{
	burn(100 * NS_PER_US + random_next(&parts->dice) % (10 * NS_PER_US));
	return parts->dice & 1;
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	struct reply_parts parts = {.dice = request->dice | 1ULL << 40, .slab_is_empty = request_chosen(request, 40)};
	uint64_t sum;

	(void)worker;
	sum = build_header(&parts);
	sum += read_file(&parts);
	sum += build_body(&parts);
	return parts.planted_ns + (sum & 1);
}

static const struct workload workload = {
	.name = "allocator",
	.category = "oncpu",
	.planted = "arena_alloc",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
