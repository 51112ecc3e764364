// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of the table `summary` → segments.  Millions of rows: numbers are read without the locale's help. */
#include "analysis/parallel.h"
#include "analysis/segments_read.h"

#include "base/loghist.h"
#include "base/names.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
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

/* A text that ends with a NUL, at `end`. */
struct cursor {
	const char *at, *end;
};

static struct cursor cursor_of(const char *text)
{
	return (struct cursor){text, text + strlen(text)};
}

/*
 * Up to seven digits at once, where eight bytes are left: how many.  A byte that is no digit has its highest bit set
 * after the sum (a carry can only reach bytes behind such a one); then pairs, fours and eights of digits are joined by
 * multiplication.  0: none, or more than seven.
 */
static inline unsigned take_short(const struct cursor *text, uint64_t *whole)
{
	uint64_t eight, others;
	unsigned cnt;

	if (text->end - text->at < 8)
		return 0;
	memcpy(&eight, text->at, sizeof(eight));
	eight = le64toh(eight) ^ 0x3030303030303030;
	others = ((eight + 0x7676767676767676) | eight) & 0x8080808080808080;
	cnt = others ? (unsigned)__builtin_ctzll(others) / 8 : 0;
	if (!cnt)
		return 0;
	eight <<= 64 - 8 * cnt;
	eight = (eight & 0x0f0f0f0f0f0f0f0f) * (1 + (10 << 8)) >> 8;
	eight = (eight & 0x00ff00ff00ff00ff) * (1 + (100 << 16)) >> 16;
	*whole = (eight & 0x0000ffff0000ffff) * (1 + (10000ULL << 32)) >> 32;
	return cnt;
}

/* Digits, up to 15 of them; the cursor goes behind them. */
static inline uint64_t take_digits(struct cursor *text)
{
	const char *c = text->at, *end = c + 15;
	uint64_t whole = 0;
	unsigned cnt = take_short(text, &whole);

	if (cnt) {
		text->at += cnt;
		return whole;
	}
	while (c < end && (unsigned)(*c - '0') < 10)
		whole = whole * 10 + (uint64_t)(*c++ - '0');
	text->at = c;
	return whole;
}

/* At the end of a number in a text. */
static inline bool ends(char c)
{
	return c == ' ' || !c;
}

/*
 * A number without a sign.  Up to 15 digits and a power of ten up to 22 are exact, so that their product or quotient is
 * rounded once, as by strtod(), which takes the others.  NAN: none.
 */
static inline double take_number(struct cursor *text)
{
	static const double tens[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
				      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *from = text->at, *c;
	uint64_t whole = take_digits(text);
	int power = 0;
	char *end;
	double number;

	if (text->at > from && ends(*text->at))
		return (double)whole;
	c = text->at;
	if (c > from && *c == '.')
		for (c++; c - from <= 15 && (unsigned)(*c - '0') < 10; c++, power--)
			whole = whole * 10 + (uint64_t)(*c - '0');
	if (c > from && c[0] == 'e' && c[1] == '+' && (unsigned)(c[2] - '0') < 2 && (unsigned)(c[3] - '0') < 10) {
		power += 10 * (c[2] - '0') + c[3] - '0';
		c += 4;
	}
	if (c > from && ends(*c)) {
		text->at = c;
		return power < 0 ? (double)whole / tens[-power] : (double)whole * tens[power];
	}
	number = strtod(from, &end);
	text->at = end;
	return end == from ? NAN : number;
}

/* "CLASS:WEIGHT …": 0, -EBADMSG (then nothing was added) or -ENOMEM. */
static int take_sketch(struct segments_task *parsed, struct segment_sketch *sketch, struct cursor text)
{
	uint32_t first = LOGHIST_CLASS_CNT, last = 0, cnt = 0;

	while (*text.at) {
		const char *from = text.at;
		uint64_t class_no = take_digits(&text);
		double weight;

		if (text.at == from || *text.at != ':' || class_no >= LOGHIST_CLASS_CNT || cnt == LOGHIST_CLASS_CNT)
			return -EBADMSG;
		text.at++;
		weight = take_number(&text);
		if ((*text.at && *text.at != ' ') || !(weight > 0) || !(weight < WEIGHT_MAX))
			return -EBADMSG;
		parsed->class_nos[cnt] = (uint32_t)class_no;
		parsed->weights[cnt++] = weight;
		first = class_no < first ? (uint32_t)class_no : first;
		last = class_no > last ? (uint32_t)class_no : last;
		text.at += *text.at == ' ';
	}
	if (!cnt)
		return 0;
	if (segment_sketch__reserve(sketch, first, last))
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++)
		sketch->weights[parsed->class_nos[i] - sketch->first] += parsed->weights[i];
	return 0;
}

/*
 * The category that a word names, or -1: one of a newer recorder, or no word at all, and then the cursor stays.  They
 * are written in their order, so the one behind the last is tried first.
 */
static int take_category(struct cursor *text, char stop, int last)
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

static void take_categories(struct segment *segment, struct cursor text)
{
	int last = -1;

	while (*text.at) {
		int category = take_category(&text, ':', last);
		double ns = take_number(&text);

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
static int take_culprits(struct segments_task *task, struct segment *segment, struct cursor text)
{
	char what[512];
	uint32_t id;
	int err = 0, category = -1;

	while (*text.at && !err) {
		double ns;
		size_t len;

		category = take_category(&text, ' ', category);
		ns = category >= 0 ? take_number(&text) : NAN;
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
		err = take_sketch(&some->rows->tasks[task], &segment->blocks[at],
				  cursor_of(column_text(columns->sketch, row)));
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
	take_categories(segment, cursor_of(column_text(columns->categories, row)));
	return columns->culprits ? take_culprits(&some->rows->tasks[task], segment,
						 cursor_of(column_text(columns->culprits, row)))
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
