// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/otlp_common.h"

#include "shard/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Field numbers: docs/otlp.proto. */
enum {
	FIELD_RESOURCE_ATTRIBUTES = 1,
	FIELD_SCOPE_NAME = 1,
	FIELD_SCOPE_VERSION = 2,
	FIELD_KEY = 1,
	FIELD_VALUE = 2,
	FIELD_VALUE_STRING = 1,
	FIELD_VALUE_INT = 3,
	FIELD_VALUE_DOUBLE = 4,
};

static int find_session(struct otlp_sessions *sessions, uint64_t id, uint32_t *no)
{
	uint32_t cnt = sessions->ids.cnt;

	if (idmap__id(&sessions->ids, id, 0, no))
		return -ENOMEM;
	return *no == cnt ? vec_push(&sessions->items, (struct otlp_session){.id = id}) : 0;
}

static void take_fact(struct otlp_session *session, const char *key, const char *value)
{
	if (!strcmp(key, "host"))
		snprintf(session->host, sizeof(session->host), "%s", value);
	else if (!strcmp(key, "comm"))
		snprintf(session->comm, sizeof(session->comm), "%s", value);
	else if (!strcmp(key, "kernel"))
		snprintf(session->kernel, sizeof(session->kernel), "%s", value);
	else if (!strcmp(key, "pid"))
		session->pid = strtoull(value, NULL, 10);
	else if (!strcmp(key, "mono_anchor_ns") && !session->mono_ns)
		session->mono_ns = strtoll(value, NULL, 10);
	else if (!strcmp(key, "wall_anchor_ns") && !session->wall_ns)
		session->wall_ns = strtoll(value, NULL, 10);
}

int otlp_sessions__read(struct otlp_sessions *sessions, struct shard_reader *reader)
{
	static const char *const tables[] = {"session"};
	const struct shard_block *block;
	int ret = shard_reader__select(reader, tables, 1);

	if (ret)
		return ret;
	while ((ret = shard_reader__next(reader, &block)) > 0) {
		const struct shard_block_column *key = block_column(block, "key", SHARD_STR);
		const struct shard_block_column *value = block_column(block, "value", SHARD_STR);
		uint32_t no;

		if (find_session(sessions, block->session_id, &no))
			return -ENOMEM;
		for (uint32_t i = 0; key && value && i < block->row_cnt; i++)
			if (!column_is_null(key, i) && !column_is_null(value, i))
				take_fact(&sessions->items.items[no], key->values[i].str, value->values[i].str);
	}
	return ret;
}

const struct otlp_session *otlp_sessions__find(const struct otlp_sessions *sessions, uint64_t id)
{
	uint32_t no;

	return idmap__find(&sessions->ids, id, 0, &no) ? &sessions->items.items[no] : NULL;
}

void otlp_sessions__free(struct otlp_sessions *sessions)
{
	idmap__free(&sessions->ids);
	vec_free(&sessions->items);
}

bool otlp_session__has_clock(const struct otlp_session *session)
{
	return session->mono_ns > 0 && session->wall_ns > 0;
}

uint64_t otlp_session__wall(const struct otlp_session *session, uint64_t ts)
{
	return ts + (uint64_t)session->wall_ns - (uint64_t)session->mono_ns;
}

void otlp_scratch__free(struct otlp_scratch *scratch)
{
	proto__free(&scratch->part);
	proto__free(&scratch->value);
}

/* scratch->value holds the AnyValue. */
static void put_key_value(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key)
{
	proto__reset(&scratch->part);
	proto__string(&scratch->part, FIELD_KEY, key);
	proto__message(&scratch->part, FIELD_VALUE, &scratch->value);
	proto__message(to, field, &scratch->part);
}

void otlp_put_text(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	proto__reset(&scratch->value);
	proto__string(&scratch->value, FIELD_VALUE_STRING, text);
	put_key_value(scratch, to, field, key);
}

void otlp_put_number(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, uint64_t number)
{
	proto__reset(&scratch->value);
	proto__uint(&scratch->value, FIELD_VALUE_INT, number);
	put_key_value(scratch, to, field, key);
}

void otlp_put_double(struct otlp_scratch *scratch, struct proto *to, uint32_t field, const char *key, double number)
{
	proto__reset(&scratch->value);
	proto__double(&scratch->value, FIELD_VALUE_DOUBLE, number);
	put_key_value(scratch, to, field, key);
}

void otlp_put_resource(struct otlp_scratch *scratch, struct proto *to, uint32_t field,
		       const struct otlp_session *session)
{
	struct proto resource = {0};
	char id[20];

	snprintf(id, sizeof(id), "%016" PRIx64, session->id);
	otlp_put_text(scratch, &resource, FIELD_RESOURCE_ATTRIBUTES, "service.name",
		      *session->comm ? session->comm : "unknown");
	otlp_put_text(scratch, &resource, FIELD_RESOURCE_ATTRIBUTES, "host.name", session->host);
	otlp_put_text(scratch, &resource, FIELD_RESOURCE_ATTRIBUTES, "os.version", session->kernel);
	otlp_put_number(scratch, &resource, FIELD_RESOURCE_ATTRIBUTES, "process.pid", session->pid);
	otlp_put_text(scratch, &resource, FIELD_RESOURCE_ATTRIBUTES, "whylate.session", id);
	proto__message(to, field, &resource);
	proto__free(&resource);
}

void otlp_put_scope(struct proto *to, uint32_t field)
{
	struct proto scope = {0};

	proto__string(&scope, FIELD_SCOPE_NAME, "whylate");
	proto__string(&scope, FIELD_SCOPE_VERSION, WHYLATE_VERSION);
	proto__message(to, field, &scope);
	proto__free(&scope);
}
