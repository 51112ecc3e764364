// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/file.h"

#include "base/whole_io.h"
#include "shard/crc32c.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_SZ    (64u << 10)
#define MAGIC_PREFIX 3 /* what block and trailer magic have in common */

_Static_assert(SHARD_FILE_HEADER_MAX <= WINDOW_SZ, "the file header is read into the window");

enum found { FOUND_NOTHING, FOUND_BLOCK, FOUND_EXCESS, FOUND_END };

static int file__add_damage(struct shard_file *file, uint64_t off, uint64_t sz, const char *what)
{
	struct shard_damage damage = {.path = file->path, .off = off, .sz = sz, .what = what};

	return shard_damages__add(file->damages, file->idx, &damage);
}

/* How much of it there is, up to sz; -errno. */
static ssize_t file__read(struct shard_file *file, uint64_t off, void *bytes, size_t sz)
{
	ssize_t got;

	if (off >= file->sz)
		return 0;
	if (sz > file->sz - off)
		sz = file->sz - off;
	got = whole_read(file->fd, bytes, sz, (int64_t)off);
	if (got >= 0 && (size_t)got < sz)
		file->sz = off + (size_t)got; /* its writer cut it back meanwhile */
	return got;
}

/* What begins at off: enum found, or -errno. */
static int file__look(struct shard_file *file, uint64_t off, struct shard_block_header *header)
{
	uint8_t bytes[SHARD_BLOCK_HEADER_MAX];
	ssize_t sz = file__read(file, off, bytes, sizeof(bytes));
	uint64_t index_off;
	int err;

	if (sz < 0)
		return sz;
	if (!shard_trailer__get(&index_off, bytes, sz))
		return FOUND_END;
	err = shard_block_header__get(header, bytes, sz);
	if (err && err != -EOVERFLOW)
		return FOUND_NOTHING;
	if (file->session_known && header->session_id != file->session_id)
		return FOUND_NOTHING;
	return err ? FOUND_EXCESS : FOUND_BLOCK;
}

/* Where in the window, from `from` on, something begins that deserves a look; sz if nowhere. */
static size_t file__scan_window(const struct shard_file *file, size_t from, size_t sz)
{
	const uint8_t *hit, *end = file->window.items + sz;

	for (; (hit = memmem(file->window.items + from, sz - from, SHARD_BLOCK_MAGIC, MAGIC_PREFIX)); from++) {
		from = hit - file->window.items;
		if (end - hit < SHARD_MAGIC_SZ || !memcmp(hit, SHARD_BLOCK_MAGIC, SHARD_MAGIC_SZ) ||
		    !memcmp(hit, SHARD_END_MAGIC, SHARD_MAGIC_SZ))
			return from;
	}
	return sz;
}

/* The next intact frame at or after off and before `end`: 1 with *found_off; 0: none; -errno. */
static int file__resync(struct shard_file *file, uint64_t off, uint64_t end, uint64_t *found_off)
{
	struct shard_block_header header;

	if (vec_reserve(&file->window, WINDOW_SZ))
		return -ENOMEM;
	while (off < end && off < file->sz) {
		ssize_t sz = file__read(file, off, file->window.items, WINDOW_SZ);

		if (sz < 0)
			return sz;
		for (size_t i = 0; (i = file__scan_window(file, i, sz)) < (size_t)sz; i++) {
			int found = file__look(file, off + i, &header);

			if (found < 0)
				return found;
			if (found != FOUND_NOTHING && off + i < end) {
				*found_off = off + i;
				return 1;
			}
		}
		if (sz < MAGIC_PREFIX)
			break;
		off += sz - (MAGIC_PREFIX - 1); /* the prefix may lie across the border */
	}
	return 0;
}

/*
 * The block returned last ends where no other begins: its length may lead too far, because bytes of it are missing.
 * 1: one begins within it, and file->off is there; 0: no; -errno.
 */
static int file__go_back(struct shard_file *file)
{
	struct shard_block_header header;
	uint64_t to;
	int found;

	if (file->sure_off >= file->off || file->off >= file->sz)
		return 0;
	found = file__look(file, file->off, &header);
	if (found)
		return found < 0 ? found : 0;
	found = file__resync(file, file->sure_off, file->off, &to);
	file->sure_off = file->off;
	if (found <= 0)
		return found;
	file->off = file->sure_off = to;
	return 1;
}

/* Something is wrong at file->off: goes to where things are right again. */
static int file__skip_damage(struct shard_file *file, const char *what)
{
	uint64_t from = file->off, to;
	int found = file__resync(file, from + 1, UINT64_MAX, &to);

	if (found < 0)
		return found;
	if (found) {
		file->off = to;
		return file__add_damage(file, from, to - from, what);
	}
	file->off = file->sz;
	file->ended = true;
	return file__add_damage(file, from, file->sz > from ? file->sz - from : 0, "torn tail");
}

static int file__give_up(struct shard_file *file, const char *what)
{
	file->off = file->sz;
	file->ended = true;
	return file__add_damage(file, 0, file->sz, what);
}

/* The file header is of no use.  Blocks stand for themselves: if there is one close by, this was a shard. */
static int file__do_without_header(struct shard_file *file, int header_err)
{
	uint64_t to;
	int found;

	if (!file->sz)
		return file__give_up(file, "empty file");
	found = file__resync(file, 1, 2 * SHARD_FILE_HEADER_MAX, &to);
	if (found < 0)
		return found;
	if (!found)
		return file__give_up(file, header_err == -ENODATA ? "foreign file" : "torn tail");
	file->off = to;
	return file__add_damage(file, 0, to, "damaged file header");
}

static int file__begin(struct shard_file *file)
{
	struct shard_file_header header;
	ssize_t sz;
	int err;

	if (vec_reserve(&file->window, WINDOW_SZ))
		return -ENOMEM;
	sz = file__read(file, 0, file->window.items, SHARD_FILE_HEADER_MAX);
	if (sz < 0)
		return sz;
	err = sz ? shard_file_header__get(&header, file->window.items, sz) : -ENODATA;
	if (err)
		return file__do_without_header(file, err);
	if (header.major != SHARD_VERSION_MAJOR)
		return file__give_up(file, "unsupported version");
	file->session_id = header.session_id;
	file->session_known = true;
	file->off = header.header_sz;
	return 0;
}

int shard_file__open(struct shard_file *file)
{
	struct stat st;
	int err = 0;

	file->off = file->sure_off = 0;
	file->session_known = file->ended = false;
	/* A fifo in place of a file must not hold us up. */
	file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	if (!err) {
		file->sz = st.st_size;
		err = file__begin(file);
	}
	if (err)
		shard_file__close(file);
	return err;
}

/* No whole block begins at file->off. */
static int file__recover(struct shard_file *file)
{
	int went_back = file__go_back(file);

	if (went_back < 0)
		return went_back;
	return went_back ? shard_file__refuse(file, "damaged block") : file__skip_damage(file, "damaged block");
}

int shard_file__next(struct shard_file *file, struct shard_block_header *header)
{
	while (file->off < file->sz) {
		int found = file__look(file, file->off, header), err = 0;
		bool is_block = found == FOUND_BLOCK || found == FOUND_EXCESS;

		if (found < 0)
			return found;
		if (found == FOUND_END) {
			file->ended = true;
			file->off += SHARD_TRAILER_SZ;
			file->sure_off = file->off;
		} else if (is_block && (uint64_t)header->header_sz + header->stored_sz <= file->sz - file->off) {
			file->block_off = file->off;
			file->body_off = file->sure_off = file->off + header->header_sz;
			file->off = file->body_off + header->stored_sz;
			if (found == FOUND_BLOCK)
				return 1;
			err = shard_file__refuse(file, "outside the limits");
		} else {
			err = file__recover(file);
		}
		if (err)
			return err;
	}
	if (file->ended)
		return 0;
	file->ended = true;
	return file__add_damage(file, file->sz, 0, "not closed");
}

int shard_file__body(struct shard_file *file, const struct shard_block_header *header, struct shard_buf *body)
{
	ssize_t sz;
	int err;

	body->cnt = 0;
	if (vec_reserve(body, header->stored_sz))
		return -ENOMEM;
	sz = file__read(file, file->body_off, body->items, header->stored_sz);
	if (sz < 0)
		return sz;
	if ((size_t)sz == header->stored_sz && crc32c(0, body->items, sz) == header->body_crc) {
		body->cnt = sz;
		file->sure_off = file->off;
		return 0;
	}
	err = file__go_back(file);
	if (err < 0)
		return err;
	return shard_file__refuse(file, (size_t)sz == header->stored_sz ? "checksum" : "torn tail") ?: 1;
}

int shard_file__refuse(struct shard_file *file, const char *what)
{
	return file__add_damage(file, file->block_off, file->off - file->block_off, what);
}

void shard_file__close(struct shard_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	vec_free(&file->window);
}
