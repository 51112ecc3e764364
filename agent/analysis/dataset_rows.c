// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of the interval table, a block at a time and, within it, a column at a time. */
#include "analysis/dataset_build.h"
#include "base/names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Strings of a block stay where they are while it lasts and come from a dictionary: equal pointers, equal text. */
#define TEXT_CACHE_CNT 256

struct interval_block {
	struct dataset_build *build;
	const struct shard_block *block;
	uint32_t *rows; /* of the block, those that are taken */
	uint32_t row_cnt;
	size_t first; /* row of the dataset that rows[0] becomes */
	size_t session;
	uint64_t *parts;      /* [category][row of the block] */
	uint64_t *latency_ns; /* [row of the block] */
	uint8_t *too_long;    /* [row of the block]: a sum ran over */
	struct {
		const char *text;
		uint32_t id;
	} cache[TEXT_CACHE_CNT];
};

static int text_id(struct interval_block *in, const char *text, uint32_t *id)
{
	size_t at = ((uintptr_t)text >> 3 ^ (uintptr_t)text >> 11) % TEXT_CACHE_CNT;
	int err;

	if (in->cache[at].text != text) {
		err = intern__id(&in->build->strings, text, &in->cache[at].id);
		if (err)
			return err;
		in->cache[at].text = text;
	}
	*id = in->cache[at].id;
	return 0;
}

/* realloc() of one array to the new room; the tail is not touched, because every row that is added is written. */
static int grow_array(void **array, size_t room, size_t item_sz)
{
	void *grown;

	if (room > SIZE_MAX / item_sz)
		return -ENOMEM;
	grown = realloc(*array, room * item_sz);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

static int grow_column(struct build_column *column, size_t old_room, size_t room)
{
	if (column->values && grow_array((void **)&column->values, room, sizeof(uint64_t)))
		return -ENOMEM;
	if (!column->missing)
		return 0;
	if (grow_array((void **)&column->missing, room / 64, sizeof(uint64_t)))
		return -ENOMEM;
	memset(column->missing + old_room / 64, 0, (room - old_room) / 8);
	return 0;
}

static int build_reserve(struct dataset_build *build, size_t more)
{
	struct dataset *dataset = build->dataset;
	size_t want = dataset->row_cnt + more, room = build->room;

	if (want <= room)
		return 0;
	room = room * 2 > want ? room * 2 : want;
	room = (room + 4095) / 4096 * 4096;
	if (grow_array((void **)&dataset->sid, room, sizeof(*dataset->sid)) ||
	    grow_array((void **)&dataset->begin_ts, room, sizeof(*dataset->begin_ts)) ||
	    grow_array((void **)&dataset->latency_ns, room, sizeof(*dataset->latency_ns)) ||
	    grow_array((void **)&dataset->weight, room, sizeof(*dataset->weight)) ||
	    grow_array((void **)&dataset->hw_factor, room, sizeof(*dataset->hw_factor)) ||
	    grow_array((void **)&dataset->type, room, sizeof(*dataset->type)) ||
	    grow_array((void **)&dataset->trace_id, room, sizeof(*dataset->trace_id)) ||
	    grow_array((void **)&dataset->window, room, sizeof(*dataset->window)) ||
	    grow_array((void **)&dataset->flags, room, sizeof(*dataset->flags)) ||
	    grow_array((void **)&dataset->session, room, sizeof(*dataset->session)))
		return -ENOMEM;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (grow_column(&build->category[c], build->room, room) ||
		    (dataset->blame[c] && grow_array((void **)&dataset->blame[c], room, sizeof(**dataset->blame))))
			return -ENOMEM;
	for (size_t e = 0; e < BUILD_EVENT_CNT; e++)
		if (grow_column(&build->events[e], build->room, room))
			return -ENOMEM;
	build->room = room;
	return 0;
}

/* The states of a category add up; a sum that does not fit into 64 bits is longer than any latency. */
static void sum_parts(struct interval_block *in)
{
	uint32_t cnt = in->block->row_cnt;

	for (int s = 0; s < WL_STATE_CNT; s++) {
		uint64_t *part = in->parts + (size_t)state_category(s) * cnt;
		const struct shard_block_column *column =
			block_column_at(in->block, SHARD_TABLE_INTERVAL, interval_column_length(s));

		for (uint32_t i = 0; column && i < cnt; i++)
			if (__builtin_add_overflow(part[i], column_u64(column, i), &part[i]))
				in->too_long[i] = 1;
	}
}

/* Whether the parts fit into the whole; what is left of it goes to `other`, so that they sum to it. */
static bool balance_parts(struct interval_block *in, uint32_t row)
{
	uint64_t sum = 0;

	if (in->too_long[row])
		return false;
	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		if (__builtin_add_overflow(sum, in->parts[(size_t)c * in->block->row_cnt + row], &sum))
			return false;
	if (sum > in->latency_ns[row])
		return false;
	if (sum < in->latency_ns[row]) {
		in->parts[(size_t)WL_CATEGORY_OTHER * in->block->row_cnt + row] += in->latency_ns[row] - sum;
		in->build->with_residual++;
	}
	return true;
}

static void note_session_row(struct build_session *session, uint64_t begin_ts, uint64_t end_ts, double weight,
			     bool baseline, bool asked_for)
{
	struct build_period *period;

	session->first_ts = begin_ts < session->first_ts ? begin_ts : session->first_ts;
	session->last_ts = end_ts > session->last_ts ? end_ts : session->last_ts;
	session->weight += weight;
	session->baseline_weight += baseline ? weight : 0;
	session->asked_weight += asked_for ? weight : 0;
	session->asked_baseline_weight += asked_for && baseline ? weight : 0;
	period = build_session__period(session, end_ts);
	if (period)
		period->weight += weight;
}

static bool asked_for_time(const struct dataset_build *build)
{
	return build->filter && (build->filter->since_wall_ns || build->filter->until_wall_ns);
}

/* Whether it began when the filter says.  One whose time of day is not known is taken, and that is told. */
static bool is_in_time(const struct dataset_build *build, const struct build_session *session, uint64_t begin_ts)
{
	const struct dataset_filter *filter = build->filter;
	uint64_t wall_ns = begin_ts + (uint64_t)session->clock_ns;

	if (filter && (begin_ts < filter->since_ts || (filter->until_ts && begin_ts >= filter->until_ts)))
		return false;
	if (!asked_for_time(build))
		return true;
	if (!session->clock_known)
		return true;
	return wall_ns >= filter->since_wall_ns && (!filter->until_wall_ns || wall_ns < filter->until_wall_ns);
}

/* From when a thread took it up, as far as that can be true. */
static uint64_t worked_ns(uint64_t begin_ts, uint64_t latency_ns, uint64_t pickup_ts)
{
	uint64_t waited_ns = pickup_ts > begin_ts ? pickup_ts - begin_ts : 0;

	return waited_ns < latency_ns ? latency_ns - waited_ns : 0;
}

static void choose_rows(struct interval_block *in, struct build_session *session)
{
	const struct shard_block *block = in->block;
	const struct interval_columns col = block_columns(block, INTERVAL, interval);
	const char *only = in->build->filter ? in->build->filter->type : NULL;

	if (!col.begin_ts || !col.end_ts) {
		in->build->no_columns += block->row_cnt;
		return;
	}
	for (uint32_t i = 0; i < block->row_cnt; i++) {
		double w = column_f64_or(col.weight, i, 1);
		bool times = !column_is_null(col.begin_ts, i) && !column_is_null(col.end_ts, i) &&
			     col.begin_ts->values[i].u64 <= col.end_ts->values[i].u64;
		bool asked_for = !times || is_in_time(in->build, session, col.begin_ts->values[i].u64);

		if (times && isfinite(w) && w > 0)
			note_session_row(session, col.begin_ts->values[i].u64, col.end_ts->values[i].u64, w,
					 column_u64(col.flags, i) & WL_INTERVAL_BASELINE, asked_for);
		if ((only && !dataset_type_fits(column_text(col.type, i), only)) || !asked_for)
			continue;
		if (times && !session->clock_known && asked_for_time(in->build))
			in->build->clockless++;
		if (!times) {
			in->build->bad_times++;
		} else if (!isfinite(w) || w <= 0) {
			in->build->bad_weights++;
		} else {
			in->latency_ns[i] = col.end_ts->values[i].u64 - col.begin_ts->values[i].u64;
			if (balance_parts(in, i))
				in->rows[in->row_cnt++] = i;
			else
				in->build->too_long++;
		}
	}
}

/*
 * Rows come in the order of their ends, and windows overlap: a row of an earlier window than the newest one is counted
 * to that.  So windows are runs of neighbours, and what ended together stays together.
 */
static uint32_t cluster_of(struct build_session *session, uint64_t window)
{
	if (!window || window > session->window_max)
		session->window = (uint32_t)window;
	if (window > session->window_max)
		session->window_max = window;
	return session->window;
}

static int add_fixed(struct interval_block *in)
{
	const struct shard_block *block = in->block;
	const struct interval_columns col = block_columns(block, INTERVAL, interval);
	struct build_session *session = &in->build->sessions.items[in->session];
	struct dataset *dataset = in->build->dataset;

	for (uint32_t i = 0; i < in->row_cnt; i++) {
		uint32_t row = in->rows[i];
		size_t to = in->first + i;

		dataset->sid[to] = column_u64(col.sid, row);
		dataset->begin_ts[to] = column_u64(col.begin_ts, row);
		dataset->latency_ns[to] = in->latency_ns[row];
		dataset->weight[to] = column_f64_or(col.weight, row, 1);
		dataset->flags[to] = column_u64(col.flags, row);
		dataset->window[to] = cluster_of(session, column_u64(col.window, row));
		dataset->hw_factor[to] = build_session__hw_factor(
			session,
			worked_ns(dataset->begin_ts[to], dataset->latency_ns[to], column_u64(col.pickup_ts, row)),
			dataset->weight[to], dataset->flags[to] & WL_INTERVAL_HW);
		dataset->session[to] = (uint32_t)in->session;
		if (dataset->flags[to] & (WL_INTERVAL_TORN | WL_INTERVAL_LOSSY | WL_INTERVAL_HISTORY))
			dataset->intervals_flagged++;
		if (text_id(in, column_text(col.type, row), &dataset->type[to]) ||
		    text_id(in, column_text(col.trace_id, row), &dataset->trace_id[to]))
			return -ENOMEM;
	}
	return 0;
}

/* Values by row of the block, or a column of the file; the memory comes when there is something to remember. */
static int add_values(struct interval_block *in, struct build_column *to, const uint64_t *values,
		      const struct shard_block_column *column)
{
	size_t room = in->build->room;

	for (uint32_t i = 0; i < in->row_cnt; i++) {
		uint32_t row = in->rows[i];
		bool missing = !values && column_is_null(column, row);
		uint64_t value = values ? values[row] : column_u64(column, row);
		size_t at = in->first + i;

		if (missing && !to->missing && !(to->missing = calloc(room / 64, sizeof(uint64_t))))
			return -ENOMEM;
		if (missing)
			to->missing[at / 64] |= 1ULL << (at % 64);
		if (value && !to->values && !(to->values = calloc(room, sizeof(uint64_t))))
			return -ENOMEM;
		if (to->values)
			to->values[at] = value;
	}
	return 0;
}

static int add_event(struct interval_block *in, size_t event, uint32_t column)
{
	return add_values(in, &in->build->events[event], NULL,
			  block_column_at(in->block, SHARD_TABLE_INTERVAL, column));
}

/* Where that column has a value, it is the event's. */
static int add_again(struct interval_block *in, uint32_t hwcounter, const char *name)
{
	const struct shard_block_column *column = block_column(in->block, name, SHARD_U64);
	struct build_column *to = &in->build->events[build_event_hw(hwcounter)];

	for (uint32_t i = 0; i < in->row_cnt; i++) {
		size_t at = in->first + i;

		if (column_is_null(column, in->rows[i]))
			continue;
		if (!to->values && !(to->values = calloc(in->build->room, sizeof(uint64_t))))
			return -ENOMEM;
		to->values[at] = column_u64(column, in->rows[i]);
		if (to->missing)
			to->missing[at / 64] &= ~(1ULL << (at % 64));
	}
	return 0;
}

static int add_counters(struct interval_block *in)
{
	int err = 0;

	for (int c = 0; c < WL_CATEGORY_CNT && !err; c++)
		err = add_values(in, &in->build->category[c], in->parts + (size_t)c * in->block->row_cnt, NULL);
	if (in->build->filter && in->build->filter->without_events)
		return err;
	for (int s = 0; s < WL_STATE_CNT && !err; s++) {
		err = add_event(in, build_event_length(s), interval_column_length(s));
		if (!err)
			err = add_event(in, build_event_count(s), interval_column_count(s));
	}
	for (int t = 0; t < WL_TALLY_CNT && !err; t++)
		err = add_event(in, build_event_tally(t), interval_column_tally(t));
	for (int h = 0; h < SHARD_HW_CNT && !err; h++)
		err = add_event(in, build_event_hw(h), interval_column_hw(h));
	/* Columns of older recordings, in which a counter of several rotations had one for each. */
	if (!err)
		err = add_again(in, SHARD_HW_CYCLES, "hw.cycles.1");
	if (!err)
		err = add_again(in, SHARD_HW_INSTRUCTIONS, "hw.instructions.2");
	if (!err)
		err = add_again(in, SHARD_HW_SW_CPU_CLOCK, "sw.cpu_clock.1");
	return err;
}

/* Whether the row's `blocked_state` lies in this category. */
static bool blocked_in(const struct interval_columns *columns, uint32_t row, enum wl_category category)
{
	const char *name = column_text(columns->blocked_state, row);

	for (int s = 0; *name && s < WL_STATE_CNT; s++)
		if (state_category(s) == category && !strcmp(state_name(s), name))
			return true;
	return false;
}

static int lock_object(struct interval_block *in, const struct interval_columns *columns, uint32_t row,
		       uint32_t *object)
{
	const char *name = column_text(columns->lock_name, row);
	char hex[24];

	if (*name)
		return text_id(in, name, object);
	if (!column_u64(columns->lock_addr, row))
		return 0;
	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)column_u64(columns->lock_addr, row));
	/* Not through the cache, which goes by the address of the text. */
	return intern__id(&in->build->strings, hex, object);
}

static int blame_of(struct interval_block *in, const struct interval_columns *columns, uint32_t row,
		    enum wl_category category, uint64_t part_ns, struct dataset_blame *blame)
{
	*blame = (struct dataset_blame){0};
	switch (category) {
	case WL_CATEGORY_RUNQ:
		blame->pid = (uint32_t)column_u64(columns->culprit_pid, row);
		blame->tid = (uint32_t)column_u64(columns->culprit_tid, row);
		blame->is_own = dataset_is_own(in->build->dataset, (uint32_t)in->session, blame->pid);
		return text_id(in, column_text(columns->culprit_comm, row), &blame->who);
	case WL_CATEGORY_LOCK:
		blame->tid = (uint32_t)column_u64(columns->lock_owner_tid, row);
		if (text_id(in, column_text(columns->lock_owner_comm, row), &blame->who))
			return -ENOMEM;
		return lock_object(in, columns, row, &blame->object);
	case WL_CATEGORY_FAULT_MINOR:
	case WL_CATEGORY_FAULT_MAJOR:
		/* The longest fault of all cannot be of this kind if it outlasts all of this kind together. */
		if (column_u64(columns->fault_ns, row) > part_ns)
			return 0;
		return text_id(in, column_text(columns->fault_name, row), &blame->object);
	default:
		if (!blocked_in(columns, row, category))
			return 0;
		return text_id(in, column_text(columns->blocked_syscall, row), &blame->object);
	}
}

static int add_blame(struct interval_block *in)
{
	static const enum wl_category with_blame[] = {
		WL_CATEGORY_RUNQ,    WL_CATEGORY_LOCK,   WL_CATEGORY_FAULT_MINOR, WL_CATEGORY_FAULT_MAJOR,
		WL_CATEGORY_IO_DISK, WL_CATEGORY_IO_NET, WL_CATEGORY_SLEEP,       WL_CATEGORY_OTHER,
	};
	struct dataset *dataset = in->build->dataset;
	const struct interval_columns columns = block_columns(in->block, INTERVAL, interval);

	for (size_t k = 0; k < sizeof(with_blame) / sizeof(with_blame[0]); k++) {
		enum wl_category category = with_blame[k];
		const uint64_t *parts = in->parts + (size_t)category * in->block->row_cnt;
		struct dataset_blame **all = &dataset->blame[category];

		for (uint32_t i = 0; i < in->row_cnt; i++) {
			struct dataset_blame blame = {0};

			if (parts[in->rows[i]] &&
			    blame_of(in, &columns, in->rows[i], category, parts[in->rows[i]], &blame))
				return -ENOMEM;
			if (!*all && !blame.who && !blame.object)
				continue;
			if (!*all && !(*all = calloc(in->build->room, sizeof(**all))))
				return -ENOMEM;
			(*all)[in->first + i] = blame;
		}
	}
	return 0;
}

static int add_rows(struct interval_block *in)
{
	int err;

	if (build_reserve(in->build, in->row_cnt))
		return -ENOMEM;
	in->first = in->build->dataset->row_cnt;
	err = add_fixed(in);
	if (!err)
		err = add_counters(in);
	if (!err)
		err = add_blame(in);
	if (!err)
		in->build->dataset->row_cnt += in->row_cnt;
	return err;
}

int dataset_build__interval_block(struct dataset_build *build, const struct shard_block *block)
{
	struct interval_block *in;
	size_t session;
	int err = dataset_build__session_of(build, block, &session);

	build->is_recording = true;
	if (err || build->sessions.items[session].unwanted)
		return err;
	err = -ENOMEM;
	in = calloc(1, sizeof(*in));
	if (!in)
		return -ENOMEM;
	in->build = build;
	in->block = block;
	in->rows = calloc((size_t)block->row_cnt + 1, sizeof(*in->rows));
	in->latency_ns = calloc((size_t)block->row_cnt + 1, sizeof(*in->latency_ns));
	in->too_long = calloc((size_t)block->row_cnt + 1, sizeof(*in->too_long));
	in->parts = calloc((size_t)block->row_cnt + 1, WL_CATEGORY_CNT * sizeof(*in->parts));
	if (!in->rows || !in->latency_ns || !in->too_long || !in->parts)
		goto cleanup;
	in->session = session;
	sum_parts(in);
	choose_rows(in, &build->sessions.items[session]);
	build->sessions.items[session].row_cnt += in->row_cnt;
	err = add_rows(in);
cleanup:
	free(in->parts);
	free(in->too_long);
	free(in->latency_ns);
	free(in->rows);
	free(in);
	return err;
}
