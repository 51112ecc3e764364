// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/program.h"
#include "target/program_internal.h"
#include "target/symbols.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/*
 * The C library's inlined functions tell nobody anything, and the DWARF of its debug file takes 13 MiB unpacked.
 */
static bool is_worth_reading(const struct module *module)
{
	return strcmp(module->name, "libc.so.6") != 0;
}

/* The DWARF of the module: its own, or that of its separate debug file. */
static void inlines_open(struct module *module, struct symbols *symbols)
{
	int fd = module->debug_fd;

	module->inlines_tried = true;
	module->debug_fd = -1;
	if (fd < 0 && module->file && elf_image__section(module->image, ".debug_info"))
		fd = open(module->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && is_worth_reading(module))
		module->inlines = symbols__open(symbols, fd, module->name);
	else if (fd >= 0)
		close(fd);
}

void program__read_inlines(struct program *program, struct symbols *symbols, uint32_t idx)
{
	struct module *module = program->modules.items[idx];

	if (module->has_functions && !module->inlines_tried)
		inlines_open(module, symbols);
}

size_t program__inlined_at(struct program *program, struct symbols *symbols, uint64_t pc, const char *names[])
{
	const struct module *module;
	uint32_t idx;

	if (program__function_at_runtime(program, pc, &idx) == PROGRAM_NONE)
		return 0;
	program__read_inlines(program, symbols, idx);
	module = program->modules.items[idx];
	return symbols__inlined_at(symbols, module->inlines, pc - module->public.bias, names);
}
