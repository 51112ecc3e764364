/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that the user's paths stand for: each once, a directory's, with those below it, in order of session and
 * sequence.
 */
#ifndef WHYLATE_SHARD_INPUTS_H
#define WHYLATE_SHARD_INPUTS_H

#include "shard/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct shard_input {
	char *path;
	dev_t dev;
	ino_t ino;
};

struct shard_inputs {
	struct shard_input *items;
	size_t cnt;
	size_t room;
};

/*
 * Adds a file, or every *.wls of a directory and of those below it.  0; -errno: it does not exist or cannot be read;
 * -EINVAL: neither a file nor a directory.  A file counts as a shard by its name or by its first bytes; another one is
 * passed over.
 */
int shard_inputs__add(struct shard_inputs *inputs, const char *path);
/* True if the name has the ending of a shard. */
bool shard_name_is(const char *path);
/* The host that a file's name begins with, HOST-SESSION-SEQ.wls: false where it is not such a name. */
bool shard_name_host(const char *path, char host[SHARD_HOST_MAX + 1]);
void shard_inputs__clear(struct shard_inputs *inputs);

#endif
