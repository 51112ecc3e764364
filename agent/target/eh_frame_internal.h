/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What eh_frame_read.c (entries) and eh_frame_run.c (their instructions) share. */
#ifndef WHYLATE_TARGET_EH_FRAME_INTERNAL_H
#define WHYLATE_TARGET_EH_FRAME_INTERNAL_H

#include "base/idmap.h"
#include "base/vec.h"
#include "target/elf_rows.h"

struct cie {
	uint32_t off; /* of the entry, into the table */
	uint32_t code_off, code_end;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_reg;
	uint8_t pointer_format;
	bool has_augmentation, is_signal_frame;
};

struct fde {
	uint64_t addr, size; /* as linked; size > 0 */
	uint32_t cie;
	uint32_t code_off, code_end; /* its call frame instructions, into the table */
};

struct line_list {
	uint32_t first, cnt;
};

struct eh_table {
	uint8_t *bytes;
	size_t sz;
	uint64_t addr; /* of bytes[0] */
	VEC(struct cie) cies;
	VEC(struct fde) fdes;
	struct elf_rows *rows; /* that are made */
	struct idmap rule_ids, list_ids, expression_ids;
	VEC(struct line_list) lists, expressions;
};

/* Reading never passes `end`; what would sets `bad` and gives 0. */
struct cursor {
	const struct eh_table *table;
	size_t pos, end;
	bool bad;
};

uint64_t cursor__take(struct cursor *cursor, unsigned sz);
void cursor__skip(struct cursor *cursor, uint64_t sz);
uint64_t cursor__uleb(struct cursor *cursor);
int64_t cursor__sleb(struct cursor *cursor);
/* Its size comes from the format: what follows does not depend on whether the base is one that is known. */
uint64_t cursor__pointer(struct cursor *cursor, uint8_t format, bool *known);

/*
 * The steps of the FDE up to that address, and the rule of its first instruction: 0, -ENOMEM, -EFBIG.  Without steps:
 * the first rule alone.
 */
int eh_fde_run(struct eh_table *table, const struct fde *fde, uint64_t end, bool with_steps, uint32_t *first_rule);
/* From that address on nothing is known, as far as steps said something. */
int eh_step_end(struct eh_table *table, uint64_t addr);

#endif
