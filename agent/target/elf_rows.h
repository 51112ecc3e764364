/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is read of one ELF file as whylate-symbols sends it to the agent: a head, then sections, each in packets of
 * ELF_ROWS_PACKET bytes, the last one shorter.  All widths are fixed, nothing is a pointer.
 */
#ifndef WHYLATE_TARGET_ELF_ROWS_H
#define WHYLATE_TARGET_ELF_ROWS_H

#include "base/vec.h"
#include "target/frame_rows.h"
#include "target/usdt_args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_ROWS_PACKET 65536U
/* Bytes of all sections together. */
#define ELF_ROWS_SZ_MAX      (128ULL << 20)
#define ELF_ROWS_CODE_MAX    64
#define ELF_ROWS_BUILD_ID_SZ 64
/* In hex, with the NUL and padding. */
#define ELF_ROWS_BUILD_ID_HEX  (2 * ELF_ROWS_BUILD_ID_SZ + 8)
#define ELF_ROWS_LINK_SZ       256
#define ELF_ROWS_GO_VERSION_SZ 32

/* What is read of a file. */
enum elf_what {
	ELF_READ_SYMBOLS,
	ELF_READ_HEAD,      /* no rows: the head has the build id and the segments */
	ELF_READ_FUNCTIONS, /* of .eh_frame, without steps */
	ELF_READ_FRAMES,    /* with them */
	ELF_READ_GO,        /* functions of Go's own table, by address, and its version */
	ELF_READ_DATUM,     /* no rows: the head has what lies at an offset from where the file is loaded */
	ELF_READ_VARIABLE,  /* no rows: the head has where the variable of a name is */
	ELF_READ_RELOCS,    /* slots and code pointers */
	ELF_READ_MARKERS,   /* USDT markers */
};

enum elf_symbol_kind {
	ELF_SYMBOL_NONE,
	ELF_SYMBOL_FUNCTION,
	ELF_SYMBOL_DATA,
	ELF_SYMBOL_IFUNC, /* its code only chooses, once, among implementations with other names */
};

/* What its symbols give away. */
enum elf_mark {
	ELF_MARK_UNWINDS = 1,   /* throws exceptions, or cleans up when they pass */
	ELF_MARK_CATCHES = 2,   /* stops them */
	ELF_MARK_CLEANS_UP = 4, /* C that cleans up when a thread is cancelled */
	ELF_MARK_SWITCHES = 8,  /* lets several stacks take turns on one thread */
	ELF_MARK_CANCELS = 16,  /* cancels threads */
	ELF_MARK_EXITS = 32,    /* ends threads in the midst of their calls */
	ELF_MARK_SIGNALS = 64,  /* has signals handled on a stack of their own */
	ELF_MARK_LOADS = 128,   /* loads libraries when it likes */
};

/* An executable segment. */
struct elf_code {
	uint64_t addr, file_off, sz;
};

enum elf_row_flag {
	ELF_ROW_AMBIGUOUS = 1,
	ELF_ROW_IFUNC = 2,
};

struct elf_row {
	uint64_t addr, file_off, size;
	uint32_t name_off; /* within the names */
	uint32_t flags;    /* enum elf_row_flag */
};

/* What is no function. */
struct elf_other {
	uint32_t name_off;
	uint32_t kind; /* ELF_SYMBOL_DATA or ELF_SYMBOL_IFUNC */
};

#define ELF_ROWS_NO_NAME UINT32_MAX

/* What the dynamic linker fills in: the address of what bears the name, or of the code at `value`. */
struct elf_slot {
	uint64_t addr, value;
	uint32_t name_off; /* or ELF_ROWS_NO_NAME */
	uint32_t is_ifunc; /* `value` only chooses */
};

/* Of .dynamic: what the file needs, or what it calls itself. */
struct elf_library {
	uint32_t name_off;
	uint32_t is_own;
};

struct elf_marker {
	uint64_t addr;          /* as linked, corrected for prelinking */
	uint64_t file_off;      /* of the instruction */
	uint64_t semaphore_off; /* file offset of the counter that turns the marker on; 0: always on */
	uint32_t provider_off, name_off;
	uint32_t arg_cnt; /* what the marker has, at most USDT_ARG_MAX */
	uint32_t pad;
	struct usdt_arg args[USDT_ARG_MAX];
};

/*
 * Sections in their order: functions by name, each name once; functions by address, each address once; what is no
 * function by name; names one behind the other, each with its NUL; .eh_frame's functions by address, its steps by
 * offset, each once; slots by address; addresses of code that data holds, ascending; markers.
 */
#define ELF_ROWS_SECTIONS(SECTION)                        \
	SECTION(FUNCTIONS, functions, struct elf_row)     \
	SECTION(ADDRESSED, addressed, struct elf_row)     \
	SECTION(OTHERS, others, struct elf_other)         \
	SECTION(NAMES, names, char)                       \
	SECTION(FRAMES, frames, struct frame_function)    \
	SECTION(STEPS, steps, struct frame_step)          \
	SECTION(RULES, rules, struct frame_rule)          \
	SECTION(LINES, lines, struct unwind_where)        \
	SECTION(OPS, ops, struct unwind_op)               \
	SECTION(SLOTS, slots, struct elf_slot)            \
	SECTION(CODE_POINTERS, code_pointers, uint64_t)   \
	SECTION(LIBRARIES, libraries, struct elf_library) \
	SECTION(MARKERS, markers, struct elf_marker)

#define ELF_ROWS_ENUM(name, member, type) ELF_ROWS_##name,
enum elf_section_of_rows { ELF_ROWS_SECTIONS(ELF_ROWS_ENUM) ELF_ROWS_SECTION_CNT };
#undef ELF_ROWS_ENUM

#define ELF_DATUM_NAME_SZ 80

/* Offsets from where the file is loaded, from lo to below hi: of the symbol of that name, or of none (""). */
struct elf_datum {
	uint64_t lo, hi;
	uint32_t is_data; /* or beyond all that the file fills */
	uint32_t pad;
	char name[ELF_DATUM_NAME_SZ];
};

#define ELF_VARIABLE_NAME_SZ 64

struct elf_variable {
	uint64_t value; /* the linked address, or the offset in the thread-local storage */
	uint64_t slot; /* linked address of the word that the dynamic linker sets to where it is from the thread pointer
			*/
	uint32_t is_there;
	uint32_t pad;
};

struct elf_rows_head {
	uint64_t seq; /* of the question */
	uint64_t symbols_taken;
	uint64_t frames_base;
	uint32_t cnt[ELF_ROWS_SECTION_CNT]; /* of rows; of bytes */
	uint32_t err;
	uint32_t code_cnt;
	uint8_t marks; /* enum elf_mark */
	uint8_t is_go;
	uint8_t has_dynamic;
	uint8_t pad;
	uint64_t packed_off, packed_sz; /* .gnu_debugdata; 0: none */
	uint32_t link_crc;
	char link[ELF_ROWS_LINK_SZ]; /* .gnu_debuglink, a plain file name; "": none */
	uint32_t pad_2;
	char build_id[ELF_ROWS_BUILD_ID_HEX];    /* hex */
	char go_version[ELF_ROWS_GO_VERSION_SZ]; /* "": not known, or before 1.18 */
	struct elf_datum datum;                  /* of ELF_READ_DATUM */
	struct elf_variable variable;            /* of ELF_READ_VARIABLE */
	struct elf_code code[ELF_ROWS_CODE_MAX];
};

_Static_assert(sizeof(struct elf_row) == 32 && sizeof(struct elf_other) == 8 && sizeof(struct elf_slot) == 24 &&
		       sizeof(struct elf_library) == 8 &&
		       sizeof(struct elf_marker) == 40 + USDT_ARG_MAX * sizeof(struct usdt_arg),
	       "rows have no hidden padding");
_Static_assert(offsetof(struct elf_rows_head, build_id) == 368 &&
		       sizeof(struct elf_rows_head) ==
			       368 + 136 + 32 + 104 + 24 + ELF_ROWS_CODE_MAX * sizeof(struct elf_code),
	       "the head has no hidden padding");

#define ELF_ROWS_MEMBER(name, member, type) VEC(type) member;
struct elf_rows {
	struct elf_rows_head head;
	ELF_ROWS_SECTIONS(ELF_ROWS_MEMBER)
};
#undef ELF_ROWS_MEMBER

void elf_rows_free(struct elf_rows *rows);
/* Bytes that the rows take. */
size_t elf_rows_sz(const struct elf_rows *rows);
/* A name's bytes and a NUL behind the names that there are: where it begins, or ELF_ROWS_NO_NAME: there is no room. */
uint32_t elf_rows_add_name(struct elf_rows *rows, const char *name, size_t len);
/* The same of bytes that a file has, where they are a name that elf_rows_check() takes. */
bool elf_rows_is_name(const char *name, size_t len);
/* Into the head: how many there are. */
void elf_rows_count(struct elf_rows *rows);
/* Where a section's rows are, and how many. */
void **elf_rows_section(struct elf_rows *rows, int section, size_t **cnt);
/* Bytes of a section by the head. */
uint64_t elf_rows_section_sz(const struct elf_rows_head *head, int section);
/*
 * 0 or -EBADMSG: a head says nothing impossible of a file of that size.  Checked before room for the sections is made.
 */
int elf_rows_check_head(const struct elf_rows_head *head, uint64_t file_sz);
/* The same of all sections, by the head, which has been checked: what elf_file.h and eh_frame.h promise holds. */
int elf_rows_check(const struct elf_rows *rows);

#endif
