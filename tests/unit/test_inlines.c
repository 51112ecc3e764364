// SPDX-License-Identifier: GPL-2.0-or-later
/* Inlined functions of this very program, and of files that have none or are none. */
#include "target/demangle.h"
#include "target/inlines.h"
#include "target/program.h"
#include "target/symbols.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where each of the two is, when it is. */
static uint64_t inner_pc, outer_pc;
static volatile int sink;

#define HERE(pc) __asm__ volatile("lea 0(%%rip), %0" : "=r"(pc))
#if defined(__aarch64__)
#undef HERE
#define HERE(pc) __asm__ volatile("adr %0, ." : "=r"(pc))
#endif

static inline __attribute__((always_inline)) void inlined_within(int value)
{
	HERE(inner_pc);
	sink += value;
}

static inline __attribute__((always_inline)) void inlined_by_test(int value)
{
	sink += value;
	HERE(outer_pc);
	inlined_within(value + 1);
}

static __attribute__((noinline)) void calls_inlined(int value)
{
	inlined_by_test(value);
}

/* On a busy machine the first answer takes longer than program__inlined_at() waits for it. */
static size_t inlined_at(struct program *program, struct symbols *symbols, uint64_t pc, const char *names[])
{
	size_t cnt;

	for (int asked = 0; !(cnt = program__inlined_at(program, symbols, pc, names)) && asked < 100; asked++)
		usleep(100000);
	return cnt;
}

static void what_the_compiler_inlined_is_named(void)
{
	const char *names[INLINES_DEPTH_MAX] = {NULL};
	struct symbols *symbols = symbols__new(600000000000ULL);
	struct program *program;
	uint32_t id;

	calls_inlined(1);
	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &program), 0);
	id = program__function_at_runtime(program, inner_pc, NULL);
	CU_ASSERT_FATAL(id != PROGRAM_NONE);
	CU_ASSERT_STRING_EQUAL(program__function(program, id)->name, "calls_inlined");
	/* Twice: what was found is remembered. */
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(inlined_at(program, symbols, inner_pc, names), 2);
		CU_ASSERT_STRING_EQUAL(names[0], "inlined_by_test");
		CU_ASSERT_STRING_EQUAL(names[1], "inlined_within");
		CU_ASSERT_EQUAL_FATAL(inlined_at(program, symbols, outer_pc, names), 1);
		CU_ASSERT_STRING_EQUAL(names[0], "inlined_by_test");
	}
	CU_ASSERT_EQUAL(
		program__inlined_at(program, symbols, (uint64_t)(uintptr_t)what_the_compiler_inlined_is_named, names),
		0);
	CU_ASSERT_EQUAL(program__inlined_at(program, symbols, 16, names), 0);
	program__free(program);
	symbols__free(symbols);
}

/* Cut at many places, and with bytes that are others: nothing is read that is not there (ASan). */
static void damaged_files_do_no_harm(void)
{
	char path[] = "/tmp/whylate-inlines-XXXXXX", exe[] = "/proc/self/exe";
	int from = open(exe, O_RDONLY | O_CLOEXEC), to = mkstemp(path);
	const char *names[INLINES_DEPTH_MAX];
	struct stat st;
	uint8_t *bytes;

	CU_ASSERT_FATAL(from >= 0 && to >= 0 && !fstat(from, &st));
	bytes = malloc(1 << 20);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	CU_ASSERT_EQUAL_FATAL(pread(from, bytes, 1 << 20, 0), 1 << 20);
	CU_ASSERT_EQUAL(pwrite(to, bytes, 1 << 20, 0), 1 << 20);
	for (off_t sz = 0; sz <= 1 << 20; sz = sz ? 4 * sz : 1) {
		struct inlines *inlines;

		CU_ASSERT_EQUAL(truncate(path, sz), 0);
		inlines = inlines__open(open(path, O_RDONLY | O_CLOEXEC));
		if (inlines)
			inlines__at(inlines, 0x1000, names);
		inlines__free(inlines);
	}
	CU_ASSERT_PTR_NULL(inlines__open(open("/dev/null", O_RDONLY | O_CLOEXEC)));
	CU_ASSERT_PTR_NULL(inlines__open(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)));
	inlines__free(NULL);
	free(bytes);
	close(from);
	close(to);
	unlink(path);
}

/* What a reader needs most of a long name is the function at its end. */
static void long_names_lose_their_template_arguments(void)
{
	static const struct {
		size_t sz;
		const char *name, *fits;
	} cases[] = {
		{64, "std::map<int, int>::find(int const&)", "std::map<int, int>::find(int const&)"},
		{34, "std::map<int, std::less<int> >::find(int const&)", "std::map<…>::find(int const&)"},
		{40, "a::operator<(std::pair<int, std::string> const&)", "a::operator<(std::pair<…> const&)"},
		{24, "void run<main::{lambda(s<int>)#1}>(a->b)", "void run<…>(a->b)"},
		{20, "operator<< <char, int>(char_traits<char>)", "operator<< <char, i"},
		{12, "std::map<int, int>::find", "std::map"},
		{6, "abcdefgh", "abcde"},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		demangle_fit(name, cases[i].sz, cases[i].name);
		CU_ASSERT_STRING_EQUAL(name, cases[i].fits);
	}
}

int suite_inlines(void)
{
	static const struct unit_test tests[] = {
		{"what the compiler inlined is named", what_the_compiler_inlined_is_named},
		{"damaged files do no harm", damaged_files_do_no_harm},
		{"long names lose their template arguments", long_names_lose_their_template_arguments},
	};

	return unit_suite("inlines", tests, sizeof(tests) / sizeof(tests[0]));
}
