// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that a JIT compiler keeps in a file without a name, as Erlang's does, is none that is read. */
#include "session/images.h"
#include "unit.h"

#include <fcntl.h>
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

int suite_images(void)
{
	static const struct unit_test tests[] = {
		{"made code is no reason not to look", made_code_is_no_reason_not_to_look},
	};

	return unit_suite("images", tests, sizeof(tests) / sizeof(tests[0]));
}
