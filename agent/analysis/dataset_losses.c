// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Table loss: totals per class, and how many intervals were lost by weight.  A record that was lost has no weight, and
 * selection changes with time: one that was lost while one in a hundred was selected stood for a hundred.  Totals are
 * written from time to time; in a period between two of them
 *
 *   weight of the lost = lost · (weight of the rows that end in it) / (records received in it)
 *
 * which holds for the rows that retention kept, too: their weights sum to those of the records received.
 */
#include "analysis/dataset_build.h"
#include "base/names.h"
#include "base/order.h"

#include <errno.h>
#include <string.h>

static int loss_by_name(const char *name)
{
	for (int i = 0; i < WL_LOSS_CNT; i++)
		if (!strcmp(loss_name(i), name))
			return i;
	return -1;
}

/* The time asked for, by the session's clock. */
static void asked_for(const struct dataset_build *build, const struct build_session *session, uint64_t *since_ts,
		      uint64_t *until_ts)
{
	const struct dataset_filter *filter = build->filter;
	uint64_t ahead_ns = (uint64_t)session->clock_ns;

	*since_ts = 0;
	*until_ts = UINT64_MAX;
	if (!filter || !session->clock_known)
		return;
	if (filter->since_wall_ns > ahead_ns)
		*since_ts = filter->since_wall_ns - ahead_ns;
	if (filter->until_wall_ns > ahead_ns)
		*until_ts = filter->until_wall_ns - ahead_ns;
}

/*
 * Totals run from the recording's beginning: of a part of it, the newest row before it is taken off, and the first one
 * after it holds, so that nothing that was lost in it is missing.
 */
static void note_total(struct build_loss *loss, const struct build_loss_row *row, uint64_t since_ts, uint64_t until_ts)
{
	bool better = row->ts >= until_ts ? loss->ts < until_ts || row->ts < loss->ts
					  : loss->ts < until_ts && row->ts >= loss->ts;

	if (better) {
		loss->ts = row->ts;
		loss->emitted = row->emitted;
		loss->lost = row->lost;
	}
	if (row->ts < since_ts && row->ts >= loss->base_ts) {
		loss->base_ts = row->ts;
		loss->base_emitted = row->emitted;
		loss->base_lost = row->lost;
	}
}

int dataset_build__loss_block(struct dataset_build *build, const struct shard_block *block)
{
	const struct loss_columns col = block_columns(block, LOSS, loss);
	size_t session;

	if (dataset_build__session_of(build, block, &session))
		return -ENOMEM;
	for (uint32_t row = 0; row < block->row_cnt; row++) {
		int class = loss_by_name(column_text(col.class, row));
		struct build_loss_row loss = {.ts = column_u64(col.ts, row)};

		if (class < 0)
			continue;
		loss.emitted = column_u64(col.emitted, row);
		loss.lost = column_u64(col.lost, row);
		if (idmap__id(&build->loss_ids, session, (uint64_t)class << 56 ^ column_u64(col.cpu, row), &loss.loss))
			return -ENOMEM;
		if (loss.loss == build->losses.cnt &&
		    vec_push(&build->losses, ((struct build_loss){.session = session, .class = (enum wl_loss) class})))
			return -ENOMEM;
		if (vec_push(&build->loss_rows, loss))
			return -ENOMEM;
	}
	return 0;
}

/* By total, then by time. */
ORDER(compare_rows, struct build_loss_row, BY(a->loss, b->loss), BY(a->ts, b->ts));

ORDER(compare_periods, struct build_period, BY(a->end_ts, b->end_ts));

static bool is_of_intervals(const struct build_loss *loss)
{
	/* A request that was left open by its window would have had a record, too. */
	return loss->class == WL_LOSS_INTERVAL || loss->class == WL_LOSS_CUT;
}

/* A period for each moment at which totals were written. */
static int make_periods(struct dataset_build *build)
{
	for (size_t i = 0; i < build->loss_rows.cnt; i++) {
		const struct build_loss_row *row = &build->loss_rows.items[i];
		const struct build_loss *loss = &build->losses.items[row->loss];
		struct build_session *session = &build->sessions.items[loss->session];
		struct build_period period = {.end_ts = row->ts};

		if (is_of_intervals(loss) && vec_push(&session->periods, period))
			return -ENOMEM;
	}
	for (size_t i = 0; i < build->sessions.cnt; i++) {
		struct build_session *session = &build->sessions.items[i];
		size_t cnt = 0;

		vec_sort(&session->periods, compare_periods);
		for (size_t p = 0; p < session->periods.cnt; p++)
			if (!cnt || session->periods.items[p].end_ts != session->periods.items[cnt - 1].end_ts)
				session->periods.items[cnt++] = session->periods.items[p];
		session->periods.cnt = cnt;
	}
	return 0;
}

struct build_period *build_session__period(struct build_session *session, uint64_t ts)
{
	struct build_period *periods = session->periods.items;
	size_t cnt = session->periods.cnt, at = session->period_at;

	if (!cnt)
		return NULL;
	/* Rows come by time, nearly. */
	if (ts <= periods[at].end_ts && (!at || ts > periods[at - 1].end_ts))
		return &periods[at];
	session->period_at = search_first(0, cnt - 1, middle, periods[middle].end_ts >= ts);
	return &periods[session->period_at];
}

int dataset_build__loss_begin(struct dataset_build *build)
{
	if (!build->loss_rows.cnt)
		return 0;
	vec_sort(&build->loss_rows, compare_rows);
	if (make_periods(build))
		return -ENOMEM;
	for (size_t i = 0; i < build->loss_rows.cnt; i++) {
		const struct build_loss_row *row = &build->loss_rows.items[i], *before = row - 1;
		struct build_loss *loss = &build->losses.items[row->loss];
		bool first = !i || before->loss != row->loss;
		uint64_t emitted = first ? 0 : before->emitted, lost = first ? 0 : before->lost;
		struct build_period *period;
		uint64_t since_ts, until_ts;

		asked_for(build, &build->sessions.items[loss->session], &since_ts, &until_ts);
		note_total(loss, row, since_ts, until_ts);
		if (!is_of_intervals(loss))
			continue;
		period = build_session__period(&build->sessions.items[loss->session], row->ts);
		if (loss->class == WL_LOSS_INTERVAL)
			period->received += (double)row->emitted - (double)emitted - ((double)row->lost - (double)lost);
		period->lost += (double)row->lost - (double)lost;
	}
	return 0;
}

static void take_off(uint64_t *total, uint64_t base)
{
	*total = *total > base ? *total - base : 0;
}

static void weigh_session(struct dataset_build *build, const struct build_session *session)
{
	double weight = 0, received = 0, overall;
	uint64_t since_ts, until_ts, begin_ts = 0;

	for (size_t i = 0; i < session->periods.cnt; i++) {
		weight += session->periods.items[i].weight;
		received += session->periods.items[i].received;
	}
	overall = received > 0 ? weight / received : 1;
	asked_for(build, session, &since_ts, &until_ts);
	for (size_t i = 0; i < session->periods.cnt; i++) {
		const struct build_period *period = &session->periods.items[i];

		if (period->end_ts >= since_ts && begin_ts < until_ts) {
			build->dataset->received_weight += period->weight;
			build->dataset->lost_weight +=
				period->lost * (period->received > 0 ? period->weight / period->received : overall);
		}
		begin_ts = period->end_ts;
	}
}

/* From running totals to what came in the time asked for. */
void dataset_build__loss_end(struct dataset_build *build)
{
	for (size_t i = 0; i < build->losses.cnt; i++) {
		take_off(&build->losses.items[i].emitted, build->losses.items[i].base_emitted);
		take_off(&build->losses.items[i].lost, build->losses.items[i].base_lost);
	}
	for (size_t i = 0; i < build->sessions.cnt; i++)
		if (!build->sessions.items[i].unwanted)
			weigh_session(build, &build->sessions.items[i]);
}
