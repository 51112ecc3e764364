// SPDX-License-Identifier: GPL-2.0-or-later
/* The format: runtime/symtab.go of Go 1.18 and later (struct _func, step()), and runtime/traceback.go. */
#include "target/go_frames.h"

#include "base/idmap.h"
#include "target/eh_frame.h"
#include "target/go_table_internal.h"

#include <errno.h>

/* Of a file: pairs that are decoded, several functions may share them. */
#define PAIRS_MAX    (12U << 20)
#define FRAME_SZ_MAX (1 << 30)

enum entry { ENTRY_PCSP = 16, ENTRY_FLAG = 37, ENTRY_FLAG_WITH_LINE = 41, ENTRY_SZ = 44 };

/* Of functions: it is the first of its stack; it sets the stack pointer to whatever it likes. */
enum flag { FLAG_TOP = 1, FLAG_SETS_SP = 2 };

#if defined(__x86_64__)
#define REG_RA 16
#else
#define REG_RA 30
#endif

struct frames {
	struct go_table table;
	struct elf_rows *rows;
	uint8_t *pcs;
	uint64_t pcs_sz;
	uint32_t pair_cnt, first_rule;
	struct idmap rule_ids;
	VEC(struct frame_step) steps; /* from the text's beginning */
};

/* --- rules -------------------------------------------------------------------------------------------------------- */

static struct unwind_where saved(uint8_t reg, int64_t off)
{
	return (struct unwind_where){.what = UNWIND_SAVED, .of = reg, .off = off};
}

/*
 * Of a frame of that size.  The caller's frame pointer lies at the frame's end, on x86-64 within it, on arm64 below it;
 * there a function without a frame has its return address in the register.
 */
static int make_rule(struct elf_rows *rows, int64_t frame_sz)
{
	int64_t entry_sp = EH_ENTRY_SP;
	struct unwind_where ra = saved(REG_RA, entry_sp ? -entry_sp : -frame_sz),
			    fp = saved(EH_REG_FP, ra.off - (int64_t)sizeof(uint64_t));
	struct frame_rule rule = {
		.cfa = {.what = UNWIND_REGISTER, .reg = EH_REG_SP, .off = frame_sz + entry_sp},
		.first_line = (uint32_t)rows->lines.cnt,
		.ra = REG_RA,
	};

	if (frame_sz && vec_push(&rows->lines, fp))
		return -ENOMEM;
	if ((frame_sz || entry_sp) && vec_push(&rows->lines, ra))
		return -ENOMEM;
	rule.line_cnt = (uint8_t)(rows->lines.cnt - rule.first_line);
	return vec_push(&rows->rules, rule);
}

/* Each once. */
static int rule_find(struct frames *frames, int64_t frame_sz, bool is_start, uint32_t *rule)
{
	struct frame_rule start = {.ra = REG_RA, .is_start = 1};
	int err = idmap__id(&frames->rule_ids, (uint64_t)frame_sz, is_start, rule);

	*rule += frames->first_rule;
	if (err || *rule < frames->rows->rules.cnt)
		return err;
	return is_start ? vec_push(&frames->rows->rules, start) : make_rule(frames->rows, frame_sz);
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* From that offset on, which is never lower than the one before. */
static int step_push(struct frames *frames, uint32_t off, uint32_t rule)
{
	size_t cnt = frames->steps.cnt;

	if (cnt && frames->steps.items[cnt - 1].off == off)
		frames->steps.items[--cnt] = (struct frame_step){off, rule};
	else if (cnt ? frames->steps.items[cnt - 1].rule != rule : rule != FRAME_RULE_NONE)
		return vec_push(&frames->steps, ((struct frame_step){off, rule}));
	return 0;
}

/* False: it ends before, or is no number of 32 bits. */
static bool take_number(const struct frames *frames, uint64_t *at, uint32_t *number)
{
	*number = 0;
	for (unsigned shift = 0; shift < 35 && *at < frames->pcs_sz; shift += 7) {
		uint8_t byte = frames->pcs[(*at)++];

		*number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* A value holds up to where the code offset behind it says; both are differences, the value's sign is its lowest bit.
 */
static int take_pcsp(struct frames *frames, uint64_t at, const struct go_table_place places[2])
{
	uint64_t off = places[0].code_off;
	int64_t frame_sz = -1;
	uint32_t delta, length, rule;
	int err = 0;

	for (bool is_first = true; !err && off < places[1].code_off; is_first = false) {
		if (frames->pair_cnt++ == PAIRS_MAX)
			return -EFBIG;
		if (!take_number(frames, &at, &delta) || (!delta && !is_first) || !take_number(frames, &at, &length))
			break;
		frame_sz += delta & 1 ? -(int64_t)(delta >> 1) - 1 : (int64_t)(delta >> 1);
		rule = FRAME_RULE_NONE;
		if (frame_sz >= 0 && frame_sz <= FRAME_SZ_MAX)
			err = rule_find(frames, frame_sz, false, &rule);
		if (!err && length)
			err = step_push(frames, (uint32_t)off, rule);
		off += (uint64_t)length * frames->table.header.min_instruction;
	}
	return err ?: off < places[1].code_off ? step_push(frames, (uint32_t)off, FRAME_RULE_NONE) : 0;
}

static int take_function(struct frames *frames, const struct go_table_place places[2])
{
	const struct go_table *table = &frames->table;
	uint8_t entry[ENTRY_SZ] = {0}, flag;
	uint32_t pcsp, rule;
	int err;

	if (places[1].code_off <= places[0].code_off ||
	    (frames->steps.cnt && frames->steps.items[frames->steps.cnt - 1].off > places[0].code_off))
		return 0;
	if (table->functions_sz >= ENTRY_SZ && places[0].entry_off <= table->functions_sz - ENTRY_SZ)
		memcpy(entry, table->functions + places[0].entry_off, ENTRY_SZ);
	memcpy(&pcsp, entry + ENTRY_PCSP, sizeof(pcsp));
	flag = entry[table->has_start_line ? ENTRY_FLAG_WITH_LINE : ENTRY_FLAG];
	if (flag & FLAG_TOP) {
		err = rule_find(frames, 0, true, &rule);
		return err ?: step_push(frames, places[0].code_off, rule);
	}
	/* The first byte of all is of no function. */
	if (!pcsp || flag & FLAG_SETS_SP)
		return step_push(frames, places[0].code_off, FRAME_RULE_NONE);
	return take_pcsp(frames, pcsp, places);
}

static int take_functions(struct frames *frames)
{
	struct go_table_place places[2];
	int err = 0;

	for (uint64_t i = 0; !err && i < frames->table.header.function_cnt; i++) {
		go_table__places(&frames->table, i, places);
		err = take_function(frames, places);
		/* The next one begins here, or none does. */
		if (!err && places[1].code_off > places[0].code_off)
			err = step_push(frames, places[1].code_off, FRAME_RULE_NONE);
	}
	return err;
}

/* --- both tables -------------------------------------------------------------------------------------------------- */

struct side {
	const struct frame_step *steps;
	size_t cnt, at;
	uint64_t base;
	uint32_t rule;
};

static uint64_t next_addr(const struct side *side)
{
	return side->at < side->cnt ? side->base + side->steps[side->at].off : UINT64_MAX;
}

static void pass(struct side *side, uint64_t addr)
{
	if (next_addr(side) == addr)
		side->rule = side->steps[side->at++].rule;
}

/* 0; -ENOMEM; -EFBIG: they lie too far from each other. */
static int merge(struct frames *frames)
{
	struct elf_rows *rows = frames->rows;
	struct side go = {frames->steps.items, frames->steps.cnt, 0, frames->table.text_start, FRAME_RULE_NONE},
		    other = {rows->steps.items, rows->steps.cnt, 0, rows->head.frames_base, FRAME_RULE_NONE};
	uint64_t base = next_addr(&go) < next_addr(&other) ? next_addr(&go) : next_addr(&other), addr;
	struct elf_rows merged = {0};
	int err = 0;

	if (!go.cnt)
		return 0;
	while (!err && (addr = next_addr(&go) < next_addr(&other) ? next_addr(&go) : next_addr(&other)) != UINT64_MAX) {
		struct frame_step step = {.off = (uint32_t)(addr - base)};

		pass(&go, addr);
		pass(&other, addr);
		step.rule = other.rule != FRAME_RULE_NONE ? other.rule : go.rule;
		if (addr - base > UINT32_MAX)
			err = -EFBIG;
		else if (!merged.steps.cnt || merged.steps.items[merged.steps.cnt - 1].rule != step.rule)
			err = vec_push(&merged.steps, step);
	}
	if (err) {
		vec_free(&merged.steps);
		return err;
	}
	vec_free(&rows->steps);
	rows->steps.items = merged.steps.items;
	rows->steps.cnt = merged.steps.cnt;
	rows->steps.room = merged.steps.room;
	rows->head.frames_base = base;
	return 0;
}

int go_frames_add(const struct elf_image *image, struct elf_rows *rows)
{
	struct frames frames = {.rows = rows, .first_rule = (uint32_t)rows->rules.cnt};
	const struct go_table_header *header = &frames.table.header;
	int err = go_table_open(image, &frames.table);

	if (!err && (header->pcs_off >= header->functions_off || frames.table.text_start > INT64_MAX))
		err = -ENOTSUP;
	if (!err) {
		frames.pcs_sz = header->functions_off - header->pcs_off;
		err = go_table_part(&frames.table, header->pcs_off, frames.pcs_sz, &frames.pcs);
	}
	if (!err)
		err = take_functions(&frames);
	if (!err)
		err = merge(&frames);
	elf_rows_count(rows);
	free(frames.table.functions);
	free(frames.pcs);
	idmap__free(&frames.rule_ids);
	vec_free(&frames.steps);
	return err == -ENOMEM ? err : 0;
}
