/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a module calls functions that are known by their names, found by a look at every byte of its code instead of
 * its disassembly: of a large program that takes a fraction of a second.
 */
#ifndef WHYLATE_TARGET_CALL_SITES_H
#define WHYLATE_TARGET_CALL_SITES_H

#include "base/vec.h"
#include "target/function_code.h"

/* An address that a call leads to: code, or a slot that holds the address of code. */
struct call_target {
	uint64_t addr;
	uint32_t tag; /* the caller's, of the name */
};

struct call_targets {
	VEC(struct call_target) items; /* by address, once they are complete */
};

typedef VEC(uint64_t) call_site_addrs;

/*
 * Appends what the name stands for in one module: slots that the dynamic linker binds to it, and the module's own
 * function.  0 or -errno.
 */
int call_targets_add(struct program *program, uint32_t module, const char *name, uint32_t tag,
		     struct call_targets *targets);
/* Adds the stubs that jump by the slots among them, when all names have been added.  0 or -errno. */
int call_targets_complete(struct program *program, uint32_t module, struct call_targets *targets);
void call_targets_free(struct call_targets *targets);
/* The one that an instruction of that module calls or jumps to; NULL. */
const struct call_target *call_target_of(const struct call_targets *targets, const struct code_insn *insn);
/*
 * Appends the addresses at which an instruction may lie that calls or jumps to one of them; a few may be none.
 * 0 or -errno.  x86 only: nothing elsewhere.
 */
int call_sites_find(struct program *program, uint32_t module, const struct call_targets *targets,
		    call_site_addrs *addrs);

/* … at which one may lie that exchanges what lies in memory (code_looks_like_exchange()).  Likewise. */
int exchange_sites_find(struct program *program, uint32_t module, call_site_addrs *addrs);

#endif
