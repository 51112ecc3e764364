// SPDX-License-Identifier: GPL-2.0-or-later
/* Who calls whom: by direct calls, by jumps that leave a function, by slots that the dynamic linker fills in. */
#include "base/order.h"
#include "target/function_code.h"
#include "target/proc_file.h"
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

#define STUB_SZ 16

typedef VEC(struct call_edge) edge_list;

/* --- slots ----------------------------------------------------------------------------------------------------------
 */

/* In the live process the slot itself knows, also which implementation an IFUNC chose. */
static uint32_t slot_in_memory(struct program *program, const struct module *module, uint64_t slot)
{
	uint64_t pc;
	uint32_t id;

	if (module->public.gone || module->public.awaited ||
	    !proc_mem_read(program->mem_fd, slot + module->public.bias, &pc, sizeof(pc)))
		return PROGRAM_NONE;
	id = program__function_at_runtime(program, pc, NULL);
	/* Not bound yet: it leads back to the stub, which is no function. */
	if (id == PROGRAM_NONE ||
	    program_function_of(program, id)->public.addr !=
		    pc - program->modules.items[program_function_of(program, id)->public.module]->public.bias)
		return PROGRAM_NONE;
	return id;
}

/* The linker asks the executable first, then the libraries: their order in memory stands for the one it knows. */
static uint32_t exported_find(struct program *program, const char *name)
{
	uint32_t id = PROGRAM_NONE;

	for (size_t i = 0; i < program->modules.cnt && id == PROGRAM_NONE; i++) {
		struct module *module = program->modules.items[i];

		if (!module->public.gone && !module_open(program, module) &&
		    elf_file__symbol_kind(module->files[0], name) != ELF_SYMBOL_NONE)
			id = program__function_find(program, i, name);
	}
	return id;
}

/* The C library's choices among implementations: in assembler, with jumps that nobody follows, and calling nothing. */
static bool is_string_or_maths(const struct program *program, const struct elf_slot *slot, const char *name,
			       const struct function *function)
{
	const struct module *module = program->modules.items[function->public.module];

	if (strncmp(module->name, "libc.so.6", 9) && strncmp(module->name, "libm.so.6", 9))
		return false;
	return slot->is_ifunc || function->public.is_ifunc ||
	       (name && elf_file__symbol_kind(module->files[0], name) == ELF_SYMBOL_IFUNC);
}

/* What one function's instructions give. */
struct calls {
	edge_list edges;
	bool indirect, unresolved;
	bool is_late; /* relocations are not read yet */
};

static uint32_t slot_function(struct program *program, struct module *module, uint64_t addr, struct calls *calls)
{
	const struct elf_relocs *relocs = module_relocs(module);
	const struct elf_slot *slot = relocs ? elf_relocs__slot(relocs, addr) : NULL;
	const char *name = slot ? elf_relocs__name(relocs, slot) : NULL;
	uint32_t id;

	calls->is_late |= !relocs && errno == EAGAIN;
	if (!slot)
		return PROGRAM_NONE;
	id = slot_in_memory(program, module, addr);
	if (id == PROGRAM_NONE && name)
		id = exported_find(program, name);
	if (id == PROGRAM_NONE && slot->value)
		id = program__function_at(program, module->public.idx, slot->value);
	if (id != PROGRAM_NONE && is_string_or_maths(program, slot, name, program_function_of(program, id)))
		program_function_of(program, id)->is_leaf = true;
	return id;
}

/* --- edges ----------------------------------------------------------------------------------------------------------
 */

static int edge_push(struct calls *calls, uint32_t callee, uint64_t call_addr, enum call_kind kind)
{
	struct call_edge edge = {.callee = callee, .call_addr = call_addr, .kind = kind};

	if (callee == PROGRAM_NONE) {
		calls->unresolved = true;
		return 0;
	}
	return vec_push(&calls->edges, edge);
}

/* A call or jump to a known address: a function, or a stub. */
static int direct_edge(struct program *program, struct module *module, const struct code_insn *insn,
		       struct calls *calls)
{
	uint32_t id = program__function_at(program, module->public.idx, insn->target);
	uint8_t bytes[STUB_SZ];
	uint64_t slot;
	ssize_t len;

	if (id == PROGRAM_NONE) {
		len = elf_image__read_addr(module->image, insn->target, bytes, sizeof(bytes));
		if (len < 0 || !code_is_stub(bytes, len, insn->target, &slot))
			return edge_push(calls, PROGRAM_NONE, insn->addr, CALL_DIRECT);
		return edge_push(calls, slot_function(program, module, slot, calls), insn->addr, CALL_PLT);
	}
	return edge_push(calls, id, insn->addr, insn->kind == CODE_CALL ? CALL_DIRECT : CALL_TAIL);
}

/* Where neither a slot nor the code says where it leads, only sampling can tell. */
static int indirect_edge(struct program *program, struct module *module, const struct code_insn *insn,
			 struct calls *calls)
{
	uint32_t id = insn->flags & CODE_SLOT ? slot_function(program, module, insn->target, calls) : PROGRAM_NONE;

	if (id == PROGRAM_NONE) {
		calls->indirect = true;
		return 0;
	}
	return edge_push(calls, id, insn->addr, CALL_PLT);
}

static int insn_edge(struct program *program, struct module *module, const struct function_code *code,
		     const struct code_insn *insn, struct calls *calls)
{
	switch (insn->kind) {
	case CODE_CALL:
		/* `call 1f; 1: pop` only asks where it is. */
		if (insn->target == insn->addr + insn->len)
			return 0;
		return direct_edge(program, module, insn, calls);
	case CODE_CALL_INDIRECT:
		return indirect_edge(program, module, insn, calls);
	case CODE_JUMP:
	case CODE_BRANCH:
		if (function_code_jump(program, code, insn) != JUMP_AWAY)
			return 0;
		return direct_edge(program, module, insn, calls);
	case CODE_JUMP_INDIRECT:
		if (function_code_jump(program, code, insn) == JUMP_WITHIN)
			return 0;
		return indirect_edge(program, module, insn, calls);
	default:
		return 0;
	}
}

ORDER(edge_cmp, struct call_edge, BY(a->call_addr, b->call_addr));

static int disassemble(struct program *program, struct function *function)
{
	struct module *module = program->modules.items[function->public.module];
	uint32_t id = function->public.id;
	struct function_code code;
	struct calls calls = {0};
	int err = program__function_code(program, id, &code);

	for (size_t i = 0; i < code.piece_cnt && !err; i++)
		for (size_t j = 0; j < code.pieces[i].insns.cnt && !err; j++)
			err = insn_edge(program, module, &code, &code.pieces[i].insns.items[j], &calls);
	if (code.unclear)
		calls.indirect = true;
	function_code_free(&code);
	/* Too large or not there: nothing is known of its calls. */
	if (err && err != -ENOMEM) {
		calls.indirect = true;
		err = 0;
	}
	/* Nothing is kept of it: it is asked for again. */
	if (!err && calls.is_late)
		err = -EAGAIN;
	if (err) {
		vec_free(&calls.edges);
		return err;
	}
	vec_sort(&calls.edges, edge_cmp);
	vec_shrink(&calls.edges);
	/* Modules that were read meanwhile do not move functions, so the pointer still holds. */
	free(function->edges);
	function->edges = calls.edges.items;
	function->edge_cnt = function->static_cnt = calls.edges.cnt;
	function->calls_indirectly = calls.indirect;
	function->unresolved_calls = calls.unresolved;
	function->is_disassembled = true;
	return 0;
}

int program__callees(struct program *program, uint32_t id, const struct call_edge **edges, size_t *cnt)
{
	struct function *function = program_function_of(program, id);
	int err;

	if (!function)
		return -EINVAL;
	err = function->is_disassembled ? 0 : disassemble(program, function);
	*edges = function->edges;
	*cnt = err ? 0 : function->edge_cnt;
	return err;
}

void program__forget_callees(struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		for (size_t j = 0; j < module->functions.cnt; j++) {
			struct function *function = &module->functions.items[j];

			/* What sampling told is told once. */
			if (!function->is_disassembled || function->edge_cnt != function->static_cnt)
				continue;
			free(function->edges);
			function->edges = NULL;
			function->edge_cnt = function->static_cnt = 0;
			function->is_disassembled = false;
		}
	}
}

bool program__calls_indirectly(struct program *program, uint32_t id)
{
	struct function *function = program_function_of(program, id);

	return !function || (!function->is_disassembled && disassemble(program, function)) ||
	       function->calls_indirectly;
}

int program__add_dynamic_edge(struct program *program, uint32_t caller, uint32_t callee, uint64_t call_addr)
{
	struct function *function = program_function_of(program, caller);
	struct call_edge *edges;
	const struct call_edge *known;
	size_t cnt;
	int err;

	if (!function || !program_function_of(program, callee))
		return -EINVAL;
	err = program__callees(program, caller, &known, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		if (known[i].callee == callee && (!call_addr || known[i].call_addr == call_addr))
			return 0;
	edges = realloc(function->edges, (cnt + 1) * sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	edges[cnt] = (struct call_edge){.callee = callee, .call_addr = call_addr, .kind = CALL_DYNAMIC};
	function->edges = edges;
	function->edge_cnt = cnt + 1;
	program__heights_forget(program);
	return 0;
}
