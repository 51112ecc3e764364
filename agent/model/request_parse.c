// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/request_parse.h"

#include "model/request_text.h"

#include <whylate/record.h>

/* What is inside cannot be read: that is its type. */
static bool parse_tls(const struct request_bytes *request, struct request_parsed *parsed)
{
	const uint8_t *bytes = request->bytes;

	/* Content type, version 3.x, a record of at most 16 KiB and what encryption adds. */
	if (request->len < 5 || bytes[0] < 20 || bytes[0] > 23 || bytes[1] != 3 || bytes[2] > 4 || bytes[3] > 0x41)
		return false;
	if (!bytes[3] && !bytes[4])
		return false;
	strcpy(parsed->text, "TLS");
	return true;
}

static const struct {
	const char *name;
	bool (*parse)(const struct request_bytes *request, struct request_parsed *parsed);
} protocols[REQUEST_PROTOCOL_CNT] = {
	[REQUEST_HTTP] = {"http", request_parse_http},
	[REQUEST_REDIS] = {"redis", request_parse_redis},
	[REQUEST_MEMCACHED] = {"memcached", request_parse_memcached},
	[REQUEST_POSTGRES] = {"postgres", request_parse_postgres},
	[REQUEST_FASTCGI] = {"fastcgi", request_parse_fastcgi},
	[REQUEST_TLS] = {"tls", parse_tls},
	[REQUEST_MYSQL] = {"mysql", request_parse_mysql},
	[REQUEST_UWSGI] = {"uwsgi", request_parse_uwsgi},
	[REQUEST_NATS] = {"nats", request_parse_nats},
};

void request_parse_text(const uint8_t *bytes, size_t len, struct request_parsed *parsed)
{
	struct request_text text = request_text_begin(parsed);

	request_statement(&text, bytes, len, len + 1 >= WL_FIRST_MAX, REQUEST_NONE);
}

const char *request_protocol_name(enum request_protocol protocol)
{
	return protocol < REQUEST_PROTOCOL_CNT ? protocols[protocol].name : NULL;
}

enum request_protocol request_protocol_by_name(const char *name)
{
	for (int i = REQUEST_NONE + 1; i < REQUEST_PROTOCOL_CNT; i++)
		if (!strcmp(protocols[i].name, name))
			return (enum request_protocol)i;
	return REQUEST_NONE;
}

bool request_parse(enum request_protocol protocol, const struct request_bytes *request, struct request_parsed *parsed)
{
	*parsed = (struct request_parsed){.protocol = protocol};
	return protocol > REQUEST_NONE && protocol < REQUEST_PROTOCOL_CNT && request->len &&
	       protocols[protocol].parse(request, parsed);
}
