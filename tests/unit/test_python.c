// SPDX-License-Identifier: GPL-2.0-or-later
/* CPython: what its versions have where, against the interpreters that are there, and its frames in C stacks. */
#include "target/data_names.h"
#include "target/python.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- interpreters ------------------------------------------------------------------------------------------------- */

static const char script[] = "import sys, time\n"
			     "def inner():\n"
			     "    sys.stdout.write('x')\n"
			     "    sys.stdout.flush()\n"
			     "    time.sleep(60)\n"
			     "class Sh\xc3\xb6p:\n"
			     "    def build(self):\n"
			     "        inner()\n"
			     "def outer():\n"
			     "    list(map(lambda _: Sh\xc3\xb6p().build(), [1]))\n"
			     "outer()\n";

/* Whether it has said that it sleeps; it is NULL that is run otherwise. */
static bool start(const char *python, const char *path, pid_t *pid)
{
	int fds[2];
	char x = 0;

	CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
	*pid = fork();
	if (!*pid) {
		dup2(fds[1], STDOUT_FILENO);
		execlp(python, python, "-S", "-E", path, NULL);
		_exit(127);
	}
	close(fds[1]);
	if (read(fds[0], &x, 1) != 1)
		x = 0;
	close(fds[0]);
	return x == 'x';
}

static uint64_t word_at(int fd, uint64_t addr)
{
	uint64_t word = 0;

	return pread(fd, &word, sizeof(word), (off_t)addr) == sizeof(word) ? word : 0;
}

/* As the kernel side does it (bpf/python.h), of a process with one thread. */
static size_t walk(pid_t pid, const struct python_layout *layout, uint64_t *code, size_t max)
{
	uint64_t interp, thread, frame;
	char path[64];
	size_t cnt = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	interp = word_at(fd, layout->runtime + layout->first_interp);
	thread = word_at(fd, interp + layout->first_thread);
	CU_ASSERT_EQUAL(word_at(fd, interp + layout->next_interp), 0);
	CU_ASSERT_EQUAL(word_at(fd, thread + layout->next_thread), 0);
	CU_ASSERT_EQUAL(word_at(fd, thread + layout->thread_interp), interp);
	/* The thread pointer, as on both architectures it points to itself or near. */
	CU_ASSERT_NOT_EQUAL(word_at(fd, thread + layout->thread_id), 0);
	frame = word_at(fd, thread + layout->thread_frame);
	if (layout->cframe_frame != PYTHON_NO_OFF)
		frame = word_at(fd, frame + layout->cframe_frame);
	for (; frame && cnt < max; frame = word_at(fd, frame + layout->frame_back)) {
		uint64_t word = word_at(fd, frame + layout->frame_code) & ~7ULL;
		uint8_t mark = 1;

		if (layout->frame_mark != PYTHON_NO_OFF)
			CU_ASSERT_EQUAL(pread(fd, &mark, 1, (off_t)(frame + layout->frame_mark)), 1);
		if (layout->mark_shim && mark == layout->mark_shim)
			word = WL_PYTHON_CALL_ENDS;
		else if (!layout->mark_shim && mark)
			word |= WL_PYTHON_CALL_ENDS;
		code[cnt++] = word;
	}
	close(fd);
	return cnt;
}

static void check_names(struct python *python, const uint64_t *code, size_t cnt)
{
	bool qualified = python__version(python) >= 0x030b;
	const char *const expected[] = {
		"inner (whylate_unit.py:2)",
		qualified ? "Sh\xc3\xb6p.build (whylate_unit.py:7)" : "build (whylate_unit.py:7)",
		qualified ? "outer.<locals>.<lambda> (whylate_unit.py:10)" : "<lambda> (whylate_unit.py:10)",
		"outer (whylate_unit.py:9)",
		"<module> (whylate_unit.py:1)",
	};
	size_t at = 0, calls = 0;

	for (size_t i = 0; i < cnt; i++) {
		const char *name = code[i] & ~1ULL ? python__name(python, code[i] & ~1ULL) : NULL;

		calls += code[i] & 1;
		if (!(code[i] & ~1ULL))
			continue;
		CU_ASSERT_FATAL(name && at < ARRAY_CNT(expected));
		CU_ASSERT_STRING_EQUAL(name, expected[at]);
		at++;
		/* What is remembered is the same. */
		CU_ASSERT_STRING_EQUAL(python__name(python, code[i] & ~1ULL), name);
	}
	CU_ASSERT_EQUAL(at, ARRAY_CNT(expected));
	/* map() calls the lambda by another call of the loop; before 3.11 each function has its own. */
	CU_ASSERT_EQUAL(calls, qualified ? 2 : ARRAY_CNT(expected));
	CU_ASSERT_PTR_NULL(python__name(python, 16));
	CU_ASSERT_PTR_NULL(python__name(python, UINT64_MAX - 7));
}

/* Its address lies in _PyRuntime, of which nothing else is a lock by that name. */
static void check_gil(const struct python *python, pid_t pid, const target_mappings *mappings)
{
	uint64_t runtime = python__layout(python)->runtime, first = 0, last = 0;
	struct data_names *names = data_names__new();
	char name[128];

	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	for (uint64_t off = 0; off < 128 << 10; off += 4) {
		if (!python__is_gil(python, runtime + off))
			continue;
		first = first ? first : off;
		last = off;
	}
	CU_ASSERT_EQUAL_FATAL(last - first, 204);
	for (uint64_t off = first - 4; off <= last + 4; off += 4) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(data_names__get(names, pid, mappings, runtime + off, name, sizeof(name)));
		CU_ASSERT_EQUAL(!strcmp(name, "the GIL"), off >= first && off <= last);
	}
	data_names__free(names);
}

static void check_interpreter(pid_t pid)
{
	target_mappings mappings = {0};
	struct python *python = NULL;
	uint64_t code[32];

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(pid, &mappings), 0);
	CU_ASSERT_EQUAL_FATAL(python__open(pid, &mappings, &python), 0);
	printf("\n    python 3.%d ", python__version(python) & 0xff);
	check_gil(python, pid, &mappings);
	check_names(python, code, walk(pid, python__layout(python), code, ARRAY_CNT(code)));
	python__free(python);
	target_mappings_free(&mappings);
}

/* Those in PATH, of whichever version. */
static void offsets_fit_the_interpreters_that_are_there(void)
{
	static const char *const pythons[] = {"python3",    "python3.9",  "python3.10",
					      "python3.11", "python3.12", "python3.13"};
	char dir[] = "/tmp/whylate-python-XXXXXX", path[64];
	size_t met = 0;
	FILE *file;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/whylate_unit.py", dir);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(script, file);
	fclose(file);
	for (size_t i = 0; i < ARRAY_CNT(pythons); i++) {
		bool runs;
		pid_t pid;

		runs = start(pythons[i], path, &pid);
		if (runs)
			check_interpreter(pid);
		met += runs;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (!met)
		printf("\n    skipped: no python3 in PATH ");
	unlink(path);
	rmdir(dir);
}

static void what_is_no_interpreter_is_refused(void)
{
	target_mappings mappings = {0};
	struct python *python = NULL;

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	CU_ASSERT_EQUAL(python__open(getpid(), &mappings, &python), -ENOENT);
	CU_ASSERT_EQUAL(python__open(1 << 22, &mappings, &python), -ESRCH);
	target_mappings_free(&mappings);
	python__free(NULL);
}

/* --- call paths --------------------------------------------------------------------------------------------------- */

/* C: "l" the loop, "i" the interpreter's, "c" other code.  Python: letters, "|" where a call of the loop ends. */
static void merges_to(const char *c, const char *python, const char *expected)
{
	struct python_merged merged[64];
	enum python_frame frames[32];
	uint64_t code[32];
	size_t frame_cnt = strlen(c), code_cnt = 0, cnt;
	char got[65] = "";

	for (size_t i = 0; i < frame_cnt; i++)
		frames[i] = c[i] == 'l'   ? PYTHON_FRAME_EVAL
			    : c[i] == 'i' ? PYTHON_FRAME_INTERPRETER
					  : PYTHON_FRAME_OTHER;
	for (size_t i = 0; python[i]; i++) {
		if (python[i] == '|' && code_cnt && !(code[code_cnt - 1] & 1))
			code[code_cnt - 1] |= WL_PYTHON_CALL_ENDS;
		else
			code[code_cnt++] = python[i] == '|' ? WL_PYTHON_CALL_ENDS : (uint64_t)python[i] << 8;
	}
	cnt = python_merge(frames, frame_cnt, code, code_cnt, merged, ARRAY_CNT(merged));
	for (size_t i = 0; i < cnt; i++)
		got[i] = merged[i].code ? (char)(merged[i].code >> 8) : c[merged[i].idx];
	got[cnt] = '\0';
	CU_ASSERT_STRING_EQUAL(got, expected);
	CU_ASSERT_EQUAL(python_merge(frames, frame_cnt, code, code_cnt, merged, cnt / 2), cnt / 2);
}

static void python_frames_stand_where_the_loop_ran_them(void)
{
	merges_to("ccc", "", "ccc");
	/* 3.9: each function has a call of the loop. */
	merges_to("clililic", "A|B|C|", "cABCc");
	/* 3.11: one call runs several. */
	merges_to("cilc", "AB|", "ciABc");
	merges_to("ililclii", "AB|C|DE|", "iABCcDE");
	/* The C stack was cut, or what the kernel side takes. */
	merges_to("cl", "A|B|C|", "cABC");
	merges_to("c", "A|B|", "cAB");
	merges_to("lilil", "A|B|", "AB");
	/* A call that has only just begun. */
	merges_to("lil", "|A|", "A");
	CU_ASSERT_TRUE(python_is_loop("_PyEval_EvalFrameDefault"));
	CU_ASSERT_TRUE(python_is_loop("_PyEval_EvalFrameDefault.cold"));
	CU_ASSERT_FALSE(python_is_loop("_PyEval_EvalFrameDefaults"));
	CU_ASSERT_FALSE(python_is_loop("_PyEval_EvalFrame"));
}

int suite_python(void)
{
	static const struct unit_test tests[] = {
		{"offsets fit the interpreters that are there", offsets_fit_the_interpreters_that_are_there},
		{"what is no interpreter is refused", what_is_no_interpreter_is_refused},
		{"python frames stand where the loop ran them", python_frames_stand_where_the_loop_ran_them},
	};

	return unit_suite("python", tests, sizeof(tests) / sizeof(tests[0]));
}
