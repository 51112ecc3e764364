// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libFuzzer: the variables of any tree of debugging information entries, in a file that is otherwise in order, and any
 * schema of a process that lies.  Build and run: make fuzz
 */
#include "dwarf_tree.h"
#include "values/schema_build.h"
#include "values/schema_bytes.h"

#include <fcntl.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz);

static void check(const struct value_schema *schema)
{
	for (size_t i = 0; i < schema->variables.cnt; i++) {
		const struct value_variable *variable = &schema->variables.items[i];
		uint8_t size = variable->size;

		NEED(variable->name && variable->file && variable->function && variable->type);
		NEED(size == 1 || size == 2 || size == 4 || size == 8);
		NEED(variable->kind < VALUE_TYPE_CNT);
		NEED(variable->first_location + variable->location_cnt <= schema->locations.cnt);
		NEED(variable->location_cnt);
	}
	for (size_t i = 0; i < schema->locations.cnt; i++)
		NEED(schema->locations.items[i].pc_begin < schema->locations.items[i].pc_end);
}

/* What a process has made of `int a` and a global of it. */
static schema_bytes made;

/* The same, patched at any places (two bytes) with any bytes, as what such a process answers. */
static void take_patched(const uint8_t *patches, size_t sz)
{
	struct value_schema schema;
	uint8_t *bytes = malloc(made.cnt);

	NEED(bytes && !value_schema_begin(&schema));
	memcpy(bytes, made.items, made.cnt);
	for (; sz >= 3; patches += 3, sz -= 3)
		bytes[(patches[0] | patches[1] << 8) % made.cnt] = patches[2];
	schema_bytes_seal(bytes, made.cnt);
	if (!schema_bytes_take(&schema, bytes, made.cnt))
		check(&schema);
	free(bytes);
	value_schema_free(&schema);
}

/* What has been read is the same when it has been sent. */
static void send_schema(const struct value_schema *schema)
{
	struct value_schema taken;
	schema_bytes bytes = {0};

	NEED(!value_schema_begin(&taken) && !schema_bytes_make(schema, &bytes));
	NEED(!schema_bytes_take(&taken, bytes.items, bytes.cnt));
	NEED(taken.variables.cnt == schema->variables.cnt && taken.frames.cnt == schema->frames.cnt);
	check(&taken);
	value_schema_free(&taken);
	if (made.cnt)
		vec_free(&bytes);
	else
		made = bytes;
}

/* How many variables have a type and a place. */
static size_t read_schema(const struct file *file, const struct value_schema_opts *opts)
{
	struct value_schema schema;
	char path[64];
	size_t cnt;

	dwarf_file_path(file, path, sizeof(path));
	if (!value_schema_read(&schema, open(path, O_RDONLY | O_CLOEXEC), opts))
		send_schema(&schema);
	cnt = schema.variables.cnt;
	value_schema_free(&schema);
	return cnt;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t sz)
{
	/* `int a`, then a global of it, whose type is at byte 11 + 24: where the first entry lies. */
	static const uint8_t known[] = {2, 1, 5, 4, 11, 3, 35 >> 2, 35 & 3, 1};
	static const uint8_t text[TEXT_SZ] = {0x90};
	static bool tried;
	struct file file = {0}, info = {0};
	struct input input = {known, sizeof(known)};

	if (!tried) {
		put_info(&info, &input);
		dwarf_file_make(&file, abbrevs, sizeof(abbrevs), &info, NULL, 0, text);
		NEED(read_schema(&file, &(struct value_schema_opts){.all_locals = true}) == 1);
		tried = true;
	}
	take_patched(bytes, sz);
	input = (struct input){bytes, sz};
	info.sz = 0;
	put_info(&info, &input);
	dwarf_file_make(&file, abbrevs, sizeof(abbrevs), &info, NULL, 0, text);
	read_schema(&file, &(struct value_schema_opts){.all_locals = true});
	read_schema(&file, &(struct value_schema_opts){.function = "a"});
	return 0;
}
