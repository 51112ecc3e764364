/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What messages of NATS begin and end on a connection, see nats.h. */
#ifndef WHYLATE_BPF_NATS_CONN_H
#define WHYLATE_BPF_NATS_CONN_H

#include "conn.h"
#include "goroutine.h"
#include "nats.h"

/* What the goroutine has read there: NATS_OTHER, too, where the connection is not known to be one of NATS. */
static __always_inline void nats_read(struct conn *conn, struct nats_seen *seen)
{
	seen->line = NATS_OTHER;
	if (!cfg_knobs.first_bytes || (conn->nats & (NATS_IS | NATS_LOOKS)) == NATS_LOOKS_MAX)
		return;
	nats__look(seen);
	if (seen->line > NATS_ASKS)
		seen->line = NATS_OTHER;
	if (seen->line != NATS_OTHER)
		conn->nats |= NATS_IS;
	else if (!(conn->nats & NATS_IS))
		conn->nats++;
}

/* Of the messages that were read together one has been taken, or none: the others are no requests of their own. */
static __always_inline void nats_count(const struct conn *conn, const struct nats_seen *seen, bool taken)
{
	struct cpu_context *cpu = conn->nats & NATS_IS && seen->message_cnt ? this_cpu() : NULL;

	if (!cpu)
		return;
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_MESSAGE].emitted, seen->message_cnt);
	__sync_fetch_and_add(&cpu->loss[WL_LOSS_MESSAGE].lost, seen->message_cnt - taken);
}

/* The request that has just been read, as NATS has it. */
static __always_inline void nats_begin(struct conn *conn, const struct nats_seen *seen)
{
	struct open_interval *open = conn->recorded ? open_find(conn->request.sid) : NULL;
	u64 key = seen->reply_to, sid = conn->request.sid;

	if (seen->line == NATS_TELLS)
		conn->nats |= NATS_ONE_WAY;
	if (!open)
		return;
	open->message = seen->line == NATS_TELLS ? MESSAGE_ONE_WAY : key != NATS_HASH_BEGIN ? MESSAGE_PASSED_ON : 0;
	if (open->message == MESSAGE_PASSED_ON)
		bpf_map_update_elem(&nats_asked, &key, &sid, BPF_ANY);
}

/* The message under way has ended where it was sent on, or nobody wanted it. */
static __always_inline void nats_end_one_way(struct conn *conn, struct thread *thread)
{
	u64 sid = conn->request.sid;

	conn->nats &= ~NATS_ONE_WAY;
	conn->in_request = 0;
	if (conn->recorded && open_find(sid))
		interval__abandon(thread, sid);
}

/* The bytes begin no request: they answer one, or nobody waits for them.  False: they do begin one. */
VERIFIED_ONCE bool nats_begins_none(struct conn *conn, struct thread *thread, struct nats_seen *seen)
{
	struct open_interval *open = NULL;
	u64 key, *sid = NULL;
	bool arrived;

	if (!conn || !thread || !seen || seen->line == NATS_ASKS)
		return false;
	key = seen->subject;
	if (seen->line == NATS_TELLS || seen->line == NATS_ANSWERS)
		sid = bpf_map_lookup_elem(&nats_asked, &key);
	if (sid)
		open = open_find(*sid);
	if (seen->line == NATS_TELLS && !open)
		return false;
	arrived = request_is_current(&conn->next) && conn->next.selected;
	goroutine__tell_bytes(thread, arrived ? conn->next.begin_ts : 0);
	conn_drop_next(conn);
	if (open && sid) {
		interval__resume(thread, *sid, open->type, true);
	} else if (thread->current_sid == conn->request.sid) {
		/* Its last one was ended by another goroutine. */
		thread->current_sid = 0;
		thread->current_recorded = 0;
		thread__works_for(thread, 0, 0);
	}
	return true;
}

/*
 * A message is sent to another client than the one that it came from.  Returns the interval that ends there, if it is
 * one that has no reply; 0.
 */
VERIFIED_ONCE u64 nats_sends_on(struct conn *conn, struct thread *thread, u32 line)
{
	struct goroutine *goroutine;
	struct open_interval *open;
	u64 sid;

	if (!conn || !thread || (line != NATS_PASSES_ON && line != NATS_DELIVERS))
		return 0;
	/* Requests of others are passed on by it from now on: its bytes are followed. */
	if (line == NATS_PASSES_ON && !(conn->nats & NATS_SERVES)) {
		conn->nats |= NATS_SERVES;
		__sync_fetch_and_add(&flow_generation, 1);
	}
	/* A goroutine that only sends does so for the one that woke it. */
	sid = thread->current_sid;
	goroutine = sid ? NULL : thread__goroutine(thread);
	if (goroutine)
		sid = goroutine->waker_sid;
	open = sid ? open_find(sid) : NULL;
	return open && open->message & MESSAGE_ONE_WAY ? sid : 0;
}

/* What ends with the call under way, of which the line is sent: the message's own, or the reply's.  0: nothing. */
static __always_inline u64 nats_ends(struct conn *conn, struct thread *thread, u64 len, bool in_request)
{
	u32 line = nats__line(len);
	u64 sid = nats_sends_on(conn, thread, line);

	if (sid || !in_request)
		return sid;
	if (line == NATS_PASSES_ON || line == NATS_NOTICE || line == NATS_ASKS || conn->nats & NATS_ONE_WAY)
		return 0;
	return conn->request.sid;
}

#endif
