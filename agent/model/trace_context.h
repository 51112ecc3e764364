/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The application's own trace and span of a request: W3C Trace Context, OpenTelemetry's thread context. */
#ifndef WHYLATE_MODEL_TRACE_CONTEXT_H
#define WHYLATE_MODEL_TRACE_CONTEXT_H

#include <stdbool.h>
#include <whylate/record.h>

#define TRACE_ID_TEXT_SZ (2 * WL_TRACE_ID_LEN + 1)
#define SPAN_ID_TEXT_SZ  (2 * WL_SPAN_ID_LEN + 1)

/* As lower-case hex digits.  False: there is none, or it is malformed. */
bool trace_context_texts(const struct wl_trace_context *context, char trace_id[TRACE_ID_TEXT_SZ],
			 char span_id[SPAN_ID_TEXT_SZ]);

#endif
