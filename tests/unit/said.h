/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the code under test says on stderr: said_begin(); call(); CU_ASSERT(said_one_line(said_end(), "…")).  Not
 * nested. */
#ifndef WHYLATE_TESTS_SAID_H
#define WHYLATE_TESTS_SAID_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct said {
	int stderr_fd, file_fd;
	char text[8192];
};

static struct said said_state;

static inline void said_begin(void)
{
	fflush(stderr);
	said_state.stderr_fd = dup(STDERR_FILENO);
	said_state.file_fd = memfd_create("said", MFD_CLOEXEC);
	dup2(said_state.file_fd, STDERR_FILENO);
}

static inline const char *said_end(void)
{
	ssize_t len;

	fflush(stderr);
	dup2(said_state.stderr_fd, STDERR_FILENO);
	close(said_state.stderr_fd);
	len = pread(said_state.file_fd, said_state.text, sizeof(said_state.text) - 1, 0);
	said_state.text[len > 0 ? len : 0] = '\0';
	close(said_state.file_fd);
	return said_state.text;
}

/* Exactly one line, which holds `part`; shows it otherwise. */
static inline bool said_one_line(const char *said, const char *part)
{
	const char *end = strchr(said, '\n');

	if (end && !end[1] && strstr(said, part))
		return true;
	fprintf(stderr, "expected one line with \"%s\", but it said \"%s\"\n", part, said);
	return false;
}

#endif
