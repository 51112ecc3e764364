/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by schema.c (the file), schema_dwarf.c (DWARF), schema_tags.c (machine code). */
#ifndef WHYLATE_VALUES_SCHEMA_INTERNAL_H
#define WHYLATE_VALUES_SCHEMA_INTERNAL_H

#include "values/schema.h"

#include <elfutils/libdw.h>

#define DIE_DEPTH_MAX      64
#define TYPE_DEPTH_MAX     32
#define FUNCTION_VARS_MAX  2000
#define LOCATIONS_MAX      256 /* of one variable */
#define RANGES_MAX         64
#define MEMBERS_MAX        512 /* of one struct that are looked through */
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
	Elf *elf; /* with the code */
	Dwarf_CFI *cfi;
	struct tagger *tagger; /* NULL: none for this architecture */
	struct function_vars function;
	Dwarf_Attribute frame_base;
	bool has_frame_base;
	const char *file; /* of the unit */
	int err;
};

/* A copy of the text that lives as long as the schema; NULL without memory, and builder->err is set. */
const char *builder_text(struct builder *builder, const char *text);
/* Walks the DWARF of all units. 0 or -errno. */
int schema_walk(struct builder *builder);
/* Describes a type: false where it is not basic. `struct_die` is filled for a pointer to one (*has_struct). */
bool schema_type(struct builder *builder, Dwarf_Die *die, struct value_variable *variable, Dwarf_Die *struct_die,
		 bool *has_struct);
/* The member of basic type at that offset of a struct: false if there is none. `variable` gets name suffix, type, size.
 */
bool schema_member(struct builder *builder, Dwarf_Die *struct_die, int64_t off, uint8_t size,
		   struct value_variable *variable, const char **member);

/* NULL: machine code of this architecture is not analysed, or out of memory. */
struct tagger *tagger__new(void);
void tagger__free(struct tagger *tagger);
/* Sets the tags of the function's variables, and appends members of pointed-to structs that the code uses. 0, -ENOMEM.
 */
int tagger__run(struct tagger *tagger, struct builder *builder);

#endif
