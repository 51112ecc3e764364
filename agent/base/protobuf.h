/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes protocol buffers (the wire format only): a message is built in memory, a message within it is built in another
 * one and put in whole.  Without memory, `err` says so from then on (-ENOMEM).
 */
#ifndef WHYLATE_BASE_PROTOBUF_H
#define WHYLATE_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

struct proto {
	uint8_t *items;
	size_t cnt, room;
	int err;
};

void proto__uint(struct proto *message, uint32_t field, uint64_t value); /* uint64, uint32, enum, bool */
void proto__sint(struct proto *message, uint32_t field, int64_t value);  /* sint32, sint64 */
void proto__fixed64(struct proto *message, uint32_t field, uint64_t value);
void proto__double(struct proto *message, uint32_t field, double value);
/* A packed repeated field of uint64, uint32, int64 (cast) or bool; no values: nothing is written. */
void proto__packed(struct proto *message, uint32_t field, const uint64_t *values, size_t cnt);
void proto__bytes(struct proto *message, uint32_t field, const void *bytes, size_t sz);
/* What is not UTF-8 in the text is replaced. */
void proto__string(struct proto *message, uint32_t field, const char *text);
void proto__message(struct proto *message, uint32_t field, const struct proto *within);
/* In a stream of messages, each with its length before it, and no field. */
void proto__delimited(struct proto *stream, const struct proto *message);
/* Empties it and keeps its memory. */
void proto__reset(struct proto *message);
void proto__free(struct proto *message);

#endif
