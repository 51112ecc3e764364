// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/codec.h"

#include <endian.h>
#include <string.h>

#define VARINT_MAX 10
#define DICT_MAX   256
#define DICT_SLOTS 1024 /* a power of two, well over DICT_MAX */

/* Bytes that the values would take. */
struct cost {
	size_t varint;
	size_t delta;
	size_t runs;
	size_t sparse;
	size_t nonzero_cnt;
	bool constant;
};

struct choice {
	enum shard_encoding encoding;
	size_t sz;
	size_t nonzero_cnt;
};

struct dict {
	uint64_t entries[DICT_MAX];
	uint32_t cnt;
	uint16_t slots[DICT_SLOTS]; /* index + 1 */
};

static inline unsigned varint_sz(uint64_t value)
{
	unsigned log2 = 63 - __builtin_clzll(value | 1);

	return (log2 * 9 + 73) / 64; /* = log2 / 7 + 1 for every log2 < 64 */
}

static inline uint64_t zigzag(uint64_t diff)
{
	return diff << 1 ^ (0 - (diff >> 63));
}

static inline uint8_t *put_varint(uint8_t *pos, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*pos++ = value | 0x80;
	*pos++ = value;
	return pos;
}

int shard_put_varint(struct shard_buf *out, uint64_t value)
{
	if (vec_reserve(out, VARINT_MAX))
		return -ENOMEM;
	out->cnt = put_varint(out->items + out->cnt, value) - out->items;
	return 0;
}

static void cost__measure(struct cost *cost, const uint64_t *values, size_t cnt)
{
	size_t run_idx = 0, zero_idx = 0;
	uint64_t before = 0;

	memset(cost, 0, sizeof(*cost));
	for (size_t i = 0; i < cnt; i++) {
		uint64_t value = values[i];
		unsigned sz = varint_sz(value);

		cost->varint += sz;
		cost->delta += varint_sz(zigzag(value - before));
		if (value != values[run_idx]) {
			cost->runs += varint_sz(before) + varint_sz(i - run_idx);
			run_idx = i;
		}
		if (value) {
			cost->sparse += sz + varint_sz(i - zero_idx);
			zero_idx = i + 1;
			cost->nonzero_cnt++;
		}
		before = value;
	}
	cost->constant = !run_idx;
	cost->runs += varint_sz(before) + varint_sz(cnt - run_idx);
	cost->sparse += varint_sz(cost->nonzero_cnt);
}

static struct choice choose(const uint64_t *values, size_t cnt)
{
	struct choice best = {.encoding = SHARD_ENC_RAW, .sz = cnt * sizeof(*values)};
	struct cost cost;

	cost__measure(&cost, values, cnt);
	best.nonzero_cnt = cost.nonzero_cnt;
	if (cost.constant) {
		best.encoding = SHARD_ENC_CONST;
		best.sz = varint_sz(values[0]);
		return best;
	}
#define OFFER(encoding_, sz_)                \
	if ((sz_) < best.sz) {               \
		best.encoding = (encoding_); \
		best.sz = (sz_);             \
	}
	OFFER(SHARD_ENC_SPARSE, cost.sparse)
	OFFER(SHARD_ENC_RUNS, cost.runs)
	OFFER(SHARD_ENC_VARINT, cost.varint)
	OFFER(SHARD_ENC_DELTA, cost.delta)
#undef OFFER
	return best;
}

static uint8_t *put_delta(uint8_t *pos, const uint64_t *values, size_t cnt)
{
	uint64_t before = 0;

	for (size_t i = 0; i < cnt; before = values[i++])
		pos = put_varint(pos, zigzag(values[i] - before));
	return pos;
}

static uint8_t *put_runs(uint8_t *pos, const uint64_t *values, size_t cnt)
{
	size_t run_idx = 0;

	for (size_t i = 1; i <= cnt; i++) {
		if (i < cnt && values[i] == values[run_idx])
			continue;
		pos = put_varint(pos, values[run_idx]);
		pos = put_varint(pos, i - run_idx);
		run_idx = i;
	}
	return pos;
}

static uint8_t *put_sparse(uint8_t *pos, const uint64_t *values, size_t cnt, size_t nonzero_cnt)
{
	size_t zero_idx = 0;

	pos = put_varint(pos, nonzero_cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (!values[i])
			continue;
		pos = put_varint(pos, i - zero_idx);
		pos = put_varint(pos, values[i]);
		zero_idx = i + 1;
	}
	return pos;
}

static uint8_t *put_raw(uint8_t *pos, const uint64_t *values, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++, pos += sizeof(uint64_t)) {
		uint64_t value = htole64(values[i]);

		memcpy(pos, &value, sizeof(value));
	}
	return pos;
}

static int put_chosen(struct shard_buf *out, const uint64_t *values, size_t cnt, struct choice choice)
{
	uint8_t *pos;

	if (vec_reserve(out, choice.sz + 1 + VARINT_MAX))
		return -ENOMEM;
	pos = out->items + out->cnt;
	*pos++ = choice.encoding;
	switch (choice.encoding) {
	case SHARD_ENC_CONST:
		pos = put_varint(pos, values[0]);
		break;
	case SHARD_ENC_DELTA:
		pos = put_delta(pos, values, cnt);
		break;
	case SHARD_ENC_RUNS:
		pos = put_runs(pos, values, cnt);
		break;
	case SHARD_ENC_SPARSE:
		pos = put_sparse(pos, values, cnt, choice.nonzero_cnt);
		break;
	case SHARD_ENC_RAW:
		pos = put_raw(pos, values, cnt);
		break;
	default:
		for (size_t i = 0; i < cnt; i++)
			pos = put_varint(pos, values[i]);
	}
	out->cnt = pos - out->items;
	return 0;
}

/* The index of value, or -1: there are too many different ones. */
static int dict__index(struct dict *dict, uint64_t value)
{
	uint32_t slot = value * 0x9e3779b97f4a7c15ULL >> 54;

	for (;; slot = (slot + 1) % DICT_SLOTS) {
		uint32_t entry = dict->slots[slot];

		if (entry && dict->entries[entry - 1] == value)
			return entry - 1;
		if (!entry)
			break;
	}
	if (dict->cnt == DICT_MAX)
		return -1;
	dict->entries[dict->cnt++] = value;
	dict->slots[slot] = dict->cnt;
	return dict->cnt - 1;
}

/* Turns values into indexes; false where the dictionary would not fit. */
static bool dict__build(struct dict *dict, const uint64_t *values, size_t cnt, uint64_t *indexes)
{
	dict->cnt = 0;
	memset(dict->slots, 0, sizeof(dict->slots));
	for (size_t i = 0; i < cnt; i++) {
		int idx = dict__index(dict, values[i]);

		if (idx < 0)
			return false;
		indexes[i] = idx;
	}
	return true;
}

static size_t dict__sz(const struct dict *dict)
{
	size_t sz = 1 + varint_sz(dict->cnt);

	for (uint32_t i = 0; i < dict->cnt; i++)
		sz += varint_sz(dict->entries[i]);
	return sz;
}

static int put_dict(struct shard_buf *out, const struct dict *dict)
{
	uint8_t *pos;

	if (vec_reserve(out, dict__sz(dict)))
		return -ENOMEM;
	pos = out->items + out->cnt;
	*pos++ = SHARD_ENC_DICT;
	pos = put_varint(pos, dict->cnt);
	for (uint32_t i = 0; i < dict->cnt; i++)
		pos = put_varint(pos, dict->entries[i]);
	out->cnt = pos - out->items;
	return 0;
}

static int put_diff(struct shard_buf *out, uint32_t ref_idx)
{
	if (vec_reserve(out, 1 + VARINT_MAX))
		return -ENOMEM;
	out->items[out->cnt++] = SHARD_ENC_DIFF;
	return shard_put_varint(out, ref_idx);
}

int shard_encoder__put(struct shard_encoder *encoder, struct shard_buf *out, const uint64_t *values, size_t cnt,
		       const struct shard_encode_hint *hint)
{
	struct choice plain = choose(values, cnt), other;
	uint64_t *scratch;
	struct dict dict;

	/* A column that takes a byte a value or less gains nothing from the rest: the block's codec deals with it. */
	if (plain.sz <= cnt || (!hint->ref && !hint->try_dict))
		return put_chosen(out, values, cnt, plain);
	encoder->scratch.cnt = 0;
	if (vec_reserve(&encoder->scratch, cnt))
		return -ENOMEM;
	scratch = encoder->scratch.items;
	if (hint->ref) {
		for (size_t i = 0; i < cnt; i++)
			scratch[i] = zigzag(values[i] - hint->ref[i]);
		other = choose(scratch, cnt);
		if (other.sz + 1 + varint_sz(hint->ref_idx) < plain.sz)
			return put_diff(out, hint->ref_idx) ?: put_chosen(out, scratch, cnt, other);
	}
	if (hint->try_dict && dict__build(&dict, values, cnt, scratch)) {
		other = choose(scratch, cnt);
		if (other.sz + dict__sz(&dict) < plain.sz)
			return put_dict(out, &dict) ?: put_chosen(out, scratch, cnt, other);
	}
	return put_chosen(out, values, cnt, plain);
}

void shard_encoder__clear(struct shard_encoder *encoder)
{
	vec_free(&encoder->scratch);
}
