/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ClickHouse's format RowBinary: rows one after the other, their columns in order, integers little-endian, a string as
 * its length (a varint) and its bytes.  Without memory, `err` says so from then on (-ENOMEM).
 */
#ifndef WHYLATE_NET_PROJECT_ROWBINARY_H
#define WHYLATE_NET_PROJECT_ROWBINARY_H

#include "shard/format.h"

struct rowbinary {
	struct shard_buf bytes;
	size_t row_cnt;
	int err;
};

void rowbinary__u16(struct rowbinary *rows, uint16_t value); /* UInt16, Date */
void rowbinary__u32(struct rowbinary *rows, uint32_t value); /* UInt32, DateTime */
void rowbinary__u64(struct rowbinary *rows, uint64_t value);
void rowbinary__f64(struct rowbinary *rows, double value);
void rowbinary__str(struct rowbinary *rows, const char *text); /* NULL: empty */
static inline void rowbinary__end_row(struct rowbinary *rows)
{
	rows->row_cnt++;
}
/* Empties it and keeps its memory. */
void rowbinary__reset(struct rowbinary *rows);
void rowbinary__free(struct rowbinary *rows);

#endif
