// SPDX-License-Identifier: GPL-2.0-or-later
/* The process that reads debugging information: what it has, how it ends and begins again, and what it may answer. */
#include "ending.h"
#include "said.h"
#include "target/symbols.h"
#include "target/symbols_child.h"
#include "target/symbols_wire.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Whatever else the machine does meanwhile. */
#define AT_ONCE_NS 600000000000ULL

static uint64_t inlined_pc, other_pc;
static volatile int sink;

#define HERE(pc) __asm__ volatile("lea 0(%%rip), %0" : "=r"(pc))
#if defined(__aarch64__)
#undef HERE
#define HERE(pc) __asm__ volatile("adr %0, ." : "=r"(pc))
#endif

enum { inlined_line = __LINE__ };
static inline __attribute__((always_inline)) void inlined_here(int value)
{
	HERE(inlined_pc);
	sink += value;
	HERE(other_pc);
}

static __attribute__((noinline)) void has_inlined(int value)
{
	inlined_here(value);
}

extern const char __executable_start[];

/* The program is linked at 0. */
static uint64_t linked(uint64_t pc)
{
	return pc - (uint64_t)(uintptr_t)__executable_start;
}

static uint32_t open_self(struct symbols *symbols)
{
	return symbols__open(symbols, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self");
}

static size_t look_up(struct symbols *symbols, uint32_t file, uint64_t pc)
{
	const char *names[INLINES_DEPTH_MAX];
	size_t cnt = symbols__inlined_at(symbols, file, linked(pc), names);

	if (cnt)
		CU_ASSERT_STRING_EQUAL(names[0], "inlined_here");
	return cnt;
}

/* The same, when the process has had its time, whatever else the machine does. */
static size_t look_up_soon(struct symbols *symbols, uint32_t file, uint64_t pc)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	size_t cnt = look_up(symbols, file, pc);

	for (int i = 0; i < 500 && !cnt; i++) {
		nanosleep(&pause, NULL);
		cnt = look_up(symbols, file, pc);
	}
	return cnt;
}

/* The one that has begun last. */
static pid_t last_pid(void)
{
	pid_t pids[SYMBOLS_PIDS] = {0};

	return symbols_children_pids(pids) ? pids[0] : -1;
}

static void pass_restart(void)
{
	const struct timespec pause = {.tv_sec = 1, .tv_nsec = 50000000};

	nanosleep(&pause, NULL);
}

/* --- what it has -------------------------------------------------------------------------------------------------- */

static void check_descriptors(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int most = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while ((entry = readdir(dir)))
		most = atoi(entry->d_name) > most ? atoi(entry->d_name) : most;
	closedir(dir);
	/* Its socket is 3, the file 4. */
	CU_ASSERT_EQUAL(most, 4);
}

static bool has_line(pid_t pid, const char *file, const char *part)
{
	char path[64], line[1024];
	bool found = false;
	FILE *text;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	text = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	while (fgets(line, sizeof(line), text))
		found |= strstr(line, part) != NULL;
	fclose(text);
	return found;
}

static void it_has_nothing_of_the_agents(void)
{
	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int held = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	struct rlimit cpu = {0}, core = {1, 1};
	uint32_t file, starts = symbols_children_starts();
	uint64_t cpu_ns = symbols_children_cpu_ns();
	pid_t pid;

	has_inlined(1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(symbols);
	/* None until there is something to read. */
	CU_ASSERT_EQUAL(symbols_children_starts(), starts);
	file = open_self(symbols);
	CU_ASSERT_EQUAL(look_up_soon(symbols, file, inlined_pc), 1);
	pid = last_pid();
	CU_ASSERT_FATAL(pid > 0 && pid != getpid());
	CU_ASSERT(has_line(pid, "status", "Name:\twhylate-symbols"));
	CU_ASSERT(has_line(pid, "status", "CapPrm:\t0000000000000000"));
	CU_ASSERT(has_line(pid, "status", "CapEff:\t0000000000000000"));
	CU_ASSERT(has_line(pid, "status", "NoNewPrivs:\t1"));
	CU_ASSERT(has_line(pid, "oom_score_adj", "1000"));
	CU_ASSERT(has_line(getpid(), "maps", " rw-s "));
	CU_ASSERT(!has_line(pid, "maps", " rw-s "));
	check_descriptors(pid);
	CU_ASSERT_EQUAL(prlimit(pid, RLIMIT_CPU, NULL, &cpu), 0);
	CU_ASSERT(cpu.rlim_cur <= 8);
	CU_ASSERT_EQUAL(prlimit(pid, RLIMIT_CORE, NULL, &core), 0);
	CU_ASSERT_EQUAL(core.rlim_max, 0);
	CU_ASSERT_EQUAL(symbols_children_starts(), starts + 1);
	CU_ASSERT(symbols_children_cpu_ns() > cpu_ns);
	symbols__free(symbols);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, WNOHANG), -1);
	CU_ASSERT(kill(pid, 0) && errno == ESRCH);
	close(held);
	munmap(shared, 4096);
}

/* --- its end ------------------------------------------------------------------------------------------------------ */

static void a_killed_one_begins_again(void)
{
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	uint32_t file = open_self(symbols);
	pid_t first = last_pid(), pids[SYMBOLS_PIDS];

	for (int i = 0; i < 2; i++) {
		kill(last_pid(), SIGKILL);
		ending_await_state(last_pid(), 'Z');
		/* Found out by this question, which nobody answers unless a busy machine took longer than a restart
		 * waits. */
		look_up(symbols, file, i ? other_pc : inlined_pc);
		pass_restart();
		CU_ASSERT_EQUAL(look_up_soon(symbols, file, i ? other_pc : inlined_pc), 1);
	}
	CU_ASSERT_EQUAL(symbols__starts(symbols), 3);
	CU_ASSERT_FATAL(symbols_children_pids(pids) >= 3);
	CU_ASSERT(pids[0] != first && pids[2] == first);
	symbols__free(symbols);
}

/* It is stopped, asked, and ended by that signal while it owes the answer. */
static void end_while_asked(struct symbols *symbols, uint32_t file, uint64_t pc, int signal_no)
{
	pid_t pid = last_pid(), killer = ending_when_asked(pid, signal_no);

	CU_ASSERT_EQUAL(look_up(symbols, file, pc), 0);
	CU_ASSERT_EQUAL(waitpid(killer, NULL, 0), killer);
	/* On a busy machine it ends when that question is no longer waited for: the next one finds out. */
	if (!kill(pid, 0)) {
		ending_await_state(pid, 'Z');
		CU_ASSERT_EQUAL(look_up(symbols, file, pc), 0);
	}
}

static void a_file_that_ends_it_is_given_up(void)
{
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	uint32_t file = open_self(symbols), other;
	const char *said;

	said_begin();
	for (int i = 0; i < 3; i++) {
		end_while_asked(symbols, file, inlined_pc, SIGSEGV);
		pass_restart();
		/* Begins again with the file, until that is given up. */
		CU_ASSERT_EQUAL(i ? look_up(symbols, file, other_pc + 64 * (uint64_t)i)
				  : look_up_soon(symbols, file, other_pc),
				i == 0);
		CU_ASSERT_EQUAL(symbols__starts(symbols), i < 2 ? 2 + (uint32_t)i : 3);
	}
	said = said_end();
	CU_ASSERT(said_one_line(said, "functions inlined in 'self' have no names from now on"));
	CU_ASSERT_EQUAL(look_up(symbols, file, inlined_pc), 0);
	/* Others are read. */
	other = open_self(symbols);
	CU_ASSERT_EQUAL(look_up_soon(symbols, other, inlined_pc), 1);
	symbols__free(symbols);
}

static void a_file_that_takes_too_long_is_given_up(void)
{
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	uint32_t file = open_self(symbols);

	said_begin();
	end_while_asked(symbols, file, inlined_pc, SIGXCPU);
	CU_ASSERT(said_one_line(said_end(), "takes too much CPU time"));
	symbols__free(symbols);
}

static void an_answer_that_is_late_is_taken(void)
{
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	uint32_t file = open_self(symbols);
	pid_t pid = last_pid();

	kill(pid, SIGSTOP);
	ending_await_state(pid, 'T');
	CU_ASSERT_EQUAL(look_up(symbols, file, inlined_pc), 0);
	kill(pid, SIGCONT);
	CU_ASSERT_EQUAL(look_up_soon(symbols, file, inlined_pc), 1);
	CU_ASSERT_EQUAL(symbols__starts(symbols), 1);
	symbols__free(symbols);
}

static void source_lines_are_told(void)
{
	struct symbols *symbols = symbols__new_lines(AT_ONCE_NS);
	uint32_t file = open_self(symbols), line = 0;
	const struct timespec pause = {.tv_nsec = 10000000};
	const char *name = NULL;
	int err;

	has_inlined(1);
	for (int i = 0; i < 3000; i++) {
		err = symbols__line_at(symbols, file, linked(inlined_pc), &name, &line);
		if (err != -EAGAIN)
			break;
		nanosleep(&pause, NULL);
	}
	CU_ASSERT_EQUAL_FATAL(err, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(name);
	CU_ASSERT_PTR_NOT_NULL(strstr(name, "test_symbols.c"));
	CU_ASSERT(line >= inlined_line && line <= inlined_line + 4);
	/* No code. */
	while ((err = symbols__line_at(symbols, file, 1, &name, &line)) == -EAGAIN)
		nanosleep(&pause, NULL);
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT_PTR_NULL(name);
	CU_ASSERT_EQUAL(symbols__line_at(symbols, file + 1, 1, &name, &line), 0);
	symbols__free(symbols);
}

static void files_that_are_none_are_refused(void)
{
	struct symbols *symbols = symbols__new(AT_ONCE_NS);
	int memfd = memfd_create("no-elf", MFD_CLOEXEC);
	uint32_t file;

	CU_ASSERT_EQUAL(symbols__open(symbols, open("/dev/null", O_RDONLY | O_CLOEXEC), "null"), 0);
	CU_ASSERT_EQUAL(symbols__open(symbols, -1, "none"), 0);
	CU_ASSERT_EQUAL(symbols__starts(symbols), 0);
	CU_ASSERT_EQUAL(write(memfd, "text", 4), 4);
	file = symbols__open(symbols, memfd, "text");
	CU_ASSERT(file > 0);
	CU_ASSERT_EQUAL(look_up(symbols, file, inlined_pc), 0);
	CU_ASSERT_EQUAL(look_up(symbols, file + 1, inlined_pc), 0);
	CU_ASSERT_EQUAL(symbols__starts(symbols), 1);
	symbols__free(symbols);
	symbols__free(NULL);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void answers_are_not_trusted(void)
{
	const struct symbols_question question = {.ask = SYMBOLS_ASK_INLINED, .seq = 7};
	const struct symbols_question opening = {.ask = SYMBOLS_ASK_OPEN, .seq = 7};
	const struct symbols_question asking = {.ask = SYMBOLS_ASK_LINE, .seq = 7};
	struct symbols_answer good = {.seq = 7, .cnt = 2, .names = "a\0b\x1b[m"}, answer = good;
	size_t sz = SYMBOLS_ANSWER_HEAD + 7;

	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sz, &question), 7);
	CU_ASSERT_STRING_EQUAL(answer.names + 2, "b?[m");
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sz, &opening), -EBADMSG);
	for (size_t less = 0; less <= sz + 8; less++)
		if (less != sz)
			CU_ASSERT_EQUAL(symbols_answer_check(&answer, less, &question), -EBADMSG);
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sizeof(answer) + 1, &question), -EBADMSG);
	answer.seq = 8;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sz, &question), -EBADMSG);
	answer = good;
	answer.err = 1;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sz, &question), -EBADMSG);
	answer = good;
	answer.cnt = INLINES_DEPTH_MAX + 1;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sizeof(answer), &question), -EBADMSG);
	answer = good;
	answer.names[6] = 'x';
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, sz, &question), -EBADMSG);
	answer = (struct symbols_answer){.seq = 7, .cnt = 1};
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + 1, &question), -EBADMSG);
	memset(answer.names, 'n', INLINES_NAME_SZ);
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + INLINES_NAME_SZ + 1, &question), -EBADMSG);
	answer.cnt = 0;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD, &question), 0);
	answer = (struct symbols_answer){.seq = 7, .cnt = 1, .line = 12, .names = "dir/file.c"};
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + 11, &asking), 11);
	answer.line = 0;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + 11, &asking), -EBADMSG);
	answer.line = UINT32_MAX;
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + 11, &asking), -EBADMSG);
	answer = (struct symbols_answer){.seq = 7, .cnt = 2, .line = 12, .names = "a\0b"};
	CU_ASSERT_EQUAL(symbols_answer_check(&answer, SYMBOLS_ANSWER_HEAD + 4, &asking), -EBADMSG);
}

static void answers_about_go_are_not_trusted(void)
{
	const struct symbols_question question = {.ask = SYMBOLS_ASK_GO, .seq = 3};
	const struct symbols_answer good = {.seq = 3, .go = {.goid = 152, .status = 144, .stopping_sz = 4}};
	size_t sz = SYMBOLS_ANSWER_HEAD + sizeof(good.go);
	struct symbols_answer answer = good;

	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), 0);
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz - 1, &question), -EBADMSG);
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sizeof(answer), &question), -EBADMSG);
	answer.go.start_pc = 1 << 20;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
	answer = good;
	answer.go.sched_sz = 16;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
	answer.go.sched_sz = 512;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
	answer.go.sched_sz = 48;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), 0);
	answer = good;
	answer.go.stopping_sz = 8;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
	answer = good;
	answer.cnt = 1;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
	answer = good;
	answer.seq = 4;
	CU_ASSERT_EQUAL(symbols_go_check(&answer, sz, &question), -EBADMSG);
}

int suite_symbols(void)
{
	static const struct unit_test tests[] = {
		{"it has nothing of the agent's", it_has_nothing_of_the_agents},
		{"a killed one begins again", a_killed_one_begins_again},
		{"a file that ends it is given up", a_file_that_ends_it_is_given_up},
		{"a file that takes too long is given up", a_file_that_takes_too_long_is_given_up},
		{"an answer that is late is taken", an_answer_that_is_late_is_taken},
		{"source lines are told", source_lines_are_told},
		{"files that are none are refused", files_that_are_none_are_refused},
		{"answers are not trusted", answers_are_not_trusted},
		{"answers about Go are not trusted", answers_about_go_are_not_trusted},
	};

	return unit_suite("symbols", tests, sizeof(tests) / sizeof(tests[0]));
}
