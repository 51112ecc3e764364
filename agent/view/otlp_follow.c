// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/otlp_follow.h"

#include "base/clock.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "shard/columns.h"
#include "shard/growing.h"
#include "shard/unpack.h"
#include "view/export_otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What requests of a block waited for may have begun so long before them. */
#define AROUND_NS (60 * UINT64_C(1000000000))

struct follow_session {
	uint64_t id;
	VEC(uint32_t) files; /* indexes into follow->shards.files */
	bool has_ended;
};

/* A stored block of intervals that has not been exported. */
struct follow_block {
	uint32_t session, file;
	uint64_t off, min_ts, max_ts;
	uint64_t seen_ts; /* CLOCK_MONOTONIC */
	uint32_t row_cnt;
	bool is_due;
};

struct otlp_follow {
	struct otlp_follow_opts opts;
	struct otlp_follow_stats stats;
	struct shard_growing shards;
	struct idmap session_ids;
	VEC(struct follow_session) sessions;
	VEC(struct follow_block) blocks;
	struct shard_unpacker unpacker;
	struct shard_buf body;
};

struct otlp_follow *otlp_follow__new(const struct otlp_follow_opts *opts)
{
	struct otlp_follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return NULL;
	follow->opts = *opts;
	if (!shard_growing__init(&follow->shards))
		return follow;
	otlp_follow__free(follow);
	return NULL;
}

void otlp_follow__free(struct otlp_follow *follow)
{
	if (!follow)
		return;
	for (size_t i = 0; i < follow->sessions.cnt; i++)
		vec_free(&follow->sessions.items[i].files);
	vec_free(&follow->sessions);
	vec_free(&follow->blocks);
	idmap__free(&follow->session_ids);
	shard_unpacker__clear(&follow->unpacker);
	vec_free(&follow->body);
	shard_growing__free(&follow->shards);
	free(follow);
}

/* --- what has come ------------------------------------------------------------------------------------------------ */

static int session_of(struct otlp_follow *follow, uint64_t id, uint32_t file, uint32_t *no)
{
	uint32_t cnt = follow->session_ids.cnt;
	struct follow_session *session;

	if (idmap__id(&follow->session_ids, id, 0, no) ||
	    (*no == cnt && vec_push(&follow->sessions, (struct follow_session){.id = id})))
		return -ENOMEM;
	session = &follow->sessions.items[*no];
	if (session->files.cnt && session->files.items[session->files.cnt - 1] == file)
		return 0;
	return vec_push(&session->files, file);
}

/* The block that the file was read up to: 1; 0: damaged; -errno. */
static int unpack(struct otlp_follow *follow, const struct shard_block_header *header, struct shard_block *block)
{
	int err = shard_file__body(&follow->shards.file, header, &follow->body);

	if (err)
		return err < 0 ? err : 0;
	err = shard_unpacker__unpack(&follow->unpacker, header, follow->body.items, block);
	return !err ? 1 : err == -EBADMSG || err == -ENOTSUP ? 0 : err;
}

static int take_session(struct otlp_follow *follow, const struct shard_block_header *header, uint32_t no)
{
	struct session_columns col;
	struct shard_block block;
	int found = unpack(follow, header, &block);

	if (found <= 0)
		return found;
	col = block_columns(&block, SESSION, session);
	for (uint32_t i = 0; col.key && i < block.row_cnt; i++)
		if (!strcmp(column_text(col.key, i), "end_ts"))
			follow->sessions.items[no].has_ended = true;
	return 0;
}

static int take_block(void *owner, uint32_t file, const struct shard_block_header *header)
{
	struct otlp_follow *follow = owner;
	struct follow_block block = {.file = file,
				     .off = follow->shards.file.block_off,
				     .min_ts = header->min_ts,
				     .max_ts = header->max_ts,
				     .seen_ts = monotonic_ns(),
				     .row_cnt = header->row_cnt};
	int err = session_of(follow, header->session_id, file, &block.session);

	if (err)
		return err;
	if (!strcmp(header->table, "session"))
		return take_session(follow, header, block.session);
	if (strcmp(header->table, "interval"))
		return 0;
	follow->stats.waiting_requests += block.row_cnt;
	return vec_push(&follow->blocks, block);
}

/* Is it in a directory below one of the paths? */
static bool is_below(const struct otlp_follow *follow, const char *file)
{
	for (size_t i = 0; i < follow->opts.path_cnt; i++) {
		size_t sz = strlen(follow->opts.paths[i]);

		if (!strncmp(file, follow->opts.paths[i], sz) && strchr(file + sz + strspn(file + sz, "/"), '/'))
			return true;
	}
	return false;
}

/* --- what goes ---------------------------------------------------------------------------------------------------- */

/* The requests of a block: 1; 0: it is damaged, or no longer there; -errno. */
static int add_requests(struct otlp_follow *follow, const struct follow_block *of, struct idmap *only)
{
	struct shard_block_header header;
	struct interval_columns col;
	struct shard_block block;
	uint32_t no;
	int found = shard_growing__open(&follow->shards, of->file, of->off);

	if (found)
		return found == -ENOENT ? 0 : found;
	found = shard_file__next(&follow->shards.file, &header);
	if (found > 0)
		found = follow->shards.file.block_off == of->off ? unpack(follow, &header, &block) : 0;
	shard_file__close(&follow->shards.file);
	if (found <= 0)
		return found;
	col = block_columns(&block, INTERVAL, interval);
	for (uint32_t i = 0; i < block.row_cnt; i++)
		if (idmap__id(only, header.session_id, column_u64(col.sid, i), &no))
			return -ENOMEM;
	return 1;
}

static int export_session(struct otlp_follow *follow, uint32_t no, const struct idmap *only, uint64_t from_ts,
			  uint64_t until_ts, int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt),
			  void *owner)
{
	const struct follow_session *session = &follow->sessions.items[no];
	const char **paths = calloc(session->files.cnt, sizeof(*paths)), *bad_path;
	struct shard_reader *reader = NULL;
	struct otlp_stats stats = {0};
	int err = paths ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < session->files.cnt; i++)
		paths[i] = follow->shards.files.items[session->files.items[i]].path;
	if (!err) {
		reader = shard_reader__open(paths, session->files.cnt, &bad_path);
		err = reader ? 0 : -errno;
	}
	if (!err) {
		shard_reader__window(reader, from_ts > AROUND_NS ? from_ts - AROUND_NS : 0,
				     until_ts < UINT64_MAX - AROUND_NS ? until_ts + AROUND_NS : UINT64_MAX);
		err = export_otlp_some(reader, only, put, owner, &stats);
	}
	shard_reader__free(reader);
	free(paths);
	if (err && err != -ENOENT)
		return err;
	follow->stats.requests += stats.requests;
	follow->stats.without_clock += stats.without_clock;
	return 0;
}

/* Those that are due, of one session. */
static int export_due(struct otlp_follow *follow, uint32_t session,
		      int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt), void *owner)
{
	uint64_t from_ts = UINT64_MAX, until_ts = 0;
	struct idmap only = {0};
	int found = 1;

	for (size_t b = 0; found >= 0 && b < follow->blocks.cnt; b++) {
		struct follow_block *block = &follow->blocks.items[b];

		if (block->session != session || !block->is_due)
			continue;
		found = add_requests(follow, block, &only);
		if (!found)
			follow->stats.dropped_requests += block->row_cnt;
		if (found <= 0)
			continue;
		from_ts = block->min_ts < from_ts ? block->min_ts : from_ts;
		until_ts = block->max_ts > until_ts ? block->max_ts : until_ts;
	}
	if (found >= 0)
		found = only.cnt ? export_session(follow, session, &only, from_ts, until_ts, put, owner) : 0;
	idmap__free(&only);
	return found;
}

/* Those of the session that are due have gone; of all sessions, those that have waited for too long. */
static void remove_blocks(struct otlp_follow *follow, uint32_t session, uint64_t now_ts)
{
	size_t kept = 0;

	for (size_t b = 0; b < follow->blocks.cnt; b++) {
		const struct follow_block *block = &follow->blocks.items[b];
		bool is_gone = block->session == session && block->is_due;

		if (!is_gone && now_ts - block->seen_ts > follow->opts.behind_ns) {
			follow->stats.dropped_requests += block->row_cnt;
			is_gone = true;
		}
		if (is_gone)
			follow->stats.waiting_requests -= block->row_cnt;
		else
			follow->blocks.items[kept++] = *block;
	}
	follow->blocks.cnt = kept;
}

int otlp_follow__turn(struct otlp_follow *follow, bool last,
		      int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt), void *owner)
{
	const struct shard_growing_owner owner_of_blocks = {.take = take_block, .owner = follow};
	int err = shard_growing__look(&follow->shards, follow->opts.paths, follow->opts.path_cnt, &owner_of_blocks);
	uint64_t now_ts = monotonic_ns();

	for (size_t b = 0; b < follow->blocks.cnt; b++)
		follow->blocks.items[b].is_due =
			last || now_ts - follow->blocks.items[b].seen_ts >= follow->opts.settle_ns;
	for (uint32_t s = 0; !err && s < follow->sessions.cnt; s++) {
		err = export_due(follow, s, put, owner);
		if (!err)
			remove_blocks(follow, s, now_ts);
	}
	remove_blocks(follow, UINT32_MAX, now_ts);
	return err;
}

bool otlp_follow__has_ended(const struct otlp_follow *follow)
{
	for (size_t s = 0; s < follow->sessions.cnt; s++)
		if (!follow->sessions.items[s].has_ended)
			return false;
	for (size_t f = 0; f < follow->shards.files.cnt; f++)
		if (is_below(follow, follow->shards.files.items[f].path))
			return false;
	return follow->sessions.cnt && !follow->blocks.cnt;
}

const struct otlp_follow_stats *otlp_follow__stats(const struct otlp_follow *follow)
{
	return &follow->stats;
}
