// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/values_internal.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Waiting for source lines may take that long at once, besides SYMBOLS_TIME_SHARE of the time. */
#define LINES_AT_ONCE_NS 200000000ULL
/* At the end they are waited for that long, looking that often. */
#define LINES_LAST_NS 3000000000ULL
#define LINES_LOOK_NS 5000000

uint32_t sampled_values__depth(const struct sampled_values *values)
{
	return values->opts.depth;
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
	struct module *module;
	uint32_t place, depth, turn;
};

static void take(struct sampled_values *values, const struct stack_value *value)
{
	if (values->taken.cnt < TAKEN_MAX)
		values->taken.items[values->taken.cnt++] = *value;
	else
		values->counts.crowded++;
}

static int take_value(void *owner, uint32_t variable, uint64_t bytes, bool is_word)
{
	const struct taking *taking = owner;

	take(taking->values, &(struct stack_value){.value = bytes,
						   .variable = taking->module->first + variable,
						   .place = taking->place,
						   .depth = taking->depth,
						   .turn = is_word ? taking->turn : 1});
	return 0;
}

static int place_of(struct sampled_values *values, const struct value_stack *stack, struct module *module,
		    uint64_t addr, uint64_t runtime_addr, bool is_caller, uint32_t *id)
{
	struct place place = {.module = module, .addr = addr, .turn = 1};

	if (idmap__id(&values->place_ids, module ? (uintptr_t)module : (uintptr_t)stack->program, addr, id))
		return -ENOMEM;
	if (*id < values->places.cnt)
		return 0;
	if (vec_reserve(&values->places, 1))
		return -ENOMEM;
	for (uint32_t m = 0; !is_caller && m < values->modules.cnt; m++)
		if (values->modules.items[m] == module)
			place.turn = value_plan_turn(&values->plan, m, addr);
	place.function = strdup(stack->name(stack->owner, runtime_addr));
	if (!place.function)
		return -ENOMEM;
	values->places.items[values->places.cnt++] = place;
	return 0;
}

static struct module *module_of(const struct sampled_values *values, const struct met *met, uint32_t number)
{
	for (size_t i = 0; i < met->placed.cnt; i++)
		if (met->placed.items[i].of == number)
			return values->modules.items[met->placed.items[i].module];
	return NULL;
}

struct module *sampled_values__module_at(const struct sampled_values *values, const struct value_stack *stack,
					 const struct met *met, uint64_t addr, const struct program_module **of)
{
	uint32_t number = PROGRAM_NONE;

	if (stack->program)
		program__function_at_runtime(stack->program, addr, &number);
	*of = number == PROGRAM_NONE ? NULL : program__module(stack->program, number);
	return module_of(values, met, number);
}

/* The globals that are in the kernel at a time take turns. */
static uint32_t turn_of_globals(const struct sampled_values *values)
{
	size_t cnt = 0;

	for (uint32_t p = values->first_part; p < values->first_part + values->part_cnt; p++)
		cnt += values->plan.parts.items[p].globals.cnt;
	return value_turn(cnt, VALUE_GLOBALS_AT_ONCE);
}

static int take_frame(struct sampled_values *values, const struct value_stack *stack, const struct met *met,
		      size_t depth, const struct value_memory *memory)
{
	const struct unwind_frame *at = &stack->frames[depth];
	uint64_t addr = unwind_frame_addr(at);
	const struct program_module *of;
	struct value_frame frame = {.regs = &stack->regs[depth], .is_caller = depth > 0, .innermost = &stack->regs[0]};
	struct taking taking = {.values = values, .depth = (uint32_t)depth};
	int err;

	taking.module = sampled_values__module_at(values, stack, met, addr, &of);
	frame.bias = of ? of->bias : 0;
	frame.addr = addr - frame.bias;
	/* The caller's stack pointer is this frame's canonical frame address. */
	if (depth + 1 < stack->frame_cnt && at[1].how == UNWIND_BY_CFI)
		frame.cfa = at[1].cfa;
	err = place_of(values, stack, taking.module, frame.addr, addr, depth > 0, &taking.place);
	if (err)
		return err;
	take(values,
	     &(struct stack_value){
		     .variable = STACK_NO_VARIABLE, .place = taking.place, .depth = (uint32_t)depth, .turn = 1});
	taking.turn = values->places.items[taking.place].turn;
	if (!taking.module) {
		values->counts.no_schema++;
		return 0;
	}
	err = value_reader__locals(taking.module->reader, &frame, memory, &values->counts.reads, take_value, &taking);
	taking.turn = turn_of_globals(values);
	/* Globals were read at the innermost frame. */
	for (size_t i = 0; !depth && !err && i < met->placed.cnt; i++) {
		taking.module = values->modules.items[met->placed.items[i].module];
		err = value_reader__globals(taking.module->reader, met->placed.items[i].bias, memory,
					    &values->counts.reads, take_value, &taking);
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
	const struct met *met = sampled_values__met_as(values, stack->pid);
	struct value_memory memory = {.stack = stack->memory};
	struct stack_values *made;
	size_t cnt;

	values->taken.cnt = 0;
	find_words(values, stack, &memory);
	for (size_t depth = 0; met && depth < stack->frame_cnt && depth <= values->opts.depth; depth++) {
		/* Beyond a guess registers say nothing. */
		if (stack->frames[depth].how == UNWIND_BY_SCAN)
			break;
		if (take_frame(values, stack, met, depth, &memory))
			return NULL;
	}
	if (met && sampled_values__meet_frames(values, stack, met))
		return NULL;
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
	const struct value_planned *planned;
	const struct module *module = NULL;
	char tags[64] = "";

	if (values->variables.items[number])
		return 0;
	for (size_t m = 0; m < values->modules.cnt && values->modules.items[m]->first <= number; m++)
		module = values->modules.items[m];
	variable = &module->schema.variables.items[number - module->first];
	planned = &module->planned[number - module->first];
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
	row->values[VARIABLE_PART].u64 = planned->part;
	if (planned->part == VALUE_NO_PART)
		shard_row__set_null(row, VARIABLE_PART);
	values->variables.items[number] = true;
	return values->opts.append(values->opts.owner, SHARD_TABLE_VARIABLE, row);
}

static int write_place(struct sampled_values *values, uint32_t id, const char *file, uint32_t line)
{
	const struct place *place = &values->places.items[id];
	struct shard_row *row = &values->row;

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

/* As symbols__line_at(): the module's file is opened when a place in it is met. */
static int line_of(struct sampled_values *values, const struct place *place, const char **file, uint32_t *line)
{
	struct module *module = place->module;

	*file = NULL;
	if (!values->lines)
		values->lines = symbols__new_lines(LINES_AT_ONCE_NS);
	if (!module || !values->lines)
		return 0;
	if (module->dwarf_fd >= 0) {
		module->lines = symbols__open(values->lines, module->dwarf_fd, module->name);
		module->dwarf_fd = -1;
	}
	return symbols__line_at(values->lines, module->lines, place->addr, file, line);
}

int sampled_values__write_places(struct sampled_values *values, bool is_last)
{
	uint64_t end_ts = monotonic_ns() + LINES_LAST_NS;
	int err = 0;

	if (is_last && values->lines)
		symbols__allow(values->lines, LINES_LAST_NS);
	while (values->late_pos < values->late.cnt && !err) {
		uint32_t id = values->late.items[values->late_pos], line = 0;
		const char *file;

		if (line_of(values, &values->places.items[id], &file, &line) == -EAGAIN) {
			if (!is_last)
				return 0;
			if (monotonic_ns() < end_ts) {
				nanosleep(&(struct timespec){.tv_nsec = LINES_LOOK_NS}, NULL);
				continue;
			}
		}
		values->late_pos++;
		err = write_place(values, id, file, line);
	}
	if (values->late_pos == values->late.cnt)
		values->late_pos = values->late.cnt = 0;
	return err;
}

/* Its row is written when its source line is known. */
static int want_place(struct sampled_values *values, uint32_t id)
{
	if (values->places.items[id].written)
		return 0;
	values->places.items[id].written = true;
	return vec_push(&values->late, id) ? -ENOMEM : sampled_values__write_places(values, false);
}

int sampled_values__finish(struct sampled_values *values)
{
	return sampled_values__write_places(values, true);
}

int sampled_values__write_turns(struct sampled_values *values)
{
	struct shard_row *row = &values->row;
	int err = 0;

	memset(row->nulls, 0, sizeof(row->nulls));
	for (size_t i = 0; i < values->turns.cnt && !err; i++) {
		row->values[VALUE_PLAN_TS].u64 = values->turns.items[i].ts;
		row->values[VALUE_PLAN_PART].u64 = values->turns.items[i].part;
		row->values[VALUE_PLAN_IS_READ].u64 = values->turns.items[i].is_read;
		err = values->opts.append(values->opts.owner, SHARD_TABLE_VALUE_PLAN, row);
	}
	values->turns.cnt = 0;
	return err;
}

int sampled_values__write(struct sampled_values *values, const struct stack_sample *sample)
{
	struct shard_row *row = &values->row;
	int err = 0;

	for (size_t i = 0; sample->values && i < sample->values->cnt && !err; i++) {
		const struct stack_value *value = &sample->values->items[i];
		bool has_variable = value->variable != STACK_NO_VARIABLE;

		err = want_place(values, value->place);
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
		row->values[VALUE_TURN].u64 = value->turn;
		if (value->turn <= 1)
			shard_row__set_null(row, VALUE_TURN);
		values->counts.written += has_variable;
		if (!err)
			err = values->opts.append(values->opts.owner, SHARD_TABLE_VALUE, row);
	}
	return err;
}
