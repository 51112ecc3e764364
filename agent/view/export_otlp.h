/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kept requests as spans of OpenTelemetry (docs/otlp.proto has what is used of the format): a span for each request,
 * in recordings of --mode trace with children along its critical path, and links to the requests that were in the way.
 * A request's trace and span have numbers that follow from its session and sid: a second export has the same.
 */
#ifndef WHYLATE_VIEW_EXPORT_OTLP_H
#define WHYLATE_VIEW_EXPORT_OTLP_H

#include "analysis/traces.h"
#include "shard/reader.h"

#include <stddef.h>

struct otlp_stats {
	uint64_t requests, spans;
	uint64_t without_clock; /* requests of sessions that do not say what time it was: not exported */
};

/*
 * put: takes one ExportTraceServiceRequest, of at most a few hundred requests; those one after the other are one as
 * well.  0, or -errno, which ends the export.  traces NULL: requests only, without children.  only: of these requests
 * (session, sid); NULL: of all.  0; -ENOENT: nothing to export; -ENOMEM, -EIO.
 */
int export_otlp(struct shard_reader *reader, const struct traces *traces, const struct idmap *only,
		int (*put)(void *owner, const void *bytes, size_t sz, size_t span_cnt), void *owner,
		struct otlp_stats *stats);
/* The same with the traces that the reader has. */
int export_otlp_some(struct shard_reader *reader, const struct idmap *only,
		     int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt), void *owner,
		     struct otlp_stats *stats);
/*
 * Their latencies as exponential histograms, one by session and type: put takes an ExportMetricsServiceRequest for each
 * session, with so many data points.
 */
int export_otlp_metrics(struct shard_reader *reader, int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt),
			void *owner, struct otlp_stats *stats);
/* Spans of all that is recorded, traced or not, or its metrics; a warning counts requests that are not exported. */
int export_otlp_all(struct shard_reader *reader, bool metrics,
		    int (*put)(void *owner, const void *bytes, size_t sz, size_t cnt), void *owner);

#endif
