// SPDX-License-Identifier: GPL-2.0-or-later
/* Why a symbol was not found: what it is instead, what somebody may have meant. */
#include "probe/resolve_internal.h"
#include "target/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NEAREST_SHOWN 3
#define NOTE_SZ       512
/* Looking for similar names walks through all of them. */
#define EXPLAINED_MAX 100

static const char *module_name(struct resolver *resolver, uint32_t module)
{
	return program__module(resolver->program, module)->name;
}

/* "process 12 has", "FILE is": whose modules they are. */
static bool is_process(const struct resolver *resolver)
{
	return program__pid(resolver->program) != 0;
}

int resolver_explain_module(struct resolver *resolver, const struct probe_line *line)
{
	bool is_path = line->module[0] == '/';
	char mapped[NOTE_SZ] = "";

	if (!is_process(resolver))
		return resolver_refuse(resolver, -ENOENT, "module '%.128s' is not looked at: the file is %.128s",
				       line->module, module_name(resolver, 0));
	if (is_path)
		return resolver_refuse(resolver, -ENOENT,
				       "module '%.500s' is not mapped by process %d, nor can it be one day: %s",
				       line->module, program__pid(resolver->program), strerror(errno));
	for (uint32_t i = 0; i < resolver->module_cnt; i++) {
		if (strlen(mapped) > 300) {
			resolver_append(mapped, sizeof(mapped), " and %u more", resolver->module_cnt - i);
			break;
		}
		resolver_append(mapped, sizeof(mapped), "%s%.100s", i ? ", " : "", module_name(resolver, i));
	}
	return resolver_refuse(
		resolver, -ENOENT,
		"module '%.128s' is not mapped by process %d, which has %s: of a library that it is yet to "
		"load give the whole path",
		line->module, program__pid(resolver->program), mapped);
}

static const struct elf_file *module_elf(struct resolver *resolver, uint32_t module)
{
	struct resolver_module *known = &resolver->modules[module];
	const char *file = program__module(resolver->program, module)->file;

	if (!known->elf_read && file)
		known->elf = elf_file__open(file);
	known->elf_read = true;
	return known->elf;
}

/* What the name is instead of a function; 0 when this module has nothing of that name. */
static int refuse_kind(struct resolver *resolver, const struct probe_line *line, uint32_t module)
{
	const struct elf_file *elf = module_elf(resolver, module);

	switch (elf ? elf_file__symbol_kind(elf, line->symbol) : ELF_SYMBOL_NONE) {
	case ELF_SYMBOL_DATA:
		return resolver_refuse(resolver, -EINVAL, "'%.128s' is a variable of %s: only functions can be probed",
				       line->symbol, module_name(resolver, module));
	case ELF_SYMBOL_IFUNC:
		return resolver_refuse(
			resolver, -EINVAL,
			"'%.128s' of %s only chooses an implementation when the program starts: name that one",
			line->symbol, module_name(resolver, module));
	default:
		return 0;
	}
}

static void offer_functions(struct resolver *resolver, uint32_t module, struct nearest *nearest)
{
	const struct cxx_index *index = resolver_cxx(resolver, module);
	bool with_args = strchr(nearest->wanted, '(');
	const struct program_name *names;
	size_t cnt;

	if (program__module_names(resolver->program, module, &names, &cnt))
		return;
	for (size_t i = 0; i < cnt; i++) {
		const struct program_function *function = program__function(resolver->program, names[i].function);
		bool mangled = !strncmp(names[i].name, "_Z", 2);

		if (function->is_part || function->source == FUNCTION_EH_FRAME ||
		    (i && !strcmp(names[i].name, names[i - 1].name)))
			continue;
		if (with_args || !mangled)
			nearest_offer(nearest, mangled ? function->shown : names[i].name);
	}
	/* Overloads are next to each other: each name is offered once. */
	for (size_t i = 0; i < index->cnt && !with_args; i++)
		if (!i || strcmp(index->entries[i].name.key, index->entries[i - 1].name.key))
			nearest_offer(nearest, index->entries[i].name.key);
}

static void offer_markers(struct resolver *resolver, uint32_t module, struct nearest *nearest, char ***made,
			  size_t *made_cnt)
{
	const usdt_sites *sites = resolver_markers(resolver, module);

	*made_cnt = 0;
	*made = calloc(sites->cnt + 1, sizeof(**made));
	for (size_t i = 0; i < sites->cnt && *made; i++) {
		const struct usdt_site *site = &sites->items[i];

		if (i && !strcmp(site[-1].name, site->name) && !strcmp(site[-1].provider, site->provider))
			continue;
		if (asprintf(&(*made)[*made_cnt], "usdt:%s:%s", site->provider, site->name) < 0)
			return;
		nearest_offer(nearest, (*made)[(*made_cnt)++]);
	}
}

/* Appends the names of one module that are similar; returns how many. */
static size_t list_near(struct resolver *resolver, const struct probe_line *line, uint32_t module, size_t shown,
			char *text, size_t sz)
{
	struct nearest nearest;
	char **made = NULL;
	size_t made_cnt = 0;

	nearest_init(&nearest, line->symbol, NEAREST_SHOWN - shown);
	if (line->form == PROBE_SYMBOL_USDT)
		offer_markers(resolver, module, &nearest, &made, &made_cnt);
	else
		offer_functions(resolver, module, &nearest);
	for (size_t i = 0; i < nearest.cnt; i++)
		resolver_append(text, sz, "%s%.100s (%.40s)", shown++ ? ", " : "", nearest.names[i],
				module_name(resolver, module));
	while (made_cnt)
		free(made[--made_cnt]);
	free(made);
	return nearest.cnt;
}

static bool has_names(struct resolver *resolver, uint32_t module)
{
	uint32_t first, cnt;

	if (program__module_functions(resolver->program, module, &first, &cnt))
		return false;
	for (uint32_t i = 0; i < cnt; i++)
		if (program__function(resolver->program, first + i)->source != FUNCTION_EH_FRAME)
			return true;
	return false;
}

static int refuse_unknown(struct resolver *resolver, const struct probe_line *line, uint32_t first, uint32_t end)
{
	const char *what = line->form == PROBE_SYMBOL_USDT ? "marker" : "function";
	const char *scope = end - first > 1 ? " or its libraries" : "";
	const char *go = program__module(resolver->program, first)->is_go
				 ? " (a Go program, whose names are gone if it was linked with -s)"
				 : "";
	char near[NOTE_SZ] = "";
	size_t shown = 0;

	if (strpbrk(line->symbol, "*?[") && line->form != PROBE_SYMBOL_CPLUSPLUS)
		return resolver_refuse(resolver, -ENOENT, "no %s matches '%.128s' in %s%s: see `whylate probes list`",
				       what, line->symbol, module_name(resolver, first), scope);
	if (line->form != PROBE_SYMBOL_USDT && !has_names(resolver, first))
		return resolver_refuse(
			resolver, -ENOENT,
			"no function '%.128s': %s is stripped of all function names: record without a symbol list",
			line->symbol, module_name(resolver, first));
	if (resolver->explained++ >= EXPLAINED_MAX)
		return resolver_refuse(resolver, -ENOENT, "no %s '%.128s' in %s%s", what, line->symbol,
				       module_name(resolver, first), scope);
	for (uint32_t i = first; i < end && shown < NEAREST_SHOWN; i++)
		if (!program__module(resolver->program, i)->gone)
			shown += list_near(resolver, line, i, shown, near, sizeof(near));
	if (shown)
		return resolver_refuse(resolver, -ENOENT, "no %s '%.128s' in %s%s%s: did you mean %s?", what,
				       line->symbol, module_name(resolver, first), scope, go, near);
	return resolver_refuse(resolver, -ENOENT,
			       "no %s '%.128s' in %s%s%s, nor one with a similar name: see `whylate probes list`", what,
			       line->symbol, module_name(resolver, first), scope, go);
}

int resolver_explain(struct resolver *resolver, const struct probe_line *line, uint32_t only)
{
	uint32_t first = only == PROGRAM_NONE ? 0 : only, end = only == PROGRAM_NONE ? resolver->module_cnt : only + 1;
	uint32_t ignored_first, ignored_cnt;
	int err = program__module_functions(resolver->program, first, &ignored_first, &ignored_cnt);

	if (err)
		return resolver_refuse(resolver, err, "the symbols of %s cannot be read: %s",
				       module_name(resolver, first), strerror(-err));
	for (uint32_t i = first; i < end && line->form == PROBE_SYMBOL_PLAIN; i++) {
		err = program__module(resolver->program, i)->gone ? 0 : refuse_kind(resolver, line, i);
		if (err)
			return err;
	}
	return refuse_unknown(resolver, line, first, end);
}
