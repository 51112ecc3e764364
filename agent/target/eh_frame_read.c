// SPDX-License-Identifier: GPL-2.0-or-later
/* The format: Linux Standard Base 5.0, core, §10.6, and DWARF 5, §6.4. */
#include "target/eh_frame_read.h"

#include "base/bytes.h"
#include "base/order.h"
#include "target/eh_frame_internal.h"

#include <errno.h>
#include <string.h>

#define TABLE_SZ_MAX  (512ULL << 20)
#define FUNCTIONS_MAX (8U << 20)

enum pointer_format {
	PTR_ABS = 0,
	PTR_ULEB = 1,
	PTR_U2 = 2,
	PTR_U4 = 3,
	PTR_U8 = 4,
	PTR_SLEB = 9,
	PTR_S2 = 10,
	PTR_S4 = 11,
	PTR_S8 = 12,
	PTR_FORMAT_MASK = 0x0f,
	PTR_PCREL = 0x10,
	PTR_BASE_MASK = 0x70,
};

uint64_t cursor__take(struct cursor *cursor, unsigned sz)
{
	uint64_t value;

	if (cursor->bad || sz > cursor->end - cursor->pos) {
		cursor->bad = true;
		return 0;
	}
	value = get_le(cursor->table->bytes + cursor->pos, sz);
	cursor->pos += sz;
	return value;
}

void cursor__skip(struct cursor *cursor, uint64_t sz)
{
	if (cursor->bad || sz > cursor->end - cursor->pos)
		cursor->bad = true;
	else
		cursor->pos += sz;
}

/* LEB128; of a signed one the last byte's bit 6 is the sign. */
static uint64_t take_leb(struct cursor *cursor, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cursor__take(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !cursor->bad);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

uint64_t cursor__uleb(struct cursor *cursor)
{
	return take_leb(cursor, false);
}

int64_t cursor__sleb(struct cursor *cursor)
{
	return (int64_t)take_leb(cursor, true);
}

uint64_t cursor__pointer(struct cursor *cursor, uint8_t format, bool *known)
{
	uint64_t place = cursor->table->addr + cursor->pos, value = 0;

	switch (format & PTR_FORMAT_MASK) {
	case PTR_ABS:
	case PTR_U8:
	case PTR_S8:
		value = cursor__take(cursor, 8);
		break;
	case PTR_U2:
		value = cursor__take(cursor, 2);
		break;
	case PTR_S2:
		value = (int64_t)(int16_t)cursor__take(cursor, 2);
		break;
	case PTR_U4:
		value = cursor__take(cursor, 4);
		break;
	case PTR_S4:
		value = (int64_t)(int32_t)cursor__take(cursor, 4);
		break;
	case PTR_ULEB:
		value = cursor__uleb(cursor);
		break;
	case PTR_SLEB:
		value = cursor__sleb(cursor);
		break;
	default:
		cursor->bad = true;
	}
	*known = (format & PTR_BASE_MASK) == PTR_PCREL || !(format & PTR_BASE_MASK);
	if ((format & PTR_BASE_MASK) == PTR_PCREL && value)
		value += place;
	return value;
}

/* "zPLR" and the like; -ENOEXEC for what cannot be read. */
static int augmentation_read(struct cursor *cursor, struct cie *cie, const char *letters)
{
	bool known;
	size_t end;

	if (!letters[0])
		return 0;
	if (letters[0] != 'z')
		return -ENOEXEC;
	cie->has_augmentation = true;
	uint64_t sz = cursor__uleb(cursor);

	if (cursor->bad || sz > cursor->end - cursor->pos)
		return -ENOEXEC;
	end = cursor->pos + sz;
	for (letters++; *letters && !cursor->bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_format = cursor__take(cursor, 1);
			break;
		case 'L':
			cursor__skip(cursor, 1);
			break;
		case 'P':
			cursor__pointer(cursor, cursor__take(cursor, 1), &known);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B':
			break;
		default:
			/* Unknown ones after those that we need do no harm: their data is skipped. */
			goto out;
		}
	}
out:
	if (cursor->bad || cursor->pos > end)
		return -ENOEXEC;
	cursor->pos = end;
	return 0;
}

/* `cursor` stands behind the CIE's id and ends with the entry. */
static int cie_add(struct eh_table *table, struct cursor *cursor, size_t off)
{
	struct cie cie = {.off = off};
	uint8_t version = cursor__take(cursor, 1);
	const char *letters = (const char *)table->bytes + cursor->pos;

	if (cursor->bad || (version != 1 && version != 3) || !memchr(letters, '\0', cursor->end - cursor->pos))
		return 0;
	cursor__skip(cursor, strlen(letters) + 1);
	cie.code_align = cursor__uleb(cursor);
	cie.data_align = cursor__sleb(cursor);
	cie.return_reg = version == 1 ? cursor__take(cursor, 1) : cursor__uleb(cursor);
	if (augmentation_read(cursor, &cie, letters) || cursor->bad)
		return 0;
	cie.code_off = cursor->pos;
	cie.code_end = cursor->end;
	return vec_push(&table->cies, cie);
}

static const struct cie *cie_find(const struct eh_table *table, size_t off)
{
	size_t found = search_first(0, table->cies.cnt, at, table->cies.items[at].off >= off);

	return found < table->cies.cnt && table->cies.items[found].off == off ? &table->cies.items[found] : NULL;
}

/* `cursor` stands behind the CIE pointer and ends with the entry. */
static int fde_add(struct eh_table *table, struct cursor *cursor, size_t cie_off)
{
	const struct cie *cie = cie_find(table, cie_off);
	struct fde fde = {0};
	bool known, size_known;

	if (!cie)
		return 0;
	fde.cie = cie - table->cies.items;
	fde.addr = cursor__pointer(cursor, cie->pointer_format, &known);
	/* A length: the same format, but from no base. */
	fde.size = cursor__pointer(cursor, cie->pointer_format & PTR_FORMAT_MASK, &size_known);
	if (cie->has_augmentation)
		cursor__skip(cursor, cursor__uleb(cursor));
	fde.code_off = cursor->pos;
	fde.code_end = cursor->end;
	if (cursor->bad || !known || !fde.size || fde.addr > UINT64_MAX - fde.size || table->fdes.cnt == FUNCTIONS_MAX)
		return 0;
	return vec_push(&table->fdes, fde);
}

static int entries_read(struct eh_table *table)
{
	struct cursor all = {.table = table, .end = table->sz};
	int err = 0;

	while (!err && all.end - all.pos >= 4) {
		size_t off = all.pos, id_off;
		uint64_t sz = cursor__take(&all, 4), id;
		struct cursor entry;

		if (sz == UINT32_MAX)
			sz = cursor__take(&all, 8);
		if (!sz || all.bad || sz > all.end - all.pos)
			break;
		entry = (struct cursor){.table = table, .pos = all.pos, .end = all.pos + sz};
		all.pos += sz;
		id_off = entry.pos;
		id = cursor__take(&entry, 4);
		if (entry.bad)
			continue;
		err = id ? (id <= id_off ? fde_add(table, &entry, id_off - id) : 0) : cie_add(table, &entry, off);
	}
	return err;
}

ORDER(fde_cmp, struct fde, BY(a->addr, b->addr), BY(b->size, a->size));

/* Where the table is, by the section, or in a file without sections by what the unwinder itself uses. */
static int table_find(const struct elf_image *image, uint64_t *addr, uint64_t *file_off, uint64_t *sz)
{
	const struct elf_section *section = elf_image__section(image, ".eh_frame");
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(image, &segments);
	uint8_t header[8];
	int32_t rel;

	if (section) {
		*addr = section->addr;
		*file_off = section->file_off;
		*sz = section->size;
		return 0;
	}
	for (size_t i = 0; i < cnt; i++) {
		if (segments[i].type != PT_GNU_EH_FRAME || segments[i].file_sz < sizeof(header))
			continue;
		if (elf_image__read(image, segments[i].file_off, header, sizeof(header)) != sizeof(header) ||
		    header[0] != 1 || header[1] != (PTR_PCREL | PTR_S4))
			return -ENOEXEC;
		memcpy(&rel, header + 4, sizeof(rel));
		*addr = segments[i].addr + 4 + (int64_t)rel;
		for (size_t j = 0; j < cnt; j++) {
			if (segments[j].type != PT_LOAD || *addr < segments[j].addr ||
			    *addr - segments[j].addr >= segments[j].file_sz)
				continue;
			*file_off = segments[j].file_off + (*addr - segments[j].addr);
			*sz = segments[j].file_sz - (*addr - segments[j].addr);
			return 0;
		}
		return -ENOEXEC;
	}
	return -ENOENT;
}

/* Of several that cover an address the one that begins last says what holds there. */
static int fdes_run(struct eh_table *table, bool functions_only)
{
	struct elf_rows *rows = table->rows;
	int err = 0;

	for (size_t i = 0; i < table->fdes.cnt && !err; i++) {
		const struct fde *fde = &table->fdes.items[i];
		uint64_t next = i + 1 < table->fdes.cnt ? fde[1].addr : UINT64_MAX, end = fde->addr + fde->size;
		struct frame_function function = {.addr = fde->addr, .size = fde->size, .rule = FRAME_RULE_NONE};
		bool with_steps = !functions_only && end - rows->head.frames_base <= UINT32_MAX && next > fde->addr;

		err = eh_fde_run(table, fde, with_steps && next < end ? next : end, with_steps, &function.rule);
		if (!err && with_steps && next > end)
			err = eh_step_end(table, end);
		if (!err)
			err = vec_push(&rows->frames, function);
	}
	return err;
}

int eh_frame_read(const struct elf_image *image, bool functions_only, struct elf_rows *rows)
{
	struct eh_table table = {.rows = rows};
	uint64_t file_off, sz;
	int err = table_find(image, &table.addr, &file_off, &sz);

	if (!err) {
		table.bytes = elf_image__copy(image, file_off, sz, TABLE_SZ_MAX);
		err = table.bytes ? 0 : -errno;
		table.sz = sz;
	}
	if (!err)
		err = entries_read(&table);
	vec_sort(&table.fdes, fde_cmp);
	rows->head.frames_base = table.fdes.cnt ? table.fdes.items[0].addr : 0;
	if (!err)
		err = fdes_run(&table, functions_only);
	elf_rows_count(rows);
	free(table.bytes);
	vec_free(&table.cies);
	vec_free(&table.fdes);
	vec_free(&table.lists);
	vec_free(&table.expressions);
	idmap__free(&table.rule_ids);
	idmap__free(&table.list_ids);
	idmap__free(&table.expression_ids);
	return err;
}
