// SPDX-License-Identifier: GPL-2.0-or-later
#include "shard/writer.h"

#include "base/clock.h"

#include "shard/index.h"
#include "shard/output.h"
#include "shard/pack.h"

#include <string.h>
#include <whylate/record.h>

#define BLOCK_ROWS    4096
#define ROTATE_BYTES  (256ULL << 20)
#define ROTATE_AGE_NS (3600ULL * 1000000000)

/* Where rows collect: one stage per table, and one for the baseline of `interval` where that is kept apart. */
enum { STAGE_BASELINE = SHARD_TABLE_CNT, STAGE_CNT };

struct shard_writer {
	struct shard_output *output;
	uint64_t session_id;
	uint64_t rotate_bytes;
	uint64_t rotate_age_ns;
	enum shard_codec codec;
	bool split_baseline;
	shard_block_sink sink;
	void *sink_owner;
	int err; /* the first one: nothing is written after it */
	struct shard_stage *stages[STAGE_CNT];
	struct shard_stage *index;
	struct shard_packer packer;
	struct shard_buf block;
	struct shard_writer_stats stats; /* bytes and shard_cnt are the output's */
};

static void writer__destroy(struct shard_writer *writer)
{
	for (int s = 0; s < STAGE_CNT; s++)
		shard_stage__free(writer->stages[s]);
	shard_stage__free(writer->index);
	shard_packer__clear(&writer->packer);
	vec_free(&writer->block);
	shard_output__free(writer->output);
	free(writer);
}

static enum shard_table_id stage_table(int stage)
{
	return stage == STAGE_BASELINE ? SHARD_TABLE_INTERVAL : stage;
}

static int writer__make_stages(struct shard_writer *writer, uint32_t block_rows)
{
	for (int s = 0; s < STAGE_CNT; s++) {
		writer->stages[s] = shard_stage__new(&shard_tables[stage_table(s)], block_rows ?: BLOCK_ROWS);
		if (!writer->stages[s])
			return -errno;
	}
	writer->index = shard_index__new(SHARD_ROWS_MAX);
	return writer->index ? 0 : -errno;
}

struct shard_writer *shard_writer__new(const struct shard_writer_opts *opts)
{
	struct shard_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return NULL;
	writer->session_id = opts->session_id;
	writer->rotate_bytes = opts->rotate_bytes ?: ROTATE_BYTES;
	writer->rotate_age_ns = opts->rotate_age_ns ?: ROTATE_AGE_NS;
	writer->codec = opts->codec_set ? opts->codec : SHARD_CODEC_ZSTD;
	writer->split_baseline = opts->split_baseline;
	writer->sink = opts->sink;
	writer->sink_owner = opts->sink_owner;
	err = writer__make_stages(writer, opts->block_rows);
	if (!err) {
		writer->output = shard_output__new(opts->dir, opts->host, opts->session_id);
		err = writer->output ? shard_output__create(writer->output, monotonic_ns()) : -errno;
	}
	if (err) {
		writer__destroy(writer);
		errno = -err;
		return NULL;
	}
	return writer;
}

static int writer__pack(struct shard_writer *writer, const struct shard_stage *stage, struct shard_block_header *header)
{
	header->codec = writer->codec;
	header->session_id = writer->session_id;
	writer->block.cnt = 0;
	return shard_packer__pack(&writer->packer, stage, header, &writer->block);
}

/* A shard without index and trailer is whole all the same. */
static int writer__close_shard(struct shard_writer *writer)
{
	int err;

	writer->block.cnt = 0;
	err = shard_index__put(writer->index, &writer->packer, writer->codec, writer->session_id,
			       shard_output__sz(writer->output), &writer->block);
	if (!err)
		err = shard_output__append(writer->output, writer->block.items, writer->block.cnt);
	shard_stage__reset(writer->index);
	return shard_output__close(writer->output) ?: err;
}

static bool writer__shard_is_full(const struct shard_writer *writer, uint64_t now_ts)
{
	if (!writer->index->row_cnt)
		return false; /* an empty shard would be followed by another one */
	return shard_output__sz(writer->output) >= writer->rotate_bytes || shard_stage__full(writer->index) ||
	       now_ts - shard_output__created_ts(writer->output) >= writer->rotate_age_ns;
}

static int writer__put_block(struct shard_writer *writer, int stage)
{
	struct shard_block_header header = {.kind = SHARD_BLOCK_ROWS};
	uint64_t now_ts = monotonic_ns(), off;
	int err = 0;

	if (writer__shard_is_full(writer, now_ts)) {
		err = writer__close_shard(writer);
		if (!err)
			err = shard_output__create(writer->output, now_ts);
	}
	if (!err)
		err = writer__pack(writer, writer->stages[stage], &header);
	if (err)
		return err;
	/* The sink first: a directory that is full must not keep the block from it. */
	if (writer->sink)
		writer->sink(writer->sink_owner, &header, stage == STAGE_BASELINE, writer->block.items,
			     writer->block.cnt);
	off = shard_output__sz(writer->output);
	err = shard_output__append(writer->output, writer->block.items, writer->block.cnt);
	if (err)
		return err;
	writer->stats.rows_on_disk[stage_table(stage)] += header.row_cnt;
	return shard_index__add(writer->index, &header, off, writer->block.cnt);
}

static int writer__flush_stage(struct shard_writer *writer, int stage)
{
	if (!writer->stages[stage]->row_cnt)
		return 0;
	writer->err = writer__put_block(writer, stage);
	shard_stage__reset(writer->stages[stage]);
	return writer->err;
}

static int writer__choose_stage(const struct shard_writer *writer, enum shard_table_id table,
				const struct shard_row *row)
{
	bool baseline = table == SHARD_TABLE_INTERVAL && row->values[INTERVAL_FLAGS].u64 & WL_INTERVAL_BASELINE;

	return writer->split_baseline && baseline ? STAGE_BASELINE : (int)table;
}

int shard_writer__append(struct shard_writer *writer, enum shard_table_id table, const struct shard_row *row)
{
	int err, stage;

	if (writer->err)
		return writer->err;
	if (table >= SHARD_TABLE_CNT)
		return -EINVAL;
	stage = writer__choose_stage(writer, table, row);
	err = shard_stage__append(writer->stages[stage], row);
	if (err)
		return err;
	writer->stats.rows[table]++;
	return shard_stage__full(writer->stages[stage]) ? writer__flush_stage(writer, stage) : 0;
}

int shard_writer__flush(struct shard_writer *writer, bool sync)
{
	for (int s = 0; !writer->err && s < STAGE_CNT; s++)
		writer__flush_stage(writer, s);
	if (!writer->err && sync)
		writer->err = shard_output__sync(writer->output);
	return writer->err;
}

void shard_writer__stats(const struct shard_writer *writer, struct shard_writer_stats *stats)
{
	*stats = writer->stats;
	stats->bytes = shard_output__total_bytes(writer->output);
	stats->shard_cnt = shard_output__shard_cnt(writer->output);
}

const char *shard_writer__path(const struct shard_writer *writer)
{
	return shard_output__path(writer->output);
}

int shard_writer__free(struct shard_writer *writer)
{
	int err;

	if (!writer)
		return 0;
	err = shard_writer__flush(writer, false);
	if (!err)
		err = writer__close_shard(writer);
	writer__destroy(writer);
	return err;
}
