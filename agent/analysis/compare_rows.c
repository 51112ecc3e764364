// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows into sides, blocks and strata; see compare_sample.h. */
#include "analysis/compare_rows.h"

#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BIN_WIDTH 0.001 /* of a latency */

static int choose_rows(struct compare_sample *sample, const uint8_t *sides)
{
	static const uint8_t in[] = {COMPARE_IN_A, COMPARE_IN_B};
	const struct dataset *dataset = sample->dataset;
	size_t cnt = 0;

	for (size_t row = 0; row < dataset->row_cnt; row++)
		cnt += (size_t)__builtin_popcount(sides[row] & (COMPARE_IN_A | COMPARE_IN_B));
	sample->rows = malloc((cnt + 1) * sizeof(*sample->rows));
	sample->cells = calloc(cnt + 1, sizeof(*sample->cells));
	if (!sample->rows || !sample->cells)
		return -ENOMEM;
	cnt = 0;
	for (int s = 0; s < COMPARE_SIDE_CNT; s++) {
		sample->first_row[s] = cnt;
		for (size_t row = 0; row < dataset->row_cnt; row++)
			if (sides[row] & in[s])
				sample->rows[cnt++] = (uint32_t)row;
		sample->row_cnt[s] = cnt - sample->first_row[s];
	}
	return 0;
}

/* --- blocks --------------------------------------------------------------------------------------------------------
 */

/* A recording, as far as a side has rows of it. */
struct block_session {
	uint64_t first_ts, last_ts;
	uint32_t first_block, block_cnt;
	bool seen;
};

/*
 * When the row began: rows of one episode begin while it lasts, and end any time later.  Windows are not cut: of a row
 * in one, when the window's first row began.
 */
static uint64_t row_ts(const struct dataset *dataset, uint32_t row, uint32_t *window, uint64_t *window_ts)
{
	uint64_t ts = dataset->begin_ts ? dataset->begin_ts[row] : row;

	if (!dataset->window_cnt || !dataset->window || !dataset->window[row])
		return ts;
	if (dataset->window[row] != *window) {
		*window = dataset->window[row];
		*window_ts = ts;
	}
	return *window_ts;
}

static uint32_t session_of(const struct dataset *dataset, uint32_t row)
{
	return dataset->session ? dataset->session[row] : 0;
}

/* How long the side lasts. */
static double find_spans(const struct compare_sample *sample, int side, struct block_session *sessions,
			 size_t session_cnt)
{
	const struct dataset *dataset = sample->dataset;
	uint64_t window_ts = 0;
	uint32_t window = 0;
	double span_ns = 0;

	for (size_t i = 0; i < sample->row_cnt[side]; i++) {
		uint32_t row = sample->rows[sample->first_row[side] + i];
		struct block_session *session = &sessions[session_of(dataset, row)];
		uint64_t ts = row_ts(dataset, row, &window, &window_ts);

		session->first_ts = !session->seen || ts < session->first_ts ? ts : session->first_ts;
		session->last_ts = !session->seen || ts > session->last_ts ? ts : session->last_ts;
		session->seen = true;
	}
	for (size_t s = 0; s < session_cnt; s++)
		span_ns += sessions[s].seen ? (double)(sessions[s].last_ts - sessions[s].first_ts) : 0;
	return span_ns;
}

/* How many blocks each session has; blocks of all of them. */
static uint32_t plan_blocks(struct block_session *sessions, size_t session_cnt, double length_ns)
{
	uint32_t cnt = 0;
	size_t seen = 0;

	for (size_t s = 0; s < session_cnt; s++)
		seen += sessions[s].seen;
	for (size_t s = 0; s < session_cnt; s++) {
		double span_ns = (double)(sessions[s].last_ts - sessions[s].first_ts);

		if (!sessions[s].seen)
			continue;
		sessions[s].first_block = cnt;
		sessions[s].block_cnt = seen >= COMPARE_SESSIONS_MIN || !(length_ns > 0)
						? 1
						: (uint32_t)fmax(1, rint(span_ns / length_ns));
		cnt += sessions[s].block_cnt;
	}
	return cnt;
}

/* Of both sides, so that a block of one is as good as a block of the other. */
static double block_length(const struct compare_sample *sample, const double span_ns[COMPARE_SIDE_CNT])
{
	double both_ns = span_ns[0] + span_ns[1], least_ns = fmin(span_ns[0], span_ns[1]), cnt;
	double fewest = (double)(sample->row_cnt[0] < sample->row_cnt[1] ? sample->row_cnt[0] : sample->row_cnt[1]);

	cnt = fmin(COMPARE_SIDE_CNT * COMPARE_BLOCKS, COMPARE_SIDE_CNT * ceil(pow(fewest, 2.0 / 3)));
	if (least_ns > 0 && cnt * least_ns / both_ns < COMPARE_BLOCKS_LEAST)
		cnt = fmin(COMPARE_BLOCKS_MAX, COMPARE_BLOCKS_LEAST * both_ns / least_ns);
	return both_ns / cnt;
}

/* Puts the block of each row into sample->cells, blocks without a row left out. */
static int number_blocks(struct compare_sample *sample, int side, const struct block_session *sessions,
			 uint32_t planned)
{
	const struct dataset *dataset = sample->dataset;
	uint32_t window = 0, *numbers = calloc(planned + 1, sizeof(*numbers));
	uint32_t *cells = sample->cells + sample->first_row[side];
	uint64_t window_ts = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < sample->row_cnt[side]; i++) {
		uint32_t row = sample->rows[sample->first_row[side] + i];
		const struct block_session *session = &sessions[session_of(dataset, row)];
		uint64_t ts = row_ts(dataset, row, &window, &window_ts) - session->first_ts;
		double at = (double)ts / ((double)(session->last_ts - session->first_ts) + 1);

		cells[i] = session->first_block + (uint32_t)(at * session->block_cnt);
		numbers[cells[i]] = 1;
	}
	for (uint32_t b = 0; b < planned; b++)
		numbers[b] = numbers[b] ? (uint32_t)(sample->first_block[side] + sample->block_cnt[side]++) : 0;
	for (size_t i = 0; i < sample->row_cnt[side]; i++)
		cells[i] = numbers[cells[i]];
	free(numbers);
	return 0;
}

static int cut_blocks(struct compare_sample *sample)
{
	const struct dataset *dataset = sample->dataset;
	size_t session_cnt = dataset->session && dataset->session_cnt ? dataset->session_cnt : 1;
	struct block_session *sessions = calloc(session_cnt, COMPARE_SIDE_CNT * sizeof(*sessions));
	double span_ns[COMPARE_SIDE_CNT], length_ns;
	int err = 0;

	if (!sessions)
		return -ENOMEM;
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		span_ns[s] = find_spans(sample, s, sessions + (size_t)s * session_cnt, session_cnt);
	length_ns = block_length(sample, span_ns);
	for (int s = 0; s < COMPARE_SIDE_CNT && !err; s++) {
		struct block_session *of = sessions + (size_t)s * session_cnt;

		sample->first_block[s] = s ? sample->block_cnt[COMPARE_A] : 0;
		err = number_blocks(sample, s, of, plan_blocks(of, session_cnt, length_ns));
	}
	free(sessions);
	return err;
}

/* --- strata --------------------------------------------------------------------------------------------------------
 */

struct type_size {
	uint32_t type;
	double weight;
};

ORDER(compare_sizes, struct type_size, BY(b->weight, a->weight), BY(a->type, b->type));

static uint32_t type_of(const struct dataset *dataset, uint32_t row)
{
	return dataset->type ? dataset->type[row] : 0;
}

/* The types that both sides have, the most frequent first; without any, all rows are one stratum. */
static int choose_strata(struct compare_sample *sample)
{
	const struct dataset *dataset = sample->dataset;
	size_t types = dataset->string_cnt + 1, cnt = 0;
	struct type_size *sizes = calloc(types, sizeof(*sizes));
	uint32_t *rows = calloc(types, COMPARE_SIDE_CNT * sizeof(*rows));

	sample->stratum_of = malloc(types * sizeof(*sample->stratum_of));
	if (!sizes || !rows || !sample->stratum_of) {
		free(sizes);
		free(rows);
		return -ENOMEM;
	}
	memset(sample->stratum_of, 0xff, types * sizeof(*sample->stratum_of));
	for (int s = 0; s < COMPARE_SIDE_CNT; s++)
		for (size_t i = 0; i < sample->row_cnt[s]; i++) {
			uint32_t row = sample->rows[sample->first_row[s] + i], type = type_of(dataset, row);

			rows[type * COMPARE_SIDE_CNT + s]++;
			sizes[type].weight += dataset->weight[row];
		}
	for (uint32_t t = 0; t < types; t++)
		if (rows[t * COMPARE_SIDE_CNT] >= COMPARE_TYPE_ROWS_MIN &&
		    rows[t * COMPARE_SIDE_CNT + 1] >= COMPARE_TYPE_ROWS_MIN)
			sizes[cnt++] = (struct type_size){t, sizes[t].weight};
	qsort(sizes, cnt, sizeof(*sizes), compare_sizes);
	sample->stratum_cnt = (uint32_t)(cnt < COMPARE_STRATA_MAX ? cnt : COMPARE_STRATA_MAX);
	for (uint32_t s = 0; s < sample->stratum_cnt; s++) {
		sample->stratum_types[s] = sizes[s].type;
		sample->stratum_of[sizes[s].type] = s;
	}
	if (!cnt) {
		sample->stratum_cnt = 1;
		memset(sample->stratum_of, 0, types * sizeof(*sample->stratum_of));
	}
	free(sizes);
	free(rows);
	return 0;
}

static int fill_cells(struct compare_sample *sample)
{
	const struct dataset *dataset = sample->dataset;
	uint32_t width = sample->stratum_cnt + 1;
	size_t rows = sample->row_cnt[COMPARE_A] + sample->row_cnt[COMPARE_B];

	sample->cell_cnt = (sample->block_cnt[COMPARE_A] + sample->block_cnt[COMPARE_B]) * width;
	sample->weight = calloc(sample->cell_cnt + 1, sizeof(*sample->weight));
	sample->weighted_ns = calloc(sample->cell_cnt + 1, sizeof(*sample->weighted_ns));
	if (!sample->weight || !sample->weighted_ns)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++) {
		uint32_t row = sample->rows[i], stratum = sample->stratum_of[type_of(dataset, row)];
		uint32_t cell = sample->cells[i] * width + (stratum == COMPARE_NO_STRATUM ? width - 1 : stratum);

		sample->cells[i] = cell;
		sample->weight[cell] += dataset->weight[row];
		sample->weighted_ns[cell] += dataset->weight[row] * (double)dataset->latency_ns[row];
		sample->mixed = sample->mixed || stratum == COMPARE_NO_STRATUM;
	}
	sample->mixed = sample->mixed || sample->stratum_cnt > 1;
	return 0;
}

/* --- entries -------------------------------------------------------------------------------------------------------
 */

ORDER(compare_entries, struct compare_entry, BY(b->ns, a->ns));

static int make_entries(struct compare_sample *sample)
{
	const struct dataset *dataset = sample->dataset;
	size_t rows = sample->row_cnt[COMPARE_A] + sample->row_cnt[COMPARE_B], bin = 0;
	uint32_t *last = malloc((sample->cell_cnt + 1) * sizeof(*last));
	struct compare_entry *entries = calloc(rows + 1, sizeof(*entries));

	sample->entries = entries;
	if (!entries || !last) {
		free(last);
		return -ENOMEM;
	}
	for (size_t i = 0; i < rows; i++)
		entries[i] = (struct compare_entry){
			.ns = (double)dataset->latency_ns[sample->rows[i]],
			.weight = dataset->weight[sample->rows[i]],
			.cell = sample->cells[i],
		};
	qsort(entries, rows, sizeof(*entries), compare_entries);
	memset(last, 0xff, (sample->cell_cnt + 1) * sizeof(*last));
	for (size_t i = 0; i < rows; i++) {
		struct compare_entry entry = entries[i];
		uint32_t *at = &last[entry.cell];

		if (sample->entry_cnt && entry.ns < entries[bin].ns * (1 - BIN_WIDTH)) {
			entries[sample->entry_cnt - 1].ends_bin = true;
			bin = sample->entry_cnt;
		}
		/* The bounds of a bin are its first and its last entry: the longest of a cell stands for the others. */
		if (*at != UINT32_MAX && *at >= bin) {
			entries[*at].weight += entry.weight;
			continue;
		}
		*at = (uint32_t)sample->entry_cnt;
		entries[sample->entry_cnt++] = entry;
	}
	if (sample->entry_cnt)
		entries[sample->entry_cnt - 1].ends_bin = true;
	free(last);
	return 0;
}

int compare_rows_take(struct compare_sample *sample, const uint8_t *sides)
{
	int err = choose_rows(sample, sides);

	if (!err)
		err = cut_blocks(sample);
	if (!err)
		err = choose_strata(sample);
	if (!err)
		err = fill_cells(sample);
	return err ? err : make_entries(sample);
}
