// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/causes.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>

#define SHARE_MIN 0.01 /* smaller causes are not worth a line */

struct candidate {
	enum wl_category category;
	uint32_t slot;
	double share;
};

ORDER(compare_candidates, struct candidate, BY(b->share, a->share), BY(a->category, b->category), BY(a->slot, b->slot));

/* Largest first; how many of them are worth a line. */
static size_t choose(struct candidate *candidates, const struct report *report, const struct blame_split *splits)
{
	size_t cnt = 0, worth = 0;

	for (int c = 0; c < WL_CATEGORY_CNT; c++)
		for (uint32_t s = 0; !report->dataset->category_unmeasured[c] && s < splits[c].slot_cnt; s++)
			if (splits[c].lines[s].tail_share > 0 && !splits[c].slots[s].is_own)
				candidates[cnt++] = (struct candidate){c, s, splits[c].lines[s].tail_share};
	qsort(candidates, cnt, sizeof(*candidates), compare_candidates);
	while (worth < cnt && candidates[worth].share >= SHARE_MIN)
		worth++;
	return worth ? worth : cnt > 0;
}

struct own_line own_line_of(const struct share_line *line)
{
	return (struct own_line){
		.known = true,
		.share = line->tail_share,
		.share_ci = line->tail_share_ci,
		.variance_share = line->variance_share,
		.mean_ns = line->mean_ns,
		.typical_ns = line->typical_ns,
		.late_ns = line->late_ns,
	};
}

/* Its run-queue time, apart from the ranking; the account of the tail holds it like any other line. */
static void note_own(struct report *report, const struct blame_split *split)
{
	report->our_own = (struct own_line){.known = report->dataset->own_cnt > 0};
	for (uint32_t s = 0; s < split->slot_cnt; s++)
		if (split->slots[s].is_own)
			report->our_own = own_line_of(&split->lines[s]);
}

static int keep_part(struct cause *cause, const struct report *report, const struct blame_split *split, uint32_t slot)
{
	const struct dataset *dataset = report->dataset;
	const uint64_t *values = dataset->category_ns[cause->category];
	uint64_t *part = arena__alloc(report->arena, dataset->row_cnt, sizeof(*part));

	if (!part)
		return -ENOMEM;
	for (size_t row = 0; values && row < dataset->row_cnt; row++)
		if (!split->row_slots || split->row_slots[row] == slot)
			part[row] = values[row];
	cause->row_ns = part;
	return 0;
}

int causes_make(struct report *report, const struct blame_split *splits, const cause_places_table *places,
		bool keep_rows)
{
	struct arena *arena = report->arena;
	struct candidate candidates[WL_CATEGORY_CNT * (BLAME_NAMED_MAX + 1)];
	size_t cnt = choose(candidates, report, splits);

	note_own(report, &splits[WL_CATEGORY_RUNQ]);
	report->causes = arena__alloc(arena, cnt, sizeof(*report->causes));
	if (!report->causes)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct blame_split *split = &splits[candidates[i].category];
		const struct blame_slot *slot = &split->slots[candidates[i].slot];
		const struct share_line *line = &split->lines[candidates[i].slot];
		const struct cause_places *place =
			places ? &(*places)[candidates[i].category][candidates[i].slot] : NULL;
		struct cause *cause = &report->causes[i];

		*cause = (struct cause){
			.rank = (uint32_t)i + 1,
			.category = candidates[i].category,
			.share = line->tail_share,
			.share_ci = line->tail_share_ci,
			.variance_share = line->variance_share,
			.object = dataset_text(report->dataset, slot->object),
			.culprit_comm = dataset_text(report->dataset, slot->who),
			.culprit_host = dataset_text(report->dataset, slot->host),
			.culprit_pid = blame_ids__only(&slot->pids),
			.culprit_tid = blame_ids__only(&slot->tids),
		};
		if (cause_describe(cause, report, split, candidates[i].slot, place, arena) ||
		    (keep_rows && keep_part(cause, report, split, candidates[i].slot)))
			return -ENOMEM;
	}
	report->cause_cnt = cnt;
	return 0;
}
