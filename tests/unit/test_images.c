// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that a JIT compiler keeps in a file without a name, as Erlang's does, is none that is read. */
#include "session/images.h"
#include "session/past_program.h"
#include "target/elf_reader.h"
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MADE_SZ (48UL << 20)

/* A child with so much code of its own making; 0: it could not be made. */
static pid_t child_with_made_code(int *end_fd)
{
	int ends[2], ready[2];
	char byte = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		return 0;
	pid = fork();
	if (!pid) {
		int fd = memfd_create("vmem", MFD_CLOEXEC);
		void *code = fd < 0 || ftruncate(fd, MADE_SZ)
				     ? MAP_FAILED
				     : mmap(NULL, MADE_SZ, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);

		close(ends[1]);
		byte = code != MAP_FAILED;
		if (write(ready[1], &byte, 1) == 1)
			(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	close(ends[0]);
	close(ready[1]);
	*end_fd = ends[1];
	if (pid > 0 && read(ready[0], &byte, 1) != 1)
		byte = 0;
	close(ready[0]);
	return byte ? pid : 0;
}

static void looked_at(pid_t target, pid_t pid)
{
	struct images *images = images__new(&(struct images_opts){.pid = target});
	struct image_process *process;

	CU_ASSERT_PTR_NOT_NULL_FATAL(images);
	CU_ASSERT_EQUAL_FATAL(images__process(images, pid, &process), 0);
	CU_ASSERT_PTR_NOT_NULL(process->image);
	images__free(images);
}

static void made_code_is_no_reason_not_to_look(void)
{
	int end_fd = -1;
	pid_t pid = child_with_made_code(&end_fd);

	CU_ASSERT_FATAL(pid > 0);
	looked_at(pid, pid);
	looked_at(getpid(), pid);
	close(end_fd);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}

static const char *name_at(struct image *image, uint64_t addr)
{
	uint32_t id = image && image->program ? program__function_at_runtime(image->program, addr, NULL) : PROGRAM_NONE;

	return id == PROGRAM_NONE ? "" : program__function(image->program, id)->name;
}

/* As the kernel side sends of this program, had it been mapped so much higher. */
static struct wl_stack_record stack_of(const target_mappings *mappings, uint64_t higher)
{
	struct wl_stack_record record = {.pid = 7, .mmap_base = 0x7f0000000000 + 2 * higher};

	for (size_t i = 0; i < mappings->cnt && !record.exe_ino; i++) {
		if (!mappings->items[i].exec || !mappings->items[i].ino)
			continue;
		record.exe_ino = mappings->items[i].ino;
		record.exe_start = mappings->items[i].start + higher;
	}
	return record;
}

/* By the path that execve() was given, its own code; by a living process of the program, its libraries' code as well.
 */
static void programs_that_have_ended_have_names(void)
{
	struct images *images = images__new(&(struct images_opts){.pid = getpid()});
	struct wl_program_record ran = {.pid = 7, .parent_pid = (uint32_t)getpid(), .path = "/proc/self/exe"};
	uint64_t own = (uint64_t)(uintptr_t)&suite_images, library = (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "qsort");
	struct image_process *process;
	const struct target_mapping *mapping;
	struct past_code known;
	target_mappings mappings = {0}, moved = {0};
	struct wl_stack_record record;

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	CU_ASSERT_EQUAL_FATAL(images__process(images, getpid(), &process), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(process->image);
	record = stack_of(&mappings, 0x10000000);
	CU_ASSERT_PTR_NULL(images__past(images, &record));
	ran.ino = record.exe_ino;
	images__ran(images, &ran);
	CU_ASSERT_STRING_EQUAL(name_at(images__past(images, &record), own + 0x10000000), "suite_images");
	CU_ASSERT_STRING_EQUAL(name_at(images__past(images, &record), own), "");
	/* Another process of it. */
	record = stack_of(&mappings, 0x20000000);
	CU_ASSERT_STRING_EQUAL(name_at(images__past(images, &record), own + 0x20000000), "suite_images");
	CU_ASSERT_STRING_EQUAL(name_at(images__past(images, &record), library + 0x40000000), "");

	known = (struct past_code){&mappings, record.exe_ino, stack_of(&mappings, 0).exe_start,
				   stack_of(&mappings, 0).mmap_base};
	record = stack_of(&mappings, 0);
	images__met(process->image, &record);
	record = stack_of(&mappings, 0x30000000);
	CU_ASSERT_STRING_EQUAL(name_at(images__past(images, &record), own + 0x30000000), "suite_images");
	CU_ASSERT_EQUAL_FATAL(past_map_as(&known, &record, &moved), 0);
	mapping = target_mapping_find(&moved, library + 0x60000000);
	CU_ASSERT(mapping && strstr(mapping->path, ".so"));
	target_mappings_free(&moved);
	/* What the kernel side could not read, or a path that leads to another file. */
	record.exe_start = 0;
	CU_ASSERT_PTR_NULL(images__past(images, &record));
	record = stack_of(&mappings, 0x10000000);
	ran.ino = ++record.exe_ino;
	images__ran(images, &ran);
	CU_ASSERT_PTR_NULL(images__past(images, &record));
	target_mappings_free(&mappings);
	images__free(images);
}

/* --- several processes of a program ------------------------------------------------------------------------------- */

static const struct target_mapping *library_of(const target_mappings *mappings)
{
	for (size_t i = 0; i < mappings->cnt; i++)
		if (mappings->items[i].exec && strstr(mappings->items[i].path, "/libc.so"))
			return &mappings->items[i];
	return NULL;
}

/* Where the C library's lfind() is in the process; 0: it has none so far. */
static uint64_t lfind_in(pid_t pid)
{
	target_mappings mappings = {0}, own = {0};
	uint64_t addr = (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "lfind");
	const struct target_mapping *there = NULL, *here = NULL;

	if (!target_mappings_read(pid, &mappings) && !target_mappings_read(getpid(), &own)) {
		there = library_of(&mappings);
		here = target_mapping_find(&own, addr);
	}
	addr = there && here ? there->start + (addr - here->start) : 0;
	target_mappings_free(&mappings);
	target_mappings_free(&own);
	return addr;
}

/* A process of the program at that path that sleeps; its libraries are mapped. */
static pid_t sleeper(const char *path, uint64_t *lfind_addr)
{
	char *const args[] = {(char *)path, "60", NULL};
	pid_t pid = 0;

	CU_ASSERT_EQUAL_FATAL(posix_spawn(&pid, path, NULL, NULL, args, NULL), 0);
	*lfind_addr = 0;
	for (int i = 0; i < 200; i++) {
		usleep(10000);
		if (*lfind_addr)
			break;
		*lfind_addr = lfind_in(pid);
	}
	CU_ASSERT_NOT_EQUAL_FATAL(*lfind_addr, 0);
	return pid;
}

static void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}

static struct image_process *process_of(struct images *images, pid_t pid)
{
	struct image_process *process;

	CU_ASSERT_EQUAL_FATAL(images__process(images, pid, &process), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(process->image);
	return process;
}

static struct image *image_of(struct images *images, pid_t pid)
{
	return process_of(images, pid)->image;
}

/* The files are read once, and each process has its own addresses, also after it has ended. */
static void processes_of_the_same_files_share_an_image(void)
{
	struct images *images = images__new(&(struct images_opts){.pid = getpid()});
	uint64_t addrs[2];
	uint32_t read_cnt;
	pid_t pids[2];

	for (int i = 0; i < 2; i++)
		pids[i] = sleeper("/usr/bin/sleep", &addrs[i]);
	CU_ASSERT_NOT_EQUAL(addrs[0], addrs[1]);
	CU_ASSERT_STRING_EQUAL(name_at(image_of(images, pids[0]), addrs[0]), "lfind");
	CU_ASSERT_PTR_NOT_NULL(unwinder__rule(image_of(images, pids[0])->unwinder, addrs[0]));
	read_cnt = elf_reader_cnt();
	CU_ASSERT_STRING_EQUAL(name_at(image_of(images, pids[1]), addrs[1]), "lfind");
	CU_ASSERT_PTR_NOT_NULL(unwinder__rule(image_of(images, pids[1])->unwinder, addrs[1]));
	CU_ASSERT_STRING_NOT_EQUAL(name_at(image_of(images, pids[1]), addrs[0]), "lfind");
	CU_ASSERT_EQUAL(elf_reader_cnt(), read_cnt);
	CU_ASSERT_PTR_EQUAL(image_of(images, pids[0]), image_of(images, pids[1]));
	for (int i = 0; i < 2; i++)
		end_sleeper(pids[i]);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_STRING_EQUAL(name_at(image_of(images, pids[i]), addrs[i]), "lfind");
	images__free(images);
}

static void copy_program(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "cp /usr/bin/sleep %s.new && mv %s.new %s", path, path, path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

/* A replaced file, and one that has changed since, are others. */
static void other_files_are_no_such_image(void)
{
	struct images *images = images__new(&(struct images_opts){.pid = getpid()});
	char dir[] = "/tmp/whylate-images-XXXXXX", path[64];
	struct image *first;
	uint64_t addr;
	pid_t pids[4];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	copy_program(path);
	pids[0] = sleeper(path, &addr);
	first = image_of(images, pids[0]);
	pids[1] = sleeper(path, &addr);
	CU_ASSERT_PTR_EQUAL(image_of(images, pids[1]), first);
	CU_ASSERT_EQUAL(chmod(path, 0700), 0);
	pids[2] = sleeper(path, &addr);
	CU_ASSERT_PTR_NOT_EQUAL(image_of(images, pids[2]), first);
	copy_program(path);
	pids[3] = sleeper(path, &addr);
	CU_ASSERT_PTR_NOT_EQUAL(image_of(images, pids[3]), first);
	CU_ASSERT_PTR_NOT_EQUAL(image_of(images, pids[3]), image_of(images, pids[2]));
	for (int i = 0; i < 4; i++)
		end_sleeper(pids[i]);
	images__free(images);
	unlink(path);
	rmdir(dir);
}

/* More processes than layouts: those that have to go are looked at again. */
static void layouts_are_bounded(void)
{
	enum { CNT = 70 };
	struct images *images = images__new(&(struct images_opts){.pid = getpid()});
	struct image_process *process;
	uint64_t addrs[CNT];
	pid_t pids[CNT];

	for (int i = 0; i < CNT; i++) {
		pids[i] = sleeper("/usr/bin/sleep", &addrs[i]);
		CU_ASSERT_STRING_EQUAL(name_at(image_of(images, pids[i]), addrs[i]), "lfind");
	}
	CU_ASSERT_EQUAL_FATAL(images__process(images, pids[0], &process), 0);
	for (int i = 0; i < CNT; i++) {
		CU_ASSERT_EQUAL_FATAL(images__process(images, pids[i], &process), 0);
		CU_ASSERT(!process->image || !strcmp(name_at(process->image, addrs[i]), "lfind"));
		end_sleeper(pids[i]);
	}
	images__free(images);
}
struct noted_python {
	pid_t pid;
	int cnt;
};

static void note_python(void *owner, pid_t pid, const struct python_layout *layout)
{
	struct noted_python *noted = owner;

	noted->cnt += layout && pid == noted->pid;
}

/* A process that waits for its standard input to end; 0: there is no such interpreter. */
static pid_t start_python(int *end_fd)
{
	int in[2], out[2];
	char x = 0;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return 0;
	pid = fork();
	if (!pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execlp("python3", "python3", "-S", "-E", "-c", "import os; os.write(1, b'x'); os.read(0, 1)", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*end_fd = in[1];
	if (read(out[0], &x, 1) != 1 || x != 'x')
		x = 0;
	close(out[0]);
	if (x)
		return pid;
	close(in[1]);
	waitpid(pid, NULL, 0);
	return 0;
}

/* Where it keeps its frames is known before a stack of it is met, and stays so when it is met. */
static void interpreters_are_found_before_their_stacks(void)
{
	int end_fd = -1;
	struct noted_python noted = {.pid = start_python(&end_fd)};
	struct images *images =
		images__new(&(struct images_opts){.pid = getpid(), .python = note_python, .owner = &noted});
	struct image_process *process;

	if (!noted.pid) {
		printf("\n    skipped: no python3 in PATH ");
		images__free(images);
		return;
	}
	/* There may be others on the machine, and the time is bounded. */
	for (int i = 0; i < 50 && !noted.cnt; i++)
		CU_ASSERT_EQUAL_FATAL(images__find_pythons(images), 0);
	CU_ASSERT_EQUAL(noted.cnt, 1);
	CU_ASSERT_EQUAL_FATAL(images__process(images, noted.pid, &process), 0);
	CU_ASSERT_PTR_NOT_NULL(process->image);
	CU_ASSERT_PTR_NOT_NULL(process->python);
	CU_ASSERT_EQUAL(noted.cnt, 1);
	images__free(images);
	close(end_fd);
	CU_ASSERT_EQUAL(waitpid(noted.pid, NULL, 0), noted.pid);
}

int suite_images(void)
{
	static const struct unit_test tests[] = {
		{"made code is no reason not to look", made_code_is_no_reason_not_to_look},
		{"programs that have ended have names", programs_that_have_ended_have_names},
		{"interpreters are found before their stacks", interpreters_are_found_before_their_stacks},
		{"processes of the same files share an image", processes_of_the_same_files_share_an_image},
		{"other files are no such image", other_files_are_no_such_image},
		{"layouts are bounded", layouts_are_bounded},
	};

	return unit_suite("images", tests, sizeof(tests) / sizeof(tests[0]));
}
