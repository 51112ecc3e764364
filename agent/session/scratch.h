/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory for the shards of a recording that is not kept.  Its lock tells that the recording is alive: one that was
 * killed leaves a directory behind, and the next one of the same user removes it.
 */
#ifndef WHYLATE_SESSION_SCRATCH_H
#define WHYLATE_SESSION_SCRATCH_H

#define SCRATCH_PLACE "/tmp"

struct scratch {
	int fd; /* holds the lock */
	char path[sizeof(SCRATCH_PLACE "/whylate-diagnose-XXXXXX")];
};

/* Makes one, and removes those that are nobody's any more: 0 or -errno. */
int scratch__make(struct scratch *scratch);
/* The directory, locked, if it is ours and nobody holds it: a descriptor or -errno. */
int scratch_take(int at_fd, const char *path);
/* Removes it with the shards in it. */
void scratch__remove(struct scratch *scratch);

#endif
