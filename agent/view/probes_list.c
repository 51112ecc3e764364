// SPDX-License-Identifier: GPL-2.0-or-later
/* The functions and markers that there are. */
#include "base/exit_code.h"
#include "base/log.h"
#include "probe/cxx_name.h"
#include "view/json_put.h"
#include "view/probes.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 4096 /* names are there to be copied: never shortened */

static const char *const source_names[FUNCTION_SOURCE_CNT] = {
	[FUNCTION_SYMTAB] = "symtab",       [FUNCTION_DYNSYM] = "dynsym",     [FUNCTION_DEBUGDATA] = "debugdata",
	[FUNCTION_DEBUGFILE] = "debugfile", [FUNCTION_EH_FRAME] = "eh_frame",
};

/* One SYMBOL of the command line. */
struct filter {
	uint32_t module; /* PROGRAM_NONE: any */
	const char *pattern;
	struct cxx_name cxx;
	bool marker;
	bool matched;
	bool by_address; /* the function that begins at addr, of the executable where no module is named */
	uint64_t addr;
};

struct listing {
	const struct probes_options *options;
	struct program *program;
	struct filter *filters;
	struct page page;
	struct json_doc doc;
	struct json_object *functions, *markers;
	size_t nameless; /* left out */
	size_t cnt;
};

static int filters_make(struct listing *listing)
{
	const struct probes_options *options = listing->options;

	listing->filters = calloc(options->arg_cnt + 1, sizeof(*listing->filters));
	if (!listing->filters)
		return -ENOMEM;
	for (size_t i = 0; i < options->arg_cnt; i++) {
		struct filter *filter = &listing->filters[i];
		probe_lines lines = {0};
		char *line;
		int err;

		if (asprintf(&line, "acquire %s", options->args[i]) < 0)
			return -ENOMEM;
		err = symbol_list_add("argument", line, &lines);
		free(line);
		if (err)
			return err;
		filter->module = PROGRAM_NONE;
		filter->marker = lines.items[0].form == PROBE_SYMBOL_USDT;
		filter->by_address = lines.items[0].form == PROBE_SYMBOL_ADDRESS &&
				     probe_symbol_address(lines.items[0].symbol, &filter->addr);
		filter->pattern = strstr(options->args[i], lines.items[0].symbol);
		if (filter->marker)
			filter->pattern += strlen("usdt:");
		if (lines.items[0].module) {
			filter->module = program__module_find(listing->program, lines.items[0].module);
			if (filter->module == PROGRAM_NONE) {
				log_error("there is no module '%s' here", lines.items[0].module);
				err = -ENOENT;
			}
		}
		symbol_list_free(&lines);
		if (!err)
			err = cxx_name_make(filter->pattern, &filter->cxx);
		if (err)
			return err;
	}
	return 0;
}

/* A pattern means a raw name, a demangled one, or that without its arguments. */
static bool filter_passes(struct filter *filter, const struct program_function *function, const char *name)
{
	struct cxx_name cxx;
	bool passes;

	if (filter->marker || (filter->module != PROGRAM_NONE && filter->module != function->module))
		return false;
	if (filter->by_address)
		return function->addr == filter->addr && (filter->module != PROGRAM_NONE || !function->module);
	if (!fnmatch(filter->pattern, name, 0))
		return true;
	if (strncmp(name, "_Z", 2) || cxx_name_make(function->shown, &cxx))
		return false;
	passes = !fnmatch(filter->cxx.full, filter->cxx.has_args ? cxx.full : cxx.key, 0);
	cxx_name_free(&cxx);
	return passes;
}

static bool passes(struct listing *listing, const struct program_function *function, const char *name)
{
	bool any = !listing->options->arg_cnt;

	for (size_t i = 0; i < listing->options->arg_cnt; i++)
		if (filter_passes(&listing->filters[i], function, name))
			any = listing->filters[i].matched = true;
	return any;
}

static void put_hex(struct json_doc *doc, struct json_object *object, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	put_string(doc, object, key, text);
}

static void print_function(struct listing *listing, const struct program_function *function, const char *name)
{
	const char *shown = strncmp(name, "_Z", 2) ? name : function->shown;
	const char *module = probes_module_name(listing->program, function->module);
	struct page *page = &listing->page;
	struct json_object *object;
	char text[24];

	listing->cnt++;
	if (listing->functions) {
		object = append_object(&listing->doc, listing->functions);
		put_string(&listing->doc, object, "module", module);
		put_string(&listing->doc, object, "name", shown);
		put_string(&listing->doc, object, "symbol", name);
		put_hex(&listing->doc, object, "address", function->addr);
		put_hex(&listing->doc, object, "file_offset", function->file_off);
		put_count(&listing->doc, object, "size", function->size);
		put_string(&listing->doc, object, "source", source_names[function->source]);
		return;
	}
	page__name(page, module, 20);
	snprintf(text, sizeof(text), "0x%" PRIx64, function->addr);
	page__right(page, text, 33);
	snprintf(text, sizeof(text), "%" PRIu64, function->size);
	page__right(page, text, 41);
	page__to(page, 42);
	page__put(page, source_names[function->source]);
	page__to(page, 52);
	page__name(page, shown, NAME_COLUMNS);
	page__end_line(page);
}

static void print_marker(struct listing *listing, uint32_t module, const struct usdt_site *site)
{
	const char *module_name = probes_module_name(listing->program, module);
	struct page *page = &listing->page;
	struct json_object *object;
	char text[24];

	listing->cnt++;
	if (listing->markers) {
		object = append_object(&listing->doc, listing->markers);
		put_string(&listing->doc, object, "module", module_name);
		put_string(&listing->doc, object, "provider", site->provider);
		put_string(&listing->doc, object, "name", site->name);
		put_hex(&listing->doc, object, "address", site->addr);
		put_hex(&listing->doc, object, "file_offset", site->file_off);
		put_count(&listing->doc, object, "arguments", site->arg_cnt);
		put_bool(&listing->doc, object, "semaphore", site->semaphore_off != 0);
		return;
	}
	page__name(page, module_name, 20);
	snprintf(text, sizeof(text), "0x%" PRIx64, site->addr);
	page__right(page, text, 33);
	snprintf(text, sizeof(text), "%u args", site->arg_cnt);
	page__right(page, text, 41);
	page__to(page, 42);
	page__put(page, "usdt");
	page__to(page, 52);
	page__put(page, "usdt:");
	page__name(page, site->provider, NAME_COLUMNS);
	page__put(page, ":");
	page__name(page, site->name, NAME_COLUMNS);
	page__end_line(page);
}

static void list_functions(struct listing *listing, uint32_t module)
{
	const struct program_name *names;
	size_t cnt;
	int err = program__module_names(listing->program, module, &names, &cnt);

	if (err) {
		log_warn("the functions of %s cannot be read: %s", probes_module_name(listing->program, module),
			 strerror(-err));
		return;
	}
	for (size_t i = 0; i < cnt; i++) {
		const struct program_function *function = program__function(listing->program, names[i].function);

		if (!passes(listing, function, names[i].name))
			continue;
		if (function->source == FUNCTION_EH_FRAME && !listing->options->all)
			listing->nameless++;
		else
			print_function(listing, function, names[i].name);
	}
}

static void list_markers(struct listing *listing, uint32_t module)
{
	const char *file = program__module(listing->program, module)->file;
	usdt_sites sites = {0};

	if (!file || usdt_sites_read(file, &sites))
		return;
	for (size_t i = 0; i < sites.cnt; i++) {
		bool any = !listing->options->arg_cnt;
		char name[1024];

		snprintf(name, sizeof(name), "%s:%s", sites.items[i].provider, sites.items[i].name);
		for (size_t j = 0; j < listing->options->arg_cnt; j++) {
			struct filter *filter = &listing->filters[j];

			if (filter->marker && (filter->module == PROGRAM_NONE || filter->module == module) &&
			    !fnmatch(filter->pattern, name, 0))
				any = filter->matched = true;
		}
		if (any)
			print_marker(listing, module, &sites.items[i]);
	}
	usdt_sites_free(&sites);
}

/* Without a SYMBOL only the executable: the libraries of a server have more functions than anybody wants to see. */
static void list_all(struct listing *listing)
{
	uint32_t module_cnt = listing->options->arg_cnt ? program__module_cnt(listing->program) : 1;

	for (uint32_t i = 0; i < module_cnt; i++)
		list_functions(listing, i);
	for (uint32_t i = 0; i < module_cnt; i++)
		list_markers(listing, i);
}

/* What was left out is said, on stderr. */
static int say_rest(const struct listing *listing)
{
	const struct probes_options *options = listing->options;
	uint32_t module_cnt = program__module_cnt(listing->program);
	int code = EXIT_DONE;

	for (size_t i = 0; i < options->arg_cnt; i++)
		if (!listing->filters[i].matched) {
			log_error("nothing matches '%s'%s", options->args[i],
				  listing->nameless ? "" : ": globs want quotes, as in 'ap_*'");
			code = EXIT_FAILED;
		}
	if (listing->nameless)
		log_info("%zu functions without a name are left out: --all lists them", listing->nameless);
	if (!options->arg_cnt && module_cnt > 1)
		log_info("these are those of %s; there are %u libraries: '*' lists all, 'libc:*' those of one",
			 probes_module_name(listing->program, 0), module_cnt - 1);
	return code;
}

int probes_list(const struct probes_options *options, struct program *program)
{
	struct listing listing = {.options = options, .program = program};
	struct json_object *root = NULL;
	int code = EXIT_FAILED;

	if (filters_make(&listing))
		goto cleanup;
	if (options->json) {
		root = json_object_new_object();
		put_string(&listing.doc, root, "schema", "whylate.probes.list/1");
		listing.functions = put_array(&listing.doc, root, "functions");
		listing.markers = put_array(&listing.doc, root, "markers");
	} else {
		probes_page_open(&listing.page);
	}
	list_all(&listing);
	code = options->json ? probes_json_close(&listing.doc, root, EXIT_DONE)
			     : probes_page_close(&listing.page, EXIT_DONE);
	if (code == EXIT_DONE)
		code = say_rest(&listing);
cleanup:
	for (size_t i = 0; i < options->arg_cnt && listing.filters; i++)
		cxx_name_free(&listing.filters[i].cxx);
	free(listing.filters);
	return code;
}
