/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the live tests stand on: checks that explain themselves, temporary paths, and processes.
 *
 * Everything that waits is bounded.  A started process has a process group of its own, dies with the test program, and
 * writes into memory files, so that it never blocks on us; process_end() kills exactly it and its group.  All of this
 * belongs to the main thread.
 */
#ifndef WHYLATE_TESTS_HARNESS_H
#define WHYLATE_TESTS_HARNESS_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NS_PER_MS  1000000ULL
#define NS_PER_SEC 1000000000ULL
#define ID_NOBODY  65534
#define ANY_CPU    (-1)

/* Like CU_ASSERT, but has a value; the second one says what was there instead. */
#define CHECK(cond) check_that((cond), __FILE__, __LINE__, #cond, NULL)
/* The condition comes first: what is said about it may be different before it was evaluated. */
#define CHECKF(cond, ...)                                                  \
	({                                                                 \
		bool held_ = (cond);                                       \
		check_that(held_, __FILE__, __LINE__, #cond, __VA_ARGS__); \
	})
bool check_that(bool held, const char *file, unsigned int line, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Where the outcomes go instead of to CUnit.  `text` says what was checked, and what was there instead. */
void checks_go_to(void (*sink)(bool held, const char *file, unsigned int line, const char *text));
/* `SKIP name: reason`.  The caller returns; the test is neither passed nor failed in the count printed at the end. */
void skip(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned int skip_cnt(void);
void skips_add(unsigned int cnt);

/*
 * `make test` runs SHORT, `.ci/run` SHORT and then REST.
 *
 * SHORT  at least one test of every suite (live_suite() insists on it), and of every ability that no unit test covers
 * REST   the same ability on another server, with another lock, at another moment
 * LONG   only where LONG is set in the environment, or by the test's own name
 */
enum live_form { SHORT, REST, LONG, LIVE_FORM_CNT };

struct live_test {
	const char *name;
	void (*run)(void);
	enum live_form form;
};

/* Only tests of this form are active in the suites that are added from now on; without, all but LONG. */
void live_choose(enum live_form form);
/* Adds a suite: 0 or an error, which is printed. */
int live_suite(const char *name, const struct live_test *tests, unsigned int test_cnt);
/* How many tests the forms that were not chosen have. */
void live_print_left_out(void);

/* live_units.c: becomes a command within a unit's limits; UNIT WRITABLE UID COMMAND… */
int units_main(int argc, char **argv);

#define SUITE(name, group) int suite_##name(void);
#include "suites.def"
#undef SUITE

struct path {
	char s[512];
};

/* Below one directory that is removed when the test program ends, however it ends. */
int temp_open(void);
void temp_remove(void);
struct path temp_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, NAME-2, NAME-3 … where it is taken: `record -o` refuses a directory that holds a recording. */
struct path temp_unused(const char *name);
/* A build whose own runtime makes system calls that the program does not. */
bool is_sanitized(void);
/* All shards below the temporary directory become that user's. */
void temp_give_shards(const char *user);
/* As file_write(), for nobody alone: a token. */
int file_write_secret(const char *path, const void *data, size_t sz);
int file_write(const char *path, const void *data, size_t sz);
/* The whole file, NUL-terminated, to be freed; NULL and errno. */
char *file_read(const char *path, size_t *sz);
bool is_there(const char *path);

uint64_t now_ns(void);
void sleep_ms(unsigned int ms);

struct launch {
	const char *user; /* run as this user; NULL: as root */
	int cpu;          /* pinned there, or ANY_CPU */
	const char *cwd;
	int in_fd; /* its standard input; 0: nothing to read */
};

struct process {
	pid_t pid; /* 0: never started */
	int out_fd, err_fd;
	bool running;
	int code; /* exit code, or 128 + signal */
	char *out, *err;
};

/* The command line is split at blanks, without any quoting.  0 or -errno; a failure is a failed check, too. */
int process_start(struct process *process, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int process_launch(struct process *process, const struct launch *launch, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int process_launch_argv(struct process *process, const struct launch *launch, const char *const argv[]);
void process_signal(struct process *process, int signal_no);
bool process_runs(struct process *process);
/* What it has had of memory at most so far (VmHWM), KiB; 0: it is gone. */
unsigned long process_peak_kib(const struct process *process);
/* The exit code, or 128 + signal; -1 and a failed check when it has not ended in time (it is killed then). */
int process_wait(struct process *process, unsigned int timeout_s);
/* What it has written so far; valid until the next call or process_end(). */
const char *process_out(struct process *process);
const char *process_err(struct process *process);
/* Waits until one of the texts is on stdout (or stderr): false when it ends, or time is up, without. */
bool process_says(struct process *process, bool on_stderr, const char *text, const char *or_text,
		  unsigned int timeout_s);
void process_end(struct process *process);
/* The parent of any process; 0: it is gone. */
pid_t process_parent(pid_t pid);

/* A copy of $WHYLATE where everybody may run it; $WORKLOADS. */
int whylate_copy(void);
const char *whylate_path(void);
const char *workloads_path(void);
/* Something else that was built with them: built_path("safety/%s", name). */
struct path built_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Runs whylate with these arguments to its end: its exit code.  The texts stay in *process until process_end(). */
int whylate(struct process *process, unsigned int timeout_s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int whylate_as(struct process *process, const char *user, unsigned int timeout_s, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Exactly one line on stderr that holds both texts (NULL: any). */
bool said_one_line(struct process *process, const char *text, const char *and_text);

#endif
