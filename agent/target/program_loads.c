// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which libraries there may be later, which of those that are there they would be linked to, and what it means that
 * some have come.
 */
#include "target/program_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DYNAMIC_SZ_MAX (1u << 16)
#define NAMES_SZ_MAX   (64u << 20)

/* What the dynamic linker is told of a file; the names end with a NUL. */
struct dynamic {
	Elf64_Dyn *entries;
	size_t cnt;
	char *names;
	uint64_t names_sz;
};

static bool dynamic_read(const struct elf_image *image, struct dynamic *dynamic)
{
	const struct elf_section *section = elf_image__section(image, ".dynamic"), *sections, *names;
	size_t cnt = elf_image__sections(image, &sections);

	if (!section || section->link >= cnt || sections[section->link].type != SHT_STRTAB)
		return false;
	names = &sections[section->link];
	dynamic->names_sz = names->size;
	dynamic->names = elf_image__copy(image, names->file_off, names->size, NAMES_SZ_MAX);
	dynamic->cnt = section->size / sizeof(Elf64_Dyn);
	dynamic->entries = elf_image__copy(image, section->file_off, section->size, DYNAMIC_SZ_MAX);
	return dynamic->names && dynamic->entries;
}

static void dynamic_free(struct dynamic *dynamic)
{
	free(dynamic->entries);
	free(dynamic->names);
}

/* Of the first entry from *place on with this tag, which it is moved behind; NULL. */
static const char *next_name(const struct dynamic *dynamic, int64_t tag, size_t *place)
{
	while (*place < dynamic->cnt && dynamic->entries[*place].d_tag != DT_NULL) {
		const Elf64_Dyn *entry = &dynamic->entries[(*place)++];

		if (entry->d_tag == tag && entry->d_un.d_val < dynamic->names_sz)
			return dynamic->names + entry->d_un.d_val;
	}
	return NULL;
}

static bool is_called(const struct module *module, const struct dynamic *dynamic, const char *name)
{
	const char *slash = strrchr(module->path, '/'), *soname;
	size_t place = 0;

	soname = next_name(dynamic, DT_SONAME, &place);
	return (soname && !strcmp(soname, name)) || !strcmp(slash ? slash + 1 : module->path, name);
}

static bool is_needed(const struct program *program, size_t idx, const struct dynamic *dynamics)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		size_t place = 0;
		const char *name;

		while ((name = next_name(&dynamics[i], DT_NEEDED, &place)))
			if (is_called(program->modules.items[idx], &dynamics[idx], name))
				return true;
	}
	return false;
}

static void find_linked(struct program *program)
{
	size_t cnt = program->modules.cnt;
	struct dynamic *dynamics = calloc(cnt + 1, sizeof(*dynamics));
	bool known = dynamics;

	for (size_t i = 0; known && i < cnt; i++) {
		struct module *module = program->modules.items[i];

		known = !module_open(program, module) && dynamic_read(module->image, &dynamics[i]);
	}
	for (size_t i = 0; i < cnt; i++)
		program->modules.items[i]->is_linked = !known || is_needed(program, i, dynamics);
	for (size_t i = 0; dynamics && i < cnt; i++)
		dynamic_free(&dynamics[i]);
	free(dynamics);
	program->linked_known = true;
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
