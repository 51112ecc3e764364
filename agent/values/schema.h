/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The variables of a binary that a value sampler can read (vProf §3): from DWARF 4 and 5 and from the machine code, no
 * source.  Globals of basic type; locals and parameters with tags that say how the code uses them.  Everything that is
 * read is untrusted; what cannot be described exactly is left out and counted.  A schema belongs to one thread.
 */
#ifndef WHYLATE_VALUES_SCHEMA_H
#define WHYLATE_VALUES_SCHEMA_H

#include <whylate/value.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "base/vec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_place {
	VALUE_IN_REGISTER, /* reg */
	VALUE_IS_SUM,      /* nowhere stored: the value is reg + off */
	VALUE_AT_REGISTER, /* memory at reg + off */
	VALUE_AT_CFA,      /* memory at the canonical frame address + off */
	VALUE_AT_ADDRESS,  /* memory at the linked address `off` */
};

/* Why a place of a variable is left out. */
enum value_skip {
#define VALUE_SKIP(id, name) VALUE_SKIP_##id,
#include "values/skip.def"
	VALUE_SKIP_CNT
};

/* Where a variable is while the program counter is in [pc_begin, pc_end), linked addresses; a global: [0, UINT64_MAX).
 */
struct value_location {
	uint64_t pc_begin, pc_end;
	int64_t off;
	uint8_t place; /* enum value_place */
	uint8_t reg;   /* DWARF number */
};

/* A row of the unwinding table: in [begin, end) the canonical frame address is what `reg` holds + off. */
struct value_frame_rule {
	uint64_t begin, end;
	int64_t off;
	uint8_t reg; /* DWARF number */
	bool known;  /* false: it is none of that form, or there is no row */
};

struct value_variable {
	const char *file, *function, *name, *type; /* function "" for a global */
	const char *inlined;                       /* the function whose inlined body declares it; NULL: `function` */
	uint32_t line;
	uint32_t first_location, location_cnt; /* in schema.locations */
	int32_t member_off; /* >= 0: the value lies in memory at (what is at the location) + member_off */
	uint8_t size;       /* bytes: 1, 2, 4, 8 */
	uint8_t kind;       /* enum value_type */
	uint8_t tags;
};

struct value_schema {
	struct arena *arena;
	struct intern strings;
	VEC(struct value_variable) variables; /* by file, line, function, name */
	VEC(struct value_location) locations;
	/* Where frames are, by begin, disjoint: of what lies at VALUE_AT_CFA and leads to a member. */
	VEC(struct value_frame_rule) frames;
	size_t functions, units;
	size_t skipped[VALUE_SKIP_CNT];
	const char *build_id; /* hex, "" where the file has none */
	bool no_code_tags;    /* machine code of this architecture is not analysed: locals have no tags */
};

struct value_schema_opts {
	const char *path;
	const char *debuginfo_dir;   /* searched before the system's; NULL */
	const char *file, *function; /* globs; NULL: all */
	const char *either;          /* a glob that one of both fits; NULL: all */
	bool all_locals;             /* locals without a tag, too */
	bool cached;                 /* looked for in the user's cache, and kept there */
	const char *cache_dir;       /* it is within that directory; NULL: the user's */
	const atomic_bool *stop;     /* -ECANCELED once it is set; NULL */
	int *dwarf_fd;               /* gets the file that has the DWARF; NULL: not wanted */
};

extern const char *const value_skip_names[VALUE_SKIP_CNT];
extern const char *const value_type_names[VALUE_TYPE_CNT];

/* An empty one.  0 or -ENOMEM. */
int value_schema_begin(struct value_schema *schema);
/* The row that has pc, or of pc alone. */
void value_schema_frame(const struct value_schema *schema, uint64_t pc, struct value_frame_rule *rule);
void value_schema_free(struct value_schema *schema);

#endif
