/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ranked list of causes: the time of each category, split by who or what its intervals waited for most.
 *
 * X_{i,g} = X_i·1[the row blames g for category i]: the parts sum to X_i, and shares are linear, so the lines of a
 * category sum to its share in the breakdown.  A row has one culprit per category, that of its longest wait, and the
 * row's whole time in the category goes to it.
 */
#ifndef WHYLATE_ANALYSIS_CAUSES_H
#define WHYLATE_ANALYSIS_CAUSES_H

#include "analysis/shares.h"
#include "base/arena.h"

#define BLAME_NAMED_MAX 8 /* lines with a name per category; the others share one without */
#define BLAME_IDS_MAX   6 /* are listed by number */

/* The distinct pids or tids of one culprit. */
struct blame_ids {
	uint32_t ids[BLAME_IDS_MAX];
	uint32_t cnt; /* BLAME_IDS_MAX + 1: more than there was room for */
};

/* Adds one, if it is not 0 and not there yet. */
void blame_ids__note(struct blame_ids *ids, uint32_t id);
/* The only id; -1: none or several. */
static inline int64_t blame_ids__only(const struct blame_ids *ids)
{
	return ids->cnt == 1 ? (int64_t)ids->ids[0] : -1;
}

struct blame_slot {
	uint32_t who, object; /* indexes into dataset.strings; both 0 in the slot of all others */
	uint32_t host;        /* of `who`, where there are several */
	bool is_own;          /* the recorder: all of its threads together, whatever their names */
	struct blame_ids pids, tids;
};

/* The split of one category.  The last slot is that of the rows that name nobody or one too small to be named. */
struct blame_split {
	struct blame_slot slots[BLAME_NAMED_MAX + 1];
	struct share_line lines[BLAME_NAMED_MAX + 1];
	uint32_t slot_cnt;
	uint8_t *row_slots; /* NULL: only one slot */
};

/* Splits one category.  0 or -ENOMEM; blame_split__free() in either case. */
int blame_split__init(struct blame_split *split, const struct dataset *dataset, enum wl_category category,
		      const struct share_rows *rows);
void blame_split__free(struct blame_split *split);

/* Where the time of one slot of one category was spent, late intervals against typical ones: shares of the slot's. */
struct cause_place {
	const char *function;
	double share;
};

#define CAUSE_PLACES_MAX 3

struct cause_places {
	struct cause_place functions[CAUSE_PLACES_MAX]; /* largest first; function NULL: no further one */
	struct cause_place culprits[CAUSE_PLACES_MAX];  /* what was done on other threads meanwhile */
};

/* By category, then by slot of its split. */
typedef struct cause_places cause_places_table[WL_CATEGORY_CNT][BLAME_NAMED_MAX + 1];

/*
 * Makes report->causes and report->our_own from the splits, whose lines have been computed, and from report->breakdown,
 * report->events, report->factors and report->path.  places NULL: no function was probed.  Strings and lists come from
 * the arena.  keep_rows: fills cause->row_ns.  0 or -ENOMEM.
 */
int causes_make(struct report *report, const struct blame_split *splits, const cause_places_table *places,
		bool keep_rows);

/* The one line for a person and the lines of evidence under it; cause->category, share and culprit are set. */
int cause_describe(struct cause *cause, const struct report *report, const struct blame_split *split, uint32_t slot,
		   const struct cause_places *places, struct arena *arena);

/* Lines of evidence; NULL without memory. */
#define CAUSE_EVIDENCE_MAX 10
char *cause_numbers_text(struct arena *arena, const struct share_line *line);
char *cause_variance_text(struct arena *arena, const struct share_line *line);
char *cause_several_text(struct arena *arena, const char *what, const struct blame_ids *ids);
/* 0 or -ENOMEM. */
int cause_describe_doubts(struct cause *cause, const struct report *report, struct arena *arena);
int cause__add_line(struct cause *cause, const char *line);

/* The measured line of what the agent itself held up. */
struct own_line own_line_of(const struct share_line *line);

#endif
