/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an agent and a collector agree on, docs/PROTOCOL.md: names, the request path, and the frames that a request's
 * body (and the agent's spool) consists of.  No I/O and no state; any thread.  Nothing of it is trusted by whoever
 * receives it.
 */
#ifndef WHYLATE_NET_WIRE_PROTOCOL_H
#define WHYLATE_NET_WIRE_PROTOCOL_H

#include "shard/format.h"
#include "shard/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_FRAME_HEADER_SZ 32
#define PROTOCOL_FRAME_MAGIC     "\xb5WLF"
#define PROTOCOL_FRAME_MAGIC_SZ  4

#define PROTOCOL_BODY_MAX    (8u << 20) /* of one request; a frame must fit into one */
#define PROTOCOL_FRAMES_MAX  1024u      /* of one request */
#define PROTOCOL_PAYLOAD_MAX (PROTOCOL_BODY_MAX - PROTOCOL_FRAME_HEADER_SZ)
#define PROTOCOL_SEQ_MAX     ((1ULL << 48) - 1)
#define PROTOCOL_TOKEN_MIN   16 /* characters */
#define PROTOCOL_TOKEN_MAX   256

/* "/v1/hosts/HOST/sessions/SESSION/blocks" and its NUL. */
#define PROTOCOL_PATH_SZ (sizeof("/v1/hosts//sessions/0123456789abcdef/blocks") + SHARD_HOST_MAX)

enum protocol_kind {
	PROTOCOL_BLOCK = 1, /* the payload is one whole block of a shard, kind 1 (rows) */
	PROTOCOL_END = 2,   /* no payload: the session is over and this is its last frame */
};

struct protocol_frame {
	uint8_t kind; /* enum protocol_kind */
	uint64_t seq; /* at most PROTOCOL_SEQ_MAX */
	uint32_t sz;  /* of the payload */
	uint32_t crc; /* CRC-32C of the payload */
};

/* Writes the header; the payload follows it. */
void protocol_frame__put(uint8_t bytes[PROTOCOL_FRAME_HEADER_SZ], const struct protocol_frame *frame);
/*
 * Reads a header, of which sz bytes are there.  0; -EAGAIN: cut short; -ENODATA: no frame begins here; -EBADMSG: its
 * checksum is wrong; -EOVERFLOW: intact, but seq or size are beyond the limits; -ENOTSUP: a kind of the future.
 */
int protocol_frame__get(struct protocol_frame *frame, const uint8_t *bytes, size_t sz);
/* Whether the payload is that frame's: 0 or -EBADMSG. */
int protocol_frame__check(const struct protocol_frame *frame, const uint8_t *payload);

/*
 * The next frame of a body at *off, and its payload.  1, and *off is behind it; 0 at the end; -EAGAIN where the body
 * ends within a frame; otherwise as protocol_frame__get() and protocol_frame__check().
 */
int protocol_body__next(const uint8_t *body, size_t sz, size_t *off, struct protocol_frame *frame,
			const uint8_t **payload);

/* Whether it is a name as shard_host_name() makes them. */
bool protocol_host_is_valid(const char *host);
/* Printable ASCII without blanks, PROTOCOL_TOKEN_MIN to PROTOCOL_TOKEN_MAX of it. */
bool protocol_token_is_valid(const char *token);

/* The path that a session's frames are posted to.  The host must be valid. */
void protocol_path__put(char path[PROTOCOL_PATH_SZ], const char *host, uint64_t session_id);
/* 0; -ENOENT: another path; -EINVAL: host or session are not well-formed. */
int protocol_path__get(const char *path, char host[SHARD_HOST_MAX + 1], uint64_t *session_id);

#endif
