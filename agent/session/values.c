// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/values.h"

#include "base/idmap.h"
#include "base/log.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one stack. */
#define TAKEN_MAX 512
/* Modules with variables. */
#define SCHEMAS_MAX VALUE_MODULES_MAX
/* Words that wait for their stacks, which come right behind them on the same CPU. */
#define WAITING_MAX 64

struct module {
	char *name, *key; /* base name; build id, or its path */
	struct value_schema schema;
	struct value_reader *reader;
	uint32_t first;                  /* the number of its first variable */
	uint32_t first_range, range_cnt; /* in the plan */
};

/* What was read at one tick. */
struct words {
	uint64_t ts;
	uint32_t tid;
	size_t cnt;
	struct value_word items[WL_VALUE_WORDS_MAX];
};

/* A program counter that was met. */
struct place {
	const struct module *module; /* NULL: none with a schema */
	uint64_t addr;
	char *function;
	bool written;
};

/* A process that was sampled. */
struct met {
	pid_t pid;
	bool has_schema; /* for a module of it */
};

struct sampled_values {
	struct sampled_values_opts opts;
	struct module *modules[SCHEMAS_MAX];
	size_t module_cnt;
	VEC(bool) variables; /* by number: its row is written */
	VEC(struct place) places;
	struct idmap place_ids;
	struct sampled_values_counts counts;
	struct value_plan plan;
	VEC(struct met) met;
	struct words waiting[WAITING_MAX];
	size_t waiting_pos;
	struct shard_row row;
	struct {
		size_t cnt;
		struct stack_value items[TAKEN_MAX];
	} taken;
};

/* --- schemas ------------------------------------------------------------------------------------------------------ */

static void module__free(struct module *module)
{
	if (!module)
		return;
	value_reader__free(module->reader);
	value_schema_free(&module->schema);
	free(module->name);
	free(module->key);
	free(module);
}

/* The addresses as linked that its ranges are in: outside of them nothing is read relative to registers. */
static uint64_t module_begin(const struct sampled_values *values, const struct module *module)
{
	return module->range_cnt ? values->plan.ranges.items[module->first_range].begin : 0;
}

static uint64_t module_end(const struct sampled_values *values, const struct module *module)
{
	return module->range_cnt ? values->plan.ranges.items[module->first_range + module->range_cnt - 1].end : 1;
}

static const char *key_of(const struct program_module *of)
{
	return of->build_id && *of->build_id ? of->build_id : of->path;
}

/* 1: it has variables; 0: it has none, or no debugging information; -ENOMEM. */
static int add_module(struct sampled_values *values, const struct program_module *of)
{
	struct value_schema_opts opts = {
		.path = of->file, .debuginfo_dir = values->opts.debuginfo_dir, .either = values->opts.glob};
	struct module *module;
	int err;

	if (!of->file || values->module_cnt == SCHEMAS_MAX)
		return 0;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	err = value_schema_make(&module->schema, &opts);
	if (err || !module->schema.variables.cnt) {
		log_debug("values: %s: %s", of->path, err ? strerror(-err) : "no such variables");
		module__free(module);
		return err == -ENOMEM ? err : 0;
	}
	module->first = (uint32_t)values->variables.cnt;
	module->name = strdup(of->name);
	module->key = strdup(key_of(of));
	err = module->name && module->key ? value_reader__new(&module->schema, &module->reader) : -ENOMEM;
	if (!err)
		err = value_plan_add(&values->plan, &module->schema, (uint32_t)values->module_cnt, &module->first_range,
				     &module->range_cnt);
	if (!err)
		err = vec_reserve(&values->variables, module->schema.variables.cnt);
	if (err) {
		module__free(module);
		return err;
	}
	memset(values->variables.items + values->variables.cnt, 0, module->schema.variables.cnt);
	values->variables.cnt += module->schema.variables.cnt;
	values->counts.variables += module->schema.variables.cnt;
	values->counts.functions += module->schema.functions;
	values->modules[values->module_cnt++] = module;
	return 1;
}

int sampled_values__new(const struct sampled_values_opts *opts, struct sampled_values **made)
{
	struct sampled_values *values = calloc(1, sizeof(*values));
	uint32_t cnt = program__module_cnt(opts->program);
	int err = 0;

	if (!values)
		return -ENOMEM;
	values->opts = *opts;
	for (uint32_t m = 0; m < cnt && err >= 0; m++) {
		uint32_t first, functions;

		/* The file is read for its build id. */
		if (!program__module_functions(opts->program, m, &first, &functions))
			err = add_module(values, program__module(opts->program, m));
	}
	if (err >= 0 && !values->module_cnt)
		err = -ENODATA;
	if (err < 0) {
		sampled_values__free(values);
		return err;
	}
	values->counts.globals = values->plan.globals.cnt;
	values->counts.left_out = values->plan.left_out;
	*made = values;
	return 0;
}

void sampled_values__free(struct sampled_values *values)
{
	if (!values)
		return;
	for (size_t m = 0; m < values->module_cnt; m++)
		module__free(values->modules[m]);
	for (size_t p = 0; p < values->places.cnt; p++)
		free(values->places.items[p].function);
	vec_free(&values->variables);
	vec_free(&values->places);
	vec_free(&values->met);
	value_plan_free(&values->plan);
	idmap__free(&values->place_ids);
	free(values);
}

uint32_t sampled_values__depth(const struct sampled_values *values)
{
	return values->opts.depth;
}

static struct module *module_of(const struct sampled_values *values, const struct program_module *of)
{
	for (size_t m = 0; of && m < values->module_cnt; m++)
		if (!strcmp(values->modules[m]->key, key_of(of)))
			return values->modules[m];
	return NULL;
}

/* --- what the kernel reads ------------------------------------------------------------------------------------------
 */

const struct value_plan *sampled_values__plan(const struct sampled_values *values)
{
	return &values->plan;
}

void sampled_values__changed(struct sampled_values *values, pid_t pid)
{
	for (size_t i = 0; i < values->met.cnt; i++)
		if (values->met.items[i].pid == pid)
			values->met.items[i--] = values->met.items[--values->met.cnt];
	if (values->opts.place)
		values->opts.place(values->opts.owner, pid, NULL);
}

bool sampled_values__met(struct sampled_values *values, pid_t pid, struct program *program)
{
	struct value_image image = {0};
	struct met met = {.pid = pid};

	if (!program)
		return false;
	for (size_t i = 0; i < values->met.cnt; i++)
		if (values->met.items[i].pid == pid)
			return values->met.items[i].has_schema;
	for (uint32_t m = 0; m < program__module_cnt(program); m++) {
		const struct program_module *of = program__module(program, m);
		const struct module *module = module_of(values, of);
		size_t idx = 0;

		if (!module || of->gone)
			continue;
		while (values->modules[idx] != module)
			idx++;
		image.modules[idx] = (struct value_module){
			.begin = of->bias + module_begin(values, module),
			.end = of->bias + module_end(values, module),
			.bias = of->bias,
			.first_range = module->first_range,
			.range_cnt = module->range_cnt,
		};
		met.has_schema = true;
	}
	/* Without memory it is met again. */
	(void)vec_push(&values->met, met);
	if (met.has_schema && values->opts.place)
		values->opts.place(values->opts.owner, pid, &image);
	return met.has_schema;
}

void sampled_values__take_words(struct sampled_values *values, const struct wl_values_record *record)
{
	struct words *words = &values->waiting[values->waiting_pos++ % WAITING_MAX];
	size_t room = (record->header.sz - offsetof(struct wl_values_record, words)) / sizeof(record->words[0]);

	words->ts = record->ts;
	words->tid = record->tid;
	words->cnt = 0;
	values->counts.faulted += record->faulted;
	for (size_t i = 0; i < record->cnt && i < room && i < WL_VALUE_WORDS_MAX; i++)
		words->items[words->cnt++] = (struct value_word){.addr = record->words[i].addr,
								 .bytes = record->words[i].bytes,
								 .size = (uint8_t)record->words[i].sz};
}

static void find_words(struct sampled_values *values, const struct value_stack *stack, struct value_memory *memory)
{
	for (size_t i = 0; i < WAITING_MAX; i++) {
		struct words *words = &values->waiting[i];

		if (words->ts != stack->ts || words->tid != stack->tid || !words->ts)
			continue;
		memory->words = words->items;
		memory->word_cnt = words->cnt;
		return;
	}
}

/* --- values ------------------------------------------------------------------------------------------------------- */

struct taking {
	struct sampled_values *values;
	const struct module *module;
	uint32_t place, depth;
};

static void take(struct sampled_values *values, const struct stack_value *value)
{
	if (values->taken.cnt < TAKEN_MAX)
		values->taken.items[values->taken.cnt++] = *value;
}

static int take_value(void *owner, uint32_t variable, uint64_t bytes)
{
	const struct taking *taking = owner;

	take(taking->values, &(struct stack_value){.value = bytes,
						   .variable = taking->module->first + variable,
						   .place = taking->place,
						   .depth = taking->depth});
	return 0;
}

static int place_of(struct sampled_values *values, const struct value_stack *stack, const struct module *module,
		    uint64_t addr, uint64_t runtime_addr, uint32_t *id)
{
	struct place place = {.module = module, .addr = addr};

	if (idmap__id(&values->place_ids, module ? (uintptr_t)module : (uintptr_t)stack->program, addr, id))
		return -ENOMEM;
	if (*id < values->places.cnt)
		return 0;
	if (vec_reserve(&values->places, 1))
		return -ENOMEM;
	place.function = strdup(stack->name(stack->owner, runtime_addr));
	if (!place.function)
		return -ENOMEM;
	values->places.items[values->places.cnt++] = place;
	return 0;
}

static int take_frame(struct sampled_values *values, const struct value_stack *stack, size_t depth,
		      const struct value_memory *memory)
{
	const struct unwind_frame *at = &stack->frames[depth];
	uint64_t addr = unwind_frame_addr(at);
	const struct program_module *of;
	struct value_frame frame = {.regs = &stack->regs[depth], .is_caller = depth > 0};
	struct taking taking = {.values = values, .depth = (uint32_t)depth};
	uint32_t number = PROGRAM_NONE;
	int err;

	if (stack->program)
		program__function_at_runtime(stack->program, addr, &number);
	of = number == PROGRAM_NONE ? NULL : program__module(stack->program, number);
	taking.module = module_of(values, of);
	frame.bias = of ? of->bias : 0;
	frame.addr = addr - frame.bias;
	/* The caller's stack pointer is this frame's canonical frame address. */
	if (depth + 1 < stack->frame_cnt && at[1].how == UNWIND_BY_CFI)
		frame.cfa = at[1].cfa;
	err = place_of(values, stack, taking.module, frame.addr, addr, &taking.place);
	if (err)
		return err;
	take(values,
	     &(struct stack_value){.variable = STACK_NO_VARIABLE, .place = taking.place, .depth = (uint32_t)depth});
	if (!taking.module) {
		values->counts.no_schema++;
		return 0;
	}
	err = value_reader__locals(taking.module->reader, &frame, memory, &values->counts.reads, take_value, &taking);
	/* Globals were read at the innermost frame. */
	for (uint32_t m = 0; !depth && !err && stack->program && m < program__module_cnt(stack->program); m++) {
		of = program__module(stack->program, m);
		taking.module = module_of(values, of);
		if (taking.module)
			err = value_reader__globals(taking.module->reader, of->bias, memory, &values->counts.reads,
						    take_value, &taking);
	}
	return err;
}

/* A row without a variable is superfluous where the frame has a value. */
static size_t drop_superfluous(struct sampled_values *values)
{
	struct stack_value *items = values->taken.items;
	size_t kept = 0;

	for (size_t i = 0; i < values->taken.cnt; i++)
		if (items[i].variable != STACK_NO_VARIABLE || i + 1 == values->taken.cnt ||
		    items[i + 1].depth != items[i].depth)
			items[kept++] = items[i];
	return values->taken.cnt = kept;
}

struct stack_values *sampled_values__take(struct sampled_values *values, const struct value_stack *stack)
{
	struct value_memory memory = {.stack = stack->memory};
	struct stack_values *made;
	size_t cnt;

	values->taken.cnt = 0;
	find_words(values, stack, &memory);
	for (size_t depth = 0; depth < stack->frame_cnt && depth <= values->opts.depth; depth++) {
		/* Beyond a guess registers say nothing. */
		if (stack->frames[depth].how == UNWIND_BY_SCAN)
			break;
		if (take_frame(values, stack, depth, &memory))
			return NULL;
	}
	cnt = drop_superfluous(values);
	made = malloc(sizeof(*made) + cnt * sizeof(made->items[0]));
	if (!made)
		return NULL;
	made->cnt = cnt;
	memcpy(made->items, values->taken.items, cnt * sizeof(made->items[0]));
	return made;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void set_text(struct shard_row *row, uint32_t column, const char *text)
{
	row->values[column].str = text;
	if (!text || !*text)
		shard_row__set_null(row, column);
}

static int write_variable(struct sampled_values *values, uint32_t number)
{
	static const char *const tag_names[VALUE_TAG_CNT] = VALUE_TAG_NAMES;
	struct shard_row *row = &values->row;
	const struct value_variable *variable;
	const struct module *module = NULL;
	char tags[64] = "";

	if (values->variables.items[number])
		return 0;
	for (size_t m = 0; m < values->module_cnt && values->modules[m]->first <= number; m++)
		module = values->modules[m];
	variable = &module->schema.variables.items[number - module->first];
	for (int t = 0; t < VALUE_TAG_CNT; t++)
		if (variable->tags >> t & 1)
			snprintf(tags + strlen(tags), sizeof(tags) - strlen(tags), "%s%s", *tags ? "," : "",
				 tag_names[t]);
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[VARIABLE_ID].u64 = number;
	row->values[VARIABLE_MODULE].str = module->name;
	set_text(row, VARIABLE_BUILD_ID, module->schema.build_id);
	row->values[VARIABLE_FILE].str = variable->file;
	row->values[VARIABLE_LINE].u64 = variable->line;
	set_text(row, VARIABLE_FUNCTION, variable->function);
	set_text(row, VARIABLE_INLINED, variable->inlined);
	row->values[VARIABLE_NAME].str = variable->name;
	row->values[VARIABLE_TYPE].str = variable->type;
	row->values[VARIABLE_KIND].str = value_type_names[variable->kind];
	row->values[VARIABLE_SIZE].u64 = variable->size;
	row->values[VARIABLE_TAGS].str = tags;
	values->variables.items[number] = true;
	return values->opts.append(values->opts.owner, SHARD_TABLE_VARIABLE, row);
}

static int write_place(struct sampled_values *values, uint32_t id)
{
	struct place *place = &values->places.items[id];
	struct shard_row *row = &values->row;
	const char *file = NULL;
	uint32_t line = 0;

	if (place->written)
		return 0;
	place->written = true;
	if (place->module)
		value_schema_line(&place->module->schema, place->addr, &file, &line);
	memset(row->nulls, 0, sizeof(row->nulls));
	row->values[PLACE_ID].u64 = id;
	set_text(row, PLACE_MODULE, place->module ? place->module->name : NULL);
	row->values[PLACE_ADDR].u64 = place->addr;
	row->values[PLACE_FUNCTION].str = place->function;
	set_text(row, PLACE_FILE, file);
	row->values[PLACE_LINE].u64 = line;
	if (!file)
		shard_row__set_null(row, PLACE_LINE);
	return values->opts.append(values->opts.owner, SHARD_TABLE_PLACE, row);
}

int sampled_values__write(struct sampled_values *values, const struct stack_sample *sample)
{
	struct shard_row *row = &values->row;
	int err = 0;

	for (size_t i = 0; sample->values && i < sample->values->cnt && !err; i++) {
		const struct stack_value *value = &sample->values->items[i];
		bool has_variable = value->variable != STACK_NO_VARIABLE;

		err = write_place(values, value->place);
		if (!err && has_variable)
			err = write_variable(values, value->variable);
		memset(row->nulls, 0, sizeof(row->nulls));
		row->values[VALUE_TS].u64 = sample->ts;
		row->values[VALUE_TID].u64 = sample->tid;
		row->values[VALUE_SID].u64 = sample->sid;
		if (!sample->sid)
			shard_row__set_null(row, VALUE_SID);
		row->values[VALUE_DEPTH].u64 = value->depth;
		row->values[VALUE_PLACE].u64 = value->place;
		row->values[VALUE_VARIABLE].u64 = value->variable;
		row->values[VALUE_VALUE].u64 = value->value;
		if (!has_variable) {
			shard_row__set_null(row, VALUE_VARIABLE);
			shard_row__set_null(row, VALUE_VALUE);
		}
		values->counts.written += has_variable;
		if (!err)
			err = values->opts.append(values->opts.owner, SHARD_TABLE_VALUE, row);
	}
	return err;
}

void sampled_values__counts(const struct sampled_values *values, struct sampled_values_counts *counts)
{
	*counts = values->counts;
}
