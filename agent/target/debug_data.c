// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/debug_data.h"

#include "base/vec.h"

#include <errno.h>
#include <lzma.h>
#include <unistd.h>

#define LZMA_MEMORY_MAX (64ULL << 20)
#define PIECE_SZ        65536

/* Up to the end of the section, or what a file that is cut short has of it. */
static int read_piece(int fd, uint64_t *off, uint64_t *sz, uint8_t piece[PIECE_SZ], lzma_stream *stream)
{
	size_t want = *sz < PIECE_SZ ? *sz : PIECE_SZ;
	ssize_t got = want ? pread(fd, piece, want, (off_t)*off) : 0;

	if (got < 0)
		return -errno;
	stream->next_in = piece;
	stream->avail_in = (size_t)got;
	*off += (uint64_t)got;
	*sz -= (uint64_t)got;
	return 0;
}

int debug_data_unpack(int fd, uint64_t off, uint64_t sz, uint64_t *left, char **unpacked, size_t *unpacked_sz)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	static uint8_t piece[PIECE_SZ];
	lzma_ret ret = LZMA_OK;
	VEC(char) bytes = {0};
	int err = 0;

	if (off > INT64_MAX || sz > INT64_MAX - off)
		return -ENOEXEC;
	if (lzma_stream_decoder(&stream, LZMA_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	while (!err && ret == LZMA_OK) {
		size_t room = *left < PIECE_SZ ? *left : PIECE_SZ;

		if (!stream.avail_in)
			err = read_piece(fd, &off, &sz, piece, &stream);
		/* A byte more than may be: to see that it is more. */
		if (!err)
			err = vec_reserve(&bytes, room + 1);
		if (err)
			break;
		stream.next_out = (uint8_t *)bytes.items + bytes.cnt;
		stream.avail_out = room + 1;
		ret = lzma_code(&stream, sz || stream.avail_in ? LZMA_RUN : LZMA_FINISH);
		size_t made = room + 1 - stream.avail_out;

		if ((ret != LZMA_OK && ret != LZMA_STREAM_END) || (ret == LZMA_OK && !made && !stream.avail_in && !sz))
			err = -ENOEXEC;
		else if (made > room)
			err = -EFBIG;
		*left -= made < room ? made : room;
		bytes.cnt += made;
	}
	lzma_end(&stream);
	if (err) {
		vec_free(&bytes);
		return err;
	}
	*unpacked = bytes.items;
	*unpacked_sz = bytes.cnt;
	return 0;
}
