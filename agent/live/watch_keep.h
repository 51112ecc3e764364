/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shards of an armed recording: those of the last minute are kept, older ones removed; at an event those of the
 * minute before and after are linked into a directory of its own.  The first shard of a recording says what it is of,
 * and stays.
 */
#ifndef WHYLATE_LIVE_WATCH_KEEP_H
#define WHYLATE_LIVE_WATCH_KEEP_H

#include "live/watch_when.h"

#include <stdint.h>

#define WATCH_BEFORE_NS 60000000000ULL
#define WATCH_AFTER_NS  60000000000ULL
#define WATCH_SHARD_NS  10000000000ULL /* a shard lasts so long */

struct watch_keep;

/* dir: where the armed recording writes; type: "" for all requests; before_ns: what is kept.  NULL without memory. */
struct watch_keep *watch_keep__new(const char *dir, const char *type, uint64_t before_ns);
void watch_keep__free(struct watch_keep *keep);
/*
 * Once a second: takes the requests that were written since into the state (NULL: does not read them), removes what is
 * old, and links what belongs to the event under way.  0 or -errno.
 */
int watch_keep__look(struct watch_keep *keep, struct watch_state *state);
/* An event begins: its directory is made, and what there is is linked.  0 or -errno. */
int watch_keep__begin(struct watch_keep *keep, const char *event_dir);
/* It ends. */
void watch_keep__end(struct watch_keep *keep);
/* Removes the shards of the armed recording, and its directory. */
void watch_keep__remove(struct watch_keep *keep);
/* Removes a directory of files. */
void watch_remove_dir(const char *dir);
/* Removes the oldest events of a directory but `keep`, also those of earlier runs. */
void watch_keep_newest(const char *dir, uint64_t keep);
/* Makes the directory of an armed recording: a descriptor that says it is in use as long as it is open, or -errno. */
int watch_keep_claim(const char *dir);
/* Removes what watches that were killed left in it: what nobody says is in use. */
void watch_keep_sweep(const char *dir);

#endif
