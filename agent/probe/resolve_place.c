// SPDX-License-Identifier: GPL-2.0-or-later
/* Places that a line names by their addresses. */
#include "probe/resolve_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define ARGUMENTS "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9"
#else
#define ARGUMENTS "8@x0 8@x1 8@x2 8@x3 8@x4 8@x5"
#endif

/* Does an instruction of the function around it begin there? */
static bool is_instruction(struct program *program, uint32_t module, uint64_t addr)
{
	uint32_t func = program__function_at(program, module, addr);
	struct function_code code;
	bool is_one =
		func != PROGRAM_NONE && !program__function_code(program, func, &code) && function_code_at(&code, addr);

	if (func != PROGRAM_NONE)
		function_code_free(&code);
	return is_one;
}

static struct usdt_site *site_make(const char *module, uint64_t addr, uint64_t file_off)
{
	struct usdt_site *site = calloc(1, sizeof(*site));

	if (!site)
		return NULL;
	site->addr = addr;
	site->file_off = file_off;
	site->arg_cnt = usdt_args_parse(ARGUMENTS, site->args);
	site->provider = strdup(module);
	if (asprintf(&site->name, "+0x%" PRIx64, addr) < 0)
		site->name = NULL;
	if (site->provider && site->name)
		return site;
	free(site->provider);
	free(site->name);
	free(site);
	return NULL;
}

int resolver_place_add(struct resolver *resolver, uint32_t line_idx, uint32_t module, uint64_t addr)
{
	const char *name = program__module(resolver->program, module)->name;
	struct probe_target target = {.line_idx = line_idx, .module = module};
	struct usdt_site *site;
	char *shown;

	if (program__file_off(resolver->program, module, addr, &target.file_off) ||
	    !is_instruction(resolver->program, module, addr))
		return resolver_refuse(resolver, -ENOENT, "no instruction of %.100s begins at 0x%" PRIx64, name, addr);
	site = site_make(name, addr, target.file_off);
	if (!site)
		return -ENOMEM;
	if (vec_push(&resolver->out->markers, site)) {
		free(site->provider);
		free(site->name);
		free(site);
		return -ENOMEM;
	}
	if (asprintf(&shown, "%s+0x%" PRIx64, name, addr) < 0)
		return -ENOMEM;
	if (vec_push(&resolver->out->names, shown)) {
		free(shown);
		return -ENOMEM;
	}
	target.usdt = site;
	target.name = shown;
	target.func = PROBE_MARKER_FUNC + resolver->marker_cnt++;
	resolver->out->verdicts.items[line_idx].found = 1;
	return vec_push(&resolver->out->targets, target);
}
