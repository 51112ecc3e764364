/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What went to other hosts over TCP: the newest sends whose receiver nobody here knows.  They are rows with one side
 * only, which meet their other side where both hosts' recordings are read together.  Bounded memory; sends come in
 * order of time.  What another host sent is an ordinary hand-off of the graph, without a sender.
 */
#ifndef WHYLATE_MODEL_TRACE_FAR_H
#define WHYLATE_MODEL_TRACE_FAR_H

#include <whylate/record.h>

#include <stdbool.h>
#include <stddef.h>

#define TRACE_FAR_SENDS 8192

struct trace_far_send {
	struct wl_socket_record record;
	bool done; /* its receiver is known, or its row is written */
};

struct trace_far {
	struct trace_far_send sends[TRACE_FAR_SENDS]; /* a ring */
	uint64_t send_cnt;
};

/* Whether the other end of the connection may be on another host: TCP, and not to an address of one's own. */
bool trace_far_is(const struct wl_socket_record *record);

void trace_far__sent(struct trace_far *far, const struct wl_socket_record *record);
/* The receiver of that send was on this host. */
void trace_far__met(struct trace_far *far, const struct wl_socket_record *sent);
/*
 * The next send of that thread with ts in [from_ts, to_ts] that is not done, or NULL.  *place is 0 to begin with; it
 * must not be kept across trace_far__sent().
 */
struct trace_far_send *trace_far__next(struct trace_far *far, uint32_t tid, uint64_t from_ts, uint64_t to_ts,
				       uint64_t *place);

#endif
