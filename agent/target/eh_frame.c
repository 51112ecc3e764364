// SPDX-License-Identifier: GPL-2.0-or-later
/* The format: Linux Standard Base 5.0, core, §10.6, and DWARF 5, §6.4. */
#include "target/eh_frame.h"

#include "base/bytes.h"
#include "base/order.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

#define TABLE_SZ_MAX    (512ULL << 20)
#define FUNCTIONS_MAX   (8U << 20)
#define STATES_MAX      32
#define CFI_STEPS_MAX   65536
#define POINTER_OMITTED 0xff

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

enum cfi {
	CFI_NOP = 0x00,
	CFI_SET_LOC = 0x01,
	CFI_ADVANCE1 = 0x02,
	CFI_ADVANCE2 = 0x03,
	CFI_ADVANCE4 = 0x04,
	CFI_OFFSET_EXTENDED = 0x05,
	CFI_RESTORE_EXTENDED = 0x06,
	CFI_UNDEFINED = 0x07,
	CFI_SAME_VALUE = 0x08,
	CFI_REGISTER = 0x09,
	CFI_REMEMBER = 0x0a,
	CFI_RESTORE_STATE = 0x0b,
	CFI_DEF_CFA = 0x0c,
	CFI_DEF_CFA_REGISTER = 0x0d,
	CFI_DEF_CFA_OFFSET = 0x0e,
	CFI_DEF_CFA_EXPRESSION = 0x0f,
	CFI_EXPRESSION = 0x10,
	CFI_OFFSET_EXTENDED_SF = 0x11,
	CFI_DEF_CFA_SF = 0x12,
	CFI_DEF_CFA_OFFSET_SF = 0x13,
	CFI_VAL_OFFSET = 0x14,
	CFI_VAL_OFFSET_SF = 0x15,
	CFI_VAL_EXPRESSION = 0x16,
	CFI_NEGATE_RA_STATE = 0x2d, /* arm64 */
	CFI_GNU_ARGS_SIZE = 0x2e,
	CFI_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	/* The top two bits; the others are an operand. */
	CFI_ADVANCE = 0x40,
	CFI_OFFSET = 0x80,
	CFI_RESTORE = 0xc0,
	CFI_HIGH_MASK = 0xc0,
};

struct cie {
	uint32_t off; /* of the entry, into the table */
	uint32_t code_off, code_end;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_reg;
	uint8_t pointer_format, lsda_format;
	bool has_augmentation, is_signal_frame;
};

struct eh_frame {
	uint8_t *bytes;
	size_t sz;
	uint64_t addr; /* of bytes[0] */
	VEC(struct cie) cies;
	VEC(struct eh_function) functions;
};

/* Reading never passes `end`; what would sets `bad` and gives 0. */
struct cursor {
	const struct eh_frame *frame;
	size_t pos, end;
	bool bad;
};

static uint64_t take(struct cursor *cursor, unsigned sz)
{
	uint64_t value;

	if (cursor->bad || sz > cursor->end - cursor->pos) {
		cursor->bad = true;
		return 0;
	}
	value = get_le(cursor->frame->bytes + cursor->pos, sz);
	cursor->pos += sz;
	return value;
}

static void skip(struct cursor *cursor, uint64_t sz)
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
		byte = take(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !cursor->bad);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t take_uleb(struct cursor *cursor)
{
	return take_leb(cursor, false);
}

static int64_t take_sleb(struct cursor *cursor)
{
	return (int64_t)take_leb(cursor, true);
}

/* Its size comes from the format: what follows does not depend on whether the base is one that we know. */
static uint64_t take_pointer(struct cursor *cursor, uint8_t format, bool *known)
{
	uint64_t place = cursor->frame->addr + cursor->pos, value = 0;

	switch (format & PTR_FORMAT_MASK) {
	case PTR_ABS:
	case PTR_U8:
	case PTR_S8:
		value = take(cursor, 8);
		break;
	case PTR_U2:
		value = take(cursor, 2);
		break;
	case PTR_S2:
		value = (int64_t)(int16_t)take(cursor, 2);
		break;
	case PTR_U4:
		value = take(cursor, 4);
		break;
	case PTR_S4:
		value = (int64_t)(int32_t)take(cursor, 4);
		break;
	case PTR_ULEB:
		value = take_uleb(cursor);
		break;
	case PTR_SLEB:
		value = take_sleb(cursor);
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
	uint64_t sz = take_uleb(cursor);

	if (cursor->bad || sz > cursor->end - cursor->pos)
		return -ENOEXEC;
	end = cursor->pos + sz;
	for (letters++; *letters && !cursor->bad; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_format = take(cursor, 1);
			break;
		case 'L':
			cie->lsda_format = take(cursor, 1);
			break;
		case 'P':
			take_pointer(cursor, take(cursor, 1), &known);
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
static int cie_add(struct eh_frame *frame, struct cursor *cursor, size_t off)
{
	struct cie cie = {.off = off, .lsda_format = POINTER_OMITTED};
	uint8_t version = take(cursor, 1);
	const char *letters = (const char *)frame->bytes + cursor->pos;

	if (cursor->bad || (version != 1 && version != 3) || !memchr(letters, '\0', cursor->end - cursor->pos))
		return 0;
	skip(cursor, strlen(letters) + 1);
	cie.code_align = take_uleb(cursor);
	cie.data_align = take_sleb(cursor);
	cie.return_reg = version == 1 ? take(cursor, 1) : take_uleb(cursor);
	if (augmentation_read(cursor, &cie, letters) || cursor->bad)
		return 0;
	cie.code_off = cursor->pos;
	cie.code_end = cursor->end;
	return vec_push(&frame->cies, cie);
}

static const struct cie *cie_find(const struct eh_frame *frame, size_t off)
{
	size_t found = search_first(0, frame->cies.cnt, at, frame->cies.items[at].off >= off);

	return found < frame->cies.cnt && frame->cies.items[found].off == off ? &frame->cies.items[found] : NULL;
}

/* `cursor` stands behind the CIE pointer and ends with the entry. */
static int fde_add(struct eh_frame *frame, struct cursor *cursor, size_t cie_off)
{
	const struct cie *cie = cie_find(frame, cie_off);
	struct eh_function function = {0};
	bool known, lsda_known;

	if (!cie)
		return 0;
	function.cie = cie - frame->cies.items;
	function.addr = take_pointer(cursor, cie->pointer_format, &known);
	/* A length: the same format, but from no base. */
	function.size = take_pointer(cursor, cie->pointer_format & PTR_FORMAT_MASK, &lsda_known);
	if (cie->has_augmentation) {
		uint64_t sz = take_uleb(cursor);
		size_t begin = cursor->pos;

		if (cie->lsda_format != POINTER_OMITTED && sz)
			function.lsda = take_pointer(cursor, cie->lsda_format, &lsda_known);
		cursor->pos = begin;
		skip(cursor, sz);
	}
	function.code_off = cursor->pos;
	function.code_end = cursor->end;
	if (cursor->bad || !known || !function.size || function.addr > UINT64_MAX - function.size ||
	    frame->functions.cnt == FUNCTIONS_MAX)
		return 0;
	return vec_push(&frame->functions, function);
}

static int entries_read(struct eh_frame *frame)
{
	struct cursor table = {.frame = frame, .end = frame->sz};
	int err = 0;

	while (!err && table.end - table.pos >= 4) {
		size_t off = table.pos, id_off;
		uint64_t sz = take(&table, 4), id;
		struct cursor entry;

		if (sz == UINT32_MAX)
			sz = take(&table, 8);
		if (!sz || table.bad || sz > table.end - table.pos)
			break;
		entry = (struct cursor){.frame = frame, .pos = table.pos, .end = table.pos + sz};
		table.pos += sz;
		id_off = entry.pos;
		id = take(&entry, 4);
		if (entry.bad)
			continue;
		err = id ? (id <= id_off ? fde_add(frame, &entry, id_off - id) : 0) : cie_add(frame, &entry, off);
	}
	return err;
}

ORDER(function_cmp, struct eh_function, BY(a->addr, b->addr), BY(b->size, a->size));

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

struct eh_frame *eh_frame__read(const struct elf_image *image)
{
	struct eh_frame *frame = calloc(1, sizeof(*frame));
	uint64_t file_off, sz;
	int err;

	if (!frame)
		return NULL;
	err = table_find(image, &frame->addr, &file_off, &sz);
	if (!err) {
		frame->bytes = elf_image__copy(image, file_off, sz, TABLE_SZ_MAX);
		err = frame->bytes ? 0 : -errno;
		frame->sz = sz;
	}
	if (!err)
		err = entries_read(frame);
	if (err) {
		eh_frame__free(frame);
		errno = -err;
		return NULL;
	}
	vec_shrink(&frame->functions);
	vec_sort(&frame->functions, function_cmp);
	return frame;
}

void eh_frame__free(struct eh_frame *frame)
{
	if (!frame)
		return;
	free(frame->bytes);
	vec_free(&frame->cies);
	vec_free(&frame->functions);
	free(frame);
}

size_t eh_frame__functions(const struct eh_frame *frame, const struct eh_function **functions)
{
	*functions = frame->functions.items;
	return frame->functions.cnt;
}

const struct eh_function *eh_frame__at(const struct eh_frame *frame, uint64_t addr)
{
	const struct eh_function *functions = frame->functions.items;
	size_t low = search_first(0, frame->functions.cnt, mid, functions[mid].addr > addr);

	/* A few back: a short one may lie within a long one. */
	for (size_t i = low; i > 0 && low - i < 8; i--)
		if (addr - functions[i - 1].addr < functions[i - 1].size)
			return &functions[i - 1];
	return NULL;
}

bool eh_frame__is_signal_frame(const struct eh_frame *frame, const struct eh_function *function)
{
	return frame->cies.items[function->cie].is_signal_frame;
}

/* --- call frame instructions, as far as they concern the CFA --------------------------------------------------------
 */

struct row {
	struct eh_cfa cfa;
	bool is_expression;
};

struct machine {
	struct cursor cursor;
	const struct cie *cie;
	uint64_t loc, wanted;
	struct row row, states[STATES_MAX];
	size_t state_cnt;
	bool passed;       /* the row for `wanted` is complete */
	bool is_outermost; /* the return address was said to be nowhere */
};

static void advance(struct machine *machine, uint64_t delta)
{
	uint64_t step;

	if (__builtin_mul_overflow(delta, machine->cie->code_align, &step) ||
	    __builtin_add_overflow(machine->loc, step, &step)) {
		machine->cursor.bad = true;
		return;
	}
	if (step > machine->wanted)
		machine->passed = true;
	else
		machine->loc = step;
}

static void def_cfa(struct machine *machine, uint64_t reg, int64_t off)
{
	machine->row = (struct row){.cfa = {reg > UINT32_MAX ? UINT32_MAX : reg, off}};
}

static int64_t factored(struct machine *machine)
{
	int64_t off;

	if (__builtin_mul_overflow(take_sleb(&machine->cursor), machine->cie->data_align, &off))
		machine->cursor.bad = true;
	return off;
}

/* Those that set the CFA or the state; false: another one. */
static bool cfa_step(struct machine *machine, uint8_t op)
{
	struct cursor *cursor = &machine->cursor;
	uint64_t reg;

	switch (op) {
	case CFI_DEF_CFA:
		reg = take_uleb(cursor);
		def_cfa(machine, reg, take_uleb(cursor));
		return true;
	case CFI_DEF_CFA_SF:
		reg = take_uleb(cursor);
		def_cfa(machine, reg, factored(machine));
		return true;
	case CFI_DEF_CFA_REGISTER:
		def_cfa(machine, take_uleb(cursor), machine->row.cfa.off);
		return true;
	case CFI_DEF_CFA_OFFSET:
		machine->row.cfa.off = take_uleb(cursor);
		return true;
	case CFI_DEF_CFA_OFFSET_SF:
		machine->row.cfa.off = factored(machine);
		return true;
	case CFI_DEF_CFA_EXPRESSION:
		skip(cursor, take_uleb(cursor));
		machine->row.is_expression = true;
		return true;
	case CFI_REMEMBER:
		if (machine->state_cnt == STATES_MAX)
			cursor->bad = true;
		else
			machine->states[machine->state_cnt++] = machine->row;
		return true;
	case CFI_RESTORE_STATE:
		if (!machine->state_cnt)
			cursor->bad = true;
		else
			machine->row = machine->states[--machine->state_cnt];
		return true;
	default:
		return false;
	}
}

static void other_step(struct machine *machine, uint8_t op)
{
	struct cursor *cursor = &machine->cursor;
	bool known;

	switch (op) {
	case CFI_NOP:
	case CFI_NEGATE_RA_STATE:
		break;
	case CFI_SET_LOC:
		machine->loc = take_pointer(cursor, machine->cie->pointer_format, &known);
		machine->passed = machine->loc > machine->wanted;
		break;
	case CFI_ADVANCE1:
		advance(machine, take(cursor, 1));
		break;
	case CFI_ADVANCE2:
		advance(machine, take(cursor, 2));
		break;
	case CFI_ADVANCE4:
		advance(machine, take(cursor, 4));
		break;
	case CFI_UNDEFINED:
		if (take_uleb(cursor) == machine->cie->return_reg)
			machine->is_outermost = true;
		break;
	case CFI_RESTORE_EXTENDED:
	case CFI_SAME_VALUE:
	case CFI_GNU_ARGS_SIZE:
		take_uleb(cursor);
		break;
	case CFI_OFFSET_EXTENDED:
	case CFI_REGISTER:
	case CFI_OFFSET_EXTENDED_SF:
	case CFI_VAL_OFFSET:
	case CFI_VAL_OFFSET_SF:
	case CFI_GNU_NEGATIVE_OFFSET_EXTENDED:
		take_uleb(cursor);
		take_uleb(cursor);
		break;
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		take_uleb(cursor);
		skip(cursor, take_uleb(cursor));
		break;
	default:
		cursor->bad = true;
	}
}

static void machine_run(struct machine *machine, size_t off, size_t end)
{
	struct cursor *cursor = &machine->cursor;

	cursor->pos = off;
	cursor->end = end;
	for (size_t steps = 0; cursor->pos < cursor->end && !cursor->bad && !machine->passed; steps++) {
		uint8_t op = take(cursor, 1);

		if (steps == CFI_STEPS_MAX)
			cursor->bad = true;
		else if ((op & CFI_HIGH_MASK) == CFI_ADVANCE)
			advance(machine, op & ~CFI_HIGH_MASK);
		else if ((op & CFI_HIGH_MASK) == CFI_OFFSET)
			take_uleb(cursor);
		else if ((op & CFI_HIGH_MASK) != CFI_RESTORE && !cfa_step(machine, op))
			other_step(machine, op);
	}
}

/* Executes what holds for the instruction at addr: 0 or -ENOEXEC. */
static int row_find(struct machine *machine, const struct eh_frame *frame, const struct eh_function *function,
		    uint64_t addr)
{
	*machine = (struct machine){.cursor = {.frame = frame}, .cie = &frame->cies.items[function->cie]};
	/* The CIE's own instructions hold from the first address on. */
	machine->wanted = UINT64_MAX;
	machine_run(machine, machine->cie->code_off, machine->cie->code_end);
	machine->loc = function->addr;
	machine->wanted = addr;
	machine->state_cnt = 0;
	if (!machine->cursor.bad)
		machine_run(machine, function->code_off, function->code_end);
	return machine->cursor.bad ? -ENOEXEC : 0;
}

int eh_frame__cfa(const struct eh_frame *frame, const struct eh_function *function, uint64_t addr, struct eh_cfa *cfa)
{
	struct machine machine;
	int err = row_find(&machine, frame, function, addr);

	if (err)
		return err;
	*cfa = machine.row.cfa;
	return machine.row.is_expression ? -ENOTSUP : 0;
}

bool eh_frame__is_outermost(const struct eh_frame *frame, const struct eh_function *function)
{
	struct machine machine;

	return !row_find(&machine, frame, function, function->addr) && machine.is_outermost;
}
