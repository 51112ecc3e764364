// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/segments_read.h"

#include "base/idmap.h"
#include "base/loghist.h"
#include "base/names.h"
#include "base/vec.h"
#include "shard/columns.h"
#include "shard/inputs.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_MAX 1e15

/* A recording's clock: what its anchors say. */
struct clock_of {
	uint64_t session_id, mono_ns, wall_ns;
};

/* Running totals: the newest row of a recording's CPU holds. */
struct loss_of {
	uint64_t ts, emitted, lost;
};

struct reading {
	struct segments *segments;
	const struct dataset_filter *filter;
	VEC(struct clock_of) clocks;
	struct idmap clock_ids;
	VEC(struct loss_of) losses;
	struct idmap loss_ids;
	uint64_t begin_wall_ns, end_wall_ns; /* of what is wanted */
	bool counting;                       /* only these two are looked for */
};

static int sketch__add(struct segment_sketch *sketch, uint32_t class_no, double weight)
{
	uint32_t first = sketch->cnt && sketch->first < class_no ? sketch->first : class_no;
	uint32_t end =
		sketch->cnt && sketch->first + sketch->cnt > class_no + 1 ? sketch->first + sketch->cnt : class_no + 1;

	if (!sketch->cnt || end - first != sketch->cnt) {
		double *grown = calloc(end - first, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (sketch->cnt)
			memcpy(grown + (sketch->first - first), sketch->weights, sketch->cnt * sizeof(*grown));
		free(sketch->weights);
		sketch->first = first;
		sketch->cnt = end - first;
		sketch->weights = grown;
	}
	sketch->weights[class_no - sketch->first] += weight;
	return 0;
}

static bool is_weight(double weight)
{
	return isfinite(weight) && weight > 0 && weight < WEIGHT_MAX;
}

/* The segment that the time lies in, and the block; NULL: in none that was asked for. */
static struct segment *segment_at(const struct reading *reading, uint64_t wall_ns, size_t *block)
{
	struct segments *segments = reading->segments;
	uint64_t number;

	if (wall_ns < segments->begin_wall_ns)
		return NULL;
	number = (wall_ns - segments->begin_wall_ns) / segments->length_ns;
	if (number >= segments->cnt)
		return NULL;
	*block = (size_t)((double)((wall_ns - segments->begin_wall_ns) % segments->length_ns) /
			  (double)segments->length_ns * SEGMENT_BLOCKS);
	return &segments->items[number];
}

static void note_time(struct reading *reading, uint64_t wall_ns)
{
	if (!reading->begin_wall_ns || wall_ns < reading->begin_wall_ns)
		reading->begin_wall_ns = wall_ns;
	if (wall_ns > reading->end_wall_ns)
		reading->end_wall_ns = wall_ns;
}

/* --- summaries -----------------------------------------------------------------------------------------------------
 */

static int take_anchors(struct reading *reading, const struct shard_block *block)
{
	const struct shard_block_column *key = block_column(block, "key", SHARD_STR);
	const struct shard_block_column *value = block_column(block, "value", SHARD_STR);
	uint32_t id;

	if (idmap__id(&reading->clock_ids, block->session_id, 0, &id))
		return -ENOMEM;
	if (id == reading->clocks.cnt && vec_push(&reading->clocks, ((struct clock_of){block->session_id, 0, 0})))
		return -ENOMEM;
	for (uint32_t row = 0; key && value && row < block->row_cnt; row++) {
		const char *name = column_text(key, row);
		uint64_t number = strtoull(column_text(value, row), NULL, 10);

		if (!strcmp(name, "mono_anchor_ns"))
			reading->clocks.items[id].mono_ns = number;
		if (!strcmp(name, "wall_anchor_ns"))
			reading->clocks.items[id].wall_ns = number;
	}
	return 0;
}

static bool host_is_wanted(const struct reading *reading, const struct shard_block *block)
{
	char host[SHARD_HOST_MAX + 1] = "";

	if (!reading->filter->host)
		return true;
	shard_name_host(block->path, host);
	return !fnmatch(reading->filter->host, host, 0);
}

static bool time_is_wanted(const struct reading *reading, uint64_t wall_ns)
{
	const struct dataset_filter *filter = reading->filter;

	return wall_ns >= filter->since_wall_ns && (!filter->until_wall_ns || wall_ns < filter->until_wall_ns);
}

static double column_f64(const struct shard_block_column *column, uint32_t row)
{
	return column_is_null(column, row) ? 0 : column->values[row].f64;
}

/* "CLASS:WEIGHT …": 0, -EBADMSG or -ENOMEM. */
static int take_sketch(struct segment_sketch *sketch, const char *text)
{
	while (*text) {
		char *end;
		unsigned long class_no = strtoul(text, &end, 10);
		double weight;

		if (end == text || *end != ':' || class_no >= LOGHIST_CLASS_CNT)
			return -EBADMSG;
		text = end + 1;
		weight = strtod(text, &end);
		if (end == text || (*end && *end != ' ') || !is_weight(weight))
			return -EBADMSG;
		if (sketch__add(sketch, (uint32_t)class_no, weight))
			return -ENOMEM;
		text = *end ? end + 1 : end;
	}
	return 0;
}

static void take_categories(struct segment *segment, const char *text)
{
	char name[32];

	while (*text) {
		size_t len = strcspn(text, ":");
		char *end;
		double ns;
		int category;

		if (text[len] != ':' || len >= sizeof(name))
			return;
		memcpy(name, text, len);
		name[len] = '\0';
		ns = strtod(text + len + 1, &end);
		category = category_by_name(name);
		if (category >= 0 && isfinite(ns) && ns > 0)
			segment->category_ns[category] += ns;
		text = *end == ' ' ? end + 1 : end;
		if (*end && *end != ' ')
			return;
	}
}

static int take_summaries(struct reading *reading, const struct shard_block *block)
{
	const struct shard_block_column *begin = block_column(block, "begin_ts", SHARD_U64),
					*type = block_column(block, "type", SHARD_STR),
					*count = block_column(block, "count", SHARD_F64),
					*sum = block_column(block, "sum_ns", SHARD_F64),
					*max = block_column(block, "max_ns", SHARD_U64),
					*sketch = block_column(block, "sketch", SHARD_STR),
					*category_count = block_column(block, "category_count", SHARD_F64),
					*categories = block_column(block, "categories", SHARD_STR);
	uint32_t id;
	int err = 0;

	if (!idmap__find(&reading->clock_ids, block->session_id, 0, &id) || !reading->clocks.items[id].wall_ns ||
	    !host_is_wanted(reading, block))
		return 0;
	for (uint32_t row = 0; row < block->row_cnt && !err; row++) {
		uint64_t wall_ns =
			column_u64(begin, row) - reading->clocks.items[id].mono_ns + reading->clocks.items[id].wall_ns;
		struct segment *segment;
		size_t at;

		if (!time_is_wanted(reading, wall_ns) ||
		    (reading->filter->type && strcmp(column_text(type, row), reading->filter->type)))
			continue;
		if (reading->counting) {
			note_time(reading, wall_ns);
			continue;
		}
		segment = segment_at(reading, wall_ns, &at);
		if (!segment || !is_weight(column_f64(count, row)) || !isfinite(column_f64(sum, row))) {
			reading->segments->bad_rows++;
			continue;
		}
		err = take_sketch(&segment->blocks[at], column_text(sketch, row));
		if (err == -EBADMSG) {
			reading->segments->bad_rows++;
			err = 0;
			continue;
		}
		reading->segments->rows++;
		segment->count += column_f64(count, row);
		segment->sum_ns += column_f64(sum, row);
		segment->max_ns = column_u64(max, row) > segment->max_ns ? column_u64(max, row) : segment->max_ns;
		if (is_weight(column_f64(category_count, row))) {
			segment->category_count += column_f64(category_count, row);
			take_categories(segment, column_text(categories, row));
		}
	}
	return err;
}

static int take_losses(struct reading *reading, const struct shard_block *block)
{
	const struct shard_block_column *ts = block_column(block, "ts", SHARD_U64),
					*class = block_column(block, "class", SHARD_STR),
					*cpu = block_column(block, "cpu", SHARD_U64),
					*emitted = block_column(block, "emitted", SHARD_U64),
					*lost = block_column(block, "lost", SHARD_U64);

	for (uint32_t row = 0; row < block->row_cnt && host_is_wanted(reading, block); row++) {
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
		reading->segments->records_emitted += reading->losses.items[i].emitted;
		reading->segments->records_lost += reading->losses.items[i].lost;
	}
}

/* One pass over one table. */
static int read_table(struct reading *reading, struct shard_reader *reader, const char *table)
{
	const struct shard_block *block;
	int err;

	shard_reader__rewind(reader);
	err = shard_reader__select(reader, &table, 1);
	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = !strcmp(table, "session") ? take_anchors(reading, block)
		      : !strcmp(table, "loss")  ? take_losses(reading, block)
						: take_summaries(reading, block);
	return err;
}

/* --- segments ------------------------------------------------------------------------------------------------------
 */

static int alloc_segments(struct reading *reading)
{
	struct segments *segments = reading->segments;
	uint64_t length_ns = segments->length_ns;

	if (!reading->begin_wall_ns)
		return -ENOENT;
	/* Segments of an hour begin on the hour. */
	segments->begin_wall_ns = reading->begin_wall_ns - reading->begin_wall_ns % length_ns;
	if ((reading->end_wall_ns - segments->begin_wall_ns) / length_ns >= SEGMENTS_MAX)
		return -E2BIG;
	segments->cnt = (size_t)((reading->end_wall_ns - segments->begin_wall_ns) / length_ns) + 1;
	segments->items = calloc(segments->cnt, sizeof(*segments->items));
	if (!segments->items) {
		segments->cnt = 0;
		return -ENOMEM;
	}
	for (size_t s = 0; s < segments->cnt; s++)
		segments->items[s].begin_wall_ns = segments->begin_wall_ns + s * length_ns;
	return 0;
}

static uint64_t row_wall_ns(const struct dataset *dataset, size_t row)
{
	return dataset->begin_ts[row] + (uint64_t)dataset->session_clock_ns[dataset->session[row]];
}

static int add_row(const struct reading *reading, const struct dataset *dataset, size_t row)
{
	double weight = dataset->weight[row];
	size_t at;
	struct segment *segment = segment_at(reading, row_wall_ns(dataset, row), &at);

	if (!segment)
		return 0;
	segment->count += weight;
	segment->category_count += weight;
	segment->sum_ns += weight * (double)dataset->latency_ns[row];
	segment->max_ns = dataset->latency_ns[row] > segment->max_ns ? dataset->latency_ns[row] : segment->max_ns;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (dataset->category_ns[c])
			segment->category_ns[c] += weight * (double)dataset->category_ns[c][row];
	return sketch__add(&segment->blocks[at], loghist_class(dataset->latency_ns[row]), weight);
}

static int read_requests(struct reading *reading, struct shard_reader *reader)
{
	struct dataset_filter filter = *reading->filter;
	struct dataset dataset;
	int err;

	filter.without_events = true;
	shard_reader__rewind(reader);
	err = dataset_load(&dataset, reader, &filter);
	if (err)
		return err;
	for (size_t row = 0; row < dataset.row_cnt && !err; row++) {
		if (!dataset.session_clock_ns[dataset.session[row]])
			err = -ENODATA;
		else
			note_time(reading, row_wall_ns(&dataset, row));
	}
	if (!err)
		err = alloc_segments(reading);
	for (size_t row = 0; row < dataset.row_cnt && !err; row++)
		err = add_row(reading, &dataset, row);
	reading->segments->rows = dataset.row_cnt;
	dataset_free(&dataset);
	return err;
}

int segments_read(struct segments *segments, struct shard_reader *reader, const struct dataset_filter *filter)
{
	struct reading reading = {.segments = segments, .filter = filter, .counting = true};
	int err = 0;

	if (segments->length_ns >= 60000000000ULL)
		err = read_table(&reading, reader, "session");
	if (!err && reading.clocks.cnt)
		err = read_table(&reading, reader, "summary");
	if (!err && reading.begin_wall_ns) {
		segments->from_summaries = true;
		reading.counting = false;
		err = alloc_segments(&reading);
		if (!err)
			err = read_table(&reading, reader, "summary");
	} else if (!err) {
		err = read_requests(&reading, reader);
	}
	if (!err)
		err = read_table(&reading, reader, "loss");
	sum_losses(&reading);
	vec_free(&reading.losses);
	idmap__free(&reading.loss_ids);
	vec_free(&reading.clocks);
	idmap__free(&reading.clock_ids);
	return err;
}
