// SPDX-License-Identifier: GPL-2.0-or-later
/* One module's functions, put together from all that names them or tells where they are. */
#include "base/order.h"
#include "base/text.h"
#include "target/debug_file.h"
#include "target/program_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FUNCTIONS_MAX (16U << 20)

typedef VEC(struct file_function) candidate_list;

/* Where the first executable segment's page went. */
void module_bias_set(struct module *module)
{
	const struct elf_segment *segments;
	size_t cnt = module->image ? elf_image__segments(module->image, &segments) : 0;

	for (size_t i = 0; i < module->mapped.cnt; i++) {
		const struct mapped *mapped = &module->mapped.items[i];

		for (size_t j = 0; j < cnt; j++) {
			const struct elf_segment *segment = &segments[j];

			if (!segment->exec || mapped->file_off + (mapped->end - mapped->start) <= segment->file_off ||
			    mapped->file_off >= segment->file_off + segment->file_sz)
				continue;
			module->public.bias = mapped->start - (segment->addr - segment->file_off + mapped->file_off);
			return;
		}
	}
}

/* What was read becomes the table's; what that has already is taken from there. */
static void files_share(struct module *module)
{
	struct file_table *table = module->table;

	for (size_t i = 0; table && i < SYMBOL_FILES_MAX; i++) {
		if (!table->files[i])
			table->files[i] = module->files[i];
		else if (module->files[i] && module->files[i] != table->files[i])
			elf_file__free(module->files[i]);
		module->files[i] = table->files[i];
	}
}

int module_open(struct program *program, struct module *module)
{
	if (module->state)
		return module->state < 0 ? module->state : 0;
	module->state = -ENOENT;
	if (!module->file)
		return module->state;
	errno = ENOMEM;
	if (!module->image)
		module->image = elf_image__open(module->file);
	if (module->image && program->tables && !module->table)
		module->table = file_tables__take(program->tables, module->image);
	if (module->image && (module->table || !program->tables)) {
		errno = ENOMEM;
		module->files[0] = module->table && module->table->files[0] ? module->table->files[0]
									    : elf_file__open(module->file);
		files_share(module);
	}
	if (!module->files[0] && errno == EAGAIN) {
		module->state = 0;
		return -EAGAIN;
	}
	if (!module->files[0]) {
		module->state = -errno;
		elf_image__free(module->image);
		module->image = NULL;
		return module->state;
	}
	module->state = 1;
	module->public.build_id = elf_file__build_id(module->files[0]);
	module->public.is_go = elf_file__is_go(module->files[0]);
	module->public.unwinds = elf_file__unwinds(module->files[0]);
	if (program->pid)
		module_bias_set(module);
	return 0;
}

void module_free(struct module *module)
{
	for (size_t i = 0; i < module->functions.cnt; i++) {
		free(module->functions.items[i].demangled);
		free(module->functions.items[i].made_name);
		free(module->functions.items[i].edges);
	}
	vec_free(&module->functions);
	vec_free(&module->names);
	vec_free(&module->mapped);
	vec_free(&module->jumped_into);
	vec_free(&module->stack_setters);
	for (size_t i = 0; i < SYMBOL_FILES_MAX && !module->table; i++)
		elf_file__free(module->files[i]);
	file_table__release(module->table);
	elf_image__free(module->image);
	eh_frame__free(module->frame);
	elf_relocs__free(module->relocs);
	if (module->debug_fd >= 0)
		close(module->debug_fd);
	free(module->name);
	free(module->path);
	free(module->file);
	free(module);
}

const struct elf_relocs *module_relocs(struct module *module)
{
	errno = ENOENT;
	if (!module->relocs && module->state == 1)
		module->relocs = elf_relocs__read(elf_image__fd(module->image));
	return module->relocs;
}

const struct eh_frame *module_frame(struct module *module)
{
	if (!module->frame && module->has_frame)
		module->frame = eh_frame__read(elf_image__fd(module->image), false);
	return module->frame;
}

void program__forget_tables(struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		eh_frame__free(module->frame);
		elf_relocs__free(module->relocs);
		vec_free(&module->names);
		module->frame = NULL;
		module->relocs = NULL;
		module->has_names = false;
	}
}

/* 0, also where there is none; -ENOMEM; -EAGAIN: it is not read yet. */
static int frame_open(struct program *program, struct module *module)
{
	if (module->table)
		module->frame = module->table->frame;
	if (!module->frame)
		module->frame = eh_frame__read(elf_image__fd(module->image), program->names_only);
	module->has_frame = module->frame != NULL;
	return !module->frame && (errno == ENOMEM || errno == EAGAIN) ? -errno : 0;
}

/* 0, or -EAGAIN: one is not read yet. */
static int debug_files_open(struct program *program, struct module *module)
{
	char root[32] = "";
	bool is_late = false;
	struct debug_search search = {.file = module->file,
				      .path = module->path,
				      .root = root,
				      .debuginfo_dir = program->debuginfo_dir,
				      .want_debuginfod = program->want_debuginfod,
				      .budget = &program->debug_budget,
				      .fd = &module->debug_fd,
				      .is_late = &is_late};

	if (elf_image__section(module->image, ".symtab") || module->files[1] || module->files[2])
		return 0;
	if (program->pid)
		snprintf(root, sizeof(root), "/proc/%d/root", program->pid);
	module->files[2] = debug_file__open(module->files[0], &search);
	/* What is within the file is a part of what a debug file has. */
	if (!module->files[2] && !is_late)
		module->files[1] = debug_data__open(elf_image__fd(module->image), module->files[0], &search);
	return is_late ? -EAGAIN : 0;
}

static int named_add(struct module *module, candidate_list *candidates)
{
	static const uint8_t sources[SYMBOL_FILES_MAX] = {FUNCTION_DYNSYM, FUNCTION_DEBUGDATA, FUNCTION_DEBUGFILE};
	const struct elf_function *functions;
	int err = 0;

	for (size_t i = 0; i < SYMBOL_FILES_MAX && !err; i++) {
		size_t cnt = module->files[i] ? elf_file__by_addr(module->files[i], &functions) : 0;
		uint8_t source = sources[i];

		if (!i && elf_image__section(module->image, ".symtab"))
			source = FUNCTION_SYMTAB;
		for (size_t j = 0; j < cnt && !err; j++) {
			struct file_function candidate = {.name = functions[j].name,
							  .addr = functions[j].addr,
							  .file_off = functions[j].file_off,
							  .size = functions[j].size,
							  .source = source,
							  .is_ifunc = functions[j].is_ifunc};

			candidate.is_part =
				text_ends(functions[j].name, ".cold") || strstr(functions[j].name, ".cold.");
			err = vec_push(candidates, candidate);
		}
	}
	return err;
}

/* The stubs through which functions of other modules are called are none themselves. */
static bool is_stub(const struct elf_image *image, uint64_t addr)
{
	const struct elf_section *sections;
	size_t cnt = elf_image__sections(image, &sections);

	for (size_t i = 0; i < cnt; i++)
		if (sections[i].flags & SHF_EXECINSTR && !strncmp(sections[i].name, ".plt", 4) &&
		    addr >= sections[i].addr && addr - sections[i].addr < sections[i].size)
			return true;
	return false;
}

/* Execution comes to a function's entry by a call only where nothing lies on the stack but the return address. */
static bool begins_in_frame(const struct frame_rule *rule)
{
	return rule && rule->cfa.what == UNWIND_REGISTER &&
	       (rule->cfa.reg != EH_REG_SP || rule->cfa.off != EH_ENTRY_SP);
}

static int unwound_add(struct module *module, candidate_list *candidates)
{
	const struct frame_function *functions;
	size_t cnt = module->frame ? eh_frame__functions(module->frame, &functions) : 0;
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct elf_segment *code = elf_image__code_at(module->image, functions[i].addr);
		const struct frame_rule *rule = eh_frame__first_rule(module->frame, &functions[i]);
		struct file_function candidate = {.addr = functions[i].addr,
						  .size = functions[i].size,
						  .source = FUNCTION_EH_FRAME,
						  .is_part = begins_in_frame(rule)};

		if (!code || functions[i].size > code->file_sz - (functions[i].addr - code->addr) ||
		    (rule && rule->is_signal) || is_stub(module->image, functions[i].addr))
			continue;
		candidate.file_off = code->file_off + (functions[i].addr - code->addr);
		err = vec_push(candidates, candidate);
	}
	return err;
}

static size_t marks_of(const struct file_function *candidate)
{
	return candidate->name ? strspn(candidate->name, "_") : 0;
}

/* By address, named ones first, and among these the name that fewer underscores begin. */
ORDER(candidate_cmp, struct file_function, BY(a->addr, b->addr), BY(!a->name, !b->name), BY(marks_of(a), marks_of(b)),
      BY(a->source, b->source));

static int function_push(struct module *module, const struct file_function *candidate)
{
	struct function function = {.public = {.module = module->public.idx,
					       .name = candidate->name,
					       .addr = candidate->addr,
					       .file_off = candidate->file_off,
					       .size = candidate->size,
					       .source = candidate->source,
					       .ambiguous = candidate->ambiguous,
					       .is_part = candidate->is_part,
					       .is_ifunc = candidate->is_ifunc,
					       .overlaps = candidate->overlaps}};

	if (!candidate->name && asprintf(&function.made_name, "%s+0x%" PRIx64, module->name, candidate->addr) < 0)
		return -ENOMEM;
	if (!candidate->name)
		function.public.name = function.made_name;
	if (vec_push(&module->functions, function)) {
		free(function.made_name);
		return -ENOMEM;
	}
	return 0;
}

/*
 * One function of every address.  A table entry that begins within a named function is a piece of it that its author
 * described on its own.
 */
static int functions_merge(struct module *module, candidate_list *candidates)
{
	uint64_t named_end = 0;
	int err = 0;

	if (candidates->cnt > FUNCTIONS_MAX)
		return -ENOEXEC;
	vec_sort(candidates, candidate_cmp);
	for (size_t i = 0; i < candidates->cnt && !err;) {
		struct file_function best = candidates->items[i];

		for (i++; i < candidates->cnt && candidates->items[i].addr == best.addr; i++) {
			best.is_part |= candidates->items[i].is_part;
			if (!best.size)
				best.size = candidates->items[i].size;
		}
		if (!best.name && best.addr < named_end)
			continue;
		if (best.name && best.addr + best.size > named_end)
			named_end = best.addr + best.size;
		err = function_push(module, &best);
	}
	return err;
}

ORDER(name_cmp, struct function *const, strcmp((*a)->public.name, (*b)->public.name));

static int ambiguous_mark(struct module *module)
{
	size_t cnt = module->functions.cnt;
	struct function **sorted = calloc(cnt ? cnt : 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		sorted[i] = &module->functions.items[i];
	qsort(sorted, cnt, sizeof(*sorted), name_cmp);
	for (size_t i = 1; i < cnt; i++)
		if (!name_cmp(&sorted[i - 1], &sorted[i]))
			sorted[i - 1]->public.ambiguous = sorted[i]->public.ambiguous = true;
	free(sorted);
	return 0;
}

/* Where two share code, neither can be probed as if it were alone. */
static void overlaps_mark(struct module *module)
{
	struct function *longest = NULL;

	for (size_t i = 0; i < module->functions.cnt; i++) {
		struct program_function *function = &module->functions.items[i].public;

		if (longest && longest->public.addr + longest->public.size > function->addr)
			longest->public.overlaps = function->overlaps = true;
		if (!longest || function->addr + function->size > longest->public.addr + longest->public.size)
			longest = &module->functions.items[i];
	}
}

static void frame_close(struct program *program, struct module *module)
{
	if (!program->names_only)
		return;
	if (!module->table || module->frame != module->table->frame)
		eh_frame__free(module->frame);
	module->frame = NULL;
}

/* From all that tells of them. */
static int functions_read(struct program *program, struct module *module)
{
	candidate_list candidates = {0};
	int err = frame_open(program, module);

	if (!err)
		err = debug_files_open(program, module);
	files_share(module);
	if (err) {
		frame_close(program, module);
		return err;
	}
	err = named_add(module, &candidates);
	if (!err)
		err = unwound_add(module, &candidates);
	if (!err)
		err = functions_merge(module, &candidates);
	vec_free(&candidates);
	frame_close(program, module);
	for (size_t i = 0; i < SYMBOL_FILES_MAX; i++)
		if (module->files[i])
			elf_file__drop_by_addr(module->files[i]);
	if (!err)
		err = ambiguous_mark(module);
	overlaps_mark(module);
	return err;
}

/* For other programs that have the file. */
static int functions_keep(const struct module *module, struct file_table *table)
{
	if (vec_reserve(&table->functions, module->functions.cnt))
		return -ENOMEM;
	for (size_t i = 0; i < module->functions.cnt; i++) {
		const struct function *function = &module->functions.items[i];
		const struct program_function *public = &function->public;

		table->functions.items[table->functions.cnt++] =
			(struct file_function){.name = function->made_name ? NULL : public->name,
					       .addr = public->addr,
					       .file_off = public->file_off,
					       .size = public->size,
					       .source = (uint8_t)public->source,
					       .is_ifunc = public->is_ifunc,
					       .is_part = public->is_part,
					       .ambiguous = public->ambiguous,
					       .overlaps = public->overlaps};
	}
	table->has_functions = true;
	return 0;
}

static int functions_take(struct module *module, const struct file_table *table)
{
	int err = vec_reserve(&module->functions, table->functions.cnt);

	files_share(module);
	for (size_t i = 0; i < table->functions.cnt && !err; i++)
		err = function_push(module, &table->functions.items[i]);
	return err;
}

int module_functions_load(struct program *program, struct module *module)
{
	int err = module_open(program, module);
	struct file_table *table = module->table;

	if (err || module->has_functions)
		return err;
	if (table && table->has_functions) {
		err = functions_take(module, table);
	} else {
		err = functions_read(program, module);
		if (err == -EAGAIN)
			return err;
		if (!err && table)
			err = functions_keep(module, table);
	}
	vec_shrink(&module->functions);
	if (!err && module->functions.cnt) {
		struct id_block block = {.first = program->function_cnt, .module = module->public.idx};

		err = vec_push(&program->blocks, block);
	}
	if (err) {
		module->state = err;
		return err;
	}
	module->first_id = program->function_cnt;
	for (size_t i = 0; i < module->functions.cnt; i++)
		module->functions.items[i].public.id = module->first_id + i;
	program->function_cnt += module->functions.cnt;
	module->has_functions = true;
	return 0;
}

uint32_t module_function_at(const struct module *module, uint64_t addr)
{
	const struct function *functions = module->functions.items;
	size_t low = search_first(0, module->functions.cnt, mid, functions[mid].public.addr > addr);

	/* A few back: a short one may lie within a long one. */
	for (size_t i = low; i > 0 && low - i < 8; i--)
		if (functions[i - 1].public.addr == addr ||
		    addr - functions[i - 1].public.addr < functions[i - 1].public.size)
			return i - 1;
	return PROGRAM_NONE;
}
