// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/spool.h"

#include "base/clock.h"
#include "base/dirs.h"
#include "base/log.h"
#include "net/send/spool_session.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
/* How often others' leftovers and our own old frames are looked for. */
#define LOOK_NS (30 * SECOND_NS)
/* Totals are written together, a block per table: the last ones are never dropped for being superseded. */
#define TOTALS_KEPT 4

struct spool {
	struct spool_shared *shared;
	int root_fd;
	uid_t uid;
	gid_t gid;
	uint64_t max_bytes;
	uint64_t max_age_ns;
	uint64_t look_ts;
	uint64_t told_look_ts;
	uint64_t dropped_bytes;
	uint64_t adopted_cnt;
	struct spool_session *own; /* or NULL */
	uint64_t own_id;
	struct spool_session sessions[SPOOL_SLOTS]; /* dir_fd < 0: free; the oldest ones first, by when we met them */
};

static void slot_fill(struct spool_slot *slot, const struct spool_session *session)
{
	memcpy(slot->host, session->host, sizeof(slot->host));
	slot->session_id = session->account.session_id;
	atomic_store(&slot->inflight_from, 1);
	atomic_store(&slot->inflight_to, 0);
	atomic_store(&slot->refused, false);
	atomic_store(&slot->drained, false);
	atomic_store(&slot->spares, 0);
}

static struct spool_session *free_session(struct spool *spool)
{
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd < 0)
			return &spool->sessions[i];
	return NULL;
}

static struct spool_slot *slot_of(struct spool *spool, const struct spool_session *session)
{
	return &spool->shared->slots[session - spool->sessions];
}

static bool is_ours(const struct spool *spool, const char *name)
{
	char own_name[SPOOL_DIR_NAME_SZ];

	for (size_t i = 0; i < SPOOL_SLOTS; i++) {
		if (spool->sessions[i].dir_fd < 0)
			continue;
		spool_dir_name(own_name, spool->sessions[i].host, spool->sessions[i].account.session_id);
		if (!strcmp(own_name, name))
			return true;
	}
	return false;
}

static void adopt_one(struct spool *spool, const char *name)
{
	struct spool_session *session = free_session(spool);
	struct spool_slot *slot;

	if (!session || is_ours(spool, name))
		return;
	slot = slot_of(spool, session);
	if (spool_session__adopt(session, spool->root_fd, name)) {
		session->dir_fd = -1;
		return;
	}
	session->shared = spool->shared;
	session->slot = slot;
	slot_fill(slot, session);
	atomic_fetch_add(&spool->shared->used_bytes, spool_session__used(session));
	spool->adopted_cnt += !session->account.ended || !spool_session__is_empty(session);
	atomic_fetch_add(&slot->generation, 1);
}

/* Whatever recordings have left that are no more. */
static void adopt_all(struct spool *spool)
{
	DIR *dir = dir_open(spool->root_fd, ".", 0);
	const struct dirent *entry;

	while ((entry = dir_next(dir)))
		adopt_one(spool, entry->d_name);
	dir_close(dir, 0);
}

static bool is_empty(int dir_fd)
{
	DIR *dir = dir_open(dir_fd, ".", 0);
	bool empty = dir && !dir_next(dir);

	dir_close(dir, 0);
	return empty;
}

/*
 * The uploader becomes the directory's owner, so that must not be root: an empty directory gets the owner, one that
 * root has filled is refused.
 */
static int give_owner(int root_fd, const char *name, struct stat *st)
{
	const struct passwd *owner = getpwnam(name);

	if (!owner || !owner->pw_uid || !is_empty(root_fd))
		return -EKEYREJECTED;
	if (fchown(root_fd, owner->pw_uid, owner->pw_gid) || fstat(root_fd, st))
		return -errno;
	return 0;
}

int spool_root_open(const char *dir, const char *owner, struct stat *st)
{
	int err = make_dirs(dir, 0700), fd = err ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err ? err : -errno;
	if (fstat(fd, st))
		err = -errno;
	if (!err && owner && !geteuid() && !st->st_uid)
		err = give_owner(fd, owner, st);
	if (!err && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

void spool_root_say(const char *dir, const char *owner, int err)
{
	if (err == -EKEYREJECTED)
		log_error("the spool directory '%s' is root's, and the uploader must not run as root: chown -R %s '%s'",
			  dir, owner, dir);
	else
		log_error("cannot use the spool directory '%s': %s (--spool names another one)", dir, strerror(-err));
}

struct spool *spool__new(const struct spool_opts *opts)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	struct stat st;

	if (!spool)
		return NULL;
	spool->shared = opts->shared;
	spool->root_fd = -1;
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		spool->sessions[i].dir_fd = -1;
	spool__set_limits(spool, opts->max_bytes, opts->max_age_ns);
	spool->root_fd = spool_root_open(opts->dir, opts->owner, &st);
	if (spool->root_fd < 0) {
		int err = -spool->root_fd;

		spool__free(spool);
		errno = err;
		return NULL;
	}
	spool->uid = st.st_uid;
	spool->gid = st.st_gid;
	adopt_all(spool);
	return spool;
}

int spool__begin(struct spool *spool, const char *host, uint64_t session_id)
{
	struct spool_session *session = free_session(spool);
	int err;

	if (!session || spool->own)
		return -EBUSY;
	err = spool_session__create(session, spool->root_fd, host, session_id, spool->uid, spool->gid);
	if (err) {
		session->dir_fd = -1;
		return err;
	}
	session->shared = spool->shared;
	session->slot = slot_of(spool, session);
	slot_fill(session->slot, session);
	spool->own = session;
	spool->own_id = session_id;
	return 0;
}

void spool__publish(struct spool *spool)
{
	if (spool->own)
		atomic_fetch_add(&spool->own->slot->generation, 1);
}

static void remove_session(struct spool *spool, struct spool_session *session)
{
	if (atomic_load(&session->slot->generation) & 1)
		atomic_fetch_add(&session->slot->generation, 1);
	spool_session__close(session, spool->root_fd, true);
	if (spool->own == session)
		spool->own = NULL;
}

void spool__abandon(struct spool *spool)
{
	static const char classes[] = {SPOOL_TOTALS, SPOOL_BASELINE, SPOOL_TAIL, SPOOL_FACTS, SPOOL_END};

	if (!spool->own)
		return;
	for (size_t i = 0; i < sizeof(classes); i++)
		spool_session__drop(spool->own, classes[i], UINT64_MAX, 0);
	remove_session(spool, spool->own);
}

/* Bytes on disk that were freed. */
static uint64_t drop_spares(struct spool *spool)
{
	bool any = atomic_load(&spool->shared->spare_bytes);
	uint64_t freed = 0;

	for (size_t i = 0; any && i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd >= 0)
			freed += spool_drop_spares(spool->sessions[i].dir_fd, spool->shared);
	return freed;
}

/* Frees that much, in the order of spool.h. */
static uint64_t make_room(struct spool *spool, uint64_t need)
{
	static const struct {
		char class;
		uint32_t keep;
	} order[] = {{SPOOL_TOTALS, TOTALS_KEPT}, {SPOOL_BASELINE, 0}, {SPOOL_TAIL, 0}, {SPOOL_FACTS, 0},
		     {SPOOL_TOTALS, 0},           {SPOOL_END, 0}};
	uint64_t freed = 0;

	for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++)
		for (size_t i = 0; i < SPOOL_SLOTS && freed < need; i++)
			if (spool->sessions[i].dir_fd >= 0)
				freed += spool_session__drop(&spool->sessions[i], order[o].class, need - freed,
							     order[o].keep);
	spool->dropped_bytes += freed;
	return freed;
}

static uint64_t bytes_on_disk(const struct spool *spool)
{
	return atomic_load(&spool->shared->used_bytes) + atomic_load(&spool->shared->spare_bytes);
}

static bool is_full_disk(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

int spool__put(struct spool *spool, char class, uint32_t row_cnt, const void *block, size_t sz)
{
	uint64_t disk_sz = spool_disk_sz(sz + PROTOCOL_FRAME_HEADER_SZ), used;
	int err = 0;

	if (!spool->own)
		return -EINVAL;
	if (disk_sz > spool->max_bytes)
		err = -EOVERFLOW;
	used = bytes_on_disk(spool);
	if (!err && used + disk_sz > spool->max_bytes && drop_spares(spool))
		used = bytes_on_disk(spool);
	/* An eighth more than needed, so that a full spool is not walked for every block. */
	if (!err && used + disk_sz > spool->max_bytes) {
		make_room(spool, used + disk_sz - spool->max_bytes + spool->max_bytes / 8);
		if (bytes_on_disk(spool) + disk_sz > spool->max_bytes)
			err = -ENOSPC;
	}
	if (!err)
		err = spool_session__put(spool->own, class, row_cnt, block, sz);
	if (is_full_disk(err) && drop_spares(spool))
		err = spool_session__put(spool->own, class, row_cnt, block, sz);
	if (is_full_disk(err) && make_room(spool, disk_sz + used / 8))
		err = spool_session__put(spool->own, class, row_cnt, block, sz);
	if (err) {
		spool_session__count_unput(spool->own, class, row_cnt);
		spool->dropped_bytes += disk_sz;
	}
	return err;
}

/* All of a session that is over is sent: what it lost is told, then its end, then it is forgotten. */
static void tick_over(struct spool *spool, struct spool_session *session)
{
	struct spool_account *account = &session->account;

	if (!spool_session__is_empty(session)) {
		atomic_store(&session->slot->drained, false);
		return;
	}
	if (account->lost != account->told_lost || (!account->told_ts && account->emitted))
		spool_session__tell_loss(session);
	else if (!account->ended && account->next_seq)
		spool_session__put(session, SPOOL_END, 0, NULL, 0);
	else
		remove_session(spool, session);
}

static void tick_session(struct spool *spool, struct spool_session *session, bool tell)
{
	if (atomic_exchange(&session->slot->refused, false))
		spool_session__count_refused(session);
	if (session->over) {
		if (atomic_load(&session->slot->drained))
			tick_over(spool, session);
	} else if (tell && session->account.lost != session->account.told_lost) {
		spool_session__tell_loss(session);
	}
}

static void expire_all(struct spool *spool)
{
	time_t before = time(NULL) - spool->max_age_ns / SECOND_NS, oldest;

	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd >= 0)
			spool_session__expire(&spool->sessions[i], before, &oldest);
}

void spool__tick(struct spool *spool, uint64_t now_ts)
{
	uint64_t look_ns = spool->max_age_ns / 4 < LOOK_NS ? spool->max_age_ns / 4 : LOOK_NS;
	bool tell = now_ts - spool->told_look_ts >= SECOND_NS;

	if (now_ts - spool->look_ts >= look_ns) {
		spool->look_ts = now_ts;
		expire_all(spool);
		adopt_all(spool);
	}
	if (tell)
		spool->told_look_ts = now_ts;
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd >= 0)
			tick_session(spool, &spool->sessions[i], tell);
}

void spool__finish(struct spool *spool)
{
	if (!spool->own)
		return;
	/* Told even where it is nothing: emitted = stored then, and the collector can see that. */
	spool_session__tell_loss(spool->own);
	spool->own->over = true;
	spool->own = NULL;
}

bool spool__is_done(const struct spool *spool)
{
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd >= 0)
			return false;
	return true;
}

void spool__set_limits(struct spool *spool, uint64_t max_bytes, uint64_t max_age_ns)
{
	spool->max_bytes = max_bytes < SPOOL_BYTES_MIN ? SPOOL_BYTES_MIN : max_bytes;
	spool->max_age_ns = max_age_ns;
}

void spool__stats(const struct spool *spool, struct spool_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->dropped_bytes = spool->dropped_bytes;
	stats->adopted_cnt = spool->adopted_cnt;
	/* Also after its end: what is refused last belongs to it, too. */
	for (size_t i = 0; i < SPOOL_SLOTS; i++) {
		const struct spool_account *account = &spool->sessions[i].account;

		if (!spool->own_id || account->session_id != spool->own_id)
			continue;
		stats->emitted = account->emitted;
		stats->lost = account->lost;
	}
}

int spool__root_fd(const struct spool *spool)
{
	return spool->root_fd;
}

void spool__free(struct spool *spool)
{
	if (!spool)
		return;
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		if (spool->sessions[i].dir_fd >= 0)
			spool_session__close(&spool->sessions[i], spool->root_fd, spool->sessions[i].account.ended);
	if (spool->root_fd >= 0)
		close(spool->root_fd);
	free(spool);
}
