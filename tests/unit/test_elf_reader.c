// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading symbol tables in another process: what ends it, what is given up, and what it may answer. */
#include "elf_fixture.h"
#include "ending.h"
#include "said.h"
#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/elf_reader.h"
#include "target/program.h"
#include "target/symbols_child.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static const struct made_symbol symbols[] = {
	{"one", CODE_ADDR, STT_FUNC, STB_GLOBAL, 16},
	{"other", CODE_ADDR + 0x20, STT_FUNC, STB_GLOBAL, 16},
	{"datum", CODE_ADDR + 0x40, STT_OBJECT, STB_GLOBAL, 8},
};

static struct made_elf made;

static const char *fd_path(int fd)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static bool copy_of_self(int fd)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	while (from >= 0 && got > 0)
		got = sendfile(fd, from, NULL, 1 << 24);
	if (from >= 0)
		close(from);
	return from >= 0 && !got;
}

static int make_file(char path[64])
{
	elf_make(&made, symbols, sizeof(symbols) / sizeof(symbols[0]), NULL);
	return elf_make_file(made.bytes, made.sz, path);
}

/* How many functions it has; -1: it cannot be opened. */
static int function_cnt(const char *path)
{
	struct elf_file *file = elf_file__open(path);
	const struct elf_function *functions;
	int cnt = file ? (int)elf_file__functions(file, &functions) : -1;

	elf_file__free(file);
	return cnt;
}

/* The process, which has read something. */
static pid_t reader_pid(void)
{
	pid_t pids[SYMBOLS_PIDS] = {0};
	char path[64];

	CU_ASSERT_EQUAL(function_cnt("/proc/self/exe") > 0, 1);
	CU_ASSERT_FATAL(symbols_children_pids(pids) > 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pids[0]);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	return pids[0];
}

/* It is ended by that signal while it owes an answer: how many functions the file has then. */
static int end_while_asked(const char *path, int signal_no)
{
	pid_t killer = ending_when_asked(reader_pid(), signal_no);
	int cnt = function_cnt(path);

	CU_ASSERT_EQUAL(waitpid(killer, NULL, 0), killer);
	return cnt;
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

static void it_ends_and_is_reaped(void)
{
	pid_t pid;

	/* One that another suite has left is not the last that has begun. */
	elf_reader_rest(0);
	pid = reader_pid();
	/* Not so soon. */
	elf_reader_rest(3600000000000ULL);
	CU_ASSERT_EQUAL(kill(pid, 0), 0);
	elf_reader_rest(0);
	CU_ASSERT(kill(pid, 0) && errno == ESRCH);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, WNOHANG), -1);
	elf_reader_rest(0);
	CU_ASSERT(reader_pid() != pid);
}

static void one_that_was_killed_begins_again(void)
{
	pid_t pid = reader_pid();
	char path[64];
	int fd = make_file(path);

	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(function_cnt(path), 2);
	CU_ASSERT(reader_pid() != pid);
	/* Also while it reads: the memory may be short. */
	said_begin();
	CU_ASSERT_EQUAL(end_while_asked(path, SIGKILL), 2);
	CU_ASSERT_STRING_EQUAL(said_end(), "");
	close(fd);
}

static void a_file_that_takes_too_long_is_given_up(void)
{
	char path[64], other_path[64];
	int fd = make_file(path), other_fd = make_file(other_path);
	uint32_t starts;
	struct elf_file *file;

	said_begin();
	CU_ASSERT_EQUAL(end_while_asked(path, SIGXCPU), 0);
	starts = symbols_children_starts();
	/* It has no symbols and every mark, and is not read again; the agent warns once. */
	file = elf_file__open(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(elf_file__symbol_kind(file, "one"), ELF_SYMBOL_NONE);
	CU_ASSERT(elf_file__unwinds(file));
	elf_file__free(file);
	CU_ASSERT(said_one_line(said_end(), "takes too much CPU time"));
	CU_ASSERT_EQUAL(symbols_children_starts(), starts);
	CU_ASSERT_EQUAL(function_cnt(other_path), 2);
	close(other_fd);
	close(fd);
}

static void what_is_given_up_is_one_thing_of_a_file(void)
{
	struct elf_reader_counts before, counts;
	char path[64];
	int fd = make_file(path);
	pid_t killer;

	elf_reader_counts(&before);
	said_begin();
	killer = ending_when_asked(reader_pid(), SIGXCPU);
	CU_ASSERT(!eh_frame__read(fd, false) && errno == ENODATA);
	CU_ASSERT_EQUAL(waitpid(killer, NULL, 0), killer);
	CU_ASSERT(!eh_frame__read(fd, false) && errno == ENODATA);
	CU_ASSERT(said_one_line(said_end(), "are unwound by guesses"));
	elf_reader_counts(&counts);
	CU_ASSERT_EQUAL(counts.given_up, before.given_up + 1);
	CU_ASSERT(!eh_frame__read(fd, true) && errno == ENOENT);
	CU_ASSERT_EQUAL(function_cnt(path), 2);
	close(fd);
}

static void a_file_that_takes_too_much_memory_is_given_up(void)
{
	char path[64];
	int fd;

	elf_make(&made, symbols, sizeof(symbols) / sizeof(symbols[0]), NULL);
	made_section(&made, MADE_STRTAB)->sh_size = 200 << 20;
	fd = elf_make_file(made.bytes, made.sz, path);
	CU_ASSERT_EQUAL(ftruncate(fd, 400 << 20), 0);
	said_begin();
	CU_ASSERT_EQUAL(function_cnt(path), 0);
	CU_ASSERT_EQUAL(function_cnt(path), 0);
	CU_ASSERT(said_one_line(said_end(), "takes more memory than there is for it"));
	close(fd);
}

/* How many functions it has, as soon as a thread that does not wait has the answer. */
static int function_cnt_at_last(const char *path)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int cnt = -1;

	for (int i = 0; i < 2000 && cnt < 0; i++) {
		cnt = function_cnt(path);
		CU_ASSERT(cnt >= 0 || errno == EAGAIN);
		nanosleep(&pause, NULL);
	}
	return cnt;
}

static uint32_t late_cnt(void)
{
	struct elf_reader_counts counts;

	elf_reader_counts(&counts);
	return counts.late;
}

static void who_may_not_wait_gets_the_answer_later(void)
{
	char path[64], other_path[64];
	int fd = make_file(path), other_fd = make_file(other_path);
	uint32_t late = late_cnt();
	pid_t pid = reader_pid();

	said_begin();
	elf_reader_patience(10000000);
	kill(pid, SIGSTOP);
	errno = 0;
	CU_ASSERT(function_cnt(path) == -1 && errno == EAGAIN);
	CU_ASSERT(function_cnt(path) == -1 && errno == EAGAIN);
	/* Nor is another file read meanwhile. */
	CU_ASSERT(function_cnt(other_path) == -1 && errno == EAGAIN);
	CU_ASSERT_EQUAL(late_cnt(), late + 1);
	kill(pid, SIGCONT);
	CU_ASSERT_EQUAL(function_cnt_at_last(path), 2);
	CU_ASSERT_EQUAL(function_cnt_at_last(other_path), 2);
	/* An answer that is not fetched is in nobody's way for long. */
	kill(pid, SIGSTOP);
	CU_ASSERT(function_cnt(path) == -1 && errno == EAGAIN);
	kill(pid, SIGCONT);
	CU_ASSERT_EQUAL(function_cnt_at_last(other_path), 2);
	/* The process may end meanwhile. */
	kill(pid, SIGSTOP);
	CU_ASSERT(function_cnt(path) == -1 && errno == EAGAIN);
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(function_cnt_at_last(path), 2);
	/* Who may wait takes its turn. */
	elf_reader_patience(0);
	kill(reader_pid(), SIGSTOP);
	elf_reader_patience(10000000);
	CU_ASSERT(function_cnt(path) == -1 && errno == EAGAIN);
	elf_reader_rest(0);
	elf_reader_patience(0);
	CU_ASSERT_EQUAL(function_cnt(path), 2);
	CU_ASSERT_STRING_EQUAL(said_end(), "");
	close(other_fd);
	close(fd);
}

static void a_large_file_that_is_late_gives_way(void)
{
	char path[64], large_path[64];
	int fd = make_file(path), large_fd = make_file(large_path);
	uint32_t late = late_cnt();
	struct stat st;
	pid_t pid = reader_pid();

	said_begin();
	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL_FATAL(ftruncate(large_fd, 5 * st.st_size), 0);
	elf_reader_patience(10000000);
	kill(pid, SIGSTOP);
	CU_ASSERT(function_cnt(large_path) == -1 && errno == EAGAIN);
	CU_ASSERT_EQUAL(late_cnt(), late + 1);
	/* A busy machine may take longer than the patience above for the small one, too. */
	elf_reader_patience(10000000000);
	CU_ASSERT_EQUAL(function_cnt_at_last(path), 2);
	CU_ASSERT_EQUAL(late_cnt(), late);
	CU_ASSERT(kill(pid, 0) && errno == ESRCH);
	CU_ASSERT_EQUAL(function_cnt_at_last(large_path), 2);
	elf_reader_patience(0);
	CU_ASSERT_STRING_EQUAL(said_end(), "");
	close(large_fd);
	close(fd);
}

static void a_forked_process_has_its_own(void)
{
	pid_t pid = reader_pid(), forked = fork();
	int status = -1;

	if (!forked) {
		char path[64];
		bool right = make_file(path) >= 0 && function_cnt(path) == 2;

		elf_reader_rest(0);
		_exit(!right);
	}
	CU_ASSERT_EQUAL(waitpid(forked, &status, 0), forked);
	CU_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status));
	CU_ASSERT_EQUAL(reader_pid(), pid);
}

/* --- relocations -------------------------------------------------------------------------------------------------- */

int reader_test_datum = 1;
__thread int reader_test_local = 2;

void reader_test_caller(void);
__attribute__((noinline)) void reader_test_caller(void)
{
	malloc_trim(0);
	__asm__ volatile("");
}

static size_t calls_by_slot(struct program *program, uint32_t id)
{
	const struct call_edge *edges;
	size_t cnt = 0, found = 0;

	CU_ASSERT_EQUAL(program__callees(program, id, &edges, &cnt), 0);
	for (size_t i = 0; i < cnt; i++)
		found += edges[i].kind == CALL_PLT;
	return found;
}

/* Calls whose slots are not read yet are not taken for calls of nothing. */
static void callees_wait_for_relocations(void)
{
	const struct call_edge *edges;
	struct program *program;
	uint32_t id, height;
	size_t cnt;
	pid_t pid;

	reader_test_caller();
	CU_ASSERT_EQUAL_FATAL(program__open(getpid(), NULL, &program), 0);
	id = program__function_find(program, 0, "reader_test_caller");
	CU_ASSERT_FATAL(id != PROGRAM_NONE);
	pid = reader_pid();
	kill(pid, SIGSTOP);
	elf_reader_patience(1000000);
	CU_ASSERT_EQUAL(program__callees(program, id, &edges, &cnt), -EAGAIN);
	CU_ASSERT_EQUAL(program__height(program, id), 0);
	CU_ASSERT(program__calls_indirectly(program, id));
	kill(pid, SIGCONT);
	elf_reader_patience(0);
	CU_ASSERT_EQUAL(calls_by_slot(program, id), 1);
	height = program__height(program, id);
	CU_ASSERT(height > 0);
	/* Also by a process that is begun again. */
	program__forget_callees(program);
	program__forget_tables(program);
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(calls_by_slot(program, id), 1);
	program__free(program);
}

static void a_file_without_relocations_has_calls_all_the_same(void)
{
	struct program *program;
	pid_t killer;
	uint32_t id;
	int fd;

	/* Another file, so that what is given up is not this program. */
	fd = memfd_create("copy", MFD_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0 && copy_of_self(fd));
	CU_ASSERT_EQUAL_FATAL(program__open_file(fd_path(fd), NULL, &program), 0);
	id = program__function_find(program, 0, "reader_test_caller");
	CU_ASSERT_FATAL(id != PROGRAM_NONE);
	said_begin();
	killer = ending_when_asked(reader_pid(), SIGXCPU);
	CU_ASSERT_EQUAL(calls_by_slot(program, id), 0);
	CU_ASSERT_EQUAL(waitpid(killer, NULL, 0), killer);
	CU_ASSERT(program__may_throw(program, id));
	CU_ASSERT(said_one_line(said_end(), "calls from '"));
	program__free(program);
	close(fd);
}

static void variables_are_found_by_name(void)
{
	struct elf_variable variable;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CU_ASSERT_EQUAL(elf_reader_variable(fd, "reader_test_datum", STT_OBJECT, &variable), 0);
	CU_ASSERT_EQUAL((uintptr_t)&reader_test_datum % 4096, variable.value % 4096);
	CU_ASSERT_EQUAL(elf_reader_variable(fd, "reader_test_datum", STT_TLS, &variable), -ENOENT);
	CU_ASSERT_EQUAL(elf_reader_variable(fd, "reader_test_local", STT_TLS, &variable), 0);
	CU_ASSERT_EQUAL(elf_reader_variable(fd, "reader_test_nothing", STT_OBJECT, &variable), -ENOENT);
	CU_ASSERT_EQUAL(elf_reader_variable(fd, "a name that is longer than any variable's that is looked for anywhere",
					    STT_OBJECT, &variable),
			-ENAMETOOLONG);
	reader_test_local++;
	close(fd);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define FILE_SZ 8192

static struct elf_row functions[2], addressed[2];
static struct elf_other others[1];
static struct elf_slot slots[2];
static uint64_t code_pointers[2];
static struct elf_library libraries[1];
static struct elf_marker markers[1];
static char names[16];

/* What may be answered of the file above. */
static struct elf_rows good_rows(void)
{
	struct elf_rows rows = {
		.head = {.cnt = {2, 2, 1, 16},
			 .code_cnt = 1,
			 .build_id = "0a1b",
			 .code = {{CODE_ADDR, CODE_OFF, CODE_SZ}}},
		.functions = {functions, 2, 0},
		.addressed = {addressed, 2, 0},
		.others = {others, 1, 0},
		.names = {names, 16, 0},
		.slots = {slots, 2, 0},
		.code_pointers = {code_pointers, 2, 0},
		.libraries = {libraries, 1, 0},
		.markers = {markers, 1, 0},
	};

	memcpy(names, "one\0other\0datum", 16);
	functions[0] = (struct elf_row){CODE_ADDR, CODE_OFF, 16, 0, 0};
	functions[1] = (struct elf_row){CODE_ADDR + 0x20, CODE_OFF + 0x20, 16, 4, ELF_ROW_AMBIGUOUS};
	memcpy(addressed, functions, sizeof(addressed));
	others[0] = (struct elf_other){10, ELF_SYMBOL_DATA};
	slots[0] = (struct elf_slot){.addr = 8, .name_off = 4};
	slots[1] = (struct elf_slot){.addr = 8, .value = CODE_ADDR, .name_off = ELF_ROWS_NO_NAME, .is_ifunc = 1};
	code_pointers[0] = CODE_ADDR;
	code_pointers[1] = CODE_ADDR + 1;
	libraries[0] = (struct elf_library){10, 1};
	markers[0] = (struct elf_marker){.provider_off = 4, .arg_cnt = 1};
	markers[0].args[0] =
		(struct usdt_arg){.kind = USDT_ARG_CONST, .sz = 8, .reg_off = USDT_NO_REG, .idx_off = USDT_NO_REG};
	return rows;
}

static void check_is_refused(struct elf_rows *rows)
{
	CU_ASSERT_EQUAL(elf_rows_check(rows), -EBADMSG);
	*rows = good_rows();
}

static void a_head_is_not_trusted(void)
{
	const struct elf_rows_head good = good_rows().head;
	struct elf_rows_head head = good;

	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), 0);
	CU_ASSERT_EQUAL(elf_rows_section_sz(&head, ELF_ROWS_FUNCTIONS), 64);
	for (int i = 0; i < ELF_ROWS_SECTION_CNT; i++, head = good) {
		head.cnt[i] = UINT32_MAX;
		CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	}
	head.code_cnt = ELF_ROWS_CODE_MAX + 1;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, CODE_SZ), -EBADMSG);
	head.code[0].addr = UINT64_MAX - 1;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	head.build_id[0] = '/';
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	memset(head.build_id, 'a', sizeof(head.build_id));
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	strcpy(head.link, "server.debug");
	head.packed_off = FILE_SZ - 8;
	head.packed_sz = 8;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), 0);
	head.packed_sz = 9;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	strcpy(head.link, "../server");
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	memset(head.link, 'a', sizeof(head.link));
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	head.datum = (struct elf_datum){.lo = 8, .hi = 16, .is_data = 1, .name = "table_lock"};
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), 0);
	head.datum.lo = 17;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head.datum.lo = 8;
	head.datum.is_data = 2;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head.datum.is_data = 1;
	head.datum.name[3] = '\x1b';
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	memset(head.datum.name, 'a', sizeof(head.datum.name));
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	strcpy(head.go_version, "go1.22.1");
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), 0);
	head.go_version[2] = '\x1b';
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	memset(head.go_version, 'a', sizeof(head.go_version));
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	head.variable.is_there = 2;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
	head = good;
	head.has_dynamic = 2;
	CU_ASSERT_EQUAL(elf_rows_check_head(&head, FILE_SZ), -EBADMSG);
}

static void rows_are_not_trusted(void)
{
	struct elf_rows rows = good_rows();

	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
	functions[0].name_off = 16;
	check_is_refused(&rows);
	functions[0].name_off = 1;
	check_is_refused(&rows);
	functions[1].name_off = 0;
	check_is_refused(&rows);
	functions[1].file_off++;
	check_is_refused(&rows);
	functions[1].size = CODE_SZ;
	check_is_refused(&rows);
	functions[0].addr = CODE_ADDR + CODE_SZ;
	check_is_refused(&rows);
	addressed[1] = addressed[0];
	check_is_refused(&rows);
	others[0].kind = ELF_SYMBOL_FUNCTION;
	check_is_refused(&rows);
	others[0].name_off = UINT32_MAX;
	check_is_refused(&rows);
	names[15] = 'm';
	check_is_refused(&rows);
	names[1] = '\x1b';
	check_is_refused(&rows);
	names[4] = '\0';
	check_is_refused(&rows);
	rows.head.code_cnt = 0;
	check_is_refused(&rows);
	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
}

static void links_and_markers_are_not_trusted(void)
{
	struct elf_rows rows = good_rows();

	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
	slots[0].name_off = 5;
	check_is_refused(&rows);
	slots[0].is_ifunc = 2;
	check_is_refused(&rows);
	slots[1].addr = 7;
	check_is_refused(&rows);
	code_pointers[1] = CODE_ADDR;
	check_is_refused(&rows);
	libraries[0].name_off = ELF_ROWS_NO_NAME;
	check_is_refused(&rows);
	libraries[0].is_own = 2;
	check_is_refused(&rows);
	markers[0].provider_off = 16;
	check_is_refused(&rows);
	markers[0].name_off = 1;
	check_is_refused(&rows);
	markers[0].arg_cnt = USDT_ARG_MAX + 1;
	check_is_refused(&rows);
	markers[0].args[0].sz = 3;
	check_is_refused(&rows);
	markers[0].args[0].kind = USDT_ARG_REG;
	check_is_refused(&rows);
	markers[0].args[0].reg_off = 8192;
	check_is_refused(&rows);
	markers[0].args[0].idx_off = -2;
	check_is_refused(&rows);
	markers[0].args[0].scale = 3;
	check_is_refused(&rows);
	CU_ASSERT_EQUAL(elf_rows_check(&rows), 0);
}

int suite_elf_reader(void)
{
	static const struct unit_test tests[] = {
		{"it ends and is reaped", it_ends_and_is_reaped},
		{"one that was killed begins again", one_that_was_killed_begins_again},
		{"a file that takes too long is given up", a_file_that_takes_too_long_is_given_up},
		{"what is given up is one thing of a file", what_is_given_up_is_one_thing_of_a_file},
		{"a file that takes too much memory is given up", a_file_that_takes_too_much_memory_is_given_up},
		{"who may not wait gets the answer later", who_may_not_wait_gets_the_answer_later},
		{"a large file that is late gives way", a_large_file_that_is_late_gives_way},
		{"a forked process has its own", a_forked_process_has_its_own},
		{"callees wait for relocations", callees_wait_for_relocations},
		{"a file without relocations has calls all the same",
		 a_file_without_relocations_has_calls_all_the_same},
		{"variables are found by name", variables_are_found_by_name},
		{"a head is not trusted", a_head_is_not_trusted},
		{"rows are not trusted", rows_are_not_trusted},
		{"links and markers are not trusted", links_and_markers_are_not_trusted},
	};

	return unit_suite("elf_reader", tests, sizeof(tests) / sizeof(tests[0]));
}
