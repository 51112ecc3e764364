// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/codec.h"
#include "shard/compress.h"
#include "shard/crc32c.h"
#include "test_shard_util.h"
#include "unit.h"

#include <string.h>

#define VALUES_MAX 700

static void crc32c_gives_the_known_answers(void)
{
	uint8_t bytes[300];
	struct test_rng rng = {1};

	CU_ASSERT_EQUAL(crc32c(0, "123456789", 9), 0xe3069283u);
	CU_ASSERT_EQUAL(crc32c_portable(0, "123456789", 9), 0xe3069283u);
	CU_ASSERT_EQUAL(crc32c(0, "", 0), 0);
	CU_ASSERT_EQUAL(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = test_rng__next(&rng);
	for (size_t sz = 0; sz < sizeof(bytes); sz++)
		CU_ASSERT_EQUAL(crc32c(0, bytes, sz), crc32c_portable(0, bytes, sz));
}

static void a_varint_survives_and_an_overlong_one_is_refused(void)
{
	static const uint8_t ten_of_ones[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
	static const uint8_t too_large[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
	static const uint8_t endless[] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1};
	uint64_t value;

	for (int shift = 0; shift < 64; shift++) {
		for (int delta = -1; delta <= 1; delta++) {
			uint64_t wanted = (1ULL << shift) + delta;
			struct shard_buf buf = {0};
			struct shard_cursor cursor;

			CU_ASSERT_EQUAL(shard_put_varint(&buf, wanted), 0);
			cursor = (struct shard_cursor){buf.items, buf.items + buf.cnt};
			CU_ASSERT_EQUAL(shard_get_varint(&cursor, &value), 0);
			CU_ASSERT(value == wanted && cursor.pos == cursor.end);
			cursor = (struct shard_cursor){buf.items, buf.items + buf.cnt - 1};
			CU_ASSERT_EQUAL(shard_get_varint(&cursor, &value), -EBADMSG);
			vec_free(&buf);
		}
	}
	CU_ASSERT_EQUAL(shard_get_varint(&(struct shard_cursor){ten_of_ones, ten_of_ones + 10}, &value), 0);
	CU_ASSERT(value == UINT64_MAX);
	CU_ASSERT_EQUAL(shard_get_varint(&(struct shard_cursor){too_large, too_large + 10}, &value), -EBADMSG);
	CU_ASSERT_EQUAL(shard_get_varint(&(struct shard_cursor){endless, endless + 11}, &value), -EBADMSG);
}

/* Shapes that columns have, and some that they never should. */
static uint64_t shape(unsigned which, size_t i, uint64_t before, struct test_rng *rng)
{
	switch (which) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return i % 2 ? UINT64_MAX : 0;
	case 3:
		return before + test_rng__below(rng, 20000); /* a timestamp */
	case 4:
		return test_rng__next(rng);
	case 5:
		return test_rng__next(rng) >> test_rng__below(rng, 64);
	case 6:
		return test_rng__below(rng, 40) ? 0 : test_rng__next(rng) >> 40; /* a rare event */
	case 7:
		return test_rng__below(rng, 50) ? before : test_rng__next(rng); /* long runs */
	case 8:
		return 0x7f0000000000 + 4096 * test_rng__below(rng, 9); /* a few identifiers */
	case 9:
		return 0x7f0000000000 + 4096 * test_rng__below(rng, 600); /* too many of them */
	case 10:
		return i; /* a sequence number */
	default:
		return i ? 1ULL << 63 : 0;
	}
}

#define SHAPE_CNT 12

static void fill(uint64_t *values, size_t cnt, unsigned which, struct test_rng *rng)
{
	for (size_t i = 0; i < cnt; i++)
		values[i] = shape(which, i, i ? values[i - 1] : 1000000000, rng);
}

static bool decodes_to(const struct shard_buf *buf, const uint64_t *values, size_t cnt, const uint64_t *ref)
{
	static union shard_value got[VALUES_MAX];
	const union shard_value *columns[] = {NULL, (const union shard_value *)ref};
	struct shard_refs refs = {columns, 2};
	struct shard_cursor cursor = {buf->items, buf->items + buf->cnt};

	return !shard_decode(&cursor, got, cnt, &refs) && cursor.pos == cursor.end &&
	       !memcmp(got, values, cnt * sizeof(*values));
}

static void every_shape_of_column_survives(void)
{
	static uint64_t values[VALUES_MAX], ref[VALUES_MAX];
	static const size_t sizes[] = {1, 2, 3, 63, 64, 65, VALUES_MAX};
	struct shard_encoder encoder = {0};
	struct shard_buf buf = {0};
	struct test_rng rng = {2};

	for (unsigned i = 0; i < SHAPE_CNT * 7 * SHAPE_CNT; i++) {
		size_t cnt = sizes[i / SHAPE_CNT % 7];
		unsigned ref_shape = i / SHAPE_CNT / 7;
		struct shard_encode_hint hint = {.try_dict = i % 2, .ref_idx = 1};

		fill(values, cnt, i % SHAPE_CNT, &rng);
		fill(ref, cnt, ref_shape, &rng);
		hint.ref = ref_shape ? ref : NULL;
		buf.cnt = 0;
		CU_ASSERT_EQUAL(shard_encoder__put(&encoder, &buf, values, cnt, &hint), 0);
		CU_ASSERT(decodes_to(&buf, values, cnt, ref));
		CU_ASSERT(buf.cnt <= cnt * sizeof(*values) + 11);
	}
	vec_free(&buf);
	shard_encoder__clear(&encoder);
}

static void each_shape_meets_the_encoding_made_for_it(void)
{
	static const struct {
		unsigned shape;
		enum shard_encoding encoding;
	} wanted[] = {
		{0, SHARD_ENC_CONST},  {1, SHARD_ENC_CONST}, {3, SHARD_ENC_DELTA}, {4, SHARD_ENC_RAW},
		{6, SHARD_ENC_SPARSE}, {7, SHARD_ENC_RUNS},  {8, SHARD_ENC_DICT},
	};
	static uint64_t values[VALUES_MAX], near[VALUES_MAX];
	struct shard_encode_hint hint = {.try_dict = true};
	struct shard_encoder encoder = {0};
	struct shard_buf buf = {0};
	struct test_rng rng = {3};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		fill(values, VALUES_MAX, wanted[i].shape, &rng);
		buf.cnt = 0;
		CU_ASSERT_EQUAL(shard_encoder__put(&encoder, &buf, values, VALUES_MAX, &hint), 0);
		CU_ASSERT_EQUAL(buf.items[0], wanted[i].encoding);
	}
	fill(values, VALUES_MAX, 5, &rng);
	for (size_t i = 0; i < VALUES_MAX; i++)
		near[i] = values[i] - i % 3;
	hint = (struct shard_encode_hint){.ref = values, .ref_idx = 1};
	buf.cnt = 0;
	CU_ASSERT_EQUAL(shard_encoder__put(&encoder, &buf, near, VALUES_MAX, &hint), 0);
	CU_ASSERT_EQUAL(buf.items[0], SHARD_ENC_DIFF);
	CU_ASSERT(decodes_to(&buf, near, VALUES_MAX, values));
	vec_free(&buf);
	shard_encoder__clear(&encoder);
}

static void a_stream_cut_short_is_refused(void)
{
	static uint64_t values[100], ref[100];
	static union shard_value got[100];
	const union shard_value *columns[] = {NULL, (const union shard_value *)ref};
	struct shard_refs refs = {columns, 2};
	struct shard_encoder encoder = {0};
	struct shard_buf buf = {0};
	struct test_rng rng = {4};

	for (unsigned which = 0; which < SHAPE_CNT; which++) {
		struct shard_encode_hint hint = {.ref = ref, .ref_idx = 1, .try_dict = true};

		fill(values, 100, which, &rng);
		fill(ref, 100, 3, &rng);
		buf.cnt = 0;
		CU_ASSERT_EQUAL(shard_encoder__put(&encoder, &buf, values, 100, &hint), 0);
		for (size_t sz = 0; sz < buf.cnt; sz++) {
			uint8_t *cut = malloc(sz + 1); /* of its own, so that ASan sees a step too far */
			struct shard_cursor cursor = {cut, cut + sz};

			memcpy(cut, buf.items, sz);
			CU_ASSERT_EQUAL(shard_decode(&cursor, got, 100, &refs), -EBADMSG);
			free(cut);
		}
	}
	vec_free(&buf);
	shard_encoder__clear(&encoder);
}

static void garbage_never_leads_out_of_bounds(void)
{
	struct test_rng rng = {5};
	static uint64_t ref[50];
	const union shard_value *columns[] = {NULL, (const union shard_value *)ref};
	struct shard_refs refs = {columns, 2};

	for (int round = 0; round < 4000; round++) {
		size_t sz = 1 + test_rng__below(&rng, 60);
		union shard_value *got = malloc(50 * sizeof(*got));
		uint8_t *bytes = malloc(sz);
		struct shard_cursor cursor = {bytes, bytes + sz};
		int err;

		for (size_t i = 0; i < sz; i++)
			bytes[i] = test_rng__below(&rng, 4) ? test_rng__below(&rng, 9) : test_rng__next(&rng);
		err = shard_decode(&cursor, got, 50, &refs);
		CU_ASSERT(!err || err == -EBADMSG || err == -ENOTSUP);
		CU_ASSERT(cursor.pos <= cursor.end);
		free(bytes);
		free(got);
	}
}

static int unpack(enum shard_codec codec, const uint8_t *bytes, size_t sz, size_t raw_sz, struct shard_buf *raw)
{
	struct shard_compressor compressor = {0};
	int err = shard_compressor__unpack(&compressor, codec, bytes, sz, raw_sz, raw);

	shard_compressor__clear(&compressor);
	return err;
}

static void every_codec_gives_back_what_it_got(void)
{
	static const enum shard_codec codecs[] = {SHARD_CODEC_NONE, SHARD_CODEC_ZLIB, SHARD_CODEC_ZSTD};
	struct shard_compressor compressor = {0};
	struct shard_buf packed = {0}, raw = {0};
	struct test_rng rng = {6};
	uint8_t bytes[5000];

	for (unsigned i = 0; i < 6; i++) {
		enum shard_codec codec = codecs[i % 3];
		bool random = i >= 3;

		for (size_t b = 0; b < sizeof(bytes); b++)
			bytes[b] = random ? test_rng__next(&rng) : b / 100;
		packed.cnt = 0;
		CU_ASSERT_EQUAL(shard_compressor__pack(&compressor, &codec, bytes, sizeof(bytes), &packed), 0);
		CU_ASSERT_EQUAL(codec, random ? SHARD_CODEC_NONE : codecs[i % 3]);
		CU_ASSERT(packed.cnt <= sizeof(bytes));
		CU_ASSERT_EQUAL(unpack(codec, packed.items, packed.cnt, sizeof(bytes), &raw), 0);
		CU_ASSERT(raw.cnt == sizeof(bytes) && !memcmp(raw.items, bytes, sizeof(bytes)));
		/* Another size than promised, in either direction. */
		CU_ASSERT_EQUAL(unpack(codec, packed.items, packed.cnt, sizeof(bytes) - 1, &raw), -EBADMSG);
		CU_ASSERT_EQUAL(unpack(codec, packed.items, packed.cnt, sizeof(bytes) + 1, &raw), -EBADMSG);
	}
	vec_free(&packed);
	vec_free(&raw);
	shard_compressor__clear(&compressor);
}

static void a_decompression_bomb_takes_no_memory(void)
{
	struct shard_buf raw = {0};
	uint8_t bytes[100] = {0};

	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_ZSTD, bytes, sizeof(bytes), SHARD_RAW_MAX + 1, &raw), -EBADMSG);
	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_ZSTD, bytes, sizeof(bytes), SHARD_RAW_MAX, &raw), -EBADMSG);
	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_ZLIB, bytes, sizeof(bytes), 1 << 20, &raw), -EBADMSG);
	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_NONE, bytes, sizeof(bytes), sizeof(bytes) + 1, &raw), -EBADMSG);
	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_NONE, bytes, 0, 0, &raw), -EBADMSG);
	CU_ASSERT_EQUAL(unpack(SHARD_CODEC_ZSTD + 1, bytes, sizeof(bytes), sizeof(bytes), &raw), -ENOTSUP);
	CU_ASSERT_PTR_NULL(raw.items);
}

int suite_shard_codec(void)
{
	static const struct unit_test tests[] = {
		{"crc32c gives the known answers", crc32c_gives_the_known_answers},
		{"a varint survives and an overlong one is refused", a_varint_survives_and_an_overlong_one_is_refused},
		{"every shape of column survives", every_shape_of_column_survives},
		{"each shape meets the encoding made for it", each_shape_meets_the_encoding_made_for_it},
		{"a stream cut short is refused", a_stream_cut_short_is_refused},
		{"garbage never leads out of bounds", garbage_never_leads_out_of_bounds},
		{"every codec gives back what it got", every_codec_gives_back_what_it_got},
		{"a decompression bomb takes no memory", a_decompression_bomb_takes_no_memory},
	};

	return unit_suite("shard codec", tests, sizeof(tests) / sizeof(tests[0]));
}
