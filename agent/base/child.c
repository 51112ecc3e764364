// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/child.h"

#include "base/vec.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FDS_MAX 4

struct shared {
	uintptr_t begin, end;
};

void child_keep_fds(const int *fds, size_t cnt)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), moved[FDS_MAX];

	/* Out of the way of the places that they are to have. */
	for (size_t i = 0; i < cnt && i < FDS_MAX; i++)
		moved[i] = fcntl(fds[i], F_DUPFD, CHILD_FIRST_FD + FDS_MAX);
	for (int i = 0; i < CHILD_FIRST_FD; i++)
		dup2(null_fd, i);
	for (size_t i = 0; i < cnt && i < FDS_MAX; i++)
		dup2(moved[i], CHILD_FIRST_FD + (int)i);
	close_range((unsigned int)(CHILD_FIRST_FD + cnt), ~0U, 0);
	if (chdir("/"))
		return;
}

/* A line of /proc/self/maps: is it shared, and what the kernel or another process has, too? */
static int read_line(const char *line, struct shared *shared)
{
	char rights[5], *name = strchr(line, '/');

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &shared->begin, &shared->end, rights) != 3)
		return -EBADMSG;
	name = name ? name : strstr(line, "anon_inode:");
	return rights[3] == 's' && (rights[1] == 'w' || (name && !strncmp(name, "anon_inode:", 11)));
}

int child_unmap_shared(const void *keep)
{
	VEC(struct shared) all = {0};
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t kept = (uintptr_t)keep;
	char line[512];
	int err = maps ? 0 : -errno;

	while (!err && fgets(line, sizeof(line), maps)) {
		struct shared shared;
		int found = read_line(line, &shared);

		if (found < 0)
			err = found;
		else if (found && !(kept >= shared.begin && kept < shared.end))
			err = vec_push(&all, shared);
		/* The rest of a long path. */
		while (!strchr(line, '\n') && fgets(line, sizeof(line), maps))
			;
	}
	if (maps)
		fclose(maps);
	for (size_t i = 0; i < all.cnt && !err; i++)
		if (munmap((void *)all.items[i].begin, all.items[i].end - all.items[i].begin))
			err = -errno;
	vec_free(&all);
	return err;
}
