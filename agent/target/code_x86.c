// SPDX-License-Identifier: GPL-2.0-or-later
#if defined(__x86_64__)
#include "base/bytes.h"
#include "target/code.h"
#include "target/code_internal.h"

#include <string.h>

#define MODRM_MOD(modrm) ((modrm) >> 6)
#define MODRM_REG(modrm) ((modrm) >> 3 & 7)
#define MODRM_RM(modrm)  ((modrm) & 7)

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return (byte & 0xf0) == 0x40; /* REX */
	}
}

static void leads_to(struct code_insn *insn, enum code_kind kind, int64_t distance)
{
	insn->kind = kind;
	insn->flags = CODE_TARGET;
	insn->target = insn->addr + insn->len + distance;
}

/* The address in a memory operand without a base register: relative to the next instruction, or a table's. */
static void memory_operand(const uint8_t *modrm, const uint8_t *end, struct code_insn *insn, uint8_t flat,
			   uint8_t table)
{
	if (end - modrm >= 5 && !MODRM_MOD(modrm[0]) && MODRM_RM(modrm[0]) == 5) {
		insn->flags = flat;
		insn->target = insn->addr + insn->len + (int32_t)get_le(modrm + 1, 4);
	} else if (end - modrm >= 6 && !MODRM_MOD(modrm[0]) && MODRM_RM(modrm[0]) == 4 && (modrm[1] & 7) == 5) {
		insn->flags = table;
		insn->target = (int64_t)(int32_t)get_le(modrm + 2, 4);
	}
}

static void classify_group5(const uint8_t *modrm, const uint8_t *end, struct code_insn *insn)
{
	if (modrm >= end)
		return;
	switch (MODRM_REG(modrm[0])) {
	case 2:
	case 3:
		insn->kind = CODE_CALL_INDIRECT;
		break;
	case 4:
	case 5:
		insn->kind = CODE_JUMP_INDIRECT;
		break;
	default:
		return;
	}
	memory_operand(modrm, end, insn, CODE_SLOT, CODE_TABLE);
}

static void classify_two_byte(const uint8_t *opcode, const uint8_t *end, struct code_insn *insn)
{
	if (opcode >= end)
		return;
	if ((opcode[0] & 0xf0) == 0x80 && end - opcode >= 5)
		leads_to(insn, CODE_BRANCH, (int32_t)get_le(end - 4, 4));
	else if (opcode[0] == 0x0b || opcode[0] == 0xb9 || opcode[0] == 0xff)
		insn->kind = CODE_STOP; /* ud2, ud1, ud0 */
}

void code_classify(const uint8_t *bytes, struct code_insn *insn)
{
	const uint8_t *end = bytes + insn->len, *opcode = bytes;

	insn->kind = CODE_PLAIN;
	insn->flags = 0;
	insn->target = 0;
	while (opcode < end - 1 && is_prefix(*opcode))
		opcode++;
	switch (opcode[0]) {
	case 0x0f:
		classify_two_byte(opcode + 1, end, insn);
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3: /* loop, jrcxz */
		leads_to(insn, CODE_BRANCH, (int8_t)end[-1]);
		break;
	case 0xe8:
		if (end - opcode == 5)
			leads_to(insn, CODE_CALL, (int32_t)get_le(end - 4, 4));
		break;
	case 0xe9:
		if (end - opcode == 5)
			leads_to(insn, CODE_JUMP, (int32_t)get_le(end - 4, 4));
		break;
	case 0xeb:
		leads_to(insn, CODE_JUMP, (int8_t)end[-1]);
		break;
	case 0xff:
		classify_group5(opcode + 1, end, insn);
		break;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
		insn->kind = CODE_RETURN;
		break;
	case 0xcc:
	case 0xf1:
	case 0xf4:
		insn->kind = CODE_STOP;
		break;
	case 0x8d: /* lea */
		memory_operand(opcode + 1, end, insn, CODE_ADDRESS, CODE_TABLE);
		break;
	case 0x8b: /* a jump table's entry, of a program that is linked to a fixed address */
		memory_operand(opcode + 1, end, insn, 0, CODE_TABLE);
		break;
	case 0xc7: /* xbegin */
		if (end - opcode == 6 && opcode[1] == 0xf8)
			leads_to(insn, CODE_BRANCH, (int32_t)get_le(end - 4, 4));
		break;
	default:
		break;
	}
}

bool code_is_stub(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *slot)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t pos = 0;

	if (sz > sizeof(endbr64) && !memcmp(bytes, endbr64, sizeof(endbr64)))
		pos = sizeof(endbr64);
	if (pos < sz && bytes[pos] == 0xf2) /* bnd */
		pos++;
	if (sz - pos < 6 || bytes[pos] != 0xff || bytes[pos + 1] != 0x25)
		return false;
	*slot = addr + pos + 6 + (int32_t)get_le(bytes + pos + 2, 4);
	return true;
}

bool code_looks_like_stack_switch(const uint8_t *bytes, size_t sz)
{
	if (sz < 4 || bytes[0] != 0x48)
		return false;
	if (bytes[1] == 0x89) /* mov %rdi,%rsp; mov %rsi,%rsp */
		return bytes[2] == 0xfc || bytes[2] == 0xf4;
	if (bytes[1] != 0x8b)
		return false;
	/* mov (%rdi),%rsp and the like; glibc's swapcontext has 0xa0(%rdx) */
	return bytes[2] == 0x26 || bytes[2] == 0x27 || bytes[2] == 0x66 || bytes[2] == 0x67 ||
	       (bytes[2] == 0xa2 && bytes[3] == 0xa0);
}

bool code_is_signal_return(const uint8_t *bytes, size_t sz)
{
	/* mov $15,%rax or mov $15,%eax; syscall */
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return (sz >= sizeof(wide) && !memcmp(bytes, wide, sizeof(wide))) ||
	       (sz >= sizeof(narrow) && !memcmp(bytes, narrow, sizeof(narrow)));
}

bool code_looks_like_jump(const uint8_t *bytes, size_t sz, uint64_t addr, uint64_t *target)
{
	size_t len = 0;

	switch (bytes[0]) {
	case 0xe8:
	case 0xe9:
		len = 5;
		break;
	case 0x0f:
		if (sz >= 6 && (bytes[1] & 0xf0) == 0x80)
			len = 6;
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
	case 0xeb:
		if (sz < 2)
			return false;
		*target = addr + 2 + (int8_t)bytes[1];
		return true;
	default:
		break;
	}
	if (!len || sz < len)
		return false;
	*target = addr + len + (int32_t)get_le(bytes + len - 4, 4);
	return true;
}

bool code_looks_like_exchange(const uint8_t *bytes, size_t sz)
{
	size_t at = bytes[0] == 0xf0 && sz > 1 && (bytes[1] & 0xf0) == 0x40 ? 2 : bytes[0] == 0xf0;

	if (sz < at + 3)
		return false;
	return at ? bytes[at] == 0x0f && bytes[at + 1] == 0xb1 : (bytes[0] & 0xfe) == 0x86 && bytes[1] < 0xc0;
}

/* --- effects --------------------------------------------------------------------------------------------------------
 */

static int arg_of(x86_reg reg)
{
	switch (reg) {
	case X86_REG_RDI:
	case X86_REG_EDI:
	case X86_REG_DI:
	case X86_REG_DIL:
		return 0;
	case X86_REG_RSI:
	case X86_REG_ESI:
	case X86_REG_SI:
	case X86_REG_SIL:
		return 1;
	case X86_REG_RDX:
	case X86_REG_EDX:
	case X86_REG_DX:
	case X86_REG_DL:
	case X86_REG_DH:
		return 2;
	case X86_REG_RCX:
	case X86_REG_ECX:
	case X86_REG_CX:
	case X86_REG_CL:
	case X86_REG_CH:
		return 3;
	case X86_REG_R8:
	case X86_REG_R8D:
	case X86_REG_R8W:
	case X86_REG_R8B:
		return 4;
	case X86_REG_R9:
	case X86_REG_R9D:
	case X86_REG_R9W:
	case X86_REG_R9B:
		return 5;
	default:
		return -1;
	}
}

static bool is_stack_pointer(x86_reg reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

/*
 * Instructions that write their first operand, perhaps the flags, and nothing else.  Whatever is not in here is taken
 * to write everything: what compilers put before the first branch of a function is.
 */
static bool is_plain_move(unsigned id)
{
	switch (id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA:
	case X86_INS_MOVAPS:
	case X86_INS_MOVUPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVUPD:
	case X86_INS_MOVDQA:
	case X86_INS_MOVDQU:
	case X86_INS_MOVQ:
	case X86_INS_MOVD:
	case X86_INS_MOVSS:
	case X86_INS_MOVHPS:
	case X86_INS_MOVLPS:
	case X86_INS_MOVLHPS:
	case X86_INS_MOVHLPS:
	case X86_INS_PXOR:
	case X86_INS_XORPS:
	case X86_INS_XORPD:
	case X86_INS_PUNPCKLQDQ:
	case X86_INS_PSHUFD:
	case X86_INS_CVTSI2SD:
	case X86_INS_CVTSI2SS:
	case X86_INS_CVTSS2SD:
	case X86_INS_CVTSD2SS:
	case X86_INS_CVTTSD2SI:
	case X86_INS_CVTTSS2SI:
	case X86_INS_BSWAP:
	case X86_INS_NOT:
		return true;
	default:
		return id >= X86_INS_SETAE && id <= X86_INS_SETS;
	}
}

static bool is_conditional_move(unsigned id)
{
	switch (id) {
	case X86_INS_CMOVA:
	case X86_INS_CMOVAE:
	case X86_INS_CMOVB:
	case X86_INS_CMOVBE:
	case X86_INS_CMOVE:
	case X86_INS_CMOVG:
	case X86_INS_CMOVGE:
	case X86_INS_CMOVL:
	case X86_INS_CMOVLE:
	case X86_INS_CMOVNE:
	case X86_INS_CMOVNO:
	case X86_INS_CMOVNP:
	case X86_INS_CMOVNS:
	case X86_INS_CMOVO:
	case X86_INS_CMOVP:
	case X86_INS_CMOVS:
		return true;
	default:
		return false;
	}
}

static bool is_arithmetic(unsigned id)
{
	switch (id) {
	case X86_INS_ADD:
	case X86_INS_SUB:
	case X86_INS_ADC:
	case X86_INS_SBB:
	case X86_INS_AND:
	case X86_INS_OR:
	case X86_INS_XOR:
	case X86_INS_INC:
	case X86_INS_DEC:
	case X86_INS_NEG:
	case X86_INS_SHL:
	case X86_INS_SHR:
	case X86_INS_SAR:
	case X86_INS_SAL:
	case X86_INS_ROL:
	case X86_INS_ROR:
	case X86_INS_SHLD:
	case X86_INS_SHRD:
	case X86_INS_BTS:
	case X86_INS_BTR:
	case X86_INS_BTC:
	case X86_INS_BSF:
	case X86_INS_BSR:
	case X86_INS_TZCNT:
	case X86_INS_LZCNT:
	case X86_INS_POPCNT:
		return true;
	default:
		return false;
	}
}

static bool writes_flags_only(unsigned id)
{
	switch (id) {
	case X86_INS_TEST:
	case X86_INS_CMP:
	case X86_INS_BT:
	case X86_INS_COMISD:
	case X86_INS_COMISS:
	case X86_INS_UCOMISD:
	case X86_INS_UCOMISS:
		return true;
	default:
		return false;
	}
}

static bool is_nop(unsigned id)
{
	return id == X86_INS_NOP || id == X86_INS_ENDBR64 || id == X86_INS_ENDBR32 || id == X86_INS_PREFETCHT0 ||
	       id == X86_INS_PREFETCHW || id == X86_INS_PREFETCHNTA;
}

/* sub $n,%rsp; add $n,%rsp; lea n(%rsp),%rsp.  False: the stack pointer is set in another way. */
static bool sp_moved(const cs_insn *insn, struct code_effects *effects)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *from = &x86->operands[1];
	int64_t up;

	if (x86->op_count != 2 || x86->operands[0].reg != X86_REG_RSP)
		return false;
	if ((insn->id == X86_INS_SUB || insn->id == X86_INS_ADD) && from->type == X86_OP_IMM)
		up = insn->id == X86_INS_ADD ? from->imm : -from->imm;
	else if (insn->id == X86_INS_LEA && from->mem.base == X86_REG_RSP && from->mem.index == X86_REG_INVALID)
		up = from->mem.disp;
	else
		return false;
	if (up > INT32_MAX || up <= INT32_MIN)
		return false;
	effects->sp_down = -up;
	return true;
}

static void register_written(x86_reg reg, struct code_effects *effects)
{
	int arg = arg_of(reg);

	if (arg >= 0)
		effects->args_written |= 1 << arg;
	if (is_stack_pointer(reg))
		effects->sp_lost = true;
}

/* Of the function's own frame is what lies below the stack pointer at entry; what is above is the caller's. */
static void operand_written(const cs_x86_op *operand, uint32_t frame_sz, struct code_effects *effects)
{
	const x86_op_mem *memory = &operand->mem;

	if (operand->type == X86_OP_REG) {
		register_written(operand->reg, effects);
	} else if (operand->type == X86_OP_MEM) {
		effects->stores = true;
		if (memory->segment != X86_REG_INVALID || memory->base != X86_REG_RSP ||
		    memory->index != X86_REG_INVALID || memory->disp + operand->size > (int64_t)frame_sz)
			effects->memory_written = true;
		if (memory->base == X86_REG_RSP &&
		    (memory->index != X86_REG_INVALID || memory->disp + operand->size > (int64_t)frame_sz))
			effects->caller_written = true;
	}
}

static bool known_effects(const cs_insn *insn, uint32_t frame_sz, struct code_effects *effects)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const unsigned id = insn->id;

	if (x86->prefix[0] || is_nop(id)) /* rep and lock change what an instruction does */
		return is_nop(id);
	if (id == X86_INS_PUSH && x86->op_count == 1 && x86->operands[0].size == 8) {
		effects->sp_down = 8;
		effects->stores = true;
		return true;
	}
	if (id == X86_INS_POP && x86->op_count == 1 && x86->operands[0].type == X86_OP_REG &&
	    x86->operands[0].size == 8) {
		effects->sp_down = -8;
		register_written(x86->operands[0].reg, effects);
		return true;
	}
	effects->flags_written = is_arithmetic(id) || writes_flags_only(id) || id == X86_INS_IMUL;
	if (writes_flags_only(id))
		return true;
	if (id == X86_INS_CDQE || id == X86_INS_CWDE) /* rax only */
		return true;
	if (!(is_plain_move(id) || is_conditional_move(id) || is_arithmetic(id) ||
	      (id == X86_INS_IMUL && x86->op_count > 1)) ||
	    !x86->op_count)
		return false;
	if (x86->operands[0].type == X86_OP_REG && is_stack_pointer(x86->operands[0].reg) && sp_moved(insn, effects))
		return true;
	operand_written(&x86->operands[0], frame_sz, effects);
	return true;
}

/* Takes as long as its operand is: what comes behind it is not the beginning any more. */
static bool is_repeated_string(const uint8_t *bytes, size_t sz)
{
	bool repeated = false;
	size_t pos = 0;

	for (; pos < sz && is_prefix(bytes[pos]); pos++)
		repeated |= bytes[pos] == 0xf2 || bytes[pos] == 0xf3;
	return repeated && pos < sz &&
	       ((bytes[pos] >= 0xa4 && bytes[pos] <= 0xa7) || (bytes[pos] >= 0xaa && bytes[pos] <= 0xaf));
}

bool code__effects(struct code *code, const uint8_t *bytes, size_t sz, uint32_t frame_sz, struct code_effects *effects)
{
	uint64_t addr = 0;
	uint8_t read_cnt, write_cnt;
	cs_regs read, written;

	memset(effects, 0, sizeof(*effects));
	*effects = (struct code_effects){.sp_lost = true,
					 .args_written = 0xff,
					 .memory_written = true,
					 .stores = true,
					 .caller_written = true,
					 .flags_written = true};
	if (is_repeated_string(bytes, sz) || !cs_disasm_iter(code->detailed, &bytes, &sz, &addr, code->detailed_insn))
		return false;
	struct code_effects known = {0};

	if (known_effects(code->detailed_insn, frame_sz, &known)) {
		*effects = known;
		return true;
	}
	/* It may do anything, but the stack pointer has few ways to change, and those are well known. */
	if (cs_regs_access(code->detailed, code->detailed_insn, read, &read_cnt, written, &write_cnt))
		return false;
	effects->sp_lost = false;
	for (size_t i = 0; i < write_cnt; i++)
		effects->sp_lost |= is_stack_pointer(written[i]);
	for (size_t i = 0; i < code->detailed_insn->detail->groups_count; i++) {
		uint8_t group = code->detailed_insn->detail->groups[i];

		effects->sp_lost |= group == CS_GRP_JUMP || group == CS_GRP_CALL || group == CS_GRP_RET ||
				    group == CS_GRP_INT || group == CS_GRP_IRET;
	}
	return true;
}
#endif
