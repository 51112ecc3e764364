// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/html_pack.h"

#include "base/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NS_EXACT 512 /* codes up to it are the number itself */

void html_pack__open(struct html_pack *pack)
{
	*pack = (struct html_pack){.header = json_object_new_object()};
	if (!pack->header)
		pack->doc.err = -ENOMEM;
	pack->columns = put_object(&pack->doc, pack->header, "columns");
}

void html_pack__free(struct html_pack *pack)
{
	vec_free(&pack->bytes);
	json_object_put(pack->header);
	*pack = (struct html_pack){0};
}

void html_pack__column(struct html_pack *pack, const char *name)
{
	put_count(&pack->doc, pack->columns, name, pack->bytes.cnt);
}

void html_pack__number(struct html_pack *pack, uint64_t number)
{
	while (number >= 128) {
		if (vec_push(&pack->bytes, (uint8_t)(number | 128)))
			pack->doc.err = -ENOMEM;
		number >>= 7;
	}
	if (vec_push(&pack->bytes, (uint8_t)number))
		pack->doc.err = -ENOMEM;
}

uint64_t html_pack__ns_code(uint64_t ns)
{
	unsigned shift = 0;

	while (ns >> shift >= NS_EXACT)
		shift++;
	return shift * (NS_EXACT / 2) + (ns >> shift);
}

void html_pack__ns(struct html_pack *pack, uint64_t ns)
{
	html_pack__number(pack, html_pack__ns_code(ns));
}

void html_pack__float(struct html_pack *pack, double number)
{
	float rounded = (float)fmin(fmax(number, -1e38), 1e38);
	uint32_t bits;

	memcpy(&bits, &rounded, sizeof(bits));
	html_pack__number(pack, ((uint64_t)bits + 0x800) >> 12);
}

struct json_object *html_pack__string(struct html_pack *pack, const char *text)
{
	char *printable = utf8_printable(text, true);
	struct json_object *string = printable ? json_object_new_string(printable) : NULL;

	if (!string)
		pack->doc.err = -ENOMEM;
	free(printable);
	return string;
}

void html_pack__put_string(struct html_pack *pack, struct json_object *object, const char *key, const char *text)
{
	put(&pack->doc, object, key, text ? html_pack__string(pack, text) : NULL, !text);
}

int html_pack__deflate(struct html_pack *pack, uint8_t **bytes, size_t *sz)
{
	size_t header_sz, raw_sz;
	const char *header;
	uLongf room;
	uint8_t *raw;
	int err = -ENOMEM;

	if (pack->doc.err)
		return pack->doc.err;
	header = json_object_to_json_string_length(pack->header, JSON_C_TO_STRING_PLAIN, &header_sz);
	if (!header)
		return -ENOMEM;
	raw_sz = 4 + header_sz + pack->bytes.cnt;
	room = compressBound(raw_sz);
	raw = malloc(raw_sz);
	*bytes = malloc(room);
	if (raw && *bytes) {
		put_le(raw, header_sz, 4);
		memcpy(raw + 4, header, header_sz);
		if (pack->bytes.cnt)
			memcpy(raw + 4 + header_sz, pack->bytes.items, pack->bytes.cnt);
		err = compress2(*bytes, &room, raw, raw_sz, Z_DEFAULT_COMPRESSION) == Z_OK ? 0 : -ENOMEM;
		*sz = room;
	}
	free(raw);
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

void html_put_base64(FILE *out, const uint8_t *bytes, size_t sz)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < sz; i += 3) {
		size_t left = sz - i;
		uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
				 (left > 2 ? bytes[i + 2] : 0);

		putc(digits[group >> 18], out);
		putc(digits[group >> 12 & 63], out);
		putc(left > 1 ? digits[group >> 6 & 63] : '=', out);
		putc(left > 2 ? digits[group & 63] : '=', out);
	}
}
