// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that a JIT compiler keeps in a file without a name, as Erlang's does, is none that is read. */
#include "session/images.h"
#include "session/past_program.h"
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
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

int suite_images(void)
{
	static const struct unit_test tests[] = {
		{"made code is no reason not to look", made_code_is_no_reason_not_to_look},
		{"programs that have ended have names", programs_that_have_ended_have_names},
	};

	return unit_suite("images", tests, sizeof(tests) / sizeof(tests[0]));
}
