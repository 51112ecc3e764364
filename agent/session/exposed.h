/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `--metrics ADDR`: what a recording counts is there for Prometheus while it runs. */
#ifndef WHYLATE_SESSION_EXPOSED_H
#define WHYLATE_SESSION_EXPOSED_H

#include "session/recording.h"

/* All of these do nothing where --metrics was not given. */

/* Before capture is opened: 0, or -errno after a line. */
int recording_metrics_open(struct recording *recording);
/* By which exemplars name this recording. */
void recording_metrics_begin(struct recording *recording, uint64_t session_id);
/* An interval that is kept, with its row of the table interval; all that end come by recording_metrics_take().  0 or
 * -ENOMEM. */
int recording_metrics_kept(struct recording *recording, uint32_t type, const struct shard_row *row);
/* Several times a second: gives out a snapshot where somebody asks for it. */
void recording_metrics_tick(struct recording *recording);
/* 0: there is no such process. */
pid_t recording_metrics_pid(const struct recording *recording);
void recording_metrics_free(struct recording *recording);

#endif
