/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the first bytes of a request to the text of its type: a route as in "GET /users/[*]/orders", "SET",
 * "SELECT * FROM t WHERE id = ?".  Pure functions over bytes that nobody vouches for.
 *
 * A text has no literals, keys or other values of the request, is printable ASCII, and is shorter than
 * REQUEST_TEXT_MAX.  Bytes that are cut give the text up to there, and "..." after it.
 */
#ifndef WHYLATE_MODEL_REQUEST_PARSE_H
#define WHYLATE_MODEL_REQUEST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_TEXT_MAX      160
#define REQUEST_STATEMENT_MAX 64

/* In the order in which they are tried. */
enum request_protocol {
	REQUEST_NONE,
	REQUEST_HTTP,
	REQUEST_REDIS,
	REQUEST_MEMCACHED,
	REQUEST_POSTGRES,
	REQUEST_FASTCGI,
	REQUEST_TLS,
	REQUEST_MYSQL,
	REQUEST_UWSGI,
	REQUEST_NATS,
	REQUEST_PROTOCOL_CNT
};

struct request_bytes {
	const uint8_t *bytes;
	size_t len;
	uint64_t total; /* that were read of the request, at least len */
	bool cut;       /* len is all that there was room for: there may be more */
};

enum request_prepared {
	REQUEST_PLAIN,
	REQUEST_PREPARES, /* text is that of a statement, which has a name from now on */
	REQUEST_EXECUTES, /* the statement of that name, whose text is that of its preparation */
};

struct request_parsed {
	enum request_protocol protocol;
	bool weak; /* requests of other protocols look like that, too */
	enum request_prepared prepared;
	/* The name is the connection's own: another one's says nothing of it; "PREPARE " precedes the statement. */
	bool own;
	char text[REQUEST_TEXT_MAX];
	char statement[REQUEST_STATEMENT_MAX]; /* name of the prepared statement; "" is one */
};

/* "http", "redis", …; NULL for REQUEST_NONE. */
const char *request_protocol_name(enum request_protocol protocol);
/* REQUEST_NONE: there is none of that name. */
enum request_protocol request_protocol_by_name(const char *name);

/* False: it is no request of that protocol. */
bool request_parse(enum request_protocol protocol, const struct request_bytes *request, struct request_parsed *parsed);

/* Any text, as a statement would be: literals are question marks. */
void request_parse_text(const uint8_t *bytes, size_t len, struct request_parsed *parsed);

#endif
