/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variance in a C++ method behind a virtual call, five calls beneath the handler, in a program that throws through the
 * functions above it: store::Index<unsigned long>::rebalance().  Planted: the nominal length of its slow work.
 */
#include "common.h"
#include "lib/engine.h"

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t planted_ns = 0, sum;

	(void)worker;
	sum = engine_answer(request->dice, spin_steps_per_ns, &planted_ns);
	return planted_ns + (sum & 1);
}

static const struct workload workload = {
	.name = "cplusplus",
	.category = "oncpu",
	.planted = "store::Index<unsigned long>::rebalance",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
