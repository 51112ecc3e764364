// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/codec.h"

#include <endian.h>
#include <string.h>

int shard_get_varint(struct shard_cursor *cursor, uint64_t *value)
{
	uint64_t got = 0;

	for (unsigned shift = 0; shift < 64 && cursor->pos < cursor->end; shift += 7) {
		uint64_t byte = *cursor->pos++;

		if (shift == 63 && byte > 1)
			return -EBADMSG;
		got |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = got;
			return 0;
		}
	}
	return -EBADMSG;
}

/* The short ones, which are nearly all, without a call. */
static inline int get_varint(struct shard_cursor *cursor, uint64_t *value)
{
	const uint8_t *pos = cursor->pos;

	if (cursor->end - pos >= 3) {
		if (pos[0] < 0x80) {
			*value = pos[0];
			cursor->pos += 1;
			return 0;
		}
		if (pos[1] < 0x80) {
			*value = (pos[0] & 0x7f) | pos[1] << 7;
			cursor->pos += 2;
			return 0;
		}
		if (pos[2] < 0x80) {
			*value = (pos[0] & 0x7f) | (pos[1] & 0x7f) << 7 | pos[2] << 14;
			cursor->pos += 3;
			return 0;
		}
	}
	return shard_get_varint(cursor, value);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static int get_const(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t value;

	if (shard_get_varint(cursor, &value))
		return -EBADMSG;
	for (size_t i = 0; i < cnt; i++)
		values[i].u64 = value;
	return 0;
}

static int get_each(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	/* A byte a value at least: what is too short is seen before the loop rather than at its end. */
	if ((size_t)(cursor->end - cursor->pos) < cnt)
		return -EBADMSG;
	for (size_t i = 0; i < cnt; i++)
		if (get_varint(cursor, &values[i].u64))
			return -EBADMSG;
	return 0;
}

static int get_delta(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t before = 0;

	if (get_each(cursor, values, cnt))
		return -EBADMSG;
	for (size_t i = 0; i < cnt; i++)
		before = values[i].u64 = before + unzigzag(values[i].u64);
	return 0;
}

static int get_runs(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t value, run;

	for (size_t i = 0; i < cnt;) {
		if (get_varint(cursor, &value) || get_varint(cursor, &run))
			return -EBADMSG;
		if (!run || run > cnt - i)
			return -EBADMSG;
		while (run--)
			values[i++].u64 = value;
	}
	return 0;
}

static int get_sparse(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t nonzero_cnt, zeros;
	size_t i = 0;

	if (shard_get_varint(cursor, &nonzero_cnt) || nonzero_cnt > cnt)
		return -EBADMSG;
	memset(values, 0, cnt * sizeof(*values));
	for (; nonzero_cnt; nonzero_cnt--, i++) {
		if (get_varint(cursor, &zeros) || zeros >= cnt - i)
			return -EBADMSG;
		i += zeros;
		if (get_varint(cursor, &values[i].u64))
			return -EBADMSG;
	}
	return 0;
}

static int get_raw(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t value;

	if ((size_t)(cursor->end - cursor->pos) / sizeof(value) < cnt)
		return -EBADMSG;
	for (size_t i = 0; i < cnt; i++, cursor->pos += sizeof(value)) {
		memcpy(&value, cursor->pos, sizeof(value));
		values[i].u64 = le64toh(value);
	}
	return 0;
}

static int get_plain(struct shard_cursor *cursor, uint8_t encoding, union shard_value *values, size_t cnt)
{
	switch (encoding) {
	case SHARD_ENC_CONST:
		return get_const(cursor, values, cnt);
	case SHARD_ENC_VARINT:
		return get_each(cursor, values, cnt);
	case SHARD_ENC_DELTA:
		return get_delta(cursor, values, cnt);
	case SHARD_ENC_RUNS:
		return get_runs(cursor, values, cnt);
	case SHARD_ENC_SPARSE:
		return get_sparse(cursor, values, cnt);
	case SHARD_ENC_RAW:
		return get_raw(cursor, values, cnt);
	case SHARD_ENC_DIFF:
	case SHARD_ENC_DICT:
		return -EBADMSG; /* these do not nest */
	default:
		return -ENOTSUP;
	}
}

static int get_nested(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	return cursor->pos < cursor->end ? get_plain(cursor, *cursor->pos++, values, cnt) : -EBADMSG;
}

static int get_diff(struct shard_cursor *cursor, union shard_value *values, size_t cnt, const struct shard_refs *refs)
{
	const union shard_value *ref;
	uint64_t ref_idx;
	int err;

	if (shard_get_varint(cursor, &ref_idx) || ref_idx >= refs->cnt || !refs->columns[ref_idx])
		return -EBADMSG;
	ref = refs->columns[ref_idx];
	err = get_nested(cursor, values, cnt);
	for (size_t i = 0; !err && i < cnt; i++)
		values[i].u64 = ref[i].u64 + unzigzag(values[i].u64);
	return err;
}

static int get_dict(struct shard_cursor *cursor, union shard_value *values, size_t cnt)
{
	uint64_t entry_cnt, *entries;
	int err = 0;

	if (shard_get_varint(cursor, &entry_cnt) || !entry_cnt || entry_cnt > (size_t)(cursor->end - cursor->pos))
		return -EBADMSG;
	entries = malloc(entry_cnt * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (uint64_t i = 0; !err && i < entry_cnt; i++)
		err = get_varint(cursor, &entries[i]);
	if (!err)
		err = get_nested(cursor, values, cnt);
	for (size_t i = 0; !err && i < cnt; i++) {
		if (values[i].u64 < entry_cnt)
			values[i].u64 = entries[values[i].u64];
		else
			err = -EBADMSG;
	}
	free(entries);
	return err;
}

int shard_decode(struct shard_cursor *cursor, union shard_value *values, size_t cnt, const struct shard_refs *refs)
{
	uint8_t encoding;

	if (cursor->pos == cursor->end)
		return -EBADMSG;
	encoding = *cursor->pos++;
	if (encoding == SHARD_ENC_DIFF)
		return get_diff(cursor, values, cnt, refs);
	if (encoding == SHARD_ENC_DICT)
		return get_dict(cursor, values, cnt);
	return get_plain(cursor, encoding, values, cnt);
}
