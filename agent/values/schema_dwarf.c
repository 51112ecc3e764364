// SPDX-License-Identifier: GPL-2.0-or-later
/* From debugging information entries to variables: scopes and locations. */
#include "target/demangle.h"
#include "values/schema_internal.h"

#include <dwarf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- locations ---------------------------------------------------------------------------------------------------- */

static bool register_op(const Dwarf_Op *op, uint8_t *reg)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		*reg = (uint8_t)(op->atom - DW_OP_reg0);
	else if (op->atom == DW_OP_regx && op->number < 64)
		*reg = (uint8_t)op->number;
	else
		return false;
	return true;
}

static bool memory_op(const Dwarf_Op *op, uint8_t *reg, int64_t *off)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*reg = (uint8_t)(op->atom - DW_OP_breg0);
		*off = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx && op->number < 64) {
		*reg = (uint8_t)op->number;
		*off = (int64_t)op->number2;
	} else {
		return false;
	}
	return true;
}

/* DW_OP_fbreg: relative to what the function's frame base says. */
static bool frame_place(struct builder *builder, int64_t off, uint64_t pc, struct value_location *location)
{
	Dwarf_Op *ops;
	size_t cnt;

	if (!builder->has_frame_base || dwarf_getlocation_addr(&builder->frame_base, pc, &ops, &cnt, 1) != 1 ||
	    cnt != 1)
		return false;
	location->off = off;
	if (ops[0].atom == DW_OP_call_frame_cfa) {
		location->place = VALUE_AT_CFA;
		return true;
	}
	location->place = VALUE_AT_REGISTER;
	if (register_op(&ops[0], &location->reg))
		return true;
	if (!memory_op(&ops[0], &location->reg, &location->off))
		return false;
	return !__builtin_add_overflow(location->off, off, &location->off);
}

static enum value_skip why_skipped(const Dwarf_Op *ops, size_t cnt)
{
	enum value_skip why = VALUE_SKIP_EXPRESSION;

	for (size_t i = 0; i < cnt; i++) {
		switch (ops[i].atom) {
		case DW_OP_piece:
		case DW_OP_bit_piece:
			return VALUE_SKIP_PIECE;
		case DW_OP_entry_value:
		case DW_OP_GNU_entry_value:
			return VALUE_SKIP_ENTRY_VALUE;
		case DW_OP_form_tls_address:
		case DW_OP_GNU_push_tls_address:
			return VALUE_SKIP_THREAD_LOCAL;
		case DW_OP_stack_value:
		case DW_OP_implicit_value:
		case DW_OP_implicit_pointer:
		case DW_OP_GNU_implicit_pointer:
			why = VALUE_SKIP_COMPUTED;
			break;
		}
	}
	return why;
}

static bool take_place(struct builder *builder, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t cnt,
		       struct value_location *location)
{
	Dwarf_Attribute address;
	Dwarf_Addr addr;

	if (!cnt) {
		builder->schema->skipped[VALUE_SKIP_OPTIMIZED_OUT]++;
		return false;
	}
	if (cnt == 1) {
		if (register_op(&ops[0], &location->reg)) {
			location->place = VALUE_IN_REGISTER;
			return true;
		}
		if (memory_op(&ops[0], &location->reg, &location->off)) {
			location->place = VALUE_AT_REGISTER;
			return true;
		}
		if (ops[0].atom == DW_OP_fbreg &&
		    frame_place(builder, (int64_t)ops[0].number, location->pc_begin, location))
			return true;
		location->place = VALUE_AT_ADDRESS;
		if (ops[0].atom == DW_OP_addr) {
			location->off = (int64_t)ops[0].number;
			return true;
		}
		if ((ops[0].atom == DW_OP_addrx || ops[0].atom == DW_OP_GNU_addr_index) &&
		    !dwarf_getlocation_attr(attr, &ops[0], &address) && !dwarf_formaddr(&address, &addr)) {
			location->off = (int64_t)addr;
			return true;
		}
	}
	if (cnt == 2 && ops[1].atom == DW_OP_stack_value && memory_op(&ops[0], &location->reg, &location->off)) {
		location->place = VALUE_IS_SUM;
		return true;
	}
	builder->schema->skipped[why_skipped(ops, cnt)]++;
	return false;
}

static bool is_within(const struct function_vars *function, uint64_t begin, uint64_t end)
{
	for (size_t i = 0; i < function->range_cnt; i++)
		if (begin >= function->ranges[i].begin && end <= function->ranges[i].end)
			return true;
	return false;
}

/* An expression without ranges of its own holds wherever its scope is. */
static void take_scope(struct builder *builder, Dwarf_Attribute *attr, Dwarf_Op *ops, size_t cnt, Dwarf_Die *scope,
		       struct candidate *candidate)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	for (int i = 0; i < RANGES_MAX && (at = dwarf_ranges(scope, at, &base, &begin, &end)) > 0; i++) {
		struct value_location location = {.pc_begin = begin, .pc_end = end};

		if (begin >= end || !is_within(&builder->function, begin, end)) {
			builder->schema->skipped[VALUE_SKIP_RANGE]++;
			continue;
		}
		if (take_place(builder, attr, ops, cnt, &location) && vec_push(&candidate->locations, location))
			builder->err = -ENOMEM;
	}
}

static void take_locations(struct builder *builder, Dwarf_Attribute *attr, Dwarf_Die *scope,
			   struct candidate *candidate)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;
	Dwarf_Op *ops;
	size_t cnt;

	if (!dwarf_getlocation(attr, &ops, &cnt)) {
		take_scope(builder, attr, ops, cnt, scope, candidate);
		return;
	}
	for (int i = 0; (at = dwarf_getlocations(attr, at, &base, &begin, &end, &ops, &cnt)) > 0; i++) {
		struct value_location location = {.pc_begin = begin, .pc_end = end};

		if (i == LOCATIONS_MAX) {
			builder->schema->skipped[VALUE_SKIP_LIMIT]++;
			return;
		}
		if (begin >= end || !is_within(&builder->function, begin, end)) {
			/* Empty ranges are the compiler's way to say "nowhere". */
			builder->schema->skipped[VALUE_SKIP_RANGE] += begin != end;
			continue;
		}
		if (take_place(builder, attr, ops, cnt, &location) && vec_push(&candidate->locations, location))
			builder->err = -ENOMEM;
	}
	if (at < 0)
		builder->schema->skipped[VALUE_SKIP_EXPRESSION]++;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

static bool is_wanted(const char *glob, const char *text)
{
	return !glob || !fnmatch(glob, text, 0);
}

/* The file that declares it: its name below the directory of the compilation, or as the compiler was given it. */
static const char *declared_in(struct builder *builder, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);

	return file ? builder_text(builder, file) : builder->file;
}

static bool file_fits(const char *glob, const char *file)
{
	const char *base = strrchr(file, '/');

	return is_wanted(glob, file) || (base && is_wanted(glob, base + 1));
}

static bool file_is_wanted(const struct builder *builder, const char *file)
{
	return file_fits(builder->opts->file, file) && file_fits(builder->opts->either, file);
}

static void keep(struct builder *builder, struct candidate *candidate)
{
	struct value_schema *schema = builder->schema;
	struct value_variable variable = candidate->variable;

	variable.first_location = (uint32_t)schema->locations.cnt;
	variable.location_cnt = (uint32_t)candidate->locations.cnt;
	for (size_t i = 0; i < candidate->locations.cnt && !builder->err; i++)
		if (vec_push(&schema->locations, candidate->locations.items[i]))
			builder->err = -ENOMEM;
	if (!builder->err && vec_push(&schema->variables, variable))
		builder->err = -ENOMEM;
}

static void keep_global(struct builder *builder, const struct value_variable *variable,
			const struct value_location *location)
{
	struct candidate candidate = {.variable = *variable};

	if (vec_push(&candidate.locations, *location))
		builder->err = -ENOMEM;
	else
		keep(builder, &candidate);
	vec_free(&candidate.locations);
}

struct global_members {
	struct builder *builder;
	const struct value_variable *whole;
	const struct value_location *location;
};

/* Addresses are left out: of a global they say little, and there are many. */
static void keep_member(void *owner, const struct schema_found_member *member)
{
	const struct global_members *members = owner;
	struct builder *builder = members->builder;
	struct value_variable variable = *members->whole;
	struct value_location location = *members->location;
	char name[MEMBER_NAME_SZ + 100];

	if (member->in_union) {
		builder->schema->skipped[VALUE_SKIP_UNION]++;
		return;
	}
	if (member->type.kind == VALUE_POINTER)
		return;
	snprintf(name, sizeof(name), "%.90s.%s", variable.name, member->name);
	variable.name = builder_text(builder, name);
	variable.kind = member->type.kind;
	variable.size = member->type.size;
	variable.type = member->type.type;
	location.off = (int64_t)((uint64_t)location.off + (uint64_t)member->off);
	keep_global(builder, &variable, &location);
}

static void take_global(struct builder *builder, Dwarf_Die *die)
{
	struct value_variable variable = {.member_off = -1, .tags = VALUE_TAG_GLOBAL, .function = ""};
	struct value_location location = {.pc_end = UINT64_MAX};
	bool is_basic;
	Dwarf_Die struct_die;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t cnt;
	int line = 0;

	if (!dwarf_attr_integrate(die, DW_AT_location, &attr) || !dwarf_diename(die))
		return;
	variable.file = declared_in(builder, die);
	if (!file_is_wanted(builder, variable.file) || builder->opts->function)
		return;
	is_basic = schema_type(builder, die, &variable, NULL, NULL);
	if (!is_basic && !schema_struct(die, &struct_die)) {
		builder->schema->skipped[VALUE_SKIP_TYPE]++;
		return;
	}
	if (dwarf_getlocation(&attr, &ops, &cnt)) {
		builder->schema->skipped[VALUE_SKIP_EXPRESSION]++;
		return;
	}
	if (!take_place(builder, &attr, ops, cnt, &location))
		return;
	if (location.place != VALUE_AT_ADDRESS) {
		builder->schema->skipped[VALUE_SKIP_EXPRESSION]++;
		return;
	}
	dwarf_decl_line(die, &line);
	variable.line = line > 0 ? (uint32_t)line : 0;
	variable.name = builder_text(builder, dwarf_diename(die));
	if (is_basic)
		keep_global(builder, &variable, &location);
	else
		schema_members(builder, &struct_die, keep_member,
			       &(struct global_members){builder, &variable, &location});
}

static void take_local(struct builder *builder, Dwarf_Die *die, Dwarf_Die *scope, const char *inlined)
{
	struct function_vars *function = &builder->function;
	struct candidate candidate = {.variable = {.member_off = -1}};
	struct value_variable *variable = &candidate.variable;
	Dwarf_Attribute attr;
	int line = 0;

	if (!dwarf_diename(die))
		return;
	if (!schema_type(builder, die, variable, &candidate.struct_die, &candidate.has_struct)) {
		builder->schema->skipped[VALUE_SKIP_TYPE]++;
		return;
	}
	if (!dwarf_attr_integrate(die, DW_AT_location, &attr)) {
		builder->schema->skipped[VALUE_SKIP_OPTIMIZED_OUT]++;
		return;
	}
	if (function->items.cnt >= FUNCTION_VARS_MAX) {
		builder->schema->skipped[VALUE_SKIP_LIMIT]++;
		return;
	}
	take_locations(builder, &attr, scope, &candidate);
	if (!candidate.locations.cnt) {
		vec_free(&candidate.locations);
		return;
	}
	dwarf_decl_line(die, &line);
	variable->line = line > 0 ? (uint32_t)line : 0;
	variable->file = declared_in(builder, die);
	variable->function = function->name;
	variable->inlined = inlined;
	variable->name = builder_text(builder, dwarf_diename(die));
	/* A static local: it is there whatever runs. */
	if (candidate.locations.items[0].place == VALUE_AT_ADDRESS)
		variable->tags = VALUE_TAG_GLOBAL;
	if (vec_push(&function->items, candidate)) {
		vec_free(&candidate.locations);
		builder->err = -ENOMEM;
	}
}

/* As a programmer knows it: with its scope where the compiler gives a linkage name. */
static const char *function_name(struct builder *builder, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr)), *text;
	char *plain = name ? demangle(name) : NULL;

	text = builder_text(builder, plain ? plain : name ? name : dwarf_diename(die));
	free(plain);
	return text;
}

static void walk_scope(struct builder *builder, Dwarf_Die *scope, const char *inlined, int depth)
{
	Dwarf_Die child;

	if (depth > DIE_DEPTH_MAX || dwarf_child(scope, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_formal_parameter:
		case DW_TAG_variable:
			take_local(builder, &child, scope, inlined);
			break;
		case DW_TAG_lexical_block:
			walk_scope(builder, &child, inlined, depth + 1);
			break;
		case DW_TAG_inlined_subroutine:
			walk_scope(builder, &child, function_name(builder, &child), depth + 1);
			break;
		default:
			break;
		}
	} while (!builder->err && !dwarf_siblingof(&child, &child));
}

/* The variables that the tags or the options want; the others are forgotten. */
static void keep_tagged(struct builder *builder)
{
	struct function_vars *function = &builder->function;

	for (size_t i = 0; i < function->items.cnt; i++) {
		struct candidate *candidate = &function->items.items[i];

		if (!builder->err && (candidate->variable.tags || builder->opts->all_locals) &&
		    (function->is_named || file_is_wanted(builder, candidate->variable.file)))
			keep(builder, candidate);
		vec_free(&candidate->locations);
	}
	function->items.cnt = 0;
}

static void take_function(struct builder *builder, Dwarf_Die *die)
{
	struct function_vars *function = &builder->function;
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	function->range_cnt = 0;
	while (function->range_cnt < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0)
		if (begin < end && begin)
			function->ranges[function->range_cnt++] = (struct pc_range){begin, end};
	if (!function->range_cnt)
		return;
	function->name = function_name(builder, die);
	if (!*function->name || !is_wanted(builder->opts->function, function->name))
		return;
	function->is_named = builder->opts->either && is_wanted(builder->opts->either, function->name);
	if (builder->opts->either && !function->is_named &&
	    !file_fits(builder->opts->either, declared_in(builder, die)))
		return;
	if (builder->opts->stop && atomic_load(builder->opts->stop))
		builder->err = -ECANCELED;
	builder->schema->functions++;
	builder->has_frame_base = dwarf_attr_integrate(die, DW_AT_frame_base, &builder->frame_base) != NULL;
	walk_scope(builder, die, NULL, 0);
	if (!builder->err && builder->tagger && function->items.cnt)
		builder->err = tagger__run(builder->tagger, builder);
	keep_tagged(builder);
}

static void walk_unit(struct builder *builder, Dwarf_Die *parent, int depth)
{
	Dwarf_Die child;

	if (depth > DIE_DEPTH_MAX || dwarf_child(parent, &child))
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_variable:
			take_global(builder, &child);
			break;
		case DW_TAG_subprogram:
			take_function(builder, &child);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
			walk_unit(builder, &child, depth + 1);
			break;
		default:
			break;
		}
	} while (!builder->err && !dwarf_siblingof(&child, &child));
}

int schema_walk(struct builder *builder)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, split;
	uint8_t kind;
	int ret;

	while (!builder->err && !(ret = dwarf_get_units(builder->dwarf, unit, &unit, NULL, &kind, &die, &split))) {
		if (kind == DW_UT_skeleton && !split.addr) {
			builder->schema->skipped[VALUE_SKIP_SPLIT]++;
			continue;
		}
		if (kind == DW_UT_skeleton)
			die = split;
		if (dwarf_tag(&die) != DW_TAG_compile_unit)
			continue;
		builder->schema->units++;
		builder->file = builder_text(builder, dwarf_diename(&die));
		walk_unit(builder, &die, 0);
	}
	return builder->err;
}
