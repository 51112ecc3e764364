// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_rows.h"

#include "target/nearest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void elf_rows_free(struct elf_rows *rows)
{
	vec_free(&rows->functions);
	vec_free(&rows->addressed);
	vec_free(&rows->others);
	vec_free(&rows->names);
	vec_free(&rows->frames);
	vec_free(&rows->steps);
	vec_free(&rows->rules);
	vec_free(&rows->lines);
	vec_free(&rows->ops);
}

void **elf_rows_section(struct elf_rows *rows, int section, size_t **cnt)
{
	const struct {
		void **items;
		size_t *cnt;
	} sections[ELF_ROWS_SECTION_CNT] = {
		[ELF_ROWS_FUNCTIONS] = {(void **)&rows->functions.items, &rows->functions.cnt},
		[ELF_ROWS_ADDRESSED] = {(void **)&rows->addressed.items, &rows->addressed.cnt},
		[ELF_ROWS_OTHERS] = {(void **)&rows->others.items, &rows->others.cnt},
		[ELF_ROWS_NAMES] = {(void **)&rows->names.items, &rows->names.cnt},
		[ELF_ROWS_FRAMES] = {(void **)&rows->frames.items, &rows->frames.cnt},
		[ELF_ROWS_STEPS] = {(void **)&rows->steps.items, &rows->steps.cnt},
		[ELF_ROWS_RULES] = {(void **)&rows->rules.items, &rows->rules.cnt},
		[ELF_ROWS_LINES] = {(void **)&rows->lines.items, &rows->lines.cnt},
		[ELF_ROWS_OPS] = {(void **)&rows->ops.items, &rows->ops.cnt},
	};

	*cnt = sections[section].cnt;
	return sections[section].items;
}

void elf_rows_count(struct elf_rows *rows)
{
	size_t *cnt;

	for (int i = 0; i < ELF_ROWS_SECTION_CNT; i++) {
		elf_rows_section(rows, i, &cnt);
		rows->head.cnt[i] = (uint32_t)*cnt;
	}
}

uint64_t elf_rows_section_sz(const struct elf_rows_head *head, int section)
{
	static const size_t row_sz[ELF_ROWS_SECTION_CNT] = {
		[ELF_ROWS_FUNCTIONS] = sizeof(struct elf_row),     [ELF_ROWS_ADDRESSED] = sizeof(struct elf_row),
		[ELF_ROWS_OTHERS] = sizeof(struct elf_other),      [ELF_ROWS_NAMES] = 1,
		[ELF_ROWS_FRAMES] = sizeof(struct frame_function), [ELF_ROWS_STEPS] = sizeof(struct frame_step),
		[ELF_ROWS_RULES] = sizeof(struct frame_rule),      [ELF_ROWS_LINES] = sizeof(struct unwind_where),
		[ELF_ROWS_OPS] = sizeof(struct unwind_op),
	};

	return (uint64_t)head->cnt[section] * row_sz[section];
}

static bool build_id_is_right(const char build_id[ELF_ROWS_BUILD_ID_HEX])
{
	size_t len = strspn(build_id, "0123456789abcdef");

	return len <= 2 * ELF_ROWS_BUILD_ID_SZ && len % 2 == 0 && !build_id[len];
}

static bool datum_is_right(const struct elf_datum *datum)
{
	size_t len = strnlen(datum->name, sizeof(datum->name));

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)datum->name[i] < ' ' || datum->name[i] == 0x7f)
			return false;
	return len < sizeof(datum->name) && datum->is_data <= 1 && datum->lo <= datum->hi;
}

static bool links_are_right(const struct elf_rows_head *head, uint64_t file_sz)
{
	return memchr(head->link, '\0', sizeof(head->link)) && !strchr(head->link, '/') &&
	       head->packed_off <= file_sz && head->packed_sz <= file_sz - head->packed_off;
}

int elf_rows_check_head(const struct elf_rows_head *head, uint64_t file_sz)
{
	uint64_t sz = 0;

	for (int i = 0; i < ELF_ROWS_SECTION_CNT; i++)
		sz += elf_rows_section_sz(head, i);
	if (sz > ELF_ROWS_SZ_MAX || head->code_cnt > ELF_ROWS_CODE_MAX || head->is_go > 1 ||
	    head->build_id[sizeof(head->build_id) - 1] || !build_id_is_right(head->build_id) ||
	    !links_are_right(head, file_sz) || !datum_is_right(&head->datum))
		return -EBADMSG;
	for (uint32_t i = 0; i < head->code_cnt; i++) {
		const struct elf_code *code = &head->code[i];

		if (code->file_off > file_sz || code->sz > file_sz - code->file_off ||
		    code->addr > UINT64_MAX - code->sz)
			return -EBADMSG;
	}
	return 0;
}

/* None is empty, too long, or acts on a terminal. */
static bool names_are_right(const struct elf_rows *rows)
{
	size_t len = 0;

	for (size_t i = 0; i < rows->names.cnt; i++) {
		unsigned char byte = (unsigned char)rows->names.items[i];

		if (byte ? byte < ' ' || byte == 0x7f : !len || len > NEAREST_NAME_MAX)
			return false;
		len = byte ? len + 1 : 0;
	}
	return !len;
}

/* NULL: no name begins there. */
static const char *name_at(const struct elf_rows *rows, uint32_t off)
{
	return off < rows->names.cnt && (!off || !rows->names.items[off - 1]) ? rows->names.items + off : NULL;
}

static bool row_is_right(const struct elf_rows *rows, const struct elf_row *row)
{
	if (!name_at(rows, row->name_off))
		return false;
	for (uint32_t i = 0; i < rows->head.code_cnt; i++) {
		const struct elf_code *code = &rows->head.code[i];
		uint64_t off = row->addr - code->addr;

		if (row->addr >= code->addr && off < code->sz && row->file_off == code->file_off + off)
			return row->size <= code->sz - off;
	}
	return false;
}

static bool where_is_right(const struct elf_rows *rows, const struct unwind_where *where)
{
	bool is_expression = where->what == UNWIND_SAVED_EXPR || where->what == UNWIND_EXPR;

	if (where->what > UNWIND_EXPR || where->of >= UNWIND_REGS || where->reg >= UNWIND_REGS)
		return false;
	return !is_expression ||
	       (where->op_cnt && where->op_cnt <= UNWIND_OPS_MAX && where->off >= 0 &&
		(uint64_t)where->off <= rows->ops.cnt && where->op_cnt <= rows->ops.cnt - (uint64_t)where->off);
}

static bool rule_is_right(const struct elf_rows *rows, const struct frame_rule *rule)
{
	return where_is_right(rows, &rule->cfa) && rule->ra < UNWIND_REGS && rule->is_start <= 1 &&
	       rule->is_signal <= 1 && rule->line_cnt <= UNWIND_LINES_MAX && rule->first_line <= rows->lines.cnt &&
	       rule->line_cnt <= rows->lines.cnt - rule->first_line;
}

static bool has_rule(const struct elf_rows *rows, uint32_t rule)
{
	return rule == FRAME_RULE_NONE || rule < rows->rules.cnt;
}

static bool frames_are_right(const struct elf_rows *rows)
{
	for (size_t i = 0; i < rows->lines.cnt; i++)
		if (!where_is_right(rows, &rows->lines.items[i]))
			return false;
	for (size_t i = 0; i < rows->rules.cnt; i++)
		if (!rule_is_right(rows, &rows->rules.items[i]))
			return false;
	for (size_t i = 0; i < rows->frames.cnt; i++) {
		const struct frame_function *function = &rows->frames.items[i];

		if (!function->size || function->addr > UINT64_MAX - function->size ||
		    !has_rule(rows, function->rule) || (i && function[-1].addr > function->addr))
			return false;
	}
	for (size_t i = 0; i < rows->steps.cnt; i++) {
		const struct frame_step *step = &rows->steps.items[i];

		if (!has_rule(rows, step->rule) || (i && step[-1].off >= step->off))
			return false;
	}
	return true;
}

int elf_rows_check(const struct elf_rows *rows)
{
	const char *name, *before = NULL;

	if (!names_are_right(rows) || !frames_are_right(rows))
		return -EBADMSG;
	for (size_t i = 0; i < rows->functions.cnt; i++, before = name) {
		const struct elf_row *row = &rows->functions.items[i];

		name = name_at(rows, row->name_off);
		if (!row_is_right(rows, row) || (before && strcmp(before, name) >= 0))
			return -EBADMSG;
	}
	for (size_t i = 0; i < rows->addressed.cnt; i++) {
		const struct elf_row *row = &rows->addressed.items[i];

		if (!row_is_right(rows, row) || (i && row[-1].addr >= row->addr))
			return -EBADMSG;
	}
	before = NULL;
	for (size_t i = 0; i < rows->others.cnt; i++, before = name) {
		const struct elf_other *other = &rows->others.items[i];

		name = name_at(rows, other->name_off);
		if (!name || (before && strcmp(before, name) >= 0) ||
		    (other->kind != ELF_SYMBOL_DATA && other->kind != ELF_SYMBOL_IFUNC))
			return -EBADMSG;
	}
	return 0;
}
