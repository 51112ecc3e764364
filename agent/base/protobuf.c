// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/protobuf.h"

#include "base/utf8.h"
#include "base/vec.h"

#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define VARINT_MAX 10

static void put_varint(struct proto *message, uint64_t value)
{
	if (message->err || vec_reserve(message, VARINT_MAX)) {
		message->err = -ENOMEM;
		return;
	}
	for (; value >= 0x80; value >>= 7)
		message->items[message->cnt++] = (uint8_t)(value | 0x80);
	message->items[message->cnt++] = (uint8_t)value;
}

static void put_tag(struct proto *message, uint32_t field, enum wire_type type)
{
	put_varint(message, (uint64_t)field << 3 | type);
}

static void put_raw(struct proto *message, const void *bytes, size_t sz)
{
	if (message->err || vec_reserve(message, sz)) {
		message->err = -ENOMEM;
		return;
	}
	if (sz)
		memcpy(message->items + message->cnt, bytes, sz);
	message->cnt += sz;
}

void proto__uint(struct proto *message, uint32_t field, uint64_t value)
{
	put_tag(message, field, WIRE_VARINT);
	put_varint(message, value);
}

void proto__sint(struct proto *message, uint32_t field, int64_t value)
{
	proto__uint(message, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void proto__fixed64(struct proto *message, uint32_t field, uint64_t value)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	put_tag(message, field, WIRE_FIXED64);
	put_raw(message, bytes, sizeof(bytes));
}

void proto__double(struct proto *message, uint32_t field, double value)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == sizeof(value), "IEEE 754");
	memcpy(&bits, &value, sizeof(bits));
	proto__fixed64(message, field, bits);
}

static size_t varint_sz(uint64_t value)
{
	size_t sz = 1;

	for (; value >= 0x80; value >>= 7)
		sz++;
	return sz;
}

void proto__packed(struct proto *message, uint32_t field, const uint64_t *values, size_t cnt)
{
	size_t sz = 0;

	if (!cnt)
		return;
	for (size_t i = 0; i < cnt; i++)
		sz += varint_sz(values[i]);
	put_tag(message, field, WIRE_BYTES);
	put_varint(message, sz);
	for (size_t i = 0; i < cnt; i++)
		put_varint(message, values[i]);
}

void proto__bytes(struct proto *message, uint32_t field, const void *bytes, size_t sz)
{
	put_tag(message, field, WIRE_BYTES);
	put_varint(message, sz);
	put_raw(message, bytes, sz);
}

void proto__string(struct proto *message, uint32_t field, const char *text)
{
	char *valid = utf8_valid(text);

	if (valid)
		proto__bytes(message, field, valid, strlen(valid));
	else
		message->err = -ENOMEM;
	free(valid);
}

void proto__message(struct proto *message, uint32_t field, const struct proto *within)
{
	if (within->err)
		message->err = within->err;
	else
		proto__bytes(message, field, within->items, within->cnt);
}

void proto__delimited(struct proto *stream, const struct proto *message)
{
	if (message->err)
		stream->err = message->err;
	put_varint(stream, message->cnt);
	put_raw(stream, message->items, message->cnt);
}

void proto__reset(struct proto *message)
{
	message->cnt = 0;
	message->err = 0;
}

void proto__free(struct proto *message)
{
	vec_free(message);
}
