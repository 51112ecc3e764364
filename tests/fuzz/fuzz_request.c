// SPDX-License-Identifier: GPL-2.0-or-later
/* libFuzzer: any bytes as the first ones of requests, of each protocol and of a whole recording.  Build and run: make
 * fuzz */
#include "model/request_types.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static void check(const char *text)
{
	size_t len = strnlen(text, REQUEST_TEXT_MAX);

	if (len >= REQUEST_TEXT_MAX)
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	static struct request_types *types;
	static unsigned rounds;
	struct request_parsed parsed;
	uint8_t flags = sz ? bytes[0] : 0;
	struct request_bytes request = {
		.bytes = bytes + 1, .len = sz - 1, .total = sz - 1 + (flags >> 4), .cut = flags & 1};
	struct wl_brief_record record = {
		.sid = rounds, .type = WL_SOURCE_TCP << 16 | (flags >> 1 & 7), .conn = flags >> 4};

	if (!sz || sz - 1 > WL_FIRST_MAX)
		return 0;
	for (int p = REQUEST_NONE; p < REQUEST_PROTOCOL_CNT; p++)
		if (request_parse((enum request_protocol)p, &request, &parsed))
			check(parsed.text);
	if (rounds++ % ROUNDS == 0) {
		request_types__free(types);
		types = request_types__new(REQUEST_NONE);
		if (!types)
			abort();
	}
	record.first_len = (uint32_t)request.len;
	record.first_total = (uint32_t)request.total;
	record.type = request_types__take(types, &record, request.bytes, NULL);
	if (request_types__text(types, record.type))
		check(request_types__text(types, record.type));
	return 0;
}
