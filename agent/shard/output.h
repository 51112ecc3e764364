/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of a session on disk: names, creation, appending whole pieces.  A piece is in the file entirely or not at
 * all, unless we are killed in the middle of it.
 */
#ifndef WHYLATE_SHARD_OUTPUT_H
#define WHYLATE_SHARD_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#define SHARD_HOST_MAX 64 /* HOST_NAME_MAX of Linux */

struct shard_output;

/* A host's name as file names and the wire have it: A-Za-z0-9._- only, not hidden and no option of any command. */
void shard_host_name(char out[SHARD_HOST_MAX + 1], const char *host);

/* Makes the directory and those above it; without one (NULL) only sizes are kept.  NULL and errno. */
struct shard_output *shard_output__new(const char *dir, const char *host, uint64_t session_id);

/* Creates the next shard with its file header: 0 or -errno, without a file then. */
int shard_output__create(struct shard_output *output, uint64_t now_ts);
/* 0; -errno: the file is as long as before and takes no more. */
int shard_output__append(struct shard_output *output, const void *bytes, size_t sz);
int shard_output__sync(struct shard_output *output);
int shard_output__close(struct shard_output *output);

const char *shard_output__path(const struct shard_output *output);
uint64_t shard_output__sz(const struct shard_output *output); /* of the shard at hand */
uint64_t shard_output__created_ts(const struct shard_output *output);
uint64_t shard_output__total_bytes(const struct shard_output *output);
uint32_t shard_output__shard_cnt(const struct shard_output *output);

void shard_output__free(struct shard_output *output);

#endif
