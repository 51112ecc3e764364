// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which libraries there may be later, which of those that are there they would be linked to, and what it means that
 * some have come.
 */
#include "target/program_internal.h"

#include <errno.h>
#include <string.h>

static const struct elf_library *libraries_of(const struct module *module, size_t *cnt)
{
	const struct elf_library *libraries;

	*cnt = elf_file__libraries(module->files[0], &libraries);
	return libraries;
}

static bool is_called(const struct module *module, const char *name)
{
	const char *slash = strrchr(module->path, '/');
	size_t cnt;
	const struct elf_library *library = libraries_of(module, &cnt);

	for (; cnt; cnt--, library++)
		if (library->is_own && !strcmp(elf_file__library_name(module->files[0], library), name))
			return true;
	return !strcmp(slash ? slash + 1 : module->path, name);
}

static bool is_needed(const struct program *program, const struct module *module)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		const struct module *by = program->modules.items[i];
		size_t cnt;
		const struct elf_library *library = libraries_of(by, &cnt);

		for (; cnt; cnt--, library++)
			if (!library->is_own && is_called(module, elf_file__library_name(by->files[0], library)))
				return true;
	}
	return false;
}

static void find_linked(struct program *program)
{
	size_t cnt = program->modules.cnt;
	bool known = true, late = false;

	for (size_t i = 0; i < cnt; i++) {
		struct module *module = program->modules.items[i];
		int err = module_open(program, module);

		known = known && !err && elf_file__head(module->files[0])->has_dynamic;
		late = late || err == -EAGAIN;
	}
	for (size_t i = 0; i < cnt; i++)
		program->modules.items[i]->is_linked = !known || is_needed(program, program->modules.items[i]);
	program->linked_known = !late;
}

bool program__is_linked(struct program *program, uint32_t idx)
{
	const struct module *module = program_module_of(program, idx);

	if (!program->linked_known)
		find_linked(program);
	return module && module->is_linked;
}

bool program_has_mark(struct program *program, uint8_t mark)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		if (!module->public.gone && !module_open(program, module) && elf_file__marks(module->files[0]) & mark)
			return true;
	}
	return false;
}

bool program__loads(struct program *program)
{
	return program_has_mark(program, ELF_MARK_LOADS);
}

uint8_t program__hazards(struct program *program)
{
	return (program__switches_stacks(program) ? HAZARD_SWITCHES : 0) |
	       (program__signals_on_stacks(program) ? HAZARD_SIGNALS : 0) |
	       (program__cleans_up(program) ? HAZARD_CLEANS_UP : 0);
}

int program__learn_modules(struct program *program, pid_t pid)
{
	target_mappings mappings = {0};
	int err = target_mappings_read(pid, &mappings);

	for (size_t i = 0; !err && i < mappings.cnt; i++) {
		const struct target_mapping *mapping = &mappings.items[i];

		/* What cannot be found cannot be judged. */
		if (mapping->exec && mapping->path[0] == '/' && mapping->ino &&
		    program_module_expect(program, mapping->path) == PROGRAM_NONE && errno == ENOMEM)
			err = -ENOMEM;
	}
	target_mappings_free(&mappings);
	return err;
}

void program__distrust_returns(struct program *program)
{
	program->distrusts_returns = true;
}

bool program__distrusts_returns(const struct program *program)
{
	return program->distrusts_returns;
}
