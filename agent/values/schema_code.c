// SPDX-License-Identifier: GPL-2.0-or-later
#if defined(__x86_64__)

#include "values/schema_code.h"

#include "base/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INSNS_MAX  200000
#define BLOCKS_MAX 20000

struct tagger *tagger__new(void)
{
	struct tagger *tagger = calloc(1, sizeof(*tagger));

	if (!tagger)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &tagger->handle)) {
		free(tagger);
		return NULL;
	}
	cs_option(tagger->handle, CS_OPT_DETAIL, CS_OPT_ON);
	tagger->decoded = cs_malloc(tagger->handle);
	if (!tagger->decoded) {
		tagger__free(tagger);
		return NULL;
	}
	return tagger;
}

void tagger__free(struct tagger *tagger)
{
	if (!tagger)
		return;
	if (tagger->decoded)
		cs_free(tagger->decoded, 1);
	cs_close(&tagger->handle);
	vec_free(&tagger->insns);
	vec_free(&tagger->blocks);
	vec_free(&tagger->rpo);
	vec_free(&tagger->preds);
	vec_free(&tagger->pred_first);
	vec_free(&tagger->body);
	vec_free(&tagger->in_body);
	free(tagger);
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

/* DWARF number of a register or of the one that it is a part of; -1: another kind. */
static int dwarf_register(unsigned int reg)
{
	static const struct {
		uint16_t reg;
		int8_t dwarf;
	} names[] = {
#define FAMILY(n, a, b, c, d)                                 \
	{X86_REG_##a, n}, {X86_REG_##b, n}, {X86_REG_##c, n}, \
	{                                                     \
		X86_REG_##d, n                                \
	}
		FAMILY(0, RAX, EAX, AX, AL),       FAMILY(1, RDX, EDX, DX, DL),       FAMILY(2, RCX, ECX, CX, CL),
		FAMILY(3, RBX, EBX, BX, BL),       FAMILY(4, RSI, ESI, SI, SIL),      FAMILY(5, RDI, EDI, DI, DIL),
		FAMILY(6, RBP, EBP, BP, BPL),      FAMILY(7, RSP, ESP, SP, SPL),      FAMILY(8, R8, R8D, R8W, R8B),
		FAMILY(9, R9, R9D, R9W, R9B),      FAMILY(10, R10, R10D, R10W, R10B), FAMILY(11, R11, R11D, R11W, R11B),
		FAMILY(12, R12, R12D, R12W, R12B), FAMILY(13, R13, R13D, R13W, R13B), FAMILY(14, R14, R14D, R14W, R14B),
		FAMILY(15, R15, R15D, R15W, R15B),
#undef FAMILY
	};

	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15)
		return DWARF_XMM0 + (int)(reg - X86_REG_XMM0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].reg == reg)
			return names[i].dwarf;
	return -1;
}

static bool operand_place(const cs_insn *decoded, const cs_x86_op *op, struct place *place)
{
	int reg;

	*place = (struct place){.size = op->size};
	if (op->type == X86_OP_REG) {
		reg = dwarf_register(op->reg);
		if (reg < 0)
			return false;
		place->kind = PLACE_REGISTER;
		place->reg = (uint8_t)reg;
		return true;
	}
	if (op->type != X86_OP_MEM || op->mem.index != X86_REG_INVALID || op->mem.segment != X86_REG_INVALID)
		return false;
	if (op->mem.base == X86_REG_RIP) {
		place->kind = PLACE_ADDRESS;
		place->off = (int64_t)(decoded->address + decoded->size) + op->mem.disp;
		return true;
	}
	reg = dwarf_register(op->mem.base);
	if (reg < 0 || reg >= DWARF_XMM0)
		return false;
	place->kind = PLACE_MEMORY;
	place->reg = (uint8_t)reg;
	place->off = op->mem.disp;
	return true;
}

static bool is_copy(unsigned int id)
{
	switch (id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_MOVSS:
	case X86_INS_MOVSD:
	case X86_INS_MOVAPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVD:
	case X86_INS_MOVQ:
		return true;
	default:
		return false;
	}
}

/* Capstone calls operands of cmp and test read; of `cmp mem, reg` older versions call the first written. */
static bool only_reads(unsigned int id)
{
	return id == X86_INS_CMP || id == X86_INS_TEST || id == X86_INS_BT || id == X86_INS_COMISS ||
	       id == X86_INS_COMISD || id == X86_INS_UCOMISS || id == X86_INS_UCOMISD;
}

/* The register that the instruction adds a constant to: `add $1, r`, `inc r`, `lea 1(r), q`. */
static bool added_to(const cs_insn *decoded, struct place *place)
{
	const cs_x86 *x86 = &decoded->detail->x86;
	int reg = -1;

	switch (decoded->id) {
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (x86->operands[1].type != X86_OP_IMM)
			return false;
		break;
	case X86_INS_INC:
	case X86_INS_DEC:
		break;
	case X86_INS_LEA:
		if (x86->operands[1].mem.index == X86_REG_INVALID)
			reg = dwarf_register(x86->operands[1].mem.base);
		*place = (struct place){.kind = PLACE_REGISTER, .reg = (uint8_t)reg, .size = x86->operands[0].size};
		return reg >= 0;
	default:
		return false;
	}
	return x86->operands[0].type == X86_OP_REG && operand_place(decoded, &x86->operands[0], place);
}

static void take_operands(const cs_insn *decoded, struct insn *insn)
{
	const cs_x86 *x86 = &decoded->detail->x86;

	for (int i = 0; i < x86->op_count && i < OPS_MAX; i++) {
		uint8_t access = x86->operands[i].access;
		struct place place;

		if (!operand_place(decoded, &x86->operands[i], &place) ||
		    (decoded->id == X86_INS_LEA && place.kind != PLACE_REGISTER))
			continue;
		if (only_reads(decoded->id))
			access = CS_AC_READ;
		if (access & CS_AC_READ && insn->read_cnt < OPS_MAX)
			insn->reads[insn->read_cnt++] = place;
		if (access & CS_AC_WRITE && insn->write_cnt < 2)
			insn->writes[insn->write_cnt++] = place;
	}
	if (is_copy(decoded->id) && insn->read_cnt == 1 && insn->write_cnt == 1)
		insn->source = insn->reads[0];
	else
		insn->adds = insn->write_cnt == 1 && added_to(decoded, &insn->source);
}

static void take_effects(struct tagger *tagger, const cs_insn *decoded, struct insn *insn)
{
	cs_regs read, written;
	uint8_t read_cnt, written_cnt;

	if (!cs_regs_access(tagger->handle, decoded, read, &read_cnt, written, &written_cnt)) {
		for (uint8_t i = 0; i < read_cnt; i++)
			insn->is_choice |= read[i] == X86_REG_EFLAGS;
		for (uint8_t i = 0; i < written_cnt; i++) {
			int reg = dwarf_register(written[i]);

			insn->sets_flags |= written[i] == X86_REG_EFLAGS;
			if (reg >= 0 && reg < 32)
				insn->clobbers |= 1u << reg;
		}
	}
}

static void classify(const cs_insn *decoded, struct insn *insn)
{
	const cs_detail *detail = decoded->detail;

	for (uint8_t i = 0; i < detail->groups_count; i++) {
		insn->is_jump |= detail->groups[i] == CS_GRP_JUMP;
		insn->is_call |= detail->groups[i] == CS_GRP_CALL;
		insn->ends |= detail->groups[i] == CS_GRP_RET;
	}
	insn->is_choice &= !insn->is_jump && !insn->is_call;
	insn->is_branch = insn->is_jump && decoded->id != X86_INS_JMP && decoded->id != X86_INS_LJMP;
	insn->ends |= insn->is_jump && !insn->is_branch;
	insn->ends |= decoded->id == X86_INS_UD2 || decoded->id == X86_INS_HLT;
	insn->is_nop = decoded->id == X86_INS_NOP || decoded->id == X86_INS_INT3 ||
		       (decoded->id == X86_INS_XCHG && detail->x86.operands[0].reg == detail->x86.operands[1].reg);
	if (insn->is_jump && detail->x86.op_count && detail->x86.operands[0].type == X86_OP_IMM)
		insn->target = (uint64_t)detail->x86.operands[0].imm;
	if (insn->is_call) /* what the ABI lets a function change: rax rdx rcx rsi rdi r8–r11, all xmm */
		insn->clobbers |= 0xf37 | 0xfffe0000;
}

/* The bytes of the file that hold [begin, end). */
static const uint8_t *bytes_at(Elf *elf, uint64_t begin, uint64_t end)
{
	size_t cnt, sz;
	const char *raw = elf_rawfile(elf, &sz);

	if (!raw || elf_getphdrnum(elf, &cnt))
		return NULL;
	for (size_t i = 0; i < cnt; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD || begin < phdr.p_vaddr ||
		    end - phdr.p_vaddr > phdr.p_filesz || end < begin)
			continue;
		if (phdr.p_offset > sz || end - phdr.p_vaddr > sz - phdr.p_offset)
			return NULL;
		return (const uint8_t *)raw + phdr.p_offset + (begin - phdr.p_vaddr);
	}
	return NULL;
}

static int decode_range(struct tagger *tagger, const uint8_t *bytes, uint64_t begin, uint64_t end)
{
	size_t sz = end - begin;
	uint64_t addr = begin;

	while (sz && tagger->insns.cnt < INSNS_MAX) {
		struct insn insn = {.addr = addr, .block = NO_BLOCK};

		if (!cs_disasm_iter(tagger->handle, &bytes, &sz, &addr, tagger->decoded))
			break;
		insn.len = (uint8_t)tagger->decoded->size;
		classify(tagger->decoded, &insn);
		take_operands(tagger->decoded, &insn);
		take_effects(tagger, tagger->decoded, &insn);
		if (vec_push(&tagger->insns, insn))
			return -ENOMEM;
	}
	return 0;
}

ORDER(compare_insns, struct insn, BY(a->addr, b->addr));

static int decode(struct tagger *tagger, struct builder *builder)
{
	int err = 0;

	tagger->insns.cnt = 0;
	for (size_t i = 0; i < builder->function.range_cnt && !err; i++) {
		const struct pc_range *range = &builder->function.ranges[i];
		const uint8_t *bytes = range->end - range->begin <= FUNCTION_BYTES_MAX
					       ? bytes_at(builder->elf, range->begin, range->end)
					       : NULL;

		if (bytes)
			err = decode_range(tagger, bytes, range->begin, range->end);
	}
	if (!err)
		vec_sort(&tagger->insns, compare_insns);
	return err;
}

/* --- the control-flow graph --------------------------------------------------------------------------------------- */

static uint32_t insn_at(const struct tagger *tagger, uint64_t addr)
{
	size_t low = search_first(0, tagger->insns.cnt, middle, tagger->insns.items[middle].addr >= addr);

	return low < tagger->insns.cnt && tagger->insns.items[low].addr == addr ? (uint32_t)low : NO_BLOCK;
}

static bool follows(const struct tagger *tagger, uint32_t i)
{
	const struct insn *insn = &tagger->insns.items[i];

	return i + 1 < tagger->insns.cnt && insn->addr + insn->len == insn[1].addr;
}

/* Between a jump and the next block's alignment: never run, and no way into that block. */
static bool is_padding(const struct tagger *tagger, const struct block *block)
{
	const struct insn *insns = tagger->insns.items;

	if (!block->first || !insns[block->first - 1].ends || insns[block->first].is_target)
		return false;
	for (uint32_t i = block->first; i <= block->last; i++)
		if (!insns[i].is_nop)
			return false;
	return true;
}

static int make_blocks(struct tagger *tagger)
{
	struct insn *insns = tagger->insns.items;
	uint32_t cnt = (uint32_t)tagger->insns.cnt;

	/* Leaders are marked with block 0, and numbered after that. */
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t target = insns[i].target ? insn_at(tagger, insns[i].target) : NO_BLOCK;

		if (!i || !follows(tagger, i - 1) || insns[i - 1].is_branch || insns[i - 1].ends)
			insns[i].block = 0;
		if (target != NO_BLOCK) {
			insns[target].block = 0;
			insns[target].is_target = true;
		}
	}
	tagger->blocks.cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		if (insns[i].block == 0) {
			struct block block = {
				.first = i, .next = {NO_BLOCK, NO_BLOCK}, .order = NO_BLOCK, .idom = NO_BLOCK};

			if (tagger->blocks.cnt == BLOCKS_MAX || vec_push(&tagger->blocks, block))
				return tagger->blocks.cnt == BLOCKS_MAX ? -E2BIG : -ENOMEM;
		}
		insns[i].block = (uint32_t)tagger->blocks.cnt - 1;
		tagger->blocks.items[insns[i].block].last = i;
	}
	for (size_t b = 0; b < tagger->blocks.cnt; b++) {
		struct block *block = &tagger->blocks.items[b];
		const struct insn *last = &insns[block->last];
		uint32_t target = last->target ? insn_at(tagger, last->target) : NO_BLOCK;

		if (!last->ends && follows(tagger, block->last) && !is_padding(tagger, block))
			block->next[0] = insns[block->last + 1].block;
		if (last->is_jump && target != NO_BLOCK)
			block->next[1] = insns[target].block;
	}
	return 0;
}

struct walk {
	uint32_t *stack;
	uint8_t *taken; /* edges of each block that have been followed */
};

/* Depth first from a root, iteratively; appends in postorder. */
static int walk_from(struct tagger *tagger, struct walk *walk, uint32_t root)
{
	struct block *blocks = tagger->blocks.items;
	size_t depth = 0;

	walk->stack[depth++] = root;
	blocks[root].order = 0;
	blocks[root].is_root = true;
	while (depth) {
		uint32_t b = walk->stack[depth - 1];
		uint8_t edge = walk->taken[b]++;

		if (edge < 2) {
			uint32_t next = blocks[b].next[edge];

			if (next != NO_BLOCK && blocks[next].order == NO_BLOCK) {
				blocks[next].order = 0;
				walk->stack[depth++] = next;
			}
			continue;
		}
		if (vec_push(&tagger->rpo, b))
			return -ENOMEM;
		depth--;
	}
	return 0;
}

/*
 * All blocks in reverse postorder.  Where a jump table leads is not known: a block that the entry does not reach by
 * direct jumps is a root as well, and all roots hang under a block without instructions, the last one.
 */
static int make_order(struct tagger *tagger, uint32_t entry)
{
	struct block virtual = {.first = 1, .next = {NO_BLOCK, NO_BLOCK}, .order = 0, .idom = NO_BLOCK};
	uint32_t cnt = (uint32_t)tagger->blocks.cnt;
	struct walk walk = {calloc(cnt + 1, sizeof(uint32_t)), calloc(cnt + 1, 1)};
	int err = walk.stack && walk.taken ? 0 : -ENOMEM;

	tagger->rpo.cnt = 0;
	if (!err)
		err = walk_from(tagger, &walk, entry);
	for (uint32_t b = 0; b < cnt && !err; b++)
		if (tagger->blocks.items[b].order == NO_BLOCK)
			err = walk_from(tagger, &walk, b);
	virtual.idom = cnt;
	if (!err && (vec_push(&tagger->blocks, virtual) || vec_push(&tagger->rpo, cnt)))
		err = -ENOMEM;
	for (size_t i = 0; !err && i < tagger->rpo.cnt / 2; i++) {
		uint32_t other = tagger->rpo.items[i];

		tagger->rpo.items[i] = tagger->rpo.items[tagger->rpo.cnt - 1 - i];
		tagger->rpo.items[tagger->rpo.cnt - 1 - i] = other;
	}
	for (size_t i = 0; !err && i < tagger->rpo.cnt; i++)
		tagger->blocks.items[tagger->rpo.items[i]].order = (uint32_t)i;
	free(walk.stack);
	free(walk.taken);
	return err;
}

static int make_predecessors(struct tagger *tagger)
{
	size_t cnt = tagger->blocks.cnt, edges = 0;

	tagger->pred_first.cnt = tagger->preds.cnt = 0;
	if (vec_extend(&tagger->pred_first, cnt + 1) || vec_reserve(&tagger->preds, 2 * cnt + 1))
		return -ENOMEM;
	for (size_t b = 0; b < cnt; b++)
		for (int e = 0; e < 2; e++)
			if (tagger->blocks.items[b].next[e] != NO_BLOCK)
				tagger->pred_first.items[tagger->blocks.items[b].next[e]]++;
	for (size_t b = 0; b <= cnt; b++) {
		uint32_t here = tagger->pred_first.items[b];

		tagger->pred_first.items[b] = (uint32_t)(edges += here);
	}
	for (size_t b = cnt; b-- > 0;)
		for (int e = 0; e < 2; e++)
			if (tagger->blocks.items[b].next[e] != NO_BLOCK)
				tagger->preds.items[--tagger->pred_first.items[tagger->blocks.items[b].next[e]]] =
					(uint32_t)b;
	return 0;
}

static uint32_t intersect(const struct tagger *tagger, uint32_t a, uint32_t b)
{
	const struct block *blocks = tagger->blocks.items;

	while (a != b) {
		while (blocks[a].order > blocks[b].order)
			a = blocks[a].idom;
		while (blocks[b].order > blocks[a].order)
			b = blocks[b].idom;
	}
	return a;
}

/* Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm" (2001). */
static void make_dominators(struct tagger *tagger)
{
	struct block *blocks = tagger->blocks.items;
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 1; i < tagger->rpo.cnt; i++) {
			uint32_t b = tagger->rpo.items[i], idom = blocks[b].is_root ? tagger->rpo.items[0] : NO_BLOCK;

			for (uint32_t p = tagger->pred_first.items[b]; p < tagger->pred_first.items[b + 1]; p++) {
				uint32_t pred = tagger->preds.items[p];

				if (blocks[pred].order == NO_BLOCK || blocks[pred].idom == NO_BLOCK)
					continue;
				idom = idom == NO_BLOCK ? pred : intersect(tagger, pred, idom);
			}
			if (idom != NO_BLOCK && idom != blocks[b].idom) {
				blocks[b].idom = idom;
				changed = true;
			}
		}
	}
}

bool tagger_dominates(const struct tagger *tagger, uint32_t a, uint32_t b)
{
	const struct block *blocks = tagger->blocks.items;

	while (blocks[b].order > blocks[a].order)
		b = blocks[b].idom;
	return a == b;
}

int tagger_read_code(struct tagger *tagger, struct builder *builder)
{
	uint32_t entry;
	int err = decode(tagger, builder);

	if (err || !tagger->insns.cnt)
		return err;
	err = make_blocks(tagger);
	if (err)
		return err == -E2BIG ? 0 : err;
	entry = insn_at(tagger, builder->function.ranges[0].begin);
	if (entry == NO_BLOCK)
		entry = 0;
	err = make_order(tagger, tagger->insns.items[entry].block);
	if (!err)
		err = make_predecessors(tagger);
	if (err)
		return err;
	make_dominators(tagger);
	return 1;
}

#endif
