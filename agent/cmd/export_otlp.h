/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `export --format otlp` and `otlp-metrics` to a collector. */
#ifndef WHYLATE_CMD_EXPORT_OTLP_H
#define WHYLATE_CMD_EXPORT_OTLP_H

#include "net/send/otlp_send.h"
#include "shard/reader.h"

/* An exit code, after lines that say what was sent and what was not. */
int export_otlp_url(struct shard_reader *reader, bool metrics, const struct otlp_send_opts *opts);
/*
 * Sends the requests of these recordings as spans while they are stored, until the recordings have ended or a signal
 * comes.  An exit code, after lines that count what was sent and what was dropped.
 */
int export_otlp_live(const char *const *paths, size_t path_cnt, const struct otlp_send_opts *opts);

#endif
