// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema.h"
#include "view/json_put.h"
#include "view/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	uint8_t tag;
	const char *name;
} tags[] = {
	{VALUE_TAG_GLOBAL, "global"}, {VALUE_TAG_LOOP, "loop"}, {VALUE_TAG_COND, "cond"},
	{VALUE_TAG_ARGS, "args"},     {VALUE_TAG_STEP, "step"},
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

static void print_location(FILE *out, const struct value_location *location, const struct value_variable *variable)
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
		fprintf(out, "    everywhere  %s", where);
	else
		fprintf(out, "    %#" PRIx64 ":%#" PRIx64 "  %s", location->pc_begin, location->pc_end, where);
	if (variable->member_off >= 0)
		fprintf(out, " -> %+d", variable->member_off);
	fprintf(out, "  size %u\n", variable->size);
}

int view_value_schema_text(FILE *out, const struct value_schema *schema, bool locations)
{
	for (size_t i = 0; i < schema->variables.cnt; i++) {
		const struct value_variable *variable = &schema->variables.items[i];
		char text[64];

		tag_text(variable->tags, text, sizeof(text));
		fprintf(out, "%s:%u  %s%s%s  %s  %s  %s\n", variable->file, variable->line, variable->function,
			variable->inlined ? " < " : "", variable->inlined ? variable->inlined : "", variable->name,
			variable->type, *text ? text : "-");
		for (uint32_t l = 0; locations && l < variable->location_cnt; l++)
			print_location(out, &schema->locations.items[variable->first_location + l], variable);
	}
	fprintf(stderr, "%zu variables of %zu functions in %zu units; left out:", schema->variables.cnt,
		schema->functions, schema->units);
	for (int i = 0; i < VALUE_SKIP_CNT; i++)
		if (schema->skipped[i])
			fprintf(stderr, " %zu %s;", schema->skipped[i], value_skip_names[i]);
	fprintf(stderr, "\n");
	if (schema->no_code_tags)
		fprintf(stderr, "machine code of this architecture is not analysed: locals have no tags\n");
	return ferror(out) ? -EIO : 0;
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

int view_value_schema_json(FILE *out, const struct value_schema *schema)
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
	return json_finish(out, &doc, root, JSON_C_TO_STRING_PRETTY);
}
