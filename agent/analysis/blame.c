// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/causes.h"
#include "base/idmap.h"
#include "base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Everybody who is blamed in a category, with what decides who gets a line. */
struct blamed {
	uint32_t who, object, host;
	bool is_own;
	double late, typical; /* Σ w·X over late and over typical rows */
	double tail;          /* the difference of their means */
	uint32_t slot;
};

struct blame_count {
	struct idmap ids;
	VEC(struct blamed) blamed;
	uint32_t *row_ids;
};

#define NOBODY UINT32_MAX

static int count_rows(struct blame_count *count, const struct dataset *dataset, enum wl_category category,
		      const struct share_rows *rows)
{
	const struct dataset_blame *blame = dataset->blame[category];
	const uint64_t *values = dataset->category_ns[category];

	for (size_t i = 0; i < rows->row_cnt; i++) {
		double latency = (double)rows->latency_ns[i], wx = rows->weights[i] * (double)values[i];
		struct blamed named = {.who = blame[i].who, .object = blame[i].object, .host = blame[i].host}, *blamed;

		count->row_ids[i] = NOBODY;
		if (!values[i] || (!blame[i].who && !blame[i].object && !blame[i].is_own))
			continue;
		if (blame[i].is_own)
			named = (struct blamed){.host = UINT32_MAX, .is_own = true};
		if (idmap__id(&count->ids, (uint64_t)named.host << 32 | named.who, named.object, &count->row_ids[i]))
			return -ENOMEM;
		if (count->row_ids[i] == count->blamed.cnt && vec_push(&count->blamed, named))
			return -ENOMEM;
		blamed = &count->blamed.items[count->row_ids[i]];
		blamed->late += latency >= rows->late_ns ? wx : 0;
		blamed->typical += latency <= rows->median_ns ? wx : 0;
	}
	return 0;
}

/* The recorder has a slot however small, so that no line without a name hides it. */
static bool precedes(const struct blamed *left, const struct blamed *right)
{
	return left->is_own != right->is_own ? left->is_own : left->tail > right->tail;
}

/* Gives the largest a slot each, the rest the last one.  Ties go to the one seen first. */
static void choose_slots(struct blame_split *split, struct blame_count *count, const struct share_rows *rows)
{
	double weight_late = 0, weight_typical = 0;

	for (size_t i = 0; i < rows->row_cnt; i++) {
		weight_late += (double)rows->latency_ns[i] >= rows->late_ns ? rows->weights[i] : 0;
		weight_typical += (double)rows->latency_ns[i] <= rows->median_ns ? rows->weights[i] : 0;
	}
	for (size_t b = 0; b < count->blamed.cnt; b++) {
		struct blamed *blamed = &count->blamed.items[b];

		blamed->tail = fabs(blamed->late / weight_late - blamed->typical / weight_typical);
		blamed->slot = NOBODY;
	}
	for (split->slot_cnt = 0; split->slot_cnt < BLAME_NAMED_MAX; split->slot_cnt++) {
		struct blamed *most = NULL;

		for (size_t b = 0; b < count->blamed.cnt; b++)
			if (count->blamed.items[b].slot == NOBODY && (!most || precedes(&count->blamed.items[b], most)))
				most = &count->blamed.items[b];
		if (!most)
			break;
		most->slot = split->slot_cnt;
		split->slots[split->slot_cnt] =
			(struct blame_slot){.who = most->who, .object = most->object, .host = most->host};
		if (most->is_own)
			split->slots[split->slot_cnt] = (struct blame_slot){.is_own = true};
	}
	split->slots[split->slot_cnt] = (struct blame_slot){0};
	split->slot_cnt++;
}

void blame_ids__note(struct blame_ids *ids, uint32_t id)
{
	if (!id)
		return;
	for (uint32_t i = 0; i < ids->cnt && i < BLAME_IDS_MAX; i++)
		if (ids->ids[i] == id)
			return;
	if (ids->cnt < BLAME_IDS_MAX)
		ids->ids[ids->cnt] = id;
	if (ids->cnt <= BLAME_IDS_MAX)
		ids->cnt++;
}

int blame_split__init(struct blame_split *split, const struct dataset *dataset, enum wl_category category,
		      const struct share_rows *rows)
{
	struct blame_count count = {0};
	int err = -ENOMEM;

	*split = (struct blame_split){.slot_cnt = 1};
	if (!dataset->blame[category] || !dataset->category_ns[category] || !rows->row_cnt)
		return 0;
	count.row_ids = calloc(rows->row_cnt, sizeof(*count.row_ids));
	split->row_slots = calloc(rows->row_cnt, sizeof(*split->row_slots));
	if (!count.row_ids || !split->row_slots)
		goto cleanup;
	err = count_rows(&count, dataset, category, rows);
	if (err)
		goto cleanup;
	choose_slots(split, &count, rows);
	for (size_t i = 0; i < rows->row_cnt; i++) {
		uint32_t slot = count.row_ids[i] == NOBODY ? NOBODY : count.blamed.items[count.row_ids[i]].slot;

		split->row_slots[i] = (uint8_t)(slot == NOBODY ? split->slot_cnt - 1 : slot);
		if (slot == NOBODY)
			continue;
		blame_ids__note(&split->slots[slot].pids, dataset->blame[category][i].pid);
		blame_ids__note(&split->slots[slot].tids, dataset->blame[category][i].tid);
	}
cleanup:
	free(count.row_ids);
	vec_free(&count.blamed);
	idmap__free(&count.ids);
	return err;
}

void blame_split__free(struct blame_split *split)
{
	free(split->row_slots);
	split->row_slots = NULL;
}
