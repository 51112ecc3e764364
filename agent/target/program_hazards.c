// SPDX-License-Identifier: GPL-2.0-or-later
/* What of a program makes return probes unsafe. */
#include "target/hazard.h"
#include "target/proc_file.h"
#include "target/program_internal.h"

#include <signal.h>
#include <stdlib.h>

/* Has exception tables and nothing that says whose: a language whose run-time library is linked in, and stripped. */
static bool has_unknown_tables(const struct module *module)
{
	const struct elf_section *sections;

	return !elf_image__sections(module->image, &sections) ||
	       (elf_image__section(module->image, ".gcc_except_table") &&
		!(elf_file__marks(module->files[0]) & (ELF_MARK_UNWINDS | ELF_MARK_CLEANS_UP)));
}

bool program__catches(struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		if (module->public.gone || module_open(program, module))
			continue;
		/* Nobody knows who uses a file that is looked at by itself. */
		if (!program->pid && module->public.unwinds)
			return true;
		if (!hazard_begins(HAZARD_RUNTIME, module->name) &&
		    (elf_file__marks(module->files[0]) & ELF_MARK_CATCHES || has_unknown_tables(module)))
			return true;
	}
	return false;
}

struct own_marks {
	uint8_t any;         /* of some module */
	bool ends_its_calls; /* one that ends threads has something to clean up itself */
};

/*
 * Of all that is mapped but the libraries that only have the means: LLVM's signal stacks are for compilers that ask for
 * them, not for databases that compile queries.
 */
static struct own_marks own_marks(struct program *program)
{
	struct own_marks own = {0};

	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];
		uint8_t marks;

		if (module->public.gone || hazard_begins(HAZARD_OFFERS_MEANS, module->name) ||
		    module_open(program, module))
			continue;
		marks = elf_file__marks(module->files[0]);
		own.any |= marks;
		own.ends_its_calls |=
			marks & (ELF_MARK_CANCELS | ELF_MARK_EXITS) && marks & (ELF_MARK_CLEANS_UP | ELF_MARK_UNWINDS);
	}
	return own;
}

bool program__cleans_up(struct program *program)
{
	struct own_marks own = own_marks(program);

	return own.ends_its_calls || (own.any & ELF_MARK_CANCELS && own.any & ELF_MARK_CLEANS_UP);
}

/* Of a file, or where that cannot be read: as if it did. */
static bool survives_signals(pid_t pid)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
	uint64_t caught;
	char text[32];

	if (!pid || proc_status(pid, "SigCgt", text, sizeof(text)))
		return true;
	caught = strtoull(text, NULL, 16);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		caught &= ~(1ULL << (fatal[i] - 1));
	/* The first two real-time signals are the C library's own. */
	return (caught & ~(3ULL << 31)) != 0;
}

bool program__signals_on_stacks(struct program *program)
{
	return own_marks(program).any & ELF_MARK_SIGNALS && survives_signals(program->pid);
}

bool program__switches_stacks(struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		if (module->public.gone || hazard_begins(HAZARD_OFFERS_SWITCHES, module->name) ||
		    module_open(program, module))
			continue;
		if (elf_file__marks(module->files[0]) & ELF_MARK_SWITCHES || module_sets_stack(program, module))
			return true;
	}
	return false;
}

bool program__has_shadow_stack(const struct program *program)
{
	return program->shadow_stack;
}
