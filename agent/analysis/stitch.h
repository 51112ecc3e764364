/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Joins recordings of several hosts.  What one host sent over TCP and what another one received are rows with one side
 * each; they meet by the connection's addresses and by the sequence number of the first byte received, which are the
 * same on both hosts unless something between them translates addresses.  From the messages in both directions follows
 * how the clocks differ, and so where on one axis of time the rows of all hosts lie.
 *
 * Recordings that have messages in one direction only, or none, are not joined.  A message whose send can be several,
 * or that took implausibly long, is ambiguous.
 */
#ifndef WHYLATE_ANALYSIS_STITCH_H
#define WHYLATE_ANALYSIS_STITCH_H

#include <whylate/record.h>

#include "analysis/clock_link.h"
#include "base/idmap.h"

#include <stdbool.h>

#define STITCH_NONE UINT32_MAX
/* Recordings that can be joined in one: the rest of a thread's number says which one. */
#define STITCH_SLOTS_MAX 512

/* One side of what went from one host to another. */
struct stitch_end {
	/* By its own host's clock.  Sent: it did not leave before that; received: when the call returned. */
	uint64_t ts;
	uint64_t done_ts; /* sent: when the call returned */
	uint64_t sid;
	uint32_t session;            /* the caller's number of it */
	uint32_t from_addr, to_addr; /* strings of the caller, never 0 */
	uint32_t seq, bytes;
	uint32_t pid, tid, name;
};

/* What a receive belongs to. */
struct stitch_match {
	uint32_t send; /* index into sends, STITCH_NONE: nothing */
	uint8_t certainty;
	bool mixed; /* other bytes of it were sent for other intervals, or that is not known */
};

/* Recordings whose clocks were compared. */
struct stitch_link {
	uint32_t a, b; /* sessions */
	struct clock_link clock;
	size_t joined_cnt; /* messages that have both sides, of either direction */
};

/* Where a recording's rows lie among those that it is joined with. */
struct stitch_place {
	uint32_t group;          /* those with the same one are joined: the session whose clock all use */
	uint32_t slot;           /* among them, 0: that session */
	uint32_t parent;         /* session by which its clock is known, itself with slot 0 */
	uint32_t link;           /* by that link */
	uint64_t uncertainty_ns; /* of its clock in terms of slot 0's */
};

struct stitch {
	VEC(struct stitch_end) sends;
	VEC(struct stitch_end) receives; /* in the order in which they were added */
	struct stitch_match *matches;    /* by receive */
	VEC(struct stitch_link) links;
	struct stitch_place *places; /* by session */
	uint32_t session_cnt;
	/* Receives, by what became of them */
	size_t joined, ambiguous;
	size_t unknown_peer; /* no other recording has that connection: not recorded, or its addresses are translated */
	size_t not_kept;     /* the other recording has the connection, but not that message */
	size_t contradicting; /* it would have arrived before it was sent */
	size_t clockless;     /* no clock can be told from messages in one direction only */
};

/* Who recorded a session: sessions of one host share its addresses on itself. */
typedef const char *(*stitch_host)(const void *owner, uint32_t session);
/* The text of an address. */
typedef const char *(*stitch_text)(const void *owner, uint32_t string);

/* After all ends were added: 0 or -ENOMEM. */
int stitch__join(struct stitch *stitch, uint32_t session_cnt, stitch_host host, stitch_text text, const void *owner);
void stitch__free(struct stitch *stitch);

/* A session's time by the clock of its group's slot 0, and back. */
uint64_t stitch__common_ts(const struct stitch *stitch, uint32_t session, uint64_t ts);
uint64_t stitch__own_ts(const struct stitch *stitch, uint32_t session, uint64_t ts);

#endif
