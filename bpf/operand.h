/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The expressions of a symbol list, evaluated where a probe is hit. */
#ifndef WHYLATE_BPF_OPERAND_H
#define WHYLATE_BPF_OPERAND_H

#include "context.h"
#include "probe_spec.h"

/* A register of the target by its place among them. */
static __always_inline u64 register_at(struct pt_regs *ctx, s16 off)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + off);
	return value;
}

static __always_inline u64 cut_to(u64 value, u8 sz, bool is_signed)
{
	switch (sz) {
	case 1:
		return is_signed ? (u64)(s64)(s8)value : (u8)value;
	case 2:
		return is_signed ? (u64)(s64)(s16)value : (u16)value;
	case 4:
		return is_signed ? (u64)(s64)(s32)value : (u32)value;
	}
	return value;
}

/* The operand as registers and constants say, before what it points to is read. False: it cannot be read. */
static __noinline bool operand__base(struct pt_regs *ctx, struct operand *operand, u64 *value)
{
	u64 addr;

	if (!ctx || !operand || !value)
		return false;
	switch (operand->kind) {
	case OPERAND_CONST:
		*value = operand->value;
		break;
	case OPERAND_TID:
		*value = (u32)bpf_get_current_pid_tgid();
		return true;
	case OPERAND_REG:
		*value = register_at(ctx, operand->reg_off) >> (operand->shift & 63);
		break;
	case OPERAND_MEMORY:
		addr = operand->value;
		if (operand->reg_off != OPERAND_NO_REG)
			addr += register_at(ctx, operand->reg_off);
		if (operand->idx_off != OPERAND_NO_REG)
			addr += register_at(ctx, operand->idx_off) << (operand->idx_shift & 63);
		if (bpf_probe_read_user(value, sizeof(*value), (void *)addr))
			return false;
		break;
	default:
		return false;
	}
	*value = cut_to(*value, operand->sz, operand->is_signed);
	return true;
}

/* What the operand means in the end. */
static __always_inline bool operand__resolve(struct operand *operand, u64 *value)
{
	u64 addr = *value + operand->deref_off;
	u32 half = 0;

	if (operand->deref_sz == 8)
		return !bpf_probe_read_user(value, sizeof(*value), (void *)addr);
	if (operand->deref_sz == 4) {
		if (bpf_probe_read_user(&half, sizeof(half), (void *)addr))
			return false;
		*value = half;
	}
	return true;
}

#endif
