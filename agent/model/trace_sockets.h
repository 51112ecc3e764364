/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which send does a receive belong to?  Both say which bytes they were about; a connection's direction is told by its
 * addresses, those of a Unix socket by the socket that receives.  The sender's call returns late, often after the
 * receiver has its bytes, so a receive waits a little for its send.  Memory is bounded: the oldest sends of a direction
 * and the directions not used for longest are forgotten, and what would have matched them has no sender.
 */
#ifndef WHYLATE_MODEL_TRACE_SOCKETS_H
#define WHYLATE_MODEL_TRACE_SOCKETS_H

#include <whylate/record.h>

#include <stdbool.h>
#include <stddef.h>

struct trace_sockets;

struct trace_sockets *trace_sockets__new(void);
void trace_sockets__free(struct trace_sockets *sockets); /* NULL-safe */

/*
 * A receive, and the send in which its first byte was, or NULL: the other end is on another host, or was not seen.
 * mixed: other bytes of it were sent for other intervals, or that is not known.
 */
typedef int (*trace_sockets_match)(void *owner, const struct wl_socket_record *sent,
				   const struct wl_socket_record *received, bool mixed);

/* One record, in order of time.  What `match` returns ends the call, or 0. */
int trace_sockets__take(struct trace_sockets *sockets, const struct wl_socket_record *record, trace_sockets_match match,
			void *owner);
/* Gives up on the sends of receives that are older than that. */
int trace_sockets__settle(struct trace_sockets *sockets, uint64_t before_ts, trace_sockets_match match, void *owner);

/* "10.0.0.1:5432", "[::1]:80"; "" for a Unix socket. */
void trace_socket_address(const struct wl_socket_record *record, bool remote, char *buf, size_t sz);

#endif
