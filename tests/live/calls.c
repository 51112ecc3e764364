// SPDX-License-Identifier: GPL-2.0-or-later
#include "calls.h"

#include "harness.h"

#include "base/vec.h"
#include "shard/reader.h"

#include <string.h>

struct reading {
	VEC(struct call_row) calls;
	VEC(struct sid_row) intervals;
	uint64_t ids[CALL_FUNCS]; /* of symbol, in the order of names */
	size_t id_cnt;
	struct calls_read *read;
};

static uint64_t value(const struct shard_block *block, const char *name, uint32_t row, bool *null)
{
	const struct shard_block_column *column = shard_block__column(block, name);
	bool is_null = !column || (column->nulls && column->nulls[row / 64] >> (row % 64) & 1);

	if (null)
		*null = is_null;
	return is_null ? 0 : column->values[row].u64;
}

static uint32_t place_of(const struct reading *reading, uint64_t id)
{
	for (size_t i = 0; i < reading->id_cnt; i++)
		if (reading->ids[i] == id)
			return i;
	return UINT32_MAX;
}

static void take_symbol(struct reading *reading, const struct shard_block *block, uint32_t row)
{
	const struct shard_block_column *name = shard_block__column(block, "name");
	bool no_height;
	uint64_t height = value(block, "height", row, &no_height);

	if (!CHECK(name && reading->id_cnt < CALL_FUNCS))
		return;
	reading->read->heights[reading->id_cnt] = no_height ? UINT64_MAX : height;
	snprintf(reading->read->names[reading->id_cnt], sizeof(reading->read->names[0]), "%s", name->values[row].str);
	reading->ids[reading->id_cnt++] = value(block, "id", row, NULL);
}

static void take_probe(struct reading *reading, const struct shard_block *block, uint32_t row)
{
	uint32_t func = place_of(reading, value(block, "func", row, NULL));

	if (!CHECK(func < CALL_FUNCS))
		return;
	reading->read->entries[func] += value(block, "entries", row, NULL);
	reading->read->exits[func] += value(block, "exits", row, NULL);
}

static void take_call(struct reading *reading, const struct shard_block *block, uint32_t row)
{
	bool no_parent, no_addr;
	struct call_row call = {
		.sid = value(block, "sid", row, NULL),
		.pid = value(block, "pid", row, NULL),
		.tid = value(block, "tid", row, NULL),
		.seq = value(block, "seq", row, NULL),
		.depth = value(block, "depth", row, NULL),
		.begin_ts = value(block, "begin_ts", row, NULL),
		.end_ts = value(block, "end_ts", row, NULL),
		.flags = value(block, "flags", row, NULL),
		.blocked_ns = value(block, "blocked_ns", row, NULL),
		.object = value(block, "object", row, NULL),
		.sum_ns = value(block, "running_ns", row, NULL) + value(block, "runnable_ns", row, NULL) +
			  value(block, "blocked_ns", row, NULL) + value(block, "interrupted_ns", row, NULL),
		.waits_ns = value(block, "lock_ns", row, NULL) + value(block, "disk_ns", row, NULL) +
			    value(block, "net_ns", row, NULL) + value(block, "sleep_ns", row, NULL) +
			    value(block, "fault_ns", row, NULL),
		.sleep_ns = value(block, "sleep_ns", row, NULL),
		.func = place_of(reading, value(block, "func", row, NULL)),
	};

	call.parent_func = place_of(reading, value(block, "parent_func", row, &no_parent));
	if (no_parent)
		call.parent_func = UINT32_MAX;
	call.parent_seq = value(block, "parent_seq", row, NULL);
	value(block, "call_addr", row, &no_addr);
	call.has_call_addr = !no_addr;
	CHECK(call.func < CALL_FUNCS);
	CHECK(!vec_push(&reading->calls, call));
}

static void take_interval(struct reading *reading, const struct shard_block *block, uint32_t row)
{
	struct sid_row interval = {value(block, "sid", row, NULL), value(block, "begin_ts", row, NULL),
				   value(block, "end_ts", row, NULL), value(block, "flags", row, NULL)};

	CHECK(!vec_push(&reading->intervals, interval));
}

/* Symbols first, whose rows may lie behind those that name them. */
static bool read_pass(struct reading *reading, const char *dir, bool symbols)
{
	static const char *const names[] = {"symbol"}, *const others[] = {"invocation", "interval", "probe"};
	const char *bad_path = NULL;
	struct shard_reader *reader = shard_reader__open(&dir, 1, &bad_path);
	const struct shard_block *block;
	int got = 0;

	if (!CHECKF(reader && !shard_reader__select(reader, symbols ? names : others, symbols ? 1 : 3), "%s", dir))
		return false;
	while ((got = shard_reader__next(reader, &block)) == 1) {
		for (uint32_t row = 0; row < block->row_cnt; row++) {
			if (!strcmp(block->table, "symbol"))
				take_symbol(reading, block, row);
			else if (!strcmp(block->table, "probe"))
				take_probe(reading, block, row);
			else if (!strcmp(block->table, "invocation"))
				take_call(reading, block, row);
			else
				take_interval(reading, block, row);
		}
	}
	shard_reader__free(reader);
	return CHECK(!got);
}

bool calls_read_dir(struct calls_read *read, const char *dir)
{
	struct reading reading = {.read = read};
	bool good;

	memset(read, 0, sizeof(*read));
	good = read_pass(&reading, dir, true) && read_pass(&reading, dir, false);
	read->calls = reading.calls.items;
	read->call_cnt = reading.calls.cnt;
	read->intervals = reading.intervals.items;
	read->interval_cnt = reading.intervals.cnt;
	return good;
}

void calls_free(struct calls_read *read)
{
	free(read->calls);
	free(read->intervals);
	memset(read, 0, sizeof(*read));
}

int calls_func(const struct calls_read *read, const char *name)
{
	for (int i = 0; i < CALL_FUNCS; i++)
		if (!strcmp(read->names[i], name))
			return i;
	return -1;
}

uint64_t calls_in(const struct calls_read *read, uint64_t sid, int func, uint64_t flags)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < read->call_cnt; i++)
		cnt += read->calls[i].sid == sid && (int)read->calls[i].func == func &&
		       (read->calls[i].flags & flags) == flags;
	return cnt;
}
