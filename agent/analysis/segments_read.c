// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments_read.h"

#include "base/names.h"
#include "base/progress.h"
#include "shard/inputs.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Running totals: the newest row of a recording's CPU holds. */
struct loss_of {
	uint64_t ts, emitted, lost;
};

struct reading {
	struct segments_rows rows;
	VEC(struct loss_of) losses;
	struct idmap loss_ids;
};

int segment_sketch__reserve(struct segment_sketch *sketch, uint32_t first, uint32_t last)
{
	uint32_t end = last + 1;
	double *grown;

	/* Whole octaves: it seldom grows again. */
	first = first / LOGHIST_SUB_CNT * LOGHIST_SUB_CNT;
	end = (end + LOGHIST_SUB_CNT - 1) / LOGHIST_SUB_CNT * LOGHIST_SUB_CNT;
	end = end < LOGHIST_CLASS_CNT ? end : LOGHIST_CLASS_CNT;
	if (sketch->cnt) {
		first = sketch->first < first ? sketch->first : first;
		end = sketch->first + sketch->cnt > end ? sketch->first + sketch->cnt : end;
	}
	if (end - first == sketch->cnt)
		return 0;
	grown = calloc(end - first, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	if (sketch->cnt)
		memcpy(grown + (sketch->first - first), sketch->weights, sketch->cnt * sizeof(*grown));
	free(sketch->weights);
	sketch->first = first;
	sketch->cnt = end - first;
	sketch->weights = grown;
	return 0;
}

bool segments_want_host(const struct segments_rows *rows, const struct shard_block *block)
{
	char host[SHARD_HOST_MAX + 1] = "";

	if (!rows->filter->host)
		return true;
	shard_name_host(block->path, host);
	return !fnmatch(rows->filter->host, host, 0);
}

/* Segments before the first one, or after the last, so that there are cnt of them. */
static int grow(struct segments_rows *rows, uint64_t begin_wall_ns, uint64_t cnt)
{
	struct segments *segments = rows->segments;
	size_t before = segments->cnt ? (segments->begin_wall_ns - begin_wall_ns) / segments->length_ns : 0;

	if (cnt > SEGMENTS_MAX)
		return -E2BIG;
	if (vec_grow_((void **)&segments->items, &rows->room, 0, cnt, sizeof(*segments->items)))
		return -ENOMEM;
	memmove(segments->items + before, segments->items, segments->cnt * sizeof(*segments->items));
	memset(segments->items, 0, before * sizeof(*segments->items));
	memset(segments->items + before + segments->cnt, 0, (cnt - before - segments->cnt) * sizeof(*segments->items));
	segments->begin_wall_ns = begin_wall_ns;
	segments->cnt = cnt;
	return 0;
}

int segments_at(struct segments_rows *rows, uint64_t wall_ns, struct segment **segment, size_t *block)
{
	struct segments *segments = rows->segments;
	/* Segments of an hour begin on the hour. */
	uint64_t length_ns = segments->length_ns, begin_wall_ns = wall_ns - wall_ns % length_ns;
	uint64_t end_wall_ns = segments->begin_wall_ns + segments->cnt * length_ns;
	int err = 0;

	if (!segments->cnt)
		err = grow(rows, begin_wall_ns, 1);
	else if (begin_wall_ns < segments->begin_wall_ns)
		err = grow(rows, begin_wall_ns, (end_wall_ns - begin_wall_ns) / length_ns);
	else if (wall_ns >= end_wall_ns)
		err = grow(rows, segments->begin_wall_ns, (wall_ns - segments->begin_wall_ns) / length_ns + 1);
	if (err)
		return err;
	*segment = &segments->items[(wall_ns - segments->begin_wall_ns) / length_ns];
	*block = (size_t)((double)(wall_ns - begin_wall_ns) / (double)length_ns * SEGMENT_BLOCKS);
	return 0;
}

/* --- losses --------------------------------------------------------------------------------------------------------
 */

static int take_losses(struct reading *reading, const struct shard_block *block)
{
	const struct shard_block_column *ts = block_column(block, "ts", SHARD_U64),
					*class = block_column(block, "class", SHARD_STR),
					*cpu = block_column(block, "cpu", SHARD_U64),
					*emitted = block_column(block, "emitted", SHARD_U64),
					*lost = block_column(block, "lost", SHARD_U64);

	for (uint32_t row = 0; row < block->row_cnt && segments_want_host(&reading->rows, block); row++) {
		struct loss_of now = {column_u64(ts, row), column_u64(emitted, row), column_u64(lost, row)};
		uint32_t id;

		if (strcmp(column_text(class, row), loss_name(WL_LOSS_INTERVAL)))
			continue;
		if (idmap__id(&reading->loss_ids, block->session_id, column_u64(cpu, row), &id))
			return -ENOMEM;
		if (id == reading->losses.cnt && vec_push(&reading->losses, now))
			return -ENOMEM;
		if (now.ts >= reading->losses.items[id].ts)
			reading->losses.items[id] = now;
	}
	return 0;
}

static void sum_losses(struct reading *reading)
{
	for (size_t i = 0; i < reading->losses.cnt; i++) {
		reading->rows.segments->records_emitted += reading->losses.items[i].emitted;
		reading->rows.segments->records_lost += reading->losses.items[i].lost;
	}
}

static int read_clocks_and_losses(struct reading *reading, struct shard_reader *reader)
{
	static const char *const tables[] = {"session", "loss"};
	const struct shard_block *block;
	int err = shard_reader__select(reader, tables, 2);

	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = strcmp(block->table, "session") ? take_losses(reading, block)
						      : segments_take_anchors(&reading->rows, block);
	return err;
}

/* --- requests ------------------------------------------------------------------------------------------------------
 */

static int add_request(struct segments_rows *rows, const struct dataset *dataset, size_t row)
{
	uint64_t wall_ns = dataset->begin_ts[row] + (uint64_t)dataset->session_clock_ns[dataset->session[row]];
	uint64_t latency_ns = dataset->latency_ns[row];
	uint32_t class_no = loghist_class(latency_ns);
	double weight = dataset->weight[row];
	struct segment_sketch *sketch;
	struct segment *segment;
	size_t at;
	int err;

	if (!dataset->session_clock_ns[dataset->session[row]])
		return -ENODATA;
	err = segments_at(rows, wall_ns, &segment, &at);
	if (!err)
		err = segment_sketch__reserve(&segment->blocks[at], class_no, class_no);
	if (err)
		return err;
	sketch = &segment->blocks[at];
	sketch->weights[class_no - sketch->first] += weight;
	segment->count += weight;
	segment->category_count += weight;
	segment->sum_ns += weight * (double)latency_ns;
	segment->max_ns = latency_ns > segment->max_ns ? latency_ns : segment->max_ns;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (dataset->category_ns[c])
			segment->category_ns[c] += weight * (double)dataset->category_ns[c][row];
	return 0;
}

static int read_requests(struct segments_rows *rows, struct shard_reader *reader)
{
	struct dataset_filter filter = *rows->filter;
	struct dataset dataset;
	int err;

	filter.without_events = true;
	err = dataset_load(&dataset, reader, &filter);
	if (err)
		return err;
	for (size_t row = 0; row < dataset.row_cnt && !err; row++)
		err = add_request(rows, &dataset, row);
	rows->segments->rows = dataset.row_cnt;
	dataset_free(&dataset);
	return err ? err : rows->segments->cnt ? 0 : -ENOENT;
}

/* --- culprits ------------------------------------------------------------------------------------------------------
 */

static int begin_culprits(struct segments_rows *rows)
{
	for (size_t t = 0; t < SEGMENTS_TASKS; t++) {
		rows->tasks[t].culprits.arena = arena__new();
		if (!rows->tasks[t].culprits.arena)
			return -ENOMEM;
	}
	return 0;
}

/* Each task has numbered its own. */
static int join_culprits(struct segments_rows *rows)
{
	struct segments *segments = rows->segments;
	struct intern all = {.arena = segments->arena};
	int err = 0;

	for (size_t s = 0; s < segments->cnt; s++) {
		const struct segment *segment = &segments->items[s];
		uint64_t number = segments->begin_wall_ns / segments->length_ns + s;
		const char *const *strings = rows->tasks[number % SEGMENTS_TASKS].culprits.strings;

		for (size_t c = 0; c < segment->culprits.cnt && !err; c++)
			err = intern__id(&all, strings[segment->culprits.items[c].what],
					 &segment->culprits.items[c].what);
	}
	segments->culprits = all.strings;
	segments->culprit_cnt = all.cnt;
	all.strings = NULL;
	intern__free(&all);
	return err;
}

static void end_culprits(struct segments_rows *rows)
{
	for (size_t t = 0; t < SEGMENTS_TASKS; t++) {
		arena__free(rows->tasks[t].culprits.arena);
		intern__free(&rows->tasks[t].culprits);
	}
}

int segments_read(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	int err;

	progress_at("reading summaries");
	segments->arena = arena__new();
	if (!reading || !segments->arena) {
		free(reading);
		return -ENOMEM;
	}
	reading->rows.segments = segments;
	reading->rows.filter = filter;
	err = begin_culprits(&reading->rows) ?: read_clocks_and_losses(reading, reader);
	if (!err && segments->length_ns >= 60000000000ULL)
		err = segments_take_summaries(&reading->rows, reader);
	segments->from_summaries = segments->cnt > 0;
	if (!err && !segments->cnt)
		err = read_requests(&reading->rows, reader);
	for (size_t s = 0; s < segments->cnt; s++)
		segments->items[s].begin_wall_ns = segments->begin_wall_ns + s * segments->length_ns;
	sum_losses(reading);
	if (!err)
		err = join_culprits(&reading->rows);
	end_culprits(&reading->rows);
	vec_free(&reading->losses);
	idmap__free(&reading->loss_ids);
	vec_free(&reading->rows.clocks);
	idmap__free(&reading->rows.clock_ids);
	free(reading);
	return err;
}
