/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a long recording does besides recording: streaming to a collector, and limits that change on SIGHUP. */
#ifndef WHYLATE_SESSION_STREAMING_H
#define WHYLATE_SESSION_STREAMING_H

#include "session/recording.h"

/* All of these do nothing where --stream (or --limits) was not given. */

/* Before capture is opened: 0, or -errno after a line. */
int recording_stream_open(struct recording *recording);
/* Whether shards are written to a directory. */
bool recording_keeps_files(const struct recording *recording);
/* Is there an uploader of our own?  Otherwise, where it is streamed, `whylate upload` sends what is in the spool. */
bool recording_uploads(const struct recording *recording);
/* The collector's URL, or the spool. */
const char *recording_stream_name(const struct recording *recording);
/* The session begins: sets the writer's sink.  0 or -errno after a line. */
int recording_stream_begin(struct recording *recording, struct shard_writer_opts *opts);
/* Attached: from now on it may be sent. */
void recording_stream_start(struct recording *recording);
void recording_stream_discard(struct recording *recording);
/* Several times a second. */
void recording_stream_tick(struct recording *recording);
/* Rows that are not full blocks are to be written now. */
bool recording_flush_is_due(struct recording *recording);
/* The spool had to drop more of the kept intervals than --max-loss allows. */
bool recording_stream_over_limits(const struct recording *recording);
/* After the writer was closed: sends what is left, says what became of it all. */
void recording_stream_close(struct recording *recording);

/* At the beginning: reads the limits, and again on SIGHUP.  0 or -errno after a line. */
int recording_limits_open(struct recording *recording);
/* Now and then; 0 or the writer's error. */
int recording_limits_poll(struct recording *recording);

#endif
