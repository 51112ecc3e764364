// SPDX-License-Identifier: GPL-2.0-or-later
#include "values/schema_cache.h"
#include "values/schema_internal.h"

#include "base/order.h"
#include "base/user_file.h"
#include "target/dwarf_alone.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

const char *const value_skip_names[VALUE_SKIP_CNT] = {
#define VALUE_SKIP(id, name) [VALUE_SKIP_##id] = name,
#include "values/skip.def"
#undef VALUE_SKIP
};

const char *const value_type_names[VALUE_TYPE_CNT] = VALUE_TYPE_NAMES;

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

static int build(struct value_schema *schema, const struct value_schema_opts *opts, Dwfl_Module *module)
{
	struct builder builder = {.schema = schema, .opts = opts};
	const unsigned char *build_id;
	GElf_Addr bias, note;
	char hex[2 * 64 + 1] = "";
	int len;

	builder.elf = dwfl_module_getelf(module, &bias);
	builder.dwarf = dwfl_module_getdwarf(module, &bias);
	if (!builder.elf)
		return -ENOEXEC;
	if (!builder.dwarf)
		return -ENODATA;
	if (dwarf_alone(builder.dwarf))
		return -ENOMEM;
	len = dwfl_module_build_id(module, &build_id, &note);
	for (int i = 0; i < len && i < 64; i++)
		sprintf(hex + 2 * i, "%02x", build_id[i]);
	schema->build_id = builder_text(&builder, hex);
	if (opts->cached && schema_cache_load(schema, opts))
		return 0;
	builder.tagger = tagger__new();
	schema->no_code_tags = !builder.tagger;
	schema_walk(&builder);
	for (size_t i = 0; i < builder.function.items.cnt; i++)
		vec_free(&builder.function.items.items[i].locations);
	vec_free(&builder.function.items);
	tagger__free(builder.tagger);
	if (!builder.err)
		vec_sort(&schema->variables, compare);
	if (!builder.err && opts->cached)
		schema_cache_store(schema, opts);
	return builder.err;
}

/* A regular file; -1: it is none.  To open a device can do anything, and to open a pipe can wait for ever. */
static int open_regular(const char *path)
{
	int path_fd = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char by_fd[32];
	struct stat st;

	if (path_fd < 0)
		return -1;
	snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", path_fd);
	if (!fstat(path_fd, &st) && S_ISREG(st.st_mode))
		fd = open(by_fd, O_RDONLY | O_CLOEXEC);
	close(path_fd);
	return fd;
}

/* Beside the file, or in .debug there: directories that may be anybody's. */
static int find_beside(const char *file, const char *link, char **found)
{
	static const char *const subs[] = {"", ".debug/"};
	const char *slash = file ? strrchr(file, '/') : NULL;
	int fd = -1;

	for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]) && fd < 0; i++) {
		char *path;

		if (asprintf(&path, "%.*s%s%s", slash ? (int)(slash + 1 - file) : 0, slash ? file : "", subs[i], link) <
		    0)
			return -1;
		fd = open_regular(path);
		if (fd >= 0)
			*found = path;
		else
			free(path);
	}
	return fd;
}

static bool has_checksum(int fd, GElf_Word wanted)
{
	uint32_t crc = 0;
	uint8_t bytes[16384];
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		crc = (uint32_t)crc32(crc, bytes, (uInt)got);
		at += got;
	}
	return !got && crc == wanted;
}

/*
 * libdw opens whatever a debug link names.  The administrator's directories, and debuginfod, are left to it, for links
 * that are plain names.  Links of other kinds lead to DWARF that files share (dwz), which is looked for nowhere.
 */
static int find_debug_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word crc, char **found)
{
	int fd = -1;

	if (link && strchr(link, '/'))
		return -1;
	if (link && crc)
		fd = find_beside(file, link, found);
	if (fd >= 0 && has_checksum(fd, crc))
		return fd;
	if (fd >= 0) {
		close(fd);
		free(*found);
		*found = NULL;
	}
	return dwfl_standard_find_debuginfo(module, userdata, name, base, file, link, crc, found);
}

/* Where libdw looks for debug files; it is read until dwfl_end(). */
static char *debuginfo_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path,
};

int value_schema_make(struct value_schema *schema, const struct value_schema_opts *opts)
{
	static char *system_path = "/usr/lib/debug";
	struct user_rights rights;
	char *own = NULL;
	int err;

	memset(schema, 0, sizeof(*schema));
	schema->build_id = "";
	schema->arena = arena__new();
	schema->strings.arena = schema->arena;
	if (!schema->arena)
		return -ENOMEM;
	if (access(opts->path, R_OK))
		return -errno;
	/* libdw follows debug links and asks DEBUGINFOD_URLS by itself. */
	err = user_rights__begin(&rights);
	if (err)
		return err;
	if (opts->debuginfo_dir && asprintf(&own, "%s:%s", opts->debuginfo_dir, system_path) < 0)
		err = -ENOMEM;
	debuginfo_path = own ? own : system_path;
	schema->dwfl = err ? NULL : dwfl_begin(&callbacks);
	schema->module = schema->dwfl ? dwfl_report_offline(schema->dwfl, "", opts->path, -1) : NULL;
	if (schema->dwfl)
		dwfl_report_end(schema->dwfl, NULL, NULL);
	if (!err)
		err = schema->module ? build(schema, opts, schema->module) : -ENOEXEC;
	user_rights__end(&rights);
	debuginfo_path = system_path;
	free(own);
	return err;
}

bool value_schema_line(const struct value_schema *schema, uint64_t addr, const char **file, uint32_t *line)
{
	GElf_Addr bias;
	Dwfl_Line *found;
	int number;

	if (!schema->module || !dwfl_module_getdwarf(schema->module, &bias))
		return false;
	found = dwfl_module_getsrc(schema->module, addr + bias);
	*file = found ? dwfl_lineinfo(found, NULL, &number, NULL, NULL, NULL) : NULL;
	if (!*file || number <= 0)
		return false;
	*line = (uint32_t)number;
	return true;
}

void value_schema_frame(const struct value_schema *schema, uint64_t pc, struct value_frame_rule *rule)
{
	Dwarf_Addr bias, begin, end;
	Dwarf_CFI *table = schema->module ? dwfl_module_eh_cfi(schema->module, &bias) : NULL;
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	bool is_signal;
	size_t cnt;

	*rule = (struct value_frame_rule){.begin = pc, .end = pc + 1};
	/* Addresses in the table are those as linked. */
	if (!table || dwarf_cfi_addrframe(table, pc, &frame))
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

void value_schema_free(struct value_schema *schema)
{
	if (schema->dwfl)
		dwfl_end(schema->dwfl);
	vec_free(&schema->variables);
	vec_free(&schema->locations);
	intern__free(&schema->strings);
	arena__free(schema->arena);
	memset(schema, 0, sizeof(*schema));
}
