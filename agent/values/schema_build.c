// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_build.h"

#include "base/order.h"
#include "target/dwarf_alone.h"
#include "values/schema_internal.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct schema_binary {
	Dwfl *dwfl;
	Dwfl_Module *module;
	int debug_fd; /* -1: none, or libdw has it */
};

/* --- the files ---------------------------------------------------------------------------------------------------- */

/* The debug file has been found already; DWARF that files share (dwz) is looked for nowhere. */
static int hand_debug_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word crc, char **found)
{
	struct schema_binary *binary = *userdata;
	int fd = binary ? binary->debug_fd : -1;

	(void)module;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)found;
	if (binary)
		binary->debug_fd = -1;
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = hand_debug_file,
	.section_address = dwfl_offline_section_address,
};

static void put_hex(const void *bytes, ssize_t len, char hex[SCHEMA_BUILD_ID_SZ])
{
	for (ssize_t i = 0; i < len && i < 64; i++)
		sprintf(hex + 2 * i, "%02x", ((const uint8_t *)bytes)[i]);
}

static void read_head(const struct schema_binary *binary, Elf *elf, struct schema_head *head)
{
	const unsigned char *build_id;
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(elf, &crc);
	GElf_Addr note;
	int len = dwfl_module_build_id(binary->module, &build_id, &note);

	put_hex(build_id, len, head->build_id);
	if (!link || !*link || strchr(link, '/') || strlen(link) >= sizeof(head->link))
		return;
	strcpy(head->link, link);
	head->link_crc = crc;
}

/* By build ids: 0, -ESTALE or -ENOKEY. */
static int check_debug_file(int debug_fd, const struct schema_head *head)
{
	Elf *elf = elf_begin(debug_fd, ELF_C_READ_MMAP, NULL);
	char hex[SCHEMA_BUILD_ID_SZ] = "";
	const void *build_id;
	ssize_t len = elf ? dwelf_elf_gnu_build_id(elf, &build_id) : 0;
	int err;

	put_hex(build_id, len, hex);
	err = !elf ? -ESTALE : !*hex || !*head->build_id ? -ENOKEY : strcmp(hex, head->build_id) ? -ESTALE : 0;
	elf_end(elf);
	return err;
}

static int open_module(struct schema_binary *binary, int fd)
{
	void **userdata;

	binary->dwfl = dwfl_begin(&callbacks);
	binary->module = binary->dwfl ? dwfl_report_offline(binary->dwfl, "", "", fd) : NULL;
	if (binary->dwfl)
		dwfl_report_end(binary->dwfl, NULL, NULL);
	if (!binary->module) {
		close(fd);
		return binary->dwfl ? -ENOEXEC : -ENOMEM;
	}
	dwfl_module_info(binary->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = binary;
	return 0;
}

int schema_binary__open(struct schema_binary **made, int fd, int debug_fd, bool is_checked, struct schema_head *head)
{
	struct schema_binary *binary = calloc(1, sizeof(*binary));
	GElf_Addr bias;
	Elf *elf;
	int err;

	*head = (struct schema_head){.err = ENOMEM};
	*made = binary;
	if (!binary)
		return -ENOMEM;
	binary->debug_fd = debug_fd;
	elf_version(EV_CURRENT);
	err = open_module(binary, fd);
	elf = err ? NULL : dwfl_module_getelf(binary->module, &bias);
	if (!err && !elf)
		err = -ENOEXEC;
	if (!err)
		read_head(binary, elf, head);
	if (!err && debug_fd >= 0 && !is_checked)
		err = check_debug_file(debug_fd, head);
	if (!err && !dwfl_module_getdwarf(binary->module, &bias))
		err = -ENODATA;
	if (!err)
		err = dwarf_alone(dwfl_module_getdwarf(binary->module, &bias));
	head->err = (uint32_t)-err;
	return err;
}

void schema_binary__close(struct schema_binary *binary)
{
	if (!binary)
		return;
	if (binary->dwfl)
		dwfl_end(binary->dwfl);
	if (binary->debug_fd >= 0)
		close(binary->debug_fd);
	free(binary);
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

void builder_frame(const struct builder *builder, uint64_t pc, struct value_frame_rule *rule)
{
	Dwarf_Addr begin, end;
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	bool is_signal;
	size_t cnt;

	*rule = (struct value_frame_rule){.begin = pc, .end = pc + 1};
	/* Addresses in the table are those as linked. */
	if (!builder->frames || dwarf_cfi_addrframe(builder->frames, pc, &frame))
		return;
	if (dwarf_frame_info(frame, &begin, &end, &is_signal) >= 0 && begin <= pc && pc < end) {
		rule->begin = begin;
		rule->end = end;
	}
	if (!dwarf_frame_cfa(frame, &ops, &cnt) && cnt == 1) {
		if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
			rule->known = true;
			rule->reg = (uint8_t)(ops[0].atom - DW_OP_breg0);
			rule->off = (int64_t)ops[0].number;
		} else if (ops[0].atom == DW_OP_bregx && ops[0].number < 32) {
			rule->known = true;
			rule->reg = (uint8_t)ops[0].number;
			rule->off = (int64_t)ops[0].number2;
		}
	}
	free(frame);
}

ORDER(compare_ranges, struct pc_range, BY(a->begin, b->begin), BY(a->end, b->end));
ORDER(compare_frames, struct value_frame_rule, BY(a->begin, b->begin), BY(a->end, b->end));

/* Rows of a table that lies may overlap: those that begin first stay. */
static void drop_overlaps(struct value_schema *schema)
{
	struct value_frame_rule *frames = schema->frames.items;
	size_t kept = 0;

	vec_sort(&schema->frames, compare_frames);
	for (size_t i = 0; i < schema->frames.cnt; i++)
		if (!kept || frames[i].begin >= frames[kept - 1].end)
			frames[kept++] = frames[i];
	schema->frames.cnt = kept;
}

/* Where the frames are of the pointers that lie at VALUE_AT_CFA. */
static int take_frames(struct builder *builder)
{
	struct value_schema *schema = builder->schema;
	VEC(struct pc_range) ranges = {0};
	uint64_t pc = 0;
	int err = 0;

	for (size_t v = 0; v < schema->variables.cnt && !err; v++) {
		const struct value_variable *variable = &schema->variables.items[v];

		for (uint32_t l = 0; l < variable->location_cnt && variable->member_off >= 0 && !err; l++) {
			const struct value_location *at = &schema->locations.items[variable->first_location + l];

			if (at->place == VALUE_AT_CFA)
				err = vec_push(&ranges, ((struct pc_range){at->pc_begin, at->pc_end}));
		}
	}
	vec_sort(&ranges, compare_ranges);
	for (size_t r = 0; r < ranges.cnt && !err && builder->frames; r++)
		for (pc = ranges.items[r].begin > pc ? ranges.items[r].begin : pc; pc < ranges.items[r].end && !err;) {
			struct value_frame_rule rule;

			builder_frame(builder, pc, &rule);
			if (rule.end == pc + 1 && !rule.known)
				break;
			err = vec_push(&schema->frames, rule);
			pc = rule.end;
		}
	vec_free(&ranges);
	if (!err)
		drop_overlaps(schema);
	return err;
}

/* --- the schema --------------------------------------------------------------------------------------------------- */

const char *builder_text(struct builder *builder, const char *text)
{
	uint32_t id;

	if (intern__id(&builder->schema->strings, text ? text : "", &id)) {
		builder->err = -ENOMEM;
		return "";
	}
	return builder->schema->strings.strings[id];
}

ORDER(compare, struct value_variable, strcmp(a->file, b->file), BY(a->line, b->line), strcmp(a->function, b->function),
      strcmp(a->name, b->name));

int value_schema_build(struct value_schema *schema, struct schema_binary *binary, const struct value_schema_opts *opts)
{
	struct builder builder = {.schema = schema, .opts = opts};
	GElf_Addr bias;

	builder.elf = dwfl_module_getelf(binary->module, &bias);
	builder.dwarf = dwfl_module_getdwarf(binary->module, &bias);
	builder.frames = dwfl_module_eh_cfi(binary->module, &bias);
	builder.tagger = tagger__new();
	schema->no_code_tags = !builder.tagger;
	schema_walk(&builder);
	for (size_t i = 0; i < builder.function.items.cnt; i++)
		vec_free(&builder.function.items.items[i].locations);
	vec_free(&builder.function.items);
	tagger__free(builder.tagger);
	if (!builder.err)
		vec_sort(&schema->variables, compare);
	return builder.err ? builder.err : take_frames(&builder);
}

int value_schema_read(struct value_schema *schema, int fd, const struct value_schema_opts *opts)
{
	struct schema_binary *binary = NULL;
	struct schema_head head;
	int err = value_schema_begin(schema);

	if (err)
		close(fd);
	else
		err = schema_binary__open(&binary, fd, -1, false, &head);
	if (!err)
		err = value_schema_build(schema, binary, opts);
	schema_binary__close(binary);
	return err;
}
