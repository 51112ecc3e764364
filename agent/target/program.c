// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/program.h"

#include "base/order.h"
#include "target/demangle.h"
#include "target/function_code.h"
#include "target/proc_file.h"
#include "target/program_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- modules --------------------------------------------------------------------------------------------------------
 */

static struct module *module_by_file(struct program *program, const struct target_mapping *mapping)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		if (module->ino == mapping->ino && module->dev == mapping->dev &&
		    (module->public.awaited || !strcmp(module->path, mapping->path)))
			return module;
	}
	return NULL;
}

static struct module *module_new(struct program *program, const char *name, const char *path, const char *file)
{
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->debug_fd = -1;
	module->name = strdup(name);
	module->path = strdup(path);
	module->file = file ? strdup(file) : NULL;
	if (!module->name || !module->path || (file && !module->file) || vec_push(&program->modules, module)) {
		module_free(module);
		return NULL;
	}
	module->public = (struct program_module){.idx = program->modules.cnt - 1,
						 .name = module->name,
						 .path = module->path,
						 .file = module->file,
						 .build_id = ""};
	return module;
}

/* The process that would have led to the file is gone, another one leads to it. */
static int module_reach(struct module *module, const char *file)
{
	char *copy = strdup(file);

	if (!copy)
		return -ENOMEM;
	free(module->file);
	module->file = copy;
	module->public.file = copy;
	module->state = 0;
	return 0;
}

static int mapping_add(struct program *program, const struct target_mapping *mapping)
{
	struct module *module = module_by_file(program, mapping);
	struct mapped mapped = {mapping->start, mapping->end, mapping->file_off};
	char name[NAME_MAX + 1], file[PATH_MAX];

	if (!module) {
		bool reached = !target_mapping_file(program->pid, mapping, file, sizeof(file));

		target_mapping_basename(mapping, name, sizeof(name));
		module = module_new(program, name, mapping->path, reached ? file : NULL);
		if (!module)
			return -ENOMEM;
		module->dev = mapping->dev;
		module->ino = mapping->ino;
		module->reached_by = program->pid;
	} else if (module->state == -ENOENT && module->reached_by != program->pid) {
		module->reached_by = program->pid;
		if (!target_mapping_file(program->pid, mapping, file, sizeof(file)) && module_reach(module, file))
			return -ENOMEM;
	}
	module->public.awaited = false;
	return vec_push(&module->mapped, mapped);
}

/* The executable's own link opens it even where map_files is closed to us.  0 or -ENOMEM. */
static int executable_first(struct program *program)
{
	char exe_link[64], exe_path[PATH_MAX], name[NAME_MAX + 1];
	ssize_t len;

	snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", program->pid);
	len = readlink(exe_link, exe_path, sizeof(exe_path) - 1);
	if (len <= 0)
		return 0;
	exe_path[len] = '\0';
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *exe = program->modules.items[i];

		if (strcmp(exe->path, exe_path))
			continue;
		if (!exe->file)
			exe->file = strdup(exe_link);
		if (!target_program_name(program->pid, name, sizeof(name))) {
			free(exe->name);
			exe->name = strdup(name);
		}
		exe->public.file = exe->file;
		exe->public.name = exe->name;
		memmove(program->modules.items + 1, program->modules.items, i * sizeof(exe));
		program->modules.items[0] = exe;
		for (size_t j = 0; j <= i; j++)
			program->modules.items[j]->public.idx = j;
		return exe->file && exe->name ? 0 : -ENOMEM;
	}
	return 0;
}

/* Appends what is new and renews where everything is mapped.  The number of modules that came or went, or -errno. */
static int modules_take(struct program *program, const target_mappings *mappings)
{
	size_t before = program->modules.cnt, known;
	int err = 0, changes;

	for (size_t i = 0; i < before; i++)
		program->modules.items[i]->mapped.cnt = 0;
	for (size_t i = 0; i < mappings->cnt && !err; i++) {
		const struct target_mapping *mapping = &mappings->items[i];

		if (mapping->exec && mapping->path[0] == '/' && mapping->ino)
			err = mapping_add(program, mapping);
	}
	if (err)
		return err;
	known = program->modules.cnt;
	changes = known - before;
	for (size_t i = 0; i < known; i++) {
		struct program_module *public = &program->modules.items[i]->public;
		bool mapped = program->modules.items[i]->mapped.cnt > 0, gone = !mapped && !public->awaited;

		changes += i < before && gone != public->gone;
		public->gone = gone;
		if (mapped)
			module_bias_set(program->modules.items[i]);
	}
	return changes;
}

static int modules_read(struct program *program)
{
	target_mappings mappings = {0};
	int err = target_mappings_read(program->pid, &mappings);

	if (err)
		return err;
	err = modules_take(program, &mappings);
	target_mappings_free(&mappings);
	return err;
}

/* --- life -----------------------------------------------------------------------------------------------------------
 */

static bool shadow_stack_read(pid_t pid)
{
	char features[256];

	return !proc_status(pid, "x86_Thread_features", features, sizeof(features)) && strstr(features, "shstk");
}

static int program_new(const struct program_opts *opts, struct program **program)
{
	struct program *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	fresh->mem_fd = -1;
	fresh->code = code__new();
	if (opts && opts->debuginfo_dir)
		fresh->debuginfo_dir = strdup(opts->debuginfo_dir);
	fresh->want_debuginfod = opts && opts->want_debuginfod;
	fresh->names_only = opts && opts->names_only;
	fresh->tables = fresh->names_only ? opts->tables : NULL;
	if (!fresh->code || (opts && opts->debuginfo_dir && !fresh->debuginfo_dir)) {
		program__free(fresh);
		return -ENOMEM;
	}
	*program = fresh;
	return 0;
}

int program__open(pid_t pid, const struct program_opts *opts, struct program **program)
{
	struct program *fresh;
	int err = program_new(opts, &fresh);

	if (err)
		return err;
	fresh->pid = pid;
	fresh->shadow_stack = shadow_stack_read(pid);
	if (!fresh->names_only)
		fresh->mem_fd = proc_mem_open(pid);
	err = modules_read(fresh);
	if (err >= 0)
		err = fresh->modules.cnt ? executable_first(fresh) : -ENOENT;
	/* Where even the executable is of another kind, nothing is to be had. */
	if (!err && module_open(fresh, fresh->modules.items[0]) == -ENOTSUP)
		err = -ENOTSUP;
	if (err) {
		program__free(fresh);
		return err;
	}
	*program = fresh;
	return 0;
}

int program__open_mapped(pid_t pid, const target_mappings *mappings, const struct program_opts *opts,
			 struct program **program)
{
	struct program *fresh;
	int err = program_new(opts, &fresh);

	if (err)
		return err;
	fresh->pid = pid;
	err = modules_take(fresh, mappings);
	if (err < 0) {
		program__free(fresh);
		return err;
	}
	*program = fresh;
	return 0;
}

int program__move(struct program *program, pid_t pid, const target_mappings *mappings)
{
	int err;

	program->pid = pid;
	err = modules_take(program, mappings);
	return err < 0 ? err : 0;
}

bool program__is_changed(const struct program *program)
{
	for (size_t i = 0; i < program->modules.cnt; i++) {
		const struct module *module = program->modules.items[i];

		if (module->image && elf_image__is_changed(module->image))
			return true;
	}
	return false;
}

int program__open_file(const char *path, const struct program_opts *opts, struct program **program)
{
	const char *slash = strrchr(path, '/');
	struct program *fresh;
	struct module *module;
	char real[PATH_MAX];
	int err = program_new(opts, &fresh);

	if (err)
		return err;
	module = module_new(fresh, slash ? slash + 1 : path, realpath(path, real) ? real : path, path);
	err = module ? module_open(fresh, module) : -ENOMEM;
	if (err) {
		program__free(fresh);
		return err;
	}
	*program = fresh;
	return 0;
}

void program__free(struct program *program)
{
	if (!program)
		return;
	for (size_t i = 0; i < program->modules.cnt; i++)
		module_free(program->modules.items[i]);
	vec_free(&program->modules);
	vec_free(&program->blocks);
	if (program->mem_fd >= 0)
		close(program->mem_fd);
	code__free(program->code);
	debug_budget__return(&program->debug_budget);
	free(program->debuginfo_dir);
	free(program);
}

size_t program__sz(const struct program *program)
{
	return sizeof(*program) + program->function_cnt * sizeof(struct function);
}

int program__refresh(struct program *program)
{
	int changes = program->pid ? modules_read(program) : 0;

	if (changes > 0)
		program__throws_forget(program);
	return changes;
}

/* --- questions about modules ----------------------------------------------------------------------------------------
 */

pid_t program__pid(const struct program *program)
{
	return program->pid;
}

uint32_t program__module_cnt(const struct program *program)
{
	return program->modules.cnt;
}

struct module *program_module_of(struct program *program, uint32_t idx)
{
	return idx < program->modules.cnt ? program->modules.items[idx] : NULL;
}

const struct program_module *program__module(struct program *program, uint32_t idx)
{
	struct module *module = program_module_of(program, idx);

	if (!module)
		return NULL;
	module_open(program, module);
	return &module->public;
}

/* "libc.so.6" is meant by that, by "libc.so" and by "libc"; "libc-2.31.so" by "libc"; a path by itself. */
static bool module_matches(const struct module *module, const char *wanted, bool exactly)
{
	const char *slash = strrchr(module->path, '/'), *rest;
	size_t len = strlen(wanted);

	if (strchr(wanted, '/'))
		return !strcmp(module->path, wanted);
	if (!strcmp(module->name, wanted) || (slash && !strcmp(slash + 1, wanted)))
		return true;
	if (exactly || strncmp(module->name, wanted, len))
		return false;
	rest = module->name + len;
	return !strncmp(rest, ".so", 3) || ((rest[0] == '.' || rest[0] == '-') && isdigit((unsigned char)rest[1]));
}

uint32_t program__module_find(struct program *program, const char *name)
{
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; i < program->modules.cnt; i++)
			if (module_matches(program->modules.items[i], name, exactly))
				return i;
	return PROGRAM_NONE;
}

static uint32_t module_of_file(struct program *program, const struct stat *wanted)
{
	struct stat file;

	for (size_t i = 0; i < program->modules.cnt; i++) {
		const struct module *module = program->modules.items[i];

		if (module->file && !module->public.gone && !stat(module->file, &file) &&
		    file.st_dev == wanted->st_dev && file.st_ino == wanted->st_ino)
			return i;
	}
	return PROGRAM_NONE;
}

uint32_t program_module_expect(struct program *program, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct module *module;
	char file[PATH_MAX];
	struct stat stat_buf;
	uint32_t idx;

	errno = ENOENT;
	if (!program->pid || path[0] != '/' ||
	    (size_t)snprintf(file, sizeof(file), "/proc/%d/root%s", program->pid, path) >= sizeof(file) ||
	    stat(file, &stat_buf))
		return PROGRAM_NONE;
	idx = module_of_file(program, &stat_buf);
	if (idx != PROGRAM_NONE)
		return idx;
	errno = ENOEXEC;
	if (!S_ISREG(stat_buf.st_mode))
		return PROGRAM_NONE;
	errno = ENOMEM;
	module = module_new(program, slash + 1, path, file);
	if (!module)
		return PROGRAM_NONE;
	module->dev = stat_buf.st_dev;
	module->ino = stat_buf.st_ino;
	module->public.awaited = true;
	program__throws_forget(program);
	return module->public.idx;
}

uint32_t program__module_await(struct program *program, const char *path)
{
	uint32_t before = program->modules.cnt, idx = program_module_expect(program, path);
	struct module *module = program_module_of(program, idx);
	int err = idx == PROGRAM_NONE || idx < before ? 0 : module_open(program, module);

	if (!err)
		return idx;
	program->modules.cnt--;
	module_free(module);
	errno = -err;
	return PROGRAM_NONE;
}

/* --- questions about functions --------------------------------------------------------------------------------------
 */

int program__module_functions(struct program *program, uint32_t idx, uint32_t *first, uint32_t *cnt)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_functions_load(program, module) : -EINVAL;

	if (err)
		return err;
	*first = module->first_id;
	*cnt = module->functions.cnt;
	return 0;
}

struct function *program_function_of(struct program *program, uint32_t id)
{
	size_t low;
	struct module *module;

	if (id >= program->function_cnt)
		return NULL;
	low = search_first(0, program->blocks.cnt, mid, program->blocks.items[mid].first > id);
	module = program->modules.items[program->blocks.items[low - 1].module];
	return &module->functions.items[id - module->first_id];
}

const struct program_function *program__function(struct program *program, uint32_t id)
{
	struct function *function = program_function_of(program, id);

	if (!function)
		return NULL;
	if (!function->is_demangled) {
		function->is_demangled = true;
		function->demangled = function->made_name ? NULL : demangle(function->public.name);
		function->public.shown = function->demangled ? function->demangled : function->public.name;
	}
	return &function->public;
}

uint32_t program__function_at(struct program *program, uint32_t idx, uint64_t addr)
{
	struct module *module = program_module_of(program, idx);
	uint32_t function;

	if (!module || module_functions_load(program, module))
		return PROGRAM_NONE;
	function = module_function_at(module, addr);
	return function == PROGRAM_NONE ? PROGRAM_NONE : module->first_id + function;
}

uint32_t program__function_at_runtime(struct program *program, uint64_t pc, uint32_t *idx)
{
	if (idx)
		*idx = PROGRAM_NONE;
	for (size_t i = 0; i < program->modules.cnt; i++) {
		struct module *module = program->modules.items[i];

		for (size_t j = 0; j < module->mapped.cnt; j++) {
			if (pc < module->mapped.items[j].start || pc >= module->mapped.items[j].end)
				continue;
			if (idx)
				*idx = i;
			if (module_open(program, module))
				return PROGRAM_NONE;
			return program__function_at(program, i, pc - module->public.bias);
		}
	}
	return PROGRAM_NONE;
}

uint32_t program__function_find(struct program *program, uint32_t idx, const char *name)
{
	struct module *module = program_module_of(program, idx);
	const struct elf_function *found = NULL;
	uint32_t function;

	if (!module || module_functions_load(program, module))
		return PROGRAM_NONE;
	for (size_t i = 0; i < SYMBOL_FILES_MAX && !found; i++)
		if (module->files[i])
			found = elf_file__find(module->files[i], name);
	if (found) {
		function = module_function_at(module, found->addr);
		return function == PROGRAM_NONE ? PROGRAM_NONE : module->first_id + function;
	}
	/* IFUNCs, and those that only the exception table knows. */
	return module_function_named(module, name);
}

ssize_t program__read_code(struct program *program, uint32_t idx, uint64_t addr, void *buf, size_t sz)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_open(program, module) : -EINVAL;

	return err ? err : elf_image__read_addr(module->image, addr, buf, sz);
}

struct code *program__code(struct program *program)
{
	return program->code;
}

int program__addr_at(struct program *program, uint32_t idx, uint64_t file_off, uint64_t *addr)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_open(program, module) : -EINVAL;
	const struct elf_segment *segments;
	size_t cnt;

	if (err)
		return err;
	cnt = elf_image__segments(module->image, &segments);
	for (size_t i = 0; i < cnt; i++)
		if (segments[i].exec && file_off >= segments[i].file_off &&
		    file_off - segments[i].file_off < segments[i].file_sz) {
			*addr = segments[i].addr + (file_off - segments[i].file_off);
			return 0;
		}
	return -ENOENT;
}

int program__file_off(struct program *program, uint32_t idx, uint64_t addr, uint64_t *file_off)
{
	struct module *module = program_module_of(program, idx);
	int err = module ? module_open(program, module) : -EINVAL;
	const struct elf_segment *segment;

	if (err)
		return err;
	segment = elf_image__code_at(module->image, addr);
	if (!segment)
		return -ENOENT;
	*file_off = segment->file_off + (addr - segment->addr);
	return 0;
}
