/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is read of one ELF file as whylate-symbols sends it to the agent: a head, then sections, each in packets of
 * ELF_ROWS_PACKET bytes, the last one shorter.  All widths are fixed, nothing is a pointer.
 */
#ifndef WHYLATE_TARGET_ELF_ROWS_H
#define WHYLATE_TARGET_ELF_ROWS_H

#include "base/vec.h"
#include "target/frame_rows.h"

#include <stddef.h>
#include <stdint.h>

#define ELF_ROWS_PACKET 65536U
/* Bytes of all sections together. */
#define ELF_ROWS_SZ_MAX      (128ULL << 20)
#define ELF_ROWS_CODE_MAX    64
#define ELF_ROWS_BUILD_ID_SZ 64
/* In hex, with the NUL and padding. */
#define ELF_ROWS_BUILD_ID_HEX (2 * ELF_ROWS_BUILD_ID_SZ + 8)
#define ELF_ROWS_LINK_SZ      256

/* What is read of a file. */
enum elf_what {
	ELF_READ_SYMBOLS,
	ELF_READ_HEAD,      /* no rows: the head has the build id and the segments */
	ELF_READ_FUNCTIONS, /* of .eh_frame, without steps */
	ELF_READ_FRAMES,    /* with them */
	ELF_READ_GO,        /* functions of Go's own table, by address */
	ELF_READ_DATUM,     /* no rows: the head has what lies at an offset from where the file is loaded */
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

enum elf_section_of_rows {
	ELF_ROWS_FUNCTIONS, /* struct elf_row by name, each name once */
	ELF_ROWS_ADDRESSED, /* struct elf_row by address, each address once */
	ELF_ROWS_OTHERS,    /* struct elf_other by name */
	ELF_ROWS_NAMES,     /* one behind the other, each with its NUL */
	ELF_ROWS_FRAMES,    /* struct frame_function by address */
	ELF_ROWS_STEPS,     /* struct frame_step by offset, each once */
	ELF_ROWS_RULES,     /* struct frame_rule */
	ELF_ROWS_LINES,     /* struct unwind_where */
	ELF_ROWS_OPS,       /* struct unwind_op */
	ELF_ROWS_SECTION_CNT
};

#define ELF_DATUM_NAME_SZ 80

/* Offsets from where the file is loaded, from lo to below hi: of the symbol of that name, or of none (""). */
struct elf_datum {
	uint64_t lo, hi;
	uint32_t is_data; /* or beyond all that the file fills */
	uint32_t pad;
	char name[ELF_DATUM_NAME_SZ];
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
	uint8_t pad[2];
	uint64_t packed_off, packed_sz; /* .gnu_debugdata; 0: none */
	uint32_t link_crc;
	char link[ELF_ROWS_LINK_SZ]; /* .gnu_debuglink, a plain file name; "": none */
	uint32_t pad_2;
	char build_id[ELF_ROWS_BUILD_ID_HEX]; /* hex */
	struct elf_datum datum;               /* of ELF_READ_DATUM */
	struct elf_code code[ELF_ROWS_CODE_MAX];
};

_Static_assert(sizeof(struct elf_row) == 32 && sizeof(struct elf_other) == 8, "rows have no hidden padding");
_Static_assert(offsetof(struct elf_rows_head, build_id) == 352 &&
		       sizeof(struct elf_rows_head) == 352 + 136 + 104 + ELF_ROWS_CODE_MAX * sizeof(struct elf_code),
	       "the head has no hidden padding");

struct elf_rows {
	struct elf_rows_head head;
	VEC(struct elf_row) functions;
	VEC(struct elf_row) addressed;
	VEC(struct elf_other) others;
	VEC(char) names;
	VEC(struct frame_function) frames;
	VEC(struct frame_step) steps;
	VEC(struct frame_rule) rules;
	VEC(struct unwind_where) lines;
	VEC(struct unwind_op) ops;
};

void elf_rows_free(struct elf_rows *rows);
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
