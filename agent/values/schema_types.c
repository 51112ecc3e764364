// SPDX-License-Identifier: GPL-2.0-or-later
/* Types of variables, and the members of structs and classes. */
#include "values/schema_internal.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

/* --- types -------------------------------------------------------------------------------------------------------- */

/* The type behind typedefs and qualifiers; false: none, or a cycle. */
static bool plain_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attr;

	*type = *die;
	for (int depth = 0; depth < TYPE_DEPTH_MAX; depth++) {
		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!dwarf_formref_die(dwarf_attr_integrate(type, DW_AT_type, &attr), type))
				return false;
			continue;
		default:
			return true;
		}
	}
	return false;
}

/* The name that the source uses: that of the outermost typedef, else of the type itself. */
static const char *type_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die type = *die;

	for (int depth = 0; depth < TYPE_DEPTH_MAX; depth++) {
		const char *name = dwarf_diename(&type);

		if (name)
			return name;
		if (!dwarf_formref_die(dwarf_attr_integrate(&type, DW_AT_type, &attr), &type))
			break;
	}
	return NULL;
}

static bool base_kind(Dwarf_Die *type, uint8_t *kind)
{
	Dwarf_Attribute attr;
	Dwarf_Word encoding;

	if (dwarf_formudata(dwarf_attr_integrate(type, DW_AT_encoding, &attr), &encoding))
		return false;
	switch (encoding) {
	case DW_ATE_boolean:
		*kind = VALUE_BOOL;
		return true;
	case DW_ATE_float:
		*kind = VALUE_FLOAT;
		return true;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		*kind = VALUE_SIGNED;
		return true;
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		*kind = VALUE_UNSIGNED;
		return true;
	default:
		return false;
	}
}

static bool is_struct(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

static bool pointer_type(struct builder *builder, Dwarf_Die *type, struct value_variable *variable,
			 Dwarf_Die *struct_die, bool *has_struct)
{
	Dwarf_Attribute attr;
	Dwarf_Die target, plain;
	const char *name = NULL;
	char text[160];

	if (dwarf_formref_die(dwarf_attr_integrate(type, DW_AT_type, &attr), &target)) {
		name = type_name(&target);
		if (plain_type(&target, &plain) && is_struct(&plain) && has_struct) {
			*struct_die = plain;
			*has_struct = true;
		}
	}
	snprintf(text, sizeof(text), "%.150s *", name ? name : "void");
	variable->kind = VALUE_POINTER;
	variable->size = sizeof(void *);
	variable->type = builder_text(builder, text);
	return true;
}

bool schema_type(struct builder *builder, Dwarf_Die *die, struct value_variable *variable, Dwarf_Die *struct_die,
		 bool *has_struct)
{
	Dwarf_Die first, type;
	Dwarf_Attribute attr;
	int size;

	if (has_struct)
		*has_struct = false;
	if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), &first) || !plain_type(&first, &type))
		return false;
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return pointer_type(builder, &type, variable, struct_die, has_struct);
	case DW_TAG_enumeration_type:
		variable->kind = VALUE_ENUM;
		break;
	case DW_TAG_base_type:
		if (!base_kind(&type, &variable->kind))
			return false;
		break;
	default:
		return false;
	}
	size = dwarf_bytesize(&type);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	variable->size = (uint8_t)size;
	variable->type = builder_text(builder, type_name(&first));
	return true;
}

bool schema_struct(Dwarf_Die *die, Dwarf_Die *struct_die)
{
	Dwarf_Attribute attr;
	Dwarf_Die first;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), &first) &&
	       plain_type(&first, struct_die) && is_struct(struct_die);
}

/* --- members ------------------------------------------------------------------------------------------------------ */

struct member_walk {
	struct builder *builder;
	int64_t wanted_off; /* only what lies there; -1: all */
	int left;           /* entries that are still looked at */
	void (*found)(void *owner, const struct schema_found_member *member);
	void *owner;
};

struct nest {
	int64_t off; /* of the struct within the outermost one */
	const char *prefix;
	bool in_union;
	int depth;
};

static void walk_members(struct member_walk *walk, const Dwarf_Die *struct_die, const struct nest *nest);

static bool is_bit_field(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_bit_size) || dwarf_hasattr(die, DW_AT_data_bit_offset);
}

/* Where it lies in its struct; false: nowhere that is constant, as virtual bases and static members. */
static bool offset_of(Dwarf_Die *die, bool in_union, int64_t *off)
{
	Dwarf_Attribute attr;
	Dwarf_Word at = 0;

	if (dwarf_hasattr(die, DW_AT_virtuality) || dwarf_hasattr(die, DW_AT_external))
		return false;
	if (!dwarf_hasattr(die, DW_AT_data_member_location)) {
		*off = 0;
		return in_union;
	}
	if (dwarf_formudata(dwarf_attr(die, DW_AT_data_member_location, &attr), &at) || at > INT32_MAX)
		return false;
	*off = (int64_t)at;
	return true;
}

/* A struct or union within one: what is in it. */
static void walk_nested(struct member_walk *walk, Dwarf_Die *type, const struct nest *nest, int64_t off,
			const char *name)
{
	struct nest inner = {.off = off,
			     .prefix = nest->prefix,
			     .in_union = nest->in_union || dwarf_tag(type) == DW_TAG_union_type,
			     .depth = nest->depth + 1};
	char prefix[MEMBER_NAME_SZ];

	if (walk->wanted_off >= 0 && (walk->wanted_off < off || walk->wanted_off - off >= dwarf_bytesize(type)))
		return;
	/* Bases and anonymous structs give their members no name of their own. */
	if (name) {
		if (snprintf(prefix, sizeof(prefix), "%s%s.", nest->prefix, name) >= (int)sizeof(prefix))
			return;
		inner.prefix = prefix;
	}
	walk_members(walk, type, &inner);
}

static void look_at_member(struct member_walk *walk, Dwarf_Die *die, const struct nest *nest, bool of_union)
{
	struct schema_found_member member = {.in_union = nest->in_union};
	int tag = dwarf_tag(die);
	Dwarf_Attribute attr;
	Dwarf_Die first, type;
	const char *name;

	if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || is_bit_field(die) ||
	    !offset_of(die, of_union, &member.off) ||
	    !dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), &first) || !plain_type(&first, &type))
		return;
	name = tag == DW_TAG_member ? dwarf_diename(die) : NULL;
	member.off += nest->off;
	if (is_struct(&type) || dwarf_tag(&type) == DW_TAG_union_type) {
		walk_nested(walk, &type, nest, member.off, name);
		return;
	}
	if (!name || (walk->wanted_off >= 0 && walk->wanted_off != member.off) ||
	    !schema_type(walk->builder, die, &member.type, NULL, NULL) ||
	    snprintf(member.name, sizeof(member.name), "%s%s", nest->prefix, name) >= (int)sizeof(member.name))
		return;
	walk->found(walk->owner, &member);
}

static void walk_members(struct member_walk *walk, const Dwarf_Die *struct_die, const struct nest *nest)
{
	Dwarf_Die die = *struct_die, child;
	bool of_union = dwarf_tag(&die) == DW_TAG_union_type;

	/* What lies may contain itself. */
	if (nest->depth > NESTED_MAX || dwarf_child(&die, &child))
		return;
	do {
		if (!walk->left--) {
			walk->builder->schema->skipped[VALUE_SKIP_LIMIT]++;
			walk->left = 0;
			return;
		}
		look_at_member(walk, &child, nest, of_union);
	} while (walk->left && !walk->builder->err && !dwarf_siblingof(&child, &child));
}

void schema_members(struct builder *builder, const Dwarf_Die *struct_die, schema_member_fn found, void *owner)
{
	struct member_walk walk = {
		.builder = builder, .wanted_off = -1, .left = MEMBERS_MAX, .found = found, .owner = owner};

	walk_members(&walk, struct_die, &(struct nest){.prefix = ""});
}

struct member_search {
	struct schema_found_member member;
	uint8_t size;
	uint32_t cnt;
};

static void match_member(void *owner, const struct schema_found_member *member)
{
	struct member_search *search = owner;

	if (member->type.size == search->size && !search->cnt++)
		search->member = *member;
}

bool schema_member(struct builder *builder, const Dwarf_Die *struct_die, int64_t off, uint8_t size,
		   struct value_variable *variable, char name[MEMBER_NAME_SZ])
{
	struct member_search search = {.size = size};
	struct member_walk walk = {
		.builder = builder, .wanted_off = off, .left = MEMBERS_MAX, .found = match_member, .owner = &search};

	walk_members(&walk, struct_die, &(struct nest){.prefix = ""});
	if (search.cnt != 1) {
		builder->schema->skipped[VALUE_SKIP_UNION] += search.cnt > 1;
		return false;
	}
	variable->kind = search.member.type.kind;
	variable->size = search.member.type.size;
	variable->type = search.member.type.type;
	memcpy(name, search.member.name, MEMBER_NAME_SZ);
	return true;
}
