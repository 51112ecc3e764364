/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounded reading and writing, for the files that parse requests. */
#ifndef WHYLATE_MODEL_REQUEST_TEXT_H
#define WHYLATE_MODEL_REQUEST_TEXT_H

#include "model/request_parse.h"

#include <string.h>

/* A text of a type that is being written. */
struct request_text {
	char *buf; /* of REQUEST_TEXT_MAX bytes */
	size_t len;
	bool full;
};

#define REQUEST_CUT     "..."
#define REQUEST_CUT_LEN (sizeof(REQUEST_CUT) - 1)

static inline struct request_text request_text_begin(struct request_parsed *parsed)
{
	parsed->text[0] = '\0';
	return (struct request_text){.buf = parsed->text};
}

static inline void request_text__put(struct request_text *text, uint8_t byte)
{
	if (text->len + REQUEST_CUT_LEN + 1 >= REQUEST_TEXT_MAX) {
		text->full = true;
		return;
	}
	text->buf[text->len++] = byte >= 0x20 && byte < 0x7f ? (char)byte : '?';
	text->buf[text->len] = '\0';
}

static inline void request_text__add(struct request_text *text, const char *word)
{
	while (*word)
		request_text__put(text, (uint8_t)*word++);
}

static inline bool request_text__ends(const struct request_text *text, const char *tail)
{
	size_t len = strlen(tail);

	return text->len >= len && !memcmp(text->buf + text->len - len, tail, len);
}

static inline void request_text__drop(struct request_text *text, size_t cnt)
{
	text->len -= cnt < text->len ? cnt : text->len;
	text->buf[text->len] = '\0';
}

/* The text is whole, or it goes on beyond what is known. */
static inline void request_text__end(struct request_text *text, bool cut)
{
	while (text->len && text->buf[text->len - 1] == ' ')
		request_text__drop(text, 1);
	if (cut || text->full)
		strcpy(text->buf + text->len, REQUEST_CUT);
}

static inline bool is_digit(uint8_t byte)
{
	return byte >= '0' && byte <= '9';
}

static inline bool is_upper(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z';
}

static inline bool is_lower(uint8_t byte)
{
	return byte >= 'a' && byte <= 'z';
}

static inline bool is_letter(uint8_t byte)
{
	return is_upper(byte) || is_lower(byte);
}

static inline bool is_hex(uint8_t byte)
{
	return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

static inline uint8_t to_upper(uint8_t byte)
{
	return is_lower(byte) ? (uint8_t)(byte - 'a' + 'A') : byte;
}

/* request_web.c: a part of a route, or of a subject; a URI's path as a route; `cut`: it goes on beyond `len`. */
void request_segment(struct request_text *text, const uint8_t *segment, size_t len);
bool request_parse_http(const struct request_bytes *request, struct request_parsed *parsed);
bool request_parse_fastcgi(const struct request_bytes *request, struct request_parsed *parsed);
bool request_parse_uwsgi(const struct request_bytes *request, struct request_parsed *parsed);

/* request_cache.c */
bool request_parse_redis(const struct request_bytes *request, struct request_parsed *parsed);
bool request_parse_memcached(const struct request_bytes *request, struct request_parsed *parsed);

/* request_message.c */
bool request_parse_nats(const struct request_bytes *request, struct request_parsed *parsed);

/* request_sql.c: a statement without its literals; `cut`: it goes on beyond `len`. */
void request_statement(struct request_text *text, const uint8_t *sql, size_t len, bool cut,
		       enum request_protocol protocol);
bool request_parse_postgres(const struct request_bytes *request, struct request_parsed *parsed);
bool request_parse_mysql(const struct request_bytes *request, struct request_parsed *parsed);

#endif
