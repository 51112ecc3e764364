// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/collect/store_internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool session__owns(const struct store_session *session, const struct store_part *part)
{
	return part->session_id == session->id && !strcmp(part->host, session->host);
}

/* Hands every committed account of the session to fn. */
static int each_account(struct store *store, const struct store_session *session, received_fn fn, void *ctx)
{
	char path[STORE_PATH_SZ];
	int err = 0;

	for (size_t i = 0; !err && i < store->parts.cnt; i++) {
		const struct store_part *part = store->parts.items[i];
		int fd;

		if (!session__owns(session, part))
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

static int compare_seqs(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

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
	for (size_t i = 0; i < store->parts.cnt; i++) {
		const struct store_part *part = store->parts.items[i];

		if (session__owns(session, part) && part->no >= session->next_no)
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
	store__leave_part(store, session, finish);
	for (size_t i = 0; i < store->sessions.cnt; i++) {
		if (store->sessions.items[i] != session)
			continue;
		store->sessions.items[i] = store->sessions.items[--store->sessions.cnt];
		break;
	}
	session__free(session);
}

void store__forget_sessions(struct store *store, bool finish)
{
	store->touched.cnt = 0;
	store->committed = false;
	while (store->sessions.cnt)
		store__forget_session(store, store->sessions.items[store->sessions.cnt - 1], finish);
}

/* Makes room for another one, at the cost of that which was used least recently. */
static int make_room(struct store *store)
{
	struct store_session *oldest = NULL;

	if (store->sessions.cnt < store->opts.session_max)
		return 0;
	for (size_t i = 0; i < store->sessions.cnt; i++) {
		struct store_session *session = store->sessions.items[i];

		if (!session->touched && (!oldest || session->used_ts < oldest->used_ts))
			oldest = session;
	}
	if (!oldest)
		return -EAGAIN;
	store__forget_session(store, oldest, true);
	return 0;
}

int store__session(struct store *store, const char *host, uint64_t session_id, struct store_session **found)
{
	struct store_session *session;
	int err;

	for (size_t i = 0; i < store->sessions.cnt; i++) {
		*found = store->sessions.items[i];
		if ((*found)->id == session_id && !strcmp((*found)->host, host))
			return 0;
	}
	err = make_room(store);
	if (err)
		return err;
	session = calloc(1, sizeof(*session));
	if (!session)
		return -ENOMEM;
	strcpy(session->host, host);
	session->id = session_id;
	session->fd = -1;
	err = session__load(store, session);
	if (!err && vec_push(&store->sessions, session))
		err = -ENOMEM;
	if (err) {
		session__free(session);
		return err;
	}
	*found = session;
	return 0;
}
