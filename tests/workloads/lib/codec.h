/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A shared library for the workload `library`: it encodes blocks, some of which take milliseconds. */
#ifndef WORKLOADS_LIB_CODEC_H
#define WORKLOADS_LIB_CODEC_H

#include <stdint.h>

struct codec_block {
	uint64_t light_steps, heavy_steps; /* of work; heavy ones are what varies */
	uint64_t sum;
};

uint64_t codec_encode(struct codec_block *block);
uint64_t codec_checksum(struct codec_block *block);

#endif
