/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replies that the server has sent and the client has not got: their last bytes stay in the socket after send(), until
 * the client acknowledges the bytes before them (Nagle's algorithm meets a delayed acknowledgement) or opens its
 * window. That time lies behind the end of the interval: it is no part of the latency, and is ranked beside it.
 */
#ifndef WHYLATE_ANALYSIS_DELIVERY_H
#define WHYLATE_ANALYSIS_DELIVERY_H

#include "analysis/results.h"

/*
 * Fills report->delivery, and ranks it with the causes where the mean of the longest ones (opts->tail) is worth a line.
 * Its share is of that mean and the tail of the latency together.  0 or -ENOMEM.
 */
int delivery_report(struct report *report, const struct report_opts *opts);

#endif
