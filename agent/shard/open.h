/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings that the user names on the command line. */
#ifndef WHYLATE_SHARD_OPEN_H
#define WHYLATE_SHARD_OPEN_H

#include "shard/reader.h"

/* NULL after a line that says which path cannot be read, and why. */
struct shard_reader *shards_open(const char *const *paths, size_t path_cnt);

#endif
