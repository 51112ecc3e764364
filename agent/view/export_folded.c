// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/export.h"

#include "base/folded.h"
#include "base/names.h"
#include "base/order.h"

#include <string.h>

#define FOLDED_SZ 1024
#define TASK_SZ   256

/* One line of the result: the intervals of one type, one reason. */
struct folded {
	uint32_t type;
	const char *role, *object, *who; /* NULL: none */
	const char *host;                /* of `who`, where there are several; NULL: not known */
	enum wl_category category, wait;
	bool own;
	double ns;
};

struct folded_lines {
	struct folded *items;
	size_t cnt, room;
	struct idmap ids;
};

static void add_task(char line[FOLDED_SZ], const char *name, const char *host)
{
	char task[TASK_SZ];

	snprintf(task, sizeof(task), "%s%s%s", name, host ? " on " : "", host ? host : "");
	folded_add(line, FOLDED_SZ, task);
}

static void put_line(FILE *out, const struct dataset *dataset, const struct folded *folded)
{
	bool who_is_there = folded->who && folded->role && !strcmp(folded->who, folded->role);
	char line[FOLDED_SZ] = "";

	if (!(folded->ns >= 0.5))
		return;
	folded_add(line, sizeof(line), *dataset->strings[folded->type] ? dataset->strings[folded->type] : "?");
	if (!folded->own) {
		folded_add(line, sizeof(line), category_name(folded->wait));
		add_task(line, folded->role ? folded->role : "?", who_is_there ? folded->host : NULL);
	}
	folded_add(line, sizeof(line), category_name(folded->category));
	if (folded->object)
		folded_add(line, sizeof(line), folded->object);
	if (folded->who && !who_is_there)
		add_task(line, folded->who, folded->host);
	fprintf(out, "%s %.0f\n", line, folded->ns);
}

static int add(struct folded_lines *lines, uint64_t key, uint64_t key_too, const struct folded *folded)
{
	uint32_t id;

	if (idmap__id(&lines->ids, key, key_too, &id))
		return -ENOMEM;
	if (id == lines->cnt)
		return vec_push(lines, *folded);
	lines->items[id].ns += folded->ns;
	return 0;
}

/* Its own running is not what the interval waits for; somebody else's is. */
static bool is_off_cpu(const struct path_key *key)
{
	return key->category != WL_CATEGORY_ONCPU;
}

static int add_paths(struct folded_lines *lines, const struct dataset *dataset, const struct paths *paths)
{
	for (size_t i = 0; i < paths->entries.cnt; i++) {
		const struct path_entry *entry = &paths->entries.items[i];
		const struct path_key *key = &paths->keys.items[entry->key];
		const struct folded folded = {
			.type = dataset->type[entry->row],
			.role = dataset_text(dataset, key->role),
			.object = dataset_text(dataset, key->object),
			.who = dataset_text(dataset, key->who),
			.host = dataset_text(dataset, key->host),
			.category = key->category,
			.wait = key->wait,
			.own = key->own,
			.ns = dataset->weight[entry->row] * (double)entry->ns,
		};

		if (is_off_cpu(key) && add(lines, (uint64_t)folded.type << 32 | entry->key, 0, &folded))
			return -ENOMEM;
	}
	return 0;
}

/* What the counters say of one interval. */
static int add_row(struct folded_lines *lines, const struct dataset *dataset, size_t row)
{
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		uint64_t ns = dataset->category_ns[c] ? dataset->category_ns[c][row] : 0;
		struct dataset_blame blame = {0};
		struct folded folded = {.type = dataset->type[row], .category = (enum wl_category)c, .own = true};

		if (!ns || c == WL_CATEGORY_ONCPU)
			continue;
		if (dataset->blame[c])
			blame = dataset->blame[c][row];
		folded.object = dataset_text(dataset, blame.object);
		folded.who = dataset_text(dataset, blame.who);
		folded.ns = dataset->weight[row] * (double)ns;
		/* The highest bit: not a key of the paths. */
		if (add(lines, 1ULL << 63 | (uint64_t)folded.type << 8 | (uint64_t)c,
			(uint64_t)blame.object << 32 | blame.who, &folded))
			return -ENOMEM;
	}
	return 0;
}

ORDER(compare_folded, struct folded, BY(b->ns, a->ns));

int export_folded(FILE *out, const struct dataset *dataset, const struct paths *paths)
{
	struct folded_lines lines = {0};
	int err = paths ? add_paths(&lines, dataset, paths) : 0;

	for (size_t row = 0; row < dataset->row_cnt && !err; row++)
		if (!paths || !paths->ranked[row])
			err = add_row(&lines, dataset, row);
	if (!err)
		vec_sort(&lines, compare_folded);
	for (size_t i = 0; i < lines.cnt && !err; i++)
		put_line(out, dataset, &lines.items[i]);
	idmap__free(&lines.ids);
	vec_free(&lines);
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
