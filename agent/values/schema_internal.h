/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by schema_build.c (the file), schema_dwarf.c (scopes and locations), schema_types.c (types and members),
 * schema_tags.c (machine code).
 */
#ifndef WHYLATE_VALUES_SCHEMA_INTERNAL_H
#define WHYLATE_VALUES_SCHEMA_INTERNAL_H

#include "values/schema.h"

#include <elfutils/libdw.h>

#define DIE_DEPTH_MAX      64
#define TYPE_DEPTH_MAX     32
#define FUNCTION_VARS_MAX  2000
#define LOCATIONS_MAX      256 /* of one variable */
#define RANGES_MAX         64
#define MEMBERS_MAX        4096 /* of one struct, with those of structs within it, that are looked through */
#define NESTED_MAX         6    /* structs within one another */
#define FUNCTION_BYTES_MAX (1 << 20)

struct pc_range {
	uint64_t begin, end;
};

/* A variable of the function under way, before its tags decide whether it is kept. */
struct candidate {
	struct value_variable variable;
	VEC(struct value_location) locations;
	Dwarf_Die struct_die; /* a pointer to a struct: the struct */
	bool has_struct;
};

struct function_vars {
	const char *name;
	bool is_named; /* opts.either fits its name: all of its variables are wanted */
	struct pc_range ranges[RANGES_MAX];
	size_t range_cnt;
	VEC(struct candidate) items; /* members found by the tags are appended */
};

struct builder {
	struct value_schema *schema;
	const struct value_schema_opts *opts;
	Dwarf *dwarf;
	Elf *elf;              /* with the code */
	Dwarf_CFI *frames;     /* NULL: there is no unwinding table */
	struct tagger *tagger; /* NULL: none for this architecture */
	struct function_vars function;
	Dwarf_Attribute frame_base;
	bool has_frame_base;
	const char *file; /* of the unit */
	int err;
};

/* A copy of the text that lives as long as the schema; NULL without memory, and builder->err is set. */
const char *builder_text(struct builder *builder, const char *text);
/* The row of the unwinding table that has pc, or of pc alone. */
void builder_frame(const struct builder *builder, uint64_t pc, struct value_frame_rule *rule);
/* Walks the DWARF of all units. 0 or -errno. */
int schema_walk(struct builder *builder);
/* Describes a type: false where it is not basic. `struct_die` is filled for a pointer to one (*has_struct). */
bool schema_type(struct builder *builder, Dwarf_Die *die, struct value_variable *variable, Dwarf_Die *struct_die,
		 bool *has_struct);
/* The struct or class that the variable is; false: it is none. */
bool schema_struct(Dwarf_Die *die, Dwarf_Die *struct_die);

#define MEMBER_NAME_SZ 160
struct schema_found_member {
	struct value_variable type; /* kind, size, type */
	int64_t off;                /* within the outermost struct */
	char name[MEMBER_NAME_SZ];  /* `len`, `inner.len` */
	bool in_union;              /* nothing tells whether it is the one in use */
};
typedef void (*schema_member_fn)(void *owner, const struct schema_found_member *member);
/* Each member of basic type, also of bases and of structs within it. */
void schema_members(struct builder *builder, const Dwarf_Die *struct_die, schema_member_fn found, void *owner);
/* The one of that size at that offset: false if there is none, or several, of a union.  `variable` gets its type. */
bool schema_member(struct builder *builder, const Dwarf_Die *struct_die, int64_t off, uint8_t size,
		   struct value_variable *variable, char name[MEMBER_NAME_SZ]);

/* NULL: machine code of this architecture is not analysed, or out of memory. */
struct tagger *tagger__new(void);
void tagger__free(struct tagger *tagger);
/* Sets the tags of the function's variables, and appends members of pointed-to structs that the code uses. 0, -ENOMEM.
 */
int tagger__run(struct tagger *tagger, struct builder *builder);

#endif
