// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate values schema -e FILE`: the variables that a value sampler can read (vProf section 3). */
#include "cmd/values.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "values/schema.h"
#include "view/json_put.h"
#include "view/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: whylate values report DIR | --normal DIR… --slow DIR…   (see `whylate values report --help`)\n"
	"       whylate values schema -e FILE [--file GLOB] [--function GLOB] [--locations] [--all] [--json]\n"
	"Lists the variables of a binary with DWARF whose values can be sampled: globals, and locals that the machine "
	"code\n"
	"uses in a loop's exit, a conditional jump or a call.\n"
	"  -e, --exe FILE        the binary; a separate debug file is found by its build id\n"
	"      --file GLOB       only variables declared in such source files\n"
	"      --function GLOB   only variables of such functions\n"
	"      --locations       where each variable is, by program counter\n"
	"      --all             locals without a tag, too\n"
	"      --debuginfo DIR   debug files are searched there first\n"
	"      --json            schema whylate.values.schema/1\n";

struct values_options {
	struct value_schema_opts schema;
	bool json, locations;
};

static const struct {
	uint8_t tag;
	const char *name;
} tags[] = {
	{VALUE_TAG_GLOBAL, "global"},
	{VALUE_TAG_LOOP, "loop"},
	{VALUE_TAG_COND, "cond"},
	{VALUE_TAG_ARGS, "args"},
};

static const char *const places[] = {
	[VALUE_IN_REGISTER] = "register", [VALUE_IS_SUM] = "sum",         [VALUE_AT_REGISTER] = "register+offset",
	[VALUE_AT_CFA] = "cfa+offset",    [VALUE_AT_ADDRESS] = "address",
};

static void tag_text(uint8_t set, char *text, size_t sz)
{
	*text = '\0';
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (set & tags[i].tag)
			snprintf(text + strlen(text), sz - strlen(text), "%s%s", *text ? "," : "", tags[i].name);
}

static void print_location(const struct value_location *location, const struct value_variable *variable)
{
	char where[64];

	if (location->place == VALUE_IN_REGISTER)
		snprintf(where, sizeof(where), "reg%u", location->reg);
	else if (location->place == VALUE_IS_SUM)
		snprintf(where, sizeof(where), "=reg%u%+" PRId64, location->reg, location->off);
	else if (location->place == VALUE_AT_REGISTER)
		snprintf(where, sizeof(where), "reg%u%+" PRId64, location->reg, location->off);
	else if (location->place == VALUE_AT_CFA)
		snprintf(where, sizeof(where), "cfa%+" PRId64, location->off);
	else
		snprintf(where, sizeof(where), "%#" PRIx64, (uint64_t)location->off);
	if (location->pc_end == UINT64_MAX)
		printf("    everywhere  %s", where);
	else
		printf("    %#" PRIx64 ":%#" PRIx64 "  %s", location->pc_begin, location->pc_end, where);
	if (variable->member_off >= 0)
		printf(" -> %+d", variable->member_off);
	printf("  size %u\n", variable->size);
}

static int print_text(const struct value_schema *schema, const struct values_options *options)
{
	for (size_t i = 0; i < schema->variables.cnt; i++) {
		const struct value_variable *variable = &schema->variables.items[i];
		char text[64];

		tag_text(variable->tags, text, sizeof(text));
		printf("%s:%u  %s%s%s  %s  %s  %s\n", variable->file, variable->line, variable->function,
		       variable->inlined ? " < " : "", variable->inlined ? variable->inlined : "", variable->name,
		       variable->type, *text ? text : "-");
		for (uint32_t l = 0; options->locations && l < variable->location_cnt; l++)
			print_location(&schema->locations.items[variable->first_location + l], variable);
	}
	fprintf(stderr, "%zu variables of %zu functions in %zu units; left out:", schema->variables.cnt,
		schema->functions, schema->units);
	for (int i = 0; i < VALUE_SKIP_CNT; i++)
		if (schema->skipped[i])
			fprintf(stderr, " %zu %s;", schema->skipped[i], value_skip_names[i]);
	fprintf(stderr, "\n");
	if (schema->no_code_tags)
		fprintf(stderr, "machine code of this architecture is not analysed: locals have no tags\n");
	return ferror(stdout) ? -EIO : 0;
}

static void put_locations(struct json_doc *doc, struct json_object *object, const struct value_schema *schema,
			  const struct value_variable *variable)
{
	struct json_object *list = put_array(doc, object, "locations");

	for (uint32_t l = 0; l < variable->location_cnt; l++) {
		const struct value_location *location = &schema->locations.items[variable->first_location + l];
		struct json_object *row = append_object(doc, list);
		bool everywhere = location->pc_end == UINT64_MAX;

		put(doc, row, "pc_start", everywhere ? NULL : json_object_new_uint64(location->pc_begin), everywhere);
		put(doc, row, "pc_end", everywhere ? NULL : json_object_new_uint64(location->pc_end), everywhere);
		put_string(doc, row, "location", places[location->place]);
		put(doc, row, "register",
		    location->place <= VALUE_AT_REGISTER ? json_object_new_int(location->reg) : NULL,
		    location->place > VALUE_AT_REGISTER);
		put(doc, row, "offset", json_object_new_int64(location->off), false);
	}
}

static int print_json(const struct value_schema *schema)
{
	struct json_doc doc = {0};
	struct json_object *root = json_object_new_object(), *list, *left;

	put_string(&doc, root, "schema", "whylate.values.schema/1");
	put_string(&doc, root, "build_id", *schema->build_id ? schema->build_id : NULL);
	left = put_object(&doc, root, "left_out");
	for (int i = 0; i < VALUE_SKIP_CNT; i++)
		put(&doc, left, value_skip_names[i], json_object_new_uint64(schema->skipped[i]), false);
	list = put_array(&doc, root, "variables");
	for (size_t i = 0; i < schema->variables.cnt && !doc.err; i++) {
		const struct value_variable *variable = &schema->variables.items[i];
		struct json_object *row = append_object(&doc, list), *array;
		bool member = variable->member_off >= 0;

		put_string(&doc, row, "file", variable->file);
		put_string(&doc, row, "function", *variable->function ? variable->function : NULL);
		put_string(&doc, row, "inlined", variable->inlined);
		put(&doc, row, "line", json_object_new_int64(variable->line), false);
		put_string(&doc, row, "variable", variable->name);
		put_string(&doc, row, "type", variable->type);
		put_string(&doc, row, "kind", value_type_names[variable->kind]);
		put(&doc, row, "size", json_object_new_int(variable->size), false);
		put(&doc, row, "is_pointer", json_object_new_boolean(variable->kind == VALUE_POINTER), false);
		put(&doc, row, "member_offset", member ? json_object_new_int(variable->member_off) : NULL, !member);
		array = put_array(&doc, row, "tags");
		for (size_t t = 0; t < sizeof(tags) / sizeof(tags[0]); t++)
			if (variable->tags & tags[t].tag)
				append(&doc, array, json_object_new_string(tags[t].name), false);
		put_locations(&doc, row, schema, variable);
	}
	if (!doc.err)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	json_object_put(root);
	return doc.err;
}

static int schema_run(const struct values_options *options)
{
	struct value_schema schema;
	int err = value_schema_make(&schema, &options->schema);

	if (err == -ENODATA)
		log_error("'%s' has no debugging information, and no separate debug file of its build id was found: "
			  "compile it with -g, or install its -dbgsym package",
			  options->schema.path);
	else if (err == -ENOEXEC)
		log_error("'%s' is not an ELF file of this machine", options->schema.path);
	else if (err)
		log_error("cannot read the variables of '%s': %s", options->schema.path, strerror(-err));
	if (!err) {
		err = options->json ? print_json(&schema) : print_text(&schema, options);
		if (err)
			log_error("cannot write the schema: %s", strerror(-err));
	}
	value_schema_free(&schema);
	return err ? EXIT_FAILED : EXIT_DONE;
}

#define O struct values_options
static const struct option_row rows[] = {
	OPTION_TEXT("exe", 'e', O, schema.path),
	OPTION_TEXT("file", 0, O, schema.file),
	OPTION_TEXT("function", 0, O, schema.function),
	OPTION_FLAG("locations", 0, O, locations),
	OPTION_FLAG("all", 0, O, schema.all_locals),
	OPTION_TEXT("debuginfo", 0, O, schema.debuginfo_dir),
	OPTION_FLAG("json", 0, O, json),
};
#undef O

int cmd_values(int argc, char **argv)
{
	struct values_options options = {0};
	const struct option_group groups[] = {OPTION_GROUP(rows, &options, help)};
	int code;

	if (argc > 1 && !strcmp(argv[1], "report"))
		return values_report_run(argc - 1, argv + 1, "values");
	code = OPTIONS_TAKE("values", groups, argc, argv);
	if (code != OPTIONS_GO_ON)
		return code;
	if (optind == argc || strcmp(argv[optind], "schema"))
		return usage_error("values", "%s%s%s: the questions are 'schema' and 'report'",
				   optind == argc ? "no question" : "'", optind == argc ? "" : argv[optind],
				   optind == argc ? "" : "'");
	if (optind + 1 < argc)
		return usage_error("values", "'%s' is one argument too many", argv[optind + 1]);
	if (!options.schema.path)
		return usage_error("values", "-e FILE is missing: the binary whose variables are listed");
	return schema_run(&options);
}
