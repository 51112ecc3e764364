// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/store_internal.h"

#include "base/order.h"

#include <fcntl.h>
#include <unistd.h>

/* Hands every committed account of the session to fn. */
static int each_account(struct store *store, const struct store_session *session, received_fn fn, void *ctx)
{
	char path[STORE_PATH_SZ];
	int err = 0;

	for (size_t i = 0; !err && i < session->host->parts.cnt; i++) {
		const struct store_part *part = session->host->parts.items[i];
		int fd;

		if (part->session_id != session->id)
			continue;
		store_part__path(part, path);
		fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			continue; /* somebody deleted it: it is not stored any more */
		if (fd < 0)
			return -errno;
		err = received_scan__file(&store->scan, fd, part == session->part ? session->safe_sz : part->sz, fn,
					  ctx);
		close(fd);
	}
	return err;
}

static int remember_seq(void *ctx, const struct received *received)
{
	int ret = seqset__add(ctx, received->seq);

	return ret < 0 ? ret : 0;
}

struct wanted_crcs {
	const uint64_t *seqs;
	uint32_t *crcs;
	bool *found;
	uint32_t cnt;
};

ORDER(compare_seqs, uint64_t, BY(*a, *b));

static int take_crc(void *ctx, const struct received *received)
{
	const struct wanted_crcs *wanted = ctx;
	const uint64_t *hit = bsearch(&received->seq, wanted->seqs, wanted->cnt, sizeof(*hit), compare_seqs);

	if (hit) {
		wanted->crcs[hit - wanted->seqs] = received->crc;
		wanted->found[hit - wanted->seqs] = true;
	}
	return 0;
}

int store__stored_crcs(struct store *store, const struct store_session *session, const uint64_t *seqs, uint32_t *crcs,
		       bool *found, uint32_t cnt)
{
	struct wanted_crcs wanted = {seqs, crcs, found, cnt};

	return each_account(store, session, take_crc, &wanted);
}

static int session__load(struct store *store, struct store_session *session)
{
	for (size_t i = 0; i < session->host->parts.cnt; i++) {
		const struct store_part *part = session->host->parts.items[i];

		if (part->session_id == session->id && part->no >= session->next_no)
			session->next_no = part->no + 1;
	}
	return session->next_no ? each_account(store, session, remember_seq, &session->seqs) : 0;
}

static void session__free(struct store_session *session)
{
	if (session->fd >= 0)
		close(session->fd);
	seqset__clear(&session->seqs);
	vec_free(&session->pending);
	free(session);
}

void store__forget_session(struct store *store, struct store_session *session, bool finish)
{
	struct store_host *host = session->host;

	store__leave_part(store, session, finish);
	vec_take_out(&store->sessions, session);
	session__free(session);
	host->session_cnt--;
	store__drop_host(store, host);
}

void store__forget_sessions(struct store *store, bool finish)
{
	store->touched.cnt = 0;
	store->committed = false;
	while (store->sessions.cnt)
		store__forget_session(store, store->sessions.items[store->sessions.cnt - 1], finish);
}

struct store_session *store__idlest_session(const struct store *store, const struct store_host *host)
{
	struct store_session *idlest = NULL;

	for (size_t i = 0; i < store->sessions.cnt; i++) {
		struct store_session *session = store->sessions.items[i];

		if (!session->touched && session->host == host && (!idlest || session->used_ts < idlest->used_ts))
			idlest = session;
	}
	return idlest;
}

/* The host that has most of them in memory, apart from those of this batch. */
static struct store_host *busiest_host(const struct store *store)
{
	struct store_host *busiest = NULL;

	for (size_t i = 0; i < store->sessions.cnt; i++) {
		const struct store_session *session = store->sessions.items[i];

		if (!session->touched && (!busiest || session->host->session_cnt > busiest->session_cnt))
			busiest = session->host;
	}
	return busiest;
}

/* Makes room for one more session of the host: at the cost of its own, or of the host that has most. */
static int make_room(struct store *store, const struct store_host *host)
{
	bool own = host->session_cnt > store->opts.host_session_max;
	struct store_session *idlest;

	if (!own && store->sessions.cnt < store->opts.session_max)
		return 0;
	idlest = store__idlest_session(store, own ? host : busiest_host(store));
	if (!idlest)
		return -EAGAIN;
	store__forget_session(store, idlest, true);
	return 0;
}

int store__session(struct store *store, const char *name, uint64_t session_id, struct store_session **found)
{
	struct store_host *host = store__host(store, name);
	struct store_session *session;
	int err;

	if (!host)
		return -ENOMEM;
	for (size_t i = 0; i < store->sessions.cnt; i++) {
		*found = store->sessions.items[i];
		if ((*found)->id == session_id && (*found)->host == host)
			return 0;
	}
	/* Making room must not make the host go. */
	host->session_cnt++;
	err = make_room(store, host);
	session = err ? NULL : calloc(1, sizeof(*session));
	if (!session) {
		host->session_cnt--;
		store__drop_host(store, host);
		return err ?: -ENOMEM;
	}
	session->host = host;
	session->id = session_id;
	session->fd = -1;
	err = session__load(store, session);
	if (!err && vec_push(&store->sessions, session))
		err = -ENOMEM;
	if (err) {
		session__free(session);
		host->session_cnt--;
		store__drop_host(store, host);
		return err;
	}
	*found = session;
	return 0;
}
