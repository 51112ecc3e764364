/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variance in a shared library, behind the PLT: codec_quantize() of libwlcodec.so needs milliseconds for some blocks.
 * Planted: the nominal length of that work.
 */
#include "common.h"
#include "lib/codec.h"

KEPT static uint64_t store_block(struct codec_block *block)
{
	burn(90 * NS_PER_US);
	return block->sum & 1;
}

KEPT static uint64_t pack_block(struct codec_block *block)
{
	uint64_t sum = codec_encode(block);

	burn(30 * NS_PER_US);
	return sum ^ codec_checksum(block);
}

KEPT static uint64_t handle(struct worker *worker, const struct request *request)
{
	uint64_t dice = request->dice | 1ULL << 40, planted_ns = 0, sum;
	struct codec_block block = {0};

	(void)worker;
	if (request_chosen(request, 40))
		planted_ns = random_between(&dice, 2 * NS_PER_MS, 5 * NS_PER_MS);
	block.light_steps =
		(uint64_t)((double)random_between(&dice, 60 * NS_PER_US, 64 * NS_PER_US) * spin_steps_per_ns);
	block.heavy_steps = (uint64_t)((double)planted_ns * spin_steps_per_ns);
	sum = pack_block(&block);
	sum += store_block(&block);
	return planted_ns + (sum & 1);
}

static const struct workload workload = {
	.name = "library",
	.category = "oncpu",
	.planted = "codec_quantize",
	.connection_cnt = 1,
	.rate_hz = 300,
	.default_duration_s = 10,
	.handle = handle,
};

int main(int argc, char **argv)
{
	return workload_main(argc, argv, &workload);
}
