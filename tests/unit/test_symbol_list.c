// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/resolve.h"
#include "said.h"
#include "target/elf_file.h"
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asm/ptrace.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* Looked up by name in this very program. */
extern int symbol_list_test_variable;
int symbol_list_test_variable = 1;
void symbol_list_test_function(void);
void symbol_list_test_alias(void) __attribute__((alias("symbol_list_test_function")));
void symbol_list_test_function(void)
{
	__asm__ volatile("" ::: "memory");
}

/* The path of a list with these bytes; the descriptor is the caller's to close. */
static int list_make(const char *bytes, size_t sz, char path[64])
{
	int fd = memfd_create("list", MFD_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(write(fd, bytes, sz), (ssize_t)sz);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static int list_read(const char *bytes, size_t sz, probe_lines *lines)
{
	char path[64];
	int fd = list_make(bytes, sz, path), err;

	said_begin();
	err = symbol_list_read(path, lines);
	said_end();
	close(fd);
	return err;
}

static void expect_list_refused(const char *bytes, size_t sz, unsigned line_no, const char *part)
{
	char path[64], place[96];
	int fd = list_make(bytes, sz, path), err;
	probe_lines lines = {0};
	const char *said;

	said_begin();
	err = symbol_list_read(path, &lines);
	said = said_end();
	CU_ASSERT(err < 0);
	CU_ASSERT(said_one_line(said, part));
	snprintf(place, sizeof(place), line_no ? "%s:%u: " : "%s", path, line_no);
	CU_ASSERT(said_one_line(said, place));
	CU_ASSERT_EQUAL(lines.cnt, 0);
	symbol_list_free(&lines);
	close(fd);
}

static void a_list_of_intervals_is_read(void)
{
	static const char text[] = "\xef\xbb\xbf# requests\r\n"
				   "\n"
				   "interval call\r\n"
				   " \tinterval\tredis-server:call  name=command # comment\n"
				   "interval libc.so.6:pthread_cond_wait name=a:b#1\n"
				   "   # interval none\n"
				   "interval _ZN3foo3barEv.constprop.0\n"
				   "interval caf\xc3\xa9$1";
	static const struct {
		uint32_t line_no;
		const char *module, *symbol, *name;
	} expected[] = {
		{3, NULL, "call", "call"},
		{4, "redis-server", "call", "command"},
		{5, "libc.so.6", "pthread_cond_wait", "a:b#1"},
		{7, NULL, "_ZN3foo3barEv.constprop.0", "_ZN3foo3barEv.constprop.0"},
		{8, NULL, "caf\xc3\xa9$1", "caf\xc3\xa9$1"},
	};
	probe_lines lines = {0};

	CU_ASSERT_EQUAL_FATAL(list_read(text, sizeof(text) - 1, &lines), 0);
	CU_ASSERT_EQUAL_FATAL(lines.cnt, ARRAY_CNT(expected));
	for (size_t i = 0; i < lines.cnt; i++) {
		const struct probe_line *line = &lines.items[i];

		CU_ASSERT_EQUAL(line->line_no, expected[i].line_no);
		CU_ASSERT_EQUAL(line->role, PROBE_INTERVAL);
		CU_ASSERT_STRING_EQUAL(line->symbol, expected[i].symbol);
		CU_ASSERT_STRING_EQUAL(line->name, expected[i].name);
		if (expected[i].module)
			CU_ASSERT_STRING_EQUAL(line->module, expected[i].module);
		CU_ASSERT_EQUAL(!line->module, !expected[i].module);
	}
	symbol_list_free(&lines);
}

static void malformed_lines_are_named(void)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"intervall call", "unknown role 'intervall': did you mean interval?"},
		{"frobnicate call", "unknown role 'frobnicate': it is one of interval, begin"},
		{"interval", "role 'interval' has no symbol"},
		{"interval # call", "role 'interval' has no symbol"},
		{"interval name=x", "role 'interval' has no symbol"},
		{"interval :call", "no module before ':'"},
		{"interval libc:", "no symbol after 'libc:'"},
		{"interval a:b:c", "malformed symbol 'b:c'"},
		{"interval two words", "malformed symbol 'two words'"},
		{"interval 7up", "malformed symbol '7up'"},
		{"interval a,b", "malformed symbol 'a,b'"},
		{"interval foo[", "malformed symbol 'foo['"},
		{"interval foo(int", "malformed symbol 'foo(int'"},
		{"interval ns::foo(int))", "malformed symbol"},
		{"interval usdt:query", "malformed symbol 'usdt:query'"},
		{"interval usdt::query", "malformed symbol 'usdt::query'"},
		{"interval usdt:postgres:", "malformed symbol 'usdt:postgres:'"},
		{"interval usdt:a:b:c", "malformed symbol 'usdt:a:b:c'"},
		{"interval f name=x trailing", "unexpected 'trailing'"},
		{"interval f name=x Key=arg0", "unexpected 'Key=arg0'"},
		{"interval f colour=red", "unknown option 'colour='"},
		{"interval f =red", "malformed symbol 'f =red'"},
		{"interval f name=", "option 'name=' has no value"},
		{"interval f name=a name=b", "option 'name=' is given twice"},
		{"begin f key=", "option 'key=' has no value"},
		{"begin f key=arg6", "malformed expression 'arg6' in key="},
		{"begin f key=arg", "malformed expression 'arg' in key="},
		{"begin f key=arg01", "malformed expression 'arg01' in key="},
		{"begin f key=*(arg0)", "malformed expression '*(arg0)' in key="},
		{"begin f key=*(arg0+)", "malformed expression"},
		{"begin f key=*(arg0+-8)", "malformed expression"},
		{"begin f key=*(arg0+8", "malformed expression"},
		{"begin f key=*(arg0+8):2", "malformed expression"},
		{"begin f key=*(arg0+99999999999999999999)", "malformed expression"},
		{"begin f key=*(tid+8)", "malformed expression"},
		{"begin f object=rdi", "malformed expression 'rdi' in object="},
		{"interval +12", "malformed symbol '+12'"},
		{"interval +0x", "malformed symbol '+0x'"},
		{"interval +0x12g", "malformed symbol '+0x12g'"},
		{"interval +0x11112222333344445", "malformed symbol"},
		{"begin +0x12 key=%", "malformed expression '%' in key="},
		{"begin +0x12 key=%foo", "malformed expression '%foo'"},
		{"begin +0x12 key=*(arg0-8)", "malformed expression"},
		{"begin +0x12 key=*(%rsp+2000000000000)", "malformed expression"},
		{"interval f\001", "a control character (0x01)"},
		{"interval f\rname=x", "a control character (0x0d)"},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		char text[256];
		int len = snprintf(text, sizeof(text), "# first\n%s\ninterval fine\n", cases[i].line);

		expect_list_refused(text, len, 2, cases[i].part);
	}
}

static void expressions_become_numbers(void)
{
	static const struct {
		const char *text;
		struct probe_expr expr;
	} cases[] = {
		{"arg0", {PROBE_EXPR_ARG, 0, 8, 0, 0, false, false}},
		{"arg5", {PROBE_EXPR_ARG, 5, 8, 0, 0, false, false}},
		{"retval", {PROBE_EXPR_RETVAL, 0, 8, 0, 0, false, false}},
		{"tid", {PROBE_EXPR_TID, 0, 8, 0, 0, false, false}},
		{"*(arg1+8)", {PROBE_EXPR_MEMORY, 1, 8, 8, 0, false, false}},
		{"*(arg4+0x7fffffff)", {PROBE_EXPR_MEMORY, 4, 8, INT32_MAX, 0, false, false}},
		{"*(arg2+0x10):4", {PROBE_EXPR_MEMORY, 2, 4, 16, 0, false, false}},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		probe_lines lines = {0};
		char text[128];
		int len = snprintf(text, sizeof(text), "begin f key=%s\nend g key=arg0\n", cases[i].text);
		const struct probe_expr *key;

		CU_ASSERT_EQUAL_FATAL(list_read(text, len, &lines), 0);
		key = &lines.items[0].key;
		CU_ASSERT_EQUAL(key->kind, cases[i].expr.kind);
		CU_ASSERT_EQUAL(key->arg, cases[i].expr.arg);
		CU_ASSERT_EQUAL(key->width, cases[i].expr.width);
		CU_ASSERT_EQUAL(key->off, cases[i].expr.off);
		CU_ASSERT_EQUAL(lines.items[0].object.kind, PROBE_EXPR_NONE);
		symbol_list_free(&lines);
	}
}

#ifdef __x86_64__
/* An address is a function, or one instruction where a register is read. */
static void addresses_are_functions_or_instructions(void)
{
	static const char text[] = "enqueue +0x1234 task=%rbx queue=arg0\n"
				   "dequeue libfoo.so:+0xAbC task=*(%rsp-8):4 queue=%r13d\n"
				   "interval +0x10\n"
				   "dequeue +0x10 task=retval\n";
	static const struct {
		enum probe_symbol_form form;
		bool exit;
	} expected[] = {
		{PROBE_SYMBOL_PLACE, false},
		{PROBE_SYMBOL_PLACE, false},
		{PROBE_SYMBOL_ADDRESS, true},
		{PROBE_SYMBOL_ADDRESS, true},
	};
	probe_lines lines = {0};
	uint64_t addr = 0;

	CU_ASSERT_EQUAL_FATAL(list_read(text, sizeof(text) - 1, &lines), 0);
	for (size_t i = 0; i < ARRAY_CNT(expected); i++) {
		CU_ASSERT_EQUAL(lines.items[i].form, expected[i].form);
		CU_ASSERT_EQUAL(probe_line_needs_exit(&lines.items[i]), expected[i].exit);
	}
	CU_ASSERT(lines.items[0].task.is_reg);
	CU_ASSERT_EQUAL(lines.items[0].task.reg_off, offsetof(struct pt_regs, rbx));
	CU_ASSERT(!lines.items[0].queue.is_reg);
	CU_ASSERT_EQUAL(probe_line_args(&lines.items[0]), 1);
	CU_ASSERT_EQUAL(lines.items[1].task.kind, PROBE_EXPR_MEMORY);
	CU_ASSERT_EQUAL(lines.items[1].task.off, -8);
	CU_ASSERT_EQUAL(lines.items[1].task.width, 4);
	CU_ASSERT_EQUAL(lines.items[1].queue.width, 4);
	CU_ASSERT_EQUAL(lines.items[1].queue.reg_off, offsetof(struct pt_regs, r13));
	CU_ASSERT(probe_symbol_address(lines.items[1].symbol, &addr));
	CU_ASSERT_EQUAL(addr, 0xabc);
	symbol_list_free(&lines);
}

/* In this very program: a function by its address is the one of its name, and no other address is one. */
static void addresses_are_found(void)
{
	uint64_t addr, within;
	struct program *program = NULL;
	struct probe_targets targets = {0};
	probe_lines lines = {0};
	char text[300];
	uint32_t id;
	int len;

	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &program), 0);
	id = program__function_find(program, 0, "symbol_list_test_function");
	CU_ASSERT_NOT_EQUAL_FATAL(id, PROGRAM_NONE);
	addr = program__function(program, id)->addr;
	/* That one is a single instruction. */
	within = program__function(program, program__function_find(program, 0, "suite_symbol_list"))->addr + 1;
	len = snprintf(text, sizeof(text),
		       "function +0x%lx\nfunction +0x%lx\nbegin +0x%lx key=%%rdi\nend +0x%lx key=%%rdi\n"
		       "end +0x1 key=%%rax\n",
		       addr, within, addr, addr);
	CU_ASSERT_EQUAL_FATAL(list_read(text, len, &lines), 0);
	CU_ASSERT_EQUAL_FATAL(probe_targets_find(&lines, program, &targets), 0);
	CU_ASSERT_EQUAL(targets.verdicts.items[0].err, 0);
	CU_ASSERT_EQUAL(targets.verdicts.items[1].err, -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(targets.verdicts.items[1].why, "no function of "));
	CU_ASSERT_EQUAL(targets.verdicts.items[4].err, -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(targets.verdicts.items[4].why, "no instruction of "));
	CU_ASSERT_EQUAL_FATAL(targets.targets.cnt, 3);
	CU_ASSERT_EQUAL(targets.targets.items[0].func, id);
	for (size_t i = 1; i < 3; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(targets.targets.items[i].usdt);
		CU_ASSERT_EQUAL(targets.targets.items[i].file_off, targets.targets.items[0].file_off);
		CU_ASSERT(targets.targets.items[i].func >= PROBE_MARKER_FUNC);
	}
	CU_ASSERT_NOT_EQUAL(targets.targets.items[1].func, targets.targets.items[2].func);
	probe_targets_free(&targets);
	symbol_list_free(&lines);
	program__free(program);
}
#endif

static void every_role_has_what_it_needs(void)
{
	static const char text[] = "interval f\n"
				   "begin g key=arg0\n"
				   "end h key=retval name=done\n"
				   "work w key=*(arg3+8):4\n"
				   "acquire pthread_mutex_lock\n"
				   "release pthread_mutex_unlock object=*(arg1+0)\n"
				   "enqueue put task=arg1\n"
				   "dequeue get task=retval queue=arg2\n"
				   "function t\n"
				   "acquire usdt:postgresql:lwlock__acquire object=arg0\n";
	static const struct {
		enum probe_role role;
		bool exit;
		uint8_t args;
	} expected[] = {
		{PROBE_INTERVAL, true, 0},      {PROBE_BEGIN, false, 1 << 0},  {PROBE_END, true, 0},
		{PROBE_WORK, false, 1 << 3},    {PROBE_ACQUIRE, true, 1 << 0}, {PROBE_RELEASE, false, 1 << 1},
		{PROBE_ENQUEUE, false, 3},      {PROBE_DEQUEUE, true, 1 << 2}, {PROBE_FUNCTION, true, 0},
		{PROBE_ACQUIRE, false, 1 << 0},
	};
	probe_lines lines = {0};

	CU_ASSERT_EQUAL_FATAL(list_read(text, sizeof(text) - 1, &lines), 0);
	CU_ASSERT_EQUAL_FATAL(lines.cnt, ARRAY_CNT(expected));
	for (size_t i = 0; i < lines.cnt; i++) {
		CU_ASSERT_EQUAL(lines.items[i].role, expected[i].role);
		CU_ASSERT_EQUAL(probe_line_needs_exit(&lines.items[i]), expected[i].exit);
		CU_ASSERT_EQUAL(probe_line_args(&lines.items[i]), expected[i].args);
		CU_ASSERT_EQUAL(lines.items[i].named, i == 2);
	}
	CU_ASSERT_EQUAL(lines.items[6].queue.kind, PROBE_EXPR_ARG);
	CU_ASSERT_EQUAL(lines.items[6].queue.arg, 0);
	CU_ASSERT(probe_lines_have_intervals(&lines));
	symbol_list_free(&lines);
	CU_ASSERT_EQUAL_FATAL(list_read("function g\nacquire f\n", 21, &lines), 0);
	CU_ASSERT(!probe_lines_have_intervals(&lines));
	CU_ASSERT(!probe_lines_only_time(&lines));
	symbol_list_free(&lines);
	CU_ASSERT_EQUAL_FATAL(list_read("function g\nfunction f\n", 22, &lines), 0);
	CU_ASSERT(probe_lines_only_time(&lines));
	symbol_list_free(&lines);
	CU_ASSERT(probe_lines_only_time(&lines));
}

static void nonsense_is_refused_by_its_line(void)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"begin f", "role 'begin' needs key=EXPR, as in key=arg0"},
		{"work f name=x", "role 'work' needs key=EXPR"},
		{"enqueue f", "role 'enqueue' needs task=EXPR"},
		{"dequeue f queue=arg0", "role 'dequeue' needs task=EXPR"},
		{"interval f key=tid", "role 'interval' has no use for key="},
		{"function f object=arg0", "role 'function' has no use for object="},
		{"function f type=arg0", "role 'function' has no use for type="},
		{"interval f type=retval", "type=retval comes too late"},
		{"interval f type=tid", "type=tid says nothing"},
		{"interval f type=str(retval)", "type=retval comes too late"},
		{"interval f type=str(arg0", "malformed expression"},
		{"interval f type=str()", "malformed expression"},
		{"interval f type=str(*(arg0+8):4)", "malformed expression"},
		{"begin f key=str(arg0)", "malformed expression"},
#ifdef __x86_64__
		{"begin f key=%rbx", "key= names a register, which only an instruction at +0xADDRESS has"},
		{"begin usdt:a:b key=%rbx", "key= names a register"},
		{"begin +0x12 key=%al", "malformed expression '%al'"},
		{"begin +0x12 key=*(%ebx+8)", "malformed expression"},
		{"interval +0x12 type=%rbx", "a marker is one place"},
#endif
		{"acquire f key=arg0", "role 'acquire' has no use for key="},
		{"begin f key=arg0 object=arg1", "role 'begin' has no use for object="},
		{"acquire f object=retval", "object=retval comes too late for role 'acquire'"},
		{"dequeue f task=retval queue=retval", "queue=retval comes too late for role 'dequeue'"},
		{"acquire f object=tid", "object=tid says nothing"},
		{"enqueue f task=tid", "task=tid says nothing"},
		{"interval usdt:a:b",
		 "role 'interval' lasts from entry to exit, and a marker is one place: use one marker"},
		{"function usdt:a:b", "a marker is one place: use a function"},
		{"begin usdt:a:b key=retval", "a marker is no function and returns nothing"},
	};
	static const struct {
		const char *text;
		unsigned line_no;
		const char *part;
	} alone[] = {
		{"interval f\nbegin g key=arg0\n", 2, "'begin' tells nothing without a line of role 'end'"},
		{"end g key=arg0\n", 1, "'end' tells nothing without a line of role 'begin'"},
		{"interval f\n\nwork g key=arg0\n", 3, "'work' tells nothing without a line of role 'begin'"},
		{"release f\n", 1, "'release' tells nothing without a line of role 'acquire'"},
		{"enqueue f task=arg1\n", 1, "'enqueue' tells nothing without a line of role 'dequeue'"},
		{"dequeue f task=arg1\n", 1, "'dequeue' tells nothing without a line of role 'enqueue'"},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		char text[256];
		int len = snprintf(text, sizeof(text), "# first\n%s\ninterval fine\n", cases[i].line);

		expect_list_refused(text, len, 2, cases[i].part);
	}
	for (size_t i = 0; i < ARRAY_CNT(alone); i++)
		expect_list_refused(alone[i].text, strlen(alone[i].text), alone[i].line_no, alone[i].part);
}

static void symbols_are_told_by_their_form(void)
{
	static const struct {
		const char *symbol;
		enum probe_symbol_form form;
		const char *module, *rest;
	} cases[] = {
		{"ngx_*", PROBE_SYMBOL_GLOB, NULL, "ngx_*"},
		{"nginx:ngx_http_[!a-f]?", PROBE_SYMBOL_GLOB, "nginx", "ngx_http_[!a-f]?"},
		{"postgres:usdt:postgresql:query-start", PROBE_SYMBOL_USDT, "postgres", "usdt:postgresql:query-start"},
		{"usdt:*:lwlock__*", PROBE_SYMBOL_USDT, NULL, "usdt:*:lwlock__*"},
		{"do_command(THD*, bool)", PROBE_SYMBOL_CPLUSPLUS, NULL, "do_command(THD*, bool)"},
		{"std::vector<int, std::allocator<int> >::push_back(int const&)", PROBE_SYMBOL_CPLUSPLUS, NULL,
		 "std::vector<int, std::allocator<int> >::push_back(int const&)"},
		{"std::map<char*, T*>::f", PROBE_SYMBOL_CPLUSPLUS, NULL, "std::map<char*, T*>::f"},
		{"ha_innobase::*", PROBE_SYMBOL_CPLUSPLUS_GLOB, NULL, "ha_innobase::*"},
		{"A::operator*(A const&)", PROBE_SYMBOL_CPLUSPLUS, NULL, "A::operator*(A const&)"},
		{"libx.so:ns::f", PROBE_SYMBOL_CPLUSPLUS, "libx.so", "ns::f"},
		{"libx.so:::f", PROBE_SYMBOL_CPLUSPLUS, "libx.so", "::f"},
		{"(anonymous namespace)::f(char) const # why", PROBE_SYMBOL_CPLUSPLUS, NULL,
		 "(anonymous namespace)::f(char) const"},
		{"A::operator<(A const&)", PROBE_SYMBOL_CPLUSPLUS, NULL, "A::operator<(A const&)"},
		{"operator new(unsigned long)", PROBE_SYMBOL_CPLUSPLUS, NULL, "operator new(unsigned long)"},
	};

	for (size_t i = 0; i < ARRAY_CNT(cases); i++) {
		probe_lines lines = {0};
		char text[256];
		int len = snprintf(text, sizeof(text), "acquire %s\n", cases[i].symbol);

		CU_ASSERT_EQUAL_FATAL(list_read(text, len, &lines), 0);
		CU_ASSERT_EQUAL(lines.items[0].form, cases[i].form);
		CU_ASSERT_STRING_EQUAL(lines.items[0].symbol, cases[i].rest);
		CU_ASSERT_EQUAL(!lines.items[0].module, !cases[i].module);
		if (cases[i].module)
			CU_ASSERT_STRING_EQUAL(lines.items[0].module, cases[i].module);
		symbol_list_free(&lines);
	}
}

static void limits_hold(void)
{
	const size_t sz = 100001 * strlen("#\n") + 64;
	char *text = malloc(sz), path[64];
	probe_lines lines = {0};
	size_t len;
	int fd;

	expect_list_refused("", 0, 0, "has no probe");
	expect_list_refused("# nothing\n\n", 11, 0, "has no probe");
	expect_list_refused("interval f\0oo\n", 14, 1, "a NUL byte");

	/* 4096 bytes pass, with or without CR; one more does not. */
	memset(text, ' ', 5000);
	memcpy(text, "interval f", 10);
	CU_ASSERT_EQUAL(list_read(text, 4096, &lines), 0);
	memcpy(text + 4096, "\r\n", 2);
	CU_ASSERT_EQUAL(list_read(text, 4098, &lines), 0);
	CU_ASSERT_EQUAL(lines.cnt, 2);
	symbol_list_free(&lines);
	memcpy(text + 4096, " \n", 2);
	expect_list_refused(text, 4098, 1, "longer than 4096 bytes");
	memcpy(text + 4096, "\rx", 2);
	expect_list_refused(text, 4098, 1, "longer than 4096 bytes");

	len = sprintf(text, "interval f\n");
	for (size_t i = 1; i < 100000; i++)
		len += sprintf(text + len, "#\n");
	CU_ASSERT_EQUAL(list_read(text, len, &lines), 0);
	symbol_list_free(&lines);
	len += sprintf(text + len, "#\n");
	expect_list_refused(text, len, 100001, "more than 100000 lines");
	free(text);

	said_begin();
	CU_ASSERT_EQUAL(symbol_list_read("/nonexistent/list", &lines), -ENOENT);
	CU_ASSERT(said_one_line(said_end(), "cannot open symbol list /nonexistent/list: No such file"));
	said_begin();
	CU_ASSERT_EQUAL(symbol_list_read("/", &lines), -EISDIR);
	CU_ASSERT(said_one_line(said_end(), "cannot open symbol list /: Is a directory"));
	fd = list_make("interval f\n", 11, path);
	CU_ASSERT_EQUAL(symbol_list_read(path, &lines), 0);
	symbol_list_free(&lines);
	close(fd);
}

static void no_bytes_crash_the_parser(void)
{
	static const char *const pieces[] = {"interval", "begin", " ",        "\t",    "\n",   "\r\n", ":",
					     "::",       "usdt:", "f",        "(",     ")",    "<",    "*",
					     "[",        "]",     "#",        "name=", "key=", "arg0", "*(arg1+8)",
					     ":4",       "=",     "operator", "~",     "\377", "const"};
	uint64_t random = 3;

	for (int i = 0; i < 3000; i++) {
		probe_lines lines = {0};
		char text[512] = "";
		size_t len = 0;

		for (int piece = 0; piece < 16; piece++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			len += sprintf(text + len, "%s", pieces[(random >> 33) % ARRAY_CNT(pieces)]);
		}
		list_read(text, len, &lines);
		for (size_t j = 0; j < lines.cnt; j++)
			CU_ASSERT(lines.items[j].symbol[0] && lines.items[j].name[0]);
		symbol_list_free(&lines);
	}
}

/* --- resolution ------------------------------------------------------------------------------------------------- */

/* What a list means in a process. */
struct resolved {
	probe_lines lines;
	struct program *program;
	struct probe_targets targets;
};

static void resolved_free(struct resolved *resolved)
{
	probe_targets_free(&resolved->targets);
	program__free(resolved->program);
	symbol_list_free(&resolved->lines);
	memset(resolved, 0, sizeof(*resolved));
}

static int resolve_as(const char *list, const char *text, pid_t pid, struct resolved *resolved)
{
	int err;

	memset(resolved, 0, sizeof(*resolved));
	CU_ASSERT_EQUAL_FATAL(list_read(text, strlen(text), &resolved->lines), 0);
	said_begin();
	err = program__open(pid, NULL, &resolved->program);
	if (!err)
		err = symbol_list_resolve(&resolved->lines, list, resolved->program, &resolved->targets);
	said_end();
	return err;
}

static int resolve(const char *text, pid_t pid, struct resolved *resolved)
{
	return resolve_as("LIST", text, pid, resolved);
}

static void expect_unresolved(const char *text, pid_t pid, int err, const char *part)
{
	struct resolved resolved;

	CU_ASSERT_EQUAL(resolve(text, pid, &resolved), err);
	CU_ASSERT(said_one_line(said_state.text, part));
	CU_ASSERT_EQUAL(resolved.targets.targets.cnt, 0);
	resolved_free(&resolved);
}

static const char *module_name(const struct resolved *resolved, size_t idx)
{
	return program__module(resolved->program, resolved->targets.targets.items[idx].module)->name;
}

static const char *module_file(const struct resolved *resolved, size_t idx)
{
	return program__module(resolved->program, resolved->targets.targets.items[idx].module)->file;
}

/* The bytes at the function's beginning are those that run here. */
static void check_target(const struct resolved *resolved, size_t idx, const void *code)
{
	int fd = open(module_file(resolved, idx), O_RDONLY | O_CLOEXEC);
	char bytes[8] = "";

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(pread(fd, bytes, sizeof(bytes), resolved->targets.targets.items[idx].file_off), sizeof(bytes));
	CU_ASSERT_EQUAL(memcmp(bytes, code, sizeof(bytes)), 0);
	close(fd);
}

static void functions_are_found_in_the_executable_and_in_libraries(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
	void *version = dlsym(libc, "gnu_get_libc_version");
	static const char *const spellings[] = {"", "libc:", "libc.so:", "libc.so.6:"};
	struct resolved resolved;
	char text[256];

	CU_ASSERT_EQUAL_FATAL(
		resolve("interval symbol_list_test_function\ninterval libc:getppid\n", getpid(), &resolved), 0);
	CU_ASSERT_EQUAL_FATAL(resolved.targets.targets.cnt, 2);
	CU_ASSERT_EQUAL(resolved.targets.targets.items[0].line_idx, 0);
	CU_ASSERT_EQUAL(resolved.targets.targets.items[1].line_idx, 1);
	CU_ASSERT_PTR_NOT_NULL(resolved.targets.targets.items[0].plan);
	CU_ASSERT_STRING_EQUAL(module_name(&resolved, 1), "libc.so.6");
	check_target(&resolved, 0, (void *)symbol_list_test_function);
	resolved_free(&resolved);
	for (size_t i = 0; i < ARRAY_CNT(spellings); i++) {
		snprintf(text, sizeof(text), "interval %sgnu_get_libc_version\n", spellings[i]);
		CU_ASSERT_EQUAL_FATAL(resolve(text, getpid(), &resolved), 0);
		CU_ASSERT_STRING_EQUAL(said_state.text, "");
		CU_ASSERT_STRING_EQUAL(module_name(&resolved, 0), "libc.so.6");
		check_target(&resolved, 0, version);
		resolved_free(&resolved);
	}
	dlclose(libc);
}

static void what_cannot_be_resolved_says_why(void)
{
	struct resolved resolved;

	expect_unresolved("\ninterval symbol_list_test_functoin\n", getpid(), -ENOENT,
			  "LIST:2: no function 'symbol_list_test_functoin' in ");
	expect_unresolved("interval symbol_list_test_functoin\n", getpid(), -ENOENT,
			  "did you mean symbol_list_test_function (");
	expect_unresolved("interval libc:gnu_get_libc_versoin\n", getpid(), -ENOENT,
			  "did you mean gnu_get_libc_version (libc.so.6)");
	expect_unresolved("interval qqqqqqqqqqqqqq\n", getpid(), -ENOENT, "nor one with a similar name");
	expect_unresolved("interval qqqqqqq*\n", getpid(), -ENOENT, "no function matches 'qqqqqqq*' in ");
	expect_unresolved("interval symbol_list_test_variable\n", getpid(), -EINVAL,
			  "'symbol_list_test_variable' is a variable of ");
	expect_unresolved("interval libc:environ\n", getpid(), -EINVAL, "'environ' is a variable of libc.so.6");
#ifdef __x86_64__
	expect_unresolved("interval libc:memcpy\n", getpid(), -EINVAL, "only chooses an implementation");
#endif
	expect_unresolved("interval libnone.so:f\n", getpid(), -ENOENT,
			  "module 'libnone.so' is not mapped by process ");
	expect_unresolved("interval libnone.so:f\n", getpid(), -ENOENT, "which has run, ");
	expect_unresolved("interval /libnone.so:f\n", getpid(), -ENOENT,
			  "nor can it be one day: No such file or directory");
	expect_unresolved("interval /etc/passwd:f\n", getpid(), -ENOENT, "nor can it be one day: Exec format error");
	CU_ASSERT_EQUAL(resolve("interval f\n", 1 << 22, &resolved), -ESRCH);
	resolved_free(&resolved);
}

static void a_function_has_each_role_once(void)
{
	struct resolved resolved;

	expect_unresolved(
		"interval symbol_list_test_function\n\ninterval symbol_list_test_alias\n", getpid(), -EINVAL,
		"LIST:3: 'symbol_list_test_alias' is the same function as 'symbol_list_test_function' of line 1");
	expect_unresolved("function symbol_list_test_f*\nfunction symbol_list_test_func*\n", getpid(), -EINVAL,
			  "is also what 'symbol_list_test_f*' of line 1 means: a function can have a role once only");
	/* Several roles are well and good, and share one plan and one number. */
	CU_ASSERT_EQUAL_FATAL(
		resolve("interval symbol_list_test_function\nacquire symbol_list_test_alias object=arg1\n", getpid(),
			&resolved),
		0);
	CU_ASSERT_EQUAL_FATAL(resolved.targets.targets.cnt, 2);
	CU_ASSERT_EQUAL(resolved.targets.targets.items[0].func, resolved.targets.targets.items[1].func);
	CU_ASSERT_EQUAL(resolved.targets.targets.items[0].plan, resolved.targets.targets.items[1].plan);
	resolved_free(&resolved);
	/* What a line names itself is left out of a glob. */
	CU_ASSERT_EQUAL_FATAL(
		resolve("function symbol_list_*\nfunction symbol_list_test_function name=x\n", getpid(), &resolved), 0);
	CU_ASSERT_EQUAL(resolved.targets.verdicts.items[1].cnt, 1);
	for (size_t i = 0; i + 1 < resolved.targets.targets.cnt; i++)
		CU_ASSERT_NOT_EQUAL(resolved.targets.targets.items[i].file_off,
				    resolved.targets.targets.items[resolved.targets.targets.cnt - 1].file_off);
	resolved_free(&resolved);
}

static void markers_are_found_by_name_and_by_glob(void)
{
	struct resolved resolved;

	CU_ASSERT_EQUAL_FATAL(resolve("begin usdt:whylate_test:sec* key=arg1\nend usdt:whylate_test:first key=tid\n",
				      getpid(), &resolved),
			      0);
	CU_ASSERT_EQUAL_FATAL(resolved.targets.targets.cnt, 2);
	CU_ASSERT_STRING_EQUAL(resolved.targets.targets.items[0].name, "whylate_test:second");
	CU_ASSERT_STRING_EQUAL(resolved.targets.targets.items[1].name, "whylate_test:first");
	CU_ASSERT_NOT_EQUAL(resolved.targets.targets.items[0].func, resolved.targets.targets.items[1].func);
	CU_ASSERT(resolved.targets.targets.items[0].func >= PROBE_MARKER_FUNC);
	CU_ASSERT_PTR_NOT_NULL(resolved.targets.targets.items[0].usdt);
	resolved_free(&resolved);
	expect_unresolved("acquire usdt:whylate_test:frist\n", getpid(), -ENOENT,
			  "did you mean usdt:whylate_test:first (");
	expect_unresolved("acquire usdt:whylate_test:first\n", getpid(), -ENOTSUP,
			  "the marker has fewer arguments than the line asks for");
	expect_unresolved("acquire usdt:nobody:*\n", getpid(), -ENOENT, "no marker matches 'usdt:nobody:*'");
}

/* Of a preset that does not fit this build what is missing is said, and the rest is used. */
static void a_preset_does_without_what_is_missing(void)
{
	struct resolved resolved;

	CU_ASSERT_EQUAL(resolve_as("preset:x", "interval symbol_list_test_function\nfunction nosuchthing\n", getpid(),
				   &resolved),
			0);
	CU_ASSERT(said_one_line(said_state.text, "preset:x:2: left out: no function 'nosuchthing'"));
	CU_ASSERT_EQUAL(resolved.targets.targets.cnt, 1);
	resolved_free(&resolved);
	/* Without its begin an end is nothing, and without either nothing says what a request is. */
	CU_ASSERT_EQUAL(resolve_as("preset:x",
				   "begin nosuchthing key=arg0\nend symbol_list_test_function key=arg0\nfunction "
				   "libc:getppid\n",
				   getpid(), &resolved),
			-ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(said_state.text, "preset:x:2: left out: role 'end' tells nothing"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said_state.text, "nothing is left of it that says what a request is"));
	resolved_free(&resolved);
}

static bool copy_file(const char *from, int to_fd, const char *find, const char *replace)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	char *bytes, *found = NULL;
	bool done;

	if (fd < 0 || fstat(fd, &stat))
		return false;
	bytes = malloc(stat.st_size);
	done = read(fd, bytes, stat.st_size) == stat.st_size;
	if (done && find)
		found = memmem(bytes, stat.st_size, find, strlen(find));
	if (found)
		memcpy(found, replace, strlen(replace) + 1);
	done = done && (!find || found) && write(to_fd, bytes, stat.st_size) == stat.st_size;
	free(bytes);
	close(fd);
	return done;
}

static const char *path_of_libc(void)
{
	static char path[4096];
	Dl_info symbol;
	void *libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);

	CU_ASSERT_FATAL(dladdr(dlsym(libc, "gnu_get_libc_version"), &symbol));
	dlclose(libc);
	CU_ASSERT_PTR_NOT_NULL_FATAL(realpath(symbol.dli_fname, path));
	return path;
}

static void a_library_that_lost_its_name_is_still_reached(void)
{
	char dir[] = "/tmp/whylate-test-XXXXXX", path[64];
	struct resolved resolved;
	struct elf_file *elf;
	void *addr;
	int fd;

	if (geteuid()) {
		printf("(skipped: map_files needs root) ");
		return;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/liblost.so.1", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	CU_ASSERT_FATAL(copy_file(path_of_libc(), fd, NULL, NULL));
	addr = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CU_ASSERT_NOT_EQUAL_FATAL(addr, MAP_FAILED);
	CU_ASSERT_EQUAL(resolve("interval liblost:gnu_get_libc_version\n", getpid(), &resolved), 0);
	resolved_free(&resolved);
	expect_unresolved("interval gnu_get_libc_version\n", getpid(), -EINVAL,
			  "write MODULE:gnu_get_libc_version to choose");
	unlink(path);
	/* A stranger in its place must not be taken for it. */
	close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700));
	CU_ASSERT_EQUAL_FATAL(resolve("interval liblost:gnu_get_libc_version\n", getpid(), &resolved), 0);
	CU_ASSERT_STRING_EQUAL(module_name(&resolved, 0), "liblost.so.1");
	elf = elf_file__open(module_file(&resolved, 0));
	CU_ASSERT_PTR_NOT_NULL_FATAL(elf);
	CU_ASSERT_EQUAL(elf_file__find(elf, "gnu_get_libc_version")->file_off,
			resolved.targets.targets.items[0].file_off);
	elf_file__free(elf);
	resolved_free(&resolved);
	munmap(addr, 4096);
	unlink(path);
	rmdir(dir);
	close(fd);
}

/* A program that is being started has its name before it has its memory; asleep, it has both. */
static bool is_asleep(pid_t pid)
{
	char path[64], line[512] = "";
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	name_end = strrchr(line, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

static void expect_no_return_probes(pid_t pid)
{
	const struct plan_needs needs = {.exit = true};
	struct program *program = NULL;
	uint32_t first, cnt;

	CU_ASSERT_EQUAL_FATAL(program__open(pid, NULL, &program), 0);
	CU_ASSERT_EQUAL_FATAL(program__module_functions(program, 0, &first, &cnt), 0);
	CU_ASSERT(cnt > 0 && program__module(program, 0)->is_go);
	for (uint32_t i = 0; i < cnt; i++) {
		struct plan plan = {0};

		CU_ASSERT_EQUAL(plan_make(program, first + i, &needs, &plan), 0);
		CU_ASSERT_NOT_EQUAL(plan.exit, PLAN_EXIT_URETPROBE);
		plan_free(&plan);
	}
	program__free(program);
}

static void a_go_program_has_no_return_probes(void)
{
	int exe = memfd_create("gopher", MFD_CLOEXEC), status;
	char *const args[] = {"gopher", "60", NULL};
	char exe_link[64], exe_path[256];
	bool running = false;
	pid_t pid;

	/* A section of the right name is what makes it Go to us. */
	if (!copy_file("/usr/bin/sleep", exe, ".gnu_debuglink", ".go.buildinfo")) {
		printf("(skipped: /usr/bin/sleep has no section to rename) ");
		close(exe);
		return;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(exe, args, environ);
		_exit(1);
	}
	snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", pid);
	for (int i = 0; i < 10000 && !running && !waitpid(pid, &status, WNOHANG); i++) {
		ssize_t len = readlink(exe_link, exe_path, sizeof(exe_path) - 1);

		exe_path[len > 0 ? len : 0] = '\0';
		running = strstr(exe_path, "gopher") && is_asleep(pid);
		usleep(1000);
	}
	CU_ASSERT_FATAL(running);
	expect_no_return_probes(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(exe);
}

static void a_program_goes_by_the_name_of_its_link(void)
{
	char dir[] = "/tmp/whylate-test-XXXXXX", path[64], link_path[64], name[64] = "";
	char *const args[] = {"title", "60", NULL};
	pid_t pid;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/real-name", dir);
	snprintf(link_path, sizeof(link_path), "%s/link-name", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	CU_ASSERT_FATAL(copy_file("/usr/bin/sleep", fd, NULL, NULL));
	close(fd);
	CU_ASSERT_EQUAL(symlink("real-name", link_path), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(link_path, args);
		_exit(1);
	}
	for (int i = 0; i < 10000 && (strcmp(name, "link-name") || !is_asleep(pid)); i++) {
		CU_ASSERT_EQUAL(target_program_name(pid, name, sizeof(name)), 0);
		usleep(1000);
	}
	CU_ASSERT_STRING_EQUAL(name, "link-name");
	/* What else is said depends on how the release built its `sleep`. */
	expect_unresolved("interval link-name:f\n", pid, -ENOENT, "no function 'f'");
	expect_unresolved("interval real-name:f\n", pid, -ENOENT, "no function 'f'");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CU_ASSERT_EQUAL(target_program_name(pid, name, sizeof(name)), -ESRCH);
	unlink(path);
	unlink(link_path);
	rmdir(dir);
}

int suite_symbol_list(void)
{
	static const struct unit_test tests[] = {
		{"a list of intervals is read", a_list_of_intervals_is_read},
		{"malformed lines are named", malformed_lines_are_named},
		{"expressions become numbers", expressions_become_numbers},
		{"every role has what it needs", every_role_has_what_it_needs},
#ifdef __x86_64__
		{"addresses_are_functions_or_instructions", addresses_are_functions_or_instructions},
		{"addresses_are_found", addresses_are_found},
#endif
		{"nonsense is refused by its line", nonsense_is_refused_by_its_line},
		{"symbols are told by their form", symbols_are_told_by_their_form},
		{"limits hold", limits_hold},
		{"no bytes crash the parser", no_bytes_crash_the_parser},
		{"functions are found in the executable and in libraries",
		 functions_are_found_in_the_executable_and_in_libraries},
		{"what cannot be resolved says why", what_cannot_be_resolved_says_why},
		{"a function has each role once", a_function_has_each_role_once},
		{"markers are found by name and by glob", markers_are_found_by_name_and_by_glob},
		{"a preset does without what is missing", a_preset_does_without_what_is_missing},
		{"a library that lost its name is still reached", a_library_that_lost_its_name_is_still_reached},
		{"a Go program has no return probes", a_go_program_has_no_return_probes},
		{"a program goes by the name of its link", a_program_goes_by_the_name_of_its_link},
	};

	return unit_suite("symbol_list", tests, sizeof(tests) / sizeof(tests[0]));
}
