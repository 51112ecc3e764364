// SPDX-License-Identifier: GPL-2.0-or-later
#include "net/wire/protocol.h"

#include "base/bytes.h"
#include "shard/crc32c.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PATH_HOSTS     "/v1/hosts/"
#define PATH_SESSIONS  "/sessions/"
#define PATH_BLOCKS    "/blocks"
#define SESSION_DIGITS 16

void protocol_frame__put(uint8_t bytes[PROTOCOL_FRAME_HEADER_SZ], const struct protocol_frame *frame)
{
	memset(bytes, 0, PROTOCOL_FRAME_HEADER_SZ);
	memcpy(bytes, PROTOCOL_FRAME_MAGIC, PROTOCOL_FRAME_MAGIC_SZ);
	bytes[4] = frame->kind;
	put_le(bytes + 8, frame->seq, 8);
	put_le(bytes + 16, frame->sz, 4);
	put_le(bytes + 20, frame->crc, 4);
	put_le(bytes + 28, crc32c(0, bytes, 28), 4);
}

int protocol_frame__get(struct protocol_frame *frame, const uint8_t *bytes, size_t sz)
{
	if (memcmp(bytes, PROTOCOL_FRAME_MAGIC, sz < PROTOCOL_FRAME_MAGIC_SZ ? sz : PROTOCOL_FRAME_MAGIC_SZ))
		return -ENODATA;
	if (sz < PROTOCOL_FRAME_HEADER_SZ)
		return -EAGAIN;
	if (get_le(bytes + 28, 4) != crc32c(0, bytes, 28))
		return -EBADMSG;
	frame->kind = bytes[4];
	frame->seq = get_le(bytes + 8, 8);
	frame->sz = get_le(bytes + 16, 4);
	frame->crc = get_le(bytes + 20, 4);
	if (frame->seq > PROTOCOL_SEQ_MAX || frame->sz > PROTOCOL_PAYLOAD_MAX)
		return -EOVERFLOW;
	if (frame->kind == PROTOCOL_BLOCK)
		return frame->sz ? 0 : -EOVERFLOW;
	if (frame->kind == PROTOCOL_END)
		return frame->sz ? -EOVERFLOW : 0;
	return -ENOTSUP;
}

int protocol_frame__check(const struct protocol_frame *frame, const uint8_t *payload)
{
	return crc32c(0, payload, frame->sz) == frame->crc ? 0 : -EBADMSG;
}

int protocol_body__next(const uint8_t *body, size_t sz, size_t *off, struct protocol_frame *frame,
			const uint8_t **payload)
{
	size_t left = sz - *off;
	int err;

	if (!left)
		return 0;
	err = protocol_frame__get(frame, body + *off, left);
	if (err)
		return err;
	if (left - PROTOCOL_FRAME_HEADER_SZ < frame->sz)
		return -EAGAIN;
	*payload = body + *off + PROTOCOL_FRAME_HEADER_SZ;
	err = protocol_frame__check(frame, *payload);
	if (err)
		return err;
	*off += PROTOCOL_FRAME_HEADER_SZ + frame->sz;
	return 1;
}

bool protocol_host_is_valid(const char *host)
{
	char name[SHARD_HOST_MAX + 1];

	shard_host_name(name, host);
	return !strcmp(name, host);
}

bool protocol_token_is_valid(const char *token)
{
	size_t sz = 0;

	for (; token[sz]; sz++)
		if (token[sz] <= ' ' || token[sz] > '~' || sz >= PROTOCOL_TOKEN_MAX)
			return false;
	return sz >= PROTOCOL_TOKEN_MIN;
}

void protocol_path__put(char path[PROTOCOL_PATH_SZ], const char *host, uint64_t session_id)
{
	snprintf(path, PROTOCOL_PATH_SZ, PATH_HOSTS "%.*s" PATH_SESSIONS "%016" PRIx64 PATH_BLOCKS, SHARD_HOST_MAX,
		 host, session_id);
}

/* Exactly sixteen lower-case digits, so that every session has one name. */
static int get_session(const char *text, uint64_t *session_id)
{
	static const char digits[] = "0123456789abcdef";

	if (strspn(text, digits) != SESSION_DIGITS)
		return -EINVAL;
	*session_id = 0;
	for (int i = 0; i < SESSION_DIGITS; i++)
		*session_id = *session_id << 4 | (uint64_t)(strchr(digits, text[i]) - digits);
	return 0;
}

int protocol_path__get(const char *path, char host[SHARD_HOST_MAX + 1], uint64_t *session_id)
{
	const char *name, *slash;
	size_t name_sz;

	if (strncmp(path, PATH_HOSTS, strlen(PATH_HOSTS)))
		return -ENOENT;
	name = path + strlen(PATH_HOSTS);
	slash = strchr(name, '/');
	if (!slash || strncmp(slash, PATH_SESSIONS, strlen(PATH_SESSIONS)))
		return -ENOENT;
	name_sz = slash - name;
	if (name_sz > SHARD_HOST_MAX)
		return -EINVAL;
	memcpy(host, name, name_sz);
	host[name_sz] = 0;
	slash += strlen(PATH_SESSIONS);
	if (!protocol_host_is_valid(host) || get_session(slash, session_id))
		return -EINVAL;
	return strcmp(slash + SESSION_DIGITS, PATH_BLOCKS) ? -ENOENT : 0;
}
