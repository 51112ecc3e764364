// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of the table `summary` → segments. */
#include "analysis/parallel.h"
#include "analysis/segments_read.h"

#include "base/names.h"
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CULPRITS_MAX 256 /* of a segment */

int segments_take_anchors(struct segments_rows *rows, const struct shard_block *block)
{
	const struct session_columns columns = block_columns(block, SESSION, session);
	uint32_t id;

	if (idmap__id(&rows->clock_ids, block->session_id, 0, &id))
		return -ENOMEM;
	if (id == rows->clocks.cnt && vec_push(&rows->clocks, ((struct segments_clock){0, 0})))
		return -ENOMEM;
	for (uint32_t row = 0; row < block->row_cnt; row++) {
		const char *name = column_text(columns.key, row);
		uint64_t number = strtoull(column_text(columns.value, row), NULL, 10);

		if (!strcmp(name, "mono_anchor_ns"))
			rows->clocks.items[id].mono_ns = number;
		if (!strcmp(name, "wall_anchor_ns"))
			rows->clocks.items[id].wall_ns = number;
	}
	return 0;
}

static bool time_is_wanted(const struct dataset_filter *filter, uint64_t wall_ns)
{
	return wall_ns >= filter->since_wall_ns && (!filter->until_wall_ns || wall_ns < filter->until_wall_ns);
}

static bool is_weight(double weight)
{
	return isfinite(weight) && weight > 0 && weight < SKETCH_WEIGHT_MAX;
}

/* 0, -EBADMSG (then nothing was added) or -ENOMEM. */
static int take_sketch(struct sketch *read, struct segment_sketch *sketch, const char *text)
{
	const double *weights = read->weights;
	int err = sketch_read(read, text);

	if (err || !read->run_cnt)
		return err;
	if (segment_sketch__reserve(sketch, read->first, read->last))
		return -ENOMEM;
	for (uint32_t r = 0; r < read->run_cnt; r++) {
		double *to = sketch->weights + (read->runs[r].first - sketch->first);

		for (uint32_t c = 0; c < read->runs[r].cnt; c++)
			to[c] += *weights++;
	}
	return 0;
}

/*
 * The category that a word names, or -1: one of a newer recorder, or no word at all, and then the cursor stays.  They
 * are written in their order, so the one behind the last is tried first.
 */
static int take_category(struct number_text *text, char stop, int last)
{
	const char *end;

	for (int i = 1; i <= WL_CATEGORY_CNT; i++) {
		int category = (last + i) % WL_CATEGORY_CNT;
		const char *name = category_name((enum wl_category)category), *c = text->at;

		while (*name && *c == *name) {
			c++;
			name++;
		}
		if (*name || *c != stop)
			continue;
		text->at = c + 1;
		return category;
	}
	end = strchr(text->at, stop);
	text->at = end ? end + 1 : text->at;
	return -1;
}

static void take_categories(struct segment *segment, struct number_text text)
{
	int last = -1;

	while (*text.at) {
		int category = take_category(&text, ':', last);
		double ns = number_take(&text);

		if (*text.at && *text.at != ' ')
			return;
		if (category >= 0 && isfinite(ns) && ns > 0)
			segment->category_ns[category] += ns;
		last = category < 0 ? last : category;
		text.at += *text.at == ' ';
	}
}

static int add_culprit(struct segment *segment, int category, uint32_t what, double ns)
{
	const struct segment_culprit added = {.category = (enum wl_category)category, .what = what, .ns = ns};

	for (size_t i = 0; i < segment->culprits.cnt; i++) {
		struct segment_culprit *culprit = &segment->culprits.items[i];

		if (culprit->what != what || culprit->category != added.category)
			continue;
		culprit->ns += ns;
		return 0;
	}
	return segment->culprits.cnt < CULPRITS_MAX ? vec_push(&segment->culprits, added) : 0;
}

/* "CATEGORY NS WHAT" a line.  0 or -ENOMEM. */
static int take_culprits(struct segments_task *task, struct segment *segment, struct number_text text)
{
	char what[512];
	uint32_t id;
	int err = 0, category = -1;

	while (*text.at && !err) {
		double ns;
		size_t len;

		category = take_category(&text, ' ', category);
		ns = category >= 0 ? number_take(&text) : NAN;
		if (category < 0 || *text.at != ' ' || !is_weight(ns / 1e6))
			return 0;
		len = strcspn(++text.at, "\n");
		if (len && len < sizeof(what)) {
			memcpy(what, text.at, len);
			what[len] = '\0';
			err = intern__id(&task->culprits, what, &id) ?: add_culprit(segment, category, id, ns);
		}
		text.at += len + (text.at[len] == '\n');
	}
	return err;
}

struct wanted_row {
	uint64_t wall_ns;
	uint32_t row, task;
};

/*
 * A block's rows: those of one segment are all of one task, and so are added in their order.  Another task reads the
 * next block meanwhile, which takes about as long.
 */
struct summary_rows {
	struct segments_rows *rows;
	struct shard_reader *reader;
	const struct shard_block *block, *next; /* NULL: there is none */
	unsigned next_slot;
	struct summary_columns columns;
	VEC(struct wanted_row) wanted;
	size_t taken[SEGMENTS_TASKS], bad[SEGMENTS_TASKS];
};

/* The segment and the block are there already. */
static int take_row(struct summary_rows *some, size_t task, uint32_t row, uint64_t wall_ns)
{
	const struct summary_columns *columns = &some->columns;
	double count = column_f64_or(columns->count, row, 0), sum_ns = column_f64_or(columns->sum_ns, row, 0);
	uint64_t max_ns = column_u64(columns->max_ns, row);
	struct segment *segment;
	size_t at;
	int err = segments_at(some->rows, wall_ns, &segment, &at);

	if (!err && (!is_weight(count) || !isfinite(sum_ns)))
		err = -EBADMSG;
	if (!err)
		err = take_sketch(&some->rows->tasks[task].sketch, &segment->blocks[at],
				  column_text(columns->sketch, row));
	some->bad[task] += err == -EBADMSG;
	if (err)
		return err == -EBADMSG ? 0 : err;
	some->taken[task]++;
	segment->count += count;
	segment->sum_ns += sum_ns;
	segment->max_ns = max_ns > segment->max_ns ? max_ns : segment->max_ns;
	if (!is_weight(column_f64_or(columns->category_count, row, 0)))
		return 0;
	segment->category_count += column_f64_or(columns->category_count, row, 0);
	take_categories(segment, number_text(column_text(columns->categories, row)));
	return columns->culprits ? take_culprits(&some->rows->tasks[task], segment,
						 number_text(column_text(columns->culprits, row)))
				 : 0;
}

static int read_ahead(struct summary_rows *some)
{
	int ret = shard_reader__next_into(some->reader, some->next_slot, &some->next);

	if (ret <= 0)
		some->next = NULL;
	return ret < 0 ? ret : 0;
}

static int take_task(void *ctx, size_t task, unsigned worker)
{
	struct summary_rows *some = ctx;
	int err = 0;

	(void)worker;
	if (!task)
		return read_ahead(some);
	task--;
	for (size_t i = 0; i < some->wanted.cnt && !err; i++)
		if (some->wanted.items[i].task == task)
			err = take_row(some, task, some->wanted.items[i].row, some->wanted.items[i].wall_ns);
	return err;
}

/* Which rows, and the segments that they need. */
static int choose_rows(struct summary_rows *some, const struct segments_clock *clock)
{
	const struct dataset_filter *filter = some->rows->filter;
	struct segment *segment;
	size_t at;
	int err = 0;

	some->columns = block_columns(some->block, SUMMARY, summary);
	for (uint32_t row = 0; row < some->block->row_cnt && !err; row++) {
		struct wanted_row wanted = {.row = row};

		wanted.wall_ns = column_u64(some->columns.begin_ts, row) - clock->mono_ns + clock->wall_ns;
		if (!time_is_wanted(filter, wanted.wall_ns) ||
		    (filter->type && !dataset_type_fits(column_text(some->columns.type, row), filter->type)))
			continue;
		wanted.task = (uint32_t)(wanted.wall_ns / some->rows->segments->length_ns % SEGMENTS_TASKS);
		err = segments_at(some->rows, wanted.wall_ns, &segment, &at);
		if (!err && vec_push(&some->wanted, wanted))
			err = -ENOMEM;
	}
	return err;
}

static int take_block(struct summary_rows *some)
{
	struct segments_rows *rows = some->rows;
	uint32_t id;
	int err = 0;

	some->wanted.cnt = 0;
	some->next_slot = !some->next_slot;
	if (idmap__find(&rows->clock_ids, some->block->session_id, 0, &id) && rows->clocks.items[id].wall_ns &&
	    segments_want_host(rows, some->block))
		err = choose_rows(some, &rows->clocks.items[id]);
	return err ?: parallel_run(1 + SEGMENTS_TASKS, take_task, some);
}

int segments_take_summaries(struct segments_rows *rows, struct shard_reader *reader)
{
	static const char *const table = "summary";
	struct summary_rows some = {.rows = rows, .reader = reader};
	int err = shard_reader__select(reader, &table, 1) ?: read_ahead(&some);

	while (!err && some.next) {
		some.block = some.next;
		err = take_block(&some);
	}
	for (size_t task = 0; task < SEGMENTS_TASKS; task++) {
		rows->segments->rows += some.taken[task];
		rows->segments->bad_rows += some.bad[task];
	}
	vec_free(&some.wanted);
	return err;
}
