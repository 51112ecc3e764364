// SPDX-License-Identifier: GPL-2.0-or-later
/* The key "values": functions by calibrated cost and their variables; null where no values were recorded. */
#include "analysis/value_rank.h"
#include "view/json_put.h"
#include "view/values.h"

#define VARIABLES_MAX 200

static const char *const dimensions[VALUE_DIM_CNT] = {
	[VALUE_DIM_VALUE] = "value", [VALUE_DIM_DELTA] = "delta", [VALUE_DIM_COST] = "processing_cost"};

const char *const value_pattern_names[VALUE_PATTERN_CNT] = {
	[VALUE_PATTERN_MISSING_CONSTRAINT] = "missing_constraint",
	[VALUE_PATTERN_SCALABILITY] = "scalability",
	[VALUE_PATTERN_WRONG_CONSTRAINT] = "wrong_constraint",
	[VALUE_PATTERN_SCALABILITY_BY_DEFAULT] = "scalability_by_default",
};

static const char *const discounts[] = {
	[VALUE_BY_NOTHING] = NULL, [VALUE_BY_VARIABLE] = "variable", [VALUE_BY_RANKS] = "ranks"};

void json_put_value(struct json_doc *doc, struct json_object *line, const struct value_line *from)
{
	static const char *const kinds[VALUE_TYPE_CNT] = VALUE_TYPE_NAMES;
	static const char *const tag_names[VALUE_TAG_CNT] = VALUE_TAG_NAMES;
	struct json_object *tags, *where;

	if (!from)
		return;
	put_string(doc, line, "variable", from->variable);
	put_string(doc, line, "function", from->function);
	put_string(doc, line, "inlined", from->inlined);
	put_string(doc, line, "module", from->module);
	put_string(doc, line, "file", from->file);
	put_count(doc, line, "line", from->line);
	put_string(doc, line, "type", from->type);
	put_string(doc, line, "kind", kinds[from->kind]);
	tags = put_array(doc, line, "tags");
	for (int t = 0; t < VALUE_TAG_CNT; t++)
		if (from->tags >> t & 1)
			append(doc, tags, json_object_new_string(tag_names[t]), false);
	put_number(doc, line, "discount", from->ratio);
	put_string(doc, line, "dimension", dimensions[from->dimension]);
	put_number(doc, line, "typical_lo", from->typical_lo);
	put_number(doc, line, "typical_hi", from->typical_hi);
	put_number(doc, line, "late_median", from->late_median);
	put_number(doc, line, "beyond_share", from->beyond_share);
	put_count(doc, line, "typical_samples", from->typical_cnt);
	put_count(doc, line, "late_samples", from->late_cnt);
	where = put_object(doc, line, "where");
	put_string(doc, where, "function", from->where_function);
	put_string(doc, where, "file", from->where_file);
	put(doc, where, "line", from->where_line ? json_object_new_int64(from->where_line) : NULL, !from->where_line);
	put_number(doc, line, "exponent", from->exponent);
	put_ci(doc, line, "exponent_ci", from->exponent_ci);
	put_number(doc, line, "explained", from->explained);
}

void json_put_value_report(struct json_doc *doc, struct json_object *object, const struct value_report *from)
{
	struct json_object *list;

	if (!from)
		return;
	put_string(doc, object, "compared",
		   from->by_recording ? "slow and normal recordings" : "late and typical intervals");
	put_number(doc, object, "late_from_ns", from->late_from_ns);
	put_count(doc, object, "late_samples", from->late_cnt);
	put_count(doc, object, "typical_samples", from->typical_cnt);
	list = put_array(doc, object, "functions");
	for (size_t f = 0; f < from->function_cnt; f++) {
		const struct value_function_line *function = &from->functions[f];
		struct json_object *line = append_object(doc, list);

		put_count(doc, line, "rank", f + 1);
		put_string(doc, line, "function", function->function);
		put_number(doc, line, "cost", function->cost);
		put_number(doc, line, "pc_cost", function->pc_cost);
		put_number(doc, line, "variable_cost", function->variable_cost);
		put_number(doc, line, "discount", function->ratio);
		put_string(doc, line, "discounted_by", discounts[function->by]);
		put_number(doc, line, "calibrated_cost", function->calibrated);
		put_string(doc, line, "pattern", value_pattern_names[function->pattern]);
		json_put_value(doc, put_known_object(doc, line, "value", function->value), function->value);
	}
	list = put_array(doc, object, "variables");
	for (size_t v = 0; v < from->variable_cnt && v < VARIABLES_MAX; v++)
		json_put_value(doc, append_object(doc, list), &from->variables[v]);
}

void json_put_values(struct json_doc *doc, struct json_object *root, const struct report *report)
{
	json_put_value_report(doc, put_known_object(doc, root, "values", report->values), report->values);
}

int view_values_json(FILE *out, const struct value_report *report)
{
	struct json_object *root = json_object_new_object();
	struct json_doc doc = {0};

	put_string(&doc, root, "schema", "whylate.values/1");
	json_put_value_report(&doc, root, report);
	return json_finish(out, &doc, root, JSON_C_TO_STRING_PRETTY);
}
