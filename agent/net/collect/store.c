// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/store_internal.h"

#include "base/clock.h"
#include "base/order.h"
#include "base/whole_io.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROTATE_BYTES  (64ull << 20)
#define ROTATE_BLOCKS 32768 /* an index has room for twice as many */
#define SESSION_MAX   1024
#define HOST_FILES    65536
#define HOST_SESSIONS 64
#define ROTATE_MIN    (64ull << 10)
#define ROTATE_SHARE  32    /* a shard that is being written is a small part of what may be there */
#define PENDING_MAX   32768 /* rows of one account */
#define SYNC_TRY_EACH 64
#define IDLE_NS       (900 * 1000000000ull)
#define RETENTION_NS  (10 * 1000000000ull)
#define LOCK_NAME     ".lock"

static uint64_t store__now(const struct store *store)
{
	return store->opts.monotonic ? store->opts.monotonic() : monotonic_ns();
}

uint64_t store__wall_ns(const struct store *store)
{
	return store->wall_base_ns + (store__now(store) - store->monotonic_base_ns);
}

/* The directory as it is now, ours alone. */
static int store__enter(struct store *store)
{
	struct stat st;
	int err = 0;

	store->fd = open(store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->fd < 0)
		return -errno;
	store->lock_fd = openat(store->fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (store->lock_fd < 0 || fstat(store->fd, &st))
		err = -errno;
	else if (flock(store->lock_fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!err) {
		store->dev = st.st_dev;
		store->ino = st.st_ino;
		err = store__find_parts(store);
	}
	return err;
}

static void store__leave(struct store *store)
{
	while (store->hosts.cnt) {
		struct store_host *host = store->hosts.items[store->hosts.cnt - 1];

		while (host->parts.cnt)
			store__drop_part(store, host->parts.items[host->parts.cnt - 1]);
		store__drop_host(store, host);
	}
	if (store->lock_fd >= 0)
		close(store->lock_fd);
	if (store->fd >= 0)
		close(store->fd);
	store->lock_fd = store->fd = -1;
	store->dev = store->ino = 0;
}

static void store__free(struct store *store)
{
	store__forget_sessions(store, false);
	store__leave(store);
	vec_free(&store->hosts);
	vec_free(&store->sessions);
	vec_free(&store->touched);
	received_scan__clear(&store->scan);
	shard_packer__clear(&store->packer);
	shard_stage__free(store->stage);
	vec_free(&store->block);
	free(store->dir);
	free(store);
}

static void set_defaults(struct store_opts *opts)
{
	uint64_t max_bytes = opts->max_bytes;

	if (opts->host_max_bytes && (!max_bytes || opts->host_max_bytes < max_bytes))
		max_bytes = opts->host_max_bytes;
	if (!opts->rotate_bytes) {
		opts->rotate_bytes = ROTATE_BYTES;
		if (max_bytes && max_bytes / ROTATE_SHARE < ROTATE_BYTES)
			opts->rotate_bytes =
				max_bytes / ROTATE_SHARE > ROTATE_MIN ? max_bytes / ROTATE_SHARE : ROTATE_MIN;
	}
	opts->session_max = opts->session_max ?: SESSION_MAX;
	opts->host_max_files = opts->host_max_files ?: HOST_FILES;
	opts->host_session_max = opts->host_session_max ?: HOST_SESSIONS;
}

struct store *store__open(const struct store_opts *opts)
{
	struct store *store = calloc(1, sizeof(*store));
	int err;

	if (!store)
		return NULL;
	store->fd = store->lock_fd = -1;
	store->opts = *opts;
	set_defaults(&store->opts);
	store->monotonic_base_ns = store__now(store);
	store->wall_base_ns = opts->wall ? opts->wall() : realtime_ns();
	store->dir = strdup(opts->dir);
	store->stage = shard_stage__new(&received_table, PENDING_MAX);
	err = store->dir && store->stage ? 0 : -ENOMEM;
	if (!err && mkdir(opts->dir, 0750) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = store__enter(store);
	if (!err)
		return store;
	store__free(store);
	errno = -err;
	return NULL;
}

int store__check(struct store *store)
{
	struct stat st;
	int err = stat(store->dir, &st) ? -errno : 0;

	if (!err && store->fd >= 0 && st.st_dev == store->dev && st.st_ino == store->ino)
		return 0;
	/* Whatever went to the old one from now on would be for nobody. */
	store__forget_sessions(store, false);
	store__leave(store);
	if (!err)
		err = store__enter(store);
	if (err)
		store__leave(store);
	return err;
}

/* Leaves the batch that store__commit() ended. */
static void store__end_batch(struct store *store)
{
	if (!store->committed)
		return;
	store->committed = false;
	for (size_t i = 0; i < store->touched.cnt; i++) {
		struct store_session *session = store->touched.items[i];

		session->touched = false;
		if (session->broken || session->ended)
			store__forget_session(store, session, !session->broken);
	}
	store->touched.cnt = 0;
}

static const struct received *find_pending(const struct store_session *session, uint64_t seq)
{
	for (size_t i = session->pending.cnt; i--;)
		if (session->pending.items[i].seq == seq)
			return &session->pending.items[i];
	return NULL;
}

ORDER(compare_u64, uint64_t, BY(*a, *b));

/* Whether the frames that were there before are the same as those on disk: 0 or -EEXIST. */
static int check_repetitions(struct store *store, struct store_session *session, const struct store_frame *frames,
			     const uint32_t *repeated, uint32_t cnt, struct store_result *result)
{
	uint64_t seqs[PROTOCOL_FRAMES_MAX] = {0};
	uint32_t crcs[PROTOCOL_FRAMES_MAX];
	bool found[PROTOCOL_FRAMES_MAX] = {0};
	int err;

	for (uint32_t i = 0; i < cnt; i++)
		seqs[i] = frames[repeated[i]].frame.seq;
	qsort(seqs, cnt, sizeof(*seqs), compare_u64);
	err = store__stored_crcs(store, session, seqs, crcs, found, cnt);
	for (uint32_t i = 0; !err && i < cnt; i++) {
		const struct protocol_frame *frame = &frames[repeated[i]].frame;
		size_t at = (uint64_t *)bsearch(&frame->seq, seqs, cnt, sizeof(*seqs), compare_u64) - seqs;

		if (found[at] && crcs[at] != frame->crc) {
			result->bad_frame = repeated[i];
			err = -EEXIST;
		}
	}
	return err;
}

/* Takes what is new into the session's batch, in memory: 0 or -errno with the frame at fault. */
static int sort_out(struct store *store, struct store_session *session, const struct store_frame *frames, uint32_t cnt,
		    struct store_result *result)
{
	uint64_t now_ns = store__wall_ns(store);
	uint32_t repeated[PROTOCOL_FRAMES_MAX], repeated_cnt = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		const struct protocol_frame *frame = &frames[i].frame;
		const struct received *pending;
		int ret = seqset__add(&session->seqs, frame->seq);

		result->bad_frame = i;
		if (ret < 0)
			return ret == -ENOSPC ? -ENOBUFS : ret;
		if (ret) {
			session->pending.items[session->pending.cnt++] = (struct received){
				.seq = frame->seq,
				.kind = frame->kind,
				.sz = frame->sz,
				.crc = frame->crc,
				.wall_ts = now_ns,
			};
			continue;
		}
		result->duplicates++;
		pending = find_pending(session, frame->seq);
		if (!pending)
			repeated[repeated_cnt++] = i;
		else if (pending->crc != frame->crc)
			return -EEXIST;
	}
	return repeated_cnt ? check_repetitions(store, session, frames, repeated, repeated_cnt, result) : 0;
}

/* Takes back everything from that entry of the batch on. */
static void session__roll_back(struct store_session *session, size_t pending_cnt, uint64_t sz)
{
	while (session->pending.cnt > pending_cnt)
		seqset__remove(&session->seqs, session->pending.items[--session->pending.cnt].seq);
	session->ended = false;
	if (session->fd < 0 || session->sz == sz)
		return;
	session->broken |= ftruncate(session->fd, sz) != 0;
	session->sz = sz;
}

static int session__append(struct store_session *session, const struct store_frame *frames, uint32_t cnt,
			   size_t pending_cnt, struct store_result *result)
{
	uint64_t off = session->sz;
	size_t next = pending_cnt;

	for (uint32_t i = 0; i < cnt && next < session->pending.cnt; i++) {
		const struct protocol_frame *frame = &frames[i].frame;
		int err;

		if (frame->seq != session->pending.items[next].seq)
			continue;
		next++;
		if (frame->kind == PROTOCOL_END)
			session->ended = true;
		err = whole_write(session->fd, frames[i].payload, frame->sz, (int64_t)off);
		if (err) {
			session->sz = off + frame->sz; /* some of it may be there */
			return err;
		}
		off += frame->sz;
		session->block_cnt++;
		result->stored++;
		result->stored_bytes += frame->sz;
	}
	session->sz = off;
	return 0;
}

/* A file to write to: another one on another day, or when this one has become large. */
static int session__open_part(struct store *store, struct store_session *session)
{
	bool fits = session->fd >= 0 && session->part->day == store__today(store) &&
		    session->sz < store->opts.rotate_bytes && session->block_cnt < ROTATE_BLOCKS;

	if (fits || (session->fd >= 0 && session->pending.cnt))
		return 0;
	store__leave_part(store, session, true);
	return store__create_part(store, session);
}

int store__put(struct store *store, const char *host, uint64_t session_id, const struct store_frame *frames,
	       uint32_t cnt, struct store_result *result)
{
	struct store_session *session;
	uint64_t sz;
	size_t pending_cnt;
	int err;

	*result = (struct store_result){0};
	store__end_batch(store);
	if (cnt > PROTOCOL_FRAMES_MAX)
		return -E2BIG;
	err = store__session(store, host, session_id, &session);
	if (err)
		return err;
	result->session = session;
	if (session->pending.cnt + cnt > PENDING_MAX)
		return -EAGAIN;
	if (vec_reserve(&session->pending, cnt) || vec_reserve(&store->touched, 1))
		return -ENOMEM;
	session->used_ts = store__now(store);
	err = session__open_part(store, session);
	if (err)
		return err;
	pending_cnt = session->pending.cnt;
	sz = session->sz;
	err = sort_out(store, session, frames, cnt, result);
	if (!err)
		err = session__append(session, frames, cnt, pending_cnt, result);
	if (err)
		session__roll_back(session, pending_cnt, sz);
	if (!session->touched)
		store->touched.items[store->touched.cnt++] = session;
	session->touched = true;
	session->err = 0;
	return err;
}

/* The account of the session's part of the batch. */
static int session__put_account(struct store *store, struct store_session *session)
{
	struct shard_block_header header = {
		.kind = SHARD_BLOCK_ROWS, .codec = SHARD_CODEC_ZSTD, .session_id = session->id};
	int err = 0;

	shard_stage__reset(store->stage);
	store->block.cnt = 0;
	for (size_t i = 0; !err && i < session->pending.cnt; i++) {
		received__put(&store->row, &session->pending.items[i]);
		err = shard_stage__append(store->stage, &store->row);
	}
	if (!err)
		err = shard_packer__pack(&store->packer, store->stage, &header, &store->block);
	if (!err)
		err = whole_write(session->fd, store->block.items, store->block.cnt, (int64_t)session->sz);
	session->sz += store->block.cnt;
	return err;
}

static int sync_dir(int at_fd, const char *name)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

static int session__sync_dirs(const struct store *store, const struct store_session *session)
{
	char path[STORE_PATH_SZ];
	int err;

	store_part__path(session->part, path);
	*strrchr(path, '/') = 0;
	err = sync_dir(store->fd, path);
	if (!err)
		err = sync_dir(store->fd, session->host->name);
	return err ?: sync_dir(store->fd, ".");
}

/*
 * All files at once: most of what a sync costs is the file system's, and the same for one and for a hundred.  It writes
 * out what others left there as well, though, so that each way is taken as long as it is the quicker one per file, and
 * the other is tried again now and then.
 */
static int store__sync_files(struct store *store, uint32_t file_cnt)
{
	bool tries = ++store->sync_cnt % SYNC_TRY_EACH == 0,
	     quicker = store->syncfs_ns <= file_cnt * store->fdatasync_ns;
	uint64_t begin_ts = monotonic_ns();
	bool all = file_cnt > 1 && quicker != tries;

	if (all && syncfs(store->fd))
		return -errno;
	for (size_t i = 0; !all && i < store->touched.cnt; i++) {
		struct store_session *session = store->touched.items[i];

		if (session->err || !session->pending.cnt || !fdatasync(session->fd))
			continue;
		session->err = -errno;
		session->broken = true;
	}
	if (all)
		store->syncfs_ns = (3 * store->syncfs_ns + (monotonic_ns() - begin_ts)) / 4;
	else
		store->fdatasync_ns = (3 * store->fdatasync_ns + (monotonic_ns() - begin_ts) / file_cnt) / 4;
	return 0;
}

static int session__check_synced(struct store *store, const struct store_session *session)
{
	struct stat st;

	if (fstat(session->fd, &st))
		return -errno;
	/* Somebody deleted it: what is in it is gone with us. */
	if (!st.st_nlink)
		return -ESTALE;
	store__measure_part(store, session->part, session->safe_sz, st.st_blocks);
	return session->is_new ? session__sync_dirs(store, session) : 0;
}

void store__commit(struct store *store)
{
	uint32_t file_cnt = 0;
	int sync_err;

	for (size_t i = 0; i < store->touched.cnt; i++) {
		struct store_session *session = store->touched.items[i];

		session->err = session->pending.cnt ? session__put_account(store, session) : 0;
		/* All files begin to be written before the first is waited for. */
		if (!session->err && session->pending.cnt) {
			sync_file_range(session->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
			file_cnt++;
		}
	}
	sync_err = file_cnt ? store__sync_files(store, file_cnt) : 0;
	for (size_t i = 0; i < store->touched.cnt; i++) {
		struct store_session *session = store->touched.items[i];

		if (!session->err && session->pending.cnt) {
			session->err = sync_err ?: session__check_synced(store, session);
			session->broken |= session->err != 0;
		}
		if (session->err) {
			session__roll_back(session, 0, session->safe_sz);
			continue;
		}
		if (!session->pending.cnt)
			continue;
		session->pending.cnt = 0;
		session->safe_sz = session->sz;
		session->is_new = false;
		session->has_account = true;
		session->part->last_s = store__wall_ns(store) / 1000000000;
		session->part->sz = session->sz;
	}
	store->committed = true;
}

int store__committed(const struct store_result *result)
{
	return result->session->err;
}

void store__tick(struct store *store)
{
	uint64_t now_ts = store__now(store);

	store__end_batch(store);
	for (size_t i = store->sessions.cnt; i--;)
		if (now_ts - store->sessions.items[i]->used_ts > IDLE_NS)
			store__forget_session(store, store->sessions.items[i], true);
	if (now_ts - store->retention_ts < RETENTION_NS && store->retention_ts && !store__is_over(store))
		return;
	store->retention_ts = now_ts;
	store__retain(store);
}

void store__stats(const struct store *store, struct store_stats *stats)
{
	*stats = store->stats;
	stats->sessions = store->sessions.cnt;
}

void store__close(struct store *store)
{
	if (!store)
		return;
	store__end_batch(store);
	store__forget_sessions(store, true);
	store__free(store);
}
