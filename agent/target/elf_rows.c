// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/elf_rows.h"

#include "target/nearest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void elf_rows_free(struct elf_rows *rows)
{
#define FREE(name, member, type) vec_free(&rows->member);
	ELF_ROWS_SECTIONS(FREE);
#undef FREE
}

size_t elf_rows_sz(const struct elf_rows *rows)
{
	size_t sz = sizeof(*rows);

#define ELF_ROWS_ADD_SZ(name, member, type) sz += rows->member.cnt * sizeof(type);
	ELF_ROWS_SECTIONS(ELF_ROWS_ADD_SZ)
#undef ELF_ROWS_ADD_SZ
	return sz;
}

void **elf_rows_section(struct elf_rows *rows, int section, size_t **cnt)
{
#define PLACE(name, member, type) {(void **)&rows->member.items, &rows->member.cnt},
	const struct {
		void **items;
		size_t *cnt;
	} sections[ELF_ROWS_SECTION_CNT] = {ELF_ROWS_SECTIONS(PLACE)};
#undef PLACE

	*cnt = sections[section].cnt;
	return sections[section].items;
}

bool elf_rows_is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len && len <= NEAREST_NAME_MAX; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return len && len <= NEAREST_NAME_MAX;
}

uint32_t elf_rows_add_name(struct elf_rows *rows, const char *name, size_t len)
{
	size_t off = rows->names.cnt;

	if (off + len + 1 > ELF_ROWS_SZ_MAX || vec_reserve(&rows->names, len + 1))
		return ELF_ROWS_NO_NAME;
	memcpy(rows->names.items + off, name, len);
	rows->names.items[off + len] = '\0';
	rows->names.cnt += len + 1;
	return (uint32_t)off;
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
#define SZ(name, member, type) sizeof(type),
	static const size_t row_sz[ELF_ROWS_SECTION_CNT] = {ELF_ROWS_SECTIONS(SZ)};
#undef SZ

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

static bool version_is_right(const char version[ELF_ROWS_GO_VERSION_SZ])
{
	size_t len = strnlen(version, ELF_ROWS_GO_VERSION_SZ);

	return len < ELF_ROWS_GO_VERSION_SZ && (!len || elf_rows_is_name(version, len));
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
	if (sz > ELF_ROWS_SZ_MAX || head->code_cnt > ELF_ROWS_CODE_MAX || head->is_go > 1 || head->has_dynamic > 1 ||
	    !version_is_right(head->go_version) || head->build_id[sizeof(head->build_id) - 1] ||
	    !build_id_is_right(head->build_id) || !links_are_right(head, file_sz) || !datum_is_right(&head->datum) ||
	    head->variable.is_there > 1)
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

static bool marker_is_right(const struct elf_rows *rows, const struct elf_marker *marker)
{
	if (!name_at(rows, marker->provider_off) || !name_at(rows, marker->name_off) || marker->arg_cnt > USDT_ARG_MAX)
		return false;
	for (uint32_t i = 0; i < marker->arg_cnt; i++)
		if (!usdt_arg_is_right(&marker->args[i]))
			return false;
	return true;
}

static bool links_of_rows_are_right(const struct elf_rows *rows)
{
	for (size_t i = 0; i < rows->slots.cnt; i++) {
		const struct elf_slot *slot = &rows->slots.items[i];

		if ((slot->name_off != ELF_ROWS_NO_NAME && !name_at(rows, slot->name_off)) || slot->is_ifunc > 1 ||
		    (i && slot[-1].addr > slot->addr))
			return false;
	}
	for (size_t i = 1; i < rows->code_pointers.cnt; i++)
		if (rows->code_pointers.items[i - 1] >= rows->code_pointers.items[i])
			return false;
	for (size_t i = 0; i < rows->libraries.cnt; i++)
		if (!name_at(rows, rows->libraries.items[i].name_off) || rows->libraries.items[i].is_own > 1)
			return false;
	return true;
}

static bool markers_are_right(const struct elf_rows *rows)
{
	for (size_t i = 0; i < rows->markers.cnt; i++)
		if (!marker_is_right(rows, &rows->markers.items[i]))
			return false;
	return true;
}

int elf_rows_check(const struct elf_rows *rows)
{
	const char *name, *before = NULL;

	if (!names_are_right(rows) || !frames_are_right(rows) || !links_of_rows_are_right(rows) ||
	    !markers_are_right(rows))
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
