/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec.h"

#define KEPT __attribute__((noipa))

static inline __attribute__((always_inline)) uint64_t work(uint64_t step_cnt)
{
	uint64_t x = 1;

	while (step_cnt--) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

KEPT static uint64_t codec_quantize(struct codec_block *block)
{
	return work(block->light_steps + block->heavy_steps);
}

KEPT static uint64_t codec_transform(struct codec_block *block)
{
	return work(2 * block->light_steps);
}

uint64_t codec_encode(struct codec_block *block)
{
	block->sum = codec_transform(block);
	block->sum += codec_quantize(block);
	return block->sum;
}

uint64_t codec_checksum(struct codec_block *block)
{
	block->sum ^= work(block->light_steps);
	return block->sum;
}
