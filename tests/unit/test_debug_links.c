// SPDX-License-Identifier: GPL-2.0-or-later
/* What a file names as its debug file, or as DWARF that it shares with others, is not opened where it is no file. */
#include "../fuzz/dwarf_file.h"
#include "elf_fixture.h"
#include "target/inlines.h"
#include "test_shard_util.h"
#include "unit.h"
#include "values/schema_make.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Waiting for a pipe would be for ever: SIGALRM ends the run then. */
#define PATIENCE_S 60
#define ALT_FORM   0xa1, 0x3e /* DW_FORM_GNU_strp_alt */

/* code, tag, children, then pairs of attribute and form. */
static const uint8_t abbrevs[] = {
	1, 0x11, 1, 0x03, ALT_FORM, 0x11, 0x01, 0x12, 0x07, 0, 0, /* unit: name, low_pc, high_pc */
	2, 0x24, 0, 0x03, 0x08,     0x3e, 0x0b, 0x0b, 0x0b, 0, 0, /* base type: name, encoding, size */
	3, 0x34, 0, 0x03, ALT_FORM, 0x49, 0x13, 0x02, 0x18, 0, 0, /* variable: name, type, location */
	4, 0x2e, 1, 0x03, ALT_FORM, 0x11, 0x01, 0x12, 0x07, 0, 0, /* function: name, low_pc, high_pc */
	5, 0x1d, 0, 0x03, ALT_FORM, 0x11, 0x01, 0x12, 0x07, 0, 0, /* inlined: name, low_pc, high_pc */
	0,
};

static void put_code(struct file *info, unsigned int code)
{
	put_number(info, code, 1);
	put_number(info, 1, 4);
	put_number(info, TEXT_ADDR, 8);
	put_number(info, TEXT_SZ, 8);
}

static void make_shared_names(struct file *file, const char *other)
{
	static const uint8_t text[TEXT_SZ] = {0x90};
	char link[192] = "";
	struct file info = {0};
	uint32_t type_off;

	put_unit_begin(&info);
	put_code(&info, 1);
	type_off = (uint32_t)info.sz;
	put(&info, "\x02int\0\x05\x04", 7);
	put_number(&info, 3, 1);
	put_number(&info, 1, 4);
	put_number(&info, type_off, 4);
	put(&info, "\x09\x03", 2);
	put_number(&info, TEXT_ADDR, 8);
	put_code(&info, 4);
	put_code(&info, 5);
	put_number(&info, 0, 1);
	put_number(&info, 0, 1);
	put_unit_end(&info);
	/* The path, and a build id. */
	snprintf(link, sizeof(link), "%s", other);
	file->links = true;
	dwarf_file_make(file, abbrevs, sizeof(abbrevs), &info, link, strlen(link) + 1 + 20, text);
}

static void shared_dwarf_is_not_opened(void)
{
	const char *names[INLINES_DEPTH_MAX];
	struct test_dir dir;
	char fifo[128], path[64];
	struct value_schema_opts opts = {.path = path, .all_locals = true};
	struct value_schema schema;
	struct inlines *inlines;
	struct file file = {0};

	test_dir__make(&dir);
	snprintf(fifo, sizeof(fifo), "%s/shared", dir.path);
	CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0600), 0);
	make_shared_names(&file, fifo);
	dwarf_file_path(&file, path, sizeof(path));
	alarm(PATIENCE_S);
	CU_ASSERT_EQUAL(value_schema_make(&schema, &opts), 0);
	CU_ASSERT_EQUAL(schema.variables.cnt, 0);
	value_schema_free(&schema);
	inlines = inlines__open(open(path, O_RDONLY | O_CLOEXEC));
	CU_ASSERT_PTR_NOT_NULL_FATAL(inlines);
	CU_ASSERT_EQUAL(inlines__at(inlines, TEXT_ADDR, names), 1);
	CU_ASSERT_STRING_EQUAL(names[0], "[inlined]");
	inlines__free(inlines);
	alarm(0);
	test_dir__remove(&dir);
}

static void a_debug_link_leads_to_a_file(void)
{
	struct made_elf made = {0};
	struct test_dir dir;
	char fifo[128], path[128];
	struct value_schema_opts opts = {.path = path};
	struct value_schema schema;
	FILE *file;

	test_dir__make(&dir);
	snprintf(fifo, sizeof(fifo), "%s/debug", dir.path);
	snprintf(path, sizeof(path), "%s/program", dir.path);
	CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0600), 0);
	elf_make(&made, NULL, 0, ".gnu_debuglink");
	elf_make_extra(&made, "debug\0\0\0\1\2\3\4", 12);
	file = fopen(path, "we");
	CU_ASSERT_FATAL(file && fwrite(made.bytes, made.sz, 1, file) == 1 && !fclose(file));
	alarm(PATIENCE_S);
	CU_ASSERT_EQUAL(value_schema_make(&schema, &opts), -ENODATA);
	value_schema_free(&schema);
	alarm(0);
	test_dir__remove(&dir);
}

int suite_debug_links(void)
{
	static const struct unit_test tests[] = {
		{"shared DWARF is not opened", shared_dwarf_is_not_opened},
		{"a debug link leads to a file", a_debug_link_leads_to_a_file},
	};

	return unit_suite("debug_links", tests, sizeof(tests) / sizeof(tests[0]));
}
