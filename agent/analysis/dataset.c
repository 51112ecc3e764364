// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/dataset_build.h"

#include "base/names.h"
#include "base/order.h"
#include "base/progress.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dataset_build__init(struct dataset_build *build, struct dataset *dataset, const struct dataset_filter *filter)
{
	uint32_t empty;

	*build = (struct dataset_build){.dataset = dataset, .filter = filter};
	*dataset = (struct dataset){.pid = -1};
	build->arena = build->strings.arena = dataset->arena = arena__new();
	if (!build->arena)
		return -ENOMEM;
	return intern__id(&build->strings, "", &empty);
}

int dataset_build__block(struct dataset_build *build, const struct shard_block *block)
{
	if (!strcmp(block->table, "interval"))
		return dataset_build__interval_block(build, block);
	if (!strcmp(block->table, "session"))
		return dataset_build__session_block(build, block);
	if (!strcmp(block->table, "loss"))
		return dataset_build__loss_block(build, block);
	if (!strcmp(block->table, "module"))
		return dataset_build__module_block(build, block);
	if (!strcmp(block->table, "received"))
		return dataset_build__received_block(build, block);
	return 0;
}

/* Cuts an array that came from malloc() to what is used of it and gives it to the arena. */
static void *settle(struct dataset_build *build, void *array, size_t cnt, size_t item_sz, int *err)
{
	void *cut = array && cnt ? realloc(array, cnt * item_sz) : NULL;

	if (cut)
		array = cut;
	if (array && arena__adopt(build->arena, array)) {
		*err = -ENOMEM;
		return NULL;
	}
	return array;
}

#define SETTLE(build, array, cnt, err) ((array) = settle((build), (array), (cnt), sizeof(*(array)), (err)))

static int settle_columns(struct dataset_build *build)
{
	struct dataset *dataset = build->dataset;
	size_t rows = dataset->row_cnt, words = (rows + 63) / 64;
	int err = 0;

	SETTLE(build, dataset->sid, rows, &err);
	SETTLE(build, dataset->trace_id, rows, &err);
	SETTLE(build, dataset->begin_ts, rows, &err);
	SETTLE(build, dataset->latency_ns, rows, &err);
	SETTLE(build, dataset->weight, rows, &err);
	SETTLE(build, dataset->hw_factor, rows, &err);
	SETTLE(build, dataset->type, rows, &err);
	SETTLE(build, dataset->flags, rows, &err);
	SETTLE(build, dataset->window, rows, &err);
	SETTLE(build, dataset->session, rows, &err);
	for (int c = 0; c < WL_CATEGORY_CNT; c++) {
		dataset->category_ns[c] = SETTLE(build, build->category[c].values, rows, &err);
		SETTLE(build, dataset->blame[c], rows, &err);
	}
	for (size_t e = 0; e < BUILD_EVENT_CNT; e++) {
		SETTLE(build, build->events[e].values, rows, &err);
		SETTLE(build, build->events[e].missing, words, &err);
	}
	build->settled = true;
	dataset->strings = settle(build, build->strings.strings, build->strings.cnt, sizeof(char *), &err);
	dataset->string_cnt = build->strings.cnt;
	build->strings.strings = NULL;
	return err;
}

static int add_event(struct dataset_build *build, size_t idx, const char *name, const char *suffix)
{
	struct dataset *dataset = build->dataset;
	char *full = arena__printf(build->arena, "%s%s", name, suffix);

	if (!full)
		return -ENOMEM;
	dataset->events[dataset->event_cnt++] = (struct dataset_event){
		.name = full,
		.is_length = !strcmp(suffix, ".ns"),
		.values = build->events[idx].values,
		.missing = build->events[idx].missing,
	};
	return 0;
}

static int list_events(struct dataset_build *build)
{
	static const char *const hwcounters[] = {
#define HWCOUNTER(id, name, type, config, group, rotation) name,
#include <whylate/hwcounter.def>
	};
	int err = 0;

	if (build->filter && build->filter->without_events)
		return 0;
	build->dataset->events = arena__alloc(build->arena, BUILD_EVENT_CNT, sizeof(*build->dataset->events));
	if (!build->dataset->events)
		return -ENOMEM;
	for (int s = 0; s < WL_STATE_CNT && !err; s++) {
		if (s == WL_STATE_UNKNOWN)
			continue;
		err = add_event(build, build_event_length(s), state_name(s), ".ns");
		if (!err)
			err = add_event(build, build_event_count(s), state_name(s), ".count");
	}
	for (int t = 0; t < WL_TALLY_CNT && !err; t++)
		err = add_event(build, build_event_tally(t), tally_name(t), ".count");
	for (int h = 0; h < SHARD_HW_CNT && !err; h++)
		err = add_event(build, build_event_hw(h), hwcounters[h], "");
	return err;
}

static int add_counted_note(struct dataset_build *build, uint64_t cnt, const char *what)
{
	char *note;

	if (!cnt)
		return 0;
	note = arena__printf(build->arena, "%llu intervals %s", (unsigned long long)cnt, what);
	return note ? dataset_build__note(build, note) : -ENOMEM;
}

int dataset_build__end(struct dataset_build *build)
{
	int err = settle_columns(build);

	if (!err)
		err = list_events(build);
	dataset_build__loss_end(build);
	if (!err)
		err = dataset_build__reweight(build);
	if (!err)
		err = dataset_build__hw_end(build);
	if (!err)
		err = dataset_build__session_end(build);
	if (!err)
		err = dataset_build__hosts_end(build);
	if (!err)
		err = add_counted_note(build, build->bad_times, "were left out: they end before they begin");
	if (!err)
		err = add_counted_note(build, build->bad_weights,
				       "were left out: their weight is not a positive number");
	if (!err)
		err = add_counted_note(build, build->too_long, "were left out: their parts are longer than the whole");
	if (!err)
		err = add_counted_note(build, build->clockless,
				       "are taken whatever their time: their recording does not tell it");
	if (!err)
		err = add_counted_note(build, build->no_columns, "were left out: their times were not recorded");
	if (!err)
		err = add_counted_note(build, build->with_residual,
				       "have time that no state accounts for: it is in `other`");
	return err;
}

void dataset_build__free(struct dataset_build *build, bool failed)
{
	struct dataset *dataset = build->dataset;

	for (size_t i = 0; i < build->sessions.cnt; i++) {
		vec_free(&build->sessions.items[i].keys);
		vec_free(&build->sessions.items[i].periods);
	}
	vec_free(&build->sessions);
	vec_free(&build->losses);
	vec_free(&build->loss_rows);
	vec_free(&build->modules);
	idmap__free(&build->loss_ids);
	idmap__free(&build->session_ids);
	intern__free(&build->strings);
	if (!failed)
		return;
	if (!build->settled) {
		free(dataset->sid);
		free(dataset->trace_id);
		free(dataset->begin_ts);
		free(dataset->latency_ns);
		free(dataset->weight);
		free(dataset->hw_factor);
		free(dataset->type);
		free(dataset->flags);
		free(dataset->window);
		free(dataset->session);
		for (int c = 0; c < WL_CATEGORY_CNT; c++) {
			free(build->category[c].values);
			free(dataset->blame[c]);
		}
		for (size_t e = 0; e < BUILD_EVENT_CNT; e++) {
			free(build->events[e].values);
			free(build->events[e].missing);
		}
	}
	dataset_free(dataset);
}

/* The reader's list of damage grows with the reader and goes with it: the dataset keeps copies. */
static int copy_damage(struct dataset_build *build, const struct shard_reader *reader)
{
	const struct shard_damage *damage;
	size_t cnt = shard_reader__damage(reader, &damage);
	struct shard_damage *copies = arena__alloc(build->arena, cnt, sizeof(*copies));

	if (!copies)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		copies[i] = damage[i];
		copies[i].path = arena__strdup(build->arena, damage[i].path);
		copies[i].what = arena__strdup(build->arena, damage[i].what);
		if (!copies[i].path || !copies[i].what)
			return -ENOMEM;
	}
	build->dataset->damage = copies;
	build->dataset->damage_cnt = cnt;
	return 0;
}

static int read_tables(struct dataset_build *build, struct shard_reader *reader, const char *const *tables,
		       size_t table_cnt)
{
	const struct shard_block *block;
	int err = shard_reader__select(reader, tables, table_cnt);

	while (!err && (err = shard_reader__next(reader, &block)) > 0)
		err = dataset_build__block(build, block);
	return err;
}

static bool any_session_is_wanted(const struct dataset_build *build)
{
	for (size_t i = 0; i < build->sessions.cnt; i++)
		if (!build->sessions.items[i].unwanted)
			return true;
	return false;
}

int dataset_load(struct dataset *dataset, struct shard_reader *reader, const struct dataset_filter *filter)
{
	static const char *const facts[] = {"session", "loss"}, *const rest[] = {"interval", "module", "received"};
	struct dataset_build build;
	int err;

	progress_at("reading requests");
	err = dataset_build__init(&build, dataset, filter);
	/* Whose and when a row is must be known before it is met, and files may hold them in any order. */
	if (!err)
		err = read_tables(&build, reader, facts, sizeof(facts) / sizeof(facts[0]));
	if (err)
		goto cleanup;
	dataset_build__choose_sessions(&build);
	err = dataset_build__loss_begin(&build);
	if (!err)
		err = dataset_build__own(&build);
	if (err)
		goto cleanup;
	err = read_tables(&build, reader, rest, sizeof(rest) / sizeof(rest[0]));
	if (!err && !build.is_recording)
		err = -ENOENT;
	if (!err && build.sessions.cnt && !any_session_is_wanted(&build))
		err = -ESRCH;
	if (!err)
		err = dataset_build__end(&build);
	if (!err)
		err = copy_damage(&build, reader);
cleanup:
	dataset_build__free(&build, err != 0);
	return err;
}

bool dataset_is_own(const struct dataset *dataset, uint32_t session, uint32_t pid)
{
	for (size_t i = 0; pid && i < dataset->own_cnt; i++)
		if (dataset->own[i].session == session && dataset->own[i].pid == pid)
			return true;
	return false;
}

void dataset_free(struct dataset *dataset)
{
	arena__free(dataset->arena);
	*dataset = (struct dataset){.pid = -1};
}

ORDER(compare_names, char *const, strcmp(*a, *b));

bool dataset_type_fits(const char *type, const char *asked)
{
	const char *request = strchr(type, ' ');
	size_t source_len = request ? (size_t)(request - type) : strlen(type);

	if (!strcmp(type, asked) || (strlen(asked) == source_len && !strncmp(type, asked, source_len)))
		return true;
	if (request && (!strcmp(request + 1, asked) || !fnmatch(asked, request + 1, 0)))
		return true;
	return !fnmatch(asked, type, 0);
}

void dataset_list_types(const struct dataset *dataset, char *list, size_t sz)
{
	const char **names = calloc(dataset->string_cnt + 1, sizeof(*names));
	size_t cnt = 0, len = 0;

	*list = '\0';
	for (size_t row = 0; names && row < dataset->row_cnt; row++)
		names[dataset->type[row]] = dataset->strings[dataset->type[row]];
	for (size_t i = 0; names && i < dataset->string_cnt; i++)
		if (names[i] && *names[i])
			names[cnt++] = names[i];
	if (cnt)
		qsort(names, cnt, sizeof(*names), compare_names);
	for (size_t i = 0; i < cnt; i++) {
		bool fits = len + strlen(names[i]) + sizeof(", , …") < sz;

		len += (size_t)snprintf(list + len, sz - len, "%s%s", i ? ", " : "", fits ? names[i] : "…");
		if (!fits)
			break;
	}
	free(names);
}
