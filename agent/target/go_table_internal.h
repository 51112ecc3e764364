/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What go_table.c (functions) and go_frames.c (their frames) share: .gopclntab, since Go 1.18. */
#ifndef WHYLATE_TARGET_GO_TABLE_INTERNAL_H
#define WHYLATE_TARGET_GO_TABLE_INTERNAL_H

#include "target/elf_image.h"

/* Of one part of the table. */
#define GO_TABLE_SZ_MAX (128ULL << 20)

/* Offsets are from its beginning. */
struct go_table_header {
	uint32_t magic;
	uint8_t zero[2], min_instruction, pointer_sz;
	uint64_t function_cnt, file_cnt, text_start, names_off, units_off, files_off, pcs_off, functions_off;
};

/* By which the table is in order: an offset from the text, and where the function's entry is in `functions`. */
struct go_table_place {
	uint32_t code_off, entry_off;
};

struct go_table {
	const struct elf_image *image;
	const struct elf_section *section;
	struct go_table_header header;
	bool has_start_line; /* an entry has one more word before its flags (Go 1.20) */
	uint64_t text_start; /* as linked */
	uint8_t *functions;  /* places, one of the end, and entries; for the caller to free() */
	uint64_t functions_sz;
};

/* 0, -ENOMEM, -ENOTSUP: there is none, or it is not as Go 1.18 and later make it.  Of a table that is zero. */
int go_table_open(const struct elf_image *image, struct go_table *table);
/* A copy of a part, for the caller to free(): 0, -ENOMEM, -ENOTSUP. */
int go_table_part(const struct go_table *table, uint64_t off, uint64_t sz, uint8_t **bytes);
/* The function's place and the next one's, which bounds it; idx < function_cnt. */
void go_table__places(const struct go_table *table, uint64_t idx, struct go_table_place places[2]);

#endif
