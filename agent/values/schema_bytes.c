// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_bytes.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

#define NO_TEXT UINT32_MAX
/* DWARF's registers that a place may be in. */
#define REGISTERS 64
#define TAGS_ALL  ((1U << VALUE_TAG_CNT) - 1)

/* The head, the variables, the locations, the frames, the texts. */
struct head {
	char magic[8];
	uint64_t checksum; /* of what follows */
	uint64_t variable_cnt, location_cnt, frame_cnt, text_sz;
	uint64_t functions, units;
	uint64_t skipped[VALUE_SKIP_CNT];
	uint64_t no_code_tags;
};

/* To be changed with any of these structs, and with what a schema has. */
static const char magic[8] = "wlschem5";

struct kept_variable {
	uint32_t file, function, name, type, inlined; /* offsets into the texts */
	uint32_t line, first_location, location_cnt;
	int32_t member_off;
	uint8_t size, kind, tags, zero;
};

struct kept_location {
	uint64_t pc_begin, pc_end;
	int64_t off;
	uint8_t place, reg, zero[6];
};

struct kept_frame {
	uint64_t begin, end;
	int64_t off;
	uint8_t reg, known, zero[6];
};

_Static_assert(sizeof(struct kept_variable) == 40 && sizeof(struct kept_location) == 32 &&
		       sizeof(struct kept_frame) == 32,
	       "no padding");

/* --- taking ------------------------------------------------------------------------------------------------------- */

static uint64_t checksum_of(const uint8_t *bytes, size_t sz)
{
	const size_t begin = offsetof(struct head, variable_cnt);

	return fnv1a(0, bytes + begin, sz - begin);
}

static bool is_sound(const struct head *head, const uint8_t *bytes, size_t sz)
{
	uint64_t expected = sizeof(*head);

	if (sz < sizeof(*head) || sz > SCHEMA_SZ_MAX || memcmp(head->magic, magic, sizeof(magic)))
		return false;
	if (head->variable_cnt > SCHEMA_SZ_MAX || head->location_cnt > SCHEMA_SZ_MAX ||
	    head->frame_cnt > SCHEMA_SZ_MAX || head->text_sz > SCHEMA_SZ_MAX || !head->text_sz ||
	    head->no_code_tags > 1)
		return false;
	expected += head->variable_cnt * sizeof(struct kept_variable) +
		    head->location_cnt * sizeof(struct kept_location) + head->frame_cnt * sizeof(struct kept_frame) +
		    head->text_sz;
	return expected == sz && !bytes[sz - 1] && head->checksum == checksum_of(bytes, sz);
}

static int take_location(struct value_schema *schema, const struct kept_location *kept)
{
	struct value_location location = {.pc_begin = kept->pc_begin,
					  .pc_end = kept->pc_end,
					  .off = kept->off,
					  .place = kept->place,
					  .reg = kept->reg};

	if (kept->place > VALUE_AT_ADDRESS || kept->pc_begin >= kept->pc_end || kept->reg >= REGISTERS)
		return -EBADMSG;
	return vec_push(&schema->locations, location);
}

/* Ascending and disjoint. */
static int take_frame(struct value_schema *schema, const struct kept_frame *kept)
{
	struct value_frame_rule rule = {
		.begin = kept->begin, .end = kept->end, .off = kept->off, .reg = kept->reg, .known = kept->known};

	if (kept->begin >= kept->end || kept->known > 1 || kept->reg >= REGISTERS ||
	    (schema->frames.cnt && kept->begin < schema->frames.items[schema->frames.cnt - 1].end))
		return -EBADMSG;
	return vec_push(&schema->frames, rule);
}

static int take_variable(struct value_schema *schema, const struct kept_variable *kept, const char *texts,
			 const struct head *head)
{
	struct value_variable variable = {.line = kept->line,
					  .first_location = kept->first_location,
					  .location_cnt = kept->location_cnt,
					  .member_off = kept->member_off,
					  .size = kept->size,
					  .kind = kept->kind,
					  .tags = kept->tags};

	if (kept->file >= head->text_sz || kept->function >= head->text_sz || kept->name >= head->text_sz ||
	    kept->type >= head->text_sz || (kept->inlined >= head->text_sz && kept->inlined != NO_TEXT))
		return -EBADMSG;
	if ((kept->size != 1 && kept->size != 2 && kept->size != 4 && kept->size != 8) ||
	    kept->kind >= VALUE_TYPE_CNT || kept->tags & ~TAGS_ALL || kept->member_off < -1 || !kept->location_cnt ||
	    (uint64_t)kept->first_location + kept->location_cnt > head->location_cnt)
		return -EBADMSG;
	variable.file = texts + kept->file;
	variable.function = texts + kept->function;
	variable.name = texts + kept->name;
	variable.type = texts + kept->type;
	variable.inlined = kept->inlined == NO_TEXT ? NULL : texts + kept->inlined;
	return vec_push(&schema->variables, variable);
}

static int take_rows(struct value_schema *schema, const struct head *head)
{
	const struct kept_variable *variables = (const struct kept_variable *)(head + 1);
	const struct kept_location *locations = (const struct kept_location *)(variables + head->variable_cnt);
	const struct kept_frame *frames = (const struct kept_frame *)(locations + head->location_cnt);
	char *texts = arena__alloc(schema->arena, head->text_sz, 1);
	int err = texts ? 0 : -ENOMEM;

	if (!err &&
	    (vec_reserve(&schema->variables, head->variable_cnt) ||
	     vec_reserve(&schema->locations, head->location_cnt) || vec_reserve(&schema->frames, head->frame_cnt)))
		err = -ENOMEM;
	if (!err)
		memcpy(texts, frames + head->frame_cnt, head->text_sz);
	for (size_t l = 0; l < head->location_cnt && !err; l++)
		err = take_location(schema, &locations[l]);
	for (size_t f = 0; f < head->frame_cnt && !err; f++)
		err = take_frame(schema, &frames[f]);
	for (size_t v = 0; v < head->variable_cnt && !err; v++)
		err = take_variable(schema, &variables[v], texts, head);
	return err;
}

int schema_bytes_take(struct value_schema *schema, const void *bytes, size_t sz)
{
	const struct head *head = bytes;
	int err = is_sound(head, bytes, sz) ? take_rows(schema, head) : -EBADMSG;

	if (err) {
		vec_free(&schema->variables);
		vec_free(&schema->locations);
		vec_free(&schema->frames);
		return err;
	}
	schema->functions = head->functions;
	schema->units = head->units;
	schema->no_code_tags = head->no_code_tags;
	for (int s = 0; s < VALUE_SKIP_CNT; s++)
		schema->skipped[s] = head->skipped[s];
	return 0;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

struct texts {
	VEC(char) bytes;
	struct idmap offs; /* (address of an interned text, 0) → number, by … */
	VEC(uint32_t) by_number;
	bool failed;
};

static uint32_t text_off(struct texts *texts, const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	uint32_t number = 0, off = (uint32_t)texts->bytes.cnt;

	if (!text || texts->failed)
		return NO_TEXT;
	texts->failed = idmap__id(&texts->offs, (uintptr_t)text, 0, &number);
	if (!texts->failed && number < texts->by_number.cnt)
		return texts->by_number.items[number];
	texts->failed = texts->failed || texts->bytes.cnt + len > SCHEMA_SZ_MAX || vec_reserve(&texts->bytes, len) ||
			vec_push(&texts->by_number, off);
	if (texts->failed)
		return NO_TEXT;
	memcpy(texts->bytes.items + texts->bytes.cnt, text, len);
	texts->bytes.cnt += len;
	return off;
}

static int append(schema_bytes *bytes, const void *more, size_t sz)
{
	if (vec_reserve(bytes, sz))
		return -ENOMEM;
	memcpy(bytes->items + bytes->cnt, more, sz);
	bytes->cnt += sz;
	return 0;
}

static int put_variables(schema_bytes *bytes, struct texts *texts, const struct value_schema *schema)
{
	int err = 0;

	for (size_t v = 0; v < schema->variables.cnt && !err; v++) {
		const struct value_variable *variable = &schema->variables.items[v];
		struct kept_variable kept = {.file = text_off(texts, variable->file),
					     .function = text_off(texts, variable->function),
					     .name = text_off(texts, variable->name),
					     .type = text_off(texts, variable->type),
					     .inlined = text_off(texts, variable->inlined),
					     .line = variable->line,
					     .first_location = variable->first_location,
					     .location_cnt = variable->location_cnt,
					     .member_off = variable->member_off,
					     .size = variable->size,
					     .kind = variable->kind,
					     .tags = variable->tags};

		err = texts->failed ? -ENOMEM : append(bytes, &kept, sizeof(kept));
	}
	return err;
}

static int put_rows(schema_bytes *bytes, struct texts *texts, const struct value_schema *schema)
{
	int err = put_variables(bytes, texts, schema);

	for (size_t l = 0; l < schema->locations.cnt && !err; l++) {
		const struct value_location *location = &schema->locations.items[l];
		struct kept_location kept = {.pc_begin = location->pc_begin,
					     .pc_end = location->pc_end,
					     .off = location->off,
					     .place = location->place,
					     .reg = location->reg};

		err = append(bytes, &kept, sizeof(kept));
	}
	for (size_t f = 0; f < schema->frames.cnt && !err; f++) {
		const struct value_frame_rule *rule = &schema->frames.items[f];
		struct kept_frame kept = {.begin = rule->begin,
					  .end = rule->end,
					  .off = rule->off,
					  .reg = rule->reg,
					  .known = rule->known};

		err = append(bytes, &kept, sizeof(kept));
	}
	return err ? err : append(bytes, texts->bytes.items, texts->bytes.cnt);
}

int schema_bytes_make(const struct value_schema *schema, schema_bytes *bytes)
{
	struct head head = {.variable_cnt = schema->variables.cnt,
			    .location_cnt = schema->locations.cnt,
			    .frame_cnt = schema->frames.cnt,
			    .functions = schema->functions,
			    .units = schema->units,
			    .no_code_tags = schema->no_code_tags};
	struct texts texts = {.failed = false};
	int err;

	memcpy(head.magic, magic, sizeof(magic));
	for (int s = 0; s < VALUE_SKIP_CNT; s++)
		head.skipped[s] = schema->skipped[s];
	/* There is a text always: the last byte is a NUL. */
	text_off(&texts, "");
	err = append(bytes, &head, sizeof(head));
	if (!err)
		err = put_rows(bytes, &texts, schema);
	if (!err && bytes->cnt > SCHEMA_SZ_MAX)
		err = -EFBIG;
	if (!err) {
		((struct head *)bytes->items)->text_sz = texts.bytes.cnt;
		schema_bytes_seal(bytes->items, bytes->cnt);
	}
	vec_free(&texts.bytes);
	vec_free(&texts.by_number);
	idmap__free(&texts.offs);
	return err;
}

void schema_bytes_seal(void *bytes, size_t sz)
{
	struct head *head = bytes;

	if (sz >= sizeof(*head))
		head->checksum = checksum_of(bytes, sz);
}
