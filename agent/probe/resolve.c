// SPDX-License-Identifier: GPL-2.0-only
/* From the lines of a symbol list to functions in the files that a live process has mapped. */
#include "base/log.h"
#include "probe/symbol_list.h"
#include "target/elf_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NEAREST_SHOWN 3
#define NOTE_SZ       512

/* One file of which the target has mapped code. */
struct module {
	const struct target_mapping *mapping;
	char *name;           /* base name; the executable's is what it was started as */
	char *file;           /* NULL when it cannot be reached */
	struct elf_file *elf; /* NULL until wanted, and when it is none */
	int err;              /* 0 not opened yet, 1 open, or why not */
};

struct resolver {
	const char *list_path;
	pid_t pid;
	target_mappings mappings;
	VEC(struct module) modules; /* the executable first, then in the order of addresses */
};

static int refuse(const struct resolver *resolver, const struct probe_line *line, int err, const char *fmt, ...)
	WL_PRINTF(4, 5);

static int refuse(const struct resolver *resolver, const struct probe_line *line, int err, const char *fmt, ...)
{
	char why[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	log_error("%s:%u: %s", resolver->list_path, line->line_no, why);
	return err;
}

/* Appends to text as far as there is room. */
static void append(char *text, size_t sz, const char *fmt, ...) WL_PRINTF(3, 4);

static void append(char *text, size_t sz, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, sz - len, fmt, args);
	va_end(args);
}

/* Opened when first asked for: few lists need every library. NULL when it holds no readable ELF file. */
static const struct elf_file *module_elf(struct module *module)
{
	if (module->err)
		return module->elf;
	if (!module->file) {
		module->err = -ENOENT;
		return NULL;
	}
	module->elf = elf_file__open(module->file);
	module->err = module->elf ? 1 : -errno;
	return module->elf;
}

/* "libc.so.6" is meant by that, by "libc.so" and by "libc"; "libc-2.31.so" by "libc"; a path by itself. */
static bool module_matches(const struct module *module, const char *wanted, bool exactly)
{
	char file_name[NAME_MAX + 1];
	size_t len = strlen(wanted);
	const char *rest;

	if (strchr(wanted, '/'))
		return !strcmp(module->mapping->path, wanted);
	target_mapping_basename(module->mapping, file_name, sizeof(file_name));
	if (!strcmp(module->name, wanted) || !strcmp(file_name, wanted))
		return true;
	if (exactly || strncmp(module->name, wanted, len))
		return false;
	rest = module->name + len;
	return !strncmp(rest, ".so", 3) || (rest[0] == '.' && isdigit((unsigned char)rest[1])) ||
	       (rest[0] == '-' && isdigit((unsigned char)rest[1]));
}

static struct module *module_find(const struct resolver *resolver, const char *wanted)
{
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; i < resolver->modules.cnt; i++)
			if (module_matches(&resolver->modules.items[i], wanted, exactly))
				return &resolver->modules.items[i];
	return NULL;
}

static bool is_known_file(const struct resolver *resolver, const struct target_mapping *mapping)
{
	for (size_t i = 0; i < resolver->modules.cnt; i++) {
		const struct target_mapping *known = resolver->modules.items[i].mapping;

		if (known->ino == mapping->ino && known->dev == mapping->dev && !strcmp(known->path, mapping->path))
			return true;
	}
	return false;
}

static int module_add(struct resolver *resolver, const struct target_mapping *mapping)
{
	char name[NAME_MAX + 1], path[PATH_MAX];
	struct module module = {.mapping = mapping};

	target_mapping_basename(mapping, name, sizeof(name));
	module.name = strdup(name);
	if (!target_mapping_file(resolver->pid, mapping, path, sizeof(path))) {
		module.file = strdup(path);
		if (!module.file)
			goto no_memory;
	}
	if (module.name && !vec_push(&resolver->modules, module))
		// cppcheck-suppress memleak ; vec_push() has taken it
		return 0;
no_memory:
	free(module.name);
	free(module.file);
	return -ENOMEM;
}

/* The executable's own link opens it even where map_files is closed to us.  0 or -ENOMEM. */
static int executable_first(struct resolver *resolver)
{
	char exe_link[64], exe_path[PATH_MAX], name[NAME_MAX + 1];
	ssize_t len;

	snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", resolver->pid);
	len = readlink(exe_link, exe_path, sizeof(exe_path) - 1);
	if (len <= 0)
		return 0;
	exe_path[len] = '\0';
	for (size_t i = 0; i < resolver->modules.cnt; i++) {
		struct module exe = resolver->modules.items[i];

		if (strcmp(exe.mapping->path, exe_path))
			continue;
		if (!exe.file)
			exe.file = strdup(exe_link);
		if (!target_program_name(resolver->pid, name, sizeof(name))) {
			free(exe.name);
			exe.name = strdup(name);
		}
		memmove(resolver->modules.items + 1, resolver->modules.items, i * sizeof(exe));
		resolver->modules.items[0] = exe;
		return exe.file && exe.name ? 0 : -ENOMEM;
	}
	return 0;
}

static int modules_read(struct resolver *resolver)
{
	int err = target_mappings_read(resolver->pid, &resolver->mappings);

	if (err) {
		log_error("cannot read the memory map of process %d: %s%s", resolver->pid, strerror(-err),
			  err == -EACCES || err == -EPERM ? ": run whylate as root" : "");
		return err;
	}
	for (size_t i = 0; i < resolver->mappings.cnt && !err; i++) {
		const struct target_mapping *mapping = &resolver->mappings.items[i];

		if (mapping->exec && mapping->path[0] == '/' && mapping->ino && !is_known_file(resolver, mapping))
			err = module_add(resolver, mapping);
	}
	if (!err && !resolver->modules.cnt) {
		log_error("process %d has no code mapped from a file: no symbol can be found in it", resolver->pid);
		return -ENOENT;
	}
	return err ? err : executable_first(resolver);
}

static void resolver_free(struct resolver *resolver)
{
	for (size_t i = 0; i < resolver->modules.cnt; i++) {
		free(resolver->modules.items[i].name);
		free(resolver->modules.items[i].file);
		elf_file__free(resolver->modules.items[i].elf);
	}
	vec_free(&resolver->modules);
	target_mappings_free(&resolver->mappings);
}

static int refuse_module(const struct resolver *resolver, const struct probe_line *line)
{
	char mapped[NOTE_SZ] = "";

	for (size_t i = 0; i < resolver->modules.cnt; i++) {
		if (strlen(mapped) > 300) {
			append(mapped, sizeof(mapped), " and %zu more", resolver->modules.cnt - i);
			break;
		}
		append(mapped, sizeof(mapped), "%s%.100s", i ? ", " : "", resolver->modules.items[i].name);
	}
	return refuse(resolver, line, -ENOENT, "module '%.128s' is not mapped by process %d, which has %s",
		      line->module, resolver->pid, mapped);
}

static int refuse_go(const struct resolver *resolver, const struct probe_line *line, const struct module *module)
{
	return refuse(
		resolver, line, -ENOTSUP,
		"'%.128s' cannot be probed: %s is built by Go, whose stacks do not bear return probes: leave it out",
		line->symbol, module->name);
}

/* What the name is instead of a function; 0 when this module has nothing of that name. */
static int refuse_kind(const struct resolver *resolver, const struct probe_line *line, const struct module *module)
{
	switch (elf_file__symbol_kind(module->elf, line->symbol)) {
	case ELF_SYMBOL_DATA:
		return refuse(resolver, line, -EINVAL, "'%.128s' is a variable of %s: only functions can be probed",
			      line->symbol, module->name);
	case ELF_SYMBOL_IFUNC:
		return refuse(resolver, line, -EINVAL,
			      "'%.128s' of %s only chooses an implementation when the program starts: name that one",
			      line->symbol, module->name);
	default:
		return 0;
	}
}

static int refuse_unknown(const struct resolver *resolver, const struct probe_line *line, const struct module *first,
			  size_t module_cnt)
{
	const char *scope = module_cnt > 1 ? " or its libraries" : "";
	const struct elf_function *functions;
	const char *names[NEAREST_SHOWN];
	char near[NOTE_SZ] = "";
	size_t shown = 0;

	for (const struct module *module = first; module < first + module_cnt && shown < NEAREST_SHOWN; module++) {
		size_t cnt = 0;

		if (module->elf)
			cnt = elf_file__nearest(module->elf, line->symbol, names, NEAREST_SHOWN - shown);
		for (size_t i = 0; i < cnt; i++)
			append(near, sizeof(near), "%s%.100s (%.40s)", shown++ ? ", " : "", names[i], module->name);
	}
	if (shown)
		return refuse(resolver, line, -ENOENT, "no function '%.128s' in %s%s: did you mean %s?", line->symbol,
			      first->name, scope, near);
	if (!elf_file__functions(first->elf, &functions))
		return refuse(
			resolver, line, -ENOENT,
			"no function '%.128s': %s is stripped of all function names: record without a symbol list",
			line->symbol, first->name);
	return refuse(resolver, line, -ENOENT, "no function '%.128s' in %s%s, nor one with a similar name: see `nm -D`",
		      line->symbol, first->name, scope);
}

/* Why there is no such function: a Go program, data, an unreadable or stripped file, a misspelling. */
static int refuse_symbol(struct resolver *resolver, const struct probe_line *line, struct module *only)
{
	struct module *first = only ? only : resolver->modules.items;
	size_t module_cnt = only ? 1 : resolver->modules.cnt;
	int err;

	if (!module_elf(first))
		return refuse(resolver, line, first->err, "the symbols of %s cannot be read: %s", first->name,
			      strerror(-first->err));
	if (elf_file__is_go(first->elf))
		return refuse_go(resolver, line, first);
	for (struct module *module = first; module < first + module_cnt; module++) {
		err = module_elf(module) ? refuse_kind(resolver, line, module) : 0;
		if (err)
			return err;
	}
	return refuse_unknown(resolver, line, first, module_cnt);
}

static const struct elf_function *module_function(struct module *module, const char *symbol)
{
	const struct elf_file *elf = module_elf(module);

	return elf ? elf_file__find(elf, symbol) : NULL;
}

/* The order of libraries in memory is not that in which the linker binds names: two that have it are one too many. */
static int refuse_ambiguous(struct resolver *resolver, const struct probe_line *line, const struct module *found)
{
	if (line->module || found == resolver->modules.items)
		return 0;
	for (size_t i = found + 1 - resolver->modules.items; i < resolver->modules.cnt; i++) {
		struct module *other = &resolver->modules.items[i];

		if (module_function(other, line->symbol))
			return refuse(resolver, line, -EINVAL,
				      "'%.128s' is in %.100s and in %.100s: write MODULE:%.128s to choose",
				      line->symbol, found->name, other->name, line->symbol);
	}
	return 0;
}

static int resolve_line(struct resolver *resolver, const struct probe_line *line, struct probe_site *site)
{
	const struct elf_function *function = NULL;
	struct module *module, *only = NULL;
	int err;

	if (line->module) {
		only = module_find(resolver, line->module);
		if (!only)
			return refuse_module(resolver, line);
		module = only;
		function = module_function(module, line->symbol);
	} else {
		for (size_t i = 0; i < resolver->modules.cnt && !function; i++) {
			module = &resolver->modules.items[i];
			function = module_function(module, line->symbol);
		}
	}
	if (!function)
		return refuse_symbol(resolver, line, only);
	if (elf_file__is_go(module->elf))
		return refuse_go(resolver, line, module);
	if (elf_file__unwinds(module->elf))
		return refuse(resolver, line, -ENOTSUP,
			      "%s has C++ exceptions: one that passes '%.128s' would meet the return probe and end the "
			      "process, so this version probes no function there: record without a symbol list",
			      module->name, line->symbol);
	err = refuse_ambiguous(resolver, line, module);
	if (err)
		return err;
	if (function->ambiguous)
		log_warn("%s:%u: %s has several functions '%.128s': the one at 0x%" PRIx64 " is probed, no other",
			 resolver->list_path, line->line_no, module->name, line->symbol, function->addr);
	site->file = strdup(module->file);
	site->module = strdup(module->name);
	site->file_off = function->file_off;
	return site->file && site->module ? 0 : -ENOMEM;
}

static int site_cmp(const void *left, const void *right)
{
	const struct probe_site *a = *(const struct probe_site *const *)left;
	const struct probe_site *b = *(const struct probe_site *const *)right;
	int order = strcmp(a->file, b->file);

	if (order)
		return order;
	if (a->file_off != b->file_off)
		return a->file_off < b->file_off ? -1 : 1;
	return a->line_idx < b->line_idx ? -1 : 1;
}

/* Two probes of one function (twice the same line, or two names of it) would nest every interval in itself. */
static int refuse_repeated(const struct resolver *resolver, const probe_lines *lines, const probe_sites *sites)
{
	const struct probe_site **sorted = calloc(sites->cnt, sizeof(*sorted));
	int err = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < sites->cnt; i++)
		sorted[i] = &sites->items[i];
	qsort(sorted, sites->cnt, sizeof(*sorted), site_cmp);
	for (size_t i = 1; i < sites->cnt && !err; i++) {
		const struct probe_line *first = &lines->items[sorted[i - 1]->line_idx];
		const struct probe_line *again = &lines->items[sorted[i]->line_idx];

		if (sorted[i]->file_off == sorted[i - 1]->file_off && !strcmp(sorted[i]->file, sorted[i - 1]->file))
			err = refuse(resolver, again, -EINVAL,
				     "'%.128s' is the same function as '%.128s' of line %u: remove one", again->symbol,
				     first->symbol, first->line_no);
	}
	free(sorted);
	return err;
}

int symbol_list_resolve(const probe_lines *lines, const char *list_path, pid_t pid, probe_sites *sites)
{
	struct resolver resolver = {.list_path = list_path, .pid = pid};
	int err = modules_read(&resolver);

	for (size_t i = 0; i < lines->cnt && !err; i++) {
		struct probe_site site = {.line_idx = i};

		err = resolve_line(&resolver, &lines->items[i], &site);
		if (!err)
			err = vec_push(sites, site);
		if (err) {
			free(site.file);
			free(site.module);
		}
	}
	if (!err && sites->cnt > 1)
		err = refuse_repeated(&resolver, lines, sites);
	if (err == -ENOMEM)
		log_error("%s: out of memory", list_path);
	if (err)
		probe_sites_free(sites);
	resolver_free(&resolver);
	return err;
}

void probe_sites_free(probe_sites *sites)
{
	for (size_t i = 0; i < sites->cnt; i++) {
		free(sites->items[i].file);
		free(sites->items[i].module);
	}
	vec_free(sites);
}
