// SPDX-License-Identifier: GPL-2.0-or-later
/* What was read of files is shared by what a file is, and goes when nobody uses it and it has to. */
#include "target/file_tables.h"
#include "target/program.h"
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM "/usr/bin/sleep"

static char dir[64];

static const char *copy_of_program(const char *name)
{
	static char path[128];
	char command[480];

	if (!*dir) {
		snprintf(dir, sizeof(dir), "/tmp/whylate-tables-XXXXXX");
		CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	}
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(command, sizeof(command), "cp " PROGRAM " %s.new && mv %s.new %s", path, path, path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	return path;
}

static void remove_copies(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
	*dir = '\0';
}

static struct file_table *take(struct file_tables *tables, const char *path)
{
	struct elf_image *image = elf_image__open(path);
	struct file_table *table;

	CU_ASSERT_PTR_NOT_NULL_FATAL(image);
	table = file_tables__take(tables, image);
	CU_ASSERT_PTR_NOT_NULL_FATAL(table);
	elf_image__free(image);
	return table;
}

static void one_file_has_one_table(void)
{
	struct file_tables *tables = file_tables__new();
	const char *path = copy_of_program("program");
	struct file_table *first = take(tables, path), *table;

	table = take(tables, path);
	CU_ASSERT_PTR_EQUAL(table, first);
	CU_ASSERT_EQUAL(first->users, 2);
	/* Written to since, as far as can be told. */
	CU_ASSERT_EQUAL(chmod(path, 0700), 0);
	table = take(tables, path);
	CU_ASSERT_PTR_NOT_EQUAL(table, first);
	/* Replaced under its name. */
	copy_of_program("program");
	CU_ASSERT_PTR_NOT_EQUAL(take(tables, path), table);
	remove_copies();
	file_tables__free(tables);
}

static void what_is_used_stays(void)
{
	struct file_tables *tables = file_tables__new();
	struct file_table *used = take(tables, copy_of_program("used")),
			  *first = take(tables, copy_of_program("first"));
	struct file_table *second = take(tables, copy_of_program("second"));

	CU_ASSERT_FALSE(file_tables__drop(tables));
	file_table__release(second);
	file_table__release(first);
	/* The one that was taken earlier. */
	CU_ASSERT_TRUE(file_tables__drop(tables));
	CU_ASSERT_EQUAL(second->users, 0);
	CU_ASSERT_TRUE(file_tables__drop(tables));
	CU_ASSERT_EQUAL(used->users, 1);
	remove_copies();
	file_tables__free(tables);
}

static void unused_ones_are_bounded(void)
{
	struct file_tables *tables = file_tables__new();
	size_t empty_sz = file_tables__sz(tables);
	char name[16];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%d", i);
		file_table__release(take(tables, copy_of_program(name)));
	}
	CU_ASSERT(file_tables__sz(tables) > empty_sz);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_TRUE(file_tables__drop(tables));
	CU_ASSERT_FALSE(file_tables__drop(tables));
	CU_ASSERT_EQUAL(file_tables__sz(tables), empty_sz);
	remove_copies();
	file_tables__free(tables);
}

static bool is_same_rule(const struct frame_rule *a, const struct frame_rule *b)
{
	if (!a || !b)
		return a == b;
	/* Expressions are numbered in each list. */
	return a->cfa.what == b->cfa.what && a->cfa.reg == b->cfa.reg && a->is_signal == b->is_signal &&
	       (a->cfa.what == UNWIND_EXPR || a->cfa.off == b->cfa.off);
}

/* The frames that an unwinder has read tell of functions what those tell that are read for functions alone. */
static void frames_tell_of_functions(void)
{
	const struct frame_function *functions, *alone;
	struct eh_frame *frame, *frame_alone;
	size_t cnt;
	Dl_info library;
	int fd;

	CU_ASSERT_NOT_EQUAL_FATAL(dladdr(dlsym(RTLD_NEXT, "lfind"), &library), 0);
	fd = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
	frame = eh_frame__read(fd, false);
	frame_alone = eh_frame__read(fd, true);
	CU_ASSERT_PTR_NOT_NULL_FATAL(frame);
	CU_ASSERT_PTR_NOT_NULL_FATAL(frame_alone);
	cnt = eh_frame__functions(frame, &functions);
	CU_ASSERT_EQUAL_FATAL(eh_frame__functions(frame_alone, &alone), cnt);
	CU_ASSERT(cnt > 1000);
	CU_ASSERT(eh_frame__sz(frame) > eh_frame__sz(frame_alone));
	for (size_t i = 0; i < cnt; i++) {
		CU_ASSERT(functions[i].addr == alone[i].addr && functions[i].size == alone[i].size);
		CU_ASSERT(is_same_rule(eh_frame__first_rule(frame, &functions[i]),
				       eh_frame__first_rule(frame_alone, &alone[i])));
	}
	eh_frame__free(frame);
	eh_frame__free(frame_alone);
	close(fd);
}

static bool is_same_function(const struct program_function *a, const struct program_function *b)
{
	return a->id == b->id && a->module == b->module && !strcmp(a->name, b->name) && a->addr == b->addr &&
	       a->file_off == b->file_off && a->size == b->size && a->source == b->source &&
	       a->ambiguous == b->ambiguous && a->is_part == b->is_part && a->is_ifunc == b->is_ifunc &&
	       a->overlaps == b->overlaps;
}

/* From tables, programs have the functions that they read of the files themselves. */
static void functions_are_those_of_the_file(void)
{
	struct file_tables *tables = file_tables__new();
	const struct program_opts shared = {.names_only = true, .tables = tables}, own = {.names_only = true};
	struct program *programs[3];
	uint32_t first[3], cnt[3];

	for (uint32_t m = 0; m < 3; m++) {
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_EQUAL_FATAL(program__open(getpid(), i ? &shared : &own, &programs[i]), 0);
			if (program__module_functions(programs[i], m, &first[i], &cnt[i]))
				cnt[i] = 0;
		}
		CU_ASSERT(cnt[0] == cnt[1] && cnt[1] == cnt[2]);
		for (uint32_t f = 0; f < cnt[0]; f++)
			for (int i = 1; i < 3; i++)
				CU_ASSERT(is_same_function(program__function(programs[0], first[0] + f),
							   program__function(programs[i], first[i] + f)));
		for (int i = 0; i < 3; i++)
			program__free(programs[i]);
	}
	file_tables__free(tables);
}

int suite_file_tables(void)
{
	static const struct unit_test tests[] = {
		{"one file has one table", one_file_has_one_table},
		{"what is used stays", what_is_used_stays},
		{"unused ones are bounded", unused_ones_are_bounded},
		{"frames tell of functions", frames_tell_of_functions},
		{"functions are those of the file", functions_are_those_of_the_file},
	};

	return unit_suite("file_tables", tests, sizeof(tests) / sizeof(tests[0]));
}
