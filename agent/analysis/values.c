// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/values.h"
#include "base/arena.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/vec.h"
#include "shard/columns.h"

#include <errno.h>
#include <string.h>

static int session_of(struct values *values, uint64_t id, uint32_t *session)
{
	if (idmap__id(&values->session_of, id, 0, session))
		return -ENOMEM;
	return *session == values->session_ids.cnt && vec_push(&values->session_ids, id) ? -ENOMEM : 0;
}

/* A copy that lives as long as the values; NULL for nothing. */
static int copy_text(struct values *values, const struct shard_block_column *column, uint32_t row, const char **text)
{
	uint32_t id;

	*text = NULL;
	if (!*column_text(column, row))
		return 0;
	if (intern__id(&values->strings, column_text(column, row), &id))
		return -ENOMEM;
	*text = values->strings.strings[id];
	return 0;
}

/* A number that equal names have in all recordings. */
static int module_of(struct values *values, const char *name, uint32_t *module)
{
	*module = VALUE_NONE;
	return name ? intern__id(&values->strings, name, module) : 0;
}

static uint8_t kind_of(const char *name)
{
	static const char *const names[VALUE_TYPE_CNT] = VALUE_TYPE_NAMES;

	for (uint8_t kind = 0; kind < VALUE_TYPE_CNT; kind++)
		if (!strcmp(name, names[kind]))
			return kind;
	return VALUE_TYPE_CNT;
}

static uint8_t tags_of(const char *text)
{
	static const char *const names[VALUE_TAG_CNT] = VALUE_TAG_NAMES;
	uint8_t tags = 0;

	while (*text) {
		size_t len = strcspn(text, ",");

		for (int t = 0; t < VALUE_TAG_CNT; t++)
			if (strlen(names[t]) == len && !strncmp(text, names[t], len))
				tags |= (uint8_t)(1 << t);
		text += len + (text[len] == ',');
	}
	return tags;
}

/*
 * (session, id of its file) → index, where equal things of several recordings have one: `ids` numbers the pairs,
 * `indexes` has what each stands for.
 */
static int add_id(struct idmap *ids, uint32_t session, uint64_t id, uint32_t index, value_indexes *indexes)
{
	uint32_t number;

	if (idmap__id(ids, session, id, &number))
		return -ENOMEM;
	if (number < indexes->cnt)
		return 0;
	return vec_push(indexes, index) ? -ENOMEM : 0;
}

static bool find_id(const struct idmap *ids, uint32_t session, uint64_t id, const value_indexes *indexes,
		    uint32_t *index)
{
	uint32_t number;

	if (!idmap__find(ids, session, id, &number) || number >= indexes->cnt)
		return false;
	*index = indexes->items[number];
	return true;
}

static int add_part(struct values *values, uint32_t session, uint32_t index, uint32_t part)
{
	uint32_t id;

	if (idmap__id(&values->part_ids, session, index, &id))
		return -ENOMEM;
	return id == values->parts.cnt && vec_push(&values->parts, part) ? -ENOMEM : 0;
}

/* What two recordings have the same of. 0 or -ENOMEM. */
static int key_of(struct values *values, const struct sampled_variable *variable, size_t name_len, uint32_t *string)
{
	char *key = arena__printf(values->arena, "%s\n%s\n%s\n%s\n%.*s", variable->module ? variable->module : "",
				  variable->file ? variable->file : "", variable->function ? variable->function : "",
				  variable->inlined ? variable->inlined : "", (int)name_len,
				  variable->name ? variable->name : "");

	return !key || intern__id(&values->strings, key, string) ? -ENOMEM : 0;
}

/* Once all variables are known. */
static int find_bases(struct values *values)
{
	for (size_t v = 0; v < values->variables.cnt; v++) {
		struct sampled_variable *variable = &values->variables.items[v];
		const char *arrow = variable->name ? strstr(variable->name, "->") : NULL;
		uint32_t string, index;

		variable->base = VALUE_NONE;
		if (!arrow)
			continue;
		if (key_of(values, variable, (size_t)(arrow - variable->name), &string))
			return -ENOMEM;
		if (idmap__find(&values->variable_keys, string, 0, &index))
			variable->base = index;
	}
	return 0;
}

static int take_variable(struct values *values, const struct sampled_variable *variable, uint32_t session, uint64_t id,
			 uint32_t part)
{
	uint32_t string, index;

	if (key_of(values, variable, variable->name ? strlen(variable->name) : 0, &string) ||
	    idmap__id(&values->variable_keys, string, 0, &index))
		return -ENOMEM;
	if (index == values->variables.cnt && vec_push(&values->variables, *variable))
		return -ENOMEM;
	if (add_id(&values->variable_of, session, id, index, &values->variable_indexes))
		return -ENOMEM;
	return add_part(values, session, index, part);
}

static int take_variables(struct values *values, uint32_t session, const struct shard_block *block)
{
	const struct variable_columns col = block_columns(block, VARIABLE, variable);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		struct sampled_variable variable = {
			.facts = {.kind = kind_of(column_text(col.kind, row)),
				  .tags = tags_of(column_text(col.tags, row)),
				  .size = (uint8_t)(column_u64(col.size, row) & 0xff)},
			.line = (uint32_t)column_u64(col.line, row),
		};

		uint64_t part = column_u64(col.part, row);

		if (variable.facts.kind == VALUE_TYPE_CNT || !*column_text(col.name, row) || variable.facts.size < 1 ||
		    variable.facts.size > 8) {
			values->bad_rows++;
			continue;
		}
		if (copy_text(values, col.module, row, &variable.module) ||
		    copy_text(values, col.file, row, &variable.file) ||
		    copy_text(values, col.function, row, &variable.function) ||
		    copy_text(values, col.inlined, row, &variable.inlined) ||
		    copy_text(values, col.name, row, &variable.name) ||
		    copy_text(values, col.type, row, &variable.type) ||
		    module_of(values, variable.module, &variable.module_id) ||
		    take_variable(values, &variable, session, column_u64(col.id, row),
				  column_is_null(col.part, row) || part >= VALUE_NONE ? VALUE_NONE : (uint32_t)part))
			return -ENOMEM;
	}
	return 0;
}

static int take_places(struct values *values, uint32_t session, const struct shard_block *block)
{
	const struct place_columns col = block_columns(block, PLACE, place);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		struct sampled_place place = {.line = (uint32_t)column_u64(col.line, row)};
		const char *name, *module;
		uint32_t string;

		if (copy_text(values, col.file, row, &place.file) || copy_text(values, col.function, row, &name) ||
		    copy_text(values, col.module, row, &module) || module_of(values, module, &place.module))
			return -ENOMEM;
		if (!name) {
			values->bad_rows++;
			continue;
		}
		if (intern__id(&values->strings, name, &string) ||
		    idmap__id(&values->function_ids, string, 0, &place.function))
			return -ENOMEM;
		if ((place.function == values->functions.cnt && vec_push(&values->functions, name)) ||
		    add_id(&values->place_of, session, column_u64(col.id, row), (uint32_t)values->places.cnt,
			   &values->place_indexes) ||
		    vec_push(&values->places, place))
			return -ENOMEM;
	}
	return 0;
}

static int take_turns(struct values *values, uint32_t session, const struct shard_block *block)
{
	const struct value_plan_columns col = block_columns(block, VALUE_PLAN, value_plan);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		uint64_t part = column_u64(col.part, row);
		struct values_turn turn = {.ts = column_u64(col.ts, row),
					   .session = session,
					   .part = part >= VALUE_NONE ? VALUE_NONE : (uint32_t)part,
					   .is_read = column_u64(col.is_read, row)};

		if (vec_push(&values->turns, turn))
			return -ENOMEM;
	}
	return 0;
}

static int take_values(struct values *values, uint32_t session, const struct shard_block *block)
{
	const struct value_columns col = block_columns(block, VALUE, value);

	for (uint32_t row = 0; row < block->row_cnt; row++) {
		uint64_t turn = column_u64(col.turn, row);
		struct sampled_value taken = {
			.ts = column_u64(col.ts, row),
			.sid = column_u64(col.sid, row),
			.value = column_u64(col.value, row),
			.session = session,
			.tid = (uint32_t)column_u64(col.tid, row),
			.variable = VALUE_NONE,
			.depth = (uint8_t)(column_u64(col.depth, row) & 0xff),
			.turn = (uint8_t)(turn > UINT8_MAX ? UINT8_MAX : turn),
		};

		if (!find_id(&values->place_of, session, column_u64(col.place, row), &values->place_indexes,
			     &taken.place) ||
		    (!column_is_null(col.variable, row) &&
		     !find_id(&values->variable_of, session, column_u64(col.variable, row), &values->variable_indexes,
			      &taken.variable))) {
			values->bad_rows++;
			continue;
		}
		if (vec_push(&values->rows, taken))
			return -ENOMEM;
	}
	return 0;
}

static int read_tables(struct values *values, struct shard_reader *reader, const char *const *tables, size_t cnt)
{
	const struct shard_block *block;
	uint32_t session;
	int err = shard_reader__select(reader, tables, cnt);

	while (!err && (err = shard_reader__next(reader, &block)) > 0) {
		err = session_of(values, block->session_id, &session);
		if (err)
			break;
		err = !strcmp(block->table, "variable")     ? take_variables(values, session, block)
		      : !strcmp(block->table, "place")      ? take_places(values, session, block)
		      : !strcmp(block->table, "value_plan") ? take_turns(values, session, block)
							    : take_values(values, session, block);
	}
	return err;
}

ORDER(compare_rows, struct sampled_value, BY(a->session, b->session), BY(a->tid, b->tid), BY(a->ts, b->ts),
      BY(a->depth, b->depth));

int values_load(struct values *values, struct shard_reader *reader)
{
	static const char *const names[] = {"variable", "place", "value_plan"}, *const rows[] = {"value"};
	int err;

	*values = (struct values){.arena = arena__new()};
	values->strings.arena = values->arena;
	if (!values->arena)
		return -ENOMEM;
	err = read_tables(values, reader, names, 3);
	if (!err && values->places.cnt)
		err = read_tables(values, reader, rows, 1);
	if (!err)
		vec_sort(&values->rows, compare_rows);
	if (!err)
		err = find_bases(values);
	return err ? err : values_find_states(values);
}

void values_free(struct values *values)
{
	idmap__free(&values->session_of);
	idmap__free(&values->variable_of);
	idmap__free(&values->place_of);
	idmap__free(&values->variable_keys);
	idmap__free(&values->function_ids);
	vec_free(&values->variable_indexes);
	vec_free(&values->place_indexes);
	vec_free(&values->session_ids);
	vec_free(&values->variables);
	vec_free(&values->places);
	vec_free(&values->functions);
	vec_free(&values->rows);
	idmap__free(&values->part_ids);
	vec_free(&values->parts);
	vec_free(&values->turns);
	vec_free(&values->states);
	vec_free(&values->since);
	intern__free(&values->strings);
	arena__free(values->arena);
	*values = (struct values){0};
}

const struct sampled_value *values_at(const struct values *values, uint64_t session_id, uint32_t tid, uint64_t ts,
				      size_t *cnt)
{
	struct sampled_value least = {.tid = tid, .ts = ts};
	size_t low, end;

	*cnt = 0;
	if (!idmap__find(&values->session_of, session_id, 0, &least.session))
		return NULL;
	low = search_first(0, values->rows.cnt, mid, compare_rows(&values->rows.items[mid], &least) >= 0);
	for (end = low; end < values->rows.cnt && values->rows.items[end].session == least.session &&
			values->rows.items[end].tid == tid && values->rows.items[end].ts == ts;)
		end++;
	*cnt = end - low;
	return *cnt ? &values->rows.items[low] : NULL;
}
