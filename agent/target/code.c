// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/code.h"

#include "base/order.h"
#include "target/code_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct code *code__new(void)
{
	struct code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	if (cs_open(CODE_CAPSTONE_ARCH, CODE_CAPSTONE_MODE, &code->fast) ||
	    cs_open(CODE_CAPSTONE_ARCH, CODE_CAPSTONE_MODE, &code->detailed) ||
	    cs_option(code->detailed, CS_OPT_DETAIL, CS_OPT_ON) ||
	    (CODE_CAPSTONE_ARCH == CS_ARCH_X86 && cs_option(code->fast, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT)))
		goto failed;
	code->fast_insn = cs_malloc(code->fast);
	code->detailed_insn = cs_malloc(code->detailed);
	if (!code->fast_insn || !code->detailed_insn)
		goto failed;
	return code;

failed:
	code__free(code);
	return NULL;
}

void code__free(struct code *code)
{
	if (!code)
		return;
	if (code->fast_insn)
		cs_free(code->fast_insn, 1);
	if (code->detailed_insn)
		cs_free(code->detailed_insn, 1);
	if (code->fast)
		cs_close(&code->fast);
	if (code->detailed)
		cs_close(&code->detailed);
	free(code);
}

int code__sweep(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, code_insns *insns)
{
	int err = 0;

	while (sz && !err) {
		struct code_insn insn = {.addr = addr};
		const uint8_t *begin = bytes;

		if (!cs_disasm_iter(code->fast, &bytes, &sz, &addr, code->fast_insn))
			return -EILSEQ;
		insn.len = code->fast_insn->size;
		code_classify(begin, &insn);
		err = vec_push(insns, insn);
	}
	return err;
}

size_t code__len(struct code *code, const uint8_t *bytes, size_t sz)
{
	uint64_t addr = 0;

	return cs_disasm_iter(code->fast, &bytes, &sz, &addr, code->fast_insn) ? code->fast_insn->size : 0;
}

const struct code_insn *code_insn_at(const code_insns *insns, uint64_t addr)
{
	size_t found = search_first(0, insns->cnt, at, insns->items[at].addr >= addr);

	return found < insns->cnt && insns->items[found].addr == addr ? &insns->items[found] : NULL;
}

void code__text(struct code *code, const uint8_t *bytes, size_t sz, uint64_t addr, char *buf, size_t buf_sz)
{
	const char *operands;

	if (!cs_disasm_iter(code->fast, &bytes, &sz, &addr, code->fast_insn)) {
		snprintf(buf, buf_sz, "?");
		return;
	}
	operands = code->fast_insn->op_str;
	snprintf(buf, buf_sz, "%s%s%s", code->fast_insn->mnemonic, operands[0] ? " " : "", operands);
}
