// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/call_sites.h"

#include "base/bytes.h"
#include "base/order.h"
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

#define CHUNK_SZ    (1U << 20)
#define INSN_SZ     6 /* of the longest that is looked for */
#define SLOT_OPCODE 0xff
#define SLOT_CALL   0x15 /* call *slot(%rip) */
#define SLOT_JUMP   0x25

/* What precedes the jump of a stub: nothing, bnd, endbr64, both. */
static const uint8_t stub_prefixes[] = {0, 1, 4, 5};

ORDER(target_cmp, struct call_target, BY(a->addr, b->addr), BY(a->tag, b->tag));

static const struct call_target *target_at(const struct call_targets *targets, uint64_t addr)
{
	size_t at = search_first(0, targets->items.cnt, mid, targets->items.items[mid].addr >= addr);

	return at < targets->items.cnt && targets->items.items[at].addr == addr ? &targets->items.items[at] : NULL;
}

/* Does an instruction at the bytes lead there through a slot? */
static bool reads_slot(const uint8_t *bytes, size_t sz, uint64_t addr, uint8_t modrm, uint64_t *slot)
{
	if (sz < INSN_SZ || bytes[0] != SLOT_OPCODE || bytes[1] != modrm)
		return false;
	*slot = addr + INSN_SZ + (int32_t)get_le(bytes + 2, 4);
	return true;
}

/* Calls `look` for each byte of code, with what follows it.  0 or -errno. */
static int code_walk(const struct module *module,
		     int (*look)(void *arg, const uint8_t *bytes, size_t sz, uint64_t addr), void *arg)
{
	uint8_t *bytes = malloc(CHUNK_SZ + INSN_SZ);
	const struct elf_segment *segments;
	size_t cnt = elf_image__segments(module->image, &segments);
	int err = bytes ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++)
		for (uint64_t off = 0; segments[i].exec && off < segments[i].file_sz && !err; off += CHUNK_SZ) {
			uint64_t left = segments[i].file_sz - off;
			size_t sz = left < CHUNK_SZ + INSN_SZ ? left : CHUNK_SZ + INSN_SZ;

			if (elf_image__read(module->image, segments[i].file_off + off, bytes, sz) != (ssize_t)sz)
				err = -ENOENT;
			for (size_t at = 0; at < sz && at < CHUNK_SZ && !err; at++)
				err = look(arg, bytes + at, sz - at, segments[i].addr + off + at);
		}
	free(bytes);
	return err;
}

struct stub_search {
	const struct call_targets *slots;
	struct call_targets found;
};

static int stub_look(void *arg, const uint8_t *bytes, size_t sz, uint64_t addr)
{
	struct stub_search *search = arg;
	const struct call_target *slot;
	uint64_t slot_addr;
	int err = 0;

	if (!reads_slot(bytes, sz, addr, SLOT_JUMP, &slot_addr))
		return 0;
	slot = target_at(search->slots, slot_addr);
	for (size_t i = 0; i < sizeof(stub_prefixes) && slot && !err; i++)
		err = vec_push(&search->found.items, ((struct call_target){addr - stub_prefixes[i], slot->tag}));
	return err;
}

int call_targets_add(struct program *program, uint32_t idx, const char *name, uint32_t tag,
		     struct call_targets *targets)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_functions_load(program, module) : -EINVAL;
	const struct elf_relocs *relocs = err ? NULL : module_relocs(module);
	const struct elf_slot *slots;
	size_t cnt = relocs ? elf_relocs__slots(relocs, &slots) : 0;
	uint32_t own;

	for (size_t i = 0; i < cnt && !err; i++) {
		const char *slot_name = elf_relocs__name(relocs, &slots[i]);

		if (slot_name && !strcmp(slot_name, name))
			err = vec_push(&targets->items, ((struct call_target){slots[i].addr, tag}));
	}
	if (err)
		return err;
	own = module_function_named(module, name);
	return own == PROGRAM_NONE
		       ? 0
		       : vec_push(&targets->items,
				  ((struct call_target){program_function_of(program, own)->public.addr, tag}));
}

int call_targets_complete(struct program *program, uint32_t idx, struct call_targets *targets)
{
	struct module *module = program_module_of(program, idx);
	struct stub_search search = {.slots = targets};
	int err = module ? module_open(program, module) : -EINVAL;

	vec_sort(&targets->items, target_cmp);
	if (!err && targets->items.cnt)
		err = code_walk(module, stub_look, &search);
	for (size_t i = 0; i < search.found.items.cnt && !err; i++)
		err = vec_push(&targets->items, search.found.items.items[i]);
	vec_free(&search.found.items);
	vec_sort(&targets->items, target_cmp);
	return err;
}

void call_targets_free(struct call_targets *targets)
{
	vec_free(&targets->items);
}

const struct call_target *call_target_of(const struct call_targets *targets, const struct code_insn *insn)
{
	return insn->flags & (CODE_TARGET | CODE_SLOT) ? target_at(targets, insn->target) : NULL;
}

struct site_search {
	const struct call_targets *targets;
	call_site_addrs *addrs;
};

static int site_look(void *arg, const uint8_t *bytes, size_t sz, uint64_t addr)
{
	struct site_search *search = arg;
	uint64_t target;
	bool leads = (bytes[0] == 0xe8 || bytes[0] == 0xe9) && code_looks_like_jump(bytes, sz, addr, &target);

	leads = leads || reads_slot(bytes, sz, addr, SLOT_CALL, &target) ||
		reads_slot(bytes, sz, addr, SLOT_JUMP, &target);
	return leads && target_at(search->targets, target) ? vec_push(search->addrs, addr) : 0;
}

int call_sites_find(struct program *program, uint32_t idx, const struct call_targets *targets, call_site_addrs *addrs)
{
	struct module *module = program_module_of(program, idx);
	struct site_search search = {targets, addrs};

	if (!module || module_open(program, module))
		return -EINVAL;
	return targets->items.cnt ? code_walk(module, site_look, &search) : 0;
}

static int exchange_look(void *arg, const uint8_t *bytes, size_t sz, uint64_t addr)
{
	call_site_addrs *addrs = arg;

	return code_looks_like_exchange(bytes, sz) ? vec_push(addrs, addr) : 0;
}

int exchange_sites_find(struct program *program, uint32_t idx, call_site_addrs *addrs)
{
	struct module *module = program_module_of(program, idx);

	return !module || module_open(program, module) ? -EINVAL : code_walk(module, exchange_look, addrs);
}
