// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/send/uploader.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/send/backoff.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define BODY_SZ       (1u << 20) /* more than this is not sent at once, unless one frame is larger */
#define FRAMES_MAX    256u
#define REQUESTS_MAX  16 /* in a row: what one session left behind must not hold up the others */
#define LOOK_AGAIN_NS 1000000000ULL
#define PREFER_NS     60000000000ULL /* then a collector that was gone is tried again */

/* What is known of one slot's session between two requests. */
struct upload_session {
	uint32_t generation;
	struct backoff backoff;
	size_t frames_max; /* fewer at a time while it is being found out which one is at fault */
	struct spool_entries entries;
	size_t next; /* of entries */
};

struct uploader {
	struct upload_client *clients[COLLECTORS_MAX]; /* the preferred one first */
	const char *urls[COLLECTORS_MAX];
	size_t collector_cnt, current, said; /* said: where blocks go, by the last line about it */
	size_t failed_cnt;                   /* collectors in a row that did not take them */
	uint64_t prefer_ts;                  /* when the preferred one is tried again */
	int root_fd;
	struct spool_shared *shared;
	struct backoff backoff; /* of the collector as a whole */
	struct shard_buf body;
	struct spool_entry batch[FRAMES_MAX];
	uint64_t batch_sz[FRAMES_MAX];
	size_t batch_cnt;
	size_t body_sz; /* limit of the body, lowered by 413 */
	long trouble;   /* what was said last, a status or minus libcurl's number; 0: all is well */
	uint64_t trouble_ts;
	struct upload_session sessions[SPOOL_SLOTS];
};

struct uploader *uploader__new(struct upload_client *client, const char *url, int root_fd, struct spool_shared *shared)
{
	struct uploader *uploader = calloc(1, sizeof(*uploader));

	if (!uploader)
		return NULL;
	uploader__add(uploader, client, url);
	uploader->root_fd = root_fd;
	uploader->shared = shared;
	uploader->body_sz = BODY_SZ;
	backoff__init(&uploader->backoff, monotonic_ns() ^ (uint64_t)getpid() << 32);
	return uploader;
}

void uploader__add(struct uploader *uploader, struct upload_client *client, const char *url)
{
	if (uploader->collector_cnt == COLLECTORS_MAX)
		return;
	uploader->clients[uploader->collector_cnt] = client;
	uploader->urls[uploader->collector_cnt++] = url;
}

void uploader__free(struct uploader *uploader)
{
	if (!uploader)
		return;
	for (size_t i = 0; i < SPOOL_SLOTS; i++)
		vec_free(&uploader->sessions[i].entries);
	vec_free(&uploader->body);
	free(uploader);
}

/* One line when something begins to be wrong, or is wrong in another way. */
static void say_trouble(struct uploader *uploader, long trouble, const char *text)
{
	if (!uploader->trouble)
		uploader->trouble_ts = monotonic_ns();
	if (uploader->trouble == trouble)
		return;
	uploader->trouble = trouble;
	log_warn("%s: %s; what is recorded waits in the spool and is sent when this is over",
		 uploader->urls[uploader->current], text);
}

static void say_well(struct uploader *uploader)
{
	uploader->failed_cnt = 0;
	if (uploader->said && !uploader->current)
		log_info("%s takes blocks again", uploader->urls[0]);
	uploader->said = uploader->current ? uploader->said : 0;
	if (!uploader->trouble)
		return;
	log_info("%s takes blocks again, after %.0f s", uploader->urls[uploader->current],
		 (monotonic_ns() - uploader->trouble_ts) / 1e9);
	uploader->trouble = 0;
}

static void set_inflight(struct spool_slot *slot, uint64_t from, uint64_t to)
{
	/* Widened in this order, so that a reader between the two sees too much rather than too little. */
	atomic_store(&slot->inflight_to, to);
	atomic_store(&slot->inflight_from, from);
}

static void clear_inflight(struct spool_slot *slot)
{
	atomic_store(&slot->inflight_from, UINT64_MAX);
}

/* Never to be sent: the other side counts what is lost with it. */
static void give_up(struct uploader *uploader, struct spool_slot *slot, int dir_fd, const struct spool_entry *entry,
		    const char *why)
{
	char name[SPOOL_ENTRY_NAME_SZ], refused_name[SPOOL_ENTRY_NAME_SZ];
	struct spool_entry refused = *entry;

	refused.class = spool_refused(entry->class);
	spool_entry_name(name, entry, true);
	spool_entry_name(refused_name, &refused, true);
	if (renameat(dir_fd, name, dir_fd, refused_name))
		return;
	atomic_fetch_add(&uploader->shared->refused_blocks, 1);
	atomic_store(&slot->refused, true);
	log_warn("block %" PRIu64 " of session %016" PRIx64 " is dropped, with %u intervals: %s", entry->seq,
		 slot->session_id, entry->row_cnt, why);
}

/* Reads the next frames into the body: 0 or -errno (-ENOMEM: later). */
static int fill_body(struct uploader *uploader, struct upload_session *session, struct spool_slot *slot, int dir_fd)
{
	const struct spool_entries *entries = &session->entries;
	size_t last =
		session->next + session->frames_max < entries->cnt ? session->next + session->frames_max : entries->cnt;
	int err = 0;

	uploader->batch_cnt = uploader->body.cnt = 0;
	set_inflight(slot, entries->items[session->next].seq, entries->items[last - 1].seq);
	for (; session->next < last; session->next++) {
		const struct spool_entry *entry = &entries->items[session->next];
		size_t before = uploader->body.cnt;
		size_t max = before ? uploader->body_sz - before : PROTOCOL_BODY_MAX;

		if (spool_is_refused(entry->class))
			continue;
		err = spool_read(dir_fd, entry, max, &uploader->body);
		if (err == -E2BIG || err == -ENOMEM)
			break;
		if (err == -EBADMSG)
			give_up(uploader, slot, dir_fd, entry, "its file in the spool is damaged");
		if (err)
			continue;
		uploader->batch[uploader->batch_cnt] = *entry;
		uploader->batch_sz[uploader->batch_cnt++] = uploader->body.cnt - before;
		if (uploader->body.cnt >= uploader->body_sz) {
			session->next++;
			break;
		}
	}
	if (uploader->batch_cnt)
		atomic_store(&slot->inflight_to, uploader->batch[uploader->batch_cnt - 1].seq);
	else
		clear_inflight(slot);
	return err == -ENOMEM && !uploader->batch_cnt ? err : 0;
}

static void on_stored(struct uploader *uploader, struct upload_session *session, struct spool_slot *slot, int dir_fd,
		      const struct upload_answer *answer)
{
	struct spool_shared *shared = uploader->shared;

	for (size_t i = 0; i < uploader->batch_cnt; i++)
		spool_retire(dir_fd, &uploader->batch[i], uploader->batch_sz[i], slot, shared);
	atomic_fetch_add(&shared->sent_blocks, uploader->batch_cnt);
	atomic_fetch_add(&shared->sent_bytes, uploader->body.cnt);
	atomic_fetch_add(&shared->duplicate_blocks, answer->duplicate_cnt);
	backoff__succeed(&uploader->backoff);
	backoff__succeed(&session->backoff);
	session->frames_max = FRAMES_MAX;
	say_well(uploader);
}

/* 400, 409 and 413: the same bytes would never be taken. */
static void on_refused(struct uploader *uploader, struct upload_session *session, struct spool_slot *slot, int dir_fd,
		       const struct upload_answer *answer)
{
	char why[sizeof(answer->text) + 64];
	size_t at_fault = SIZE_MAX;

	snprintf(why, sizeof(why), "the collector refuses it (%ld%s%s)", answer->status, answer->text[0] ? ": " : "",
		 answer->text);
	if (answer->frame >= 0 && (uint64_t)answer->frame < uploader->batch_cnt)
		at_fault = answer->frame;
	else if (uploader->batch_cnt == 1)
		at_fault = 0;
	if (answer->status == 413 && uploader->batch_cnt > 1) {
		session->frames_max = uploader->batch_cnt / 2;
		uploader->body_sz = uploader->body_sz > 65536 ? uploader->body_sz / 2 : uploader->body_sz;
	} else if (at_fault != SIZE_MAX) {
		give_up(uploader, slot, dir_fd, &uploader->batch[at_fault], why);
	} else {
		/* Not said which: one by one, it will show. */
		session->frames_max = 1;
	}
	/* All others again. */
	session->next = session->entries.cnt;
}

/* The collector is gone, or cannot store: whether another one is to be tried at once. */
static bool go_on_with_next(struct uploader *uploader, const char *text, uint64_t now_ts)
{
	size_t before = uploader->current;

	uploader->failed_cnt++;
	if (uploader->collector_cnt < 2)
		return false;
	uploader->current = (uploader->current + 1) % uploader->collector_cnt;
	uploader->prefer_ts = now_ts + PREFER_NS;
	if (uploader->failed_cnt >= uploader->collector_cnt) {
		uploader->failed_cnt = 0;
		return false;
	}
	if (uploader->said != uploader->current)
		log_warn("%s: %s; blocks go to %s", uploader->urls[before], text, uploader->urls[uploader->current]);
	uploader->said = uploader->current;
	return true;
}

static void on_failure(struct uploader *uploader, struct upload_session *session, const struct upload_answer *answer)
{
	char text[sizeof(answer->text) + 64];
	uint64_t now_ts = monotonic_ns();
	bool goes_on = false;

	atomic_fetch_add(&uploader->shared->failure_cnt, 1);
	if (!answer->status)
		snprintf(text, sizeof(text), "%s", answer->text);
	else
		snprintf(text, sizeof(text), "the collector answers %ld%s%s%s", answer->status,
			 answer->text[0] ? " (" : "", answer->text, answer->text[0] ? ")" : "");
	/* Who we are may be wrong for one session and right for another; all else is about the collector. */
	if (answer->status == 401 || answer->status == 403)
		backoff__fail(&session->backoff, now_ts, answer->retry_after_ns);
	else if ((!answer->status || answer->status >= 500) && go_on_with_next(uploader, text, now_ts))
		goes_on = true;
	else
		backoff__fail(&uploader->backoff, now_ts, answer->retry_after_ns);
	session->next = session->entries.cnt;
	if (!goes_on)
		say_trouble(uploader, answer->status ? answer->status : -(long)answer->error, text);
}

static bool should_stop(const struct uploader *uploader)
{
	uint64_t stop_ts = atomic_load(&uploader->shared->stop_ts);

	return stop_ts && monotonic_ns() >= stop_ts;
}

/* One request: false when no other one is to follow now. */
static bool send_batch(struct uploader *uploader, struct upload_session *session, struct spool_slot *slot, int dir_fd)
{
	struct upload_answer answer;
	char path[PROTOCOL_PATH_SZ];

	if (fill_body(uploader, session, slot, dir_fd))
		return false;
	if (!uploader->batch_cnt)
		return true;
	protocol_path__put(path, slot->host, slot->session_id);
	atomic_fetch_add(&uploader->shared->request_cnt, 1);
	upload_client__post(uploader->clients[uploader->current], path, uploader->body.items, uploader->body.cnt,
			    &answer);
	if (answer.status == 200)
		on_stored(uploader, session, slot, dir_fd, &answer);
	else if (answer.status == 400 || answer.status == 409 || answer.status == 413)
		on_refused(uploader, session, slot, dir_fd, &answer);
	else
		on_failure(uploader, session, &answer);
	clear_inflight(slot);
	return answer.status == 200;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void meet(struct uploader *uploader, size_t i, uint32_t generation)
{
	struct upload_session *session = &uploader->sessions[i];

	if (session->generation == generation)
		return;
	session->generation = generation;
	session->frames_max = FRAMES_MAX;
	backoff__init(&session->backoff, uploader->backoff.rng + i);
}

/* Sends what one session has: when to come again, UINT64_MAX: nothing is left. */
static uint64_t pass_session(struct uploader *uploader, size_t i)
{
	struct spool_slot *slot = &uploader->shared->slots[i];
	struct upload_session *session = &uploader->sessions[i];
	uint32_t generation = atomic_load(&slot->generation);
	uint64_t until_ts, request_cnt, now_ts = monotonic_ns();
	char name[SPOOL_DIR_NAME_SZ];
	int dir_fd;

	if (!(generation & 1))
		return UINT64_MAX;
	meet(uploader, i, generation);
	until_ts = later(session->backoff.until_ts, uploader->backoff.until_ts);
	if (until_ts > now_ts)
		return until_ts;
	spool_dir_name(name, slot->host, slot->session_id);
	dir_fd = openat(uploader->root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || spool_list(dir_fd, &session->entries)) {
		if (dir_fd >= 0)
			close(dir_fd);
		return now_ts + BACKOFF_CAP_NS;
	}
	session->next = 0;
	if (!session->entries.cnt)
		atomic_store(&slot->drained, true);
	request_cnt = atomic_load(&uploader->shared->request_cnt);
	for (int sent = 0; sent < REQUESTS_MAX && session->next < session->entries.cnt && !should_stop(uploader);
	     sent++)
		if (!send_batch(uploader, session, slot, dir_fd))
			break;
	close(dir_fd);
	if (!session->entries.cnt)
		return UINT64_MAX;
	/* What is there and cannot be sent is for the other side to remove, or for a better time. */
	if (request_cnt == atomic_load(&uploader->shared->request_cnt))
		return now_ts + LOOK_AGAIN_NS;
	return later(session->backoff.until_ts, uploader->backoff.until_ts);
}

uint64_t uploader__pass(struct uploader *uploader)
{
	uint64_t next_ts = UINT64_MAX;

	if (uploader->current && monotonic_ns() >= uploader->prefer_ts)
		uploader->current = 0;
	for (size_t i = 0; i < SPOOL_SLOTS && !should_stop(uploader); i++) {
		uint64_t ts = pass_session(uploader, i);

		next_ts = ts < next_ts ? ts : next_ts;
	}
	return next_ts;
}
