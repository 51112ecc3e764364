// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema.h"

#include "base/order.h"

#include <errno.h>
#include <string.h>

const char *const value_skip_names[VALUE_SKIP_CNT] = {
#define VALUE_SKIP(id, name) [VALUE_SKIP_##id] = name,
#include "values/skip.def"
};

const char *const value_type_names[VALUE_TYPE_CNT] = VALUE_TYPE_NAMES;

int value_schema_begin(struct value_schema *schema)
{
	memset(schema, 0, sizeof(*schema));
	schema->build_id = "";
	schema->arena = arena__new();
	schema->strings.arena = schema->arena;
	return schema->arena ? 0 : -ENOMEM;
}

void value_schema_frame(const struct value_schema *schema, uint64_t pc, struct value_frame_rule *rule)
{
	const struct value_frame_rule *frames = schema->frames.items;
	size_t behind = search_first(0, schema->frames.cnt, mid, frames[mid].begin > pc);

	if (behind && pc < frames[behind - 1].end)
		*rule = frames[behind - 1];
	else
		*rule = (struct value_frame_rule){.begin = pc, .end = pc + 1};
}

void value_schema_free(struct value_schema *schema)
{
	vec_free(&schema->variables);
	vec_free(&schema->locations);
	vec_free(&schema->frames);
	intern__free(&schema->strings);
	arena__free(schema->arena);
	memset(schema, 0, sizeof(*schema));
}
