// SPDX-License-Identifier: GPL-2.0-or-later
/* HTTP/1, FastCGI and uwsgi: method and route. */
#include "model/request_text.h"

/* A path segment of that length is a value, a run of that many digits within one likewise. */
#define WORD_MAX   40
#define DIGITS_MIN 2
#define TOKEN_MIN  10
/* So many hexadecimal digits and nothing else, with a decimal one among them, are an identifier. */
#define HEX_MIN      8
#define SEGMENTS_MAX 12

static const char *const methods[] = {
	"GET",   "POST",  "HEAD", "PUT",  "DELETE", "PATCH",  "OPTIONS",  "CONNECT",   "TRACE",
	"PURGE", "MKCOL", "COPY", "MOVE", "LOCK",   "UNLOCK", "PROPFIND", "PROPPATCH", "REPORT",
};

static const char *method_of(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strlen(methods[i]) == len && !memcmp(methods[i], bytes, len))
			return methods[i];
	return NULL;
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

/* Letters of both cases among which digits lie in several places: nobody calls a route so. */
static bool is_token(const uint8_t *segment, size_t len)
{
	size_t uppers = 0, lowers = 0, runs = 0;

	for (size_t i = 0; i < len; i++) {
		if (segment[i] == '.')
			return false;
		uppers += is_upper(segment[i]);
		lowers += is_lower(segment[i]);
		runs += is_digit(segment[i]) && (!i || !is_digit(segment[i - 1]));
	}
	return len >= TOKEN_MIN && uppers && lowers && runs > 1;
}

/* Is the whole segment a number, a UUID, a hash, or something that is encoded or quoted? */
static bool is_value(const uint8_t *segment, size_t len)
{
	size_t digits = 0, hex = 0, dashes = 0;

	for (size_t i = 0; i < len; i++) {
		if (segment[i] >= 0x80 || memchr("%=@,'\"", segment[i], 6))
			return true;
		digits += is_digit(segment[i]);
		hex += is_hex(segment[i]);
		dashes += segment[i] == '-';
	}
	if (len > WORD_MAX || (len && digits == len) || is_token(segment, len))
		return true;
	return digits && hex >= HEX_MIN && hex + dashes == len;
}

static void put_part(struct request_text *text, const uint8_t *segment, size_t len)
{
	size_t at = 0;

	if (is_value(segment, len)) {
		request_text__put(text, '*');
		return;
	}
	while (at < len) {
		size_t run = 0;

		while (at + run < len && is_digit(segment[at + run]))
			run++;
		if (run >= DIGITS_MIN) {
			request_text__put(text, '*');
			at += run;
		} else {
			request_text__put(text, segment[at++]);
		}
	}
}

void request_segment(struct request_text *text, const uint8_t *segment, size_t len)
{
	const uint8_t *opens = len ? memchr(segment, '(', len) : NULL, *closes;

	if (!opens) {
		put_part(text, segment, len);
		return;
	}
	/* OData's keys. */
	put_part(text, segment, (size_t)(opens - segment));
	request_text__add(text, "(*)");
	closes = memchr(opens, ')', len - (size_t)(opens - segment));
	if (closes)
		put_part(text, closes + 1, len - (size_t)(closes + 1 - segment));
}

/* "http://host/path" → "/path" */
static size_t skip_authority(const uint8_t *uri, size_t len)
{
	size_t at = 0;

	if (len && uri[0] == '/')
		return 0;
	while (at < len && is_letter(uri[at]))
		at++;
	if (at + 3 > len || memcmp(uri + at, "://", 3))
		return 0;
	for (at += 3; at < len && uri[at] != '/'; at++)
		;
	return at;
}

static void request_route(struct request_text *text, const uint8_t *uri, size_t len, bool cut)
{
	size_t at = skip_authority(uri, len), segments = 0;

	if (at && at == len)
		request_text__put(text, '/');
	while (at < len && uri[at] != '?' && uri[at] != '#' && uri[at] != ';') {
		size_t end = at;

		if (uri[at] == '/') {
			request_text__put(text, '/');
			at++;
			if (++segments > SEGMENTS_MAX) {
				request_text__put(text, '*');
				return;
			}
			continue;
		}
		while (end < len && !strchr("/?#;", uri[end]))
			end++;
		/* strchr() finds the end of its list, too. */
		if (end == at)
			end++;
		/* Of a segment that is cut it is not known whether it is a value. */
		if (end < len || !cut)
			request_segment(text, uri + at, end - at);
		at = end;
	}
	request_text__end(text, cut && at == len);
}

/* --- HTTP --------------------------------------------------------------------------------------------------------- */

static size_t find_blank(const uint8_t *bytes, size_t from, size_t len)
{
	while (from < len && bytes[from] > ' ')
		from++;
	return from;
}

bool request_parse_http(const struct request_bytes *request, struct request_parsed *parsed)
{
	static const char version[] = "HTTP/1.";
	size_t len = request->len, method_end = find_blank(request->bytes, 0, len), end, have;
	const uint8_t *bytes = request->bytes;
	struct request_text text = request_text_begin(parsed);
	const char *method;

	if (len >= 14 && !memcmp(bytes, "PRI * HTTP/2.0", 14)) {
		request_text__add(&text, "HTTP/2");
		return true;
	}
	method = method_end < len && bytes[method_end] == ' ' ? method_of(bytes, method_end) : NULL;
	if (!method)
		return false;
	end = find_blank(bytes, method_end + 1, len);
	if (end == method_end + 1 || (end < len && bytes[end] != ' '))
		return false;
	/* As much of the version as is there; none only where the bytes are cut in front of it. */
	have = end < len ? len - end - 1 : 0;
	if (have > sizeof(version) - 1)
		have = sizeof(version) - 1;
	if ((have < sizeof(version) - 1 && !request->cut) || memcmp(bytes + (have ? end + 1 : 0), version, have))
		return false;
	request_text__add(&text, method);
	if (!strcmp(method, "CONNECT"))
		return true;
	request_text__put(&text, ' ');
	request_route(&text, bytes + method_end + 1, end - method_end - 1, end == len);
	return true;
}

/* --- FastCGI, uwsgi ----------------------------------------------------------------------------------------------- */

/* What of a request's variables makes its type. */
struct variables {
	const char *method;
	const uint8_t *uri, *script;
	size_t uri_len, script_len;
	bool uri_cut, script_cut;
};

static bool name_is(const uint8_t *name, size_t len, const char *want)
{
	return strlen(want) == len && !memcmp(name, want, len);
}

/* The value is there up to have of its len bytes. */
static void take_variable(struct variables *variables, const uint8_t *name, size_t name_len, const uint8_t *value,
			  size_t len, size_t have)
{
	if (have > len)
		have = len;
	if (name_is(name, name_len, "REQUEST_METHOD") && have == len) {
		variables->method = method_of(value, len);
	} else if (name_is(name, name_len, "REQUEST_URI")) {
		variables->uri = value;
		variables->uri_len = have;
		variables->uri_cut = have < len;
	} else if (name_is(name, name_len, "SCRIPT_NAME") || name_is(name, name_len, "PATH_INFO") ||
		   name_is(name, name_len, "DOCUMENT_URI")) {
		if (variables->script_len)
			return;
		variables->script = value;
		variables->script_len = have;
		variables->script_cut = have < len;
	}
}

static bool put_variables(const struct variables *variables, struct request_parsed *parsed)
{
	struct request_text text = request_text_begin(parsed);
	bool by_uri = variables->uri_len;

	request_text__add(&text, variables->method ? variables->method : "?");
	request_text__put(&text, ' ');
	if (by_uri)
		request_route(&text, variables->uri, variables->uri_len, variables->uri_cut);
	else
		request_route(&text, variables->script, variables->script_len,
			      variables->script_cut || !variables->script_len);
	return variables->method || by_uri || variables->script_len;
}

/* A length of one byte, or of four with the highest bit set.  False: it is cut. */
static bool fastcgi_length(const uint8_t *bytes, size_t len, size_t *at, size_t *value)
{
	if (*at >= len)
		return false;
	if (!(bytes[*at] & 0x80)) {
		*value = bytes[(*at)++];
		return true;
	}
	if (len - *at < 4)
		return false;
	*value = (size_t)(bytes[*at] & 0x7f) << 24 | (size_t)bytes[*at + 1] << 16 | (size_t)bytes[*at + 2] << 8 |
		 bytes[*at + 3];
	*at += 4;
	return true;
}

static void fastcgi_params(const uint8_t *bytes, size_t len, struct variables *variables)
{
	size_t at = 0, name_len, value_len;

	while (fastcgi_length(bytes, len, &at, &name_len) && fastcgi_length(bytes, len, &at, &value_len) &&
	       name_len <= len - at) {
		const uint8_t *name = bytes + at;

		at += name_len;
		take_variable(variables, name, name_len, bytes + at, value_len, len - at);
		if (value_len > len - at)
			return;
		at += value_len;
	}
}

bool request_parse_fastcgi(const struct request_bytes *request, struct request_parsed *parsed)
{
	/* Version 1, BEGIN_REQUEST, 8 bytes of content: a role of 1 to 3 and reserved bytes. */
	static const uint8_t reserved[5];
	struct variables variables = {0};
	const uint8_t *bytes = request->bytes;
	size_t begin_sz, params_sz;

	if (request->len < 16 || bytes[0] != 1 || bytes[1] != 1 || bytes[4] || bytes[5] != 8 || bytes[8] || !bytes[9] ||
	    bytes[9] > 3 || bytes[10] > 1 || memcmp(bytes + 11, reserved, sizeof(reserved)))
		return false;
	begin_sz = 16 + (size_t)bytes[6];
	if (request->len < begin_sz + 8 || bytes[begin_sz] != 1 || bytes[begin_sz + 1] != 4) {
		strcpy(parsed->text, "?");
		return true;
	}
	params_sz = (size_t)bytes[begin_sz + 4] << 8 | bytes[begin_sz + 5];
	if (params_sz > request->len - begin_sz - 8)
		params_sz = request->len - begin_sz - 8;
	fastcgi_params(bytes + begin_sz + 8, params_sz, &variables);
	if (!put_variables(&variables, parsed))
		strcpy(parsed->text, "?");
	return true;
}

bool request_parse_uwsgi(const struct request_bytes *request, struct request_parsed *parsed)
{
	struct variables variables = {0};
	const uint8_t *bytes = request->bytes;
	size_t len = request->len, at = 4, body_sz;

	if (len < 8 || bytes[0] || bytes[3])
		return false;
	body_sz = (size_t)bytes[2] << 8 | bytes[1];
	if (body_sz < 4)
		return false;
	if (body_sz + 4 < len)
		len = body_sz + 4;
	while (len - at >= 4) {
		size_t name_len = (size_t)bytes[at + 1] << 8 | bytes[at], value_len;
		const uint8_t *name = bytes + at + 2;

		if (!name_len || name_len + 4 > len - at)
			break;
		for (size_t i = 0; i < name_len; i++)
			if (!is_upper(name[i]) && name[i] != '_' && !is_digit(name[i]))
				return false;
		value_len = (size_t)bytes[at + 3 + name_len] << 8 | bytes[at + 2 + name_len];
		at += 4 + name_len;
		take_variable(&variables, name, name_len, bytes + at, value_len, len - at);
		if (value_len > len - at)
			break;
		at += value_len;
	}
	return put_variables(&variables, parsed);
}
