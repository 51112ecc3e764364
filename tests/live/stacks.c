// SPDX-License-Identifier: GPL-2.0-or-later
#include "stacks.h"

#include "shard/reader.h"

#include <math.h>
#include <string.h>

static const union shard_value *value_of(const struct shard_block *block, const char *column, uint32_t row)
{
	const struct shard_block_column *found = shard_block__column(block, column);

	if (!found || (found->nulls && found->nulls[row / 64] >> (row % 64) & 1))
		return NULL;
	return &found->values[row];
}

static uint64_t number_of(const struct shard_block *block, const char *column, uint32_t row)
{
	const union shard_value *value = value_of(block, column, row);

	return value ? value->u64 : 0;
}

static const char *text_of(const struct shard_block *block, const char *column, uint32_t row)
{
	const union shard_value *value = value_of(block, column, row);

	return value && value->str ? value->str : "";
}

static void count(struct stacks_seen *seen, const struct stack_row *row)
{
	bool is_running = !strcmp(row->state, "running");
	uint64_t i;

	seen->row_cnt++;
	seen->complete_cnt += row->complete;
	seen->guessed_cnt += row->guessed > 0;
	seen->in_interval_cnt += row->sid != 0;
	seen->delaying_cnt += row->delays != 0;
	seen->running_cnt += is_running;
	if (row->sid || !row->delays)
		*(is_running ? &seen->running_ns : &seen->blocked_ns) += row->weight_ns;
	for (i = 0; i < seen->pid_cnt && seen->pids[i] != row->pid; i++)
		;
	if (i == seen->pid_cnt && i < sizeof(seen->pids) / sizeof(seen->pids[0]))
		seen->pids[seen->pid_cnt++] = row->pid;
}

static void take_block(struct stacks_seen *seen, const struct shard_block *block, stack_visitor visit, void *owner)
{
	for (uint32_t i = 0; i < block->row_cnt; i++) {
		const union shard_value *weight = value_of(block, "weight", i);
		const union shard_value *period = value_of(block, "period_ns", i);
		struct stack_row row = {
			.ts = number_of(block, "ts", i),
			.pid = number_of(block, "pid", i),
			.tid = number_of(block, "tid", i),
			.sid = number_of(block, "sid", i),
			.state = text_of(block, "state", i),
			.frames = text_of(block, "frames", i),
			.kernel_frames = text_of(block, "kernel_frames", i),
			.end_ts = number_of(block, "end_ts", i),
			.delays = number_of(block, "delays", i),
			.weight_ns = weight ? weight->f64 : NAN,
			.period_ns = period ? period->f64 : NAN,
			.complete = number_of(block, "complete", i) == 1,
			.guessed = number_of(block, "guessed", i),
		};

		CHECKF(row.ts && row.pid && row.tid && row.frames[0] && row.weight_ns >= 0, "%s", row.frames);
		CHECKF(row.end_ts ? row.end_ts > row.ts && isnan(row.period_ns) : row.period_ns > 0, "%lu to %lu, %f",
		       row.ts, row.end_ts, row.period_ns);
		count(seen, &row);
		if (visit)
			visit(owner, &row);
	}
}

bool stacks_read(struct stacks_seen *seen, const char *dir, stack_visitor visit, void *owner)
{
	static const char *const tables[] = {"stack"};
	const char *bad_path = "";
	struct shard_reader *reader = shard_reader__open(&dir, 1, &bad_path);
	const struct shard_block *block;
	int err;

	memset(seen, 0, sizeof(*seen));
	if (!CHECKF(reader != NULL, "%s cannot be read", bad_path))
		return false;
	err = shard_reader__select(reader, tables, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		take_block(seen, block, visit, owner);
		err = 0;
	}
	shard_reader__free(reader);
	return CHECKF(!err, "%s: %s", dir, strerror(-err));
}
