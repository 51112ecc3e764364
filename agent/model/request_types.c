// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/request_types.h"

#include "base/hash.h"
#include "base/idmap.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTENERS_MAX  256
#define STATEMENTS_MAX 32768
#define SIDS_BITS      15
/* No text: of a prepared statement, several connections give that name to different ones. */
#define SEVERAL UINT32_MAX

struct listener {
	uint32_t type;
	uint32_t text_cnt;
	uint64_t seen;
	uint64_t votes[REQUEST_PROTOCOL_CNT];
	enum request_protocol leads;
};

struct known_sid {
	uint64_t sid;
	uint32_t text;
	uint32_t zero;
};

struct request_types {
	enum request_protocol only;
	struct arena *arena;
	struct intern texts;         /* 0 is "" */
	struct idmap listener_texts; /* (listener's type, hash of a text): those that have a number of their own */
	VEC(struct listener) listeners;
	/* Prepared statements: (connection, or listener with the highest bit set; hash of the name) → text. */
	struct idmap statement_ids;
	VEC(uint32_t) statements; /* 0: executed, and no preparation was seen */
	size_t unseen_cnt;
	struct known_sid sids[1 << SIDS_BITS];
};

struct request_types *request_types__new(enum request_protocol only)
{
	struct request_types *types = calloc(1, sizeof(*types));
	uint32_t none;

	if (!types)
		return NULL;
	types->only = only;
	types->arena = types->texts.arena = arena__new();
	if (types->arena && !intern__id(&types->texts, "", &none))
		return types;
	request_types__free(types);
	return NULL;
}

void request_types__free(struct request_types *types)
{
	if (!types)
		return;
	intern__free(&types->texts);
	idmap__free(&types->listener_texts);
	idmap__free(&types->statement_ids);
	vec_free(&types->listeners);
	vec_free(&types->statements);
	arena__free(types->arena);
	free(types);
}

/* --- which protocol ----------------------------------------------------------------------------------------------- */

static struct listener *listener_of(struct request_types *types, uint32_t type)
{
	struct listener listener = {.type = type};

	for (size_t i = 0; i < types->listeners.cnt; i++)
		if (types->listeners.items[i].type == type)
			return &types->listeners.items[i];
	if (types->listeners.cnt == LISTENERS_MAX || vec_push(&types->listeners, listener))
		return NULL;
	return &types->listeners.items[types->listeners.cnt - 1];
}

static void vote(struct listener *listener, enum request_protocol protocol)
{
	if (++listener->votes[protocol] > listener->votes[listener->leads] || !listener->leads)
		listener->leads = protocol;
}

/* As the listener's protocol has it; another protocol's form counts for that one. */
static bool parse(struct request_types *types, struct listener *listener, const struct request_bytes *request,
		  struct request_parsed *parsed)
{
	if (types->only)
		return request_parse(types->only, request, parsed);
	listener->seen++;
	if (request_parse(listener->leads, request, parsed)) {
		if (!parsed->weak)
			vote(listener, listener->leads);
		return listener->votes[listener->leads] * 2 >= listener->seen;
	}
	for (int i = REQUEST_NONE + 1; i < REQUEST_PROTOCOL_CNT; i++) {
		enum request_protocol protocol = (enum request_protocol)i;

		if (protocol == listener->leads || !request_parse(protocol, request, parsed) || parsed->weak)
			continue;
		vote(listener, protocol);
		return listener->leads == protocol && listener->votes[protocol] * 2 >= listener->seen;
	}
	return false;
}

/* --- prepared statements ------------------------------------------------------------------------------------------ */

static uint32_t *statement(struct request_types *types, uint64_t owner, uint64_t name, bool make)
{
	uint32_t id;

	if (idmap__find(&types->statement_ids, owner, name, &id))
		return &types->statements.items[id];
	if (!make || types->statements.cnt == STATEMENTS_MAX || vec_push(&types->statements, 0))
		return NULL;
	if (!idmap__id(&types->statement_ids, owner, name, &id))
		return &types->statements.items[id];
	types->statements.cnt--;
	return NULL;
}

/* No preparation of it is waited for any more. */
static void note_unseen(struct request_types *types, const struct wl_brief_record *record,
			const struct request_parsed *parsed)
{
	if (types->unseen_cnt < STATEMENTS_MAX / 2 &&
	    statement(types, record->conn, fnv1a_text(FNV1A_BEGIN, parsed->statement), true))
		types->unseen_cnt++;
}

/* Of the connection; and of the listener, for connections whose statements were prepared unseen. */
static void note_statement(struct request_types *types, const struct wl_brief_record *record,
			   const struct request_parsed *parsed, uint32_t text)
{
	uint64_t hash = fnv1a_text(FNV1A_BEGIN, parsed->statement);
	uint32_t *own = statement(types, record->conn, hash, true), *common;

	if (own)
		*own = text;
	if (!*parsed->statement || parsed->own)
		return;
	common = statement(types, 1ULL << 63 | record->type, hash, true);
	if (common)
		*common = *common && *common != text ? SEVERAL : text;
}

/* 0: no preparation was seen so far, or (*is_unseen) there is none to come. */
static uint32_t find_statement(struct request_types *types, const struct wl_brief_record *record,
			       const struct request_parsed *parsed, bool *is_unseen)
{
	uint64_t hash = fnv1a_text(FNV1A_BEGIN, parsed->statement);
	const uint32_t *own = statement(types, record->conn, hash, false), *common;
	uint32_t known = own ? *own : 0;

	*is_unseen = own && !known;
	if (known)
		return known;
	common = *parsed->statement && !parsed->own ? statement(types, 1ULL << 63 | record->type, hash, false) : NULL;
	return common && *common != SEVERAL ? *common : 0;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static struct known_sid *place_of(const struct request_types *types, uint64_t sid)
{
	return (struct known_sid *)&types->sids[sid * 0x9e3779b97f4a7c15ULL >> (64 - SIDS_BITS)];
}

/* The text's number for the listener, or that of "other"; 0: there is no room. */
static uint32_t number_of(struct request_types *types, struct listener *listener, const char *text)
{
	uint64_t hash = fnv1a_text(FNV1A_BEGIN, text);
	uint32_t number, id;

	if (!idmap__find(&types->listener_texts, listener->type, hash, &id)) {
		if (listener->text_cnt == REQUEST_ROUTES_MAX || types->texts.cnt >= WL_TYPE_NAMES_MAX - 1)
			text = REQUEST_OTHER;
		else if (idmap__id(&types->listener_texts, listener->type, hash, &id))
			return 0;
		else
			listener->text_cnt++;
	}
	return intern__id(&types->texts, text, &number) ? 0 : number;
}

static uint32_t text_of(struct request_types *types, struct listener *listener, const struct wl_brief_record *record,
			const struct request_parsed *parsed, bool *is_early)
{
	const char *name = parsed->own ? "" : parsed->statement;
	char text[REQUEST_TEXT_MAX];
	uint32_t number;
	bool is_unseen;

	if (parsed->prepared != REQUEST_EXECUTES) {
		number = number_of(types, listener, parsed->text);
		if (parsed->prepared == REQUEST_PREPARES && parsed->own)
			note_statement(types, record, parsed,
				       number_of(types, listener, parsed->text + strlen("PREPARE ")));
		else if (parsed->prepared == REQUEST_PREPARES)
			note_statement(types, record, parsed, number);
		return number;
	}
	number = find_statement(types, record, parsed, &is_unseen);
	if (number)
		return number;
	/* The second time all that was before it has been read. */
	*is_early = !is_unseen && place_of(types, record->sid)->sid != record->sid;
	if (!is_unseen && !*is_early)
		note_unseen(types, record, parsed);
	snprintf(text, sizeof(text), "EXECUTE %s%s(text not seen)", name, *name ? " " : "");
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return number_of(types, listener, text);
}

/* By what a symbol list says: a number, or a text without what is a literal in it. */
static uint32_t text_of_value(struct request_types *types, struct listener *listener,
			      const struct wl_brief_record *record, const uint8_t *first)
{
	struct request_parsed parsed = {0};
	int64_t number;

	if (record->conn == WL_FIRST_STRING) {
		request_parse_text(first, record->first_len, &parsed);
	} else if (record->conn == WL_FIRST_NUMBER && record->first_len == sizeof(number)) {
		memcpy(&number, first, sizeof(number));
		snprintf(parsed.text, sizeof(parsed.text), "%lld", (long long)number);
	}
	return *parsed.text ? number_of(types, listener, parsed.text) : 0;
}

uint32_t request_types__take(struct request_types *types, const struct wl_brief_record *record, const uint8_t *first,
			     bool *is_early)
{
	const struct request_bytes request = {
		.bytes = first,
		.len = record->first_len,
		.total = record->first_total > record->first_len ? record->first_total : record->first_len,
		/* Of what was read in parts no more than enough was copied. */
		.cut = record->first_len > WL_FIRST_ENOUGH || record->first_total > record->first_len,
	};
	struct request_parsed parsed;
	struct listener *listener;
	bool is_unknown = false;
	uint32_t text = 0;

	if (!record->first_len || record->first_len > WL_FIRST_MAX)
		return record->type;
	listener = listener_of(types, record->type);
	if (listener && WL_TYPE_SOURCE(record->type) == WL_SOURCE_FUNCTION)
		text = text_of_value(types, listener, record, first);
	else if (listener && parse(types, listener, &request, &parsed))
		text = text_of(types, listener, record, &parsed, &is_unknown);
	if (is_early)
		*is_early = is_unknown;
	*place_of(types, record->sid) = (struct known_sid){.sid = record->sid, .text = text};
	return WL_TYPE_NAMED(record->type, text);
}

uint32_t request_types__of(const struct request_types *types, uint64_t sid, uint32_t type)
{
	const struct known_sid *known;

	if (!types || !sid || WL_TYPE_NAME(type))
		return type;
	known = place_of(types, sid);
	return known->sid == sid ? WL_TYPE_NAMED(type, known->text) : type;
}

const char *request_types__text(const struct request_types *types, uint32_t type)
{
	uint32_t number = WL_TYPE_NAME(type);

	return types && number && number < types->texts.cnt ? types->texts.strings[number] : NULL;
}

enum request_protocol request_types__protocol(const struct request_types *types, uint32_t type)
{
	if (WL_TYPE_SOURCE(type) == WL_SOURCE_FUNCTION)
		return REQUEST_NONE;
	for (size_t i = 0; i < types->listeners.cnt; i++) {
		const struct listener *listener = &types->listeners.items[i];

		if (listener->type == type && types->only)
			return types->only;
		if (listener->type == type && listener->votes[listener->leads] * 2 >= listener->seen)
			return listener->leads;
	}
	return REQUEST_NONE;
}

uint32_t request_types__listener(const struct request_types *types, size_t idx)
{
	return idx < types->listeners.cnt ? types->listeners.items[idx].type : 0;
}
