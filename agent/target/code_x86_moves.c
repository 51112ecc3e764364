// SPDX-License-Identifier: GPL-2.0-or-later
/* What instructions move where, as far as compilers use them to pass values on; all others only spoil what they write.
 */
#if defined(__x86_64__)
#include "target/code.h"
#include "target/code_internal.h"

#include <string.h>

static const struct {
	x86_reg names[5];
	const char *text;
} general[16] = {
	{{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH}, "rax"},
	{{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH}, "rcx"},
	{{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH}, "rdx"},
	{{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH}, "rbx"},
	{{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL}, "rsp"},
	{{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL}, "rbp"},
	{{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL}, "rsi"},
	{{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL}, "rdi"},
	{{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B}, "r8"},
	{{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B}, "r9"},
	{{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B}, "r10"},
	{{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B}, "r11"},
	{{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B}, "r12"},
	{{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B}, "r13"},
	{{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B}, "r14"},
	{{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B}, "r15"},
};

#define HIGH_HALF 1 /* of a vector register */

static bool is_vector(uint8_t reg)
{
	return reg != CODE_NO_REG && reg >= CODE_REG_VECTOR;
}

static uint8_t reg_of(x86_reg reg)
{
	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM15)
		return CODE_REG_VECTOR + 2 * (reg - X86_REG_XMM0);
	if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM15)
		return CODE_REG_VECTOR + 2 * (reg - X86_REG_YMM0);
	for (uint8_t i = 0; i < 16; i++)
		for (size_t form = 0; form < 5; form++)
			if (reg != X86_REG_INVALID && general[i].names[form] == reg)
				return i;
	return CODE_NO_REG;
}

static uint64_t reg_bits(uint8_t reg)
{
	if (reg == CODE_NO_REG)
		return 0;
	return is_vector(reg) ? 3ULL << reg : 1ULL << reg;
}

static struct code_move *add(struct code_moves *moves, enum code_move_kind kind, uint8_t to, uint8_t from, uint8_t sz)
{
	struct code_move *move = &moves->items[moves->cnt++];

	*move = (struct code_move){
		.kind = kind, .to = to, .from = from, .sz = sz, .base = CODE_NO_REG, .index = CODE_NO_REG};
	return move;
}

/* False: it is memory of the thread or another segment, which is not followed. */
static bool set_memory(struct code_move *move, const cs_insn *insn, const x86_op_mem *memory)
{
	if (memory->segment != X86_REG_INVALID)
		return false;
	move->disp = memory->disp;
	if (memory->base == X86_REG_RIP)
		move->disp += (int64_t)(insn->address + insn->size);
	else
		move->base = reg_of(memory->base);
	move->index = reg_of(memory->index);
	return true;
}

/* to = memory, `at` bytes further on. */
static void load(const cs_insn *insn, struct code_moves *moves, uint8_t to, const x86_op_mem *memory, uint8_t sz,
		 int64_t at)
{
	struct code_move *move = add(moves, CODE_MOVE_LOAD, to, CODE_NO_REG, sz);

	if (set_memory(move, insn, memory)) {
		move->disp += at;
		return;
	}
	moves->cnt--;
	moves->written |= 1ULL << to;
}

static void store(const cs_insn *insn, struct code_moves *moves, uint8_t from, const x86_op_mem *memory, uint8_t sz,
		  int64_t at)
{
	struct code_move *move = add(moves, CODE_MOVE_STORE, CODE_NO_REG, from, sz);

	if (set_memory(move, insn, memory))
		move->disp += at;
	else
		moves->cnt--;
}

/* From memory or another register.  False: it is another form. */
static bool fill_register(const cs_insn *insn, struct code_moves *moves, uint8_t to_reg, const cs_x86_op *from)
{
	if (from->type == X86_OP_MEM)
		load(insn, moves, to_reg, &from->mem, from->size, 0);
	else if (from->type == X86_OP_REG && reg_of(from->reg) != CODE_NO_REG)
		add(moves, CODE_MOVE_COPY, to_reg, reg_of(from->reg), from->size);
	else
		return false;
	return true;
}

/* mov and its kin, of general registers.  False: it is another form. */
static bool general_move(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];
	uint8_t to_reg = to->type == X86_OP_REG ? reg_of(to->reg) : CODE_NO_REG;

	if (insn->detail->x86.op_count != 2)
		return false;
	if (to->type == X86_OP_MEM) {
		store(insn, moves, from->type == X86_OP_REG && to->size >= 4 ? reg_of(from->reg) : CODE_NO_REG,
		      &to->mem, to->size, 0);
		if (moves->cnt && from->type == X86_OP_IMM) {
			moves->items[0].kind = CODE_MOVE_STORE_CONST;
			moves->items[0].constant = from->imm;
		}
		return true;
	}
	if (to_reg == CODE_NO_REG || is_vector(to_reg) || to->size < 4 || from->size < 4)
		return false;
	if (from->type != X86_OP_IMM)
		return fill_register(insn, moves, to_reg, from);
	add(moves, CODE_MOVE_CONST, to_reg, CODE_NO_REG, 8)->disp = from->imm;
	return true;
}

/* movzx, movsx: of a byte or two, which may be a flag. */
static bool narrow_move(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];
	uint8_t to_reg = to->type == X86_OP_REG ? reg_of(to->reg) : CODE_NO_REG;

	if (insn->detail->x86.op_count != 2 || to_reg == CODE_NO_REG || to->size < 4)
		return false;
	return fill_register(insn, moves, to_reg, from);
}

static bool vector_whole(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];

	if (insn->detail->x86.op_count != 2 || to->size != 16)
		return false;
	for (int half = 0; half < 2; half++) {
		uint8_t to_reg = to->type == X86_OP_REG ? reg_of(to->reg) : CODE_NO_REG;
		uint8_t from_reg = from->type == X86_OP_REG ? reg_of(from->reg) : CODE_NO_REG;

		if (to->type == X86_OP_MEM && is_vector(from_reg))
			store(insn, moves, from_reg + half, &to->mem, 8, 8 * half);
		else if (from->type == X86_OP_MEM && is_vector(to_reg))
			load(insn, moves, to_reg + half, &from->mem, 8, 8 * half);
		else if (is_vector(to_reg) && is_vector(from_reg))
			add(moves, CODE_MOVE_COPY, to_reg + half, from_reg + half, 8);
		else
			return false;
	}
	return true;
}

/* movq, movd, movlps, movhps: one half of a vector register. */
static bool vector_half(const cs_insn *insn, struct code_moves *moves, int half, bool clears)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];
	uint8_t to_reg = to->type == X86_OP_REG ? reg_of(to->reg) : CODE_NO_REG;
	uint8_t from_reg = from->type == X86_OP_REG ? reg_of(from->reg) : CODE_NO_REG;
	uint8_t sz = insn->id == X86_INS_MOVD ? 4 : 8;

	if (insn->detail->x86.op_count != 2)
		return false;
	if (is_vector(from_reg))
		from_reg += half;
	if (to->type == X86_OP_MEM) {
		store(insn, moves, from_reg, &to->mem, sz, 0);
		return true;
	}
	if (to_reg == CODE_NO_REG)
		return false;
	if (from->type == X86_OP_MEM)
		load(insn, moves, is_vector(to_reg) ? to_reg + half : to_reg, &from->mem, sz, 0);
	else if (from_reg != CODE_NO_REG)
		add(moves, CODE_MOVE_COPY, is_vector(to_reg) ? to_reg + half : to_reg, from_reg, sz);
	else
		return false;
	if (is_vector(to_reg) && clears)
		moves->written |= 1ULL << (to_reg + HIGH_HALF);
	return true;
}

static bool vector_move(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86 *x86 = &insn->detail->x86;
	uint8_t to = x86->op_count && x86->operands[0].type == X86_OP_REG ? reg_of(x86->operands[0].reg) : CODE_NO_REG;
	uint8_t from =
		x86->op_count > 1 && x86->operands[1].type == X86_OP_REG ? reg_of(x86->operands[1].reg) : CODE_NO_REG;

	switch (insn->id) {
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVUPD:
	case X86_INS_MOVDQA:
	case X86_INS_MOVDQU:
		return vector_whole(insn, moves);
	case X86_INS_MOVQ:
	case X86_INS_MOVD:
		return vector_half(insn, moves, 0, true);
	case X86_INS_MOVLPS:
	case X86_INS_MOVLPD:
		return vector_half(insn, moves, 0, false);
	case X86_INS_MOVHPS:
	case X86_INS_MOVHPD:
		return vector_half(insn, moves, HIGH_HALF, false);
	case X86_INS_PUNPCKLQDQ:
	case X86_INS_MOVLHPS:
		if (!is_vector(to) || !is_vector(from))
			return false;
		add(moves, CODE_MOVE_COPY, to + HIGH_HALF, from, 8);
		return true;
	case X86_INS_PXOR:
	case X86_INS_XORPS:
	case X86_INS_XORPD:
		if (!is_vector(to) || to != from || x86->operands[0].size != 16)
			return false;
		for (uint8_t half = 0; half < 2; half++)
			add(moves, CODE_MOVE_CONST, to + half, CODE_NO_REG, 8);
		return true;
	case X86_INS_PINSRQ:
		if (!is_vector(to) || x86->op_count != 3 || from == CODE_NO_REG || x86->operands[2].imm != 1)
			return false;
		add(moves, CODE_MOVE_COPY, to + HIGH_HALF, from, 8);
		return true;
	default:
		return false;
	}
}

/* lea, add and subtract of constants. */
static bool address(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *to = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];
	struct code_move *move;
	uint8_t to_reg;

	if (insn->detail->x86.op_count != 2 || to->type != X86_OP_REG || to->size != 8)
		return false;
	to_reg = reg_of(to->reg);
	if (to_reg == CODE_NO_REG)
		return false;
	if (insn->id == X86_INS_LEA) {
		move = add(moves, CODE_MOVE_ADDRESS, to_reg, CODE_NO_REG, 8);
		if (from->type == X86_OP_MEM && set_memory(move, insn, &from->mem) && move->index == CODE_NO_REG)
			return true;
		moves->cnt = 0;
		return false;
	}
	if (from->type != X86_OP_IMM)
		return false;
	move = add(moves, CODE_MOVE_ADDRESS, to_reg, CODE_NO_REG, 8);
	move->base = to_reg;
	move->disp = insn->id == X86_INS_ADD ? from->imm : -from->imm;
	return true;
}

static bool is_conditional_move(unsigned id)
{
	return id == X86_INS_CMOVA || id == X86_INS_CMOVAE || id == X86_INS_CMOVB || id == X86_INS_CMOVBE ||
	       id == X86_INS_CMOVE || id == X86_INS_CMOVG || id == X86_INS_CMOVGE || id == X86_INS_CMOVL ||
	       id == X86_INS_CMOVLE || id == X86_INS_CMOVNE || id == X86_INS_CMOVNS || id == X86_INS_CMOVS;
}

static bool stack_move(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *operand = &insn->detail->x86.operands[0];
	uint8_t reg = insn->detail->x86.op_count && operand->type == X86_OP_REG ? reg_of(operand->reg) : CODE_NO_REG;

	if (insn->id == X86_INS_PUSH) {
		add(moves, CODE_MOVE_PUSH, CODE_NO_REG, reg, 8);
		return true;
	}
	if (insn->id == X86_INS_LEAVE) {
		add(moves, CODE_MOVE_COPY, CODE_REG_SP, CODE_REG_FP, 8);
		add(moves, CODE_MOVE_POP, CODE_REG_FP, CODE_NO_REG, 8);
		return true;
	}
	if (insn->id != X86_INS_POP || reg == CODE_NO_REG)
		return false;
	add(moves, CODE_MOVE_POP, reg, CODE_NO_REG, 8);
	return true;
}

static bool is_same_register(const cs_x86 *x86)
{
	return x86->op_count == 2 && x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_REG &&
	       x86->operands[0].reg == x86->operands[1].reg;
}

/* test r,r; cmp $0,r; cmp $0,memory */
static bool zero_test(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86 *x86 = &insn->detail->x86;
	bool tests = insn->id == X86_INS_TEST ? is_same_register(x86)
					      : insn->id == X86_INS_CMP && x86->op_count == 2 &&
							x86->operands[1].type == X86_OP_IMM && !x86->operands[1].imm;
	struct code_move *move;

	if (!tests)
		return false;
	move = add(moves, CODE_MOVE_TEST, CODE_NO_REG, CODE_NO_REG, x86->operands[0].size);
	if (x86->operands[0].type == X86_OP_REG)
		move->from = reg_of(x86->operands[0].reg);
	else if (x86->operands[0].type != X86_OP_MEM || !set_memory(move, insn, &x86->operands[0].mem))
		moves->cnt = 0;
	return moves->cnt;
}

/* xchg, lock cmpxchg: a register goes to memory, and what was there to another one; here as if it always did. */
static bool exchange(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86_op *memory = &insn->detail->x86.operands[0], *from = &insn->detail->x86.operands[1];
	uint8_t reg;

	if (insn->detail->x86.op_count != 2)
		return false;
	if (memory->type != X86_OP_MEM) {
		from = memory;
		memory++;
	}
	reg = from->type == X86_OP_REG ? reg_of(from->reg) : CODE_NO_REG;
	if (memory->type != X86_OP_MEM || reg == CODE_NO_REG || memory->mem.segment != X86_REG_INVALID)
		return false;
	store(insn, moves, reg, &memory->mem, memory->size, 0);
	load(insn, moves, insn->id == X86_INS_XCHG ? reg : 0, &memory->mem, memory->size, 0);
	moves->exchanges = true;
	return true;
}

static bool known_moves(const cs_insn *insn, struct code_moves *moves)
{
	const cs_x86 *x86 = &insn->detail->x86;

	if (insn->id == X86_INS_XCHG || (insn->id == X86_INS_CMPXCHG && x86->prefix[0] == X86_PREFIX_LOCK))
		return exchange(insn, moves);
	if (x86->prefix[0]) /* rep, lock */
		return false;
	switch (insn->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVSXD:
		return general_move(insn, moves);
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
		return narrow_move(insn, moves);
	case X86_INS_LEA:
	case X86_INS_ADD:
	case X86_INS_SUB:
		return address(insn, moves);
	case X86_INS_XOR:
		if (!is_same_register(x86) || reg_of(x86->operands[0].reg) == CODE_NO_REG)
			return false;
		add(moves, CODE_MOVE_CONST, reg_of(x86->operands[0].reg), CODE_NO_REG, 8);
		return true;
	case X86_INS_PUSH:
	case X86_INS_POP:
	case X86_INS_LEAVE:
		return stack_move(insn, moves);
	case X86_INS_TEST:
	case X86_INS_CMP:
		return zero_test(insn, moves);
	default:
		break;
	}
	if (is_conditional_move(insn->id) && x86->op_count == 2 && x86->operands[1].type == X86_OP_REG &&
	    x86->operands[0].size >= 4 && reg_of(x86->operands[0].reg) != CODE_NO_REG &&
	    reg_of(x86->operands[1].reg) != CODE_NO_REG) {
		add(moves, CODE_MOVE_MAYBE, reg_of(x86->operands[0].reg), reg_of(x86->operands[1].reg),
		    x86->operands[0].size);
		return true;
	}
	return vector_move(insn, moves);
}

static bool writes_flags(const cs_insn *insn, const cs_regs written, uint8_t cnt)
{
	for (uint8_t i = 0; i < cnt; i++)
		if (written[i] == X86_REG_EFLAGS)
			return true;
	return insn->id == X86_INS_TEST || insn->id == X86_INS_CMP;
}

bool code__moves(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, struct code_moves *moves)
{
	cs_insn *insn = code->detailed_insn;
	uint8_t read_cnt, write_cnt;
	cs_regs read, written;
	bool known;

	memset(moves, 0, sizeof(*moves));
	if (!cs_disasm_iter(code->detailed, &bytes, &sz, &addr, insn) ||
	    cs_regs_access(code->detailed, insn, read, &read_cnt, written, &write_cnt))
		return false;
	known = known_moves(insn, moves);
	moves->flags_written = writes_flags(insn, written, write_cnt);
	if (known)
		return true;
	memset(moves->items, 0, sizeof(moves->items));
	moves->cnt = 0;
	moves->written = 0;
	for (uint8_t i = 0; i < write_cnt; i++)
		moves->written |= reg_bits(reg_of(written[i]));
	/* xchg, add, lock xadd, …: what lies there afterwards is not followed. */
	for (uint8_t i = 0; i < insn->detail->x86.op_count && moves->cnt < 2; i++) {
		const cs_x86_op *operand = &insn->detail->x86.operands[i];

		if (operand->type == X86_OP_MEM && operand->access & CS_AC_WRITE)
			store(insn, moves, CODE_NO_REG, &operand->mem, operand->size, 0);
	}
	return true;
}

bool code_reg_is_scratch(uint8_t reg)
{
	return reg != 3 && reg != CODE_REG_SP && reg != CODE_REG_FP && !(reg >= 12 && reg < 16);
}

uint8_t code_reg_of_arg(int arg)
{
	static const uint8_t args[] = {7, 6, 2, 1, 8, 9};

	return arg < 0 || arg > 5 ? 0 : args[arg];
}

const char *code_reg_name(uint8_t reg)
{
	return reg < 16 ? general[reg].text : "?";
}
#endif
