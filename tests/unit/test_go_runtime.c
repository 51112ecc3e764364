// SPDX-License-Identifier: GPL-2.0-or-later
/* Where the Go runtime keeps its goroutines: of programs that the Go toolchain has built, whole, stripped and forged.
 */
#include "target/elf_file.h"
#include "target/go_runtime.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void probes_sit_on_the_stack_check(void)
{
	static const struct {
		uint8_t code[16];
		size_t sz;
		int off;
	} cases[] = {
		{{0x49, 0x3b, 0x66, 0x10, 0x76, 0x58}, 16, 4},
		{{0x49, 0x3b, 0x66, 0x10, 0x0f, 0x86, 0x49, 0x01}, 16, 4},
		{{0x4c, 0x8d, 0x64, 0x24, 0x80, 0x4d, 0x3b, 0x66, 0x10, 0x76, 0x58}, 16, 9},
		{{0x4c, 0x8d, 0xa4, 0x24, 0, 0xff, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10, 0x0f, 0x86}, 16, 12},
		/* No check, another register, a check without its jump, and one that does not end in the bytes. */
		{{0x48, 0x83, 0xec, 0x40, 0x48, 0x89, 0x6c, 0x24, 0x38}, 16, -1},
		{{0x48, 0x3b, 0x61, 0x10, 0x76, 0x58}, 16, -1},
		{{0x49, 0x3b, 0x66, 0x10, 0x77, 0x58}, 16, -1},
		{{0x49, 0x3b, 0x66, 0x10, 0x76}, 5, -1},
		{{0x4c, 0x8d, 0x64, 0x24, 0x80, 0x4d, 0x3b, 0x66, 0x10, 0x76}, 10, -1},
		{{0x49}, 1, -1},
		{{0}, 0, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(go_probe_off(cases[i].code, cases[i].sz), cases[i].off);
}

static void goroutines_are_called_by_their_function(void)
{
	static const struct {
		const char *function, *comm;
	} cases[] = {
		{"main.main.func3", "go:main.func3"},
		{"main.worker", "go:worker"},
		{"net/http.(*conn).serve", "go:conn.serve"},
		{"net/http.(*connReader).startBackgroundRead.func2", "go:connReader.s"},
		{"github.com/a.b/c.d/e.(*f[...]).g", "go:f[...].g"},
		{"plain", "go:plain"},
		{"a.", "go:a."},
		{"", "go:"},
		{"x.\x01\xff", "go:??"},
	};
	char comm[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		go_role_of(cases[i].function, comm);
		CU_ASSERT_STRING_EQUAL(comm, cases[i].comm);
	}
}

static void versions_that_are_not_known_are_refused(void)
{
	static const char *const refused[] = {"go1.17.13", "go1.25.0", "go1.99",    "go2.0", "devel go1.21-3f2a",
					      "go1.",      "go1.-3",   "go1.20rc1", "",      "19",
					      "go1.20x"};
	static const struct {
		const char *version;
		uint32_t status, goid, wait_reason;
	} known[] = {{"go1.18", 144, 152, 176}, {"go1.19.8", 144, 152, 176}, {"go1.22.12", 144, 152, 176},
		     {"go1.23", 152, 160, 184}, {"go1.24.1", 152, 160, 184}, {"go1.26.4", 144, 152, 176}};
	struct go_layout layout;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CU_ASSERT_EQUAL(go_layout_by_version(refused[i], &layout), -ENOTSUP);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		CU_ASSERT_EQUAL_FATAL(go_layout_by_version(known[i].version, &layout), 0);
		CU_ASSERT_EQUAL(layout.status, known[i].status);
		CU_ASSERT_EQUAL(layout.goid, known[i].goid);
		CU_ASSERT_EQUAL(layout.wait_reason, known[i].wait_reason);
		CU_ASSERT_EQUAL(layout.sched_sz, i < 5 ? 56 : 48);
		CU_ASSERT_EQUAL(layout.waits[i < 5 ? 14 : 19], WL_GO_WAIT_CHAN_RECEIVE);
		CU_ASSERT_EQUAL(layout.waits[i < 5 ? 19 : 14], WL_GO_WAIT_SLEEP);
		CU_ASSERT_EQUAL(layout.waits[i < 5 ? 21 : 22], i < 2 ? WL_GO_WAIT_OTHER : WL_GO_WAIT_MUTEX);
		CU_ASSERT_EQUAL(layout.waits[60], WL_GO_WAIT_OTHER);
	}
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

struct running {
	pid_t pid;
	int in, out;
};

static bool start(struct running *running, const char *path)
{
	int in[2], out[2];
	char said[6] = "";

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	running->pid = fork();
	if (!running->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	running->in = in[1];
	running->out = out[0];
	return running->pid > 0 && read(out[0], said, sizeof(said)) == sizeof(said);
}

static void stop(struct running *running)
{
	close(running->in);
	close(running->out);
	if (running->pid > 0) {
		kill(running->pid, SIGKILL);
		waitpid(running->pid, NULL, 0);
	}
}

static int open_of(pid_t pid, struct go_runtime **go, char why[GO_WHY_SZ])
{
	target_mappings mappings = {0};
	int err = target_mappings_read(pid, &mappings);

	if (!err)
		err = go_runtime__open(pid, &mappings, go, why);
	target_mappings_free(&mappings);
	return err;
}

/* What is known of the process that the program at `path` becomes. */
static int open_program(const char *path, struct go_runtime **go, char why[GO_WHY_SZ])
{
	struct running running = {0};
	int err = -ECHILD;

	*go = NULL;
	why[0] = '\0';
	if (start(&running, path))
		err = open_of(running.pid, go, why);
	stop(&running);
	return err;
}

static void dwarf_and_version_agree(void)
{
	struct go_layout by_version;
	struct go_runtime *go;
	const struct go_layout *layout;
	struct elf_file *file;
	const struct elf_function *function;
	char why[GO_WHY_SZ];
	char path[512], comm[16];

	if (!unit_go_subject("go-subject", path, sizeof(path)))
		return;
	CU_ASSERT_EQUAL_FATAL(open_program(path, &go, why), 0);
	CU_ASSERT_TRUE(go_runtime__by_dwarf(go));
	layout = go_runtime__layout(go);
	CU_ASSERT_EQUAL(layout->slot, -8);
	CU_ASSERT_TRUE(layout->stopping && (layout->stopping_sz == 1 || layout->stopping_sz == 4));
	CU_ASSERT_NOT_EQUAL(layout->start_pc, GO_NO_OFF);
	if (!go_layout_by_version(go_runtime__version(go), &by_version)) {
		CU_ASSERT_EQUAL(layout->goid, by_version.goid);
		CU_ASSERT_EQUAL(layout->status, by_version.status);
		CU_ASSERT_EQUAL(layout->wait_reason, by_version.wait_reason);
		CU_ASSERT_EQUAL(layout->sched, by_version.sched);
		CU_ASSERT_EQUAL(layout->sched_sz, by_version.sched_sz);
		for (int i = 1; i < 21; i++)
			CU_ASSERT_EQUAL(layout->waits[i], by_version.waits[i]);
	}
	file = elf_file__open(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	function = elf_file__find(file, "main.waiter");
	CU_ASSERT_PTR_NOT_NULL_FATAL(function);
	CU_ASSERT_TRUE(go_runtime__role(go, function->addr, comm));
	CU_ASSERT_STRING_EQUAL(comm, "go:waiter");
	CU_ASSERT_TRUE(go_runtime__role(go, function->addr + 1, comm));
	CU_ASSERT_STRING_EQUAL(comm, "go:waiter");
	CU_ASSERT_FALSE(go_runtime__role(go, 0, comm));
	CU_ASSERT_FALSE(go_runtime__role(go, 1, comm));
	/* The probes' places are those of the symbols, at the jump of the stack check. */
	function = elf_file__find(file, "runtime.execute");
	CU_ASSERT_PTR_NOT_NULL_FATAL(function);
	CU_ASSERT_EQUAL(go_runtime__site(go, GO_SITE_EXECUTE), function->file_off + 4);
	function = elf_file__find(file, "runtime.runqput");
	CU_ASSERT_PTR_NOT_NULL_FATAL(function);
	CU_ASSERT_EQUAL(go_runtime__site(go, GO_SITE_READY), function->file_off + 4);
	elf_file__free(file);
	go_runtime__free(go);
}

static void a_stripped_program_is_known_by_its_version(void)
{
	struct go_runtime *whole, *stripped;
	char path[512];
	char why[GO_WHY_SZ];

	if (!unit_go_subject("go-subject", path, sizeof(path)))
		return;
	CU_ASSERT_EQUAL_FATAL(open_program(path, &whole, why), 0);
	if (!unit_go_subject("go-subject-stripped", path, sizeof(path)))
		return;
	CU_ASSERT_EQUAL_FATAL(open_program(path, &stripped, why), 0);
	CU_ASSERT_FALSE(go_runtime__by_dwarf(stripped));
	CU_ASSERT_EQUAL(go_runtime__layout(stripped)->goid, go_runtime__layout(whole)->goid);
	CU_ASSERT_EQUAL(go_runtime__layout(stripped)->slot, go_runtime__layout(whole)->slot);
	CU_ASSERT_EQUAL(go_runtime__site(stripped, GO_SITE_PARK) - go_runtime__site(stripped, GO_SITE_EXECUTE),
			go_runtime__site(whole, GO_SITE_PARK) - go_runtime__site(whole, GO_SITE_EXECUTE));
	go_runtime__free(whole);
	go_runtime__free(stripped);
}

/* --- forged ones -------------------------------------------------------------------------------------------------- */

struct forgery {
	uint8_t *bytes;
	size_t sz;
	char path[32];
};

static bool forgery_begin(struct forgery *forgery, const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && !fstat(fd, &stat);

	forgery->bytes = good ? malloc((size_t)stat.st_size) : NULL;
	forgery->sz = good ? (size_t)stat.st_size : 0;
	good = forgery->bytes && read(fd, forgery->bytes, forgery->sz) == (ssize_t)forgery->sz;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Every occurrence: how many. */
static size_t forge(struct forgery *forgery, const void *from, const void *to, size_t sz)
{
	uint8_t *at = forgery->bytes;
	size_t cnt = 0;

	while ((at = memmem(at, forgery->sz - (size_t)(at - forgery->bytes), from, sz))) {
		memcpy(at, to, sz);
		at += sz;
		cnt++;
	}
	return cnt;
}

/* As go_runtime__open() of the process that it becomes, which does without what was forged. */
static int forgery_open(struct forgery *forgery, char why[GO_WHY_SZ])
{
	struct go_runtime *go = NULL;
	int fd, err;

	strcpy(forgery->path, "/tmp/whylate-go-XXXXXX");
	fd = mkostemp(forgery->path, O_CLOEXEC);
	err = fd >= 0 && write(fd, forgery->bytes, forgery->sz) == (ssize_t)forgery->sz && !fchmod(fd, 0700) ? 0 : -EIO;
	if (fd >= 0)
		close(fd);
	if (!err)
		err = open_program(forgery->path, &go, why);
	go_runtime__free(go);
	unlink(forgery->path);
	return err;
}

static void forgery_end(struct forgery *forgery)
{
	free(forgery->bytes);
}

static void dwarf_that_lies_is_refused(void)
{
	static const struct {
		const char from[8], to[8];
		size_t sz;
		const char *why;
	} lies[] = {
		/* goid, at 152, is said to be at 160, where something else is, and beyond the structure */
		{"goid\0\x98\x01", "goid\0\xa0\x01", 7,
		 "what its debugging information says of goroutines is not true of the process"},
		{"goid\0\x98\x01", "goid\0\xff\x7f", 7, "what its debugging information says of goroutines cannot be"},
		/* there is no such member */
		{"goid\0\x98\x01", "gold\0\x98\x01", 7, "what its debugging information says of goroutines cannot be"},
	};
	char path[512];

	if (!unit_go_subject("go-subject-plain", path, sizeof(path)))
		return;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct forgery forgery;
		char why[GO_WHY_SZ];

		CU_ASSERT_FATAL(forgery_begin(&forgery, path));
		if (!forge(&forgery, lies[i].from, lies[i].to, lies[i].sz)) {
			printf("\n    skipped: struct g of this version of Go is another one ");
		} else {
			CU_ASSERT_EQUAL(forgery_open(&forgery, why), -ENOTSUP);
			CU_ASSERT_STRING_EQUAL(why, lies[i].why);
		}
		forgery_end(&forgery);
	}
}

static void a_stripped_program_of_an_unknown_version_is_refused(void)
{
	struct forgery forgery;
	char why[GO_WHY_SZ];
	char path[512];

	if (!unit_go_subject("go-subject-stripped", path, sizeof(path)))
		return;
	CU_ASSERT_FATAL(forgery_begin(&forgery, path));
	CU_ASSERT_TRUE(forge(&forgery, "go1.", "go7.", 4) > 0);
	CU_ASSERT_EQUAL(forgery_open(&forgery, why), -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "was built by go7."));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "go1.18 to go1.24, and go1.26 are known"));
	forgery_end(&forgery);
}

static void other_programs_have_none(void)
{
	struct go_runtime *go;
	char why[GO_WHY_SZ];

	CU_ASSERT_EQUAL(open_of(getpid(), &go, why), -ENOENT);
	CU_ASSERT_PTR_NULL(go);
}

/* As go_runtime__open() of this process, if the forgery were its program. */
static int mapped_open(struct forgery *forgery, char why[GO_WHY_SZ])
{
	target_mappings mappings = {0}, one = {0};
	struct go_runtime *go = NULL;
	int fd, err = -EIO;
	void *at = MAP_FAILED;

	strcpy(forgery->path, "/tmp/whylate-go-XXXXXX");
	fd = mkostemp(forgery->path, O_CLOEXEC);
	if (fd >= 0 && write(fd, forgery->bytes, forgery->sz) == (ssize_t)forgery->sz)
		at = mmap(NULL, forgery->sz, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at != MAP_FAILED && !target_mappings_read(getpid(), &mappings))
		for (size_t i = 0; i < mappings.cnt; i++)
			if (!strcmp(mappings.items[i].path, forgery->path) && !vec_push(&one, mappings.items[i]))
				err = go_runtime__open(getpid(), &one, &go, why);
	go_runtime__free(go);
	vec_free(&one);
	target_mappings_free(&mappings);
	if (at != MAP_FAILED)
		munmap(at, forgery->sz);
	if (fd >= 0)
		close(fd);
	unlink(forgery->path);
	return err;
}

/* The table of functions with each byte of its header changed: refused, or read as it is. */
static void a_forged_table_is_survived(void)
{
	static const uint8_t magics[][8] = {{0xf0, 0xff, 0xff, 0xff, 0, 0, 1, 8}, {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}};
	struct forgery forgery;
	uint8_t *header = NULL;
	int refused = 0;
	char why[GO_WHY_SZ];
	char path[512];

	if (!unit_go_subject("go-subject-stripped", path, sizeof(path)))
		return;
	CU_ASSERT_FATAL(forgery_begin(&forgery, path));
	CU_ASSERT_EQUAL(mapped_open(&forgery, why), 0);
	for (int i = 0; i < 2 && !header; i++)
		header = memmem(forgery.bytes, forgery.sz, magics[i], 8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(header);
	for (size_t i = 0; i < 72; i++) {
		int err;

		header[i] ^= 0xff;
		err = mapped_open(&forgery, why);
		header[i] ^= 0xff;
		CU_ASSERT_TRUE(err == 0 || err == -ENOTSUP);
		refused += err == -ENOTSUP;
	}
	/* The magic number, the size of pointers, how many functions, and where they and their names are. */
	CU_ASSERT_TRUE(refused >= 4 + 1 + 3 * 8);
	/* Names of anything. */
	for (size_t at = 72; at < 4096; at += 8) {
		memset(header + at, 0xff, 8);
		if (at % 512 == 0)
			CU_ASSERT_TRUE(mapped_open(&forgery, why) <= 0);
	}
	forgery_end(&forgery);
}

int suite_go_runtime(void)
{
	static const struct unit_test tests[] = {
		{"probes sit on the stack check", probes_sit_on_the_stack_check},
		{"goroutines are called by their function", goroutines_are_called_by_their_function},
		{"versions that are not known are refused", versions_that_are_not_known_are_refused},
		{"DWARF and version agree", dwarf_and_version_agree},
		{"a stripped program is known by its version", a_stripped_program_is_known_by_its_version},
		{"DWARF that lies is refused", dwarf_that_lies_is_refused},
		{"a stripped program of an unknown version is refused",
		 a_stripped_program_of_an_unknown_version_is_refused},
		{"other programs have none", other_programs_have_none},
		{"a forged table is survived", a_forged_table_is_survived},
	};

	return unit_suite("go_runtime", tests, sizeof(tests) / sizeof(tests[0]));
}
