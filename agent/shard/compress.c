// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/compress.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* The target's CPU is what we live on: the quickest levels, measured in docs/SHARD-FORMAT.md. */
#define ZSTD_LEVEL 1
#define ZLIB_LEVEL Z_BEST_SPEED

static int pack_zstd(struct shard_compressor *compressor, const uint8_t *bytes, size_t sz, struct shard_buf *out)
{
	size_t got;

	if (!compressor->zstd_out)
		compressor->zstd_out = ZSTD_createCCtx();
	if (!compressor->zstd_out || vec_reserve(out, ZSTD_compressBound(sz)))
		return -ENOMEM;
	got = ZSTD_compressCCtx(compressor->zstd_out, out->items + out->cnt, out->room - out->cnt, bytes, sz,
				ZSTD_LEVEL);
	if (ZSTD_isError(got))
		return -ENOMEM; /* the room suffices, so nothing else is left */
	out->cnt += got;
	return 0;
}

static int pack_zlib(const uint8_t *bytes, size_t sz, struct shard_buf *out)
{
	uLongf got = compressBound(sz);

	if (vec_reserve(out, got))
		return -ENOMEM;
	if (compress2(out->items + out->cnt, &got, bytes, sz, ZLIB_LEVEL) != Z_OK)
		return -ENOMEM;
	out->cnt += got;
	return 0;
}

static int pack_none(const uint8_t *bytes, size_t sz, struct shard_buf *out)
{
	if (vec_reserve(out, sz))
		return -ENOMEM;
	memcpy(out->items + out->cnt, bytes, sz);
	out->cnt += sz;
	return 0;
}

int shard_compressor__pack(struct shard_compressor *compressor, enum shard_codec *codec, const uint8_t *bytes,
			   size_t sz, struct shard_buf *out)
{
	size_t before_cnt = out->cnt;
	int err = 0;

	if (*codec == SHARD_CODEC_ZSTD)
		err = pack_zstd(compressor, bytes, sz, out);
	else if (*codec == SHARD_CODEC_ZLIB)
		err = pack_zlib(bytes, sz, out);
	if (err)
		return err;
	if (*codec != SHARD_CODEC_NONE && out->cnt - before_cnt < sz)
		return 0;
	*codec = SHARD_CODEC_NONE;
	out->cnt = before_cnt;
	return pack_none(bytes, sz, out);
}

static int unpack_zstd(struct shard_compressor *compressor, const uint8_t *bytes, size_t sz, struct shard_buf *raw,
		       size_t raw_sz)
{
	if (!compressor->zstd_in)
		compressor->zstd_in = ZSTD_createDCtx();
	if (!compressor->zstd_in)
		return -ENOMEM;
	return ZSTD_decompressDCtx(compressor->zstd_in, raw->items, raw_sz, bytes, sz) == raw_sz ? 0 : -EBADMSG;
}

static int unpack_zlib(const uint8_t *bytes, size_t sz, struct shard_buf *raw, size_t raw_sz)
{
	uLongf got = raw_sz;
	int err = uncompress(raw->items, &got, bytes, sz);

	if (err == Z_MEM_ERROR)
		return -ENOMEM;
	return err == Z_OK && got == raw_sz ? 0 : -EBADMSG;
}

/* What `sz` bytes can become at the very most: a zstd block of 4 bytes gives 128 KiB, deflate is bound by 1032:1. */
static uint64_t expansion_max(uint8_t codec, size_t sz)
{
	switch (codec) {
	case SHARD_CODEC_ZSTD:
		return (uint64_t)sz * (128 << 10) / 4;
	case SHARD_CODEC_ZLIB:
		return (uint64_t)sz * 1032;
	default:
		return sz;
	}
}

int shard_compressor__unpack(struct shard_compressor *compressor, uint8_t codec, const uint8_t *bytes, size_t sz,
			     size_t raw_sz, struct shard_buf *raw)
{
	if (codec != SHARD_CODEC_NONE && codec != SHARD_CODEC_ZLIB && codec != SHARD_CODEC_ZSTD)
		return -ENOTSUP;
	if (!raw_sz || raw_sz > SHARD_RAW_MAX || raw_sz > expansion_max(codec, sz))
		return -EBADMSG;
	raw->cnt = 0;
	if (vec_reserve(raw, raw_sz))
		return -ENOMEM;
	raw->cnt = raw_sz;
	if (codec == SHARD_CODEC_ZSTD)
		return unpack_zstd(compressor, bytes, sz, raw, raw_sz);
	if (codec == SHARD_CODEC_ZLIB)
		return unpack_zlib(bytes, sz, raw, raw_sz);
	if (raw_sz != sz)
		return -EBADMSG;
	memcpy(raw->items, bytes, sz);
	return 0;
}

void shard_compressor__clear(struct shard_compressor *compressor)
{
	ZSTD_freeCCtx(compressor->zstd_out);
	ZSTD_freeDCtx(compressor->zstd_in);
	compressor->zstd_out = NULL;
	compressor->zstd_in = NULL;
}
