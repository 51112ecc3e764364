// SPDX-License-Identifier: GPL-2.0-or-later
/* Arm ARM (DDI 0487), C4.1: branches, exception generating and system instructions. */
#if defined(__aarch64__)
#include "base/bytes.h"
#include "target/code.h"
#include "target/code_internal.h"

/* `bits` bits from `low` as a signed number of instructions, in bytes. */
static int64_t distance(uint32_t word, unsigned low, unsigned bits)
{
	return (int64_t)((uint64_t)(word >> low) << (64 - bits)) >> (64 - bits) << 2;
}

static void leads_to(struct code_insn *insn, enum code_kind kind, int64_t off)
{
	insn->kind = kind;
	insn->flags = CODE_TARGET;
	insn->target = insn->addr + off;
}

void code_classify(const uint8_t *bytes, struct code_insn *insn)
{
	uint32_t word = get_le(bytes, 4);

	insn->kind = CODE_PLAIN;
	insn->flags = 0;
	insn->target = 0;
	if ((word & 0xfc000000) == 0x94000000) /* bl */
		leads_to(insn, CODE_CALL, distance(word, 0, 26));
	else if ((word & 0xfc000000) == 0x14000000) /* b */
		leads_to(insn, CODE_JUMP, distance(word, 0, 26));
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) /* b.cond, cbz, cbnz */
		leads_to(insn, CODE_BRANCH, distance(word, 5, 19));
	else if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		leads_to(insn, CODE_BRANCH, distance(word, 5, 14));
	else if ((word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800) /* blr, blraa… */
		insn->kind = CODE_CALL_INDIRECT;
	else if ((word & 0xfffffc1f) == 0xd61f0000 || (word & 0xfefff800) == 0xd61f0800) /* br, braa… */
		insn->kind = CODE_JUMP_INDIRECT;
	else if ((word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff) /* ret, retaa, retab */
		insn->kind = CODE_RETURN;
	else if ((word & 0xffe0001f) == 0xd4200000 || !(word & 0xffff0000)) /* brk, udf */
		insn->kind = CODE_STOP;
}

/* [bti c;] adrp x16, page; ldr x17, [x16, #off] */
bool code_is_stub(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *slot)
{
	uint32_t page, load;
	size_t pos = sz >= 12 && get_le(bytes, 4) == 0xd503245f ? 4 : 0;

	if (sz - pos < 8)
		return false;
	page = get_le(bytes + pos, 4);
	load = get_le(bytes + pos + 4, 4);
	if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return false;
	*slot = ((addr + pos) & ~0xfffULL) +
		((int64_t)((uint64_t)((page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3)) << 43) >> 43 << 12) +
		(load >> 10 & 0xfff) * 8;
	return true;
}

bool code__effects(struct code *code, const uint8_t *bytes, size_t sz, uint32_t frame_sz, struct code_effects *effects)
{
	(void)code;
	(void)bytes;
	(void)sz;
	(void)frame_sz;
	*effects = (struct code_effects){.sp_lost = true,
					 .args_written = 0xff,
					 .memory_written = true,
					 .stores = true,
					 .caller_written = true,
					 .flags_written = true};
	return false;
}

/* mov sp, x0 … x9, which stack-switching code has and compilers do not begin a function with */
bool code_looks_like_stack_switch(const uint8_t *bytes, size_t sz)
{
	return sz >= 4 && (get_le(bytes, 4) & 0xfffffc1f) == 0x9100001f && (get_le(bytes, 4) >> 5 & 31) < 10;
}

bool code_is_signal_return(const uint8_t *bytes, size_t sz)
{
	/* mov x8, #139; svc #0 */
	return sz >= 8 && get_le(bytes, 4) == 0xd2801168 && get_le(bytes + 4, 4) == 0xd4000001;
}

bool code_looks_like_exchange(const uint8_t *bytes, size_t sz)
{
	(void)bytes;
	(void)sz;
	return false;
}

bool code_looks_like_jump(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *target)
{
	(void)bytes;
	(void)sz;
	(void)addr;
	(void)target;
	return false;
}

bool code__moves(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, struct code_moves *moves)
{
	(void)code;
	(void)bytes;
	(void)sz;
	(void)addr;
	*moves = (struct code_moves){0};
	return false;
}

bool code_reg_is_scratch(uint8_t reg)
{
	(void)reg;
	return true;
}

uint8_t code_reg_of_arg(int arg)
{
	return arg < 0 ? 0 : (uint8_t)arg;
}

const char *code_reg_name(uint8_t reg)
{
	(void)reg;
	return "?";
}
#endif
