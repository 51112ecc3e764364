/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that reads recordings gives up what reading them does not take: capabilities, sockets, new processes, and
 * all files but the recordings and its output.  A process that serves or sends keeps the files that it names.  Entered
 * once, before the first shard is opened and before there is a second thread.
 */
#ifndef WHYLATE_BASE_CONFINE_H
#define WHYLATE_BASE_CONFINE_H

#include "base/sandbox.h"

struct confine_reader {
	const char *const *paths; /* recordings */
	size_t path_cnt;
	const char *out_path; /* the file that it writes; NULL or "-": none */
	const char *files[2]; /* others that the user named, or NULL */
	const char *scratch;  /* a directory that it removes afterwards, or NULL */
	bool network;         /* it sends what it reads */
};

/*
 * Where the kernel or a container refuses a part of it, a warning says so once, and the rest holds.  Root keeps
 * CAP_DAC_READ_SEARCH for recordings of another user, CAP_DAC_OVERRIDE for an output or scratch directory of another
 * user.
 */
void confine_reader(const struct confine_reader *needs);

/*
 * Enters the sandbox, which may then read below these paths (NULL: skipped), what the C library opens and, with a
 * network, what the resolver and TLS open; readable_fds of the sandbox are set here.  A path that can be replaced while
 * the process runs is given as its directory.  0 or -errno as sandbox_enter().
 */
int confine_enter(struct sandbox *sandbox, const char *const *paths, size_t cnt);

#endif
