// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/bytes.h"
#include "base/loghist.h"
#include "base/names.h"
#include "base/random.h"
#include "net/project/project_internal.h"
#include "shard/columns.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t hash_of(const struct projector *projector, const char *text)
{
	uint8_t digest[32];
	uint64_t hash = 0x77686c61746521ULL;

	if (projector->opts.salt) {
		/* Without a digest nothing of the text may be told: it is as if all were equal. */
		if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, projector->opts.salt, projector->opts.salt_sz, text,
				     strlen(text), digest))
			return 0;
		return get_le(digest, sizeof(hash));
	}
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		hash = random_mix(hash ^ *c);
	return hash;
}

/* Hashed beyond the first word: "GET /users/7" becomes "GET #4f0c…", and so does "tcp:80 GET /users/7". */
const char *projector__redacted(const struct projector *projector, const char *text, char buf[PROJECT_REDACTED_SZ])
{
	bool has_port = !strncmp(text, "tcp:", 4) || !strncmp(text, "udp:", 4);
	size_t port_sz = has_port ? strcspn(text, " ") + 1 : 0, sz = has_port ? port_sz - 1 : 0;

	if (projector->opts.redact && text[sz])
		sz = port_sz + strcspn(text + port_sz, " /?=");
	if (!projector->opts.redact || !text[sz])
		return text;
	snprintf(buf, PROJECT_REDACTED_SZ, "%.*s%s#%016" PRIx64, (int)(sz < 64 ? sz : 64), text, sz ? " " : "",
		 hash_of(projector, text));
	return buf;
}

static int projector__read_block(struct projector *projector, const struct project_block *block,
				 struct shard_block *out)
{
	struct shard_file *file = &projector->shards.file;
	struct shard_block_header header;
	int err, found;

	if (file->fd < 0 || projector->file_no != block->file) {
		shard_file__close(file);
		projector->file_no = block->file;
		file->path = projector->shards.files.items[block->file].path;
		file->idx = block->file;
		file->damages = &projector->shards.damages;
		err = shard_file__open(file);
		if (err)
			return err;
	}
	file->off = file->sure_off = block->off;
	file->ended = false;
	found = shard_file__next(file, &header);
	if (found < 0)
		return found;
	if (!found || file->block_off != block->off || project_block_id(&header) != block->id)
		return -EBADMSG;
	err = shard_file__body(file, &header, &projector->body);
	if (err)
		return err < 0 ? err : -EBADMSG;
	err = shard_unpacker__unpack(&projector->unpacker, &header, projector->body.items, out);
	return err == -ENOTSUP ? -EBADMSG : err;
}

/* The states of a category add up; what is left of the latency is `other`, as in a report. */
static int sum_parts(struct projector *projector, const struct shard_block *block)
{
	uint32_t cnt = block->row_cnt;

	projector->parts.cnt = 0;
	if (vec_reserve(&projector->parts, (size_t)WL_CATEGORY_CNT * cnt))
		return -ENOMEM;
	memset(projector->parts.items, 0, sizeof(uint64_t) * WL_CATEGORY_CNT * cnt);
	for (int s = 0; s < WL_STATE_CNT; s++) {
		uint64_t *part = projector->parts.items + (size_t)state_category(s) * cnt;
		const struct shard_block_column *column =
			block_column_at(block, SHARD_TABLE_INTERVAL, interval_column_length(s));

		for (uint32_t i = 0; column && i < cnt; i++)
			if (__builtin_add_overflow(part[i], column_u64(column, i), &part[i]))
				part[i] = UINT64_MAX;
	}
	return 0;
}

/* Parts that exceed the whole cannot be true: none of them is told then. */
static void put_parts(struct projector *projector, uint32_t row, uint32_t row_cnt, uint64_t latency_ns)
{
	uint64_t *parts = projector->parts.items, sum = 0;
	bool good = true;

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		good &= !__builtin_add_overflow(sum, parts[(size_t)c * row_cnt + row], &sum);
	good &= sum <= latency_ns;
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		uint64_t part = good ? parts[(size_t)c * row_cnt + row] : 0;

		if (c == WL_CATEGORY_OTHER)
			part += latency_ns - (good ? sum : 0);
		rowbinary__u64(&projector->rows, part);
	}
}

/* schema.c has the order of the columns. */
static void put_row(struct projector *projector, const struct project_session *session,
		    const struct interval_columns *columns, uint32_t i, struct project_sums *sums)
{
	uint64_t begin_ts = column_u64(columns->begin_ts, i), end_ts = column_u64(columns->end_ts, i);
	uint64_t latency_ns = end_ts > begin_ts ? end_ts - begin_ts : 0;
	double weight = column_f64_or(columns->weight, i, 1);
	struct rowbinary *rows = &projector->rows;
	char buf[PROJECT_REDACTED_SZ];

	/* Impossible ones stand for nothing, and are rows all the same. */
	if (!isfinite(weight) || weight < 0 || end_ts < begin_ts)
		weight = 0;
	rowbinary__str(rows, projector__redacted(projector, column_text(columns->type, i), buf));
	rowbinary__u64(rows, column_u64(columns->sid, i));
	rowbinary__u32(rows, (uint32_t)column_u64(columns->pid, i));
	rowbinary__u64(rows, begin_ts + (uint64_t)session->clock_ns);
	rowbinary__u64(rows, latency_ns);
	rowbinary__f64(rows, weight);
	rowbinary__u16(rows, (uint16_t)loghist_class(latency_ns));
	rowbinary__u32(rows, (uint32_t)column_u64(columns->flags, i));
	rowbinary__str(rows, column_text(columns->culprit_comm, i));
	rowbinary__u64(rows, column_u64(columns->culprit_ns, i));
	rowbinary__str(rows, column_text(columns->lock_name, i));
	rowbinary__str(rows, column_text(columns->lock_owner_comm, i));
	rowbinary__u64(rows, column_u64(columns->lock_ns, i));
	rowbinary__str(rows, column_text(columns->blocked_syscall, i));
	rowbinary__u64(rows, column_u64(columns->blocked_ns, i));
	rowbinary__str(rows, column_text(columns->trace_id, i));
	rowbinary__u64(rows, column_u64(columns->context, i));
	rowbinary__u32(rows, (uint32_t)session->forgotten_cnt);
	sums->latency_ns += latency_ns;
	sums->weight += weight;
}

int projector__put_rows(struct projector *projector, const struct project_block *block, struct project_sums *sums)
{
	const struct project_session *session = &projector->sessions.items[block->session];
	const char *host = session->host[0] ? session->host : project_session__fact(session, "host");
	struct interval_columns columns;
	struct shard_block content;
	uint16_t day = 0;
	int err = projector__read_block(projector, block, &content);

	*sums = (struct project_sums){0};
	if (!err)
		err = sum_parts(projector, &content);
	if (err)
		return err;
	projector__day(projector, block, &day);
	columns = block_columns(&content, INTERVAL, interval);
	for (uint32_t i = 0; i < content.row_cnt; i++) {
		uint64_t begin_ts = column_u64(columns.begin_ts, i), end_ts = column_u64(columns.end_ts, i);

		rowbinary__u16(&projector->rows, day);
		rowbinary__u64(&projector->rows, session->id);
		rowbinary__u64(&projector->rows, block->id);
		rowbinary__str(&projector->rows, host ?: "");
		put_row(projector, session, &columns, i, sums);
		put_parts(projector, i, content.row_cnt, end_ts > begin_ts ? end_ts - begin_ts : 0);
		rowbinary__end_row(&projector->rows);
	}
	sums->rows = content.row_cnt;
	return projector->rows.err;
}
