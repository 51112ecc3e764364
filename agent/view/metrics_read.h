/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `export --format prometheus|openmetrics`. */
#ifndef WHYLATE_VIEW_METRICS_READ_H
#define WHYLATE_VIEW_METRICS_READ_H

#include "shard/reader.h"

#include <stdbool.h>
#include <stdio.h>

/* 0 or -errno, as export_metrics() and dataset_load(). */
int export_metrics_of(FILE *out, struct shard_reader *reader, bool openmetrics);

#endif
