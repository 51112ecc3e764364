// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of the table `summary` → segments.  Millions of rows: numbers are read without the locale's help. */
#include "analysis/parallel.h"
#include "analysis/segments_read.h"

#include "base/loghist.h"
#include "base/names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_MAX   1e15
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
	return isfinite(weight) && weight > 0 && weight < WEIGHT_MAX;
}

/* Digits, up to 15 of them; *text goes behind them. */
static inline uint64_t take_digits(const char **text)
{
	const char *c = *text, *end = c + 15;
	uint64_t whole = 0;

	while (c < end && (unsigned)(*c - '0') < 10)
		whole = whole * 10 + (uint64_t)(*c++ - '0');
	*text = c;
	return whole;
}

/* A number without a sign; whole ones, which nearly all are, without strtod().  NAN: none. */
static inline double take_number(const char **text)
{
	const char *from = *text;
	uint64_t whole = take_digits(text);
	char *end;
	double number;

	if (*text > from && (**text == ' ' || !**text))
		return (double)whole;
	number = strtod(from, &end);
	*text = end;
	return end == from ? NAN : number;
}

/* "CLASS:WEIGHT …": 0, -EBADMSG (then nothing was added) or -ENOMEM. */
static int take_sketch(struct segments_parsed *parsed, struct segment_sketch *sketch, const char *text)
{
	uint32_t first = LOGHIST_CLASS_CNT, last = 0, cnt = 0;

	while (*text) {
		const char *from = text;
		uint64_t class_no = take_digits(&text);
		double weight;

		if (text == from || *text != ':' || class_no >= LOGHIST_CLASS_CNT || cnt == LOGHIST_CLASS_CNT)
			return -EBADMSG;
		text++;
		weight = take_number(&text);
		if ((*text && *text != ' ') || !(weight > 0) || !(weight < WEIGHT_MAX))
			return -EBADMSG;
		parsed->class_nos[cnt] = (uint32_t)class_no;
		parsed->weights[cnt++] = weight;
		first = class_no < first ? (uint32_t)class_no : first;
		last = class_no > last ? (uint32_t)class_no : last;
		text += *text == ' ';
	}
	if (!cnt)
		return 0;
	if (segment_sketch__reserve(sketch, first, last))
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++)
		sketch->weights[parsed->class_nos[i] - sketch->first] += parsed->weights[i];
	return 0;
}

/* The category that a word names, or -1. */
static int take_category(const char **text, char stop)
{
	char name[32];
	size_t len = 0;

	while ((*text)[len] && (*text)[len] != stop && len < sizeof(name) - 1) {
		name[len] = (*text)[len];
		len++;
	}
	name[len] = '\0';
	if ((*text)[len] != stop)
		return -1;
	*text += len + 1;
	return category_by_name(name);
}

static void take_categories(struct segment *segment, const char *text)
{
	while (*text) {
		int category = take_category(&text, ':');
		double ns = take_number(&text);

		if (*text && *text != ' ')
			return;
		if (category >= 0 && isfinite(ns) && ns > 0)
			segment->category_ns[category] += ns;
		text += *text == ' ';
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
static int take_culprits(struct segments_rows *rows, struct segment *segment, const char *text)
{
	char what[512];
	uint32_t id;
	int err = 0;

	while (*text && !err) {
		int category = take_category(&text, ' ');
		double ns = category >= 0 ? take_number(&text) : NAN;
		size_t len;

		if (category < 0 || *text != ' ' || !is_weight(ns / 1e6))
			return 0;
		len = strcspn(++text, "\n");
		if (len && len < sizeof(what)) {
			memcpy(what, text, len);
			what[len] = '\0';
			err = intern__id(&rows->culprits, what, &id) ?: add_culprit(segment, category, id, ns);
		}
		text += len + (text[len] == '\n');
	}
	return err;
}

/* A block's rows: those of one segment are all of one task, and so are added in their order. */
struct summary_rows {
	struct segments_rows *rows;
	struct summary_columns columns;
	VEC(uint32_t) wanted;
	VEC(uint64_t) wall_ns; /* of the wanted ones */
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
		err = take_sketch(&some->rows->parsed[task], &segment->blocks[at], column_text(columns->sketch, row));
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
	take_categories(segment, column_text(columns->categories, row));
	return 0;
}

static int take_task(void *ctx, size_t task, unsigned worker)
{
	struct summary_rows *some = ctx;
	int err = 0;

	(void)worker;
	for (size_t i = 0; i < some->wanted.cnt && !err; i++)
		if (some->wall_ns.items[i] / some->rows->segments->length_ns % SEGMENTS_TASKS == task)
			err = take_row(some, task, some->wanted.items[i], some->wall_ns.items[i]);
	return err;
}

/* Which rows, and the segments that they need. */
static int choose_rows(struct summary_rows *some, uint32_t row_cnt, const struct segments_clock *clock)
{
	const struct dataset_filter *filter = some->rows->filter;
	struct segment *segment;
	size_t at;
	int err = 0;

	for (uint32_t row = 0; row < row_cnt && !err; row++) {
		uint64_t wall_ns = column_u64(some->columns.begin_ts, row) - clock->mono_ns + clock->wall_ns;

		if (!time_is_wanted(filter, wall_ns) ||
		    (filter->type && !dataset_type_fits(column_text(some->columns.type, row), filter->type)))
			continue;
		err = segments_at(some->rows, wall_ns, &segment, &at);
		if (!err && (vec_push(&some->wanted, row) || vec_push(&some->wall_ns, wall_ns)))
			err = -ENOMEM;
	}
	return err;
}

/* Texts are numbered in order, so by one thread. */
static int take_all_culprits(struct summary_rows *some)
{
	struct segment *segment;
	size_t at;
	int err = 0;

	for (size_t i = 0; i < some->wanted.cnt && some->columns.culprits && !err; i++) {
		const char *text = column_text(some->columns.culprits, some->wanted.items[i]);

		err = *text ? segments_at(some->rows, some->wall_ns.items[i], &segment, &at) : 0;
		if (!err && *text)
			err = take_culprits(some->rows, segment, text);
	}
	return err;
}

int segments_take_summaries(struct segments_rows *rows, const struct shard_block *block)
{
	struct summary_rows some = {.rows = rows, .columns = block_columns(block, SUMMARY, summary)};
	uint32_t id;
	int err;

	if (!idmap__find(&rows->clock_ids, block->session_id, 0, &id) || !rows->clocks.items[id].wall_ns ||
	    !segments_want_host(rows, block))
		return 0;
	err = choose_rows(&some, block->row_cnt, &rows->clocks.items[id]);
	if (!err)
		err = parallel_run(SEGMENTS_TASKS, take_task, &some);
	if (!err)
		err = take_all_culprits(&some);
	for (size_t task = 0; task < SEGMENTS_TASKS; task++) {
		rows->segments->rows += some.taken[task];
		rows->segments->bad_rows += some.bad[task];
	}
	vec_free(&some.wanted);
	vec_free(&some.wall_ns);
	return err;
}
