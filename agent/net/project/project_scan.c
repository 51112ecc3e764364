// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "net/project/project_internal.h"
#include "shard/columns.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DAY_NS  86400000000000ULL
#define DAY_MAX 60000 /* in the year 2134; a Date has 16 bits */

uint64_t project_block_id(const struct shard_block_header *header)
{
	const uint64_t fields[] = {header->session_id, header->row_cnt, header->column_cnt, header->raw_sz,
				   header->stored_sz,  header->min_ts,  header->max_ts,     header->body_crc};
	uint64_t id = 0x77686c61746521ULL;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		id = random_mix(id ^ fields[i]) + 0x9e3779b97f4a7c15ULL;
	for (const char *c = header->table; *c; c++)
		id = random_mix(id ^ (unsigned char)*c);
	return id;
}

bool projector__day(const struct projector *projector, const struct project_block *block, uint16_t *day)
{
	const struct project_session *session = &projector->sessions.items[block->session];
	int64_t wall_ns;

	if (!session->clock_known || block->min_ts > INT64_MAX ||
	    __builtin_add_overflow((int64_t)block->min_ts, session->clock_ns, &wall_ns) || wall_ns < 0 ||
	    (uint64_t)wall_ns / DAY_NS > DAY_MAX)
		return false;
	*day = (uint16_t)((uint64_t)wall_ns / DAY_NS);
	return true;
}

const char *project_session__fact(const struct project_session *session, const char *key)
{
	for (size_t i = 0; i < session->facts.cnt; i++)
		if (!strcmp(session->facts.items[i].key, key))
			return session->facts.items[i].value;
	return NULL;
}

void project_session__clear(struct project_session *session)
{
	for (size_t i = 0; i < session->facts.cnt; i++) {
		free(session->facts.items[i].key);
		free(session->facts.items[i].value);
	}
	vec_free(&session->facts);
	vec_free(&session->losses);
	vec_free(&session->files);
	vec_free(&session->hours);
	free(session->recording);
}

/* The newest value of a key holds. */
static int session__set_fact(struct project_session *session, const char *key, const char *value)
{
	struct project_fact *fact = NULL;
	char *copy = strndup(value, PROJECT_VALUE_MAX);

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; !fact && i < session->facts.cnt; i++)
		if (!strcmp(session->facts.items[i].key, key))
			fact = &session->facts.items[i];
	if (!fact && session->facts.cnt < PROJECT_FACTS_MAX) {
		struct project_fact added = {.key = strndup(key, PROJECT_VALUE_MAX)};

		if (!added.key || vec_push(&session->facts, added)) {
			free(added.key);
			free(copy);
			return -ENOMEM;
		}
		fact = &session->facts.items[session->facts.cnt - 1];
	}
	if (!fact) {
		free(copy);
		return 0;
	}
	free(fact->value);
	fact->value = copy;
	return 0;
}

static int64_t anchor_of(const char *text)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	return *end || value <= 0 ? 0 : value;
}

/* The first anchors hold, so that a block's day does not depend on when it is projected. */
static void session__take_anchor(struct project_session *session, const char *key, const char *value)
{
	if (!session->mono_anchor_ns && !strcmp(key, "mono_anchor_ns"))
		session->mono_anchor_ns = anchor_of(value);
	else if (!session->wall_anchor_ns && !strcmp(key, "wall_anchor_ns"))
		session->wall_anchor_ns = anchor_of(value);
	if (session->mono_anchor_ns && session->wall_anchor_ns && !session->clock_known) {
		session->clock_ns = session->wall_anchor_ns - session->mono_anchor_ns;
		session->clock_known = true;
	}
}

static int take_facts(struct project_session *session, const struct shard_block *block)
{
	const struct session_columns col = block_columns(block, SESSION, session);
	int err = 0;

	for (uint32_t i = 0; col.key && col.value && !err && i < block->row_cnt; i++) {
		if (column_is_null(col.key, i) || column_is_null(col.value, i))
			continue;
		session__take_anchor(session, col.key->values[i].str, col.value->values[i].str);
		err = session__set_fact(session, col.key->values[i].str, col.value->values[i].str);
	}
	return err;
}

static int take_modules(struct project_session *session, const struct shard_block *block)
{
	const struct module_columns col = block_columns(block, MODULE, module);
	char key[PROJECT_VALUE_MAX];
	int err = 0;

	for (uint32_t i = 0; col.path && col.build_id && !err && i < block->row_cnt; i++) {
		if (column_is_null(col.path, i) || column_is_null(col.build_id, i))
			continue;
		snprintf(key, sizeof(key), PROJECT_PATH_PREFIX "%s", col.path->values[i].str);
		err = session__set_fact(session, key, col.build_id->values[i].str);
	}
	return err;
}

static int take_losses(struct project_session *session, const struct shard_block *block)
{
	const struct loss_columns col = block_columns(block, LOSS, loss);

	for (uint32_t i = 0; col.class && col.cpu && col.emitted && col.lost && i < block->row_cnt; i++) {
		struct project_loss row = {.cpu = col.cpu->values[i].u64,
					   .emitted = col.emitted->values[i].u64,
					   .lost = col.lost->values[i].u64};
		size_t at = 0;

		snprintf(row.class, sizeof(row.class), "%s", col.class->values[i].str);
		while (at < session->losses.cnt &&
		       (session->losses.items[at].cpu != row.cpu || strcmp(session->losses.items[at].class, row.class)))
			at++;
		if (at < session->losses.cnt)
			session->losses.items[at] = row;
		else if (at < PROJECT_LOSSES_MAX && vec_push(&session->losses, row))
			return -ENOMEM;
	}
	return 0;
}

static int projector__session(struct projector *projector, uint64_t id, const char *path, uint32_t *found)
{
	struct project_session session = {.id = id, .min_ts = UINT64_MAX};
	const char *slash = strrchr(path, '/');
	uint32_t cnt = projector->session_ids.cnt;

	if (idmap__id(&projector->session_ids, id, 0, found))
		return -ENOMEM;
	if (*found < cnt)
		return 0;
	shard_name_host(path, session.host);
	session.recording = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	if (!session.recording || vec_push(&projector->sessions, session)) {
		free(session.recording);
		return -ENOMEM;
	}
	return 0;
}

static int session__add_file(struct project_session *session, uint32_t file)
{
	if (session->files.cnt && session->files.items[session->files.cnt - 1] == file)
		return 0;
	return vec_push(&session->files, file);
}

static int take_interval_block(struct projector *projector, uint32_t session_no, uint32_t file_no,
			       const struct shard_block_header *header)
{
	struct project_session *session = &projector->sessions.items[session_no];
	struct project_block block = {.id = project_block_id(header),
				      .session = session_no,
				      .file = file_no,
				      .off = projector->shards.file.block_off,
				      .row_cnt = header->row_cnt,
				      .min_ts = header->min_ts};
	uint32_t cnt = projector->block_ids.cnt, no;

	if (idmap__id(&projector->block_ids, session->id, block.id, &no))
		return -ENOMEM;
	if (no < cnt)
		return 0;
	session->interval_rows += header->row_cnt;
	session->asked = false;
	if (header->min_ts <= header->max_ts) {
		session->min_ts = header->min_ts < session->min_ts ? header->min_ts : session->min_ts;
		session->max_ts = header->max_ts > session->max_ts ? header->max_ts : session->max_ts;
	}
	return vec_push(&projector->blocks, block);
}

static bool should_stop(void *owner)
{
	return projector__is_stopped(owner);
}

/* The tables that say something of the session itself. */
static int take_block(void *owner, uint32_t file_no, const struct shard_block_header *header)
{
	struct projector *projector = owner;
	static const struct {
		const char *table;
		int (*take)(struct project_session *session, const struct shard_block *block);
	} tables[] = {{"session", take_facts}, {"module", take_modules}, {"loss", take_losses}};
	struct shard_block block;
	uint32_t no;
	int err = projector__session(projector, header->session_id, projector->shards.file.path, &no);

	if (!err)
		err = session__add_file(&projector->sessions.items[no], file_no);
	if (err)
		return err;
	projector->sessions.items[no].version++;
	projector->sessions.items[no].grown_ts = monotonic_ns();
	err = project_session__touch_hours(&projector->sessions.items[no], header);
	if (err)
		return err;
	if (!strcmp(header->table, "interval"))
		return take_interval_block(projector, no, file_no, header);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(header->table, tables[i].table))
			continue;
		err = shard_file__body(&projector->shards.file, header, &projector->body);
		if (err)
			return err < 0 ? err : 0;
		err = shard_unpacker__unpack(&projector->unpacker, header, projector->body.items, &block);
		if (err)
			return err == -EBADMSG || err == -ENOTSUP ? 0 : err;
		return tables[i].take(&projector->sessions.items[no], &block);
	}
	return 0;
}

int projector__scan(struct projector *projector)
{
	const struct shard_growing_owner owner = {take_block, should_stop, projector};

	return shard_growing__look(&projector->shards, projector->opts.paths, projector->opts.path_cnt, &owner);
}
