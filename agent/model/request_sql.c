// SPDX-License-Identifier: GPL-2.0-or-later
/* PostgreSQL and MySQL: the statement without its literals. */
#include "model/request_text.h"

#include <whylate/record.h>

#include <stdio.h>

/* --- statements --------------------------------------------------------------------------------------------------- */

struct sql {
	const uint8_t *bytes;
	size_t len, at;
	bool cut;
	bool is_mysql, is_postgres; /* neither: any */
	struct request_text *text;
};

static bool is_word(uint8_t byte)
{
	return is_letter(byte) || is_digit(byte) || byte == '_' || byte == '$' || byte == '@' || byte >= 0x80;
}

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static uint8_t peek(const struct sql *sql, size_t ahead)
{
	return sql->at + ahead < sql->len ? sql->bytes[sql->at + ahead] : 0;
}

/* A list of literals is one. */
static void put_literal(struct request_text *text)
{
	if (request_text__ends(text, "?, ") || request_text__ends(text, "?,")) {
		request_text__drop(text, request_text__ends(text, " ") ? 2 : 1);
		return;
	}
	request_text__put(text, '?');
}

/* So is a list of lists of them. */
static void put_closing(struct request_text *text)
{
	request_text__put(text, ')');
	if (request_text__ends(text, "(?), (?)"))
		request_text__drop(text, 5);
	else if (request_text__ends(text, "(?),(?)"))
		request_text__drop(text, 4);
}

static void put_blank(struct request_text *text)
{
	if (text->len && !request_text__ends(text, " "))
		request_text__put(text, ' ');
}

/* Past the closing quote, or to the end. */
static void skip_quoted(struct sql *sql, uint8_t quote, bool escapes)
{
	for (sql->at++; sql->at < sql->len; sql->at++) {
		/* Where the literal ends depends on whose it is. */
		if (!sql->is_mysql && !sql->is_postgres && sql->bytes[sql->at] == '\\') {
			sql->cut = true;
			break;
		}
		if (escapes && sql->bytes[sql->at] == '\\') {
			sql->at++;
		} else if (sql->bytes[sql->at] == quote) {
			if (peek(sql, 1) != quote) {
				sql->at++;
				return;
			}
			sql->at++;
		}
	}
	sql->at = sql->len;
}

/* $tag$ text $tag$.  False: it is none. */
static bool skip_dollars(struct sql *sql)
{
	const uint8_t *tag = sql->bytes + sql->at;
	size_t tag_len = 1;

	while (sql->at + tag_len < sql->len && is_word(tag[tag_len]) && tag[tag_len] != '$')
		tag_len++;
	if (sql->at + tag_len >= sql->len || tag[tag_len] != '$')
		return false;
	tag_len++;
	for (sql->at += tag_len; sql->at + tag_len <= sql->len; sql->at++) {
		if (memcmp(sql->bytes + sql->at, tag, tag_len))
			continue;
		sql->at += tag_len;
		return true;
	}
	sql->at = sql->len;
	return true;
}

/* PostgreSQL's lie within each other. */
static void skip_block_comment(struct sql *sql)
{
	size_t depth = 0;

	do {
		bool opens = peek(sql, 0) == '/' && peek(sql, 1) == '*' && !(depth && sql->is_mysql);
		bool closes = peek(sql, 0) == '*' && peek(sql, 1) == '/';

		depth += (size_t)opens - closes;
		sql->at += opens || closes ? 2 : 1;
	} while (depth && sql->at < sql->len);
}

/* True: there was a comment. */
static bool skip_comment(struct sql *sql)
{
	uint8_t first = peek(sql, 0), second = peek(sql, 1);

	if (first == '/' && second == '*') {
		skip_block_comment(sql);
		return true;
	}
	if ((first == '-' && second == '-') || (first == '#' && !sql->is_postgres)) {
		while (sql->at < sql->len && sql->bytes[sql->at] != '\n')
			sql->at++;
		return true;
	}
	return false;
}

/* "= -1", "(-1": the sign is the literal's. */
static bool is_sign(const struct sql *sql)
{
	size_t len = sql->text->len;

	if ((peek(sql, 0) != '-' && peek(sql, 0) != '+') || !is_digit(peek(sql, 1)))
		return false;
	while (len && sql->text->buf[len - 1] == ' ')
		len--;
	return !len || strchr("(,=<>+-*/%", sql->text->buf[len - 1]);
}

static void skip_number(struct sql *sql)
{
	sql->at += !is_digit(peek(sql, 0));
	while (sql->at < sql->len && (is_word(peek(sql, 0)) || peek(sql, 0) == '.' ||
				      ((peek(sql, 0) == '-' || peek(sql, 0) == '+') &&
				       (sql->bytes[sql->at - 1] == 'e' || sql->bytes[sql->at - 1] == 'E'))))
		sql->at++;
}

/* A word, unless it is the prefix of a literal (N'…', x'…') or the bytes end in it. */
static void take_word(struct sql *sql)
{
	size_t from = sql->at;

	while (sql->at < sql->len && is_word(sql->bytes[sql->at]))
		sql->at++;
	if (sql->at == sql->len && sql->cut)
		return;
	if (peek(sql, 0) == '\'' && sql->at - from <= 2) {
		skip_quoted(sql, '\'', sql->is_mysql || (sql->at - from == 1 && to_upper(sql->bytes[from]) == 'E'));
		put_literal(sql->text);
		return;
	}
	for (size_t i = from; i < sql->at; i++)
		request_text__put(sql->text, sql->bytes[i]);
}

static void take_token(struct sql *sql)
{
	uint8_t byte = peek(sql, 0), next = peek(sql, 1);

	if (is_blank(byte) || !byte) {
		put_blank(sql->text);
		sql->at++;
	} else if (skip_comment(sql)) {
		put_blank(sql->text);
	} else if (byte == '\'' || (byte == '"' && !sql->is_postgres)) {
		skip_quoted(sql, byte, sql->is_mysql);
		put_literal(sql->text);
	} else if (is_digit(byte) || is_sign(sql) || (byte == '.' && is_digit(next))) {
		skip_number(sql);
		put_literal(sql->text);
	} else if (byte == '$' && is_digit(next)) {
		for (sql->at++; is_digit(peek(sql, 0)); sql->at++)
			;
		put_literal(sql->text);
	} else if (byte == '$' && skip_dollars(sql)) {
		put_literal(sql->text);
	} else if (byte == '"' || byte == '`') {
		size_t from = sql->at;

		skip_quoted(sql, byte, false);
		for (size_t i = from; i < sql->at && !(sql->at == sql->len && sql->cut); i++)
			request_text__put(sql->text, sql->bytes[i]);
	} else if (is_word(byte)) {
		take_word(sql);
	} else if (byte == '?') {
		put_literal(sql->text);
		sql->at++;
	} else if (byte == ')') {
		put_closing(sql->text);
		sql->at++;
	} else {
		request_text__put(sql->text, byte);
		sql->at++;
	}
}

void request_statement(struct request_text *text, const uint8_t *bytes, size_t len, bool cut,
		       enum request_protocol protocol)
{
	struct sql sql = {.bytes = bytes,
			  .len = len,
			  .cut = cut,
			  .is_mysql = protocol == REQUEST_MYSQL,
			  .is_postgres = protocol == REQUEST_POSTGRES,
			  .text = text};

	while (sql.at < sql.len && !text->full)
		take_token(&sql);
	while (!sql.cut && (request_text__ends(text, ";") || request_text__ends(text, " ")))
		request_text__drop(text, 1);
	request_text__end(text, sql.cut);
}

static void put_statement(struct request_parsed *parsed, const char *before, const uint8_t *bytes, size_t len, bool cut)
{
	struct request_text text = request_text_begin(parsed);

	request_text__add(&text, before);
	request_statement(&text, bytes, len, cut, parsed->protocol);
	if (!text.len && !cut)
		strcpy(parsed->text, "(empty)");
}

/* --- PostgreSQL --------------------------------------------------------------------------------------------------- */

static uint32_t get_be32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* One message of the frontend: its body, as far as it is there. */
struct message {
	uint8_t kind;
	const uint8_t *body;
	size_t len; /* that is there */
	bool cut;
	size_t next; /* where the next one begins */
};

#define MESSAGE_MAX (1U << 30)

static bool next_message(const struct request_bytes *request, size_t at, struct message *message)
{
	size_t left = at < request->len ? request->len - at : 0;
	uint32_t len;

	if (left < 5)
		return false;
	message->kind = request->bytes[at];
	len = get_be32(request->bytes + at + 1);
	if (len < 4 || len > MESSAGE_MAX || !strchr("QPBEDCSFHdcfpX", message->kind) || !message->kind)
		return false;
	message->body = request->bytes + at + 5;
	message->cut = len - 4 > left - 5;
	message->len = message->cut ? left - 5 : len - 4;
	message->next = at + 1 + len;
	return true;
}

/* A string of the message: its length, up to its NUL or to the end of what is there. */
static size_t string_at(const struct message *message, size_t at, bool *whole)
{
	const uint8_t *end = at < message->len ? memchr(message->body + at, 0, message->len - at) : NULL;

	*whole = end;
	return end ? (size_t)(end - message->body) - at : message->len > at ? message->len - at : 0;
}

static bool take_statement_name(const struct message *message, size_t at, struct request_parsed *parsed, size_t *next)
{
	bool whole;
	size_t len = string_at(message, at, &whole);

	if (!whole || len >= sizeof(parsed->statement))
		return false;
	memcpy(parsed->statement, message->body + at, len);
	parsed->statement[len] = '\0';
	*next = at + len + 1;
	return true;
}

static bool parse_query(const struct message *message, size_t at, struct request_parsed *parsed)
{
	bool whole;
	size_t len = string_at(message, at, &whole);

	if (!whole && !message->cut)
		return false;
	put_statement(parsed, "", message->body + at, len, !whole);
	return true;
}

static bool parse_bind(const struct message *message, struct request_parsed *parsed)
{
	bool whole;
	size_t at = string_at(message, 0, &whole), next;

	if (!whole || !take_statement_name(message, at + 1, parsed, &next))
		return false;
	parsed->prepared = REQUEST_EXECUTES;
	return true;
}

static bool parse_prepare(const struct message *message, struct request_parsed *parsed)
{
	size_t at;

	if (!take_statement_name(message, 0, parsed, &at))
		return false;
	parsed->prepared = REQUEST_PREPARES;
	return parse_query(message, at, parsed);
}

/* A connection's first message has no kind. */
static bool parse_startup(const struct request_bytes *request, struct request_parsed *parsed)
{
	const char *text;

	if (request->len < 8 || get_be32(request->bytes) != request->total || request->total > 10000)
		return false;
	switch (get_be32(request->bytes + 4)) {
	case 0x00030000:
	case 0x00030002:
		text = "startup";
		break;
	case 80877102:
		text = "cancel request";
		break;
	case 80877103:
		text = "SSL request";
		break;
	case 80877104:
		text = "GSSAPI request";
		break;
	default:
		return false;
	}
	strcpy(parsed->text, text);
	return true;
}

bool request_parse_postgres(const struct request_bytes *request, struct request_parsed *parsed)
{
	struct message message;
	const char *text = NULL;

	if (!request->bytes[0])
		return parse_startup(request, parsed);
	/* What tells nothing comes before what does. */
	for (size_t at = 0; next_message(request, at, &message); at = message.next) {
		switch (message.kind) {
		case 'Q':
			return parse_query(&message, 0, parsed);
		case 'P':
			return parse_prepare(&message, parsed);
		case 'B':
			return parse_bind(&message, parsed);
		}
		text = text                          ? text
		       : message.kind == 'E'         ? "Execute"
		       : message.kind == 'F'         ? "FunctionCall"
		       : message.kind == 'p'         ? "authentication"
		       : message.kind == 'X'         ? "Terminate"
		       : message.kind == 'C'         ? "Close"
		       : message.kind == 'D'         ? "Describe"
		       : strchr("dcf", message.kind) ? "COPY data"
						     : "Sync";
		if (message.next > request->total)
			break;
	}
	if (!text || (message.next > request->total && !request->cut))
		return false;
	strcpy(parsed->text, text);
	return true;
}

/* --- MySQL -------------------------------------------------------------------------------------------------------- */

static const char *const commands[] = {
	[0x01] = "QUIT",
	[0x02] = "USE",
	[0x03] = "",
	[0x04] = "FIELD LIST",
	[0x05] = "CREATE DB",
	[0x06] = "DROP DB",
	[0x07] = "REFRESH",
	[0x08] = "SHUTDOWN",
	[0x09] = "STATISTICS",
	[0x0a] = "PROCESS INFO",
	[0x0c] = "PROCESS KILL",
	[0x0d] = "DEBUG",
	[0x0e] = "PING",
	[0x11] = "CHANGE USER",
	[0x12] = "BINLOG DUMP",
	[0x15] = "REGISTER SLAVE",
	[0x16] = "PREPARE ",
	[0x17] = "EXECUTE",
	[0x18] = "SEND LONG DATA",
	[0x19] = "CLOSE STATEMENT",
	[0x1a] = "RESET STATEMENT",
	[0x1b] = "SET OPTION",
	[0x1c] = "FETCH",
	[0x1e] = "BINLOG DUMP GTID",
	[0x1f] = "RESET CONNECTION",
};

/* Statements are known by the server's number for them. */
static void name_statement(const uint8_t *number, enum request_prepared prepared, struct request_parsed *parsed)
{
	snprintf(parsed->statement, sizeof(parsed->statement), "%u",
		 (uint32_t)number[3] << 24 | (uint32_t)number[2] << 16 | (uint32_t)number[1] << 8 | number[0]);
	parsed->prepared = prepared;
	parsed->own = true;
}

/* A length of one byte, or of two or three that follow the first.  False: it is cut, or longer. */
static bool get_length(const uint8_t *bytes, size_t len, size_t *at, size_t *value)
{
	size_t more = *at < len && bytes[*at] >= 0xfc ? bytes[*at] - 0xfa : 0;

	if (*at >= len || len - *at <= more || more > 3)
		return false;
	*value = more ? 0 : bytes[*at];
	for (size_t i = more; i; i--)
		*value = *value << 8 | bytes[*at + i];
	*at += 1 + more;
	return true;
}

/* What an attribute of that type takes, from at on.  False: it is cut. */
static bool attribute_length(const uint8_t *bytes, size_t len, uint8_t type, size_t *at, size_t *value)
{
	static const uint8_t sizes[] = {[1] = 1, [2] = 2, [3] = 4, [4] = 4, [5] = 8, [8] = 8, [9] = 4, [13] = 2};

	if (type == 6) {
		*value = 0;
		return true;
	}
	if (type >= sizeof(sizes) || !sizes[type])
		return get_length(bytes, len, at, value);
	*value = sizes[type];
	return true;
}

/* CLIENT_QUERY_ATTRIBUTES, in one set of them: where the statement begins; len where that is not there. */
static size_t statement_begin(const uint8_t *body, size_t len)
{
	size_t cnt = body[0], nulls = 2, at = 3 + (cnt + 7) / 8, value, names;

	if (!cnt)
		return 2;
	names = at;
	if (cnt > 250 || at > len || body[at - 1] != 1)
		return len;
	for (size_t i = 0; i < cnt; i++) {
		at += 2;
		if (at >= len || !get_length(body, len, &at, &value) || value > len - at)
			return len;
		at += value;
	}
	for (size_t i = 0; i < cnt; i++) {
		uint8_t type = body[names];

		names += 2;
		get_length(body, len, &names, &value);
		names += value;
		if (body[nulls + i / 8] >> i % 8 & 1)
			continue;
		if (!attribute_length(body, len, type, &at, &value) || value > len - at)
			return len;
		at += value;
	}
	return at;
}

/* As WL_FIRST_PREPARED says. */
static bool parse_prepared(const struct request_bytes *request, struct request_parsed *parsed)
{
	/* Its first words are a client's, before anything else tells the protocol. */
	parsed->weak = request->bytes[3] || !is_letter(request->bytes[5]);
	name_statement(request->bytes, REQUEST_PREPARES, parsed);
	put_statement(parsed, commands[0x16], request->bytes + 5, request->len - 5, request->total > request->len);
	return true;
}

/* The answer to the server's greeting, with PROTOCOL_41: capabilities, sizes, 19 zero bytes. */
static bool parse_login(const struct request_bytes *request, struct request_parsed *parsed)
{
	const uint8_t *bytes = request->bytes;
	uint8_t any = 0;

	if (request->len < 36 || bytes[3] != 1 || !(bytes[5] & 2) ||
	    ((size_t)bytes[2] << 16 | (size_t)bytes[1] << 8 | bytes[0]) + 4 != request->total)
		return false;
	for (size_t i = 13; i < 32; i++)
		any |= bytes[i];
	if (!any)
		strcpy(parsed->text, "login");
	return !any;
}

bool request_parse_mysql(const struct request_bytes *request, struct request_parsed *parsed)
{
	const uint8_t *bytes = request->bytes, *body = bytes + 5;
	size_t packet_sz, have;
	uint8_t command;
	bool cut;

	if (request->len > 5 && bytes[4] == WL_FIRST_PREPARED)
		return parse_prepared(request, parsed);
	if (parse_login(request, parsed))
		return true;
	if (request->len < 5 || bytes[3])
		return false;
	packet_sz = (size_t)bytes[2] << 16 | (size_t)bytes[1] << 8 | bytes[0];
	command = bytes[4];
	if (!packet_sz || command >= sizeof(commands) / sizeof(commands[0]) || !commands[command])
		return false;
	/* One packet and nothing else: a client waits for its reply, as a rule. */
	parsed->weak = packet_sz + 4 != request->total && !(packet_sz + 4 > request->total && request->cut);
	cut = packet_sz - 1 > request->len - 5;
	have = cut ? request->len - 5 : packet_sz - 1;
	if (command == 0x17 && have >= 4)
		name_statement(body, REQUEST_EXECUTES, parsed);
	if (command != 0x03 && command != 0x16) {
		strcpy(parsed->text, commands[command]);
		return true;
	}
	if (command == 0x03 && have >= 2 && body[1] == 1) {
		size_t begin = statement_begin(body, have);

		body += begin;
		have -= begin;
		cut |= !have;
	}
	put_statement(parsed, commands[command], body, have, cut);
	return true;
}
