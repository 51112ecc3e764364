// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/function_code.h"

#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

#define FUNCTION_SZ_MAX (8ULL << 20)
#define TABLE_MAX       65536

/* --- reading --------------------------------------------------------------------------------------------------------
 */

static bool in_piece(const struct function_piece *piece, uint64_t addr)
{
	return addr >= piece->addr && addr - piece->addr < piece->size;
}

static const struct function_piece *piece_at(const struct function_code *code, uint64_t addr)
{
	for (size_t i = 0; i < code->piece_cnt; i++)
		if (in_piece(&code->pieces[i], addr))
			return &code->pieces[i];
	return NULL;
}

/* 0, also where something is no instruction: then `unclear` is set. */
static int piece_add(struct program *program, struct function_code *code, const struct program_function *function)
{
	struct function_piece *piece = &code->pieces[code->piece_cnt];
	uint8_t *bytes;
	ssize_t len;
	int err;

	if (code->piece_cnt == FUNCTION_PIECES_MAX || function->size > FUNCTION_SZ_MAX) {
		code->unclear = "it is in too many pieces, or too large";
		return code->piece_cnt ? 0 : -E2BIG;
	}
	*piece = (struct function_piece){.function = function->id, .addr = function->addr, .size = function->size};
	code->piece_cnt++;
	bytes = malloc(piece->size + 1);
	if (!bytes)
		return -ENOMEM;
	len = program__read_code(program, function->module, piece->addr, bytes, piece->size);
	if (len != (ssize_t)piece->size) {
		free(bytes);
		return len < 0 ? len : -ENOENT;
	}
	err = code__sweep(program->code, bytes, piece->size, piece->addr, &piece->insns);
	free(bytes);
	if (err != -EILSEQ)
		return err;
	code->unclear = "it holds bytes that are no instruction";
	return 0;
}

int program__depth(struct program *program, uint32_t idx, uint64_t addr, int64_t *depth)
{
	struct module *module = program_module_of(program, idx);
	const struct eh_frame *frame;
	const struct frame_rule *rule;

	frame = module && !module_functions_load(program, module) ? module_frame(module) : NULL;
	rule = frame ? eh_frame__rule(frame, addr) : NULL;
	if (!rule || rule->cfa.what != UNWIND_REGISTER)
		return -ENOENT;
	if (rule->cfa.reg != EH_REG_SP)
		return rule->cfa.reg == EH_REG_FP ? -ERANGE : -ENOENT;
	*depth = rule->cfa.off - EH_ENTRY_SP;
	return 0;
}

bool program__is_outermost(struct program *program, uint32_t id)
{
	const struct function *function = program_function_of(program, id);
	struct module *module = function ? program_module_of(program, function->public.module) : NULL;
	const struct eh_frame *frame;
	const struct frame_rule *rule;

	if (!module || module_open(program, module))
		return false;
	if (elf_image__entry(module->image) == function->public.addr)
		return true;
	frame = module_frame(module);
	rule = frame ? eh_frame__rule(frame, function->public.addr) : NULL;
	return rule && rule->is_start;
}

bool program__is_signal_return(struct program *program, uint32_t id)
{
	const struct function *function = program_function_of(program, id);
	uint8_t bytes[CODE_INSN_MAX];
	ssize_t len;

	if (!function)
		return false;
	len = program__read_code(program, function->public.module, function->public.addr, bytes, sizeof(bytes));
	return len > 0 && code_is_signal_return(bytes, len);
}

/* Something lies on the stack here: whoever jumps is not done with its frame. */
static bool is_in_frame(struct program *program, uint32_t module, uint64_t addr)
{
	int64_t depth;
	int err = program__depth(program, module, addr, &depth);

	return err == -ERANGE || (!err && depth);
}

static bool jumps_into_middle(const struct function_piece *from, const struct function_piece *of)
{
	for (size_t i = 0; i < from->insns.cnt; i++) {
		const struct code_insn *insn = &from->insns.items[i];

		if ((insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH) && insn->target != of->addr &&
		    in_piece(of, insn->target))
			return true;
	}
	return false;
}

/*
 * A jump leaves the pieces that are known.  Where it leads to is another piece when that begins in the midst of a
 * frame, or when the jump is made from within one, or when it jumps back into the middle; otherwise it is a function of
 * its own.
 */
static int jump_follow(struct program *program, uint32_t module, struct function_code *code,
		       const struct code_insn *insn)
{
	uint32_t id = program__function_at(program, module, insn->target);
	const struct function *function = program_function_of(program, id);
	size_t before = code->piece_cnt;
	int err;

	if (!function)
		return 0;
	if (function->public.is_part || is_in_frame(program, module, insn->addr))
		return piece_add(program, code, &function->public);
	if (insn->target != function->public.addr) {
		code->unclear = "it jumps into the middle of another function";
		code->is_piece =
			program_function_of(program, code->pieces[0].function)->public.source == FUNCTION_EH_FRAME;
		return 0;
	}
	if (function->public.source != FUNCTION_EH_FRAME)
		return 0;
	err = piece_add(program, code, &function->public);
	if (!err && code->piece_cnt > before && !jumps_into_middle(&code->pieces[before], &code->pieces[0])) {
		vec_free(&code->pieces[before].insns);
		code->piece_cnt = before;
	}
	return err;
}

/* Every jump that stays must meet the first byte of an instruction. */
static void targets_check(struct function_code *code)
{
	for (size_t i = 0; i < code->piece_cnt && !code->unclear; i++)
		for (size_t j = 0; j < code->pieces[i].insns.cnt && !code->unclear; j++) {
			const struct code_insn *insn = &code->pieces[i].insns.items[j];
			const struct function_piece *to;

			if (insn->kind != CODE_JUMP && insn->kind != CODE_BRANCH)
				continue;
			to = piece_at(code, insn->target);
			/* A lock prefix is jumped over where there is one CPU only. */
			if (to && !code_insn_at(&to->insns, insn->target) &&
			    !code_insn_at(&to->insns, insn->target - 1))
				code->unclear = "it jumps into the middle of an instruction";
		}
}

int program__function_code(struct program *program, uint32_t id, struct function_code *code)
{
	const struct function *function = program_function_of(program, id);
	int err;

	memset(code, 0, sizeof(*code));
	if (!function)
		return -EINVAL;
	err = piece_add(program, code, &function->public);
	for (size_t i = 0; i < code->piece_cnt && !err; i++)
		for (size_t j = 0; j < code->pieces[i].insns.cnt && !err; j++) {
			const struct code_insn *insn = &code->pieces[i].insns.items[j];

			if ((insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH) && !piece_at(code, insn->target))
				err = jump_follow(program, function->public.module, code, insn);
		}
	targets_check(code);
	return err;
}

void function_code_free(struct function_code *code)
{
	for (size_t i = 0; i < code->piece_cnt; i++)
		vec_free(&code->pieces[i].insns);
	code->piece_cnt = 0;
}

const struct code_insn *function_code_at(const struct function_code *code, uint64_t addr)
{
	const struct function_piece *piece = piece_at(code, addr);

	return piece ? code_insn_at(&piece->insns, addr) : NULL;
}

/* --- where execution may go -----------------------------------------------------------------------------------------
 */

/*
 * Tables of jump targets relative to themselves, as position-independent code has them: every address that the function
 * forms may be one.  Reading goes on as long as the entries lead into the function: a neighbour's entries may be taken
 * for its own, which errs on the safe side.  Calls `seen` for each target until that says true.
 */
static bool tables_walk(struct program *program, const struct function_code *code,
			bool (*seen)(uint64_t target, void *arg), void *arg)
{
	const struct function *function = program_function_of(program, code->pieces[0].function);
	struct module *module = program_module_of(program, function->public.module);

	for (size_t i = 0; i < code->piece_cnt; i++)
		for (size_t j = 0; j < code->pieces[i].insns.cnt; j++) {
			const struct code_insn *insn = &code->pieces[i].insns.items[j];
			int32_t entries[64];
			size_t cnt, total = 0;
			bool ended = false;

			if (!(insn->flags & CODE_ADDRESS) || elf_image__code_at(module->image, insn->target))
				continue;
			for (; !ended && total < TABLE_MAX; total += cnt) {
				ssize_t len = elf_image__read_addr(module->image, insn->target + total * 4, entries,
								   sizeof(entries));

				cnt = len > 0 ? len / 4 : 0;
				ended = cnt < sizeof(entries) / 4;
				for (size_t k = 0; k < cnt && !ended; k++) {
					uint64_t target = insn->target + (int64_t)entries[k];

					if (!piece_at(code, target))
						ended = true;
					else if (seen(target, arg))
						return true;
				}
			}
		}
	return false;
}

struct range {
	uint64_t first, last;
};

static bool is_in_range(uint64_t target, void *arg)
{
	const struct range *range = arg;

	return target >= range->first && target <= range->last;
}

static bool is_any(uint64_t target, void *arg)
{
	(void)target;
	(void)arg;
	return true;
}

bool function_code_is_pointed_into(struct program *program, const struct function_code *code, uint64_t first,
				   uint64_t last)
{
	const struct function *function = program_function_of(program, code->pieces[0].function);
	struct module *module = program_module_of(program, function->public.module);
	const struct elf_relocs *relocs = module_relocs(module);
	struct range range = {first, last};

	return !relocs || elf_relocs__points_into(relocs, first, last) ||
	       tables_walk(program, code, is_in_range, &range);
}

/* A function without a table that it could jump by. */
static bool has_table(struct program *program, const struct function_code *code)
{
	for (size_t i = 0; i < code->piece_cnt; i++)
		for (size_t j = 0; j < code->pieces[i].insns.cnt; j++)
			if (code->pieces[i].insns.items[j].flags & CODE_TABLE)
				return true;
	return tables_walk(program, code, is_any, NULL);
}

enum jump_scope function_code_jump(struct program *program, const struct function_code *code,
				   const struct code_insn *insn)
{
	const struct function *function = program_function_of(program, code->pieces[0].function);
	uint32_t module = function->public.module;
	int64_t depth;
	int err;

	if (insn->flags & CODE_TARGET) {
		/* Back to its own entry with nothing on the stack: it calls itself last. */
		if (insn->target == code->pieces[0].addr && !is_in_frame(program, module, insn->addr))
			return JUMP_AWAY;
		return piece_at(code, insn->target) ? JUMP_WITHIN : JUMP_AWAY;
	}
	if (insn->flags & CODE_SLOT)
		return JUMP_AWAY;
	err = program__depth(program, module, insn->addr, &depth);
	if (err == -ERANGE || (!err && depth) || insn->flags & CODE_TABLE)
		return JUMP_WITHIN;
	if (!err && !has_table(program, code))
		return JUMP_AWAY;
	return JUMP_UNKNOWN;
}

bool function_code_jumps_at_depth(struct program *program, const struct function_code *code, int64_t depth)
{
	const struct function *function = program_function_of(program, code->pieces[0].function);
	int64_t there;

	for (size_t i = 0; i < code->piece_cnt; i++)
		for (size_t j = 0; j < code->pieces[i].insns.cnt; j++) {
			const struct code_insn *insn = &code->pieces[i].insns.items[j];
			int err;

			if (insn->kind != CODE_JUMP_INDIRECT || insn->flags & CODE_SLOT)
				continue;
			err = program__depth(program, function->public.module, insn->addr, &there);
			if (err == -ENOENT || (!err && there == depth))
				return true;
		}
	return false;
}
