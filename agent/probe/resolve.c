// SPDX-License-Identifier: GPL-2.0-or-later
/* From the lines of a symbol list to the functions and markers that they name. */
#include "probe/resolve_internal.h"

#include "base/order.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Each walks through all names: so many of them are looked up in seconds. */
#define GLOB_LINES_MAX 1000
#define SHOWN_MAX      6

/* What one line names in one module. */
struct finding {
	VEC(uint32_t) functions;
	VEC(const struct usdt_site *) markers;
};

int resolver_refuse(struct resolver *resolver, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(resolver->why, sizeof(resolver->why), fmt, args);
	va_end(args);
	return err;
}

void resolver_append(char *text, size_t sz, const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, sz - len, fmt, args);
	va_end(args);
}

const struct cxx_index *resolver_cxx(struct resolver *resolver, uint32_t module)
{
	struct resolver_module *known = &resolver->modules[module];

	/* A module that cannot be read has an empty index. */
	if (!known->cxx_read)
		cxx_index_make(&known->cxx, resolver->program, module);
	known->cxx_read = true;
	return &known->cxx;
}

const usdt_sites *resolver_markers(struct resolver *resolver, uint32_t module)
{
	struct resolver_module *known = &resolver->modules[module];
	const char *file = program__module(resolver->program, module)->file;
	int err = known->markers_read || !file ? -ENOENT : usdt_sites_read(file, &known->markers);

	if (!err) {
		known->marker_func = PROBE_MARKER_FUNC + resolver->marker_cnt;
		resolver->marker_cnt += known->markers.cnt;
	}
	known->markers_read = known->markers_read || err != -EAGAIN;
	return &known->markers;
}

static bool is_glob(const struct probe_line *line)
{
	return line->form == PROBE_SYMBOL_GLOB || line->form == PROBE_SYMBOL_CPLUSPLUS_GLOB ||
	       (line->form == PROBE_SYMBOL_USDT && strpbrk(line->symbol, "*?"));
}

/* --- matching in one module -------------------------------------------------------------------------------------- */

static int match_plain(struct resolver *resolver, const struct probe_line *line, uint32_t module,
		       struct finding *finding)
{
	uint32_t func = program__function_find(resolver->program, module, line->symbol);

	return func == PROGRAM_NONE ? 0 : vec_push(&finding->functions, func);
}

/* Functions by their C++ name: a plain name may be one that was left without its arguments. */
static int match_cxx(struct resolver *resolver, const struct probe_line *line, uint32_t module, struct finding *finding)
{
	const struct cxx_entry *entries;
	struct cxx_name wanted;
	size_t cnt = 0;
	int err;

	/* Go's names look alike, main.(*Server).Handle, and are not mangled. */
	err = match_plain(resolver, line, module, finding);
	if (err || finding->functions.cnt)
		return err;
	err = cxx_name_make(line->symbol, &wanted);
	if (err)
		return err;
	entries = cxx_index_find(resolver_cxx(resolver, module), &wanted, &cnt);
	for (size_t i = 0; i < cnt && !err; i++)
		err = vec_push(&finding->functions, entries[i].func);
	cxx_name_free(&wanted);
	return err;
}

static int match_cxx_glob(struct resolver *resolver, const char *pattern, uint32_t module, struct finding *finding)
{
	const struct cxx_index *index = resolver_cxx(resolver, module);
	struct cxx_name wanted;
	int err = cxx_name_make(pattern, &wanted);

	if (err)
		return err;
	for (size_t i = 0; i < index->cnt && !err; i++) {
		const struct cxx_name *name = &index->entries[i].name;

		if (!fnmatch(wanted.full, wanted.has_args ? name->full : name->key, 0))
			err = vec_push(&finding->functions, index->entries[i].func);
	}
	cxx_name_free(&wanted);
	return err;
}

ORDER(id_cmp, uint32_t, BY(*a, *b));

/* A function may have been found by several of its names. */
static void functions_once(struct finding *finding)
{
	size_t kept = 0;

	vec_sort(&finding->functions, id_cmp);
	for (size_t i = 0; i < finding->functions.cnt; i++)
		if (!i || finding->functions.items[i] != finding->functions.items[kept - 1])
			finding->functions.items[kept++] = finding->functions.items[i];
	finding->functions.cnt = kept;
}

static int match_glob(struct resolver *resolver, const struct probe_line *line, uint32_t module,
		      struct finding *finding)
{
	bool mangled = !strncmp(line->symbol, "_Z", 2);
	const struct program_name *names;
	size_t cnt;
	int err = program__module_names(resolver->program, module, &names, &cnt);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; i < cnt && !err; i++) {
		const struct program_function *function;

		if (!strncmp(names[i].name, "_Z", 2) != mangled || fnmatch(line->symbol, names[i].name, 0))
			continue;
		function = program__function(resolver->program, names[i].function);
		if (!function->is_part && !function->is_ifunc && function->source != FUNCTION_EH_FRAME)
			err = vec_push(&finding->functions, function->id);
	}
	/* C++ functions by the name that people know them by. */
	if (!err && !mangled)
		err = match_cxx_glob(resolver, line->symbol, module, finding);
	functions_once(finding);
	return err;
}

/* PROVIDER:NAME of a line, where `-` stands for `__` as in DTrace's world. */
static void marker_pattern(const struct probe_line *line, char *buf, size_t sz)
{
	const char *text = line->symbol + strlen("usdt:");
	size_t len = 0;
	bool in_name = false;

	for (; *text && len + 2 < sz; text++) {
		in_name |= *text == ':';
		buf[len++] = in_name && *text == '-' ? '_' : *text;
		if (in_name && *text == '-')
			buf[len++] = '_';
	}
	buf[len] = '\0';
}

static int match_marker(struct resolver *resolver, const struct probe_line *line, uint32_t module,
			struct finding *finding)
{
	const usdt_sites *sites = resolver_markers(resolver, module);
	char pattern[1024], name[1024];
	int err = 0;

	marker_pattern(line, pattern, sizeof(pattern));
	for (size_t i = 0; i < sites->cnt && !err; i++) {
		snprintf(name, sizeof(name), "%s:%s", sites->items[i].provider, sites->items[i].name);
		if (!strcmp(pattern, name) || !fnmatch(pattern, name, 0))
			err = vec_push(&finding->markers, &sites->items[i]);
	}
	return err;
}

/* `by_cxx`: a second look for a plain name, as that of a C++ function. */
static int match_in(struct resolver *resolver, const struct probe_line *line, uint32_t module, bool by_cxx,
		    struct finding *finding)
{
	switch (line->form) {
	case PROBE_SYMBOL_PLAIN:
		return by_cxx ? match_cxx(resolver, line, module, finding)
			      : match_plain(resolver, line, module, finding);
	case PROBE_SYMBOL_GLOB:
		return match_glob(resolver, line, module, finding);
	case PROBE_SYMBOL_CPLUSPLUS:
		return match_cxx(resolver, line, module, finding);
	case PROBE_SYMBOL_CPLUSPLUS_GLOB:
		return match_cxx_glob(resolver, line->symbol, module, finding);
	case PROBE_SYMBOL_USDT:
		return match_marker(resolver, line, module, finding);
	case PROBE_SYMBOL_ADDRESS:
	case PROBE_SYMBOL_PLACE:
		return 0; /* address_add() */
	}
	return -EINVAL;
}

static size_t finding_cnt(const struct finding *finding)
{
	return finding->functions.cnt + finding->markers.cnt;
}

static void finding_free(struct finding *finding)
{
	vec_free(&finding->functions);
	vec_free(&finding->markers);
}

/* --- one line ---------------------------------------------------------------------------------------------------- */

/* What is yet to be loaded is meant only where it is named. */
static bool is_searched(struct resolver *resolver, uint32_t module, bool named)
{
	const struct program_module *public = program__module(resolver->program, module);

	return !public->gone && (named || !public->awaited);
}

/* The order of libraries in memory is not that in which the linker binds names: two that have it are one too many. */
static int refuse_two_modules(struct resolver *resolver, const struct probe_line *line, uint32_t found, bool by_cxx)
{
	for (uint32_t i = found + 1; i < resolver->module_cnt; i++) {
		struct finding other = {0};
		int err;

		if (!is_searched(resolver, i, false))
			continue;
		err = match_in(resolver, line, i, by_cxx, &other);
		if (!err && finding_cnt(&other))
			err = resolver_refuse(resolver, -EINVAL,
					      "'%.128s' is in %.100s and in %.100s: write MODULE:%.128s to choose",
					      line->symbol, program__module(resolver->program, found)->name,
					      program__module(resolver->program, i)->name, line->symbol);
		finding_free(&other);
		if (err)
			return err;
	}
	return 0;
}

/* Several functions of one name without arguments: which of them is meant? */
static int refuse_overloads(struct resolver *resolver, const struct probe_line *line, const struct finding *finding)
{
	const char *first = NULL;
	char list[640] = "";
	size_t shown = 0, cnt = 0;

	if (line->form == PROBE_SYMBOL_GLOB || line->form == PROBE_SYMBOL_CPLUSPLUS_GLOB)
		return 0;
	for (size_t i = 0; i < finding->functions.cnt; i++) {
		const char *name = program__function(resolver->program, finding->functions.items[i])->shown;

		/* Equal names next to each other: one constructor, say, that the compiler made several of. */
		if (first && !strcmp(first, name))
			continue;
		first = name;
		if (cnt++ < SHOWN_MAX)
			resolver_append(list, sizeof(list), "%s%.100s", shown++ ? "; " : "", name);
	}
	if (cnt < 2)
		return 0;
	if (cnt > shown)
		resolver_append(list, sizeof(list), "; and %zu more", cnt - shown);
	return resolver_refuse(resolver, -EINVAL,
			       "'%.128s' is %zu functions: write the arguments of one, or a glob: %s", line->symbol,
			       cnt, list);
}

/*
 * Go's goroutines go on on any thread, while what whylate follows is threads: an entry and an exit on two of them
 * belong together and do not look like it, and those on one may be of two goroutines.  Nor are Go's arguments where C
 * has its own.
 */
static int check_go(struct resolver *resolver, const struct probe_line *line, const struct program_module *module)
{
	if (!module->is_go)
		return 0;
	if (line->role != PROBE_FUNCTION)
		return resolver_refuse(
			resolver, -ENOTSUP,
			"'%.128s' of %.100s is Go, whose goroutines change threads in the midst of a call: "
			"role '%s' would mistake one for another, only role 'function' is to be had",
			line->symbol, module->name, probe_role_name(line->role));
	if (!resolver->why[0])
		resolver_refuse(
			resolver, 0,
			"'%.128s' of %.100s is Go: a call that goes on on another thread is not seen whole, and in "
			"the time of others is what their threads did for other goroutines",
			line->symbol, module->name);
	return 0;
}

static int function_add(struct resolver *resolver, uint32_t line_idx, uint32_t func)
{
	const struct probe_line *line = &resolver->lines->items[line_idx];
	const struct program_function *function = program__function(resolver->program, func);
	struct probe_target target = {
		.line_idx = line_idx,
		.func = func,
		.module = function->module,
		.file_off = function->file_off,
		.name = function->shown,
		.by_glob = is_glob(line),
	};
	int err;

	if (function->is_ifunc)
		return resolver_refuse(
			resolver, -EINVAL,
			"'%.128s' of %s only chooses an implementation when the program starts: name that one",
			line->symbol, program__module(resolver->program, function->module)->name);
	err = check_go(resolver, line, program__module(resolver->program, function->module));
	if (err)
		return err;
	if (function->ambiguous && line->form == PROBE_SYMBOL_PLAIN)
		resolver_refuse(
			resolver, 0, "%s has several functions '%.128s': the one at 0x%" PRIx64 " is probed, no other",
			program__module(resolver->program, function->module)->name, line->symbol, function->addr);
	return vec_push(&resolver->out->targets, target);
}

static struct usdt_site *marker_copy(struct resolver *resolver, const struct usdt_site *site)
{
	struct usdt_site *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *site;
	copy->provider = strdup(site->provider);
	copy->name = strdup(site->name);
	if (copy->provider && copy->name && !vec_push(&resolver->out->markers, copy))
		return copy;
	free(copy->provider);
	free(copy->name);
	free(copy);
	return NULL;
}

static int marker_add(struct resolver *resolver, uint32_t line_idx, uint32_t module, const struct usdt_site *site)
{
	const struct resolver_module *known = &resolver->modules[module];
	const struct usdt_site *first = site;
	struct probe_target target = {
		.line_idx = line_idx,
		.module = module,
		.file_off = site->file_off,
		.by_glob = is_glob(&resolver->lines->items[line_idx]),
	};
	char *name;

	while (first > known->markers.items && !strcmp(first[-1].name, site->name) &&
	       !strcmp(first[-1].provider, site->provider))
		first--;
	target.func = known->marker_func + (first - known->markers.items);
	target.usdt = marker_copy(resolver, site);
	if (!target.usdt || asprintf(&name, "%s:%s", site->provider, site->name) < 0)
		return -ENOMEM;
	if (vec_push(&resolver->out->names, name)) {
		free(name);
		return -ENOMEM;
	}
	target.name = name;
	return vec_push(&resolver->out->targets, target);
}

static int targets_add(struct resolver *resolver, uint32_t line_idx, uint32_t module, const struct finding *finding)
{
	const struct probe_line *line = &resolver->lines->items[line_idx];
	size_t cnt = finding_cnt(finding);
	int err = refuse_overloads(resolver, line, finding);

	if (err)
		return err;
	resolver->out->verdicts.items[line_idx].found = cnt;
	if (cnt > PROBE_GLOB_MAX)
		return resolver_refuse(resolver, -E2BIG, "'%.128s' is %zu functions of %s: at most %d are taken",
				       line->symbol, cnt, program__module(resolver->program, module)->name,
				       PROBE_GLOB_MAX);
	if (cnt > TARGETS_MAX - resolver->out->targets.cnt)
		return resolver_refuse(resolver, -E2BIG, "with '%.128s' the list names more than %d functions",
				       line->symbol, TARGETS_MAX);
	for (size_t i = 0; i < finding->functions.cnt && !err; i++)
		err = function_add(resolver, line_idx, finding->functions.items[i]);
	for (size_t i = 0; i < finding->markers.cnt && !err; i++)
		err = marker_add(resolver, line_idx, module, finding->markers.items[i]);
	return err;
}

/* The first module that has it, the executable before the libraries; PROGRAM_NONE. */
static int find_module(struct resolver *resolver, const struct probe_line *line, uint32_t only, bool by_cxx,
		       struct finding *finding, uint32_t *found)
{
	uint32_t first = only == PROGRAM_NONE ? 0 : only, end = only == PROGRAM_NONE ? resolver->module_cnt : only + 1;
	int err = 0;

	*found = PROGRAM_NONE;
	for (uint32_t i = first; i < end && !err && *found == PROGRAM_NONE; i++) {
		if (!is_searched(resolver, i, only != PROGRAM_NONE))
			continue;
		err = match_in(resolver, line, i, by_cxx, finding);
		if (!err && finding_cnt(finding))
			*found = i;
	}
	if (!err && only == PROGRAM_NONE && *found != PROGRAM_NONE && *found)
		err = refuse_two_modules(resolver, line, *found, by_cxx);
	return err;
}

/* Of the executable, unless a module is named. */
static int address_add(struct resolver *resolver, uint32_t line_idx, uint32_t only)
{
	const struct probe_line *line = &resolver->lines->items[line_idx];
	uint32_t module = only == PROGRAM_NONE ? 0 : only, func;
	const char *name = program__module(resolver->program, module)->name;
	uint64_t addr;

	if (!probe_symbol_address(line->symbol, &addr))
		return -EINVAL;
	if (line->form == PROBE_SYMBOL_PLACE)
		return resolver_place_add(resolver, line_idx, module, addr);
	func = program__function_at(resolver->program, module, addr);
	if (func == PROGRAM_NONE || program__function(resolver->program, func)->addr != addr)
		return resolver_refuse(resolver, -ENOENT,
				       "no function of %.100s begins at 0x%" PRIx64
				       "; of an instruction an expression names a register",
				       name, addr);
	resolver->out->verdicts.items[line_idx].found = 1;
	return function_add(resolver, line_idx, func);
}

static int resolve_line(struct resolver *resolver, uint32_t line_idx)
{
	const struct probe_line *line = &resolver->lines->items[line_idx];
	uint32_t only = PROGRAM_NONE, module;
	struct finding finding = {0};
	int err = 0;

	if (line->module) {
		only = program__module_find(resolver->program, line->module);
		if (only == PROGRAM_NONE && line->module[0] == '/')
			only = program__module_await(resolver->program, line->module);
		if (only == PROGRAM_NONE || only >= resolver->module_cnt)
			return resolver_explain_module(resolver, line);
	}
	if (line->form == PROBE_SYMBOL_ADDRESS || line->form == PROBE_SYMBOL_PLACE)
		return address_add(resolver, line_idx, only);
	if (is_glob(line) && ++resolver->glob_cnt > GLOB_LINES_MAX)
		return resolver_refuse(resolver, -E2BIG, "more than %d globs in one list", GLOB_LINES_MAX);
	err = find_module(resolver, line, only, false, &finding, &module);
	if (!err && module == PROGRAM_NONE && line->form == PROBE_SYMBOL_PLAIN)
		err = find_module(resolver, line, only, true, &finding, &module);
	if (!err && module == PROGRAM_NONE)
		err = resolver_explain(resolver, line, only);
	else if (!err)
		err = targets_add(resolver, line_idx, module, &finding);
	if (!err && !resolver->why[0] && program__module(resolver->program, module)->awaited)
		resolver_refuse(resolver, 0, "%.500s is not loaded yet: '%.128s' is probed from the moment it is",
				line->module, line->symbol);
	finding_free(&finding);
	return err;
}

/* --- the list ---------------------------------------------------------------------------------------------------- */

static void resolver_free(struct resolver *resolver)
{
	for (uint32_t i = 0; i < resolver->module_cnt && resolver->modules; i++) {
		cxx_index_free(&resolver->modules[i].cxx);
		usdt_sites_free(&resolver->modules[i].markers);
		elf_file__free(resolver->modules[i].elf);
	}
	free(resolver->modules);
}

static int resolve_lines(struct resolver *resolver)
{
	struct probe_targets *out = resolver->out;
	int err = 0;

	for (uint32_t i = 0; i < resolver->lines->cnt && !err; i++) {
		size_t before = out->targets.cnt;
		struct probe_verdict *verdict;

		if (vec_push(&out->verdicts, (struct probe_verdict){0}))
			return -ENOMEM;
		resolver->why[0] = '\0';
		err = resolve_line(resolver, i);
		if (err == -ENOMEM)
			return err;
		verdict = &out->verdicts.items[i];
		verdict->err = err;
		if (err)
			out->targets.cnt = before;
		if (resolver->why[0] && !(verdict->why = strdup(resolver->why)))
			return -ENOMEM;
		err = 0;
	}
	return err;
}

/* Modules that are named by a path may be yet to come. */
static void await_modules(const probe_lines *lines, struct program *program)
{
	for (size_t i = 0; i < lines->cnt; i++) {
		const char *module = lines->items[i].module;

		/* Whoever looks for it says why it is not there. */
		if (module && module[0] == '/' && program__module_find(program, module) == PROGRAM_NONE)
			(void)program__module_await(program, module);
	}
}

int probe_targets_find(const probe_lines *lines, struct program *program, struct probe_targets *targets)
{
	struct resolver resolver = {
		.program = program,
		.lines = lines,
		.out = targets,
	};
	int err;

	await_modules(lines, program);
	resolver.module_cnt = program__module_cnt(program);
	resolver.modules = calloc(resolver.module_cnt, sizeof(*resolver.modules));
	err = resolver.modules ? resolve_lines(&resolver) : -ENOMEM;
	if (!err)
		err = resolver_plan(&resolver);
	resolver_free(&resolver);
	/* Names and notes were many small pieces, and whoever records stays for long. */
	malloc_trim(0);
	if (err)
		probe_targets_free(targets);
	return err;
}

void probe_targets_free(struct probe_targets *targets)
{
	for (size_t i = 0; i < targets->verdicts.cnt; i++)
		free(targets->verdicts.items[i].why);
	for (size_t i = 0; i < targets->plans.cnt; i++) {
		plan_free(targets->plans.items[i]);
		free(targets->plans.items[i]);
	}
	for (size_t i = 0; i < targets->markers.cnt; i++) {
		free(targets->markers.items[i]->provider);
		free(targets->markers.items[i]->name);
		free(targets->markers.items[i]);
	}
	for (size_t i = 0; i < targets->names.cnt; i++)
		free(targets->names.items[i]);
	vec_free(&targets->targets);
	vec_free(&targets->verdicts);
	vec_free(&targets->plans);
	vec_free(&targets->markers);
	vec_free(&targets->names);
}
