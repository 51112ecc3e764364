// SPDX-License-Identifier: GPL-2.0-or-later
/* The functions of a module by all of their names, aliases included. */
#include "target/program_internal.h"

#include "base/order.h"

#include <errno.h>
#include <string.h>

ORDER(name_cmp, struct program_name, strcmp(a->name, b->name), BY(a->function, b->function));

static int names_add(struct module *module)
{
	const struct elf_function *symbols;
	int err = 0;

	for (size_t i = 0; i < module->functions.cnt && !err; i++)
		err = vec_push(&module->names,
			       ((struct program_name){module->functions.items[i].public.name, module->first_id + i}));
	for (size_t i = 0; i < SYMBOL_FILES_MAX && !err; i++) {
		size_t cnt = module->files[i] ? elf_file__functions(module->files[i], &symbols) : 0;

		for (size_t j = 0; j < cnt && !err; j++) {
			uint32_t at = module_function_at(module, symbols[j].addr);

			if (at != PROGRAM_NONE && module->functions.items[at].public.addr == symbols[j].addr)
				err = vec_push(&module->names,
					       ((struct program_name){symbols[j].name, module->first_id + at}));
		}
	}
	return err;
}

static int names_load(struct module *module)
{
	size_t kept = 0;
	int err;

	if (module->has_names)
		return 0;
	err = names_add(module);
	if (err) {
		vec_free(&module->names);
		return err;
	}
	vec_sort(&module->names, name_cmp);
	for (size_t i = 0; i < module->names.cnt; i++)
		if (!i || name_cmp(&module->names.items[i], &module->names.items[kept - 1]))
			module->names.items[kept++] = module->names.items[i];
	module->names.cnt = kept;
	module->has_names = true;
	return 0;
}

int program__module_names(struct program *program, uint32_t idx, const struct program_name **names, size_t *cnt)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_functions_load(program, module) : -EINVAL;

	*cnt = 0;
	if (!err)
		err = names_load(module);
	if (err)
		return err;
	*names = module->names.items;
	*cnt = module->names.cnt;
	return 0;
}

uint32_t module_function_named(struct module *module, const char *name)
{
	size_t low;

	if (names_load(module))
		return PROGRAM_NONE;
	low = search_first(0, module->names.cnt, mid, strcmp(module->names.items[mid].name, name) >= 0);
	return low < module->names.cnt && !strcmp(module->names.items[low].name, name)
		       ? module->names.items[low].function
		       : PROGRAM_NONE;
}
