// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/project/rowbinary.h"

#include "base/bytes.h"

#define VARINT_MAX 10

static void put_int(struct rowbinary *rows, uint64_t value, unsigned sz)
{
	if (rows->err || vec_reserve(&rows->bytes, sz)) {
		rows->err = -ENOMEM;
		return;
	}
	put_le(rows->bytes.items + rows->bytes.cnt, value, sz);
	rows->bytes.cnt += sz;
}

void rowbinary__u16(struct rowbinary *rows, uint16_t value)
{
	put_int(rows, value, 2);
}

void rowbinary__u32(struct rowbinary *rows, uint32_t value)
{
	put_int(rows, value, 4);
}

void rowbinary__u64(struct rowbinary *rows, uint64_t value)
{
	put_int(rows, value, 8);
}

void rowbinary__f64(struct rowbinary *rows, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_int(rows, bits, 8);
}

void rowbinary__str(struct rowbinary *rows, const char *text)
{
	size_t sz = text ? strlen(text) : 0, left = sz;

	if (rows->err || vec_reserve(&rows->bytes, VARINT_MAX + sz)) {
		rows->err = -ENOMEM;
		return;
	}
	for (; left >= 0x80; left >>= 7)
		rows->bytes.items[rows->bytes.cnt++] = (uint8_t)(left | 0x80);
	rows->bytes.items[rows->bytes.cnt++] = (uint8_t)left;
	if (sz)
		memcpy(rows->bytes.items + rows->bytes.cnt, text, sz);
	rows->bytes.cnt += sz;
}

void rowbinary__reset(struct rowbinary *rows)
{
	rows->bytes.cnt = rows->row_cnt = 0;
	rows->err = 0;
}

void rowbinary__free(struct rowbinary *rows)
{
	vec_free(&rows->bytes);
}
