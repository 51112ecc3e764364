// SPDX-License-Identifier: GPL-2.0-or-later
/* Roots as columns over the intervals: exact times, divided by samples. */
#include "analysis/roots_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BRANCH_SHARE_MIN 0.03                    /* of the tail */
#define PARTS            (ROOT_BRANCHES_MAX + 1) /* [0]: in no branch */
#define LEFT             ROOT_LINES_MAX
#define LENGTHS          8 /* of entries: below 4 us, and by powers of four */

/* Short names of enum path_group. */
enum group { TYPICAL = PATH_TYPICAL, BETWEEN, LATE, GROUP_CNT };

/* The roots that get lines, one after the other. */
struct work {
	struct root_lines *lines;
	const struct roots *roots;
	const struct path_rows *ranked;
	double *late_ns, *typical_ns; /* by key, of the mean interval */
	uint32_t *order;              /* keys, the largest first */
	double *time_ns, *amount;     /* by way and group: of the entries, of their ticks; weighted */
	uint32_t *first, *entries;    /* by key: its entries, those of key k are entries[first[k]…first[k + 1]) */
	double *pool;                 /* by way, group and length of the entry: amounts by part */
	uint64_t *besides;            /* by entry: root_gain_besides() */
	size_t row_cnt;
};

static enum group group_of(const struct work *work, uint32_t at)
{
	double latency_ns = (double)work->ranked->latency_ns[at];

	if (work->ranked->groups)
		return (enum group)work->ranked->groups[at];
	if (latency_ns >= work->ranked->rows.late_ns)
		return LATE;
	return latency_ns <= work->ranked->rows.median_ns ? TYPICAL : BETWEEN;
}

static uint32_t key_of(const struct work *work, const struct root_entry *entry)
{
	return work->roots->ways.items[entry->way].key;
}

static double entry_amount(const struct roots *roots, const struct root_entry *entry)
{
	double amount = 0;

	for (uint32_t t = 0; t < entry->tick_cnt; t++)
		amount += roots->ticks.items[entry->tick + t].amount;
	return amount;
}

static void sum_up(struct work *work)
{
	const struct roots *roots = work->roots;

	for (size_t e = 0; e < roots->entries.cnt; e++) {
		const struct root_entry *entry = &roots->entries.items[e];
		uint32_t at = work->ranked->at[entry->row], key = key_of(work, entry);
		double weight = work->ranked->weights[at], ns = weight * (double)entry->ns;
		enum group group = group_of(work, at);

		work->late_ns[key] += group == LATE ? ns / work->ranked->late_weight : 0;
		work->typical_ns[key] += group == TYPICAL ? ns / work->ranked->typical_weight : 0;
		work->time_ns[entry->way * GROUP_CNT + group] += ns;
		work->amount[entry->way * GROUP_CNT + group] += weight * entry_amount(roots, entry);
		work->first[key + 1]++;
	}
	for (size_t k = 0; k < roots->keys.cnt; k++)
		work->first[k + 1] += work->first[k];
}

static int sort_entries(struct work *work)
{
	uint32_t *next = malloc((work->roots->keys.cnt + 1) * sizeof(*next));

	if (!next)
		return -ENOMEM;
	memcpy(next, work->first, (work->roots->keys.cnt + 1) * sizeof(*next));
	for (size_t e = 0; e < work->roots->entries.cnt; e++)
		work->entries[next[key_of(work, &work->roots->entries.items[e])]++] = (uint32_t)e;
	free(next);
	return 0;
}

static double difference(const struct work *work, uint32_t key)
{
	return work->late_ns[key] - work->typical_ns[key];
}

static void sort_keys(struct work *work)
{
	size_t cnt = work->roots->keys.cnt;

	/* The first ROOT_KEYS_MAX are enough. */
	for (uint32_t k = 0; k < cnt; k++)
		work->order[k] = k;
	for (size_t i = 0; i < cnt && i < ROOT_KEYS_MAX; i++) {
		size_t most = i;
		uint32_t key;

		for (size_t j = i + 1; j < cnt; j++)
			if (fabs(difference(work, work->order[j])) > fabs(difference(work, work->order[most])))
				most = j;
		key = work->order[i];
		work->order[i] = work->order[most];
		work->order[most] = key;
	}
	/* The recorder has a line however small. */
	for (size_t i = ROOT_KEYS_MAX; i < cnt; i++)
		if (work->roots->keys.items[work->order[i]].kind == ROOT_OUR_OWN) {
			uint32_t key = work->order[i];

			work->order[i] = work->order[ROOT_KEYS_MAX - 1];
			work->order[ROOT_KEYS_MAX - 1] = key;
		}
}

/* --- one root ------------------------------------------------------------------------------------------------------
 */

/* What each of the key's samples stands for: a way's time in late intervals is divided among its samples there. */
static int split_key(const struct work *work, uint32_t key, struct root_split *split)
{
	const struct roots *roots = work->roots;
	VEC(struct split_tick) ticks = {0};
	int err = 0;

	for (uint32_t i = work->first[key]; i < work->first[key + 1] && !err; i++) {
		const struct root_entry *entry = &roots->entries.items[work->entries[i]];
		uint32_t at = work->ranked->at[entry->row];
		enum group group = group_of(work, at);
		size_t stratum = entry->way * GROUP_CNT + group;
		double scale = work->ranked->weights[at] * work->time_ns[stratum] / work->amount[stratum];

		for (uint32_t t = 0; t < entry->tick_cnt && group != BETWEEN && !err; t++) {
			const struct root_tick *from = &roots->ticks.items[entry->tick + t];
			struct split_tick tick = {.node = from->node, .unit = from->unit, .sample = from->sample};

			if (group == LATE)
				tick.late_ns = scale * from->amount / work->ranked->late_weight;
			else
				tick.typical_ns = scale * from->amount / work->ranked->typical_weight;
			err = vec_push(&ticks, tick);
		}
	}
	if (!err)
		err = root_split__make(split, roots->samples, ticks.items, ticks.cnt,
				       BRANCH_SHARE_MIN * work->lines->tail_ns,
				       roots->keys.items[key].kind == ROOT_DISK);
	vec_free(&ticks);
	return err;
}

/* Amounts by part of one entry; their sum. */
static double entry_parts(const struct work *work, const struct root_entry *entry, const struct root_split *split,
			  double parts[PARTS])
{
	double all = 0;

	memset(parts, 0, PARTS * sizeof(*parts));
	for (uint32_t t = 0; t < entry->tick_cnt; t++) {
		const struct root_tick *tick = &work->roots->ticks.items[entry->tick + t];

		parts[split->branch_of[tick->node]] += tick->amount;
		all += tick->amount;
	}
	return all;
}

static size_t length_of(const struct root_entry *entry)
{
	size_t length = 0;

	for (uint64_t ns = entry->ns >> 12; ns && length < LENGTHS - 1; ns >>= 2)
		length++;
	return length;
}

/* Adds what the pool has of entries of that way, group and length to the parts; their sum. */
static double add_pool(const struct work *work, uint32_t way, enum group group, size_t length, double parts[PARTS])
{
	const double *pool = &work->pool[((way * GROUP_CNT + group) * LENGTHS + length) * PARTS];
	double all = 0;

	for (size_t p = 0; p < PARTS; p++) {
		parts[p] += pool[p];
		all += pool[p];
	}
	return all;
}

/*
 * An entry without samples is like the others of its way, its group and its length: what takes 100 us in a request is
 * not the same code as what takes 16 ms in others, and has a sample less often.  Else it is like those of its way and
 * length, of its way and group, or of its way.
 */
static double pooled_parts(const struct work *work, const struct root_entry *entry, enum group group,
			   double parts[PARTS])
{
	size_t length = length_of(entry);
	double all;

	memset(parts, 0, PARTS * sizeof(*parts));
	all = add_pool(work, entry->way, group, length, parts);
	for (size_t g = 0; g < GROUP_CNT && all <= 0; g++)
		all += add_pool(work, entry->way, (enum group)g, length, parts);
	if (all > 0)
		return all;
	for (size_t l = 0; l < LENGTHS; l++)
		all += add_pool(work, entry->way, group, l, parts);
	for (size_t g = 0; g < GROUP_CNT && all <= 0; g++)
		for (size_t l = 0; l < LENGTHS; l++)
			all += add_pool(work, entry->way, (enum group)(GROUP_CNT - 1 - g), l, parts);
	return all;
}

static void fill_pool(struct work *work, uint32_t key, const struct root_split *split)
{
	double parts[PARTS];

	for (uint32_t i = work->first[key]; i < work->first[key + 1]; i++) {
		const struct root_entry *entry = &work->roots->entries.items[work->entries[i]];
		uint32_t at = work->ranked->at[entry->row];
		size_t stratum = (entry->way * GROUP_CNT + group_of(work, at)) * LENGTHS + length_of(entry);

		entry_parts(work, entry, split, parts);
		for (size_t p = 0; p < PARTS; p++)
			work->pool[stratum * PARTS + p] += work->ranked->weights[at] * parts[p];
	}
}

/* Adds some of an entry to a line; its way gets its share of the difference. */
static int add_time(struct work *work, uint32_t line, const struct root_entry *entry, uint64_t ns, uint32_t *line_way)
{
	struct root_lines *lines = work->lines;
	uint32_t at = work->ranked->at[entry->row], way = entry->way;
	uint64_t besides = work->besides[entry - work->roots->entries.items];
	enum group group = group_of(work, at);
	double weighted_ns = work->ranked->weights[at] * (double)ns;

	lines->lines[line].ns[at] += ns;
	lines->lines[line].saved_ns[at] += ns + (uint64_t)((double)besides * (double)ns / (double)entry->ns);
	if (line != LEFT && ns && work->roots->ways.items[way].own &&
	    vec_push(&lines->owns, ((struct root_own){line, at, ns})))
		return -ENOMEM;
	if (line == LEFT || group == BETWEEN || !ns)
		return 0;
	if (line_way[way] == UINT32_MAX) {
		line_way[way] = (uint32_t)lines->ways.cnt;
		if (vec_push(&lines->ways, ((struct root_line_way){.line = line, .way = way})))
			return -ENOMEM;
	}
	lines->ways.items[line_way[way]].tail_ns +=
		group == LATE ? weighted_ns / work->ranked->late_weight : -weighted_ns / work->ranked->typical_weight;
	return 0;
}

/* Divides each entry of the key among the lines of its parts, to the nanosecond. */
static int divide(struct work *work, uint32_t key, const struct root_split *split, const uint32_t line_of[PARTS],
		  uint32_t *line_way[PARTS])
{
	double parts[PARTS];
	int err = 0;

	for (uint32_t i = work->first[key]; i < work->first[key + 1] && !err; i++) {
		const struct root_entry *entry = &work->roots->entries.items[work->entries[i]];
		uint32_t at = work->ranked->at[entry->row];
		uint64_t left_ns = entry->ns;
		double all = split->cnt ? entry_parts(work, entry, split, parts) : 0;

		if (split->cnt && !(all > 0))
			all = pooled_parts(work, entry, group_of(work, at), parts);
		for (size_t p = 1; p <= split->cnt && all > 0 && !err; p++) {
			uint64_t ns = (uint64_t)((double)entry->ns * (parts[p] / all));

			ns = ns < left_ns ? ns : left_ns;
			/* The whole of it is one part's: no rounding. */
			ns = parts[p] == all ? left_ns : ns;
			left_ns -= ns;
			err = add_time(work, line_of[p], entry, ns, line_way[p]);
		}
		if (!err)
			err = add_time(work, line_of[0], entry, left_ns, line_way[0]);
	}
	return err;
}

/* Of a request that began before it could be read, only the port is known. */
static bool is_untold(const struct roots *roots, uint32_t key, uint32_t of)
{
	const struct root_key *untold = &roots->keys.items[key], *told = &roots->keys.items[of];
	const char *port;
	size_t length;

	if (!untold->type || !told->type || untold->kind != told->kind || untold->role != told->role ||
	    untold->host != told->host || untold->object != told->object)
		return false;
	port = roots_string(roots, untold->type);
	length = strlen(port);
	return !strncmp(roots_string(roots, told->type), port, length) &&
	       roots_string(roots, told->type)[length] == ' ';
}

/* One line for what the same call path does in requests of one type, and in those that began too early to tell. */
static uint32_t same_line(const struct work *work, uint32_t key, const struct root_branch *branch)
{
	struct root_lines *lines = work->lines;

	for (uint32_t l = 0; l < lines->cnt && branch->cut != SAMPLE_ROOT; l++) {
		struct root_line *line = &lines->lines[l];

		if (line->branch.cut != branch->cut || line->untold != ROOT_NO_KEY)
			continue;
		if (is_untold(work->roots, line->key, key)) {
			line->untold = line->key;
			line->key = key;
			return l;
		}
		if (is_untold(work->roots, key, line->key)) {
			line->untold = key;
			return l;
		}
	}
	return LEFT;
}

static uint32_t new_line(struct work *work, uint32_t key, struct root_branch branch)
{
	struct root_lines *lines = work->lines;
	uint32_t line = same_line(work, key, &branch);

	if (line != LEFT || lines->cnt == ROOT_LINES_MAX)
		return line;
	lines->lines[lines->cnt].key = key;
	lines->lines[lines->cnt].untold = ROOT_NO_KEY;
	lines->lines[lines->cnt].branch = branch;
	return (uint32_t)lines->cnt++;
}

static int make_key(struct work *work, uint32_t key)
{
	const struct root_key *of = &work->roots->keys.items[key];
	size_t way_cnt = work->roots->ways.cnt;
	uint32_t line_of[PARTS], *line_way[PARTS], *memory;
	struct root_split split = {.cnt = 0};
	struct root_branch whole = {0};
	int err = work->roots->samples ? split_key(work, key, &split) : 0;

	memory = malloc(way_cnt * PARTS * sizeof(*memory) + 1);
	if (!memory)
		err = -ENOMEM;
	if (err)
		goto cleanup;
	memset(memory, 0xff, way_cnt * PARTS * sizeof(*memory));
	/* What waits for a disk, a peer or a timer is one root, wherever it waits. */
	if (of->kind != ROOT_CODE && split.cnt) {
		whole = split.branches[0];
		split.cnt = 0;
	}
	if (split.cnt)
		fill_pool(work, key, &split);
	for (size_t p = 0; p < PARTS; p++) {
		line_way[p] = memory + p * way_cnt;
		if (p <= split.cnt)
			line_of[p] = new_line(work, key, p ? split.branches[p - 1] : whole);
	}
	err = divide(work, key, &split, line_of, line_way);
cleanup:
	root_split__free(&split);
	free(memory);
	return err;
}

/* --- all of them ---------------------------------------------------------------------------------------------------
 */

static int work_init(struct work *work)
{
	size_t key_cnt = work->roots->keys.cnt, strata = work->roots->ways.cnt * GROUP_CNT;

	work->late_ns = calloc(key_cnt + 1, sizeof(*work->late_ns));
	work->typical_ns = calloc(key_cnt + 1, sizeof(*work->typical_ns));
	work->order = calloc(key_cnt + 1, sizeof(*work->order));
	work->time_ns = calloc(strata + 1, sizeof(*work->time_ns));
	work->amount = calloc(strata + 1, sizeof(*work->amount));
	work->pool = calloc(strata * LENGTHS * PARTS + 1, sizeof(*work->pool));
	work->first = calloc(key_cnt + 2, sizeof(*work->first));
	work->entries = calloc(work->roots->entries.cnt + 1, sizeof(*work->entries));
	work->besides = root_gain_besides(work->roots);
	if (!work->late_ns || !work->typical_ns || !work->order || !work->time_ns || !work->amount || !work->pool ||
	    !work->first || !work->entries || !work->besides)
		return -ENOMEM;
	return 0;
}

static void work_free(struct work *work)
{
	free(work->late_ns);
	free(work->typical_ns);
	free(work->order);
	free(work->time_ns);
	free(work->amount);
	free(work->pool);
	free(work->first);
	free(work->entries);
	free(work->besides);
}

int root_lines__make(struct root_lines *lines, const struct roots *roots, const struct path_rows *ranked)
{
	const uint32_t left_of[PARTS] = {LEFT};
	const struct root_split whole = {.cnt = 0};
	size_t rows = ranked->rows.row_cnt;
	struct work work = {.lines = lines, .roots = roots, .ranked = ranked, .row_cnt = rows};
	uint32_t *no_ways[PARTS] = {NULL};
	int err;

	*lines = (struct root_lines){.roots = roots, .ranked = ranked};
	lines->columns = calloc(2 * (ROOT_LINES_MAX + 1) * rows + 1, sizeof(*lines->columns));
	err = lines->columns ? work_init(&work) : -ENOMEM;
	if (err)
		goto cleanup;
	for (size_t l = 0; l <= ROOT_LINES_MAX; l++) {
		lines->lines[l].ns = lines->columns + 2 * l * rows;
		lines->lines[l].saved_ns = lines->lines[l].ns + rows;
	}
	sum_up(&work);
	err = sort_entries(&work);
	if (err)
		goto cleanup;
	sort_keys(&work);
	for (uint32_t k = 0; k < roots->keys.cnt; k++) {
		lines->tail_ns += difference(&work, k);
		lines->unknown_ns += roots->keys.items[k].kind == ROOT_UNKNOWN ? difference(&work, k) : 0;
		lines->own_ns += roots->keys.items[k].kind == ROOT_OUR_OWN ? difference(&work, k) : 0;
	}
	for (size_t i = 0; i < roots->keys.cnt && !err; i++)
		err = i < ROOT_KEYS_MAX ? make_key(&work, work.order[i])
					: divide(&work, work.order[i], &whole, left_of, no_ways);
cleanup:
	work_free(&work);
	return err;
}

void root_lines__free(struct root_lines *lines)
{
	vec_free(&lines->ways);
	vec_free(&lines->owns);
	free(lines->columns);
}
