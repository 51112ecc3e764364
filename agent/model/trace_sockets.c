// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/trace_sockets.h"

#include "base/vec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTIONS_MAX 1024
#define SENDS_MAX      32
#define WAITING_MAX    4096

/* Towards whom the bytes go. */
struct direction_key {
	uint64_t conn;
	uint8_t from_addr[16], to_addr[16];
	uint16_t from_port, to_port;
	uint32_t family;
};

struct direction {
	struct direction_key key;
	uint64_t used_ts; /* 0: a free place */
	uint32_t send_cnt;
	struct wl_socket_record sends[SENDS_MAX]; /* the newest, a ring */
};

struct trace_sockets {
	struct direction *directions[DIRECTIONS_MAX]; /* by hash, a few places each */
	VEC(struct wl_socket_record) waiting;         /* receives, oldest first */
};

struct trace_sockets *trace_sockets__new(void)
{
	return calloc(1, sizeof(struct trace_sockets));
}

void trace_sockets__free(struct trace_sockets *sockets)
{
	if (!sockets)
		return;
	for (int i = 0; i < DIRECTIONS_MAX; i++)
		free(sockets->directions[i]);
	vec_free(&sockets->waiting);
	free(sockets);
}

static struct direction_key key_of(const struct wl_socket_record *record)
{
	bool sent = record->direction == WL_SENT;
	struct direction_key key;

	memset(&key, 0, sizeof(key));
	key.conn = record->conn;
	key.family = record->family;
	memcpy(key.from_addr, sent ? record->local_addr : record->remote_addr, sizeof(key.from_addr));
	memcpy(key.to_addr, sent ? record->remote_addr : record->local_addr, sizeof(key.to_addr));
	key.from_port = sent ? record->local_port : record->remote_port;
	key.to_port = sent ? record->remote_port : record->local_port;
	return key;
}

/* FNV-1a */
static uint32_t key_hash(const struct direction_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash ^ hash >> 15;
}

#define PROBES 8

static struct direction *direction_find(struct trace_sockets *sockets, const struct direction_key *key)
{
	uint32_t hash = key_hash(key);

	for (uint32_t i = 0; i < PROBES; i++) {
		struct direction *direction = sockets->directions[(hash + i) % DIRECTIONS_MAX];

		if (direction && direction->used_ts && !memcmp(&direction->key, key, sizeof(*key)))
			return direction;
	}
	return NULL;
}

static struct direction *direction_make(struct trace_sockets *sockets, const struct direction_key *key)
{
	struct direction *direction = direction_find(sockets, key), **oldest = NULL;
	uint32_t hash = key_hash(key);

	if (direction)
		return direction;
	for (uint32_t i = 0; i < PROBES; i++) {
		struct direction **place = &sockets->directions[(hash + i) % DIRECTIONS_MAX];

		if (!oldest || (*oldest && (!*place || (*place)->used_ts < (*oldest)->used_ts)))
			oldest = place;
	}
	if (!*oldest)
		*oldest = malloc(sizeof(**oldest));
	if (!*oldest)
		return NULL;
	(*oldest)->key = *key;
	(*oldest)->send_cnt = 0;
	return *oldest;
}

/* TCP's positions wrap around after 4 GiB. */
static bool covers(const struct wl_socket_record *send, uint64_t pos)
{
	if (send->conn)
		return pos - send->pos < send->len;
	return (uint32_t)pos - (uint32_t)send->pos < send->len;
}

static const struct wl_socket_record *find_send(const struct direction *direction, uint64_t pos)
{
	for (uint32_t back = 1; direction && back <= SENDS_MAX && back <= direction->send_cnt; back++) {
		const struct wl_socket_record *send = &direction->sends[(direction->send_cnt - back) % SENDS_MAX];

		if (covers(send, pos))
			return send;
	}
	return NULL;
}

static bool has_byte_of(const struct wl_socket_record *received, const struct wl_socket_record *send)
{
	return covers(received, send->pos) || covers(send, received->pos);
}

/* Some bytes of what was received were sent for another interval than the first one, or by a call that is not known. */
static bool is_mixed(const struct direction *direction, const struct wl_socket_record *first,
		     const struct wl_socket_record *received)
{
	uint64_t last = received->pos + received->len - 1;
	bool is_whole = covers(first, last);

	for (uint32_t back = 1; !is_whole && back <= SENDS_MAX && back <= direction->send_cnt; back++) {
		const struct wl_socket_record *send = &direction->sends[(direction->send_cnt - back) % SENDS_MAX];

		if (has_byte_of(received, send) && send->sid != first->sid)
			return true;
	}
	return !is_whole && !find_send(direction, last);
}

static bool goes_there(const struct wl_socket_record *record, const struct direction_key *key)
{
	struct direction_key its = key_of(record);

	return !memcmp(&its, key, sizeof(its));
}

/* Receives that have waited for this send: hundreds where a busy upstream is on another host, and few of them fit. */
static int match_waiting(struct trace_sockets *sockets, const struct direction *direction,
			 const struct wl_socket_record *send, trace_sockets_match match, void *owner)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < sockets->waiting.cnt; i++) {
		struct wl_socket_record *received = &sockets->waiting.items[i];

		if (!err && covers(send, received->pos) && goes_there(received, &direction->key))
			err = match(owner, send, received, is_mixed(direction, send, received));
		else if (kept++ != i)
			sockets->waiting.items[kept - 1] = *received;
	}
	sockets->waiting.cnt = kept;
	return err;
}

int trace_sockets__take(struct trace_sockets *sockets, const struct wl_socket_record *record, trace_sockets_match match,
			void *owner)
{
	struct direction_key key = key_of(record);
	const struct wl_socket_record *send;
	struct direction *direction;

	if (record->direction == WL_RECEIVED || record->direction == WL_RECEIVED_UNSURE) {
		direction = direction_find(sockets, &key);
		send = find_send(direction, record->pos);
		if (send) {
			direction->used_ts = record->ts;
			return match(owner, send, record, is_mixed(direction, send, record));
		}
		if (sockets->waiting.cnt >= WAITING_MAX)
			return match(owner, NULL, record, false);
		return vec_push(&sockets->waiting, *record);
	}
	direction = direction_make(sockets, &key);
	if (!direction)
		return -ENOMEM;
	direction->used_ts = record->ts ? record->ts : 1;
	direction->sends[direction->send_cnt++ % SENDS_MAX] = *record;
	return match_waiting(sockets, direction, record, match, owner);
}

int trace_sockets__settle(struct trace_sockets *sockets, uint64_t before_ts, trace_sockets_match match, void *owner)
{
	size_t done = 0;
	int err = 0;

	while (!err && done < sockets->waiting.cnt && sockets->waiting.items[done].ts < before_ts)
		err = match(owner, NULL, &sockets->waiting.items[done++], false);
	if (done)
		memmove(sockets->waiting.items, sockets->waiting.items + done,
			(sockets->waiting.cnt - done) * sizeof(*sockets->waiting.items));
	sockets->waiting.cnt -= done;
	return err;
}

void trace_socket_address(const struct wl_socket_record *record, bool remote, char *buf, size_t sz)
{
	const uint8_t *addr = remote ? record->remote_addr : record->local_addr;
	uint16_t port = remote ? record->remote_port : record->local_port;
	char text[INET6_ADDRSTRLEN] = "";

	buf[0] = '\0';
	if (record->family != AF_INET && record->family != AF_INET6)
		return;
	inet_ntop(record->family, addr, text, sizeof(text));
	snprintf(buf, sz, record->family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
}
